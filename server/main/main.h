/* main.h - the steps of the slabkvd program. */
#ifndef SKV_MAIN_H
#define SKV_MAIN_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <skv/core.h>
#include <skv/params.h>

struct skv_compat;

enum { EXIT_PROBLEM = 1, EXIT_USAGE = 2 };

/* Sends the log where the parameters say; *fd is -1 or the log file's descriptor. */
int skv_sink_open(const struct skv_params *p, int *fd, struct skv_error *err);
/* Opens the log file again under the same descriptor, after somebody moved it away. */
void skv_sink_reopen(const struct skv_params *p, int fd);

/* What a server is started with. */
struct skv_run {
	const struct skv_params *p;
	const char *const *notes; /* said as warnings once the log is open */
	size_t n_notes;
	int ready_fd; /* of skv_daemon_begin; -1 = none */
};

/* Serves until SIGTERM or SIGINT; returns the exit status. */
int skv_serve(const struct skv_run *run);
/* The same as an fs-master: one HTTP port, no store, no core. */
int skv_serve_fs_master(const struct skv_params *p);
/* Leaves the number in a file, complete or not there; nothing if `path` is "". SKV_E_IO names `param`. */
int skv_write_port_file(const char *path, unsigned port, const char *param, bool *written, struct skv_error *err);
/* SIGTERM, SIGINT and SIGHUP: blocked in every thread, for sigwaitinfo. */
void skv_signals_block(sigset_t *signals);
/* From here on a second SIGTERM or SIGINT ends the process at once. */
void skv_signals_arm(const sigset_t *signals);

/* The program under its other name, kv_cache_manager_bin; returns the exit status. */
int skv_kvcm_main(int argc, char **argv, char **envp);

/* Makes the storage `default` and the group p->default_group where they are absent, and lets the
 * storage grow when the parameters ask for it. Blocks. SKV_E_NOT_READY, SKV_E_NOT_OWNER: try again
 * when the core is ready; other errors name the remedy. */
int skv_defaults_make(const struct skv_params *p, const struct skv_compat *compat, struct skv_core *core,
		      struct skv_error *err);

/* `slabkvd fsck ...`: argv[0] is "fsck". 0 clean, 1 problems, 2 could not check. */
int skv_fsck_main(int argc, char **argv);

#endif
