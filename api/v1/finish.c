/*
 * finish.c - reads the finish request and writes its answer, in JSON.
 *
 * A finish without `success` is refused: a forgotten field must not publish blocks. No state; any
 * thread.
 */
#include "parts.h"

#include <skv/check.h>

const char *const skv_session_states[] = { "open", "finished", "aborted", "expired",
					   "deleted", NULL };

/* ---- finish ---------------------------------------------------------------------------------- */

static void read_mask(struct skv_jdoc *d, const struct skv_jat *at, struct skv_finish_req *r)
{
	uint32_t n = skv_jat_array(d, at, 0, SKV_MAX_KEYS);
	bool *mask = skv_jdoc_alloc(d, n, sizeof *mask);
	struct skv_jat item = skv_jat_first(at);

	for (uint32_t i = 0; mask && i < n; i++, skv_jat_next(&item))
		mask[i] = skv_jat_bool(d, &item);
	r->mask_kind = SKV_MASK_BITS;
	r->mask_count = n;
	r->mask = mask;
}

static void read_success(struct skv_jdoc *d, const struct skv_jat *at, struct skv_finish_req *r)
{
	static const char *const fields[] = { "count", "mask", NULL };
	struct skv_jat count = skv_jat_get(at, "count"), mask = skv_jat_get(at, "mask");

	if (skv_jat_is(at, SKV_JSON_TRUE)) {
		r->mask_kind = SKV_MASK_ALL;
		return;
	}
	if (at->v && !skv_jat_is(at, SKV_JSON_OBJECT))
		skv_jdoc_fail(d, at, SKV_E_INVALID,
			      "must be true, {\"count\": n} or {\"mask\": [true, false, ...]}");
	skv_jat_object(d, at, fields);
	if (!count.v == !mask.v)
		skv_jdoc_fail(d, at, SKV_E_INVALID, "must have one of count and mask");
	if (mask.v) {
		read_mask(d, &mask, r);
	} else {
		r->mask_kind = SKV_MASK_COUNT;
		r->mask_count = skv_jat_u32(d, &count, 0, SKV_MAX_KEYS);
	}
}

static void read_checksums(struct skv_jdoc *d, const struct skv_jat *at, struct skv_finish_req *r)
{
	uint32_t n = skv_jat_array(d, at, 0, SKV_MAX_KEYS * SKV_MAX_SPECS);
	uint64_t *sums = skv_jdoc_alloc(d, n, sizeof *sums);
	struct skv_jat item = skv_jat_first(at);
	bool *none = NULL;

	for (uint32_t i = 0; sums && i < n; i++, skv_jat_next(&item)) {
		if (!skv_jat_is(&item, SKV_JSON_NULL))
			sums[i] = skv_jat_hex64(d, &item);
		else if (none || (none = skv_jdoc_alloc(d, n, sizeof *none)) != NULL)
			none[i] = true;
	}
	r->n_checksums = n;
	r->checksums = sums;
	r->no_checksum = none;
}

int skv_v1_read_finish_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_finish_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "success", "checksums", "quiesced", NULL };
	struct skv_finish_req r = { .tenant = in->tenant };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JMAX_FINISH, err);
	struct skv_jat success = skv_jat_get(&top, "success"),
		       sums = skv_jat_get(&top, "checksums");

	skv_jat_object(&d, &top, fields);
	read_success(&d, &success, &r);
	if (sums.v)
		read_checksums(&d, &sums, &r);
	r.quiesced = skv_jat_flag(&d, &top, "quiesced");
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

void skv_v1_write_finish_res(struct skv_buf *out, const struct skv_finish_res *r)
{
	skv_jout_begin(out);
	SKV_CHECK(r->state <= SKV_SESSION_DELETED);
	skv_jout_field_string(out, "state", skv_session_states[r->state]);
	skv_jout_field_u64(out, "committed", r->committed);
	skv_jout_field_u64(out, "failed", r->failed);
	if (r->n_deleted) {
		skv_jout_name(out, "deleted");
		skv_jout_open(out, '[');
		for (uint32_t i = 0; i < r->n_deleted; i++)
			skv_jout_u64(out, r->deleted[i]);
		skv_jout_close(out, ']');
	}
	skv_jout_close(out, '}');
}
