/*
 * routes_table.h - every operation of the manager, one row each.
 *
 * Columns: name, method, pattern, role, flags, grpc, target, body.
 *   name     the operation in /metrics and logs; skv_op_<name>_run and skv_op_<name>_write serve it
 *   pattern  segments in braces are parameters, in order skv_request.param[0], [1]
 *   role     OPEN = no token; READ < WRITE < ADMIN
 *   flags    see skv/api.h
 *   grpc     path of its gRPC method: SKV_V1(method of the service slabkv.v1.SlabKV); or NULL
 *   target   field number in its request message of the name that HTTP has in the path; 0 = none
 *   body     field number of what HTTP has as body; 0 = the message itself
 */
#ifndef SKV_ROUTES_TABLE_H
#define SKV_ROUTES_TABLE_H

#define SKV_V1(method) "/slabkv.v1.SlabKV/" method

#define SKV_ROUTES(X)                                                                                              \
	X(index, GET, "/", OPEN, 0, NULL, 0, 0)                                                                    \
	X(healthz, GET, "/healthz", OPEN, 0, NULL, 0, 0)                                                           \
	X(readyz, GET, "/readyz", OPEN, 0, NULL, 0, 0)                                                             \
	X(openapi, GET, "/openapi.json", OPEN, 0, NULL, 0, 0)                                                      \
	X(metrics, GET, "/metrics", READ, ROUTE_SCRAPE, NULL, 0, 0)                                                      \
	X(stats, GET, "/v1/stats", READ, 0, SKV_V1("GetStats"), 0, 0)                                              \
	X(storage_list, GET, "/v1/storages", READ, ROUTE_CORE, SKV_V1("ListStorages"), 0, 0)                       \
	X(storage_get, GET, "/v1/storages/{name}", READ, ROUTE_CORE, SKV_V1("GetStorage"), 1, 0)                   \
	X(storage_put, PUT, "/v1/storages/{name}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutStorage"), 1, 2) \
	X(storage_delete, DELETE, "/v1/storages/{name}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS, SKV_V1("DeleteStorage"), 1, 0) \
	X(file_list, GET, "/v1/storages/{name}/files", READ, ROUTE_CORE, SKV_V1("ListFiles"), 1, 0)                \
	X(file_put, PUT, "/v1/storages/{name}/files", ADMIN, ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutFile"), 1, 2) \
	X(group_list, GET, "/v1/groups", READ, ROUTE_CORE, SKV_V1("ListGroups"), 0, 0)                             \
	X(group_get, GET, "/v1/groups/{name}", READ, ROUTE_CORE, SKV_V1("GetGroup"), 1, 0)                         \
	X(group_put, PUT, "/v1/groups/{name}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutGroup"), 1, 2) \
	X(group_delete, DELETE, "/v1/groups/{name}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS, SKV_V1("DeleteGroup"), 1, 0) \
	X(instance_list, GET, "/v1/instances", READ, ROUTE_CORE, SKV_V1("ListInstances"), 0, 0)                    \
	X(instance_get, GET, "/v1/instances/{id}", READ, ROUTE_CORE, SKV_V1("GetInstance"), 1, 0)                  \
	X(instance_put, PUT, "/v1/instances/{id}", WRITE, ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutInstance"), 1, 2) \
	X(instance_delete, DELETE, "/v1/instances/{id}", ADMIN, ROUTE_CORE | ROUTE_BLOCKS, SKV_V1("DeleteInstance"), 1, 0) \
	X(match, POST, "/v1/match", READ, ROUTE_CORE | ROUTE_BODY, SKV_V1("Match"), 0, 0)                          \
	X(lookup, POST, "/v1/instances/{id}/lookup", READ, ROUTE_CORE | ROUTE_BODY, SKV_V1("Lookup"), 15, 0)       \
	X(start, POST, "/v1/instances/{id}/start", WRITE, ROUTE_CORE | ROUTE_BODY, SKV_V1("Start"), 15, 0)         \
	X(delete, POST, "/v1/instances/{id}/delete", WRITE, ROUTE_CORE | ROUTE_BODY, SKV_V1("Delete"), 15, 0)      \
	X(trim, POST, "/v1/instances/{id}/trim", WRITE, ROUTE_CORE | ROUTE_BODY, SKV_V1("Trim"), 15, 0)            \
	X(pin, POST, "/v1/instances/{id}/pin", WRITE, ROUTE_CORE | ROUTE_BODY, SKV_V1("Pin"), 15, 0)               \
	X(unpin, POST, "/v1/instances/{id}/unpin", WRITE, ROUTE_CORE | ROUTE_BODY, SKV_V1("Unpin"), 15, 0)         \
	X(pins, GET, "/v1/instances/{id}/pins", READ, ROUTE_CORE, SKV_V1("ListPins"), 15, 0)                       \
	X(keys, GET, "/v1/instances/{id}/keys", READ, ROUTE_CORE, SKV_V1("ListKeys"), 15, 0)                       \
	X(finish, POST, "/v1/sessions/{session}/finish", WRITE, ROUTE_CORE | ROUTE_BODY, SKV_V1("Finish"), 15, 0)  \
	X(abort, POST, "/v1/sessions/{session}/abort", WRITE, ROUTE_CORE | ROUTE_BODY, SKV_V1("Abort"), 15, 0)     \
	X(block_get, GET, "/v1/instances/{id}/blocks/{key}", READ, ROUTE_CORE, SKV_V1("GetBlock"), 1, 0)           \
	X(block_find, GET, "/v1/instances/{id}/blocks", READ, ROUTE_CORE, NULL, 0, 0)

#endif
