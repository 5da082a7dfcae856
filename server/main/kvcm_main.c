/*
 * kvcm_main.c - the program as kv_cache_manager_bin: KVCM's flags and keys, then the same server.
 *
 * Owns nothing. Exit status as main's.
 */
#include "main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <skv/kvcm_config.h>

#include "daemon.h"

/* Creates the log file's directory if missing, as KVCM does. */
static void make_log_directory(const char *log_file)
{
	char dir[4096];
	char *slash;

	snprintf(dir, sizeof dir, "%s", log_file);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return;
	*slash = '\0';
	mkdir(dir, 0755); /* opening the file reports any error */
}

static int run(const struct skv_params *p, const struct kvcm_command *c)
{
	struct skv_run r = { .p = p, .notes = (const char *const *)c->notes.text,
			     .n_notes = c->notes.n,
			     .ready_fd = -1 };
	struct skv_error err;

	if (c->daemon) {
		make_log_directory(p->log_file);
		if (skv_daemon_begin(&r.ready_fd, &err) != SKV_OK) {
			skv_sink_say("kv_cache_manager_bin", err.message);
			return EXIT_PROBLEM;
		}
	}
	return skv_serve(&r);
}

int skv_kvcm_main(int argc, char **argv, char **envp)
{
	struct kvcm_command c;
	struct skv_params p;
	struct skv_error err;
	int status = 0;

	if (kvcm_config_load(&p, &c, argc, argv, envp, &err) != SKV_OK) {
		skv_sink_say("kv_cache_manager_bin", err.message);
		return EXIT_USAGE;
	}
	if (c.action == SKV_ACTION_HELP)
		kvcm_config_help(stdout);
	else if (c.action == SKV_ACTION_VERSION)
		puts("kv_cache_manager_bin: slabkvd " SKV_VERSION);
	else
		status = run(&p, &c);
	skv_params_destroy(&p);
	kvcm_command_destroy(&c);
	if (fflush(stdout) != 0 && status == 0)
		status = EXIT_PROBLEM;
	return status;
}
