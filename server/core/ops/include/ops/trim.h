/* trim.h - deletes an instance's blocks by creation time. */
#ifndef SKV_CORE_OPS_TRIM_H
#define SKV_CORE_OPS_TRIM_H

#include <stdbool.h>

struct partition;

/* Continues each trim that waits for no record by a portion. Returns true if more work is due
 * now. */
bool trim_go_on(struct partition *p);
/* Fails the trims that wait for no record; the others fail with their records. */
void trim_fail_all(struct partition *p, int status, const char *text);

#endif
