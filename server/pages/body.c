/*
 * body.c - path and body of a request: tenant, rank, namespace, keys and pages.
 *
 * One pass over the text makes nodes, one over the nodes keys; memory comes in one piece for each list. What is wrong
 * is told by the field's name. Upstream's server takes whatever Python can iterate, so its mode does too. No state.
 */
#include "pages.h"

#include <string.h>

#include "key.h"

#define VALUES_MAX (2u << 20) /* of a body: keys and pages, brackets and commas counted */

static const struct kvb_json_limits limits = { .depth = 16, .values = VALUES_MAX, .wide = true };

/* ---- path -------------------------------------------------------------------------------------- */

static const char *param_of(const struct kvb_call *c, const char *name)
{
	for (unsigned i = 0; i < ROUTE_PARAMS; i++)
		if (strcmp(c->param[i].name, name) == 0)
			return c->param[i].value;
	return NULL;
}

/* First segments of paths that are no tenants. */
static bool is_tenant(const char *s)
{
	static const char *const taken[] = { "v1", "api", "keys", "rank", "clear", "metrics" };
	int64_t number;

	for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
		if (strcmp(s, taken[i]) == 0)
			return false;
	return kvb_name_valid(s, strlen(s)) && !space_rank(s, strlen(s), false, &number);
}

static int take_tenant(struct pages_call *k, const char **out)
{
	const char *tenant = param_of(k->c, "tenant");

	*out = k->c->caller.tenant;
	if (!tenant)
		return KVB_OK;
	if (pages_strict(k) || !is_tenant(tenant))
		return pages_refuse(k, 404, false, "Not Found");
	if (k->c->s->auth.path && strcmp(tenant, *out) != 0)
		return kvb_fail(&k->c->err, KVB_E_FORBIDDEN, NULL, "this token is not the tenant's");
	*out = tenant;
	return KVB_OK;
}

static int take_rank(struct pages_call *k, int64_t *out)
{
	const char *rank = param_of(k->c, "rank");

	if (rank && space_rank(rank, strlen(rank), pages_strict(k), out))
		return KVB_OK;
	return pages_refuse(k, 422, false, "rank: must be a number of 1 to 18 digits");
}

/* ---- fields ------------------------------------------------------------------------------------ */

static int take_namespace(struct pages_call *k, const struct kvb_json_node *body, const char **ns, size_t *n)
{
	const struct kvb_json_node *v = kvb_json_get(body, "namespace", 9);

	*ns = SPACE_NS_DEFAULT;
	*n = sizeof SPACE_NS_DEFAULT - 1;
	if (!v)
		return KVB_OK;
	if (v->type != KVB_JSON_STRING || v->n > SPACE_NS_MAX)
		return pages_refuse(k, 422, true, "namespace: must be a string of at most %u bytes", SPACE_NS_MAX);
	*ns = v->s;
	*n = v->n;
	return KVB_OK;
}

int pages_read_keys(struct pages_call *k, const struct kvb_json_node *body)
{
	const struct kvb_secret *secret = kvb_core_secret(pages_core(k));
	const struct kvb_json_node *list = kvb_json_get(body, "keys", 4), *v;

	if (!list || list->type != KVB_JSON_ARRAY)
		return pages_refuse(k, 422, true, "keys: must be a list");
	k->total = list->n;
	k->keys = kvb_arena_alloc(&k->c->arena, (list->n + (size_t)1) * sizeof *k->keys);
	if (!k->keys)
		return pages_nomem(k);
	v = kvb_json_first(list);
	for (uint32_t i = 0; i < list->n; i++, v = kvb_json_next(v))
		if (!pages_key(secret, v, &k->keys[i]))
			return pages_refuse(k, 422, true, "keys[%u]: must be a string", i);
	return KVB_OK;
}

int pages_read(struct pages_call *k)
{
	struct kvb_json_doc doc;
	const char *tenant, *ns;
	int64_t rank;
	size_t n_ns;
	int rc = take_tenant(k, &tenant);

	if (rc == KVB_OK)
		rc = take_rank(k, &rank);
	if (rc != KVB_OK)
		return rc;
	if (!kvb_json_parse(&doc, &k->c->arena, k->c->body, k->c->n_body, &limits))
		return doc.fault == KVB_JSON_NOMEM ? pages_nomem(k) :
		       pages_refuse(k, 400, true, "the body is not JSON: %s at byte %zu",
				    doc.what ? doc.what : "a fault", doc.at);
	if (doc.root->type != KVB_JSON_OBJECT)
		return pages_refuse(k, 422, true, "the body must be an object");
	rc = take_namespace(k, doc.root, &ns, &n_ns);
	if (rc != KVB_OK)
		return rc;
	space_init(&k->space, tenant, rank, ns, n_ns);
	return k->op->read(k, doc.root);
}
