/*
 * kvcm_keys.h - every key of KVCM's configuration, one row each. Columns:
 *	  key
 *	  kind   what happens with the value:
 *	         SET       it is the value of the parameter in the next column
 *	         FLAG      "true" is true, everything else false
 *	         ADMIN     a port; 0 is that of the meta service ("off")
 *	         LEASE     milliseconds, clamped to the parameter's range
 *	         LEVEL     a number of KVCM's log levels
 *	         THREADS   of HTTP and of gRPC
 *	         URI       decides where the store is (kvcm_uri.c)
 *	         NONE      no effect here; the last column says why
 *	  param  ours; `config` stands for none
 *	  quiet  values that NONE ignores silently, separated by '|': KVCM's defaults
 *	  text   for --help; with NONE the reason for the warning
 */
#ifndef SKV_KVCM_KEYS_H
#define SKV_KVCM_KEYS_H

#define KVCM_NO_SAMPLING \
	"eviction takes the oldest blocks of exact queues: it samples nothing and has no batches"
#define KVCM_NO_CREDIT \
	"a slot of an evicted block is free at once or when its lease ends: nothing is in flight"
#define KVCM_NO_GC \
	"a session ends at its deadline, also after a restart: it leaves nothing to collect"
#define KVCM_NO_EVENTS "there are no storages that report events"
#define KVCM_NO_PLAN "deletions are done by the core, and nothing is migrated"
#define KVCM_ONE_THREAD "a query is answered by one thread"
#define KVCM_METRICS "metrics are kept in memory and served by /metrics and getMetrics, always"

#define KVCM_KEYS(X)                                                                               \
	X("kvcm.coordination.uri", URI, config, "",                                                \
	  "file://DIR: managers with the same DIR are one cluster and elect a leader; "            \
	  "memory: alone")                                                                         \
	X("kvcm.distributed_lock.uri", URI, config, "", "the older name of kvcm.coordination.uri") \
	X("kvcm.registry_storage.uri", URI, config, "",                                            \
	  "file://PATH: where the metadata lies when there is no coordination directory")          \
	X("kvcm.leader_elector.node_id", SET, kvcm_node_id, "", "name of this manager")            \
	X("kvcm.leader_elector.lease_ms", LEASE, owner_lease_ms, "",                               \
	  "how long a leader that is silent stays leader")                                         \
	X("kvcm.leader_elector.loop_interval_ms", NONE, config, "100",                             \
	  "a leader renews at a third of its lease, and others look five times a second")          \
	X("kvcm.service.io_thread_num", THREADS, http_threads, "",                                 \
	  "threads of each port; 0 = one per core")                                                \
	X("kvcm.service.rpc_port", SET, kvcm_meta_rpc_port, "", "gRPC port of the meta service")   \
	X("kvcm.service.http_port", SET, kvcm_meta_http_port, "", "HTTP port of the meta service") \
	X("kvcm.service.admin_rpc_port", ADMIN, kvcm_admin_rpc_port, "",                           \
	  "gRPC port of the admin service; 0 or rpc_port = on that port")                          \
	X("kvcm.service.admin_http_port", ADMIN, kvcm_admin_http_port, "",                         \
	  "HTTP port of the admin service; 0 or http_port = on that port")                         \
	X("kvcm.service.enable_debug_service", FLAG, kvcm_debug, "",                               \
	  "true: serve fault injection")                                                           \
	X("kvcm.service.advertised_host", SET, kvcm_advertised_host, "",                           \
	  "host that clients are told")                                                            \
	X("kvcm.service.custom_info", SET, kvcm_custom_info, "", "free text for clients")          \
	X("kvcm.service.admin_auth_token", SET, kvcm_admin_tokens, "",                             \
	  "tokens of the admin and debug services, separated by commas")                           \
	X("kvcm.logger.log_level", LEVEL, log_level, "",                                           \
	  "0 auto, 1 fatal, 2 error, 3 warn, 4 info, 5 debug")                                     \
	X("kvcm.startup_config", SET, kvcm_startup_config, "",                                     \
	  "JSON file with the storage and group to begin with")                                    \
	X("kvcm.schedule_plan_executor_thread_count", NONE, config, "2|8", KVCM_NO_PLAN)           \
	X("kvcm.schedule_plan_migration_worker_budget", NONE, config, "1|3", KVCM_NO_PLAN)         \
	X("kvcm.meta_query.worker_count", NONE, config, "4", KVCM_ONE_THREAD)                      \
	X("kvcm.meta_query.parallel_threshold", NONE, config, "256", KVCM_ONE_THREAD)              \
	X("kvcm.meta_query.chunk_size", NONE, config, "128", KVCM_ONE_THREAD)                      \
	X("kvcm.cache_reclaimer.key_sampling_size_total", NONE, config, "100|1000",                \
	  KVCM_NO_SAMPLING)                                                                        \
	X("kvcm.cache_reclaimer.key_sampling_size_per_task", NONE, config, "100",                  \
	  KVCM_NO_SAMPLING)                                                                        \
	X("kvcm.cache_reclaimer.del_batch_size", NONE, config, "100", KVCM_NO_SAMPLING)            \
	X("kvcm.cache_reclaimer.idle_interval_ms", NONE, config, "100", KVCM_NO_SAMPLING)          \
	X("kvcm.cache_reclaimer.worker_size", NONE, config, "16", KVCM_NO_SAMPLING)                \
	X("kvcm.cache_reclaimer.group_lru_max_sampling_size", NONE, config, "65536",               \
	  KVCM_NO_SAMPLING)                                                                        \
	X("kvcm.cache_reclaimer.group_lru_min_sampling_ratio", NONE, config, "10",                 \
	  KVCM_NO_SAMPLING)                                                                        \
	X("kvcm.cache_reclaimer.group_lru_max_delete_requests_per_round", NONE, config, "128",     \
	  KVCM_NO_SAMPLING)                                                                        \
	X("kvcm.cache_reclaimer.inflight_delete_timeout_ms", NONE, config, "60000",                \
	  KVCM_NO_CREDIT)                                                                          \
	X("kvcm.cache_reclaimer.pending_location_limit_per_group_type", NONE, config, "20000",     \
	  KVCM_NO_CREDIT)                                                                          \
	X("kvcm.cache_reclaimer.pending_bytes_limit_per_group_type", NONE, config,                 \
	  "1099511627776", KVCM_NO_CREDIT)                                                         \
	X("kvcm.cache_reclaimer.pending_delete_handler_limit", NONE, config, "1024",               \
	  KVCM_NO_CREDIT)                                                                          \
	X("kvcm.cache_reclaimer.pending_bytes_limit", NONE, config, "4398046511104",               \
	  KVCM_NO_CREDIT)                                                                          \
	X("kvcm.cache_gc.enabled", NONE, config, "true", KVCM_NO_GC)                               \
	X("kvcm.cache_gc.scan_interval_ms", NONE, config, "100", KVCM_NO_GC)                       \
	X("kvcm.cache_gc.round_pause_ms", NONE, config, "300000", KVCM_NO_GC)                      \
	X("kvcm.cache_gc.scan_batch_size", NONE, config, "256", KVCM_NO_GC)                        \
	X("kvcm.cache_gc.orphan_writing_grace_period_ms", NONE, config, "86400000", KVCM_NO_GC)    \
	X("kvcm.cache_gc.max_inflight_delete_requests", NONE, config, "64", KVCM_NO_GC)            \
	X("kvcm.cache_gc.event_report_cleanup_enabled", NONE, config, "true", KVCM_NO_EVENTS)      \
	X("kvcm.cache_gc.event_report_action_batch_size", NONE, config, "256", KVCM_NO_EVENTS)     \
	X("kvcm.metrics.reporter_type", NONE, config, "local|logging", KVCM_METRICS)               \
	X("kvcm.metrics.reporter_config", NONE, config, "", KVCM_METRICS)                          \
	X("kvcm.metrics.report_interval_ms", NONE, config, "20000", KVCM_METRICS)                  \
	X("kvcm.metrics.enable_prometheus", NONE, config, "true", KVCM_METRICS)                    \
	X("kvcm.metrics.prometheus_prefix", NONE, config, "kvcm",                                  \
	  "the names of metrics are fixed; rename them where they are collected")                  \
	X("kvcm.metrics.revisit_interval_buckets", NONE, config, "",                               \
	  "there is no histogram of how soon blocks are asked for again")                          \
	X("kvcm.event.event_publishers_configs", NONE, config, "", "no events are published")      \
	X("kvcm.kv_meta.enabled", NONE, config, "false", "there is no cache of objects")           \
	X("kvcm.kv_meta.rpc_port", NONE, config, "0", "there is no cache of objects")

#endif
