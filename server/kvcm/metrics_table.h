/*
 * metrics_table.h - metrics under KVCM's names in getMetrics and /metrics, one row each.
 *
 * Columns: name, type (COUNTER or GAUGE), form (INT or REAL), value, help. The value is a
 * C expression over the struct named in the comment. In Prometheus the name has the
 * prefix kvcm_ and '_' for '.'.
 */
#ifndef KVCM_METRICS_TABLE_H
#define KVCM_METRICS_TABLE_H

/* Over `const struct metric_totals *t`, tag api_name. */
#define KVCM_OP_METRICS(X)                                                                     \
	X("service.query_counter", COUNTER, INT, t->calls, "calls")                            \
	X("service.error_counter", COUNTER, INT, t->failed, "calls that failed")               \
	X("service.query_rt_us", GAUGE, REAL, t->calls ? (double)t->us / (double)t->calls : 0, \
	  "microseconds of a call, mean since the start")

/* Over `const struct skv_group_view *v`, tag instance_group. */
#define KVCM_GROUP_METRICS(X)                                                      \
	X("cache_manager_group.usage_ratio", GAUGE, REAL,                          \
	  v->spec.capacity ? (double)v->used_bytes / (double)v->spec.capacity : 0, \
	  "used part of the quota")

/* Over `const struct skv_instance_view *v`, tags instance_group, instance_id, and
 * tenant if it is not "default". */
#define KVCM_INSTANCE_METRICS(X)                                               \
	X("cache_manager_instance.key_count", GAUGE, INT, v->blocks, "blocks") \
	X("cache_manager_instance.byte_size", GAUGE, INT, v->used_bytes, "bytes of blocks")

/* Over `const struct skv_storage_view *v`, tags type, unique_name. */
#define KVCM_STORAGE_METRICS(X)                                                                  \
	X("data_storage.healthy_status", GAUGE, INT, v->healthy, "1 if the storage can be used") \
	X("data_storage.storage_usage_ratio", GAUGE, REAL,                                       \
	  v->spec.capacity ? (double)v->used_bytes / (double)v->spec.capacity : 0,               \
	  "used part of the capacity")

/* Over `const struct skv_core_counters *c` and `const struct skv_stats *s`, no tags. */
#define KVCM_TOTAL_METRICS(X)                                                             \
	X("meta_indexer.total_key_count", GAUGE, INT, s->blocks, "blocks")                \
	X("cache_manager.write_location_expire_size", GAUGE, INT, s->sessions,            \
	  "open write sessions")                                                          \
	X("manager.get_cache_location_query_block_counter", COUNTER, INT, c->lookup_keys, \
	  "blocks asked for")                                                             \
	X("manager.get_cache_location_hit_block_counter", COUNTER, INT, c->lookup_hits,   \
	  "blocks found")                                                                 \
	X("data_storage.create_keys_counter", COUNTER, INT, c->start_writes,              \
	  "blocks handed out for writing")                                                \
	X("cache_reclaimer.evicted_block_counter", COUNTER, INT, c->evicted_blocks,       \
	  "blocks evicted")

#endif
