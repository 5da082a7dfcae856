/*
 * moves.c - the messages of moves, as tables (table.h).
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
};
#undef T
static const struct skv_table move_finish_res_table =
	SKV_TABLE("MoveResult", struct skv_move_finish_res, move_result_rows);

SKV_V1_RW(move_take, skv_move_take_req)
SKV_V1_RW(move_view, skv_move_view)
SKV_V1_RW(move_finish_req, skv_move_finish_req)
SKV_V1_RW(move_finish_res, skv_move_finish_res)

const struct skv_table *const skv_move_tables[] = {
	&move_take_table, &move_file_table, &move_slot_table, &move_view_table,
	&move_finish_req_table, &move_finish_res_table, NULL,
};
