/*
 * main.c - entry of kvblockd: which action the command line asks for.
 *
 * Owns nothing. Exit status: 0, 1 for a failure, 2 for a parameter that is not valid.
 */
#include "main.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <kvb/kvcm_config.h>
#include <kvb/simulate.h>

static int serve(const struct kvb_params *p)
{
	const struct kvb_run run = { .p = p, .ready_fd = -1 };

	return strcmp(p->role, "fs-master") == 0 ? kvb_serve_fs_master(p) : kvb_serve(&run);
}

int main(int argc, char **argv, char **envp)
{
	struct kvb_params p;
	struct kvb_error err;
	int status = 0;

	signal(SIGPIPE, SIG_IGN);
	if (kvcm_config_is_asked(argv[0]))
		return kvb_kvcm_main(argc, argv, envp);
	if (argc > 1 && strcmp(argv[1], "fsck") == 0)
		return kvb_fsck_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "simulate") == 0)
		return kvb_simulate_main(argc - 1, argv + 1);
	if (kvb_params_load(&p, argc, argv, envp, &err) != KVB_OK) {
		fprintf(stderr, "kvblockd: %s\n", err.message);
		return EXIT_USAGE;
	}
	switch (p.action) {
	case KVB_ACTION_HELP:
		kvb_params_help(stdout);
		break;
	case KVB_ACTION_VERSION:
		puts("kvblockd " KVB_VERSION);
		break;
	case KVB_ACTION_DUMP:
		kvb_params_dump(&p, stdout);
		break;
	case KVB_ACTION_MAN:
		kvb_params_man(stdout);
		break;
	case KVB_ACTION_RUN:
		status = serve(&p);
		break;
	}
	kvb_params_destroy(&p);
	if (fflush(stdout) != 0 && status == 0)
		status = EXIT_PROBLEM;
	return status;
}
