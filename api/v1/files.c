/*
 * files.c - slab files of a storage: what is told of them, and the wish to have one drained; as JSON.
 *
 * No state; any thread.
 */
#include "parts.h"

static void view_fields(struct skv_buf *b, const struct skv_file_view *v)
{
	skv_jout_field_u64(b, "file", v->file);
	skv_jout_field_string(b, "state", v->state);
	skv_jout_field_string(b, "why", v->why);
	skv_jout_field_string(b, "waits_for", v->waits_for);
	skv_jout_field_u64(b, "length", v->length);
	skv_jout_field_u64(b, "assigned_bytes", v->assigned_bytes);
	skv_jout_field_u64(b, "used_bytes", v->used_bytes);
	skv_jout_field_u64(b, "quarantined_bytes", v->quarantined_bytes);
}

void skv_v1_write_file_list(struct skv_buf *out, const struct skv_file_view *v, uint32_t n)
{
	skv_jout_begin(out);
	skv_jout_name(out, "files");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < n; i++) {
		skv_jout_open(out, '{');
		view_fields(out, &v[i]);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
	skv_jout_close(out, '}');
}

void skv_v1_write_file_wish(struct skv_buf *out, const struct skv_file_wish *w)
{
	skv_jout_begin(out);
	skv_jout_field_u64(out, "file", w->file);
	skv_jout_field_bool(out, "draining", w->draining);
	if (w->forget)
		skv_jout_field_bool(out, "forget", true);
	skv_jout_close(out, '}');
}

int skv_v1_read_file_wish(const struct skv_v1_in *in, const char *text, size_t n, struct skv_file_wish *out,
			  struct skv_error *err)
{
	static const char *const fields[] = { "file", "draining", "forget", NULL };
	struct skv_file_wish w = { 0 };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_OBJECT, err);
	struct skv_jat file = skv_jat_get(&top, "file"), draining = skv_jat_get(&top, "draining"),
		       forget = skv_jat_get(&top, "forget");

	skv_jat_object(&d, &top, fields);
	w.file = skv_jat_u32(&d, &file, 0, UINT32_MAX);
	w.draining = skv_jat_bool(&d, &draining);
	w.forget = forget.v && skv_jat_bool(&d, &forget);
	if (skv_jdoc_ok(&d))
		*out = w;
	return skv_jdoc_close(&d);
}
