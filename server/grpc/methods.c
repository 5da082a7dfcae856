/*
 * methods.c - which method a path means, and what of its message is name and what is body.
 *
 * The operations come from the routes' table: a gRPC method is the HTTP operation with its path's name
 * inside the message. Only that name is looked for here; the rest is decoded by the same codec that
 * reads application/x-protobuf. Constant after init, no locks.
 */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kvb/mem.h>

#include "pb.h"

enum { KEY_RAW = 2, KEY_INT = 3, KEY_TEXT = 4 }; /* fields of GetBlockRequest */

static int by_path(const void *a, const void *b)
{
	const struct grpc_method *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int kvb_grpc_methods_init(struct kvb_grpc *g, struct kvb_error *err)
{
	g->methods = kvb_calloc(ROUTE_COUNT + 3, sizeof *g->methods);
	if (!g->methods)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	for (size_t i = 0; i < ROUTE_COUNT; i++)
		if (kvb_routes[i].grpc)
			g->methods[g->n_methods++] = (struct grpc_method){ .path = kvb_routes[i].grpc,
									   .route = &kvb_routes[i] };
	g->methods[g->n_methods++] = kvb_grpc_health_methods[0];
	g->methods[g->n_methods++] = kvb_grpc_health_methods[1];
	g->methods[g->n_methods++] = kvb_grpc_reflect_method;
	qsort(g->methods, g->n_methods, sizeof *g->methods, by_path);
	return KVB_OK;
}

const struct grpc_method *kvb_grpc_method_find(const struct kvb_grpc *g, const char *path)
{
	const struct grpc_method wanted = { .path = path };

	return path ? bsearch(&wanted, g->methods, g->n_methods, sizeof wanted, by_path) : NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The field's name in kvblock.proto: what lies inside an instance says `instance`, the others as the path. */
static void target_name(const struct route *route, char out[16])
{
	const char *open = strchr(route->pattern, '{');
	size_t n = open ? strcspn(open + 1, "}") : 0;

	if (n == 2 && open[4] == '/')
		snprintf(out, 16, "instance");
	else
		snprintf(out, 16, "%.*s", (int)n, open ? open + 1 : "");
}

static int bad_message(struct kvb_call *c)
{
	return kvb_fail(&c->err, KVB_E_INVALID, NULL, "the message is not valid protobuf");
}

static int no_memory(struct kvb_call *c) { return kvb_fail(&c->err, KVB_E_NOMEM, NULL, "out of memory"); }

/* Which of its two operations a GetBlock means: by the bytes of the key, or by what a person has. */
static int take_block_key(struct kvb_call *c, const struct pb_field *key)
{
	static const char hex[] = "0123456789abcdef";
	size_t max = key->n < KVB_MAX_KEY_STRING + 1 ? key->n : KVB_MAX_KEY_STRING + 1;
	char *text;

	if (key->number == KEY_RAW && key->wire == 2 && key->n == KVB_KEY_HEX / 2) {
		for (size_t i = 0; i < key->n; i++) {
			c->param[1].value[2 * i] = hex[key->p[i] >> 4];
			c->param[1].value[2 * i + 1] = hex[key->p[i] & 15];
		}
		c->param[1].value[KVB_KEY_HEX] = '\0';
		return KVB_OK;
	}
	text = kvb_arena_alloc(&c->arena, 3 * max + 24);
	if (!text)
		return no_memory(c);
	if (key->number == KEY_INT && key->wire == 1) {
		snprintf(text, 24, "%" PRIu64, key->v);
		c->key_number = text;
	} else if (key->number == KEY_TEXT && key->wire == 2) {
		for (size_t i = 0; i < max; i++) {
			text[3 * i] = '%';
			text[3 * i + 1] = hex[key->p[i] >> 4];
			text[3 * i + 2] = hex[key->p[i] & 15];
		}
		text[3 * max] = '\0';
		c->key_text = text;
	} else {
		return kvb_fail(&c->err, KVB_E_INVALID, "key",
				"one of key_raw (16 bytes), key_int and key is required");
	}
	c->route = &kvb_routes[ROUTE_ID_block_find];
	return KVB_OK;
}

static int take_name(struct kvb_call *c, const struct pb_field *name)
{
	char field[16];

	if (!c->route->target)
		return KVB_OK;
	target_name(c->route, field);
	if (name->wire != 2)
		return kvb_fail(&c->err, KVB_E_INVALID, field, "%s is required", field);
	return kvb_route_param(&c->param[0], field, (const char *)name->p, name->n, &c->err);
}

int kvb_grpc_take_message(struct kvb_call *c, const uint8_t *p, size_t n)
{
	const struct route *route = c->route;
	struct pb_field name = { .wire = 9 }, body = { .wire = 9 }, key = { .wire = 9 }, f;
	struct kvb_rd r = kvb_rd_make(p, n);
	int rc;

	/* A message without name and body of its own is left to the codec. */
	while ((route->target || !(route->flags & ROUTE_BODY)) && pb_next(&r, &f)) {
		if (f.number == route->target)
			name = f;
		else if (route->body && f.number == route->body && f.wire == 2 && body.wire == 2)
			return kvb_fail(&c->err, KVB_E_INVALID, "spec", "spec is given twice");
		else if (route->body && f.number == route->body)
			body = f;
		else if (f.number >= KEY_RAW && f.number <= KEY_TEXT)
			key = f;
	}
	if (r.failed || (body.wire != 9 && body.wire != 2))
		return bad_message(c);
	c->body = n ? (const char *)p : "";
	c->n_body = n;
	if (route->body) {
		c->body = body.n ? (const char *)body.p : "";
		c->n_body = body.n;
	}
	rc = take_name(c, &name);
	if (rc == KVB_OK && route->id == ROUTE_ID_block_get)
		rc = take_block_key(c, &key);
	return rc;
}
