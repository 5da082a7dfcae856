/* main.h - the steps of the slabkvd program. */
#ifndef SKV_MAIN_H
#define SKV_MAIN_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <skv/core.h>
#include <skv/params.h>

struct skv_compat;
struct skv_service;

/* EXIT_REPAIR: a restart does not help, somebody has to act first. */
enum { EXIT_PROBLEM = 1, EXIT_USAGE = 2, EXIT_REPAIR = 3 };

/* Opens the log according to the parameters; *fd is the log file's descriptor or -1. */
int skv_sink_open(const struct skv_params *p, int *fd, struct skv_error *err);
/* Redirects the log to standard error again. Does nothing without a file (-1). */
void skv_sink_close(int fd);
/* A line on standard error, in the log's format: what is said by a process that cannot go on. As
 * text it begins with `program`. */
void skv_sink_say(const char *program, const char *message);
/* Reopens the log file under the same descriptor, after it was rotated. */
void skv_sink_reopen(const struct skv_params *p, int fd);

/* Reads the ports' certificates, if the parameters name some. SKV_E_INVALID with the remedy. */
int skv_certificates_load(const struct skv_params *p, struct skv_error *err);
/* SIGHUP: reads the certificates again and logs new ones. */
void skv_certificates_reload(void);

/* The input of a server's start. */
struct skv_run {
	const struct skv_params *p;
	const char *const *notes; /* logged as warnings once the log is open */
	size_t n_notes;
	int ready_fd; /* of skv_daemon_begin; -1 = none */
	/* Where the parameters are from, to be read again; argv NULL: from elsewhere */
	int argc;
	char *const *argv, *const *envp;
};

/* Serves until SIGTERM or SIGINT; returns the exit status. */
int skv_serve(const struct skv_run *run);
/* The same as an fs-master: one HTTP port, no store, no core. */
int skv_serve_fs_master(const struct skv_params *p);
/* The same as a memory node: an HTTP port and a data port. */
int skv_serve_memory_node(const struct skv_params *p);
/* Writes text to the file `path` + `end` atomically; nothing if `path` is "". SKV_E_IO. */
int skv_write_ports(const char *path, const char *end, const char *text, struct skv_error *err);
/* The same with a number and a newline. */
int skv_write_port_file(const char *path, const char *end, unsigned port, struct skv_error *err);
void skv_remove_port_file(const char *path, const char *end);
/* Blocks SIGTERM, SIGINT and SIGHUP in every thread, for sigwaitinfo or sigtimedwait. */
void skv_signals_block(sigset_t *signals);
/* Files that the process makes have at most the mode storage_mode, directories those who may read
 * may search: sets the umask, which is the process's. Before any thread starts. */
void skv_modes_set(const struct skv_params *p);
/* Roles without a core: waits for SIGTERM or SIGINT; SIGHUP reads the tokens again. */
void skv_wait_for_end(const struct skv_params *p, struct skv_service *s, int log_fd,
		      const sigset_t *signals);
/* From here on a second SIGTERM or SIGINT ends the process at once. */
void skv_signals_arm(const sigset_t *signals);

/* The program as kv_cache_manager_bin; returns the exit status. */
int skv_kvcm_main(int argc, char **argv, char **envp);

/* storage_root as an absolute path: the next start may have another working directory.
 * SKV_E_INVALID. */
int skv_absolute_root(const struct skv_params *p, char out[SKV_MAX_ROOT + 1],
		      struct skv_error *err);

/* Creates the storage `default` and the group `default` if missing, and grows the storage if
 * the parameters say so. Blocks. SKV_E_NOT_READY, SKV_E_NOT_OWNER: retry when the core is ready;
 * other errors name the remedy. */
int skv_defaults_make(const struct skv_params *p, const struct skv_compat *compat,
		      struct skv_cluster *cluster, struct skv_error *err);

/* `slabkvd fsck ...`: argv[0] is "fsck". 0 clean, 1 problems, 2 could not check. */
int skv_fsck_main(int argc, char **argv);
/* `slabkvd check-config ...`: 0 nothing is wrong, 1 something is, 2 wrong arguments. */
int skv_check_config_main(int argc, char **argv, char **envp);
/* `slabkvd migrate ...`, `backup ...` and `restore ...`: 0 done, 1 not done, 2 wrong arguments. */
bool skv_copy_is_asked(const char *command);
int skv_copy_main(int argc, char **argv);

#endif
