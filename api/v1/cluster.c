/*
 * cluster.c - the messages of the managers of one store, as tables (table.h).
 *
 * Constant data, no state; any thread.
 */
#include "messages.h"

const char *const skv_state_texts[] = { "standby", "recovering", "ready", "stopped", NULL };

#define T struct skv_member_view
static const struct skv_field member_rows[] = {
	SKV_CHARS(T, id, 1, .doc = "Of its process."),
	SKV_TEXT(T, url, 2, .doc = "Where managers reach it."),
	SKV_BOOL(T, draining, 3, .flags = SKV_FIELD_SHORT, .doc = "It owns nothing, and will not."),
};
#undef T
static const struct skv_table member_table =
	SKV_TABLE("MemberView", struct skv_member_view, member_rows);

#define T struct skv_member_partition
static const struct skv_field member_partition_rows[] = {
	SKV_NUMBER(T, number, 1),
	SKV_TEXT(T, state, 2, .texts = skv_state_texts),
	SKV_CHARS(T, owner, 3, .doc = "Id of a member; empty: nobody, or not known yet."),
	SKV_BOOL(T, loaded, 4, .doc = "Owned by the manager that is asked, or followed."),
	SKV_NUMBER(T, record, 5, .doc = "Newest of the journal that is applied there."),
	SKV_NUMBER(T, behind, 6, .doc = "Records that are known, and not applied yet."),
	SKV_NUMBER(T, blocks, 7, .doc = "Of the owner; else 0, as groups."),
	SKV_NUMBER(T, groups, 8),
	SKV_NUMBER(T, epoch, 9, .doc = "Of the owner; else 0. Grows with each ownership: of two "
				       "answers the one with more is of later."),
	SKV_TEXT(T, url, 10, .flags = SKV_FIELD_SHORT,
		 .doc = "Where clients reach the owner, if it tells them."),
	SKV_TEXT(T, home, 11, .flags = SKV_FIELD_SHORT,
		 .doc = "Url of the member that it was moved to, and goes back to."),
};
#undef T
static const struct skv_table member_partition_table =
	SKV_TABLE("MemberPartition", struct skv_member_partition, member_partition_rows);

#define T struct skv_cluster_view
static const struct skv_field cluster_view_rows[] = {
	SKV_CHARS(T, id, 1, .doc = "Of the manager that is asked."),
	SKV_TEXT(T, version, 2),
	SKV_TEXT(T, state, 3, .texts = skv_state_texts),
	SKV_BOOL(T, draining, 4, .doc = "It owns nothing, and will not."),
	SKV_LIST(T, members, MESSAGES, 5, .of = &member_table, .most = UINT32_MAX,
		 .doc = "Those that are there now."),
	SKV_LIST(T, partitions, MESSAGES, 6, .of = &member_partition_table, .most = UINT32_MAX),
};
#undef T
static const struct skv_table cluster_view_table =
	SKV_TABLE("ClusterView", struct skv_cluster_view, cluster_view_rows);

#define T struct skv_drain_spec
static const struct skv_field drain_rows[] = {
	SKV_BOOL(T, draining, 1, .flags = SKV_FIELD_REQUIRED | SKV_FIELD_PRESENT),
};
#undef T
static const struct skv_table drain_table =
	SKV_TABLE("DrainSpec", struct skv_drain_spec, drain_rows, .strict = true);

#define T struct skv_home_spec
static const struct skv_field home_rows[] = {
	SKV_NUMBER(T, partition, 1, .flags = SKV_FIELD_REQUIRED),
	SKV_TEXT(T, member, 2, .flags = SKV_FIELD_REQUIRED,
		 .doc = "Url of one of members; empty: to none."),
};
#undef T
static const struct skv_table home_table =
	SKV_TABLE("HomeSpec", struct skv_home_spec, home_rows, .strict = true);

REQUEST(drain, skv_drain_spec)
REQUEST(home, skv_home_spec)

const struct skv_table *const skv_cluster_tables[] = {
	&member_table, &member_partition_table, &cluster_view_table, &drain_table, &home_table,
	NULL,
};
