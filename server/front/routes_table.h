/*
 * routes_table.h - every operation of the HTTP port, one row each.
 *
 * Columns: name, method, pattern, role, flags.
 *   name     the operation in /metrics and logs; kvb_op_<name>_run and kvb_op_<name>_write serve it
 *   pattern  segments in braces are parameters, in order kvb_request.param[0], [1]
 *   role     OPEN = no token; READ < WRITE < ADMIN
 *   flags    CORE: needs a core that is ready, and the answer is given only while it owns its
 *            partition. BLOCKS: run on a worker, because it may wait for a disk or a mount.
 *            BODY: reads a request body.
 */
#ifndef KVB_ROUTES_TABLE_H
#define KVB_ROUTES_TABLE_H

#define KVB_ROUTES(X)                                                                              \
	X(index, GET, "/", OPEN, 0)                                                                \
	X(healthz, GET, "/healthz", OPEN, 0)                                                       \
	X(readyz, GET, "/readyz", OPEN, 0)                                                         \
	X(openapi, GET, "/openapi.json", OPEN, 0)                                                  \
	X(metrics, GET, "/metrics", READ, 0)                                                       \
	X(stats, GET, "/v1/stats", READ, 0)                                                        \
	X(storage_list, GET, "/v1/storages", READ, ROUTE_CORE)                                     \
	X(storage_get, GET, "/v1/storages/{name}", READ, ROUTE_CORE)                               \
	X(storage_put, PUT, "/v1/storages/{name}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY)  \
	X(storage_delete, DELETE, "/v1/storages/{name}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS)         \
	X(group_list, GET, "/v1/groups", READ, ROUTE_CORE)                                         \
	X(group_get, GET, "/v1/groups/{name}", READ, ROUTE_CORE)                                   \
	X(group_put, PUT, "/v1/groups/{name}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY)      \
	X(group_delete, DELETE, "/v1/groups/{name}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS)             \
	X(instance_list, GET, "/v1/instances", READ, ROUTE_CORE)                                   \
	X(instance_get, GET, "/v1/instances/{id}", READ, ROUTE_CORE)                               \
	X(instance_put, PUT, "/v1/instances/{id}", WRITE, ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY)  \
	X(instance_delete, DELETE, "/v1/instances/{id}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS)         \
	X(match, POST, "/v1/match", READ, ROUTE_CORE | ROUTE_BODY)                                 \
	X(lookup, POST, "/v1/instances/{id}/lookup", READ, ROUTE_CORE | ROUTE_BODY)                \
	X(start, POST, "/v1/instances/{id}/start", WRITE, ROUTE_CORE | ROUTE_BODY)                 \
	X(delete, POST, "/v1/instances/{id}/delete", WRITE, ROUTE_CORE | ROUTE_BODY)               \
	X(finish, POST, "/v1/sessions/{session}/finish", WRITE, ROUTE_CORE | ROUTE_BODY)           \
	X(abort, POST, "/v1/sessions/{session}/abort", WRITE, ROUTE_CORE | ROUTE_BODY)             \
	X(block_get, GET, "/v1/instances/{id}/blocks/{key}", READ, ROUTE_CORE)                     \
	X(block_find, GET, "/v1/instances/{id}/blocks", READ, ROUTE_CORE)

#endif
