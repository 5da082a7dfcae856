/*
 * start.c - start of a session: request and answer, both directions.
 *
 * The answer has one entry for each key, in order: the client's mask and checksums of the finish count
 * by them, so the reader insists on that. No state; any thread.
 */
#include "parts.h"

#include <string.h>

#define LOCATION_BYTES 160 /* room for one location as text, to grow the buffer once */

static const char *const outcomes[] = { "write", "exists", "busy", NULL };
static const char *const states[] = { "open", "finished", "aborted", "expired", NULL };

int kvb_v1_read_start_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_start_req *out, struct kvb_error *err)
{
	static const char *const fields[] = { "request_id", "keys",	  "keys_int",	"keys_hex",
					      "parent",	    "parent_int", "parent_hex", "specs",
					      "deadline_ms", NULL };
	struct kvb_start_req r = { .tenant = in->tenant, .request_id = "" };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JREQUEST, KVB_JMAX_KEYS, err);
	struct kvb_jat id = kvb_jat_get(&top, "request_id"), specs = kvb_jat_get(&top, "specs"),
		       deadline = kvb_jat_get(&top, "deadline_ms");

	kvb_jat_object(&d, &top, fields);
	if (id.v)
		r.request_id = kvb_jat_string(&d, &id, 1, KVB_MAX_REQUEST_ID);
	r.keys = kvb_jat_keys(&d, &top, &r.n_keys);
	r.has_parent = kvb_jat_parent(&d, &top, &r.parent);
	if (specs.v)
		r.specs = kvb_jat_names(&d, &specs, 1, KVB_MAX_SPECS, &r.n_specs);
	if (deadline.v)
		r.deadline_ms = kvb_jat_u32(&d, &deadline, 0, UINT32_MAX);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}

void kvb_v1_write_start_req(struct kvb_buf *out, const struct kvb_start_req *req,
			    const struct kvb_key_input *keys, const struct kvb_key_input *parent)
{
	kvb_jout_begin(out);
	if (req->request_id[0])
		kvb_jout_field_string(out, "request_id", req->request_id);
	if (req->n_specs)
		kvb_jout_field_strings(out, "specs", req->specs, req->n_specs);
	if (req->deadline_ms)
		kvb_jout_field_u64(out, "deadline_ms", req->deadline_ms);
	kvb_jout_parent(out, parent);
	kvb_jout_keys(out, keys);
	kvb_jout_close(out, '}');
}

static void write_outcome(struct kvb_buf *b, const struct kvb_start_res *r, uint32_t i)
{
	bool write = r->outcome[i] == KVB_START_WRITE;
	const char *outcome = outcomes[r->outcome[i]];
	char *p = kvb_jraw_begin(b, 64 + (write ? r->n_specs * KVB_JRAW_LOCATION : 0));

	if (!p)
		return;
	if (i > 0)
		*p++ = ',';
	p = kvb_jraw_text(p, "{\"index\":");
	p = kvb_jraw_digits(p, i);
	p = kvb_jraw_text(p, ",\"outcome\":\"");
	p = kvb_jraw_bytes(p, outcome, strlen(outcome));
	*p++ = '"';
	if (write)
		p = kvb_jraw_locations(p, r->loc + (size_t)i * r->n_specs, r->n_specs);
	*p++ = '}';
	kvb_jraw_end(b, p);
}

void kvb_v1_write_start_res(struct kvb_buf *out, const struct kvb_start_res *r)
{
	bool open = r->state == KVB_SESSION_OPEN;

	kvb_buf_reserve(out, (size_t)LOCATION_BYTES * (1 + (size_t)r->n_write * r->n_specs));
	kvb_jout_begin(out);
	kvb_jout_field_string(out, "session", r->session);
	kvb_jout_field_string(out, "state", states[r->state]);
	kvb_jout_field_u64(out, "deadline_ms", r->deadline_ms);
	kvb_jout_field_u64(out, "n_keys", r->n_keys);
	kvb_jout_field_u64(out, "n_write", r->n_write);
	kvb_jout_field_strings(out, "specs", r->specs, r->n_specs);
	kvb_jout_files(out, &r->files);
	kvb_jout_name(out, "blocks");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; open && i < r->n_keys; i++)
		write_outcome(out, r, i);
	kvb_jout_close(out, ']');
	kvb_jout_close(out, '}');
}

static void read_outcome(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_start_res *r,
			 uint32_t i)
{
	struct kvb_jat index = kvb_jat_get(at, "index"), outcome = kvb_jat_get(at, "outcome");

	kvb_jat_u32(d, &index, i, i);
	r->outcome[i] = (uint8_t)kvb_jat_word(d, &outcome, outcomes);
	if (r->outcome[i] == KVB_START_WRITE)
		kvb_jat_locations(d, at, r->files.n, r->loc + (size_t)i * r->n_specs, r->n_specs);
}

/* The entries of an open session. One that has ended has none (its keys may not be counted either): then
 * nothing is to be written. */
static void read_outcomes(struct kvb_jdoc *d, const struct kvb_jat *top, struct kvb_start_res *r)
{
	struct kvb_jat blocks = kvb_jat_get(top, "blocks"), item = kvb_jat_first(&blocks);
	struct kvb_jat n_write = kvb_jat_get(top, "n_write");
	bool open = r->state == KVB_SESSION_OPEN;
	uint32_t n = kvb_jat_array(d, &blocks, open ? r->n_keys : 0, r->n_keys), writes = 0;

	r->n_write = kvb_jat_u32(d, &n_write, 0, open ? r->n_keys : KVB_MAX_KEYS);
	r->outcome = kvb_jdoc_alloc(d, r->n_keys, sizeof *r->outcome);
	r->loc = kvb_jdoc_alloc(d, (size_t)r->n_keys * r->n_specs, sizeof *r->loc);
	if (!kvb_jdoc_ok(d))
		return;
	if (!open) {
		memset(r->outcome, KVB_START_BUSY, r->n_keys);
		return;
	}
	for (uint32_t i = 0; kvb_jdoc_ok(d) && i < n; i++, kvb_jat_next(&item)) {
		read_outcome(d, &item, r, i);
		writes += r->outcome[i] == KVB_START_WRITE;
	}
	if (writes != r->n_write)
		kvb_jdoc_fail(d, &n_write, KVB_E_INVALID, "there are %u blocks to write", writes);
}

static void read_session(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_start_res *r)
{
	if (kvb_jat_is(at, KVB_JSON_STRING) && at->v->n == 0)
		return;
	kvb_jat_key_hex(d, at);
	if (kvb_jdoc_ok(d))
		memcpy(r->session, at->v->s, KVB_SESSION_ID_HEX);
}

int kvb_v1_read_start_res(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_start_res *out, struct kvb_error *err)
{
	struct kvb_start_res r = { .session = "" };
	struct kvb_jdoc d;
	struct kvb_jat top = kvb_jdoc_open(&d, in, text, n, KVB_JANSWER, KVB_JMAX_ANSWER, err);
	struct kvb_jat session = kvb_jat_get(&top, "session"), state = kvb_jat_get(&top, "state"),
		       deadline = kvb_jat_get(&top, "deadline_ms"), n_keys = kvb_jat_get(&top, "n_keys"),
		       specs = kvb_jat_get(&top, "specs");

	read_session(&d, &session, &r);
	r.state = (enum kvb_session_state)kvb_jat_word(&d, &state, states);
	r.deadline_ms = kvb_jat_u32(&d, &deadline, 0, UINT32_MAX);
	r.n_keys = kvb_jat_u32(&d, &n_keys, 0, KVB_MAX_KEYS);
	r.specs = kvb_jat_names(&d, &specs, 0, KVB_MAX_SPECS, &r.n_specs);
	kvb_jat_files(&d, &top, &r.files);
	read_outcomes(&d, &top, &r);
	if (kvb_jdoc_ok(&d))
		*out = r;
	return kvb_jdoc_close(&d);
}
