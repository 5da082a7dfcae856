/*
 * shell.c - fork, exec, wait. Unlike system(3) it touches no signal of the caller, which may have
 * threads of its own.
 */
#include "shell.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

int test_shell(const char *command)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return pid > 0 ? status : -1;
}
