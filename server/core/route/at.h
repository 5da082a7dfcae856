/*
 * at.h - administration of one partition, here or at another manager: at_NAME performs
 * skv_cluster_NAME in the partition `at`, here or, if called by the lead, at the partition's owner.
 *
 * The types are those of these functions. On a thread that must not wait none blocks on other
 * managers: a partition that is not here is an error then.
 */
#ifndef SKV_CORE_ROUTE_AT_H
#define SKV_CORE_ROUTE_AT_H

#include <skv/core.h>

__typeof__(skv_cluster_storage) at_storage;
__typeof__(skv_cluster_storage_list) at_storage_list;
__typeof__(skv_cluster_storage_put) at_storage_put;
__typeof__(skv_cluster_storage_delete) at_storage_delete;
__typeof__(skv_cluster_files) at_files;
__typeof__(skv_cluster_file_put) at_file_put;
__typeof__(skv_cluster_group) at_group;
__typeof__(skv_cluster_group_list) at_group_list;
__typeof__(skv_cluster_group_put) at_group_put;
__typeof__(skv_cluster_group_delete) at_group_delete;
__typeof__(skv_cluster_instance) at_instance;
__typeof__(skv_cluster_instance_list) at_instance_list;
__typeof__(skv_cluster_instance_put) at_instance_put;
__typeof__(skv_cluster_instance_delete) at_instance_delete;
__typeof__(skv_cluster_purge) at_purge;
__typeof__(skv_cluster_stats) at_stats;

#endif
