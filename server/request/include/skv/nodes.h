/*
 * nodes.h - documents by which the managers of one store announce themselves, leader or not.
 *
 * Each publishes documents "<kind>/<owner name>" in the store (skv_owner_name) and removes them at
 * exit. Stateless; any thread. All of these block.
 */
#ifndef SKV_NODES_H
#define SKV_NODES_H

#include <stdint.h>

#include <skv/arena.h>
#include <skv/ops.h>
#include <skv/status.h>

struct skv_cluster;

/* Kinds: the URL of the HTTP port for clients of other managers, and for other managers. */
#define SKV_NODE_URL "url"
#define SKV_NODE_PEER "peer"
/* The token that other managers show it: skv_auth_manager_token. */
#define SKV_NODE_ASK "ask"

/* Publishes `text` as this manager's document of that kind, and removes those of provably dead
 * processes. May be retried. */
int skv_node_publish(struct skv_cluster *cluster, const char *kind, const char *text,
		     struct skv_error *err);
/* Removes it. */
void skv_node_retire(struct skv_cluster *cluster, const char *kind);
/* The document of the manager that is the owner `owner` of any partition, in `a`. SKV_E_NOT_FOUND:
 * it has none. */
int skv_node_text(struct skv_cluster *cluster, const char *kind, const char *owner,
		  struct skv_arena *a, const char **text, struct skv_error *err);

/* Returns the common part of the owner names of a process's partitions: all before the last '.'.
 * `out` has SKV_OWNER_NAME bytes. */
void skv_node_process(const char *owner, char *out);

/* Documents of that kind of all managers that are not provably dead; the name is the manager's. */
int skv_node_list(struct skv_cluster *cluster, const char *kind, struct skv_arena *a,
		  struct skv_doc **out, uint32_t *n, struct skv_error *err);

#endif
