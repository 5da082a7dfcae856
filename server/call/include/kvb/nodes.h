/*
 * nodes.h - what the managers of one store tell each other about themselves, leader or not.
 *
 * Each leaves documents "<kind>/<owner name>" in the store (kvb_owner_name) and removes them at its end. No state; any
 * thread. All of these block.
 */
#ifndef KVB_NODES_H
#define KVB_NODES_H

#include <kvb/arena.h>
#include <kvb/status.h>

struct kvb_core;

#define KVB_NODE_URL "url" /* kind: the URL of its HTTP port, for clients of the others */

/* Leaves `text` as this manager's document of that kind, and removes those of processes that are provably dead. When
 * it fails it may be tried again. */
int kvb_node_publish(struct kvb_core *core, const char *kind, const char *text, struct kvb_error *err);
/* Removes it. */
void kvb_node_retire(struct kvb_core *core, const char *kind);
/* The document of the manager `owner`, in `a`. KVB_E_NOT_FOUND: it has left none. */
int kvb_node_text(struct kvb_core *core, const char *kind, const char *owner, struct kvb_arena *a, const char **text,
		  struct kvb_error *err);

#endif
