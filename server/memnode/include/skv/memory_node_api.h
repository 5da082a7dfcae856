/*
 * memory_node_api.h - a memory node: slabs of shared memory, made for managers over HTTP, read and
 * written by clients over TCP or, on this host, in memory that they map.
 *
 * It needs no core, and keeps nothing: each start is a new epoch without slabs. Messages:
 * skv/fs_master.h, of which it takes those that name no file system, and skv/memory_node.h.
 */
#ifndef SKV_MEMORY_NODE_API_H
#define SKV_MEMORY_NODE_API_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/api.h>

struct skv_memory_options {
	const char *name;  /* 1 to 63 bytes, a name; unique among a store's nodes */
	uint64_t size;     /* bytes of all slabs, at most */
	const char *pages; /* "auto", "normal", "2M", "1G" */
	const char *numa;  /* "", or numbers of NUMA nodes with commas */
	const char *listen; /* of the data protocol */
	uint16_t port;     /* 0 = any */
	uint32_t max_connections;
	const char *rdma;  /* "auto", "off", or names of RDMA devices with commas */
};

/* Checks whether this host supports the options. The API must outlive every transport and service
 * that uses it. SKV_E_INVALID, SKV_E_NO_SPACE (huge pages), SKV_E_NOMEM, with the remedy. */
int skv_memory_node_create(const struct skv_memory_options *o, struct skv_api **out,
			   struct skv_error *err);
/* Binds the data port; serves nobody yet. Anything but loopback needs tokens. */
int skv_memory_node_bind(struct skv_api *api, struct skv_service *s, struct skv_error *err);
int skv_memory_node_start(struct skv_api *api, struct skv_error *err);
uint16_t skv_memory_node_port(const struct skv_api *api);
/* "2 MiB huge pages, NUMA nodes 0,1, RDMA on mlx5_0"; for the log. */
#define SKV_MEMORY_NODE_TEXT 256
void skv_memory_node_describe(const struct skv_api *api, char out[SKV_MEMORY_NODE_TEXT]);
/* Cuts all connections and waits for their threads; after the transports. NULL is allowed. */
void skv_memory_node_destroy(struct skv_api *api);

#endif
