/*
 * main.c - entry point of slabkvd: runs the action that the command line asks for.
 *
 * Owns nothing. Exit status: 0, 1 for a failure, 2 for an invalid parameter.
 */
#include "main.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/kvcm_config.h>
#include <skv/simulate.h>

static int serve(const struct skv_params *p, int argc, char **argv, char **envp)
{
	const struct skv_run run = { .p = p, .ready_fd = -1, .argc = argc, .argv = argv,
				     .envp = envp };

	if (strcmp(p->role, "fs-master") == 0)
		return skv_serve_fs_master(p);
	return strcmp(p->role, "memory-node") == 0 ? skv_serve_memory_node(p) : skv_serve(&run);
}

int main(int argc, char **argv, char **envp)
{
	struct skv_params p;
	struct skv_error err;
	int status = 0;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE fails with EFBIG */
	if (kvcm_config_is_asked(argv[0]))
		return skv_kvcm_main(argc, argv, envp);
	if (argc > 1 && strcmp(argv[1], "fsck") == 0)
		return skv_fsck_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "check-config") == 0)
		return skv_check_config_main(argc - 1, argv + 1, envp);
	if (argc > 1 && skv_copy_is_asked(argv[1]))
		return skv_copy_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "simulate") == 0)
		return skv_simulate_main(argc - 1, argv + 1);
	skv_log_setup(STDERR_FILENO, skv_params_want_json(argc, argv, envp), SKV_LOG_INFO);
	if (skv_params_load(&p, argc, argv, envp, &err) != SKV_OK) {
		skv_sink_say("slabkvd", err.message);
		return EXIT_USAGE;
	}
	switch (p.action) {
	case SKV_ACTION_HELP:
		skv_params_help(stdout);
		break;
	case SKV_ACTION_VERSION:
		puts("slabkvd " SKV_VERSION);
		break;
	case SKV_ACTION_DUMP:
		skv_params_dump(&p, stdout);
		break;
	case SKV_ACTION_MAN:
		skv_params_man(stdout);
		break;
	case SKV_ACTION_RUN:
		status = serve(&p, argc, argv, envp);
		break;
	}
	skv_params_destroy(&p);
	if (fflush(stdout) != 0 && status == 0)
		status = EXIT_PROBLEM;
	return status;
}
