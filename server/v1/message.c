/*
 * message.c - finds path parameters and body in a gRPC message.
 *
 * A gRPC method is the HTTP operation with its path's name inside the message. Only that name
 * is looked for here; the rest is decoded by the same codec that reads
 * application/x-protobuf. No state.
 */
#include "v1.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/pb.h>

enum { KEY_RAW = 2, KEY_INT = 3, KEY_TEXT = 4 }; /* fields of GetBlockRequest */

static const struct v1_row *row_of(const struct skv_route *route) { return route->own; }

/* Returns the field's name in slabkv.proto: `instance` for objects inside an instance, for others
 * the name in the path. */
static void target_name(const struct skv_route *route, char out[16])
{
	const char *open = strchr(route->pattern, '{');
	size_t n = open ? strcspn(open + 1, "}") : 0;

	assert(n < 16);
	if (n == 2 && open[4] == '/')
		snprintf(out, 16, "instance");
	else
		snprintf(out, 16, "%.*s", (int)n, open ? open + 1 : "");
}

static int bad_message(struct skv_request *c)
{
	return skv_fail(&c->err, SKV_E_INVALID, NULL, "the message is not valid protobuf");
}

static int no_memory(struct skv_request *c)
{
	return skv_fail(&c->err, SKV_E_NOMEM, NULL, "out of memory");
}

/* Which of its two operations a GetBlock means: by the bytes of the key, or by what a person
 * has. */
static int take_block_key(struct skv_request *c, const struct pb_field *key)
{
	static const char hex[] = "0123456789abcdef";
	size_t max = key->n < SKV_MAX_KEY_STRING + 1 ? key->n : SKV_MAX_KEY_STRING + 1;
	char *text;

	if (key->number == KEY_RAW && key->wire == 2 && key->n == SKV_KEY_HEX / 2) {
		for (size_t i = 0; i < key->n; i++) {
			c->param[1].value[2 * i] = hex[key->p[i] >> 4];
			c->param[1].value[2 * i + 1] = hex[key->p[i] & 15];
		}
		c->param[1].value[SKV_KEY_HEX] = '\0';
		return SKV_OK;
	}
	assert(max <= SKV_MAX_KEY_STRING + 1);
	text = skv_arena_alloc(&c->arena, 3 * max + 24);
	if (!text)
		return no_memory(c);
	if (key->number == KEY_INT && key->wire == 1) {
		snprintf(text, 24, "%" PRIu64, key->v);
		v1_of(c)->key_number = text;
	} else if (key->number == KEY_TEXT && key->wire == 2) {
		for (size_t i = 0; i < max; i++) {
			text[3 * i] = '%';
			text[3 * i + 1] = hex[key->p[i] >> 4];
			text[3 * i + 2] = hex[key->p[i] & 15];
		}
		text[3 * max] = '\0';
		v1_of(c)->key_text = text;
	} else {
		return skv_fail(&c->err, SKV_E_INVALID, "key",
				"one of key_raw (16 bytes), key_int and key is required");
	}
	c->route = &skv_routes[SKV_OP_block_find];
	return SKV_OK;
}

static int take_name(struct skv_request *c, const struct pb_field *name)
{
	char field[16];

	if (!row_of(c->route)->target)
		return SKV_OK;
	target_name(c->route, field);
	if (name->wire != 2)
		return skv_fail(&c->err, SKV_E_INVALID, field, "%s is required", field);
	return skv_route_param(&c->param[0], field, (const char *)name->p, name->n, &c->err);
}

int skv_v1_message(struct skv_request *c, const uint8_t *p, size_t n)
{
	const struct v1_row *row = row_of(c->route);
	struct pb_field name = { .wire = 9 }, body = { .wire = 9 }, key = { .wire = 9 }, f;
	struct skv_rd r = skv_rd_make(p, n);
	int rc;

	assert(c->route >= skv_routes && c->route < skv_routes + SKV_OP_COUNT);
	/* A message without name and body of its own is left to the codec. */
	while ((row->target || !(c->route->flags & ROUTE_BODY)) && pb_next(&r, &f)) {
		if (f.number == row->target)
			name = f;
		else if (row->body && f.number == row->body && f.wire == 2 && body.wire == 2)
			return skv_fail(&c->err, SKV_E_INVALID, "spec", "spec is given twice");
		else if (row->body && f.number == row->body)
			body = f;
		else if (f.number >= KEY_RAW && f.number <= KEY_TEXT)
			key = f;
	}
	if (r.failed || (body.wire != 9 && body.wire != 2))
		return bad_message(c);
	assert(body.n <= n && name.n <= n && key.n <= n);
	c->body = n ? (const char *)p : "";
	c->n_body = n;
	if (row->body) {
		c->body = body.n ? (const char *)body.p : "";
		c->n_body = body.n;
	}
	rc = take_name(c, &name);
	if (rc == SKV_OK && c->route == &skv_routes[SKV_OP_block_get])
		rc = take_block_key(c, &key);
	return rc;
}
