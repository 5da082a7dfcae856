/*
 * pb_files.c - the messages of files.c in protobuf.
 *
 * No state; any thread.
 */
#include "pb.h"

enum { LIST_FILES = 1 };
enum { WISH_FILE = 1, WISH_DRAINING = 2, WISH_FORGET = 3 };
enum {
	VIEW_FILE = 1,
	VIEW_STATE = 2,
	VIEW_WHY = 3,
	VIEW_WAITS_FOR = 4,
	VIEW_LENGTH = 5,
	VIEW_ASSIGNED = 6,
	VIEW_USED = 7,
	VIEW_QUARANTINED = 8,
};
#define VIEW_MAX 512u /* bytes of one, at most: its texts are short constants */

void skv_pb_write_file_list(struct skv_buf *out, const struct skv_file_view *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t begin = skv_pb_put_begin(out, LIST_FILES, VIEW_MAX);

		skv_pb_put_uint(out, VIEW_FILE, v[i].file);
		skv_pb_put_text(out, VIEW_STATE, v[i].state);
		skv_pb_put_text(out, VIEW_WHY, v[i].why);
		skv_pb_put_text(out, VIEW_WAITS_FOR, v[i].waits_for);
		skv_pb_put_uint(out, VIEW_LENGTH, v[i].length);
		skv_pb_put_uint(out, VIEW_ASSIGNED, v[i].assigned_bytes);
		skv_pb_put_uint(out, VIEW_USED, v[i].used_bytes);
		skv_pb_put_uint(out, VIEW_QUARANTINED, v[i].quarantined_bytes);
		skv_pb_put_end(out, begin);
	}
}

void skv_pb_write_file_wish(struct skv_buf *out, const struct skv_file_wish *w)
{
	skv_pb_put_uint(out, WISH_FILE, w->file);
	skv_pb_put_uint(out, WISH_DRAINING, w->draining);
	skv_pb_put_uint(out, WISH_FORGET, w->forget);
}

int skv_pb_read_file_wish(const struct skv_v1_in *in, const char *text, size_t n, struct skv_file_wish *out,
			  struct skv_error *err)
{
	struct skv_file_wish w = { 0 };
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd r = skv_rd_make(text, n);
	struct skv_pbf f;

	while (skv_pb_next(&d, &r, &f)) {
		if (f.num == WISH_FILE)
			w.file = (uint32_t)skv_pb_u64(&d, &f, "file", UINT32_MAX);
		if (f.num == WISH_DRAINING)
			w.draining = skv_pb_u64(&d, &f, "draining", UINT64_MAX) != 0;
		if (f.num == WISH_FORGET)
			w.forget = skv_pb_u64(&d, &f, "forget", UINT64_MAX) != 0;
	}
	if (skv_pb_ok(&d))
		*out = w;
	return d.status;
}
