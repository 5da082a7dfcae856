/*
 * start.c - start of a session: request and answer, both directions.
 *
 * The answer has one entry for each key, in order: the client's mask and checksums of the finish count
 * by them, so the reader insists on that. No state; any thread.
 */
#include "parts.h"

#include <string.h>

#define LOCATION_BYTES 128 /* room for one location as text, to grow the buffer once */

static const char *const outcomes[] = { "write", "exists", "busy", NULL };
static const char *const states[] = { "open", "finished", "aborted", "expired", NULL };

int ref_read_start_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_req *out, struct skv_error *err)
{
	static const char *const fields[] = { "request_id", "keys",	  "keys_int",	"keys_hex",
					      "parent",	    "parent_int", "parent_hex", "specs",
					      "deadline_ms", "independent", NULL };
	struct skv_start_req r = { .tenant = in->tenant, .request_id = "" };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JREQUEST, SKV_JMAX_KEYS, err);
	struct ref_jat id = ref_jat_get(&top, "request_id"), specs = ref_jat_get(&top, "specs"),
		       deadline = ref_jat_get(&top, "deadline_ms"),
		       independent = ref_jat_get(&top, "independent");

	ref_jat_object(&d, &top, fields);
	if (id.v)
		r.request_id = ref_jat_string(&d, &id, 1, SKV_MAX_REQUEST_ID);
	r.keys = ref_jat_keys(&d, &top, &r.n_keys);
	r.has_parent = ref_jat_parent(&d, &top, &r.parent);
	if (specs.v)
		r.specs = ref_jat_names(&d, &specs, 1, SKV_MAX_SPECS, &r.n_specs);
	if (deadline.v)
		r.deadline_ms = ref_jat_u32(&d, &deadline, 0, UINT32_MAX);
	if (independent.v)
		r.independent = ref_jat_bool(&d, &independent);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}

void ref_write_start_req(struct skv_buf *out, const struct skv_start_req *req,
			    const struct skv_key_input *keys, const struct skv_key_input *parent)
{
	ref_jout_begin(out);
	if (req->request_id[0])
		ref_jout_field_string(out, "request_id", req->request_id);
	if (req->n_specs)
		ref_jout_field_strings(out, "specs", req->specs, req->n_specs);
	if (req->deadline_ms)
		ref_jout_field_u64(out, "deadline_ms", req->deadline_ms);
	if (req->independent)
		ref_jout_field_bool(out, "independent", true);
	ref_jout_parent(out, parent);
	ref_jout_keys(out, keys);
	ref_jout_close(out, '}');
}

static void write_outcome(struct skv_buf *b, const struct skv_start_res *r, uint32_t i)
{
	ref_jout_open(b, '{');
	ref_jout_field_u64(b, "index", i);
	ref_jout_field_string(b, "outcome", outcomes[r->outcome[i]]);
	if (r->outcome[i] == SKV_START_WRITE)
		ref_jout_locations(b, r->loc + (size_t)i * r->n_specs, r->n_specs);
	ref_jout_close(b, '}');
}

void ref_write_start_res(struct skv_buf *out, const struct skv_start_res *r)
{
	bool open = r->state == SKV_SESSION_OPEN;

	skv_buf_reserve(out, (size_t)LOCATION_BYTES * (1 + (size_t)r->n_write * r->n_specs));
	ref_jout_begin(out);
	ref_jout_field_string(out, "session", r->session);
	ref_jout_field_string(out, "state", states[r->state]);
	ref_jout_field_u64(out, "deadline_ms", r->deadline_ms);
	ref_jout_field_u64(out, "n_keys", r->n_keys);
	ref_jout_field_u64(out, "n_write", r->n_write);
	ref_jout_field_strings(out, "specs", r->specs, r->n_specs);
	ref_jout_files(out, &r->files);
	ref_jout_name(out, "blocks");
	ref_jout_open(out, '[');
	for (uint32_t i = 0; open && i < r->n_keys; i++)
		write_outcome(out, r, i);
	ref_jout_close(out, ']');
	ref_jout_close(out, '}');
}

static void read_outcome(struct ref_jdoc *d, const struct ref_jat *at, struct skv_start_res *r,
			 uint32_t i)
{
	struct ref_jat index = ref_jat_get(at, "index"), outcome = ref_jat_get(at, "outcome");

	ref_jat_u32(d, &index, i, i);
	r->outcome[i] = (uint8_t)ref_jat_word(d, &outcome, outcomes);
	if (r->outcome[i] == SKV_START_WRITE)
		ref_jat_locations(d, at, r->files.n, r->loc + (size_t)i * r->n_specs, r->n_specs);
}

/* The entries of an open session. One that has ended has none (its keys may not be counted either): then
 * nothing is to be written. */
static void read_outcomes(struct ref_jdoc *d, const struct ref_jat *top, struct skv_start_res *r)
{
	struct ref_jat blocks = ref_jat_get(top, "blocks"), n_write = ref_jat_get(top, "n_write");
	bool open = r->state == SKV_SESSION_OPEN;
	uint32_t n = ref_jat_array(d, &blocks, open ? r->n_keys : 0, r->n_keys), writes = 0;

	r->n_write = ref_jat_u32(d, &n_write, 0, open ? r->n_keys : SKV_MAX_KEYS);
	r->outcome = ref_jdoc_alloc(d, r->n_keys, sizeof *r->outcome);
	r->loc = ref_jdoc_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->loc);
	if (!ref_jdoc_ok(d))
		return;
	if (!open) {
		memset(r->outcome, SKV_START_BUSY, r->n_keys);
		return;
	}
	for (uint32_t i = 0; ref_jdoc_ok(d) && i < n; i++) {
		struct ref_jat item = ref_jat_item(&blocks, i);

		read_outcome(d, &item, r, i);
		writes += r->outcome[i] == SKV_START_WRITE;
	}
	if (writes != r->n_write)
		ref_jdoc_fail(d, &n_write, SKV_E_INVALID, "there are %u blocks to write", writes);
}

static void read_session(struct ref_jdoc *d, const struct ref_jat *at, struct skv_start_res *r)
{
	if (at->v && json_is_string(at->v) && json_string_length(at->v) == 0)
		return;
	ref_jat_key_hex(d, at);
	if (ref_jdoc_ok(d))
		memcpy(r->session, json_string_value(at->v), sizeof r->session);
}

int ref_read_start_res(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_res *out, struct skv_error *err)
{
	struct skv_start_res r = { .session = "" };
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_ANSWER, err);
	struct ref_jat session = ref_jat_get(&top, "session"), state = ref_jat_get(&top, "state"),
		       deadline = ref_jat_get(&top, "deadline_ms"), n_keys = ref_jat_get(&top, "n_keys"),
		       specs = ref_jat_get(&top, "specs");

	read_session(&d, &session, &r);
	r.state = (enum skv_session_state)ref_jat_word(&d, &state, states);
	r.deadline_ms = ref_jat_u32(&d, &deadline, 0, UINT32_MAX);
	r.n_keys = ref_jat_u32(&d, &n_keys, 0, SKV_MAX_KEYS);
	r.specs = ref_jat_names(&d, &specs, 0, SKV_MAX_SPECS, &r.n_specs);
	ref_jat_files(&d, &top, &r.files);
	read_outcomes(&d, &top, &r);
	if (ref_jdoc_ok(&d))
		*out = r;
	return ref_jdoc_close(&d);
}
