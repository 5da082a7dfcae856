/*
 * messages.c - the rare messages as tables (table.h): storages, groups, instances, files, lists,
 * numbers, and removal of blocks.
 *
 * Written by people, so defaults are kind (type "file", group "default") and sizes may be "64M".
 * These tables check what a message alone can show; the core checks against the registry. `name`
 * and `id` come from the path, never from the body of a PUT. A view has the object's own fields
 * plus its current state.
 *
 * Constant data, no state; any thread.
 */
#include "messages.h"

#include <stdio.h>

#include <skv/json_out.h>

/* ---- storages -------------------------------------------------------------------------------- */

/* Storages that have no directory of ours. */
static bool needs_no_root(const void *message)
{
	const struct skv_storage_spec *s = message;

	return strcmp(s->type, "null") == 0 || strcmp(s->type, "external") == 0 ||
	       s->n_fs_master > 0;
}

static const char *check_root(const void *message, char text[SKV_MESSAGE_MAX])
{
	const struct skv_storage_spec *s = message;

	if (!s->root[0] || s->root[0] == '/')
		return NULL;
	snprintf(text, SKV_MESSAGE_MAX, "must be an absolute directory, like /data/kv");
	return "root";
}

static const char *check_unit(const void *message, char text[SKV_MESSAGE_MAX])
{
	const struct skv_storage_spec *s = message;

	if (s->unit & (s->unit - 1)) {
		snprintf(text, SKV_MESSAGE_MAX, "must be a power of two");
		return "unit";
	}
	if (!s->unit || s->capacity % s->unit == 0)
		return NULL;
	snprintf(text, SKV_MESSAGE_MAX, "must be a multiple of the unit, %llu",
		 (unsigned long long)s->unit);
	return "capacity";
}

#define T struct skv_storage_spec
static const struct skv_field storage_rows[] = {
	SKV_NAME(T, type, 1, .text = "file", .flags = FIRST),
	SKV_TEXT(T, root, 2, .min = 1, .max = SKV_MAX_ROOT, .may_be_empty = needs_no_root,
		   .check = check_root,
		   .doc = "Absolute directory on the manager's host. Fixed once made; required but "
			  "for type null."),
	SKV_NUMBER(T, capacity, 3, .min = 1, .flags = SIZE | REQUIRED),
	SKV_NUMBER(T, file_size, 4, .flags = SIZE),
	SKV_NUMBER(T, unit, 5, .flags = SIZE, .check = check_unit),
	SKV_BOOL(T, enabled, 6, .otherwise = true, .flags = PRESENT,
		   .doc = "false: no new blocks go there; those there stay readable."),
	SKV_BOOL(T, draining, 16, .flags = SHORT,
		   .doc = "true: no new blocks go there, those there are evicted, and its slab "
			  "files go one by one; the storage can be deleted then. Not of "
			  "type external."),
	SKV_BOOL(T, move, 17, .flags = SHORT,
		   .doc = "With draining: no block is evicted, movers copy them to other storages "
			  "of their groups; what cannot be moved stays."),
	SKV_TEXT(T, client_root, 7, .max = SKV_MAX_ROOT, .flags = SHORT,
		   .doc = "root as the clients' hosts see it, for APIs that name whole paths; "
			  "absent: the same."),
	SKV_TEXT(T, client_mount, 8, .max = SKV_MAX_ROOT, .flags = SHORT,
		   .doc = "Mount point there, which client_root lies below."),
	SKV_TEXT(T, extra, 9, .max = SKV_MAX_EXTRA, .flags = SHORT,
		   .doc = "Opaque text of the API that made it."),
	SKV_NUMBER(T, high_percent, 20, .max = 100, .flags = OPTIONAL,
		   .doc = "Watermark of eviction in the background, of the capacity: it begins "
			  "above; 0 = none, 100 = no such eviction."),
	SKV_NUMBER(T, low_percent, 21, .max = 100, .flags = OPTIONAL,
		   .doc = "Where it ends: 1 to high_percent; 0 with a high_percent of 0 or 100."),
	SKV_NUMBER(T, chunk_size, 32, .flags = BYTES),
	SKV_BOOL(T, any_mount, 33, .flags = SHORT,
		   .doc = "Of type hf3fs: the directory may lie on a mount that is not 3FS; a "
			  "chunk_size is believed then."),
	SKV_LIST(T, fs_master, TEXTS, 34, .min = 1, .max = SKV_MAX_URL, .most = SKV_MAX_FS_MASTERS,
		 .flags = SHORT | FIRST,
		   .doc = "URLs of fs-masters that do the work in the directory, "
			  "http://host:port/DIR; absent: the manager does, in root. May change."),
};
#undef T
static const struct skv_table storage_table = SKV_TABLE(
	"StorageSpec", struct skv_storage_spec, storage_rows, .strict = true,
	.doc = "A named place for blocks. Everything but capacity, enabled and draining is fixed "
	       "once made. A capacity below what was made drains the slab files that are worth "
	       "least, until the others fit (refused for type external). type is file (the "
	       "default), hf3fs, null or external. chunk_size is of hf3fs, a power of two, 0 = "
	       "what the directory says; it is told as it was found. unit is the slab unit, a "
	       "power of two, 0 = at most a 1024th of the capacity, from 1 to 64 MiB (hf3fs: 64 "
	       "MiB); capacity is a multiple of it; file_size 0 = the "
	       "manager's default.");

#define T struct skv_storage_view
static const struct skv_field storage_view_rows[] = {
	SKV_ROW(T, spec.name, "name", NAME, 1, .flags = REQUIRED),
	SKV_PART(T, spec, 2, storage_table),
	SKV_ROW(T, uuid, "uuid", UUID, 3, .flags = REQUIRED),
	SKV_BOOL(T, healthy, 4, .flags = REQUIRED,
		   .doc = "Chosen for new blocks and read from."),
	SKV_TEXT(T, problem, 5, .max = 4096, .flags = MEND | REQUIRED,
		   .doc = "A sentence with the remedy, also where a healthy storage has less "
			  "room than its capacity; empty: none."),
	SKV_NUMBER(T, files, 6, .flags = REQUIRED,
		   .doc = "Slab files."),
	/* Earlier managers do not send this field, nor other fields that are not required. */
	SKV_NUMBER(T, draining_files, 16,
		   .doc = "Of them."),
	SKV_NUMBER(T, bad_files, 17,
		   .doc = "Of them: lost or damaged; their blocks are misses."),
	SKV_NUMBER(T, file_bytes, 7, .flags = REQUIRED),
	SKV_NUMBER(T, assigned_bytes, 8, .flags = REQUIRED),
	SKV_NUMBER(T, used_bytes, 9, .flags = REQUIRED),
	SKV_NUMBER(T, quarantined_bytes, 10, .flags = REQUIRED),
	SKV_NUMBER(T, free_bytes, 11, .flags = REQUIRED),
	SKV_NUMBER(T, available_bytes, 18,
		   .doc = "That slab files can have: the capacity, or less if the file system has "
			  "no more."),
	SKV_NUMBER(T, fs_free_bytes, 19,
		   .doc = "That the file system has for more slab files."),
	SKV_NUMBER(T, groups, 20, .flags = SHORT,
		   .doc = "That name it; left out when 0."),
};
#undef T
static const struct skv_table storage_view_table =
	SKV_TABLE("StorageView", struct skv_storage_view, storage_view_rows,
	.doc = "A storage as it is now.");

/* ---- slab files ------------------------------------------------------------------------------ */

static const char *const file_view_state_texts[] = { "used", "draining", "removing", "bad", NULL };
static const char *const file_view_why_texts[] = { "", "asked", "capacity", "storage", "lost",
							"missing", "damaged", "unreadable", NULL };
#define T struct skv_file_view
static const struct skv_field file_view_rows[] = {
	SKV_NUMBER(T, file, 1,
		   .doc = "Its number."),
	SKV_TEXT(T, state, 2, .texts = file_view_state_texts,
		   .doc = "removing: nothing is in it any more. bad: its bytes are not there; its "
			  "blocks are misses, and nothing is placed in it."),
	SKV_TEXT(T, why, 3, .texts = file_view_why_texts,
		   .doc = "Why it drains: somebody asked, the capacity has no room for it, its "
			  "storage drains, or it is given up (lost). Why it is bad: there is no "
			  "such file, neither of its superblocks is good or it was cut, or it "
			  "cannot be read."),
	SKV_TEXT(T, waits_for, 4,
		   .doc = "What the drain waits for, a few words; empty: nothing."),
	SKV_NUMBER(T, length, 5),
	SKV_NUMBER(T, assigned_bytes, 6),
	SKV_NUMBER(T, used_bytes, 7),
	SKV_NUMBER(T, quarantined_bytes, 8),
};
#undef T
static const struct skv_table file_view_table =
	SKV_TABLE("FileView", struct skv_file_view, file_view_rows, .doc = "One slab file.");

#define T struct skv_file_wish
static const struct skv_field file_wish_rows[] = {
	SKV_NUMBER(T, file, 1, .flags = REQUIRED,
		   .doc = "Its number."),
	SKV_BOOL(T, draining, 2, .flags = REQUIRED),
	SKV_BOOL(T, move, 4, .flags = SHORT,
		   .doc = "With draining: movers copy its blocks elsewhere, none is evicted."),
	SKV_BOOL(T, forget, 3, .flags = SHORT,
		   .doc = "A bad file is given up, with its blocks; conflict if it is whole."),
};
#undef T
static const struct skv_table file_wish_table =
	SKV_TABLE("FileWish", struct skv_file_wish, file_wish_rows, .strict = true);

/* ---- groups ---------------------------------------------------------------------------------- */

static bool needs_no_storage(const void *message)
{
	return ((const struct skv_group_spec *)message)->loose_storages;
}

#define T struct skv_type_quota
static const struct skv_field quota_rows[] = {
	SKV_NAME(T, type, 1, .flags = REQUIRED),
	SKV_NUMBER(T, capacity, 2, .flags = BYTES),
	SKV_NUMBER(T, reclaim, 3, .flags = BYTES),
};
#undef T
static const struct skv_table quota_table =
	SKV_TABLE("TypeQuota", struct skv_type_quota, quota_rows, .strict = true);

static const char *const shares[] = { "group", "proportional", "fixed", NULL };

static const char *const group_policy_texts[] = { "", "reuse", "deferred", "selective", "lru",
						      "s3fifo", "ttl", NULL };
#define T struct skv_group_spec
static const struct skv_field group_rows[] = {
	SKV_NUMBER(T, capacity, 1, .flags = SIZE),
	SKV_LIST(T, storages, NAMES, 2, .least = 1, .most = SKV_JMAX_OBJECT,
		 .may_be_empty = needs_no_storage,
		 .flags = REQUIRED | LAST,
		   .doc = "Candidates in order of preference; at least one, unless "
			  "loose_storages."),
	SKV_BOOL(T, loose_storages, 3, .flags = SHORT,
		   .doc = "Storages that do not exist are passed over until they do, and "
			  "may be deleted."),
	SKV_LIST(T, quotas, MESSAGES, 4, .of = &quota_table, .most = SKV_MAX_QUOTAS, .flags = SHORT,
		   .doc = "What the group may have on all storages of one type."),
	SKV_NUMBER(T, max_blocks, 5, .flags = OPTIONAL,
		   .doc = "A start that would make more is refused; 0 = no bound."),
	SKV_NUMBER(T, max_instances, 6, .flags = OPTIONAL,
		   .doc = "A registration that would make more is refused; 0 = no bound."),
	SKV_NUMBER(T, reclaim_bytes, 7, .flags = BYTES),
	SKV_NUMBER(T, reclaim_blocks, 8, .flags = OPTIONAL,
		   .doc = "Evict in the background while the group has more; 0 = no line."),
	SKV_NUMBER(T, reclaim_step_bytes, 9, .flags = BYTES),
	SKV_NUMBER(T, reclaim_step_percent, 10, .max = 100, .flags = OPTIONAL,
		   .doc = "Of what is used, evicted at a time; the larger of the two "
			  "steps counts."),
	SKV_NUMBER(T, reclaim_period_ms, 11, .flags = OPTIONAL,
		   .doc = "Between two steps."),
	SKV_NUMBER(T, max_idle_ms, 12, .flags = OPTIONAL,
		   .doc = "Blocks that nobody has looked up for so long are evicted; 0 = never. Of "
			  "policies reuse, deferred, selective, lru."),
	SKV_TEXT(T, policy, 15, .texts = group_policy_texts, .max = SKV_MAX_NAME, .flags = SHORT,
		   .doc = "Which blocks go first when room is needed; absent or empty = reuse."),
	SKV_NUMBER(T, ttl_ms, 16, .flags = OPTIONAL,
		   .doc = "Of policy ttl, which needs it, and of no other: blocks that were "
			  "written longer ago go."),
	SKV_NUMBER(T, version, 13, .flags = OPTIONAL,
		   .doc = "The caller's own number."),
	SKV_NUMBER(T, high_percent, 20, .max = 100, .flags = OPTIONAL,
		   .doc = "Watermark of eviction in the background, of the capacity: it begins "
			  "above; 0 = none, 100 = no such eviction."),
	SKV_NUMBER(T, low_percent, 21, .max = 100, .flags = OPTIONAL,
		   .doc = "Where it ends: 1 to high_percent; 0 with a high_percent of 0 or 100."),
	SKV_NUMBER(T, pin_percent, 22, .max = 100, .flags = OPTIONAL,
		   .doc = "Of its room that may be pinned hard, and of an instance's "
			  "part; 0 = 50."),
	SKV_WORD(T, share, 23, .words = shares, .flags = SHORT,
		   .doc = "What its instances may have of it."),
	SKV_TEXT(T, extra, 14, .max = SKV_MAX_EXTRA, .flags = SHORT,
		   .doc = "Opaque text of the API that made it."),
	SKV_TEXT(T, tier_of, 24, .max = SKV_MAX_NAME, .flags = SHORT,
		   .doc = "The group whose fast tier this one is: it has copies of its blocks. "
			  "Fixed when the group is made."),
	SKV_BOOL(T, write_through, 25, .flags = SHORT,
		   .doc = "Of a fast tier: writers are told to put copies there."),
	SKV_NUMBER(T, promote_after, 26, .max = SKV_MAX_PROMOTE, .flags = OPTIONAL,
		   .doc = "Of a fast tier: movers copy blocks that were used so often; 0 = never."),
	SKV_BOOL(T, replicate, 27, .flags = SHORT,
		   .doc = "Of a fast tier: movers copy every block, and give blocks whose "
			  "storage or slab file goes another place."),
};
#undef T
static const struct skv_table group_table =
	SKV_TABLE("GroupSpec", struct skv_group_spec, group_rows, .strict = true,
	.doc = "Quota and placement for several instances. capacity 0 = only the storages limit.");

#define T struct skv_group_view
static const struct skv_field group_view_rows[] = {
	SKV_ROW(T, spec.name, "name", NAME, 1, .flags = REQUIRED),
	SKV_PART(T, spec, 2, group_table),
	SKV_NUMBER(T, blocks, 3, .flags = REQUIRED),
	SKV_NUMBER(T, used_bytes, 4, .flags = REQUIRED),
	SKV_NUMBER(T, room_bytes, 5),
	SKV_NUMBER(T, pinned_bytes, 6),
	SKV_NUMBER(T, soft_pinned_bytes, 7),
	SKV_NUMBER(T, leased_bytes, 8),
	SKV_NUMBER(T, open_bytes, 9),
	SKV_NUMBER(T, evicted_blocks, 10),
	SKV_NUMBER(T, hits, 11),
	SKV_TEXT(T, fast, 12, .flags = SHORT, .doc = "Its fast tier."),
};
#undef T
static const struct skv_table group_view_table = SKV_TABLE(
	"GroupView", struct skv_group_view, group_view_rows, .doc = "A group as it is now.");

/* ---- instances ------------------------------------------------------------------------------- */

#define T struct skv_spec
static const struct skv_field spec_rows[] = {
	SKV_NAME(T, name, 1, .flags = REQUIRED),
	SKV_NUMBER(T, size, 2, .min = SKV_MIN_SPEC_SIZE, .max = SKV_MAX_SPEC_SIZE,
		   .flags = SIZE | REQUIRED),
};
#undef T
static const struct skv_table spec_table =
	SKV_TABLE("Spec", struct skv_spec, spec_rows, .strict = true,
		  .doc = "One part of a block: 1 byte to 4 GiB, exact.");

#define T struct skv_instance_spec
static const struct skv_field instance_rows[] = {
	SKV_TENANT(T),
	SKV_NAME(T, group, 1, .text = "default"),
	SKV_NUMBER(T, block_tokens, 2,
		   .doc = "Tokens per block, for people; 0 = not told."),
	SKV_LIST(T, specs, MESSAGES, 3, .of = &spec_table, .least = 1, .most = SKV_MAX_SPECS,
		 .flags = REQUIRED | UNIQUE),
	SKV_TEXT(T, extra, 4, .max = SKV_MAX_EXTRA,
		   .doc = "Opaque text kept with the instance."),
	SKV_BOOL(T, numbered, 5, .flags = SHORT,
		   .doc = "Slots lie at multiples of their own size. Fixed once registered."),
	SKV_BOOL(T, named, 6, .flags = SHORT,
		   .doc = "Blocks keep the names that some APIs give them. Fixed once registered."),
	SKV_NUMBER(T, weight, 7, .max = SKV_MAX_WEIGHT, .flags = OPTIONAL,
		   .doc = "Of its part of the group, in one that shares; 0 = 1. Role admin."),
	SKV_NUMBER(T, capacity, 8, .flags = BYTES),
};
#undef T
static const struct skv_table instance_table = SKV_TABLE(
	"InstanceSpec", struct skv_instance_spec, instance_rows, .strict = true,
	.doc = "One model deployment: the layout of its blocks. Everything but extra, weight and "
	       "capacity is fixed once made; without weight and capacity these two "
	       "stay as they are.");

static const char *const placement_fit_texts[] = { "whole", "rounded", "segments", "copied", NULL };
#define T struct skv_placement
static const struct skv_field placement_rows[] = {
	SKV_NAME(T, storage, 1, .flags = REQUIRED),
	SKV_NAME(T, spec, 2, .flags = REQUIRED),
	SKV_NAME(T, fit, 3, .texts = placement_fit_texts, .flags = REQUIRED),
	SKV_NUMBER(T, slot_bytes, 4, .flags = REQUIRED),
	SKV_NUMBER(T, wasted_bytes, 5, .flags = REQUIRED),
	SKV_NUMBER(T, copied_bytes, 6, .flags = REQUIRED),
};
#undef T
static const struct skv_table placement_table =
	SKV_TABLE("Placement", struct skv_placement, placement_rows,
		  .doc = "How slots for a spec lie on the chunks of a storage of the group.");

#define T struct skv_instance_view
static const struct skv_field instance_view_rows[] = {
	SKV_ROW(T, spec.id, "id", MODEL_NAME, 1, .flags = REQUIRED),
	SKV_ROW(T, spec.tenant, "tenant", MODEL_NAME, 2, .flags = REQUIRED),
	SKV_PART(T, spec, 3, instance_table),
	SKV_NUMBER(T, blocks, 4, .flags = REQUIRED),
	SKV_NUMBER(T, used_bytes, 5, .flags = REQUIRED),
	SKV_NUMBER(T, open_sessions, 6, .flags = REQUIRED),
	SKV_NUMBER(T, open_bytes, 7, .flags = REQUIRED),
	SKV_NUMBER(T, leased_bytes, 8, .flags = REQUIRED),
	SKV_NUMBER(T, share_bytes, 9),
	SKV_NUMBER(T, pinned_bytes, 10),
	SKV_NUMBER(T, soft_pinned_bytes, 11),
	SKV_NUMBER(T, evicted_blocks, 12),
	SKV_NUMBER(T, hits, 13),
	SKV_NUMBER(T, unused_ms, 14,
		   .doc = "How long no registration, lookup or start has named it."),
	SKV_NUMBER(T, layouts, 15, .flags = SHORT,
		   .doc = "Sizes of slots that the instances on its storage have together."),
	SKV_NUMBER(T, layouts_left, 16, .flags = SHORT,
		   .doc = "So many more of its own size find a slab there; left out when 0."),
	SKV_TEXT(T, warning, 17, .max = SKV_MESSAGE_MAX, .flags = SHORT,
		   .doc = "A sentence, where layouts may find no room."),
	SKV_LIST(T, placements, MESSAGES, 32, .of = &placement_table, .most = SKV_MAX_PLACEMENTS,
		   .flags = SHORT,
		   .doc = "Of each spec on each storage of the group that has chunks."),
};
#undef T
static const struct skv_table instance_view_table =
	SKV_TABLE("InstanceView", struct skv_instance_view, instance_view_rows,
	.doc = "An instance as it is now.");

/* ---- lists, and the manager's numbers -------------------------------------------------------- */

LIST("StorageList", storage, storages)
LIST("FileList", file, files)
LIST("GroupList", group, groups)
LIST("InstanceList", instance, instances)

#define T struct skv_stats
static const struct skv_field stats_rows[] = {
	SKV_CHARS(T, version, 1,
		   .doc = "Of the manager."),
	SKV_TEXT(T, state, 2, .texts = skv_state_texts),
	SKV_CHARS(T, owner, 3, .flags = MEND,
		   .doc = "Id of the owning manager."),
	SKV_NUMBER(T, uptime_ms, 4),
	SKV_NUMBER(T, blocks, 5),
	SKV_NUMBER(T, sessions, 6),
	SKV_NUMBER(T, journal_bytes, 7),
	SKV_NUMBER(T, journal_limit, 8),
	SKV_NUMBER(T, evicted_blocks, 9),
	SKV_NUMBER(T, expired_sessions, 10),
	SKV_LIST(T, storages, MESSAGES, 11, .of = &storage_view_table, .most = UINT32_MAX),
	SKV_LIST(T, groups, MESSAGES, 12, .of = &group_view_table, .most = UINT32_MAX),
	SKV_LIST(T, instances, MESSAGES, 13, .of = &instance_view_table, .most = UINT32_MAX),
	SKV_ROW(T, all_storages, "storage_count", NUMBER, 14,
		.doc = "In all; the list has the first."),
	SKV_ROW(T, all_groups, "group_count", NUMBER, 15),
	SKV_ROW(T, all_instances, "instance_count", NUMBER, 16),
};
#undef T
static const struct skv_table stats_table =
	SKV_TABLE("Stats", struct skv_stats, stats_rows, .long_answer = true);

#define T struct skv_purge_req
static const struct skv_field purge_rows[] = {
	SKV_LIST(T, instances, NAMES, 1, .most = SKV_JMAX_OBJECT, .flags = SHORT),
	SKV_TEXT(T, prefix, 2, .max = SKV_MAX_NAME, .flags = SHORT,
		 .doc = "Of names of instances."),
	SKV_TEXT(T, group, 3, .max = SKV_MAX_NAME, .flags = SHORT,
		 .doc = "All its instances; for administrators of tenant default, of all tenants."),
	SKV_ROW(T, whose, "tenant", TEXT, 4, .max = SKV_MAX_NAME, .flags = SHORT,
		.doc = "All its instances; another one than the caller's only for administrators "
		       "of tenant default."),
};
#undef T
static const struct skv_table purge_req_table =
	SKV_TABLE("PurgeRequest", struct skv_purge_req, purge_rows, .strict = true,
	.doc = "Exactly one of the four.");

#define T struct skv_purge_res
static const struct skv_field purge_res_rows[] = {
	SKV_LIST(T, instances, TEXTS, 1, .most = UINT32_MAX, .doc = "Names of those meant."),
	SKV_NUMBER(T, blocks, 2, .flags = REQUIRED, .doc = "That they had."),
	SKV_NUMBER(T, sessions, 3, .flags = REQUIRED,
		   .doc = "That were open: their blocks are not published."),
};
#undef T
static const struct skv_table purge_res_table =
	SKV_TABLE("PurgeResult", struct skv_purge_res, purge_res_rows, .long_answer = true);

/* ---- removal of sessions, blocks and pins ---------------------------------------------------- */

#define T struct skv_abort_req
static const struct skv_field abort_rows[] = { SKV_TENANT(T), SKV_BOOL(T, quiesced, 1,
		   .doc = "All writes of the session have completed: its slots need no grace.") };
#undef T
/* `curl -X POST` without a body is the plain abort. */
static const struct skv_table abort_req_table = SKV_TABLE(
	"AbortRequest", struct skv_abort_req, abort_rows, .no_body = true, .strict = true);

#define T struct skv_delete_req
static const struct skv_field delete_rows[] = { SKV_TENANT(T), SKV_KEYS(T) };
#undef T
static const struct skv_table delete_req_table =
	SKV_TABLE("DeleteRequest", struct skv_delete_req, delete_rows, .strict = true,
	.doc = "Exactly one of keys, keys_int and keys_hex; no key twice.");

#define T struct skv_delete_res
static const struct skv_field delete_res_rows[] = {
	SKV_NUMBER(T, deleted, 1, .flags = REQUIRED,
		   .doc = "Blocks that were there."),
	SKV_NUMBER(T, pinned, 2, .flags = SHORT,
		   .doc = "Of these: had a pin, which is gone, too; left out when 0."),
	SKV_NUMBER(T, writing, 3, .flags = SHORT,
		   .doc = "Blocks of open sessions, not published when these finish; left out "
			  "when 0."),
};
#undef T
static const struct skv_table delete_res_table =
	SKV_TABLE("DeleteResult", struct skv_delete_res, delete_res_rows);

#define T struct skv_trim_req
static const struct skv_field trim_rows[] = {
	SKV_TENANT(T),
	SKV_NUMBER(T, from_ms, 1, .max = SKV_MAX_WALL_MS,
		   .doc = "Since 1970, inclusive."),
	SKV_NUMBER(T, to_ms, 2, .max = SKV_MAX_WALL_MS, .flags = REQUIRED | PRESENT,
		   .doc = "Since 1970, inclusive; the largest number means all."),
};
#undef T
static const struct skv_table trim_req_table =
	SKV_TABLE("TrimRequest", struct skv_trim_req, trim_rows, .strict = true);

#define T struct skv_trim_res
static const struct skv_field trim_res_rows[] = {
	SKV_NUMBER(T, deleted, 1, .max = SKV_MAX_WALL_MS, .flags = REQUIRED,
		   .doc = "Blocks that were there."),
	SKV_NUMBER(T, writing, 2, .max = SKV_MAX_WALL_MS, .flags = SHORT,
		   .doc = "Blocks of open sessions, not published when these finish; left out "
			  "when 0."),
};
#undef T
static const struct skv_table trim_res_table =
	SKV_TABLE("TrimResult", struct skv_trim_res, trim_res_rows);

/* ---- pins ------------------------------------------------------------------------------------ */

static const char *const pin_kinds[] = { "soft", "hard", NULL };
#define T struct skv_pin_req
static const struct skv_field pin_rows[] = {
	SKV_TENANT(T),
	SKV_ROW(T, hard, "kind", WORD, 4, .words = pin_kinds, .otherwise = true, .flags = NOT,
		.doc = "hard: not evicted; soft: evicted when nothing else may be."),
	SKV_NUMBER(T, ttl_ms, 5, .max = SKV_MAX_PIN_MS,
		.doc = "The pin ends by itself after so long; 0 = when it is "
		       "unpinned (hard only)."),
	SKV_KEYS(T),
};
#undef T
static const struct skv_table pin_req_table =
	SKV_TABLE("PinRequest", struct skv_pin_req, pin_rows, .strict = true,
	.doc = "Exactly one of keys, keys_int and keys_hex; no key twice.");

#define T struct skv_pin_res
static const struct skv_field pin_res_rows[] = {
	SKV_NUMBER(T, n_keys, 1, .max = SKV_MAX_KEYS, .flags = REQUIRED,
		.doc = "Of the request."),
	SKV_NUMBER(T, pinned, 2, .max = SKV_MAX_KEYS, .flags = REQUIRED,
		.doc = "Keys that are there: pinned now."),
	SKV_ROW(T, missing, "missing", MARKS, 3, .count_at = offsetof(T, n_keys),
		.most = SKV_MAX_KEYS,
		.flags = REQUIRED, .doc = "Keys that are not there: not pinned."),
};
#undef T
static const struct skv_table pin_res_table =
	SKV_TABLE("PinResult", struct skv_pin_res, pin_res_rows);

#define T struct skv_unpin_req
static const struct skv_field unpin_rows[] = {
	SKV_TENANT(T),
	SKV_ROW(T, all, "all", ALL, 4, .flags = FIRST | SHORT,
		.doc = "All pins of the instance."),
	SKV_KEYS(T),
};
#undef T
static const struct skv_table unpin_req_table =
	SKV_TABLE("UnpinRequest", struct skv_unpin_req, unpin_rows, .strict = true,
	.doc = "Exactly one of keys, keys_int, keys_hex and all.");

#define T struct skv_unpin_res
static const struct skv_field unpin_res_rows[] = { SKV_NUMBER(T, unpinned, 1, .flags = REQUIRED,
		   .doc = "Blocks that were pinned.") };
#undef T
static const struct skv_table unpin_res_table =
	SKV_TABLE("UnpinResult", struct skv_unpin_res, unpin_res_rows);

#define T struct skv_keys_res
static const struct skv_field keys_res_rows[] = {
	SKV_ROW(T, key, "keys_hex", KEY_LIST, 1, .count_at = offsetof(T, n), .most = SKV_MAX_KEYS,
		.flags = REQUIRED),
	SKV_NUMBER(T, next, 2, .flags = REQUIRED,
		.doc = "Cursor of the next portion; 0: that was all."),
};
#undef T
static const struct skv_table keys_res_table =
	SKV_TABLE("KeyList", struct skv_keys_res, keys_res_rows);

/* ---- errors, in protobuf; JSON has another shape (error.c) ----------------------------------- */

struct error {
	const char *code, *message, *field, *request_id;
};
static const struct skv_field error_rows[] = {
	SKV_TEXT(struct error, code, 1),
	SKV_TEXT(struct error, message, 2),
	SKV_TEXT(struct error, field, 3),
	SKV_TEXT(struct error, request_id, 4),
};
static const struct skv_table error_table = SKV_TABLE("Error", struct error, error_rows);

void skv_pb_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id)
{
	const struct error e = { .code = skv_status_name(err->status), .field = err->field,
				 .request_id = request_id,
				 .message = err->message[0] ? err->message
					 : skv_status_text(err->status) };

	skv_table_write_pb(&error_table, out, &e, NULL);
}

int skv_pb_read_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_error *out)
{
	struct error e = { .code = "" };
	int status = skv_table_read_pb(&error_table, in, text, n, &e, NULL);

	if (!*e.code)
		return skv_fail(out, status == SKV_E_NOMEM ? status : SKV_E_NETWORK, NULL,
				SKV_NOT_AN_ERROR);
	status = skv_status_from_name(e.code);
	/* An error whose code says "ok" is a bug of the sender, never a success. */
	return skv_fail(out, status == SKV_OK ? SKV_E_INTERNAL : status, e.field, "%s", e.message);
}

/* ---- the functions of skv/v1_json.h and skv/v1_pb.h ------------------------------------------ */

REQUEST(storage, skv_storage_spec)
REQUEST(group, skv_group_spec)
REQUEST(instance, skv_instance_spec)
ANSWER(storage_view, skv_storage_view)
ANSWER(group_view, skv_group_view)
ANSWER(instance_view, skv_instance_view)
REQUEST(file_wish, skv_file_wish)
REQUEST(abort_req, skv_abort_req)
ANSWER(keys_res, skv_keys_res)
REQUEST(purge_req, skv_purge_req)
ANSWER(purge_res, skv_purge_res)
SKV_V1_CALL(delete)
SKV_V1_CALL(trim)
SKV_V1_CALL(pin)
SKV_V1_CALL(unpin)

void skv_v1_write_named(const char *schema, struct skv_buf *out, const void *message)
{
	skv_table_write_json(skv_table_named(schema), out, message);
}

void skv_pb_write_named(const char *schema, struct skv_buf *out, const void *message)
{
	skv_table_write_pb(skv_table_named(schema), out, message, NULL);
}

int skv_pb_read_named(const char *schema, const struct skv_v1_in *in, const char *text, size_t n,
		      void *out, struct skv_error *err)
{
	return skv_table_read_pb(skv_table_named(schema), in, text, n, out, err);
}

/* ---- documents of the store ------------------------------------------------------------------ */

DOCUMENT(storage, skv_storage_spec)
DOCUMENT(group, skv_group_spec)
DOCUMENT(instance, skv_instance_spec)

/* ---- the OpenAPI document -------------------------------------------------------------------- */

static const struct skv_table *const tables[] = {
	&storage_table, &storage_view_table, &storage_list_table, &file_view_table,
	&file_list_table,
	&file_wish_table,
	&group_table, &quota_table, &group_view_table, &group_list_table,
	&spec_table,
	&instance_table, &instance_view_table, &instance_list_table, &placement_table,
	&stats_table, &purge_req_table, &purge_res_table,
	&abort_req_table, &delete_req_table, &delete_res_table, &trim_req_table, &trim_res_table,
	&pin_req_table, &pin_res_table, &unpin_req_table, &unpin_res_table, &keys_res_table,
};

static const struct skv_table *const *const others[] = {
	skv_cluster_tables, skv_access_tables, skv_move_tables,
};

void skv_table_write_schemas(struct skv_buf *out)
{
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		skv_table_write_schema(tables[i], out);
	for (size_t f = 0; f < sizeof others / sizeof others[0]; f++)
		for (size_t i = 0; others[f][i]; i++)
			skv_table_write_schema(others[f][i], out);
}

const struct skv_table *skv_table_named(const char *name)
{
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		if (strcmp(tables[i]->name, name) == 0)
			return tables[i];
	for (size_t f = 0; f < sizeof others / sizeof others[0]; f++)
		for (size_t i = 0; others[f][i]; i++)
			if (strcmp(others[f][i]->name, name) == 0)
				return others[f][i];
	return NULL;
}
