/* etcd_upkeep.h - calls of an operator: the state of one server, alarms, defragmentation. */
#ifndef SKV_TESTS_ETCD_UPKEEP_H
#define SKV_TESTS_ETCD_UPKEEP_H

#include <skv/etcd.h>

enum { SKV_ETCD_ALARM_NOSPACE = 1, SKV_ETCD_ALARM_CORRUPT = 2 };

/* Of the one server that is connected. */
struct skv_etcd_status {
	char version[32];
	uint64_t member_id;
	uint64_t leader;         /* 0: it knows none */
	uint64_t db_bytes;       /* size of its database file */
	uint64_t db_bytes_used;  /* of it not free for reuse */
	uint64_t raft_applied;
};
int skv_etcd_status_get(struct skv_etcd *c, struct skv_etcd_status *out, struct skv_error *err);
/* Bits 1 << SKV_ETCD_ALARM_... that are raised anywhere in the cluster, after those in `disarm`
 * (may be 0) were lowered. */
int skv_etcd_alarms(struct skv_etcd *c, unsigned disarm, unsigned *raised, struct skv_error *err);
/* Rewrites the database file of the server that is connected, which answers nothing meanwhile.
 * timeout_ms: about 1 s for each 100 MB. */
int skv_etcd_defragment(struct skv_etcd *c, uint32_t timeout_ms, struct skv_error *err);

#endif
