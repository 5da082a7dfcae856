/*
 * start.c - start of a session in JSON: the request that is read, the answer that is written.
 *
 * The answer has one entry for each key, in order: the caller's mask and checksums of the finish
 * count by them. Or, where the request asks for it, runs of neighbours (columns.c).
 *
 * No state; any thread.
 */
#include "columns.h"
#include "parts.h"

#include <skv/check.h>

static const char *const outcomes[] = { "write", "exists", "busy", "not_admitted", NULL };

int skv_v1_read_start_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "request_id", "keys",	  "keys_int",	"keys_hex",
					      "parent",	    "parent_int", "parent_hex", "specs",
					      "deadline_ms", "independent", "selective", "avoid",
					      "runs",	    NULL };
	struct skv_start_req r = { .tenant = in->tenant, .request_id = "" };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JMAX_KEYS, err);
	struct skv_jat id = skv_jat_get(&top, "request_id"), specs = skv_jat_get(&top, "specs"),
		       avoid = skv_jat_get(&top, "avoid");

	skv_jat_object(&d, &top, fields);
	if (id.v)
		r.request_id = skv_jat_string(&d, &id, 1, SKV_MAX_REQUEST_ID);
	r.keys = skv_jat_keys(&d, &top, &r.n_keys);
	r.has_parent = skv_jat_parent(&d, &top, &r.parent);
	if (specs.v)
		r.specs = skv_jat_names(&d, &specs, 1, SKV_MAX_SPECS, &r.n_specs);
	r.deadline_ms = skv_jat_number(&d, &top, "deadline_ms", UINT32_MAX, 0);
	r.independent = skv_jat_flag(&d, &top, "independent");
	r.selective = skv_jat_flag(&d, &top, "selective");
	if (avoid.v)
		r.avoid = skv_jat_names(&d, &avoid, 1, SKV_MAX_AVOID, &r.n_avoid);
	r.runs = skv_jat_flag(&d, &top, "runs");
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

static void write_outcomes(struct skv_buf *out, const struct skv_start_res *r)
{
	skv_buf_reserve(out, SKV_JOUT_LOCATION * (1 + (size_t)r->n_write * r->n_specs));
	skv_jout_name(out, "blocks");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; r->state == SKV_SESSION_OPEN && i < r->n_keys; i++) {
		bool write = r->outcome[i] == SKV_START_WRITE;

		/* NO_ROOM cannot be requested over this API */
		SKV_CHECK(r->outcome[i] < SKV_START_NO_ROOM);
		skv_jout_block(out, i, outcomes[r->outcome[i]],
			       write ? r->loc + (size_t)i * r->n_specs : NULL, NULL, r->n_specs);
	}
	skv_jout_close(out, ']');
}

void skv_v1_write_start_res(struct skv_buf *out, const struct skv_start_res *r)
{
	skv_jout_begin(out);
	skv_jout_field_string(out, "session", r->session);
	SKV_CHECK(r->state <= SKV_SESSION_DELETED && r->n_keys <= SKV_MAX_KEYS);
	skv_jout_field_string(out, "state", skv_session_states[r->state]);
	skv_jout_field_u64(out, "deadline_ms", r->deadline_ms);
	skv_jout_field_u64(out, "n_keys", r->n_keys);
	skv_jout_field_u64(out, "n_write", r->n_write);
	skv_jout_field_strings(out, "specs", r->specs, r->n_specs);
	if (r->copy_instance)
		skv_jout_field_string(out, "copy_instance", r->copy_instance);
	skv_jout_files(out, &r->files);
	if (!r->runs)
		write_outcomes(out, r);
	else if (r->state == SKV_SESSION_OPEN)
		skv_put_started(out, true, r);
	skv_jout_close(out, '}');
}
