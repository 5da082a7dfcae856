/*
 * metrics_table.h - rows of /metrics besides calls and the core's own counters.
 *
 * Prometheus names: counters slabkv_<name>_total, gauges slabkv_<name>. In the gauge tables the
 * last column is the C expression of the value over the struct named in the comment.
 */
#ifndef SKV_METRICS_TABLE_H
#define SKV_METRICS_TABLE_H

/* Counted by the transport itself: skv_metrics_add(m, METRIC_<name>, n). */
#define SKV_HTTPD_COUNTERS(X)                                                                      \
	X(http_connections, "connections accepted")                                                \
	X(http_connections_refused, "connections over max_connections, closed at once")            \
	X(http_connections_dropped, "connections closed because they were idle or too slow")       \
	X(http_request_bytes, "bytes of request bodies")                                           \
	X(http_response_bytes, "bytes of response bodies")                                         \
	X(http_unauthenticated, "requests without a valid token")                                  \
	X(auth_throttled, "calls refused because their address showed too many wrong tokens")      \
	X(tenant_refused, "calls refused because their tenant was over its requests_per_s")        \
	X(audit_failures, "lines of the audit log that could not be written")                      \
	X(http_aborted, "requests whose connection ended before the answer")                       \
	X(calls_refused_held,                                                                      \
	  "calls refused because too much is held by bodies and answers, on all ports")            \
	X(calls_held, "calls that waited while ownership or the store moved, on all ports")        \
	X(calls_forwarded, "calls that were sent on to the manager that owns the store")           \
	X(matches_split, "matches over instances of several managers, each owner asked once")      \
	X(calls_forward_failed, "tries of sending a call on that failed: it waited, and went on")  \
	X(calls_held_failed, "of them, those that failed after hold_ms")                           \
	X(answers_too_large, "answers over answer_max, which failed, on all ports")                \
	X(http_slow, "requests that took at least slow_ms")                                        \
	X(http_admin_refused, "blocking calls refused or expired because the workers were busy")   \
	X(grpc_connections, "gRPC connections accepted")                                           \
	X(grpc_connections_refused, "gRPC connections over the limit, closed at once")             \
	X(grpc_connections_dropped, "gRPC connections closed because they were idle or too slow")  \
	X(grpc_connections_abused, "gRPC connections closed because they broke HTTP/2 or flooded") \
	X(grpc_streams_refused, "gRPC calls refused by a limit of the transport")                  \
	X(grpc_request_bytes, "bytes of gRPC request messages")                                    \
	X(grpc_response_bytes, "bytes of gRPC response messages")                                  \
	X(grpc_unauthenticated, "gRPC calls without a valid token")                                \
	X(grpc_cancelled, "gRPC calls whose client went before the answer")                        \
	X(grpc_deadlines, "gRPC calls answered DEADLINE_EXCEEDED")                                 \
	X(grpc_slow, "gRPC calls that took at least slow_ms")

/* The transports' gauges: skv_gauge_move(m, GAUGE_<name>, +-n). */
#define SKV_HTTPD_GAUGES(X)                                                                        \
	X(http_open_connections, "connections open")                                               \
	X(http_in_flight, "requests being served")                                                 \
	X(http_parked, "requests waiting for the core or a worker")                                \
	X(calls_waiting, "calls that wait while ownership or the store moves, on all ports")       \
	X(grpc_open_connections, "gRPC connections open")                                          \
	X(grpc_in_flight, "gRPC calls being served")                                               \
	X(grpc_parked, "gRPC calls waiting for the core or a worker")

/* Over `const struct skv_stats *s`. */
#define SKV_STATS_GAUGES(X)                                                                        \
	X(blocks, "committed blocks", s->blocks)                                                   \
	X(sessions, "open sessions", s->sessions)                                                  \
	X(storages, "how many; metrics of single ones are of the first 1,000",                     \
	  s->all_storages)                                                                         \
	X(groups, "how many; metrics of single ones are of the first 1,000",                       \
	  s->all_groups)                                                                           \
	X(instances, "how many; metrics of single ones are of the first 1,000",                    \
	  s->all_instances)                                                                        \
	X(journal_bytes, "bytes of the journal since the last checkpoint", s->journal_bytes)       \
	X(journal_limit_bytes, "bound of the journal", s->journal_limit)

/* Over `const struct skv_storage_view *v`, label storage. */
#define SKV_STORAGE_GAUGES(X)                                                                      \
	X(storage_healthy, "1 if the storage can be used", v->healthy)                             \
	X(storage_bad_files, "slab files that are lost or damaged", v->bad_files)                  \
	X(storage_capacity_bytes, "most bytes of slab files", v->spec.capacity)                    \
	X(storage_file_bytes, "bytes of slab files made so far", v->file_bytes)                    \
	X(storage_available_bytes,                                                                 \
	  "that slab files can have: the capacity, or less if the file system has no more",        \
	  v->available_bytes)                                                                      \
	X(storage_assigned_bytes, "bytes in slabs", v->assigned_bytes)                             \
	X(storage_used_bytes, "bytes in slots of blocks, open sessions included", v->used_bytes)   \
	X(storage_quarantined_bytes, "bytes waiting for a lease or a grace to end",                \
	  v->quarantined_bytes)                                                                    \
	X(storage_free_bytes, "bytes not assigned", v->free_bytes)                                 \
	X(storage_writing_seconds, "of type memory: age of the oldest write that has not ended",   \
	  (v->writing_ms + 999) / 1000)                                                            \
	X(storage_scrub_unchecked_files, "slab files that no scrub has checked whole",             \
	  v->scrub_unchecked_files)                                                                \
	X(storage_scrub_oldest_seconds,                                                            \
	  "since the last check of a slab file began, the longest of those that had one",          \
	  v->scrub_oldest_ms / 1000)                                                               \
	X(storage_scrub_slots, "slots of blocks that the last checks met",                         \
	  v->scrub_slots)                                                                          \
	X(storage_scrub_unsummed_slots, "of these: without a checksum, so not checked",            \
	  v->scrub_unsummed_slots)

/* Over `const struct skv_group_view *v`, label group. */
#define SKV_GROUP_GAUGES(X)                                                                        \
	X(group_used_bytes, "bytes of block data of the group", v->used_bytes)                     \
	X(group_blocks, "blocks of the group", v->blocks)                                          \
	X(group_room_bytes, "bytes that the group may have", v->room_bytes)                        \
	X(group_pinned_bytes, "bytes of blocks that are pinned hard", v->pinned_bytes)             \
	X(group_soft_pinned_bytes, "bytes of blocks that are pinned soft", v->soft_pinned_bytes)   \
	X(group_leased_bytes, "bytes of blocks that are leased, an estimate", v->leased_bytes)     \
	X(group_open_bytes, "bytes that open sessions write", v->open_bytes)
/* The same, since the manager has loaded its partition. */
#define SKV_GROUP_COUNTERS(X)                                                                      \
	X(group_evicted_blocks, "blocks of the group that were evicted", v->evicted_blocks)        \
	X(group_hits, "keys that lookups found in the group", v->hits)

/* Over `const struct skv_instance_view *v`, labels tenant and instance: those with a quota
 * share. */
#define SKV_INSTANCE_GAUGES(X)                                                                     \
	X(instance_used_bytes, "bytes of block data of the instance", v->used_bytes)               \
	X(instance_share_bytes, "its part of its group", v->share_bytes)                           \
	X(instance_pinned_bytes, "bytes of blocks that are pinned hard", v->pinned_bytes)          \
	X(instance_leased_bytes, "bytes of blocks that are leased, an estimate", v->leased_bytes)

/* Over `struct skv_partition_view v`, label partition: of a store with several. */
#define SKV_PARTITION_GAUGES(X)                                                                    \
	X(partition_ready, "1 if the partition is loaded here", v.state == SKV_CORE_READY)         \
	X(partition_groups, "groups of the partition", v.groups)                                   \
	X(partition_blocks, "blocks of the partition", v.blocks)                                   \
	X(partition_sessions, "open sessions of the partition", v.sessions)                        \
	X(partition_journal_bytes, "its journal since the last checkpoint", v.journal_bytes)

/* Over `const struct skv_core_store_counters *c`. */
#define SKV_STORE_COUNTERS(X)                                                                      \
	X(store_calls, "calls of the metadata store", c->calls)                                    \
	X(store_errors, "calls of the metadata store that failed", c->errors)                      \
	X(store_appends, "journal appends to the metadata store", c->appends)                      \
	X(store_append_bytes, "bytes appended", c->append_bytes)

/* Upper bounds of the latency histogram: microseconds, and the same in seconds as text. */
#define SKV_LATENCY_BUCKETS(X)                                                                     \
	X(50, "0.00005")                                                                           \
	X(100, "0.0001")                                                                           \
	X(250, "0.00025")                                                                          \
	X(500, "0.0005")                                                                           \
	X(1000, "0.001")                                                                           \
	X(2500, "0.0025")                                                                          \
	X(5000, "0.005")                                                                           \
	X(10000, "0.01")                                                                           \
	X(25000, "0.025")                                                                          \
	X(50000, "0.05")                                                                           \
	X(100000, "0.1")                                                                           \
	X(250000, "0.25")                                                                          \
	X(500000, "0.5")                                                                           \
	X(1000000, "1")                                                                            \
	X(2500000, "2.5")                                                                          \
	X(10000000, "10")

#endif
