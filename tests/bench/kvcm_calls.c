/*
 * kvcm_calls.c - measures KVCM's calls, over JSON and gRPC, as `slabkv bench` measures native ones.
 *
 *	bench_kvcm_calls HOST:PORT [options of slabkv bench]
 *
 * HOST:PORT is the manager's gRPC port. Requests and answers are made and read here by hand, as a
 * client of that API does; nothing is shared with the manager's codecs. An answer is read only as
 * far as the measurement needs it: is it OK, how many blocks does it place. Storage and group are
 * those of the native bench (type null), and the blocks to be found are filled in over the native
 * API: only the instance is registered here, because the API has a layout of its own.
 */
#include "bench.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "wire.h"

#define SESSION_MAX 128
#define WRITE_TIMEOUT_S 30u
#define QT_PREFIX_MATCH 2u
#define CODE_OK 1u

/* ---- connections ----------------------------------------------------------------------------- */

static const char *grpc_port; /* host:port */

struct wires {
	struct skv_wire *v[2]; /* over JSON, over gRPC */
};

static bool is_grpc(const struct skv_bench_call *c)
{
	return strstr(c->op->option, "grpc") != NULL;
}

static struct skv_wire *wire_of(const struct skv_bench_call *c)
{
	return ((struct wires *)c->own)->v[is_grpc(c)];
}

static int connect_wire(struct skv_bench_call *c)
{
	const bool grpc = is_grpc(c);
	struct skv_bench *b = c->b;
	struct wires *wires = c->own ? c->own : skv_calloc(1, sizeof *wires);
	const char *url = b->cli->n_urls ? b->cli->urls[0] : "http://127.0.0.1:7333";
	char base[512];
	size_t n = strcspn(url, ","); /* the first of several */

	c->own = wires;
	if (wires && wires->v[grpc])
		return SLABKV_OK;
	while (n > 0 && url[n - 1] == '/')
		n--;
	if (grpc)
		snprintf(base, sizeof base, "http://%s/kv_cache_manager.proto.meta.MetaService/",
			 grpc_port);
	else
		snprintf(base, sizeof base, "%.*s/api/", (int)n, url);
	if (wires)
		wires->v[grpc] = skv_wire_open(base, grpc, b->cli);
	if (wires && wires->v[grpc])
		return SLABKV_OK;
	snprintf(c->err.message, sizeof c->err.message, "out of memory");
	return c->err.code = SLABKV_E_NOMEM;
}

static void close_wires(struct skv_bench_call *c)
{
	struct wires *wires = c->own;

	for (int i = 0; wires && i < 2; i++)
		skv_wire_close(wires->v[i]);
	skv_free(wires);
	c->own = NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void put_tag(struct skv_buf *out, uint32_t field, uint32_t wire)
{
	skv_put_varint(out, field << 3 | wire);
}

static void put_number(struct skv_buf *out, uint32_t field, uint64_t v)
{
	put_tag(out, field, 0);
	skv_put_varint(out, v);
}

static void put_text(struct skv_buf *out, uint32_t field, const char *s)
{
	put_tag(out, field, 2);
	skv_put_string(out, s, strlen(s));
}

static size_t varint_length(uint64_t v)
{
	size_t n = 1;

	for (; v >= 128; v >>= 7)
		n++;
	return n;
}

static void put_keys(struct skv_buf *out, uint32_t field, const uint64_t *ids, uint32_t n)
{
	size_t bytes = 0, begin;

	for (uint32_t i = 0; i < n; i++)
		bytes += varint_length(ids[i]);
	put_tag(out, field, 2);
	skv_put_varint(out, bytes);
	begin = out->len;
	for (uint32_t i = 0; i < n; i++)
		skv_put_varint(out, ids[i]);
	assert(out->failed || out->len == begin + bytes);
}

static void put_json_keys(struct skv_buf *out, const uint64_t *ids, uint32_t n)
{
	char text[24];

	_Static_assert(sizeof text >= sizeof ",18446744073709551615",
		       "room for the largest number");
	skv_buf_printf(out, ",\"block_keys\":[");
	for (uint32_t i = 0; i < n; i++) {
		char *end = text + sizeof text, *p = end;

		for (uint64_t v = ids[i]; v || p == end; v /= 10)
			*--p = (char)('0' + v % 10);
		if (i > 0)
			*--p = ',';
		skv_put_bytes(out, p, (size_t)(end - p));
	}
	skv_put_u8(out, ']');
}

static void request_query(struct skv_buf *out, bool grpc, const struct skv_bench_call *c)
{
	if (!grpc) {
		skv_buf_printf(
			out,
			"{\"trace_id\":\"bench\",\"instance_id\":\"%s\","
			"\"query_type\":\"QT_PREFIX_MATCH\"",
			c->b->name);
		put_json_keys(out, c->ids, c->b->keys);
		skv_buf_printf(out, ",\"block_mask\":{\"offset\":0}}");
		return;
	}
	put_text(out, 1, "bench");
	put_text(out, 2, c->b->name);
	put_number(out, 3, QT_PREFIX_MATCH);
	put_keys(out, 4, c->ids, c->b->keys);
}

static void request_start(struct skv_buf *out, bool grpc, const struct skv_bench_call *c)
{
	if (!grpc) {
		skv_buf_printf(
			out,
			"{\"trace_id\":\"bench\",\"instance_id\":\"%s\","
			"\"write_timeout_seconds\":%u",
			c->b->name, WRITE_TIMEOUT_S);
		put_json_keys(out, c->ids, c->b->keys);
		skv_put_u8(out, '}');
		return;
	}
	put_text(out, 1, "bench");
	put_text(out, 2, c->b->name);
	put_keys(out, 3, c->ids, c->b->keys);
	put_number(out, 6, WRITE_TIMEOUT_S);
}

/* All `n` written blocks succeeded. */
static void request_finish(struct skv_buf *out, bool grpc, const struct skv_bench_call *c,
			   const char *session, uint32_t n)
{
	if (!grpc) {
		skv_buf_printf(
			out,
			"{\"trace_id\":\"bench\",\"instance_id\":\"%s\","
			"\"write_session_id\":\"%s\",\"success_blocks\":{\"offset\":%u}}",
			c->b->name, session, n);
		return;
	}
	put_text(out, 1, "bench");
	put_text(out, 2, c->b->name);
	put_text(out, 3, session);
	put_tag(out, 4, 2);
	skv_put_varint(out, 1 + varint_length(n));
	put_number(out, 1, n);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct reply {
	bool ok;
	uint32_t locations;
	char session[SESSION_MAX];
};

static void read_json(const char *p, size_t n, struct reply *r)
{
	static const char ok[] = "\"code\":\"OK\"", session[] = "\"write_session_id\":\"",
			  one[] = "\"location_specs\":";
	const char *end = p + n, *at;

	r->ok = memmem(p, n, ok, sizeof ok - 1) != NULL;
	at = memmem(p, n, session, sizeof session - 1);
	if (at) {
		size_t len;

		at += sizeof session - 1;
		for (len = 0; at + len < end && at[len] != '"'; len++)
			;
		snprintf(r->session, sizeof r->session, "%.*s", (int)len, at);
	}
	for (at = p; (at = memmem(at, (size_t)(end - at), one, sizeof one - 1)) != NULL;
	     at += sizeof one - 1)
		r->locations++;
}

/* The next field: its number, and the bytes of a message or text (wire type 2) or NULL. */
static uint32_t next_field(struct skv_rd *in, const char **p, size_t *n, uint64_t *v)
{
	uint64_t tag = skv_get_varint(in);

	*p = NULL;
	*n = 0;
	*v = 0;
	if ((tag & 7) == 0)
		*v = skv_get_varint(in);
	else if ((tag & 7) == 2)
		*p = skv_get_string(in, n, UINT32_MAX);
	else
		in->failed = true;
	return in->failed ? 0 : (uint32_t)(tag >> 3);
}

/* header { status { code } } */
static bool header_ok(const char *p, size_t n)
{
	struct skv_rd in = skv_rd_make(p, n);
	uint64_t v = 0;

	for (int depth = 0; depth < 2 && skv_rd_left(&in); depth++) {
		uint32_t field = next_field(&in, &p, &n, &v);

		if (field != 1)
			return false;
		if (p)
			in = skv_rd_make(p, n);
	}
	return v == CODE_OK;
}

static void read_message(const char *bytes, size_t len, uint32_t locations, struct reply *r)
{
	struct skv_rd in = skv_rd_make(bytes, len);
	const char *p;
	uint64_t v;
	size_t n;

	while (skv_rd_left(&in) && !in.failed) {
		uint32_t field = next_field(&in, &p, &n, &v);

		if (field == 1 && p)
			r->ok = header_ok(p, n);
		else if (field == locations && p)
			r->locations++;
		else if (field == 2 && p)
			snprintf(r->session, sizeof r->session, "%.*s", (int)n, p);
	}
}

/* Sends the request built in `wire`. `locations`: number of that field in the answer. */
static int call(struct skv_bench_call *c, const char *json, const char *grpc, uint32_t locations,
		struct reply *r)
{
	bool binary = is_grpc(c);
	const char *answer;
	size_t n;
	int rc = skv_wire_call(wire_of(c), binary ? grpc : json, &answer, &n, &c->err);

	assert(rc == SLABKV_OK || c->err.code == rc);
	memset(r, 0, sizeof *r);
	if (rc != SLABKV_OK)
		return rc;
	if (binary)
		read_message(answer, n, locations, r);
	else
		read_json(answer, n, r);
	if (r->ok)
		return SLABKV_OK;
	/* The API has one code for most failures; in a benchmark, storage at its limits. */
	snprintf(c->err.message, sizeof c->err.message, "%s: %.*s", json,
		 binary ? 0 : (int)(n < 200 ? n : 200), answer);
	return c->err.code = SLABKV_E_UNAVAILABLE;
}

/* ---- operations ------------------------------------------------------------------------------ */

static int get(struct skv_bench_call *c)
{
	uint32_t hits = skv_bench_name_hits(c);
	struct reply r;
	int rc = connect_wire(c);

	c->asked = hits ? hits : 1;
	c->done = 0;
	if (rc != SLABKV_OK)
		return rc;
	request_query(skv_wire_request(wire_of(c)), is_grpc(c), c);
	rc = call(c, "getCacheLocation", "GetCacheLocation", 2, &r);
	if (rc == SLABKV_OK)
		c->done = hits ? r.locations : r.locations == 0;
	return rc;
}

static int write_blocks(struct skv_bench_call *c)
{
	uint64_t begin, middle;
	struct reply started, finished;
	int rc = connect_wire(c);

	skv_bench_name_fresh(c, c->b->keys);
	c->asked = c->b->keys;
	c->done = 0;
	if (rc != SLABKV_OK)
		return rc;
	begin = skv_now_us();
	request_start(skv_wire_request(wire_of(c)), is_grpc(c), c);
	rc = call(c, "startWriteCache", "StartWriteCache", 4, &started);
	middle = skv_now_us();
	if (rc != SLABKV_OK)
		return rc;
	request_finish(skv_wire_request(wire_of(c)), is_grpc(c), c, started.session,
		       started.locations);
	rc = call(c, "finishWriteCache", "FinishWriteCache", UINT32_MAX, &finished);
	c->first_us = middle - begin;
	c->second_us = skv_now_us() - middle;
	if (rc == SLABKV_OK)
		c->done = started.locations;
	if (atomic_fetch_add(&c->b->made, c->done) + c->done >= c->b->max_blocks)
		atomic_store(&c->b->stop, true);
	return rc;
}

static int register_instance(struct skv_bench *b, struct slabkv_error *err)
{
	static const struct skv_bench_op over_json = { .option = "register-json" };
	struct skv_bench_call c = { .b = b, .op = &over_json };
	struct reply r;
	int rc = connect_wire(&c);

	if (rc == SLABKV_OK) {
		skv_buf_printf(
			skv_wire_request(wire_of(&c)),
			"{\"trace_id\":\"bench\",\"instance_group\":\"%s\",\"instance_id\":\"%s\","
			"\"block_size\":64,\"model_deployment\":{\"model_name\":\"bench\","
			"\"dtype\":\"bf16\",\"tp_size\":1,\"dp_size\":1,\"pp_size\":1},"
			"\"location_spec_infos\":[{\"name\":\"tp0\",\"size\":%" PRIu64
			"}]}",
			b->name, b->name, b->slot_bytes);
		rc = call(&c, "registerInstance", "RegisterInstance", UINT32_MAX, &r);
	}
	close_wires(&c);
	*err = c.err;
	return rc;
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct skv_bench_op ops[] = {
	{ .name = "get json", .option = "get-json", .call = get },
	{ .name = "get grpc", .option = "get-grpc", .call = get },
	{ .name = "write json", .option = "write-json", .halves = { "start", "finish" },
	  .call = write_blocks },
	{ .name = "write grpc", .option = "write-grpc", .halves = { "start", "finish" },
	  .call = write_blocks },
};

static void help(const char *command)
{
	(void)command;
	puts("usage: bench_kvcm_calls HOST:PORT [options of slabkv bench]");
}

int main(int argc, char **argv)
{
	static const struct skv_bench_api kvcm = {
		.name = "kvcm",
		.ops = ops,
		.n_ops = sizeof ops / sizeof ops[0],
		.op_names = "get-json,get-grpc,write-json,write-grpc",
		.register_instance = register_instance,
		.close = close_wires,
	};
	struct skv_cli cli = { .command = "bench", .timeout_ms = 60000, .help = help };

	if (argc < 2 || !strchr(argv[1], ':')) {
		help(NULL);
		return SKV_EXIT_USAGE;
	}
	grpc_port = argv[1];
	cli.argv = argv + 1;
	opterr = 0;
	slabkv_options_init(&cli.library, sizeof cli.library);
	return skv_bench(&cli, &kvcm, argc - 1, argv + 1);
}
