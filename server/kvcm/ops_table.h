/*
 * ops_table.h - every operation of KVCM's API, one row each.
 *
 * Columns: service, name, path, request, response, role, flags, write, done, failed.
 *   service   meta, admin or debug: its messages, its gRPC service, its plane
 *   name      of the method of its gRPC service; in metrics, messages and faults
 *   path      /api/<path> of HTTP; kvcm_run_<service>_<path> runs it
 *   request   the message as the generated descriptor has it; response likewise
 *   role      OPEN = no token; READ < WRITE < ADMIN
 *   flags     see op.h
 *   write     the function that fills the answer after it; NULL: run has done it
 *   done      message of success; NULL: run says it
 *   failed    goes before an error's text; NULL: nothing does
 * Two services have some paths in common: a port with both serves the row that comes first.
 */
#ifndef KVCM_OPS_TABLE_H
#define KVCM_OPS_TABLE_H

#define KVCM_META_OPS(X)                                                                                              \
	X(meta, RemoveCache, removeCache, remove_cache_request, common_response, WRITE,                               \
	  KVCM_LEADER | KVCM_INSTANCE, NULL, "Cache removed successfully", "Failed to remove cache : ")

#define KVCM_ADMIN_OPS(X)

#define KVCM_DEBUG_OPS(X)

#define KVCM_OPS(X) KVCM_META_OPS(X) KVCM_ADMIN_OPS(X) KVCM_DEBUG_OPS(X)

/* What is asked for with GET: name, path, role, flags of routes (kvb/api.h). kvcm_page_<name>_run and _write, both
 * over struct kvb_call. */
#define KVCM_PAGES(X)                                                                                                 \
	X(metrics, "/metrics", READ, ROUTE_SCRAPE)                                                                    \
	X(healthy, "/api/healthy", OPEN, 0)

#endif
