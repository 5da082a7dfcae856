/*
 * files.c - slab files of a storage: what is told of them, and the wish to have one drained; as JSON.
 *
 * No state; any thread.
 */
#include "parts.h"

static void view_fields(struct kvb_buf *b, const struct kvb_file_view *v)
{
	kvb_jout_field_u64(b, "file", v->file);
	kvb_jout_field_string(b, "state", v->state);
	kvb_jout_field_string(b, "why", v->why);
	kvb_jout_field_string(b, "waits_for", v->waits_for);
	kvb_jout_field_u64(b, "length", v->length);
	kvb_jout_field_u64(b, "assigned_bytes", v->assigned_bytes);
	kvb_jout_field_u64(b, "used_bytes", v->used_bytes);
	kvb_jout_field_u64(b, "quarantined_bytes", v->quarantined_bytes);
}

void kvb_v1_write_file_list(struct kvb_buf *out, const struct kvb_file_view *v, uint32_t n)
{
	kvb_jout_begin(out);
	kvb_jout_name(out, "files");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < n; i++) {
		kvb_jout_open(out, '{');
		view_fields(out, &v[i]);
		kvb_jout_close(out, '}');
	}
	kvb_jout_close(out, ']');
	kvb_jout_close(out, '}');
}

void kvb_v1_write_file_wish(struct kvb_buf *out, const struct kvb_file_wish *w)
{
	kvb_jout_begin(out);
	kvb_jout_field_u64(out, "file", w->file);
	kvb_jout_field_bool(out, "draining", w->draining);
	kvb_jout_close(out, '}');
}

int kvb_v1_read_file_wish(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_file_wish *out,
			  struct kvb_error *err)
{
	static const char *const fields[] = { "file", "draining", NULL };
	struct kvb_file_wish w = { 0 };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_OBJECT, err);
	struct kvb_jat file = kvb_jat_get(&top, "file"), draining = kvb_jat_get(&top, "draining");

	kvb_jat_object(&d, &top, fields);
	w.file = kvb_jat_u32(&d, &file, 0, UINT32_MAX);
	w.draining = kvb_jat_bool(&d, &draining);
	if (kvb_jdoc_ok(&d))
		*out = w;
	return kvb_jdoc_close(&d);
}
