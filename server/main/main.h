/* main.h - the steps of the kvblockd program. */
#ifndef KVB_MAIN_H
#define KVB_MAIN_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <kvb/core.h>
#include <kvb/params.h>

struct kvb_compat;

enum { EXIT_PROBLEM = 1, EXIT_USAGE = 2 };

/* Sends the log where the parameters say; *fd is -1 or the log file's descriptor. */
int kvb_sink_open(const struct kvb_params *p, int *fd, struct kvb_error *err);
/* Opens the log file again under the same descriptor, after somebody moved it away. */
void kvb_sink_reopen(const struct kvb_params *p, int fd);

/* What a server is started with. */
struct kvb_run {
	const struct kvb_params *p;
	const char *const *notes; /* said as warnings once the log is open */
	size_t n_notes;
	int ready_fd; /* of kvb_daemon_begin; -1 = none */
};

/* Serves until SIGTERM or SIGINT; returns the exit status. */
int kvb_serve(const struct kvb_run *run);
/* The same as an fs-master: one HTTP port, no store, no core. */
int kvb_serve_fs_master(const struct kvb_params *p);
/* Leaves the number in a file, complete or not there; nothing if `path` is "". KVB_E_IO names `param`. */
int kvb_write_port_file(const char *path, unsigned port, const char *param, bool *written, struct kvb_error *err);
/* SIGTERM, SIGINT and SIGHUP: blocked in every thread, for sigwaitinfo. */
void kvb_signals_block(sigset_t *signals);
/* From here on a second SIGTERM or SIGINT ends the process at once. */
void kvb_signals_arm(const sigset_t *signals);

/* The program under its other name, kv_cache_manager_bin; returns the exit status. */
int kvb_kvcm_main(int argc, char **argv, char **envp);

/* Makes the storage `default` and the group p->default_group where they are absent, and lets the
 * storage grow when the parameters ask for it. Blocks. KVB_E_NOT_READY, KVB_E_NOT_OWNER: try again
 * when the core is ready; other errors name the remedy. */
int kvb_defaults_make(const struct kvb_params *p, const struct kvb_compat *compat, struct kvb_core *core,
		      struct kvb_error *err);

/* `kvblockd fsck ...`: argv[0] is "fsck". 0 clean, 1 problems, 2 could not check. */
int kvb_fsck_main(int argc, char **argv);

#endif
