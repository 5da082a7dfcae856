/*
 * start.c - start of a session in JSON: the request that is read, the answer that is written.
 *
 * The answer has one entry for each key, in order: the caller's mask and checksums of the finish
 * count by them. No state; any thread.
 */
#include "parts.h"

#include <skv/check.h>
#include <string.h>

#define LOCATION_BYTES 160 /* room for one location as text, to grow the buffer once */

static const char *const outcomes[] = { "write", "exists", "busy", "not_admitted", NULL };

int skv_v1_read_start_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "request_id", "keys",	  "keys_int",	"keys_hex",
					      "parent",	    "parent_int", "parent_hex", "specs",
					      "deadline_ms", "independent", "selective", "avoid",
					      NULL };
	struct skv_start_req r = { .tenant = in->tenant, .request_id = "" };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JMAX_KEYS, err);
	struct skv_jat id = skv_jat_get(&top, "request_id"), specs = skv_jat_get(&top, "specs"),
		       deadline = skv_jat_get(&top, "deadline_ms"),
		       independent = skv_jat_get(&top, "independent"),
		       selective = skv_jat_get(&top, "selective"),
		       avoid = skv_jat_get(&top, "avoid");

	skv_jat_object(&d, &top, fields);
	if (id.v)
		r.request_id = skv_jat_string(&d, &id, 1, SKV_MAX_REQUEST_ID);
	r.keys = skv_jat_keys(&d, &top, &r.n_keys);
	r.has_parent = skv_jat_parent(&d, &top, &r.parent);
	if (specs.v)
		r.specs = skv_jat_names(&d, &specs, 1, SKV_MAX_SPECS, &r.n_specs);
	if (deadline.v)
		r.deadline_ms = skv_jat_u32(&d, &deadline, 0, UINT32_MAX);
	if (independent.v)
		r.independent = skv_jat_bool(&d, &independent);
	if (selective.v)
		r.selective = skv_jat_bool(&d, &selective);
	if (avoid.v)
		r.avoid = skv_jat_names(&d, &avoid, 1, SKV_MAX_AVOID, &r.n_avoid);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}

static void write_outcome(struct skv_buf *b, const struct skv_start_res *r, uint32_t i)
{
	bool write = r->outcome[i] == SKV_START_WRITE;
	const char *outcome = outcomes[r->outcome[i]];
	char *p;

	/* NO_ROOM cannot be requested over this API */
	SKV_CHECK(r->outcome[i] < SKV_START_NO_ROOM);
	p = skv_jraw_begin(b, 64 + (write ? r->n_specs * SKV_JRAW_LOCATION : 0));

	if (!p)
		return;
	if (i > 0)
		*p++ = ',';
	p = skv_jraw_text(p, "{\"index\":");
	p = skv_jraw_digits(p, i);
	p = skv_jraw_text(p, ",\"outcome\":\"");
	p = skv_jraw_bytes(p, outcome, strlen(outcome));
	*p++ = '"';
	if (write)
		p = skv_jraw_locations(p, "locations", r->loc + (size_t)i * r->n_specs, r->n_specs);
	*p++ = '}';
	SKV_CHECK((const uint8_t *)p <= b->data + b->cap);
	skv_jraw_end(b, p);
}

void skv_v1_write_start_res(struct skv_buf *out, const struct skv_start_res *r)
{
	bool open = r->state == SKV_SESSION_OPEN;

	skv_buf_reserve(out, (size_t)LOCATION_BYTES * (1 + (size_t)r->n_write * r->n_specs));
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
	skv_jout_name(out, "blocks");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; open && i < r->n_keys; i++)
		write_outcome(out, r, i);
	skv_jout_close(out, ']');
	skv_jout_close(out, '}');
}
