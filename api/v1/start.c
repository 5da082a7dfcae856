/*
 * start.c - start of a session: request and answer, both directions.
 *
 * The answer has one entry for each key, in order: the client's mask and checksums of the finish
 * count by them, so the reader insists on that. No state; any thread.
 */
#include "parts.h"

#include <skv/check.h>
#include <string.h>

#define LOCATION_BYTES 160 /* room for one location as text, to grow the buffer once */

static const char *const outcomes[] = { "write", "exists", "busy", "not_admitted", NULL };
static const char *const states[] = { "open", "finished", "aborted", "expired", "deleted",
				      NULL };

int skv_v1_read_start_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "request_id", "keys",	  "keys_int",	"keys_hex",
					      "parent",	    "parent_int", "parent_hex", "specs",
					      "deadline_ms", "independent", "selective", "avoid",
					      NULL };
	struct skv_start_req r = { .tenant = in->tenant, .request_id = "" };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
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

void skv_v1_write_start_req(struct skv_buf *out, const struct skv_start_req *req,
			    const struct skv_key_input *keys)
{
	skv_jout_begin(out);
	if (req->request_id[0])
		skv_jout_field_string(out, "request_id", req->request_id);
	if (req->n_specs)
		skv_jout_field_strings(out, "specs", req->specs, req->n_specs);
	if (req->deadline_ms)
		skv_jout_field_u64(out, "deadline_ms", req->deadline_ms);
	if (req->independent)
		skv_jout_field_bool(out, "independent", true);
	if (req->selective)
		skv_jout_field_bool(out, "selective", true);
	if (req->n_avoid)
		skv_jout_field_strings(out, "avoid", req->avoid, req->n_avoid);
	skv_jout_parent(out, keys->parent);
	skv_jout_keys(out, keys);
	skv_jout_close(out, '}');
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
	skv_jout_field_string(out, "state", states[r->state]);
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

static void read_outcome(struct skv_jdoc *d, const struct skv_jat *at, struct skv_start_res *r,
			 uint32_t i)
{
	struct skv_jat index = skv_jat_get(at, "index"), outcome = skv_jat_get(at, "outcome");

	SKV_CHECK(i < r->n_keys);
	skv_jat_u32(d, &index, i, i);
	r->outcome[i] = (uint8_t)skv_jat_word(d, &outcome, outcomes);
	if (r->outcome[i] == SKV_START_WRITE)
		skv_jat_locations(d, at, "locations", r->files.n, r->loc + (size_t)i * r->n_specs,
				  r->n_specs);
}

/* The entries of an open session. A session that has ended has none (its keys may not be counted
 * either): then there is nothing to write. */
static void read_outcomes(struct skv_jdoc *d, const struct skv_jat *top, struct skv_start_res *r)
{
	struct skv_jat blocks = skv_jat_get(top, "blocks"), item = skv_jat_first(&blocks);
	struct skv_jat n_write = skv_jat_get(top, "n_write");
	bool open = r->state == SKV_SESSION_OPEN;
	uint32_t n = skv_jat_array(d, &blocks, open ? r->n_keys : 0, r->n_keys), writes = 0;

	r->n_write = skv_jat_u32(d, &n_write, 0, open ? r->n_keys : SKV_MAX_KEYS);
	r->outcome = skv_jdoc_alloc(d, r->n_keys, sizeof *r->outcome);
	r->loc = skv_jdoc_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->loc);
	if (!skv_jdoc_ok(d))
		return;
	if (!open) {
		memset(r->outcome, SKV_START_BUSY, r->n_keys);
		return;
	}
	for (uint32_t i = 0; skv_jdoc_ok(d) && i < n; i++, skv_jat_next(&item)) {
		read_outcome(d, &item, r, i);
		writes += r->outcome[i] == SKV_START_WRITE;
	}
	if (writes != r->n_write)
		skv_jdoc_fail(d, &n_write, SKV_E_INVALID, "there are %u blocks to write", writes);
}

static void read_session(struct skv_jdoc *d, const struct skv_jat *at, struct skv_start_res *r)
{
	if (skv_jat_is(at, SKV_JSON_STRING) && at->v->n == 0)
		return;
	skv_jat_key_hex(d, at);
	if (skv_jdoc_ok(d))
		memcpy(r->session, at->v->s, SKV_SESSION_ID_HEX);
}

int skv_v1_read_start_res(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_res *out, struct skv_error *err)
{
	struct skv_start_res r = { .session = "" };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_ANSWER, err);
	struct skv_jat session = skv_jat_get(&top, "session"), state = skv_jat_get(&top, "state"),
		       deadline = skv_jat_get(&top, "deadline_ms"),
		       n_keys = skv_jat_get(&top, "n_keys"), specs = skv_jat_get(&top, "specs"),
		       copies = skv_jat_get(&top, "copy_instance");

	read_session(&d, &session, &r);
	r.state = (enum skv_session_state)skv_jat_word(&d, &state, states);
	r.deadline_ms = skv_jat_u32(&d, &deadline, 0, UINT32_MAX);
	r.n_keys = skv_jat_u32(&d, &n_keys, 0, SKV_MAX_KEYS);
	r.specs = skv_jat_names(&d, &specs, 0, SKV_MAX_SPECS, &r.n_specs);
	if (copies.v)
		r.copy_instance = skv_jat_model_name(&d, &copies);
	skv_jat_files(&d, &top, &r.files);
	read_outcomes(&d, &top, &r);
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}
