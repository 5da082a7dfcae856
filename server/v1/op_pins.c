/*
 * op_pins.c - the lists of pins and of keys, in portions, and which page of other lists is meant.
 * They are asked for by query, over gRPC by a message of their own.
 */
#include "v1.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <skv/pb.h>

#define AT_A_TIME 1024u

int skv_v1_number(struct skv_request *r, const char *field, const char *text, uint64_t *out)
{
	char *end = NULL;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return skv_fail(&r->err, SKV_E_INVALID, field, "a decimal number is expected");
	return SKV_OK;
}

static int take_query(struct skv_request *r, uint64_t *cursor, uint64_t *max)
{
	const struct v1_request *v = v1_of(r);
	int rc = v->cursor ? skv_v1_number(r, "cursor", v->cursor, cursor) : SKV_OK;

	return rc == SKV_OK && v->max ? skv_v1_number(r, "max", v->max, max) : rc;
}

static void take_message(struct skv_request *r, uint64_t *cursor, uint64_t *max)
{
	struct skv_rd message = skv_rd_make(r->body, r->n_body);
	struct pb_field f;

	while (pb_next(&message, &f)) {
		if (f.number == 1 && f.wire == 0)
			*cursor = f.v;
		if (f.number == 2 && f.wire == 0 && f.v)
			*max = f.v;
	}
}

/* Which portion. */
static int take_portion(struct skv_request *r, uint64_t *cursor, uint32_t *most)
{
	uint64_t max = AT_A_TIME;
	int rc = SKV_OK;

	if (r->wire == WIRE_GRPC)
		take_message(r, cursor, &max);
	else
		rc = take_query(r, cursor, &max);
	*most = max < UINT32_MAX ? (uint32_t)max : UINT32_MAX;
	return rc;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static int set_limit(struct skv_request *r, uint64_t limit, struct skv_page *out)
{
	if (limit == 0 || limit > SKV_MAX_PAGE)
		return skv_fail(&r->err, SKV_E_INVALID, "limit", "1 to %u", SKV_MAX_PAGE);
	out->limit = (uint32_t)limit;
	return SKV_OK;
}

static int set_after(struct skv_request *r, const char *text, size_t n, bool encoded,
		     struct skv_page *out)
{
	char *after = skv_arena_alloc(&r->arena, SKV_MAX_CURSOR + 2);

	if (!after)
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "out of memory");
	out->after = after;
	if (encoded && skv_percent_decode(text, n, after, SKV_MAX_CURSOR + 1))
		return SKV_OK;
	if (encoded || n > SKV_MAX_CURSOR || memchr(text, '\0', n))
		return skv_fail(&r->err, SKV_E_INVALID, "after", "`next` of the page before");
	memcpy(after, text, n);
	after[n] = '\0';
	assert(strlen(after) == n);
	return SKV_OK;
}

static int page_of_message(struct skv_request *r, struct skv_page *out)
{
	struct skv_rd message = skv_rd_make(r->body, r->n_body);
	struct pb_field f;
	int rc = SKV_OK;

	while (rc == SKV_OK && pb_next(&message, &f)) {
		if (f.number == 1 && f.wire == 0 && f.v)
			rc = set_limit(r, f.v, out);
		if (f.number == 2 && f.wire == 2)
			rc = set_after(r, (const char *)f.p, f.n, false, out);
	}
	return rc;
}

int skv_v1_page(struct skv_request *r, struct skv_page *out)
{
	const struct v1_request *v = v1_of(r);
	uint64_t limit;
	int rc = SKV_OK;

	assert(r->route->flags & ROUTE_PAGED || (!v->limit && !v->after));
	*out = (struct skv_page)SKV_PAGE;
	/* an answer takes up to some forty times as much as its view: an escape for each character,
	 * names of all fields */
	if (r->s->o.answer_max / 64 < out->bytes)
		out->bytes = (uint32_t)(r->s->o.answer_max / 64);
	out->bytes /= skv_cluster_partitions(r->s->cluster); /* each has a page */
	skv_tenant_page(r, out);
	if (r->wire == WIRE_GRPC)
		return r->route->flags & ROUTE_PAGED ? page_of_message(r, out) : SKV_OK;
	if (v->limit)
		rc = skv_v1_number(r, "limit", v->limit, &limit);
	if (rc == SKV_OK && v->limit)
		rc = set_limit(r, limit, out);
	if (rc == SKV_OK && v->after)
		rc = set_after(r, v->after, strlen(v->after), true, out);
	return rc;
}

/* ---- pins and keys --------------------------------------------------------------------------- */

int skv_op_pins_run(struct skv_request *r)
{
	struct skv_pins_req req = { .tenant = r->caller.tenant, .instance = r->param[0].value };
	int rc = take_portion(r, &req.cursor, &req.max);

	if (rc != SKV_OK)
		return rc;
	return skv_core_pins(skv_request_core(r), &req, &v1_of(r)->u.pins, &r->arena, &r->err);
}

void skv_op_pins_write(struct skv_request *r)
{
	v1_of(r)->codec->write_pins_res(&r->out, &v1_of(r)->u.pins);
}

int skv_op_keys_run(struct skv_request *r)
{
	struct skv_export_req req = { .tenant = r->caller.tenant, .instance = r->param[0].value,
				      .keys_only = true };
	struct skv_export_res res;
	int rc = take_portion(r, &req.cursor, &req.max);

	if (rc == SKV_OK)
		rc = skv_core_export(skv_request_core(r), &req, &res, &r->arena, &r->err);
	v1_of(r)->answer = &v1_of(r)->u.keys;
	if (rc == SKV_OK)
		v1_of(r)->u.keys = (struct skv_keys_res){ .n = res.n, .key = res.key,
							  .next = res.next };
	return rc;
}

