/*
 * asks.h - how a cluster calls other managers of the store.
 *
 * The lead (the owner of partition 0) performs administration that concerns partitions of several
 * managers: it calls the owners of the other partitions. Other managers fail with SKV_E_NOT_OWNER,
 * naming partition 0. A thread that must not wait (skv_thread_waits) also gets that error: repeat
 * the call on a thread that may wait (skv_door.unknown).
 */
#ifndef SKV_ASKS_H
#define SKV_ASKS_H

#include <skv/core.h>
#include <skv/v1_operations.h>

/* An operation of the native API in a partition of another manager. */
struct skv_peer_call {
	enum skv_operation op;
	uint32_t partition;
	const char *tenant; /* tenant of the caller; NULL or "": all tenants */
	const char *name;   /* in the path; NULL: none */
	const struct skv_page *page; /* of a list; NULL: none */
	enum skv_put how;   /* of a put; and the next: NULL: whatever version the group has */
	const uint64_t *version;
	const struct skv_unused *unused; /* of an instance_delete; NULL: used or not */
	const void *req;         /* the struct of the operation's request; NULL: none */
	void *res;               /* of its answer, filled in; NULL: not wanted */
	struct skv_arena *arena; /* for *res */
	bool created;            /* the answer to a put */
};
/* Calls the owner of q->partition. Blocks, for a bounded time. SKV_E_NOT_OWNER, SKV_E_NOT_READY,
 * SKV_E_NETWORK: nothing was done, retry. SKV_E_UNKNOWN_OUTCOME: no answer arrived. Other values
 * are the owner's answer. */
typedef int skv_ask_fn(void *ctx, struct skv_peer_call *q, struct skv_error *err);
/* Sets the function that calls other managers; once. Without it, operations on partitions of other
 * managers fail. */
void skv_cluster_ask_by(struct skv_cluster *c, skv_ask_fn *ask, void *ctx);

#endif
