/*
 * moves.c - the messages of moves, checks and reports of damage, as tables (table.h).
 *
 * Constant data, no state; any thread.
 */
#include "messages.h"

#define T struct skv_move_take_req
static const struct skv_field move_take_rows[] = {
	SKV_NUMBER(T, max, 1, .max = SKV_MAX_MOVE_SLOTS, .flags = OPTIONAL,
		   .doc = "Slots at most; 0 or absent: 128."),
	SKV_NUMBER(T, deadline_ms, 2, .max = SKV_MAX_SESSION_MS, .flags = OPTIONAL,
		   .doc = "How long its mover may write; 0 or absent: as long as a session by "
			  "default."),
	SKV_BOOL(T, check, 3, .flags = SHORT,
		 .doc = "A scrub: blocks to read and verify, the longest unchecked first."),
	SKV_NUMBER(T, check_before_ms, 4, .max = SKV_MAX_WALL_MS, .flags = OPTIONAL,
		   .doc = "With check: only of slab files whose last check began before this "
			  "time, ms since 1970; 0 or absent: all."),
};
#undef T
static const struct skv_table move_take_table =
	SKV_TABLE("MoveWish", struct skv_move_take_req, move_take_rows, .strict = true,
		  .no_body = true);

#define T struct skv_move_file
static const struct skv_field move_file_rows[] = {
	SKV_NAME(T, storage, 1, .flags = REQUIRED),
	SKV_TEXT(T, type, 2, .flags = REQUIRED),
	SKV_TEXT(T, uuid, 3, .max = 36, .flags = REQUIRED,
		 .doc = "Of the storage; its superblock has it."),
	SKV_TEXT(T, path, 4, .max = 63, .flags = REQUIRED,
		 .doc = "Relative to the storage's root."),
};
#undef T
static const struct skv_table move_file_table =
	SKV_TABLE("MoveFile", struct skv_move_file, move_file_rows);

#define T struct skv_move_slot
static const struct skv_field move_slot_rows[] = {
	SKV_NUMBER(T, from_file, 1, .flags = REQUIRED,
		   .doc = "Index into files."),
	SKV_NUMBER(T, from_offset, 2, .flags = REQUIRED),
	SKV_NUMBER(T, to_file, 3, .flags = REQUIRED),
	SKV_NUMBER(T, to_offset, 4, .flags = REQUIRED),
	SKV_NUMBER(T, length, 5, .flags = REQUIRED,
		   .doc = "0: its block is gone, there is nothing to copy."),
	SKV_NUMBER(T, generation, 6, .flags = REQUIRED,
		   .doc = "Of the bytes; a move does not change it."),
	SKV_TEXT(T, checksum, 7, .max = 16, .flags = REQUIRED,
		 .doc = "XXH3-64 of the bytes, 16 hex digits: what was read must have it."),
};
#undef T
static const struct skv_table move_slot_table =
	SKV_TABLE("MoveSlot", struct skv_move_slot, move_slot_rows);

#define T struct skv_move_view
static const struct skv_field move_view_rows[] = {
	SKV_TEXT(T, move, 1, .max = SKV_SESSION_ID_HEX, .flags = REQUIRED,
		 .doc = "Its id; empty: there is nothing to move now."),
	SKV_NUMBER(T, deadline_ms, 2, .flags = REQUIRED,
		   .doc = "Left: nothing may be written afterwards."),
	SKV_LIST(T, files, MESSAGES, 3, .of = &move_file_table, .most = 2 * SKV_MAX_MOVE_SLOTS),
	SKV_LIST(T, slots, MESSAGES, 4, .of = &move_slot_table, .most = SKV_MAX_MOVE_SLOTS),
	SKV_BOOL(T, checks, 5, .flags = SHORT,
		 .doc = "The slots are to be read and verified, nothing is to be written."),
	SKV_ROW(T, scrub.now_ms, "now_ms", NUMBER, 6, .flags = OPTIONAL,
		.doc = "The manager's clock, ms since 1970; with check only, as the next two."),
	SKV_ROW(T, scrub.left_bytes, "left_bytes", NUMBER, 7, .flags = OPTIONAL,
		.doc = "Used bytes of the slab files that are due."),
	SKV_ROW(T, scrub.more, "more", BOOL, 8, .flags = SHORT,
		.doc = "Some are due: ask again, even if there are no slots now."),
};
#undef T
static const struct skv_table move_view_table =
	SKV_TABLE("Move", struct skv_move_view, move_view_rows,
		  .doc = "Blocks to copy, and where to.");

#define T struct skv_move_finish_req
static const struct skv_field move_finish_rows[] = {
	SKV_ROW(T, n_moved, "slots", NUMBER, 1, .max = SKV_MAX_MOVE_SLOTS,
		.flags = REQUIRED | FIRST, .doc = "How many the move has."),
	SKV_ROW(T, moved, "moved", MARKS, 2, .count_at = offsetof(T, n_moved),
		.most = SKV_MAX_MOVE_SLOTS, .flags = REQUIRED,
		.doc = "Numbers of those that were copied: read whole, with the right checksum, "
		       "and durable where they were written."),
	SKV_BOOL(T, quiesced, 3, .flags = SHORT,
		 .doc = "No write is in flight any more: the others' targets are free at once."),
	SKV_ROW(T, damaged, "damaged", MARKS, 4, .count_at = offsetof(T, n_moved),
		.most = SKV_MAX_MOVE_SLOTS, .flags = SHORT,
		.doc = "Numbers of those that were read whole and had a wrong checksum."),
};
#undef T
static const struct skv_table move_finish_req_table =
	SKV_TABLE("MoveFinish", struct skv_move_finish_req, move_finish_rows, .strict = true);

#define T struct skv_move_finish_res
static const struct skv_field move_result_rows[] = {
	SKV_NUMBER(T, moved, 1, .flags = REQUIRED,
		   .doc = "Slots whose blocks lie there now."),
	SKV_NUMBER(T, failed, 2, .flags = REQUIRED,
		   .doc = "The others: not copied, or their blocks went meanwhile."),
	SKV_NUMBER(T, hidden, 3, .flags = SHORT,
		   .doc = "Of these: damaged, and hidden now; left out when 0."),
};
#undef T
static const struct skv_table move_finish_res_table =
	SKV_TABLE("MoveResult", struct skv_move_finish_res, move_result_rows);

/* ---- damage ---------------------------------------------------------------------------------- */

#define T struct skv_damage
static const struct skv_field damage_rows[] = {
	SKV_NUMBER(T, key, 1, .max = SKV_MAX_KEYS - 1, .flags = REQUIRED,
		   .doc = "Index of its key."),
	SKV_TEXT(T, spec, 2, .max = SKV_MAX_NAME,
		 .doc = "Absent: the instance's only one."),
	SKV_NUMBER(T, generation, 3, .flags = REQUIRED | SIZE,
		   .doc = "Of the location that was read."),
};
#undef T
static const struct skv_table damage_table =
	SKV_TABLE("Damage", struct skv_damage, damage_rows, .strict = true);

#define T struct skv_report_req
static const struct skv_field report_rows[] = {
	SKV_TENANT(T),
	SKV_KEYS(T),
	SKV_LIST(T, damaged, MESSAGES, 4, .of = &damage_table, .least = 1,
		 .most = SKV_MAX_DAMAGED, .flags = REQUIRED),
};
#undef T
static const struct skv_table report_req_table =
	SKV_TABLE("ReportRequest", struct skv_report_req, report_rows, .strict = true,
	.doc = "Exactly one of keys, keys_int and keys_hex; no key twice.");

#define T struct skv_report_res
static const struct skv_field report_res_rows[] = {
	SKV_NUMBER(T, hidden, 1, .flags = REQUIRED,
		   .doc = "Misses from now on, or read from their copies."),
	SKV_NUMBER(T, queued, 2, .flags = REQUIRED, .doc = "A mover will check them."),
	SKV_NUMBER(T, stale, 3, .flags = REQUIRED,
		   .doc = "No committed slot has that generation: nothing was done."),
	SKV_NUMBER(T, refused, 4, .flags = SHORT,
		   .doc = "Too many wait for a check; left out when 0."),
};
#undef T
static const struct skv_table report_res_table =
	SKV_TABLE("ReportResult", struct skv_report_res, report_res_rows);

SKV_V1_CALL(report)
REQUEST(move_take, skv_move_take_req)
ANSWER(move_view, skv_move_view)
REQUEST(move_finish_req, skv_move_finish_req)
ANSWER(move_finish_res, skv_move_finish_res)

const struct skv_table *const skv_move_tables[] = {
	&move_take_table, &move_file_table, &move_slot_table, &move_view_table,
	&move_finish_req_table, &move_finish_res_table, &damage_table, &report_req_table,
	&report_res_table, NULL,
};
