/*
 * at.h - administration of one partition, wherever it is: at_NAME does in the partition `at` what
 * skv_cluster_NAME does there, here or, asked by the manager that leads, at its owner.
 *
 * They have the types of those functions. None of them blocks for others on a thread that may not
 * wait: what is not here then fails.
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
