/*
 * daemon.c - runs in the background, like kv_cache_manager_bin -d.
 *
 * The background process keeps the command line: test rigs look for it. See daemon.h.
 */
#include "daemon.h"

#include <skv/lock.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY 'r'

/* The starting process: waits for the byte, or for the other process's exit. */
static void wait_and_end(pid_t pid, int fd)
{
	char byte = 0;
	ssize_t n;
	int status;

	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 1 && byte == READY)
		_exit(0);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			_exit(1);
	_exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1);
}

int skv_daemon_begin(int *ready_fd, struct skv_error *err)
{
	int pipe_fd[2];
	pid_t pid;

	assert(skv_thread_locks == 0); /* the child would hold them, too */
	if (pipe2(pipe_fd, O_CLOEXEC) != 0)
		return skv_fail(err, SKV_E_INTERNAL, NULL, "cannot make a pipe: %s",
				strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		skv_fail(err, SKV_E_INTERNAL, NULL, "cannot fork: %s", strerror(errno));
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		return SKV_E_INTERNAL;
	}
	if (pid > 0) {
		close(pipe_fd[1]);
		wait_and_end(pid, pipe_fd[0]);
	}
	close(pipe_fd[0]);
	setsid();
	*ready_fd = pipe_fd[1];
	return SKV_OK;
}

void skv_daemon_ready(int ready_fd)
{
	const char byte = READY;
	int null;

	if (ready_fd < 0)
		return;
	fflush(stdout);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		if (null > STDERR_FILENO)
			close(null);
	}
	if (write(ready_fd, &byte, 1) < 0) {
		/* All waiters have left: nothing is lost. */
	}
	close(ready_fd);
}
