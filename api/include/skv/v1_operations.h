/*
 * v1_operations.h - every operation of the native API, one row each: for the manager's routes, the
 * codecs' functions, and the OpenAPI document.
 *
 * CALL: the body is a struct skv_<name>_req, what it asks for happens inside
 * the instance of the path by
 *       skv_core_<name>, and the answer is a struct skv_<name>_res. A codec has functions for both.
 * OWN:  skv_op_<name>_run and skv_op_<name>_write of server/v1 serve it.
 * TABLE: only the first; its answer, if it has one, is a message that is a table.
 *
 * Columns: name, method, pattern, role, flags, grpc, target, body, tag,
 * request, answer, summary, text.
 *   name     in /metrics, in logs and in the OpenAPI document
 *   pattern  segments in braces are parameters, in order skv_request.param[0], [1]
 *   role     OPEN = no token; READ < WRITE < ADMIN
 *   flags    of skv/api.h, for the server; READY has HELD with it
 *   grpc     path of its gRPC method: SKV_V1(method of the service slabkv.v1.SlabKV); or NULL
 *   target   field number in its request message of the name that HTTP has in the path; 0 = none
 *   body     field number of what HTTP has as body; 0 = the message itself
 *   tag      under which the OpenAPI document lists it
 *   request  schema of the body, NULL = none
 *   answer   schema of the answer, or a media type; NULL = no body
 *   summary  and text: for the OpenAPI document
 */
#ifndef SKV_V1_OPERATIONS_H
#define SKV_V1_OPERATIONS_H

#define SKV_NOTHING(...) /* for OWN, TABLE or CALL */
#define SKV_V1(method) "/slabkv.v1.SlabKV/" method

/* clang-format off */
#define SKV_OPERATIONS(OWN, TABLE, CALL) \
	OWN(index, GET, "/", OPEN, \
	  0, NULL, 0, 0, "manager", NULL, "text/plain", \
	  "Paths of this manager", "") \
	OWN(healthz, GET, "/healthz", OPEN, \
	  0, NULL, 0, 0, "manager", NULL, "Status", \
	  "This process serves", "") \
	OWN(readyz, GET, "/readyz", OPEN, \
	  0, NULL, 0, 0, "manager", NULL, "Status", \
	  "It can do its work now", \
	  "503 while starting, recovering, standing by, or without a healthy storage.") \
	OWN(openapi, GET, "/openapi.json", OPEN, \
	  0, NULL, 0, 0, "manager", NULL, "application/json", \
	  "This document", "") \
	OWN(metrics, GET, "/metrics", READ, \
	  ROUTE_SCRAPE, NULL, 0, 0, "manager", NULL, "text/plain", \
	  "Counters and histograms, Prometheus text", "") \
	TABLE(stats, GET, "/v1/stats", READ, \
	  ROUTE_MANAGERS | ROUTE_HELD, SKV_V1("GetStats"), 0, 0, "manager", NULL, "Stats", \
	  "The manager's numbers", \
	  "With the first page of storages, groups and instances, and how many there are. Their " \
	  "`extra` is left out.") \
	TABLE(cluster_get, GET, "/v1/cluster", READ, \
	  ROUTE_BLOCKS, SKV_V1("GetCluster"), 0, 0, "manager", NULL, "ClusterView", \
	  "Managers of the store, and its partitions as this one has them", \
	  "Answered by the manager that is asked, owner or not: each knows its own part.") \
	TABLE(cluster_put, PUT, "/v1/cluster", ADMIN, \
	  ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutCluster"), 0, 0, "manager", "DrainSpec", \
	  "ClusterView", \
	  "Drain this manager, or take it back", \
	  "draining true: it gives up what it owns, and owns nothing until false, or until its " \
	  "process ends. Answered when another one may take over.") \
	TABLE(home_put, PUT, "/v1/cluster/home", ADMIN, \
	  ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutHome"), 0, 0, "manager", \
	  "HomeSpec", "ClusterView", \
	  "Move a partition to a member, or take that back", \
	  "In the store: it stays there, and comes back whenever that member does, until it is " \
	  "moved elsewhere, or to none. Done in the background, as soon as the member follows " \
	  "the partition.") \
	TABLE(storage_list, GET, "/v1/storages", READ, \
	  ROUTE_PAGED | ROUTE_MANAGERS | ROUTE_CORE, \
	  SKV_V1("ListStorages"), 0, 0, "storages", NULL, "StorageList", \
	  "Storages, by name", "") \
	TABLE(storage_get, GET, "/v1/storages/{name}", READ, \
	  ROUTE_MANAGERS | ROUTE_CORE, \
	  SKV_V1("GetStorage"), 1, 0, "storages", NULL, "StorageView", \
	  "One storage", "") \
	TABLE(storage_put, PUT, "/v1/storages/{name}", ADMIN, \
	  ROUTE_MANAGERS | ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutStorage"), 1, 2, \
	  "storages", "StorageSpec", "StorageView", \
	  "Make or change a storage", \
	  "The same again is harmless; what may not change is a conflict that names the field.") \
	TABLE(storage_delete, DELETE, "/v1/storages/{name}", ADMIN, \
	  ROUTE_MANAGERS | ROUTE_CORE | ROUTE_BLOCKS, \
	  SKV_V1("DeleteStorage"), 1, 0, "storages", NULL, NULL, \
	  "Remove a storage", "") \
	TABLE(file_list, GET, "/v1/storages/{name}/files", READ, \
	  ROUTE_PAGED | ROUTE_MANAGERS | ROUTE_CORE, SKV_V1("ListFiles"), 15, 0, "storages", NULL, \
	  "FileList", \
	  "Slab files of a storage", \
	  "In order of their numbers, which are given once and may have holes. None of type " \
	  "external.") \
	TABLE(file_put, PUT, "/v1/storages/{name}/files", ADMIN, \
	  ROUTE_MANAGERS | ROUTE_TENANT | ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, \
	  SKV_V1("PutFile"), 1, 2, \
	  "storages", "FileWish", "FileList", \
	  "Drain a slab file, or keep it after all", \
	  "Durable, and done in the background: nothing new is placed in the file, its blocks " \
	  "are evicted (those under a lease are a miss at once, their slots wait for its end), " \
	  "then it is removed; the storage may grow by another one. Taken back by draining " \
	  "false, as long as the file is not empty. The answer is the list.") \
	TABLE(group_list, GET, "/v1/groups", READ, \
	  ROUTE_PAGED | ROUTE_MANAGERS | ROUTE_CORE, SKV_V1("ListGroups"), 0, 0, "groups", NULL, \
	  "GroupList", \
	  "Groups, by name", "") \
	TABLE(group_get, GET, "/v1/groups/{name}", READ, \
	  ROUTE_MANAGERS | ROUTE_CORE, SKV_V1("GetGroup"), 1, 0, "groups", NULL, "GroupView", \
	  "One group", "") \
	TABLE(group_put, PUT, "/v1/groups/{name}", ADMIN, \
	  ROUTE_MANAGERS | ROUTE_TENANT | ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, \
	  SKV_V1("PutGroup"), 1, 2, \
	  "groups", "GroupSpec", "GroupView", \
	  "Make or change a group", \
	  "The same again is harmless; what may not change is a conflict that names the field.") \
	TABLE(group_delete, DELETE, "/v1/groups/{name}", ADMIN, \
	  ROUTE_MANAGERS | ROUTE_TENANT | ROUTE_CORE | ROUTE_BLOCKS, SKV_V1("DeleteGroup"), 1, 0, \
	  "groups", NULL, NULL, \
	  "Remove a group", "") \
	TABLE(instance_list, GET, "/v1/instances", READ, \
	  ROUTE_PAGED | ROUTE_MANAGERS | ROUTE_CORE, \
	  SKV_V1("ListInstances"), 0, 0, "instances", NULL, "InstanceList", \
	  "The tenant's instances, by id", "") \
	TABLE(instance_get, GET, "/v1/instances/{id}", READ, \
	  ROUTE_MANAGERS | ROUTE_CORE, \
	  SKV_V1("GetInstance"), 1, 0, "instances", NULL, "InstanceView", \
	  "One instance", "") \
	TABLE(instance_put, PUT, "/v1/instances/{id}", WRITE, \
	  ROUTE_MANAGERS | ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutInstance"), 1, 2, \
	  "instances", "InstanceSpec", "InstanceView", \
	  "Make or change an instance", \
	  "The same again is harmless; what may not change is a conflict that names the field.") \
	TABLE(instance_delete, DELETE, "/v1/instances/{id}", ADMIN, \
	  ROUTE_MANAGERS | ROUTE_TENANT | ROUTE_CORE | ROUTE_BLOCKS, \
	  SKV_V1("DeleteInstance"), 1, 0, \
	  "instances", NULL, NULL, \
	  "Remove an instance with all its blocks", "") \
	TABLE(token_list, GET, "/v1/tokens", ADMIN, \
	  ROUTE_PAGED | ROUTE_TENANT, SKV_V1("ListTokens"), 0, 0, "tokens", NULL, "TokenList", \
	  "Tokens, by name: who may call", \
	  "Never a token's text or hash.") \
	TABLE(token_put, PUT, "/v1/tokens/{name}", ADMIN, \
	  ROUTE_TENANT | ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutToken"), 1, 2, \
	  "tokens", "TokenSpec", "TokenView", \
	  "Add a token, or replace the one of that name", \
	  "In the store, by its hash; every manager of the store accepts it within 2 seconds. " \
	  "conflict without a tokens_file, and for a name in it.") \
	TABLE(token_delete, DELETE, "/v1/tokens/{name}", ADMIN, \
	  ROUTE_TENANT | ROUTE_CORE | ROUTE_BLOCKS, SKV_V1("DeleteToken"), 1, 0, \
	  "tokens", NULL, NULL, \
	  "Revoke a token", "Refused at once here, by other managers within 2 seconds.") \
	TABLE(tenant_list, GET, "/v1/tenants", READ, \
	  ROUTE_PAGED | ROUTE_HELD, SKV_V1("ListTenants"), 0, 0, "tenants", NULL, "TenantList", \
	  "Tenants: what each may", \
	  "Those of which something was said. Tenants but default see themselves.") \
	TABLE(tenant_get, GET, "/v1/tenants/{tenant}", READ, \
	  ROUTE_HELD, SKV_V1("GetTenant"), 1, 0, "tenants", NULL, "TenantView", \
	  "One tenant", "") \
	TABLE(tenant_put, PUT, "/v1/tenants/{tenant}", ADMIN, \
	  ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("PutTenant"), 1, 2, \
	  "tenants", "TenantSpec", "TenantView", \
	  "Say what a tenant may", \
	  "In the store; replaces what was said. For administrators of tenant default. Every " \
	  "manager of the store follows within 2 seconds. conflict without a tokens_file.") \
	TABLE(tenant_delete, DELETE, "/v1/tenants/{tenant}", ADMIN, \
	  ROUTE_CORE | ROUTE_BLOCKS, SKV_V1("DeleteTenant"), 1, 0, "tenants", NULL, NULL, \
	  "Forget what was said of a tenant", \
	  "Its instances and tokens stay. For administrators of tenant default.") \
	OWN(match, POST, "/v1/match", READ, \
	  ROUTE_CORE | ROUTE_BODY | ROUTE_PACED | ROUTE_PARTS, SKV_V1("Match"), 0, 0, \
	  "blocks", "MatchRequest", "MatchResult", \
	  "How long is the present prefix, per instance", \
	  "No lease, no effect on eviction: safe to poll.") \
	CALL(lookup, POST, "/v1/instances/{id}/lookup", READ, \
	  ROUTE_CORE | ROUTE_BODY | ROUTE_PACED, SKV_V1("Lookup"), 15, 0, \
	  "blocks", "LookupRequest", "LookupResult", \
	  "Locations of blocks, leased", "") \
	CALL(start, POST, "/v1/instances/{id}/start", WRITE, \
	  ROUTE_CORE | ROUTE_BODY | ROUTE_PACED, SKV_V1("Start"), 15, 0, \
	  "blocks", "StartRequest", "StartResult", \
	  "Open a session: slots for the blocks that are missing", "") \
	CALL(delete, POST, "/v1/instances/{id}/delete", WRITE, \
	  ROUTE_CORE | ROUTE_BODY, SKV_V1("Delete"), 15, 0, \
	  "blocks", "DeleteRequest", "DeleteResult", \
	  "Make blocks unfindable", "") \
	CALL(trim, POST, "/v1/instances/{id}/trim", WRITE, \
	  ROUTE_CORE | ROUTE_BODY, SKV_V1("Trim"), 15, 0, \
	  "blocks", "TrimRequest", "TrimResult", \
	  "Delete blocks by the time when they were made", "") \
	TABLE(purge, POST, "/v1/purge", WRITE, \
	  ROUTE_MANAGERS | ROUTE_CORE | ROUTE_BLOCKS | ROUTE_BODY, SKV_V1("Purge"), 0, 0, \
	  "blocks", "PurgeRequest", "PurgeResult", \
	  "All that is stored or being written before now is gone", \
	  "Of instances by name, by prefix, by group or by tenant. Takes as long for many blocks " \
	  "as for few. Sessions that are open end: their finish says which blocks were deleted. " \
	  "After an error some instances may be purged: repeat the call.") \
	CALL(pin, POST, "/v1/instances/{id}/pin", WRITE, \
	  ROUTE_CORE | ROUTE_BODY | ROUTE_PACED, SKV_V1("Pin"), 15, 0, \
	  "blocks", "PinRequest", "PinResult", \
	  "Keep blocks from eviction", "") \
	CALL(unpin, POST, "/v1/instances/{id}/unpin", WRITE, \
	  ROUTE_CORE | ROUTE_BODY, SKV_V1("Unpin"), 15, 0, \
	  "blocks", "UnpinRequest", "UnpinResult", \
	  "End pins", "") \
	CALL(report, POST, "/v1/instances/{id}/report", READ, \
	  ROUTE_CORE | ROUTE_BODY | ROUTE_PACED, SKV_V1("Report"), 15, 0, \
	  "blocks", "ReportRequest", "ReportResult", \
	  "Report bytes with a wrong checksum", \
	  "Of a caller that may delete: the slots are hidden at once, and their keys can be " \
	  "written again. Of other callers: a mover checks them first. Harmless to repeat.") \
	OWN(pins, GET, "/v1/instances/{id}/pins", READ, \
	  ROUTE_CORE, SKV_V1("ListPins"), 15, 0, "blocks", NULL, "PinList", \
	  "List pins", "") \
	TABLE(keys, GET, "/v1/instances/{id}/keys", READ, \
	  ROUTE_CORE, SKV_V1("ListKeys"), 15, 0, "blocks", NULL, "KeyList", \
	  "List the keys of committed blocks, in no order, in portions", "") \
	OWN(finish, POST, "/v1/sessions/{session}/finish", WRITE, \
	  ROUTE_CORE | ROUTE_BODY, SKV_V1("Finish"), 15, 0, \
	  "blocks", "FinishRequest", "FinishResult", \
	  "Commit what was written", "") \
	OWN(abort, POST, "/v1/sessions/{session}/abort", WRITE, \
	  ROUTE_CORE | ROUTE_BODY, SKV_V1("Abort"), 15, 0, \
	  "blocks", "AbortRequest", "FinishResult", \
	  "End a session without committing", "") \
	OWN(move_take, POST, "/v1/moves/take", ADMIN, \
	  ROUTE_CORE | ROUTE_BODY, SKV_V1("TakeMove"), 0, 0, \
	  "moves", "MoveWish", "Move", \
	  "For movers: blocks to copy, and where to; or to verify", \
	  "Blocks of what drains with move, of all tenants. They stay where they are until the " \
	  "move is finished. A move that is not finished in time costs a repeat.") \
	TABLE(move_finish, POST, "/v1/moves/{move}/finish", ADMIN, \
	  ROUTE_CORE | ROUTE_BODY, SKV_V1("FinishMove"), 15, 0, \
	  "moves", "MoveFinish", "MoveResult", \
	  "For movers: what was copied lies there from now on", \
	  "Blocks that were deleted, evicted or written again meanwhile are not touched. " \
	  "not_found: the move has ended.") \
	OWN(block_get, GET, "/v1/instances/{id}/blocks/{key}", READ, \
	  ROUTE_CORE, SKV_V1("GetBlock"), 1, 0, "blocks", NULL, "Block", \
	  "One block, for a person", "") \
	OWN(block_find, GET, "/v1/instances/{id}/blocks", READ, \
	  ROUTE_CORE, NULL, 0, 0, "blocks", NULL, "Block", \
	  "One block by the key as it was given", "Exactly one of key and key_int.")
/* clang-format on */

enum skv_operation {
#define SKV_OPERATION(name, ...) SKV_OP_##name,
	SKV_OPERATIONS(SKV_OPERATION, SKV_OPERATION, SKV_OPERATION)
#undef SKV_OPERATION
	SKV_OP_COUNT
};

#endif
