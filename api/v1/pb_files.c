/*
 * pb_files.c - the messages of files.c in protobuf.
 *
 * No state; any thread.
 */
#include "pb.h"

enum { LIST_FILES = 1 };
enum { WISH_FILE = 1, WISH_DRAINING = 2 };
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

void kvb_pb_write_file_list(struct kvb_buf *out, const struct kvb_file_view *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t begin = kvb_pb_put_begin(out, LIST_FILES, VIEW_MAX);

		kvb_pb_put_uint(out, VIEW_FILE, v[i].file);
		kvb_pb_put_text(out, VIEW_STATE, v[i].state);
		kvb_pb_put_text(out, VIEW_WHY, v[i].why);
		kvb_pb_put_text(out, VIEW_WAITS_FOR, v[i].waits_for);
		kvb_pb_put_uint(out, VIEW_LENGTH, v[i].length);
		kvb_pb_put_uint(out, VIEW_ASSIGNED, v[i].assigned_bytes);
		kvb_pb_put_uint(out, VIEW_USED, v[i].used_bytes);
		kvb_pb_put_uint(out, VIEW_QUARANTINED, v[i].quarantined_bytes);
		kvb_pb_put_end(out, begin);
	}
}

void kvb_pb_write_file_wish(struct kvb_buf *out, const struct kvb_file_wish *w)
{
	kvb_pb_put_uint(out, WISH_FILE, w->file);
	kvb_pb_put_uint(out, WISH_DRAINING, w->draining);
}

int kvb_pb_read_file_wish(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_file_wish *out,
			  struct kvb_error *err)
{
	struct kvb_file_wish w = { 0 };
	struct kvb_pbdoc d = kvb_pb_open(in, err);
	struct kvb_rd r = kvb_rd_make(text, n);
	struct kvb_pbf f;

	while (kvb_pb_next(&d, &r, &f)) {
		if (f.num == WISH_FILE)
			w.file = (uint32_t)kvb_pb_u64(&d, &f, "file", UINT32_MAX);
		if (f.num == WISH_DRAINING)
			w.draining = kvb_pb_u64(&d, &f, "draining", UINT64_MAX) != 0;
	}
	if (kvb_pb_ok(&d))
		*out = w;
	return d.status;
}
