/*
 * nodes.h - what the managers of one store tell each other about themselves, leader or not.
 *
 * Each leaves documents "<kind>/<owner name>" in the store (skv_owner_name) and removes them at its end. No state; any
 * thread. All of these block.
 */
#ifndef SKV_NODES_H
#define SKV_NODES_H

#include <skv/arena.h>
#include <skv/status.h>

struct skv_core;

#define SKV_NODE_URL "url" /* kind: the URL of its HTTP port, for clients of the others */

/* Leaves `text` as this manager's document of that kind, and removes those of processes that are provably dead. When
 * it fails it may be tried again. */
int skv_node_publish(struct skv_core *core, const char *kind, const char *text, struct skv_error *err);
/* Removes it. */
void skv_node_retire(struct skv_core *core, const char *kind);
/* The document of the manager `owner`, in `a`. SKV_E_NOT_FOUND: it has left none. */
int skv_node_text(struct skv_core *core, const char *kind, const char *owner, struct skv_arena *a, const char **text,
		  struct skv_error *err);

#endif
