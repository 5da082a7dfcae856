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

#define KVCM_META_OPS(X)                                                                           \
	X(meta, RegisterInstance, registerInstance, register_instance_request,                     \
	  register_instance_response, WRITE,                                                       \
	  KVCM_LEADER | KVCM_FAULTS | KVCM_WORKER, NULL,                                           \
	  "Instance registered successfully", "Failed to register instance : ")                    \
	X(meta, GetInstanceInfo, getInstanceInfo, get_instance_info_request,                       \
	  get_instance_info_response, READ,                                                        \
	  KVCM_LEADER, NULL,                                                                       \
	  "", "Failed to get instance info : ")                                                    \
	X(meta, GetCacheLocation, getCacheLocation, get_cache_location_request,                    \
	  get_cache_location_response, READ,                                                       \
	  KVCM_LEADER | KVCM_INSTANCE | KVCM_FAULTS, kvcm_write_locations,                         \
	  "Cache locations retrieved successfully", "Failed to get cache locations : ")            \
	X(meta, GetCacheLocationLen, getCacheLocationLen, get_cache_location_len_request,          \
	  get_cache_location_len_response, READ,                                                   \
	  KVCM_LEADER | KVCM_INSTANCE | KVCM_FAULTS, NULL,                                         \
	  "Cache location length retrieved successfully",                                          \
	  "Failed to get cache location length : ")                                                \
	X(meta, GetCacheLocationsByBackend, getCacheLocationsByBackend,                            \
	  get_cache_locations_by_backend_request, get_cache_locations_by_backend_response, READ,   \
	  KVCM_LEADER | KVCM_INSTANCE, kvcm_write_by_backend,                                      \
	  "Cache locations retrieved successfully", "Failed to get cache locations : ")            \
	X(meta, GetCacheMeta, getCacheMeta, get_cache_meta_request, get_cache_meta_response, READ, \
	  KVCM_LEADER | KVCM_INSTANCE, kvcm_write_cache_meta,                                      \
	  "Cache metadata retrieved successfully", "Failed to get cache metadata : ")              \
	X(meta, GetCacheMetaDetail, getCacheMetaDetail, get_cache_meta_detail_request,             \
	  get_cache_meta_detail_response, READ,                                                    \
	  KVCM_LEADER | KVCM_INSTANCE, kvcm_write_cache_meta_detail,                               \
	  "Cache metadata detail retrieved successfully",                                          \
	  "Failed to get cache metadata detail : ")                                                \
	X(meta, StartWriteCache, startWriteCache, start_write_cache_request,                       \
	  start_write_cache_response, WRITE,                                                       \
	  KVCM_LEADER | KVCM_INSTANCE | KVCM_FAULTS, kvcm_write_start,                             \
	  "Write cache session started successfully", "Failed to start write cache : ")            \
	X(meta, StartEvictWriteCache, startEvictWriteCache, start_write_cache_request,             \
	  start_write_cache_response, WRITE,                                                       \
	  KVCM_LEADER | KVCM_INSTANCE | KVCM_FAULTS, kvcm_write_start,                             \
	  "Write cache session started successfully", "Failed to start write cache : ")            \
	X(meta, FinishWriteCache, finishWriteCache, finish_write_cache_request, common_response,   \
	  WRITE,                                                                                   \
	  KVCM_LEADER | KVCM_INSTANCE | KVCM_FAULTS, kvcm_write_finish,                            \
	  "Write cache session finished successfully", "Failed to finish write cache : ")          \
	X(meta, RemoveCache, removeCache, remove_cache_request, common_response, WRITE,            \
	  KVCM_LEADER | KVCM_INSTANCE, NULL,                                                       \
	  "Cache removed successfully", "Failed to remove cache : ")                               \
	X(meta, TrimCache, trimCache, trim_cache_request, common_response, WRITE,                  \
	  KVCM_LEADER | KVCM_INSTANCE, NULL,                                                       \
	  "Cache trimmed successfully", "Failed to trim cache : ")                                 \
	X(meta, GetClusterInfo, getClusterInfo, get_cluster_info_request,                          \
	  get_cluster_info_response, READ,                                                         \
	  KVCM_WORKER, NULL,                                                                       \
	  "Cluster info retrieved successfully", "Failed to get cluster info : ")                  \
	X(meta, ReplicateCache, replicateCache, replicate_cache_request, replicate_cache_response, \
	  WRITE,                                                                                   \
	  KVCM_LEADER, NULL,                                                                       \
	  NULL, "Failed to replicate cache : ")                                                    \
	X(meta, ReportEvent, reportEvent, report_event_request, report_event_response, WRITE,      \
	  KVCM_LEADER, NULL,                                                                       \
	  NULL, NULL)                                                                              \
	X(meta, GetHostCacheState, getHostCacheState, get_host_cache_state_request,                \
	  get_host_cache_state_response, READ,                                                     \
	  KVCM_LEADER, NULL,                                                                       \
	  NULL, NULL)

#define KVCM_ADMIN_OPS(X)                                                                          \
	X(admin, AddStorage, addStorage, add_storage_request, common_response, ADMIN,              \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Storage added successfully", NULL)                     \
	X(admin, UpdateStorage, updateStorage, update_storage_request, common_response, ADMIN,     \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Storage updated successfully", NULL)                   \
	X(admin, EnableStorage, enableStorage, enable_storage_request, common_response, ADMIN,     \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Storage enabled successfully", NULL)                   \
	X(admin, DisableStorage, disableStorage, disable_storage_request, common_response, ADMIN,  \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Storage disabled successfully", NULL)                  \
	X(admin, RemoveStorage, removeStorage, remove_storage_request, common_response, ADMIN,     \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Storage removed successfully", NULL)                   \
	X(admin, ListStorage, listStorage, list_storage_request, list_storage_response, ADMIN,     \
	  KVCM_LEADER, NULL, "Storages listed successfully", NULL)                                 \
	X(admin, CreateInstanceGroup, createInstanceGroup, create_instance_group_request,          \
	  common_response, ADMIN,                                                                  \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Instance group created successfully", NULL)            \
	X(admin, UpdateInstanceGroup, updateInstanceGroup, update_instance_group_request,          \
	  common_response, ADMIN,                                                                  \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Instance group updated successfully", NULL)            \
	X(admin, RemoveInstanceGroup, removeInstanceGroup, remove_instance_group_request,          \
	  common_response, ADMIN,                                                                  \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Instance group removed successfully", NULL)            \
	X(admin, GetInstanceGroup, getInstanceGroup, get_instance_group_request,                   \
	  get_instance_group_response, ADMIN,                                                      \
	  KVCM_LEADER, NULL, "Instance group retrieved successfully", NULL)                        \
	X(admin, ListInstanceGroup, listInstanceGroup, list_instance_group_request,                \
	  list_instance_group_response, ADMIN,                                                     \
	  KVCM_LEADER, NULL, "Instance groups listed successfully", NULL)                          \
	X(admin, GetCacheMeta, getCacheMeta, get_cache_meta_request, get_cache_meta_response,      \
	  ADMIN,                                                                                   \
	  KVCM_TENANT | KVCM_LEADER | KVCM_INSTANCE, kvcm_write_cache_meta,                        \
	  "Cache metadata retrieved successfully",                                                 \
	  "Failed to get cache metadata : ")                                                       \
	X(admin, RemoveCache, removeCache, remove_cache_request, common_response, ADMIN,           \
	  KVCM_TENANT | KVCM_LEADER | KVCM_INSTANCE, NULL, "Cache removed successfully",           \
	  "Failed to remove cache : ")                                                             \
	X(admin, MigrateCache, migrateCache, migrate_cache_request, migrate_cache_response, ADMIN, \
	  KVCM_TENANT | KVCM_LEADER, NULL, NULL, "Failed to migrate cache : ")                     \
	X(admin, ListAsyncCopyQuarantine, listAsyncCopyQuarantine,                                 \
	  list_async_copy_quarantine_request,                                                      \
	  list_async_copy_quarantine_response, ADMIN,                                              \
	  KVCM_LEADER, NULL, NULL, NULL)                                                           \
	X(admin, BreakGlassReleaseAsyncCopy, breakGlassReleaseAsyncCopy,                           \
	  break_glass_release_async_copy_request,                                                  \
	  common_response, ADMIN,                                                                  \
	  KVCM_LEADER, NULL, NULL, NULL)                                                           \
	X(admin, RegisterInstance, registerInstance, register_instance_request, common_response,   \
	  ADMIN,                                                                                   \
	  KVCM_TENANT | KVCM_LEADER | KVCM_FAULTS | KVCM_WORKER, NULL,                             \
	  "Instance registered successfully",                                                      \
	  "Failed to register instance : ")                                                        \
	X(admin, RemoveInstance, removeInstance, remove_instance_request, common_response, ADMIN,  \
	  KVCM_TENANT | KVCM_LEADER | KVCM_WORKER, NULL, "Instance removed successfully", NULL)    \
	X(admin, GetInstanceInfo, getInstanceInfo, get_instance_info_request,                      \
	  get_instance_info_response, ADMIN,                                                       \
	  KVCM_TENANT | KVCM_LEADER, NULL, "", NULL)                                               \
	X(admin, ListInstanceInfo, listInstanceInfo, list_instance_info_request,                   \
	  list_instance_info_response, ADMIN,                                                      \
	  KVCM_TENANT | KVCM_LEADER, NULL, "Instances listed successfully", NULL)                  \
	X(admin, AddAccount, addAccount, add_account_request, common_response, ADMIN,              \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Account added successfully", NULL)                     \
	X(admin, DeleteAccount, deleteAccount, delete_account_request, common_response, ADMIN,     \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Account deleted successfully", NULL)                   \
	X(admin, ListAccount, listAccount, list_account_request, list_account_response, ADMIN,     \
	  KVCM_LEADER | KVCM_WORKER, NULL, "Accounts listed successfully", NULL)                   \
	X(admin, GenConfigSnapshot, genConfigSnapshot, gen_config_snapshot_request,                \
	  config_snap_shot_response, ADMIN,                                                        \
	  KVCM_LEADER, NULL, NULL, NULL)                                                           \
	X(admin, LoadConfigSnapshot, loadConfigSnapshot, load_config_snapshot_request,             \
	  common_response, ADMIN,                                                                  \
	  KVCM_LEADER, NULL, NULL, NULL)                                                           \
	X(admin, GetMetrics, getMetrics, get_metrics_request, get_metrics_response, ADMIN,         \
	  0, NULL, "Metrics retrieved successfully", NULL)                                         \
	X(admin, CheckHealth, checkHealth, check_health_request, check_health_response, ADMIN,     \
	  KVCM_TENANT, NULL, "Health checked successfully", NULL)                                  \
	X(admin, GetManagerClusterInfo, getManagerClusterInfo, get_manager_cluster_info_request,   \
	  get_manager_cluster_info_response, ADMIN,                                                \
	  KVCM_WORKER, NULL, "Cluster info retrieved successfully", NULL)                          \
	X(admin, LeaderDemote, leaderDemote, leader_demote_request, common_response, ADMIN,        \
	  KVCM_WORKER, NULL, "Leader demoted successfully", NULL)                                  \
	X(admin, GetLeaderElectorConfig, getLeaderElectorConfig,                                   \
	  get_leader_elector_config_request,                                                       \
	  get_leader_elector_config_response, ADMIN,                                               \
	  0, NULL, "Leader elector config retrieved successfully", NULL)                           \
	X(admin, UpdateLeaderElectorConfig, updateLeaderElectorConfig,                             \
	  update_leader_elector_config_request,                                                    \
	  common_response, ADMIN,                                                                  \
	  0, NULL, "Leader elector config updated successfully", NULL)                             \
	X(admin, UpdateLogger, updateLogger, update_logger_request, common_response, ADMIN,        \
	  0, NULL, "Logger updated successfully", NULL)                                            \
	X(admin, SetAdminAuthTokens, setAdminAuthTokens, set_admin_auth_tokens_request,            \
	  common_response, ADMIN,                                                                  \
	  0, NULL, "Admin auth tokens set successfully", NULL)                                     \
	X(admin, RotateAdminAuthToken, rotateAdminAuthToken, rotate_admin_auth_token_request,      \
	  common_response, ADMIN,                                                                  \
	  0, NULL, "Admin auth token rotated successfully", NULL)                                  \
	X(admin, ListAdminAuthTokens, listAdminAuthTokens, list_admin_auth_tokens_request,         \
	  list_admin_auth_tokens_response, ADMIN,                                                  \
	  0, NULL, "Admin auth tokens listed successfully", NULL)

#define KVCM_DEBUG_OPS(X)                                                                \
	X(debug, InjectFault, injectFault, inject_fault_request, common_response, ADMIN, \
	  0, NULL, "Fault injected successfully", NULL)                                  \
	X(debug, RemoveFault, removeFault, remove_fault_request, common_response, ADMIN, \
	  0, NULL, "Fault removed successfully", NULL)                                   \
	X(debug, ClearFaults, clearFaults, clear_faults_request, common_response, ADMIN, \
	  0, NULL, "Faults cleared successfully", NULL)

#define KVCM_OPS(X) KVCM_META_OPS(X) KVCM_ADMIN_OPS(X) KVCM_DEBUG_OPS(X)

/* Pages requested with GET: name, path, role, flags of routes (skv/api.h). kvcm_page_<name>_run and
 * _write, both over struct skv_request. */
#define KVCM_PAGES(X)                              \
	X(metrics, "/metrics", READ, ROUTE_SCRAPE) \
	X(healthy, "/api/healthy", OPEN, 0)

#endif
