/*
 * daemon.h - runs in the background: the started process returns when the background process
 * serves.
 *
 * Called before any thread exists.
 */
#ifndef SKV_DAEMON_H
#define SKV_DAEMON_H

#include <skv/status.h>

/* Forks. In the background process *ready_fd is for skv_daemon_ready. The started process does
 * not return: it exits with 0 when the other is ready, or with the other's status if that exits
 * first. */
int skv_daemon_begin(int *ready_fd, struct skv_error *err);
/* Releases the starting process and the terminal. Once; a descriptor of -1 does nothing. */
void skv_daemon_ready(int ready_fd);

#endif
