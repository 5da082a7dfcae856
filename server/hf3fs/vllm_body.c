/*
 * vllm_body.c - parses calls of vLLM's client: the rank is in the body, except for initialize; keys
 * are JSON lists.
 *
 * Upstream's handlers check rank and list themselves (400), and answer 500 with a reason for later
 * failures; only a body that is not a JSON object makes its server raise. Stateless.
 */
#include "body.h"
#include "key.h"

/* ---- the rank -------------------------------------------------------------------------------- */

/* Python's dict takes true for 1. */
static bool is_rank(const struct hf3fs_request *k, const struct skv_json_node *v, int64_t *out)
{
	*out = v->type == SKV_JSON_INTEGER ? v->i : v->type == SKV_JSON_TRUE;
	if (v->type == SKV_JSON_INTEGER)
		return v->i >= (hf3fs_strict(k) ? -HF3FS_RANK_MAX : 0) && v->i <= HF3FS_RANK_MAX;
	return hf3fs_strict(k) && (v->type == SKV_JSON_TRUE || v->type == SKV_JSON_FALSE);
}

static int take_rank(struct hf3fs_request *k, const struct skv_json_node *body, int64_t *out)
{
	const struct skv_json_node *v = skv_json_get(body, "rank", 4);

	if (!v || v->type == SKV_JSON_NULL)
		return hf3fs_refuse(k, 400, false, "%s", k->op->need);
	return is_rank(k, v, out)
		       ? SKV_OK
		       : hf3fs_refuse(k, 422, true, "rank: must be a number of 1 to 18 digits");
}

int vllm_read(struct hf3fs_request *k, const char *tenant)
{
	const struct skv_json_node *body;
	int64_t rank = 0;
	int rc = k->op->flags & HF3FS_MAKES ? body_rank(k, &rank) : SKV_OK;

	if (rc == SKV_OK)
		rc = body_object(k, &body);
	if (rc != SKV_OK)
		return rc;
	k->caught = k->op->trouble != NULL;
	if (k->op->flags & HF3FS_RANKED)
		rc = take_rank(k, body, &rank);
	if (rc != SKV_OK)
		return rc;
	space_init(&k->space, tenant, rank, SPACE_NS_VLLM, sizeof SPACE_NS_VLLM - 1);
	return k->op->read(k, body);
}

/* ---- reading requests ------------------------------------------------------------------------ */

/* A JSON list in the field `keys`, or none. */
static int take_keys(struct hf3fs_request *k, const struct skv_json_node *body, struct items *it)
{
	const struct skv_json_node *v = skv_json_get(body, "keys", 4);

	if (v && v->type != SKV_JSON_ARRAY)
		return hf3fs_refuse(k, 400, false, "%s", k->op->need);
	return body_keys(k, body, "keys", true, it);
}

int vllm_read_initialize(struct hf3fs_request *k, const struct skv_json_node *body)
{
	const struct skv_json_node *role = skv_json_get(body, "role", 4),
				   *n = skv_json_get(body, "num_pages", 9);
	bool worker = !role || (role->type == SKV_JSON_STRING && skv_json_is(role, "worker", 6));

	if (n && n->type == SKV_JSON_INTEGER)
		k->u.num_pages = n->i > 0 ? (uint64_t)n->i : 0;
	else
		k->u.num_pages = n && n->type == SKV_JSON_TRUE && hf3fs_strict(k);
	if (role && role->type == SKV_JSON_STRING && skv_json_is(role, "scheduler", 9))
		k->u.num_pages = VLLM_SCHEDULER;
	else if (worker && n && n->type != SKV_JSON_INTEGER && n->type != SKV_JSON_FALSE &&
		 !k->u.num_pages)
		return hf3fs_refuse(k, 422, true, "num_pages: must be a whole number");
	else if (!worker || k->u.num_pages == 0)
		return hf3fs_refuse(k, 400, false, "Invalid initialization parameters");
	return SKV_OK;
}

int vllm_read_keys(struct hf3fs_request *k, const struct skv_json_node *body)
{
	struct items it;
	int rc = take_keys(k, body, &it);

	return rc == SKV_OK ? body_read_keys(k, &it) : rc;
}

/* The answer has a row for each different key. */
int vllm_read_allocate(struct hf3fs_request *k, const struct skv_json_node *body)
{
	const struct skv_secret *secret = skv_cluster_secret(hf3fs_cluster(k));
	struct skv_json_node pair[2], *node;
	struct items it;
	struct skv_key_set set;
	uint32_t n = 0, given;
	int rc = take_keys(k, body, &it);

	if (rc != SKV_OK)
		return rc;
	given = it.left;
	node = k->u.allocate.node = body_array(k, given, sizeof *node);
	if (!node || !hf3fs_key_set(&set, &k->c->arena, given))
		return hf3fs_nomem(k);
	for (uint32_t i = 0; i < given; i++) {
		uint32_t *at;

		if (!body_pair(k, items_next(&it), pair))
			return hf3fs_refuse(k, 422, true,
					    "keys[%u]: must be a key and its prefix_key", i);
		if (!hf3fs_key(secret, &pair[0], &k->keys[n]))
			return body_bad_key(k, "keys", i);
		at = skv_key_set_find(&set, k->keys, k->keys[n]);
		if (*at)
			continue;
		if (i == 0)
			k->u.allocate.has_parent =
				pair[1].type == SKV_JSON_STRING && pair[1].n > 0 &&
				hf3fs_key(secret, &pair[1], &k->u.allocate.parent);
		node[n] = pair[0];
		*at = ++n;
	}
	k->n_keys = k->part.total = n;
	if (k->u.allocate.has_parent && *skv_key_set_find(&set, k->keys, k->u.allocate.parent))
		k->u.allocate.has_parent = false;
	return SKV_OK;
}

int vllm_read_confirm(struct hf3fs_request *k, const struct skv_json_node *body)
{
	const struct skv_json_node *v = skv_json_get(body, "confirmations", 13);

	if (v && v->type != SKV_JSON_ARRAY)
		return hf3fs_refuse(k, 400, false, "%s", k->op->need);
	return body_confirm(k, body, "confirmations");
}
