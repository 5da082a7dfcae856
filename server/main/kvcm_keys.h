/*
 * kvcm_keys.h - every key of KVCM's configuration, one row each. Columns:
 *	  key
 *	  kind   what happens with the value:
 *	         SET       it is the value of the parameter in the next column
 *	         FLAG      "true" is true, everything else false
 *	         PORT      one of the four in kvcm_ports
 *	         ADMIN     the same; 0 is that of the meta service ("off")
 *	         LEASE     milliseconds, clamped to the parameter's range
 *	         LEVEL     a number of KVCM's log levels
 *	         URI       decides where the store is (kvcm_uri.c)
 *	  param  ours; `config` stands for none
 *	  text   for --help
 */
#ifndef SKV_KVCM_KEYS_H
#define SKV_KVCM_KEYS_H

#define KVCM_KEYS(X)                                                                               \
	X("kvcm.coordination.uri", URI, config,                                                    \
	  "file://DIR: managers with the same DIR are one cluster and elect a leader; "            \
	  "memory: alone")                                                                         \
	X("kvcm.distributed_lock.uri", URI, config, "the older name of kvcm.coordination.uri")     \
	X("kvcm.registry_storage.uri", URI, config,                                                \
	  "file://PATH: where the metadata lies when there is no coordination directory")          \
	X("kvcm.leader_elector.node_id", SET, kvcm_node_id, "name of this manager")                \
	X("kvcm.leader_elector.lease_ms", LEASE, owner_lease_ms,                                   \
	  "how long a leader that is silent stays leader")                                         \
	X("kvcm.service.io_thread_num", SET, threads,                                              \
	  "threads of each port; 0 = one per core")                                                \
	X("kvcm.service.rpc_port", PORT, kvcm_ports, "gRPC port of the meta service")              \
	X("kvcm.service.http_port", PORT, kvcm_ports, "HTTP port of the meta service")             \
	X("kvcm.service.admin_rpc_port", ADMIN, kvcm_ports,                                        \
	  "gRPC port of the admin service; 0 or rpc_port = on that port")                          \
	X("kvcm.service.admin_http_port", ADMIN, kvcm_ports,                                       \
	  "HTTP port of the admin service; 0 or http_port = on that port")                         \
	X("kvcm.service.enable_debug_service", FLAG, kvcm_debug,                                   \
	  "true: serve fault injection")                                                           \
	X("kvcm.service.advertised_host", SET, advertise,                                          \
	  "host that clients are told")                                                            \
	X("kvcm.service.admin_auth_token", SET, kvcm_admin_tokens,                                 \
	  "tokens of the admin and debug services, separated by commas")                           \
	X("kvcm.logger.log_level", LEVEL, log_level,                                               \
	  "0 auto, 1 fatal, 2 error, 3 warn, 4 info, 5 debug")                                     \
	X("kvcm.startup_config", SET, kvcm_startup_config,                                         \
	  "JSON file with the storage and group to begin with")

/* Eviction here samples nothing and leaves nothing to collect, a query has one thread, metrics are
 * always served, and there are no events and no cache of objects. */
#define KVCM_IGNORED                                                                        \
	"kvcm.leader_elector.loop_interval_ms", "kvcm.service.custom_info",                 \
		"kvcm.schedule_plan_", "kvcm.meta_query.", "kvcm.cache_reclaimer.",         \
		"kvcm.cache_gc.", "kvcm.metrics.", "kvcm.event.", "kvcm.kv_meta."

#endif
