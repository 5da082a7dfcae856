/* policy.h - the eviction policy of a group (skv/policy.h): checked, set, changed. */
#ifndef SKV_CORE_MODEL_POLICY_H
#define SKV_CORE_MODEL_POLICY_H

#include <stdbool.h>

#include <model/partition.h>

struct skv_error;
struct skv_group_spec;

/* Checks that the policy exists and supports the group's settings. SKV_E_INVALID. */
int policy_check(const struct skv_group_spec *g, struct skv_error *err);
/* Sets the policy that the group's spec names; a changed policy requeues the group's blocks in
 * portions. SKV_E_NOMEM changes nothing. */
int policy_set(struct partition *p, struct group *g);
void policy_unset(struct group *g);
/* Requeues a portion. Returns true if more work is due now. */
bool policy_go_on(struct partition *p, struct portion groups);

#endif
