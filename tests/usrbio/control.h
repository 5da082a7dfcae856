/*
 * control.h - how a test turns the knobs of the stand-in for 3FS's client library on the mount
 * `root`, restarts its daemon, and reads what it counted. All of it works by files, so also
 * from outside of the process that has loaded the library. Functions fail the process with a
 * sentence when they cannot do it.
 */
#ifndef SKV_TESTS_USRBIO_CONTROL_H
#define SKV_TESTS_USRBIO_CONTROL_H

#include <stdint.h>

#include "counters.h"

/* Makes `text` the control file: NAME=VALUE and fault=OP:ERROR:WHEN[:HOW], separated by
 * spaces (README.md). What is not in it has its default. The stand-in sees it with its next
 * submit, or call to the daemon. After `down=1` the daemon that comes is another one, with an epoch
 * of its own: standin_restart. */
void standin_set(const char *root, const char *text);
/* The daemon is gone and another one has come: rings, memory and registered descriptors are worth
 * nothing any more. `text` as above, without epoch, which must be larger each time. */
void standin_restart(const char *root, int64_t epoch, const char *text);
/* Returns the count since the mount was made; 0 before that. */
uint64_t standin_count(const char *root, enum counter_name name);
/* Settles a file, as closing or syncing does on 3FS: its length becomes that of its last existing
 * chunk. */
void standin_settle(const char *path, uint64_t chunk);

/* Objects in /dev/shm that the library made for the mount `root`. 3FS's own library does not tell
 * which these are: with it, all that any mount has. */
int shm_count(const char *root);
/* Memory and rings that the daemon of `root` knows: links in 3fs-virt/iovs. */
int standin_links(const char *root);

#endif
