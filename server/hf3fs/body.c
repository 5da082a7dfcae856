/*
 * body.c - parses path and body of a request: tenant, rank, namespace, keys and pages.
 *
 * One pass over the text makes nodes, one over the nodes keys; each list is one allocation. Errors
 * name the field. Upstream's server accepts anything iterable in Python, and so does its
 * compatibility mode. Stateless.
 */
#include "hf3fs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "body.h"
#include "key.h"

#define VALUES_MAX (2u << 20) /* of a body: keys and pages, brackets and commas counted */

const struct skv_json_limits body_limits = { .depth = 16, .values = VALUES_MAX, .wide = true,
					     .nul = true };

/* ---- path ------------------------------------------------------------------------------------ */

static const char *param_of(const struct skv_request *c, const char *name)
{
	for (unsigned i = 0; i < ROUTE_PARAMS; i++)
		if (strcmp(c->param[i].name, name) == 0)
			return c->param[i].value;
	return NULL;
}

bool body_is_tenant(const char *s)
{
	static const char *const taken[] = { "v1", "api", "keys", "rank", "clear", "metrics" };
	size_t first = strcspn(s, "/"); /* distinguishes our paths from a tenant's */
	int64_t number;

	for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
		if (strlen(taken[i]) == first && memcmp(s, taken[i], first) == 0)
			return false;
	return skv_model_name_valid(s, strlen(s)) && !space_rank(s, first, false, &number);
}

static int take_tenant(struct hf3fs_request *k, const char **out)
{
	const char *tenant = param_of(k->c, "tenant");

	*out = k->c->caller.tenant;
	if (!tenant)
		return SKV_OK;
	if (hf3fs_strict(k) || !body_is_tenant(tenant))
		return hf3fs_refuse(k, 404, false, "Not Found");
	if (k->c->s->auth.path && strcmp(tenant, *out) != 0)
		return skv_fail(&k->c->err, SKV_E_FORBIDDEN, NULL,
				"this token is not the tenant's");
	*out = tenant;
	return SKV_OK;
}

int body_rank(struct hf3fs_request *k, int64_t *out)
{
	const char *rank = param_of(k->c, "rank");

	if (rank && space_rank(rank, strlen(rank), hf3fs_strict(k), out))
		return SKV_OK;
	k->bad_rank = rank;
	return hf3fs_refuse(k, 422, false, "rank: must be a number of 1 to 18 digits");
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* As Python prints it. NULL: not a scalar, or out of memory. */
static const char *python_text(struct hf3fs_request *k, const struct skv_json_node *v)
{
	char *out = skv_arena_alloc(&k->c->arena, 24);

	if (!out)
		return NULL;
	switch (v->type) {
	case SKV_JSON_NULL:
		return "None";
	case SKV_JSON_TRUE:
		return "True";
	case SKV_JSON_FALSE:
		return "False";
	case SKV_JSON_INTEGER:
		snprintf(out, 24, "%" PRId64, v->i);
		return out;
	case SKV_JSON_REAL:
		return skv_arena_strndup(&k->c->arena, v->s, v->n);
	default:
		return NULL;
	}
}

static int take_namespace(struct hf3fs_request *k, const struct skv_json_node *body,
			  const char **ns, size_t *n)
{
	const struct skv_json_node *v = skv_json_get(body, "namespace", 9);

	*ns = SPACE_NS_DEFAULT;
	if (v && v->type == SKV_JSON_STRING) {
		*ns = v->s;
		*n = v->n;
	} else {
		if (v && hf3fs_strict(k))
			*ns = python_text(k, v);
		else if (v && v->type != SKV_JSON_NULL)
			*ns = NULL;
		*n = *ns ? strlen(*ns) : 0;
	}
	if (*ns && *n <= SPACE_NS_MAX)
		return SKV_OK;
	return hf3fs_refuse(k, 422, true, "namespace: must be a string of at most %u bytes",
			    SPACE_NS_MAX);
}

/* ---- lists ----------------------------------------------------------------------------------- */

bool items_open(struct items *it, const struct skv_json_node *v, bool strict)
{
	*it = (struct items){ .v = v + 1, .left = v->n, .type = v->type };
	if (v->type == SKV_JSON_ARRAY || !strict)
		return v->type == SKV_JSON_ARRAY;
	if (v->type != SKV_JSON_STRING)
		return v->type == SKV_JSON_OBJECT;
	it->letter = (struct skv_json_node){ .type = SKV_JSON_STRING, .span = 1, .s = v->s };
	it->left = 0;
	for (uint32_t i = 0; i < v->n; i++)
		it->left += ((uint8_t)v->s[i] & 0xc0) != 0x80;
	return true;
}

const struct skv_json_node *items_next(struct items *it)
{
	const struct skv_json_node *v = it->v;

	assert(it->left > 0);
	it->left--;
	if (it->type != SKV_JSON_STRING) {
		it->v = skv_json_next(it->type == SKV_JSON_OBJECT ? v + 1 : v);
		return v;
	}
	it->letter.s += it->letter.n;
	it->letter.n = 1;
	if (it->letter.s[0] & 0x80)
		it->letter.n +=
			1 + ((uint8_t)it->letter.s[0] >= 0xe0) + ((uint8_t)it->letter.s[0] >= 0xf0);
	return &it->letter;
}

void *body_array(struct hf3fs_request *k, uint32_t n, size_t size)
{
	return skv_arena_alloc(&k->c->arena, ((size_t)n + 1) * size);
}

int body_list(struct hf3fs_request *k, const struct skv_json_node *body, const char *name,
	      bool optional, struct items *it)
{
	const struct skv_json_node *v = skv_json_get(body, name, strlen(name));

	*it = (struct items){ .left = 0 };
	if (!v && optional)
		return SKV_OK;
	if (v && items_open(it, v, hf3fs_strict(k)))
		return SKV_OK;
	k->late &= v || !(k->op->flags & HF3FS_KEYS_FIRST);
	return hf3fs_refuse(k, 422, true, "%s: must be a list", name);
}

int body_keys(struct hf3fs_request *k, const struct skv_json_node *body, const char *name,
	      bool optional, struct items *it)
{
	int rc = body_list(k, body, name, optional, it);

	if (rc != SKV_OK)
		return rc;
	k->n_keys = k->part.total = it->left;
	k->keys = body_array(k, k->n_keys, sizeof *k->keys);
	return k->keys ? SKV_OK : hf3fs_nomem(k);
}

int body_bad_key(struct hf3fs_request *k, const char *list, uint32_t i)
{
	return hf3fs_refuse(k, 422, true, "%s[%u]: a key must be a string", list, i);
}

bool body_pair(struct hf3fs_request *k, const struct skv_json_node *v, struct skv_json_node out[2])
{
	struct items it;

	if (!items_open(&it, v, hf3fs_strict(k)) || it.left != 2)
		return false;
	out[0] = *items_next(&it);
	out[1] = *items_next(&it);
	return true;
}

bool body_page(struct hf3fs_request *k, const struct skv_json_node *v, uint64_t *out)
{
	*out = v->type == SKV_JSON_INTEGER && v->i >= 0 ? (uint64_t)v->i : UINT64_MAX;
	return hf3fs_strict(k) || v->type == SKV_JSON_INTEGER || v->type == SKV_JSON_UNSIGNED;
}

/* ---- reading requests ------------------------------------------------------------------------ */

int hf3fs_read_nothing(struct hf3fs_request *k, const struct skv_json_node *body)
{
	(void)k;
	(void)body;
	return SKV_OK;
}

int body_read_keys(struct hf3fs_request *k, struct items *it)
{
	struct skv_key_batch batch = { .secret = skv_cluster_secret(hf3fs_cluster(k)) };
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && it->left > 0; i++)
		if (!hf3fs_key_add(&batch, items_next(it), &k->keys[i]))
			rc = body_bad_key(k, "keys", i);
	skv_key_batch_end(&batch);
	return rc;
}

int hf3fs_read_keys(struct hf3fs_request *k, const struct skv_json_node *body)
{
	struct items it;
	int rc = body_keys(k, body, "keys", false, &it);

	return rc == SKV_OK ? body_read_keys(k, &it) : rc;
}

/* The first key's prefix_key, if any, is the block before it; it cannot be one of the keys
 * itself. */
static void take_parent(struct hf3fs_request *k, const struct skv_json_node *prefix)
{
	k->u.reserve.has_parent =
		prefix->type != SKV_JSON_NULL &&
		(prefix->type != SKV_JSON_STRING || prefix->n > 0) &&
		hf3fs_key(skv_cluster_secret(hf3fs_cluster(k)), prefix, &k->u.reserve.parent);
}

static void check_parent(struct hf3fs_request *k)
{
	for (uint32_t i = 0; k->u.reserve.has_parent && i < k->n_keys; i++)
		if (skv_key_equal(k->keys[i], k->u.reserve.parent))
			k->u.reserve.has_parent = false;
}

int hf3fs_read_reserve(struct hf3fs_request *k, const struct skv_json_node *body)
{
	struct skv_key_batch batch = { .secret = skv_cluster_secret(hf3fs_cluster(k)) };
	struct skv_json_node pair[2];
	struct skv_bytes *names;
	struct items it;
	uint8_t *text;
	const uint8_t *end;
	int rc = body_keys(k, body, "keys", false, &it);

	if (rc != SKV_OK)
		return rc;
	names = k->u.reserve.names = body_array(k, k->n_keys, sizeof *names);
	/* of all names, see hf3fs_name */
	text = skv_arena_alloc(&k->c->arena, k->c->n_body + k->n_keys);
	if (!names || !text)
		return hf3fs_nomem(k);
	end = text + k->c->n_body + k->n_keys;
	for (uint32_t i = 0; it.left > 0; i++) {
		if (!body_pair(k, items_next(&it), pair))
			return hf3fs_refuse(k, 422, true,
					    "keys[%u]: must be a key and its prefix_key", i);
		if (!hf3fs_key_add(&batch, &pair[0], &k->keys[i]))
			return body_bad_key(k, "keys", i);
		names[i] = (struct skv_bytes){ text, 0 };
		if (pair[0].type != SKV_JSON_STRING || pair[0].n <= HF3FS_KEY_MAX)
			names[i].n = hf3fs_name(&pair[0], text);
		text += names[i].n;
		assert(text <= end);
		if (i == 0)
			take_parent(k, &pair[1]);
	}
	skv_key_batch_end(&batch);
	check_parent(k);
	return SKV_OK;
}

int body_confirm(struct hf3fs_request *k, const struct skv_json_node *body, const char *written)
{
	static const char released[] = "pages_to_release";
	struct skv_key_batch batch = { .secret = skv_cluster_secret(hf3fs_cluster(k)) };
	struct skv_json_node pair[2];
	struct items it;
	int rc = body_keys(k, body, written, true, &it);

	if (rc != SKV_OK)
		return rc;
	k->u.confirm.pages = body_array(k, k->n_keys, sizeof *k->u.confirm.pages);
	if (!k->u.confirm.pages)
		return hf3fs_nomem(k);
	for (uint32_t i = 0; it.left > 0; i++) {
		if (!body_pair(k, items_next(&it), pair) ||
		    !body_page(k, &pair[1], &k->u.confirm.pages[i]))
			return hf3fs_refuse(k, 422, true, "%s[%u]: must be a key and its page",
					    written, i);
		if (!hf3fs_key_add(&batch, &pair[0], &k->keys[i]))
			return body_bad_key(k, written, i);
	}
	skv_key_batch_end(&batch);
	rc = body_list(k, body, released, true, &it);
	if (rc != SKV_OK)
		return rc;
	k->u.confirm.n_released = it.left;
	if (k->part.total < it.left)
		k->part.total = it.left;
	k->u.confirm.released = body_array(k, it.left, sizeof *k->u.confirm.released);
	if (!k->u.confirm.released)
		return hf3fs_nomem(k);
	for (uint32_t i = 0; it.left > 0; i++)
		if (!body_page(k, items_next(&it), &k->u.confirm.released[i]))
			return hf3fs_refuse(k, 422, true, "%s[%u]: must be the number of a page",
					    released, i);
	return SKV_OK;
}

int hf3fs_read_confirm(struct hf3fs_request *k, const struct skv_json_node *body)
{
	return body_confirm(k, body, "written_keys_to_confirm");
}

int hf3fs_read_initialize(struct hf3fs_request *k, const struct skv_json_node *body)
{
	const struct skv_json_node *v = skv_json_get(body, "num_pages", 9);

	if (v && v->type == SKV_JSON_INTEGER)
		/* as upstream: a space that is always full */
		k->u.num_pages = v->i < 0 ? 0 : (uint64_t)v->i;
	else if (v && hf3fs_strict(k) && (v->type == SKV_JSON_TRUE || v->type == SKV_JSON_FALSE))
		k->u.num_pages = v->type == SKV_JSON_TRUE;
	/* upstream ignores it if the space exists */
	else if (!v || !hf3fs_strict(k) || hf3fs_find(k) != SKV_OK)
		return hf3fs_refuse(k, 422, true, "num_pages: must be a whole number");
	return SKV_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int bad_json(struct hf3fs_request *k, const struct skv_json_doc *doc)
{
	static const char *const words[] = {
		[SKV_JSON_UTF8] = "bytes that are not UTF-8",
		[SKV_JSON_NUMBER] = "too large a number",
		[SKV_JSON_TWICE] = "a name given twice",
		[SKV_JSON_LIMIT] = "too many values, or too deep",
	};

	if (doc->fault == SKV_JSON_NOMEM)
		return hf3fs_nomem(k);
	return hf3fs_refuse(k, 400, true, "the body is not JSON: %s at byte %zu",
			    doc->fault == SKV_JSON_SYNTAX ? doc->what : words[doc->fault], doc->at);
}

int body_object(struct hf3fs_request *k, const struct skv_json_node **body)
{
	struct skv_json_doc doc;

	*body = NULL;
	if (k->c->n_body == 0 && k->op->flags & HF3FS_BARE && !hf3fs_strict(k))
		return SKV_OK;
	if (!skv_json_parse(&doc, &k->c->arena, k->c->body, k->c->n_body, &body_limits))
		return bad_json(k, &doc);
	if (doc.root->type != SKV_JSON_OBJECT)
		return hf3fs_refuse(k, 400, true, "the body must be an object");
	*body = doc.root;
	return SKV_OK;
}

int hf3fs_read(struct hf3fs_request *k)
{
	const struct skv_json_node *body;
	const char *tenant, *ns;
	int64_t rank = 0;
	size_t n_ns;
	int rc = take_tenant(k, &tenant);

	if (rc == SKV_OK && k->op->flags & HF3FS_VLLM)
		return vllm_read(k, tenant);
	if (rc == SKV_OK)
		rc = body_rank(k, &rank);
	if (rc == SKV_OK)
		rc = body_object(k, &body);
	if (rc == SKV_OK)
		rc = take_namespace(k, body, &ns, &n_ns);
	if (rc != SKV_OK)
		return rc;
	space_init(&k->space, tenant, rank, ns, n_ns);
	k->late = true;
	return k->op->read(k, body);
}
