/*
 * asks.h - how a cluster asks other managers of the store.
 *
 * Administration that concerns partitions of several managers is done by the one that leads (it
 * owns partition 0): it asks the owners of the others. Others fail with SKV_E_NOT_OWNER, naming
 * partition 0. On a thread that may not wait (skv_thread_waits) it is that error too: the same call
 * is for a thread that may (skv_door.unknown).
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
/* How the owner of q->partition is asked. Blocks, for a bounded time.
 * SKV_E_NOT_OWNER, SKV_E_NOT_READY, SKV_E_NETWORK: nothing was done, it may be asked again.
 * SKV_E_UNKNOWN_OUTCOME: there was no answer. The rest is the answer. */
typedef int skv_ask_fn(void *ctx, struct skv_peer_call *q, struct skv_error *err);
/* From now on they are asked this way; once. Without, what is not here fails. */
void skv_cluster_ask_by(struct skv_cluster *c, skv_ask_fn *ask, void *ctx);

#endif
