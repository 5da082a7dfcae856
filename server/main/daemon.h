/*
 * daemon.h - into the background: the process that was started returns when the one behind it serves.
 *
 * Called before any thread exists.
 */
#ifndef SKV_DAEMON_H
#define SKV_DAEMON_H

#include <skv/status.h>

/* Forks. In the background process *ready_fd is where skv_daemon_ready tells that it serves. The process that
 * was started does not return: it ends with 0 then, or as the other one ends if that comes first. */
int skv_daemon_begin(int *ready_fd, struct skv_error *err);
/* Lets the starting process end, and the terminal go. Once; a descriptor of -1 does nothing. */
void skv_daemon_ready(int ready_fd);

#endif
