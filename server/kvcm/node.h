/*
 * node.h - endpoints of the managers of one store, for getClusterInfo and getManagerClusterInfo.
 *
 * Each manager, leader or follower, leaves its endpoint as a document "node/<owner name>" in the
 * store, where the others read it (skv/kvcm_run.h). No state; any thread.
 */
#ifndef KVCM_NODE_H
#define KVCM_NODE_H

#include <stdint.h>

#include <skv/arena.h>
#include <skv/status.h>

#include <kvcm/admin.pb-c.h>
#include <kvcm/meta.pb-c.h>

struct skv_cluster;

struct kvcm_cluster {
	const char *self;   /* node id */
	const char *leader; /* "" = none, or unknown */
	const KvcmAdmin__NodeEndpoint *endpoint; /* of the leader; NULL = unknown */
	uint64_t remaining_ms; /* of the leader's lease */
};

/* Finds the leader, also on a follower. Strings live in `a`, or as long as `own`. SKV_E_NOMEM
 * only. */
int kvcm_node_cluster(struct skv_cluster *cluster, const KvcmAdmin__NodeEndpoint *own,
		      struct skv_arena *a, struct kvcm_cluster *out, struct skv_error *err);
/* The same endpoint in the meta service's words, without the admin ports. NULL: out of memory. */
KvcmMeta__MetaNodeEndpoint *kvcm_node_for_meta(const KvcmAdmin__NodeEndpoint *e,
					       struct skv_arena *a);

#endif
