/*
 * trim.h - deletion of an instance's blocks by the time when they were made.
 */
#ifndef SKV_CORE_OPS_TRIM_H
#define SKV_CORE_OPS_TRIM_H

#include <stdbool.h>

struct partition;

/* A portion of each trim that waits for no record. True when there is more to do at once. */
bool trim_go_on(struct partition *p);
/* Those that wait for no record fail; the others with their records. */
void trim_fail_all(struct partition *p, int status, const char *text);

#endif
