/*
 * admin.c - the API of `slabkv pages`: page spaces listed, exported, imported and cleared.
 *
 * For administrators: JSON and errors as in the native API. An import is a start at given slots,
 * then a partial finish, in batches bounded by the limit of open sessions; its order is the order
 * of use. Stateless.
 */
#include "body.h"
#include "key.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/v1_json.h>

#define NOT_TOLD UINT64_MAX

/* ---- requests -------------------------------------------------------------------------------- */

static int invalid(struct hf3fs_request *k, const char *field, const char *what)
{
	return skv_fail(&k->c->err, SKV_E_INVALID, field, "%s", what);
}

static int number(struct hf3fs_request *k, const struct skv_json_node *body, const char *name,
		  uint64_t max, uint64_t *out)
{
	const struct skv_json_node *v = skv_json_get(body, name, strlen(name));

	if (!v)
		return SKV_OK;
	if (v->type != SKV_JSON_INTEGER || v->i < 0 || (uint64_t)v->i > max)
		return invalid(k, name, "must be a whole number in range");
	*out = (uint64_t)v->i;
	return SKV_OK;
}

static int take_tenant(struct hf3fs_request *k, const struct skv_json_node *v, const char **out)
{
	const char *own = k->c->caller.tenant;

	*out = own;
	if (!v)
		return SKV_OK;
	if (v->type != SKV_JSON_STRING || !skv_model_name_valid(v->s, v->n))
		return invalid(k, "tenant", "must be a name");
	*out = skv_arena_strndup(&k->c->arena, v->s, v->n);
	if (!*out)
		return hf3fs_nomem(k);
	if (k->c->s->auth.path && strcmp(*out, own) != 0)
		return skv_fail(&k->c->err, SKV_E_FORBIDDEN, "tenant",
				"this token is not the tenant's");
	return SKV_OK;
}

/* Reads the space and the body. */
static int open_body(struct skv_request *c, struct hf3fs_request **out,
		     const struct skv_json_node **body)
{
	struct hf3fs_request *k = c->state;
	const struct skv_json_node *rank, *ns;
	struct skv_json_doc doc;
	const char *tenant;
	int rc;

	*out = k;
	if (!skv_json_parse(&doc, &c->arena, c->body, c->n_body, &body_limits) &&
	    doc.fault == SKV_JSON_NOMEM)
		return hf3fs_nomem(k);
	if (!doc.root || doc.root->type != SKV_JSON_OBJECT)
		return skv_fail(&c->err, SKV_E_INVALID, NULL, "the body is not a JSON object");
	*body = doc.root;
	rc = take_tenant(k, skv_json_get(doc.root, "tenant", 6), &tenant);
	if (rc != SKV_OK)
		return rc;
	rank = skv_json_get(doc.root, "rank", 4);
	ns = skv_json_get(doc.root, "namespace", 9);
	if (!rank || rank->type != SKV_JSON_INTEGER || rank->i < -HF3FS_RANK_MAX ||
	    rank->i > HF3FS_RANK_MAX)
		return invalid(k, "rank", "must be a number of 1 to 18 digits");
	if (ns && (ns->type != SKV_JSON_STRING || ns->n > SPACE_NS_MAX))
		return invalid(k, "namespace", "must be a string");
	space_init(&k->space, tenant, rank->i, ns ? ns->s : SPACE_NS_DEFAULT,
		   ns ? ns->n : sizeof SPACE_NS_DEFAULT - 1);
	hf3fs_locate(k);
	return SKV_OK;
}

/* Pages of the space; SKV_E_NOT_FOUND. */
static int read_size(struct hf3fs_request *k, uint64_t *out)
{
	struct skv_storage_view *v;
	char name[SKV_MAX_NAME + 1];
	int rc;

	space_name(&k->space, name);
	rc = skv_cluster_storage(hf3fs_cluster(k), name, &k->c->arena, &v, &k->c->err);
	if (rc != SKV_OK)
		return rc;
	assert(strcmp(v->spec.name, name) == 0);
	*out = v->spec.capacity;
	return SKV_OK;
}

static void begin(struct skv_request *c)
{
	c->type = "application/json";
	skv_jout_begin(&c->out);
}

unsigned hf3fs_admin_fail(struct skv_request *c)
{
	c->type = "application/json";
	skv_v1_write_error(&c->out, &c->err, c->id);
	return (unsigned)skv_status_http(c->status);
}

/* ---- list ------------------------------------------------------------------------------------ */

static uint64_t pages_in(struct skv_request *c, const char *name)
{
	struct skv_storage_view *v;
	struct skv_error ignored;

	return skv_cluster_storage(c->s->cluster, name, &c->arena, &v, &ignored) == SKV_OK
		       ? v->spec.capacity
		       : 0;
}

static void put_file(struct skv_request *c, const struct space *s)
{
	static const char *const states[] = { "none", "there", "unseen" };
	struct pages_file_view f;

	if (!hf3fs_watch_view(c->api->ctx, s, &f))
		return;
	skv_jout_name(&c->out, "file");
	skv_jout_open(&c->out, '{');
	skv_jout_field_text(&c->out, "path", f.path);
	skv_jout_field_string(&c->out, "state", states[f.state]);
	skv_jout_field_u64(&c->out, "drops", f.drops);
	skv_jout_close(&c->out, '}');
}

static void put_space(struct skv_request *c, const struct space *s,
		      const struct skv_instance_view *i, uint64_t num_pages)
{
	struct skv_buf *out = &c->out;

	skv_jout_open(out, '{');
	skv_jout_field_string(out, "tenant", s->tenant);
	skv_jout_name(out, "rank");
	skv_jout_i64(out, s->rank);
	skv_jout_name(out, "namespace");
	skv_jout_string_n(out, s->ns, s->n_ns);
	skv_jout_field_u64(out, "num_pages", num_pages);
	skv_jout_field_u64(out, "used", i->used_bytes); /* of one byte each */
	skv_jout_field_u64(out, "keys", i->blocks);
	put_file(c, s);
	skv_jout_close(out, '}');
}

int hf3fs_admin_list(struct skv_request *c)
{
	struct skv_instance_view *v;
	const char *tenant = c->s->auth.path ? c->caller.tenant : NULL;
	char name[SKV_MAX_NAME + 1];
	uint32_t n;
	struct space s;
	int rc = skv_cluster_every_instance(c->s->cluster, tenant, &c->arena, &v, &n, &c->err);

	if (rc != SKV_OK)
		return rc;
	begin(c);
	skv_jout_name(&c->out, "pages");
	skv_jout_open(&c->out, '[');
	for (uint32_t i = 0; i < n; i++) {
		if (!space_of(&v[i].spec, &c->arena, &s))
			continue;
		space_name(&s, name);
		put_space(c, &s, &v[i], pages_in(c, name));
	}
	skv_jout_close(&c->out, ']');
	skv_jout_close(&c->out, '}');
	return SKV_OK;
}

void hf3fs_admin_list_write(struct skv_request *c) { (void)c; } /* written already */

/* ---- export ---------------------------------------------------------------------------------- */

int hf3fs_admin_export(struct skv_request *c)
{
	const struct skv_json_node *body;
	struct skv_export_req req;
	struct hf3fs_request *k;
	uint64_t max = SKV_MAX_KEYS;
	int rc = open_body(c, &k, &body);

	if (rc == SKV_OK)
		rc = number(k, body, "cursor", INT64_MAX, &k->u.admin.cursor);
	if (rc == SKV_OK)
		rc = number(k, body, "max", SKV_MAX_KEYS, &max);
	if (rc == SKV_OK)
		rc = hf3fs_find(k);
	if (rc == SKV_OK)
		rc = read_size(k, &k->u.admin.have);
	if (rc != SKV_OK)
		return rc;
	req = (struct skv_export_req){ .tenant = k->space.tenant, .instance = k->space.id,
				       .cursor = k->u.admin.cursor,
				       .max = (uint32_t)max };
	return skv_core_export(hf3fs_core(k), &req, &k->u.admin.export_res, &c->arena, &c->err);
}

void hf3fs_admin_export_write(struct skv_request *c)
{
	struct hf3fs_request *k = c->state;
	const struct skv_export_res *res = &k->u.admin.export_res;
	struct skv_buf *out = &c->out;

	begin(c);
	skv_jout_field_u64(out, "num_pages", k->u.admin.have);
	skv_jout_name(out, "keys");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < res->n; i++) {
		size_t before = out->len;

		skv_jout_open(out, '[');
		if (!hf3fs_name_put(out, &res->name[i])) {
			out->len = before; /* not by this API, or written before names were kept */
			continue;
		}
		skv_jout_u64(out, res->loc[i].offset);
		skv_jout_u64(out, res->use[i]);
		skv_jout_close(out, ']');
	}
	skv_jout_close(out, ']');
	skv_jout_field_u64(out, "next", res->next);
	skv_jout_close(out, '}');
}

/* ---- import ---------------------------------------------------------------------------------- */

/* Adds one [key, page] of the request, as the i-th of the batch. False: skipped. */
static bool take(struct hf3fs_request *k, struct skv_key_set *set, struct skv_json_node pair[2],
		 uint32_t i, uint8_t **text)
{
	const struct skv_secret *secret = skv_cluster_secret(hf3fs_cluster(k));
	uint32_t *at;

	if ((pair[0].type == SKV_JSON_STRING && pair[0].n > HF3FS_KEY_MAX) ||
	    !hf3fs_key(secret, &pair[0], &k->keys[i])) {
		k->u.admin.unfit++;
		return false;
	}
	if (pair[1].type != SKV_JSON_INTEGER || pair[1].i < 0) {
		k->u.admin.outside++;
		return false;
	}
	at = skv_key_set_find(set, k->keys, k->keys[i]);
	if (*at) {
		k->u.admin.there++;
		return false;
	}
	*at = i + 1;
	k->u.admin.names[i] = (struct skv_bytes){ *text, hf3fs_name(&pair[0], *text) };
	k->u.admin.offsets[i] = (uint64_t)pair[1].i;
	*text += k->u.admin.names[i].n;
	return true;
}

static int read_import(struct hf3fs_request *k, const struct skv_json_node *body)
{
	const struct skv_json_node *list = skv_json_get(body, "keys", 4), *v;
	struct skv_json_node pair[2];
	struct skv_key_set set;
	/* of all names, see hf3fs_name */
	uint8_t *text = skv_arena_alloc(&k->c->arena, 2 * k->c->n_body + 1);
	int rc;

	k->u.admin.num_pages = NOT_TOLD;
	rc = number(k, body, "num_pages", INT64_MAX, &k->u.admin.num_pages);
	if (rc != SKV_OK)
		return rc;
	if (!list || list->type != SKV_JSON_ARRAY || list->n > SKV_MAX_KEYS)
		return invalid(k, "keys", "must be a list of pairs, not too long");
	k->keys = body_array(k, list->n, sizeof *k->keys);
	k->u.admin.names = body_array(k, list->n, sizeof *k->u.admin.names);
	k->u.admin.offsets = body_array(k, list->n, sizeof *k->u.admin.offsets);
	if (!text || !k->keys || !k->u.admin.names || !k->u.admin.offsets ||
	    !hf3fs_key_set(&set, &k->c->arena, list->n))
		return hf3fs_nomem(k);
	v = skv_json_first(list);
	for (uint32_t i = 0; i < list->n; i++, v = skv_json_next(v)) {
		if (v->type != SKV_JSON_ARRAY || v->n != 2)
			return invalid(k, "keys", "must be pairs of a key and its page");
		pair[0] = *skv_json_first(v);
		pair[1] = *skv_json_next(skv_json_first(v));
		k->n_keys += take(k, &set, pair, k->n_keys, &text);
	}
	return SKV_OK;
}

static void on_ended(struct hf3fs_request *k)
{
	k->u.admin.imported += k->u.admin.partial_res.committed;
	k->u.admin.taken += k->u.admin.partial_res.ignored_commits;
}

static void on_partial_done(void *ctx, int status)
{
	struct hf3fs_request *k = ctx;

	if (status == SKV_OK)
		on_ended(k);
	k->part.done.fn(k->part.done.ctx, status);
}

/* Confirms the slots taken: their keys exist now. */
static int settle(struct hf3fs_request *k)
{
	const struct skv_start_res *res = &k->u.admin.start_res;
	const struct skv_done done = { on_partial_done, k };
	struct skv_key *keys = k->keys + k->part.at;
	uint64_t *offsets = k->u.admin.offsets + k->part.at;
	uint32_t n = 0;
	int rc;

	assert(res->n_keys == k->part.n && k->part.n <= k->n_keys - k->part.at);
	for (uint32_t i = 0; i < res->n_keys; i++) {
		k->u.admin.there += res->outcome[i] == SKV_START_EXISTS;
		if (res->outcome[i] == SKV_START_BUSY || res->outcome[i] == SKV_START_NO_ROOM)
			*(offsets[i] < k->u.admin.have ? &k->u.admin.taken : &k->u.admin.outside) +=
				1;
		if (res->outcome[i] != SKV_START_WRITE)
			continue;
		keys[n] = keys[i];
		offsets[n++] = offsets[i];
	}
	if (n == 0)
		return SKV_OK;
	k->u.admin.partial_req = (struct skv_partial_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		.keys = keys,
		.offsets = offsets,
		.n_commit = n,
	};
	rc = skv_core_finish_partial(hf3fs_core(k), &k->u.admin.partial_req,
				     &k->u.admin.partial_res, &k->c->arena, &k->c->err, &done);
	if (rc == SKV_OK)
		on_ended(k);
	return rc;
}

static void on_start_done(void *ctx, int status)
{
	struct hf3fs_request *k = ctx;

	if (status == SKV_OK)
		status = settle(k);
	if (status != SKV_PENDING)
		k->part.done.fn(k->part.done.ctx, status);
}

static int import_portion(void *ctx)
{
	struct hf3fs_request *k = ctx;
	const struct skv_done done = { on_start_done, k };
	int rc;

	assert(k->part.at + k->part.n <= k->n_keys);
	k->u.admin.start_req = (struct skv_start_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		.request_id = "",
		.keys = k->keys + k->part.at,
		.n_keys = k->part.n,
		.names = k->u.admin.names + k->part.at,
		.offsets = k->u.admin.offsets + k->part.at,
		.deadline_ms = pages_of(k)->o.reserve_ms,
		.anonymous = true,
		.independent = true,
	};
	rc = skv_core_start(hf3fs_core(k), &k->u.admin.start_req, &k->u.admin.start_res,
			    &k->c->arena, &k->c->err, &done);
	return rc == SKV_OK ? settle(k) : rc;
}

/* In portions: open sessions may hold only part of the space. */
static int import_all(struct hf3fs_request *k)
{
	const uint64_t most = k->u.admin.have / 4 + 1;

	assert(k->n_keys <= SKV_MAX_KEYS);
	k->part = (struct skv_portions){ .total = k->n_keys,
					 .most = most < k->n_keys ? (uint32_t)most : k->n_keys,
					 .ask = import_portion,
					 .ctx = k,
					 .end = &k->c->done };
	return k->n_keys > 0 ? skv_portions_run(&k->part) : SKV_OK;
}

static int make_and_import(struct hf3fs_request *k)
{
	int rc;

	assert(skv_thread_locks == 0);
	rc = hf3fs_find(k);
	if (rc == SKV_E_NOT_FOUND && k->u.admin.num_pages == NOT_TOLD)
		return invalid(k, "num_pages", "is needed to make the space");
	if (rc == SKV_E_NOT_FOUND)
		rc = hf3fs_make(k, k->u.admin.num_pages);
	if (rc == SKV_OK)
		rc = read_size(k, &k->u.admin.have);
	return rc == SKV_OK ? import_all(k) : rc;
}

static void on_worker(struct job *job, bool expired)
{
	struct hf3fs_request *k =
		(struct hf3fs_request *)((char *)job - offsetof(struct hf3fs_request, job));
	int rc = expired ? SKV_E_TIMEOUT : make_and_import(k);

	if (rc != SKV_PENDING)
		k->c->done.fn(k->c->done.ctx, rc);
}

int hf3fs_admin_import(struct skv_request *c)
{
	const struct skv_json_node *body;
	struct hf3fs_request *k;
	int rc = open_body(c, &k, &body);

	if (rc == SKV_OK)
		rc = read_import(k, body);
	return rc == SKV_OK ? hf3fs_on_worker(k, on_worker) : rc;
}

void hf3fs_admin_import_write(struct skv_request *c)
{
	struct hf3fs_request *k = c->state;

	begin(c);
	skv_jout_field_u64(&c->out, "num_pages", k->u.admin.have);
	skv_jout_field_u64(&c->out, "imported", k->u.admin.imported);
	skv_jout_field_u64(&c->out, "skipped",
			   k->u.admin.there + k->u.admin.taken + k->u.admin.outside +
				   k->u.admin.unfit);
	skv_jout_field_u64(&c->out, "there", k->u.admin.there);
	skv_jout_field_u64(&c->out, "taken", k->u.admin.taken);
	skv_jout_field_u64(&c->out, "outside", k->u.admin.outside);
	skv_jout_field_u64(&c->out, "unfit", k->u.admin.unfit);
	skv_jout_close(&c->out, '}');
}

/* ---- clear ----------------------------------------------------------------------------------- */

int hf3fs_admin_clear(struct skv_request *c)
{
	const struct skv_json_node *body;
	struct hf3fs_request *k;
	int rc = open_body(c, &k, &body);

	if (rc != SKV_OK)
		return rc;
	k->u.admin.clear_req = (struct skv_clear_req){ k->space.tenant, k->space.id };
	return skv_core_clear(hf3fs_core(k), &k->u.admin.clear_req, &k->u.admin.clear_res,
			      &c->arena, &c->err, &c->done);
}

void hf3fs_admin_clear_write(struct skv_request *c)
{
	const struct hf3fs_request *k = c->state;

	begin(c);
	skv_jout_field_u64(&c->out, "deleted", k->u.admin.clear_res.deleted);
	skv_jout_close(&c->out, '}');
}
