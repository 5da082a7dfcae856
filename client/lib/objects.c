/*
 * objects.c - storages, groups and instances: put, get, list, delete. No state; any thread.
 *
 * The three kinds differ in their paths, in the codec that reads or writes them, and in what a put
 * may name: one table for each. A put asks what is there, lays what is named over it and puts the
 * whole, because the manager's PUT takes an object as a whole.
 */
#include "objects.h"
#include "paths.h"

#include <stdio.h>
#include <string.h>

/* One object in any of its forms; which one, its kind knows. */
union view {
	struct skv_storage_view storage;
	struct skv_group_view group;
	struct skv_instance_view instance;
};

struct kind {
	const char *op_put, *op_get, *op_delete, *op_list;
	const char *path; /* one %s: the name */
	const char *all;  /* path of the list */
	int (*check)(const char *name, const char *field, struct skv_error *err);
	int (*read)(const struct skv_v1_codec *codec, const struct skv_v1_in *in,
		    const struct skv_buf *body, union view *out, struct skv_error *err);
	void (*write)(const struct skv_v1_codec *codec, struct skv_buf *out, const union view *v);
	const char **(*name)(union view *v);
	const void *(*info)(struct skv_arena *a, const union view *v);
};

static int object_call(struct slabkv *kv, const char *op, const char *method, const char *format,
		       const char *name, const struct kind *kind, const union view *body,
		       struct skv_answer *a, struct skv_error *err)
	__attribute__((format(printf, 4, 0)));

/* The name has been checked. */
static int object_call(struct slabkv *kv, const char *op, const char *method, const char *format,
		       const char *name, const struct kind *kind, const union view *body,
		       struct skv_answer *a, struct skv_error *err)
{
	struct skv_buf text = { 0 };
	char path[SKV_PATH_MAX];
	struct skv_call c = { .op = op, .method = method, .path = path,
			      .body = body ? &text : NULL };
	int rc;

	SKV_CHECK(name && kind->check(name, "name", NULL) == SKV_OK);
	snprintf(path, sizeof path, format, skv_path_name(name, (char[SKV_PATH_NAME]){ 0 }));
	c.codec = kv->codec;
	if (body)
		kind->write(c.codec, &text, body);
	rc = skv_call_do(kv, &c, a, err);
	skv_buf_destroy(&text);
	return rc;
}

/* ---- the kinds ------------------------------------------------------------------------------- */

static int read_storage(const struct skv_v1_codec *codec, const struct skv_v1_in *in,
			const struct skv_buf *body, union view *out, struct skv_error *err)
{
	return codec->read_storage_view(in, (const char *)body->data, body->len, &out->storage,
					err);
}

static int read_group(const struct skv_v1_codec *codec, const struct skv_v1_in *in,
		      const struct skv_buf *body, union view *out, struct skv_error *err)
{
	return codec->read_group_view(in, (const char *)body->data, body->len, &out->group, err);
}

static int read_instance(const struct skv_v1_codec *codec, const struct skv_v1_in *in,
			 const struct skv_buf *body, union view *out, struct skv_error *err)
{
	return codec->read_instance_view(in, (const char *)body->data, body->len, &out->instance,
					 err);
}

static void write_storage(const struct skv_v1_codec *codec, struct skv_buf *out,
			  const union view *v)
{
	codec->write_storage(out, &v->storage.spec);
}

static void write_group(const struct skv_v1_codec *codec, struct skv_buf *out, const union view *v)
{
	codec->write_group(out, &v->group.spec);
}

static void write_instance(const struct skv_v1_codec *codec, struct skv_buf *out,
			   const union view *v)
{
	codec->write_instance(out, &v->instance.spec);
}

static const char **storage_name(union view *v) { return &v->storage.spec.name; }
static const char **group_name(union view *v) { return &v->group.spec.name; }
static const char **instance_name(union view *v) { return &v->instance.spec.id; }

static const void *storage_info(struct skv_arena *a, const union view *v)
{
	return skv_storage_info(a, &v->storage);
}

static const void *group_info(struct skv_arena *a, const union view *v)
{
	return skv_group_info(a, &v->group);
}

static const void *instance_info(struct skv_arena *a, const union view *v)
{
	return skv_instance_info(a, &v->instance);
}

static const struct kind storages = { "storage_put", "storage_get",    "storage_delete",
				      "storages",    SKV_PATH_STORAGE, SKV_PATH_STORAGES,
				      skv_name_check, read_storage,    write_storage,
				      storage_name,  storage_info };
static const struct kind groups = { "group_put",    "group_get",     "group_delete", "groups",
				    SKV_PATH_GROUP, SKV_PATH_GROUPS, skv_name_check, read_group,
				    write_group,    group_name,      group_info };
static const struct kind instances = { "instance_put",	     "instance_get",    "instance_delete",
				       "instances",	     SKV_PATH_INSTANCE, SKV_PATH_INSTANCES,
				       skv_model_name_check, read_instance,     write_instance,
				       instance_name,        instance_info };

/* ---- get, list, delete ----------------------------------------------------------------------- */

/* The view of an answer, its texts in the arena. */
static int read_view(const struct kind *kind, const struct skv_answer *answer, const char *name,
		     struct skv_arena *a, union view *out, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	int rc = kind->read(answer->codec, &in, &answer->body, out, err);
	const char **at = kind->name(out);

	if (rc == SKV_OK && !*at)
		*at = skv_arena_strndup(a, name, strlen(name));
	return rc == SKV_OK && !*at ? skv_fail(err, SKV_E_NOMEM, NULL, "out of memory") : rc;
}

static int get(struct slabkv *kv, const struct kind *kind, const char *name, struct skv_arena *a,
	       union view *out, struct skv_error *err)
{
	struct skv_answer answer = { 0 };
	int rc = kind->check(name, "name", err);

	memset(out, 0, sizeof *out);
	if (rc == SKV_OK)
		rc = object_call(kv, kind->op_get, "GET", kind->path, name, kind, NULL, &answer,
				 err);
	if (rc == SKV_OK)
		rc = read_view(kind, &answer, name, a, out, err);
	skv_buf_destroy(&answer.body);
	return rc;
}

/* Each object is a result of its own: slabkv_free goes by its address. */
static int get_info(struct slabkv *kv, const struct kind *kind, size_t size, const char *name,
		    const void **out, struct skv_error *err)
{
	void *result = skv_result_new(size);
	const void *info;
	union view v;
	int rc = result ? get(kv, kind, name, skv_result_arena(result), &v, err)
			: skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");

	if (rc == SKV_OK) {
		info = kind->info(skv_result_arena(result), &v);
		if (info)
			memcpy(result, info, size);
		else
			rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	if (rc == SKV_OK)
		*out = result;
	else
		slabkv_free(result);
	return rc;
}

/* The public lists have one shape. */
struct list {
	uint32_t n;
	const void **v;
};
#define SAME_SHAPE(type)                                                             \
	_Static_assert(sizeof(struct type) == sizeof(struct list) &&                 \
			       offsetof(struct type, v) == offsetof(struct list, v), \
		       #type)
SAME_SHAPE(slabkv_storages);
SAME_SHAPE(slabkv_groups);
SAME_SHAPE(slabkv_instances);

/* Reads one element of the answer's list. */
static int add_one(const struct kind *kind, const char *from, size_t n, struct list *to,
		   struct skv_error *err)
{
	struct skv_arena *a = skv_result_arena(to);
	const struct skv_v1_in in = { .arena = a };
	const struct skv_buf body = { .data = (uint8_t *)(uintptr_t)from, .len = n };
	union view v;
	int rc;

	memset(&v, 0, sizeof v);
	rc = kind->read(&skv_v1_pb, &in, &body, &v, err);
	if (rc != SKV_OK)
		return rc;
	to->v[to->n] = kind->info(a, &v);
	if (!to->v[to->n])
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	to->n++;
	return SKV_OK;
}

/* The next element of a list, whose only field is number 1; NULL: there is none, or the bytes are
 * no list (in->failed). */
static const char *next_element(struct skv_rd *in, size_t *n)
{
	if (!skv_rd_left(in))
		return NULL;
	in->failed |= skv_get_varint(in) != (1 << 3 | 2); /* wire type 2: a length and bytes */
	return skv_get_string(in, n, SIZE_MAX);
}

static int read_list(const struct kind *kind, const struct skv_buf *body, struct list *to,
		     struct skv_error *err)
{
	struct skv_rd count = skv_rd_make(body->data, body->len), in = count;
	const char *one;
	size_t most = 0, n;
	int rc = SKV_OK;

	while (next_element(&count, &n))
		most++;
	to->v = skv_arena_calloc(skv_result_arena(to), most + 1, sizeof *to->v);
	if (!to->v)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	while (rc == SKV_OK && (one = next_element(&in, &n)) != NULL)
		rc = add_one(kind, one, n, to, err);
	if (rc == SKV_OK && count.failed)
		return skv_fail(err, SKV_E_INTERNAL, NULL, "%s: the answer is not a list",
				kind->op_list);
	return rc;
}

static int list(struct slabkv *kv, const struct kind *kind, const void **out,
		struct slabkv_error *err)
{
	struct list *to = skv_result_new(sizeof *to);
	const struct skv_call c = { .op = kind->op_list, .method = "GET", .path = kind->all,
				    .codec = &skv_v1_pb };
	struct skv_answer answer = { 0 };
	struct skv_error e = { 0 };
	int rc = to ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = skv_call_do(kv, &c, &answer, &e);
	if (rc == SKV_OK)
		rc = read_list(kind, &answer.body, to, &e);
	skv_buf_destroy(&answer.body);
	if (rc == SKV_OK)
		*out = to;
	else
		slabkv_free(to);
	return skv_result_fail(err, &e, rc);
}

static int delete (struct slabkv *kv, const struct kind *kind, const char *name,
		   struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	struct skv_answer a = { 0 };
	int rc = skv_enter(kv, &e);

	if (rc == SKV_OK)
		rc = kind->check(name, "name", &e);
	if (rc == SKV_OK)
		rc = object_call(kv, kind->op_delete, "DELETE", kind->path, name, kind, NULL, &a,
				 &e);
	skv_buf_destroy(&a.body);
	return skv_result_fail(err, &e, rc == SKV_E_NOT_FOUND ? SKV_OK : rc);
}

/* ---- put ------------------------------------------------------------------------------------- */

static void lay_text(const char *from, const char **to)
{
	if (from)
		*to = from;
}

static uint64_t number(uint64_t from, uint64_t was)
{
	return from == 0 ? was : from == SLABKV_NONE ? 0 : from;
}

static int lay_number(uint64_t from, uint64_t most, const char *field, uint32_t *to,
		      struct skv_error *err)
{
	uint64_t v = number(from, *to);

	if (v > most)
		return skv_fail(err, SKV_E_INVALID, field, "at most %llu",
				(unsigned long long)most);
	*to = (uint32_t)v;
	return SKV_OK;
}

static void lay_switch(enum slabkv_switch from, bool *to)
{
	if (from != SLABKV_KEEP)
		*to = from == SLABKV_YES;
}

static int lay_storage(const void *from, union view *v, struct skv_arena *a, struct skv_error *err)
{
	const struct slabkv_storage *s = from;
	struct skv_storage_spec *to = &v->storage.spec;
	int rc = lay_number(s->high_percent, 100, "high_percent", &to->high_percent, err);

	(void)a;
	if (rc == SKV_OK)
		rc = lay_number(s->low_percent, 100, "low_percent", &to->low_percent, err);
	lay_text(s->type, &to->type);
	lay_text(s->root, &to->root);
	lay_text(s->client_root, &to->client_root);
	lay_text(s->client_mount, &to->client_mount);
	to->capacity = number(s->capacity, to->capacity);
	to->file_size = number(s->file_size, to->file_size);
	to->unit = number(s->unit, to->unit);
	to->chunk_size = number(s->chunk_size, to->chunk_size);
	lay_switch(s->enabled, &to->enabled);
	lay_switch(s->draining, &to->draining);
	lay_switch(s->any_mount, &to->any_mount);
	if (s->fs_master) {
		to->fs_master = s->fs_master;
		to->n_fs_master = s->n_fs_master;
	}
	return rc;
}

static int lay_group(const void *from, union view *v, struct skv_arena *a, struct skv_error *err)
{
	const size_t size = ((const struct slabkv_group *)from)->size;
	struct slabkv_group named = { 0 }; /* what an older caller does not know is not named */
	const struct slabkv_group *g = &named;
	struct skv_group_spec *to = &v->group.spec;
	int rc;

	(void)a;
	memcpy(&named, from, size < sizeof named ? size : sizeof named);
	rc = lay_number(g->max_instances, UINT32_MAX, "max_instances", &to->max_instances, err);
	for (uint32_t i = 0; rc == SKV_OK && g->storages && i < g->n_storages; i++)
		rc = skv_name_check(g->storages[i], "storages", err);
	if (rc == SKV_OK)
		rc = lay_number(g->high_percent, 100, "high_percent", &to->high_percent, err);
	if (rc == SKV_OK)
		rc = lay_number(g->low_percent, 100, "low_percent", &to->low_percent, err);
	if (rc == SKV_OK)
		rc = lay_number(g->pin_percent, 100, "pin_percent", &to->pin_percent, err);
	if (rc == SKV_OK)
		rc = lay_number(g->promote_after, SKV_MAX_PROMOTE, "promote_after",
				&to->promote_after, err);
	if (rc == SKV_OK && ((int)g->share < SLABKV_SHARE_KEEP || g->share > SLABKV_SHARE_FIXED))
		rc = skv_fail(err, SKV_E_INVALID, "share", "group, proportional or fixed");
	if (rc != SKV_OK)
		return rc;
	to->capacity = number(g->capacity, to->capacity);
	to->max_idle_ms = number(g->max_idle_ms, to->max_idle_ms);
	to->max_blocks = number(g->max_blocks, to->max_blocks);
	if (g->storages) {
		to->storages = g->storages;
		to->n_storages = g->n_storages;
	}
	lay_text(g->policy, &to->policy);
	to->ttl_ms = number(g->ttl_ms, to->ttl_ms);
	lay_text(g->tier_of, &to->tier_of);
	lay_switch(g->write_through, &to->write_through);
	lay_switch(g->replicate, &to->replicate);
	if (g->share != SLABKV_SHARE_KEEP)
		to->share = (enum skv_share)((int)g->share - 1);
	return SKV_OK;
}

static int lay_specs(const struct slabkv_instance *i, struct skv_instance_spec *to,
		     struct skv_arena *a, struct skv_error *err)
{
	struct skv_spec *v;
	int rc = SKV_OK;

	if (!i->specs || i->n_specs < 1 || i->n_specs > SKV_MAX_SPECS)
		return skv_fail(err, SKV_E_INVALID, "specs", "1..%u specs", SKV_MAX_SPECS);
	if (i->spec_size < sizeof *i->specs)
		return skv_fail(err, SKV_E_INVALID, "spec_size", "is sizeof(struct slabkv_spec)");
	v = skv_arena_calloc(a, i->n_specs, sizeof *v);
	if (!v)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t s = 0; rc == SKV_OK && s < i->n_specs; s++) {
		const struct slabkv_spec *spec =
			SLABKV_AT(struct slabkv_spec, i->specs, i->spec_size, s);

		rc = skv_name_check(spec->name, "specs.name", err);
		v[s] = (struct skv_spec){ spec->name, spec->size };
	}
	to->specs = v;
	to->n_specs = i->n_specs;
	return rc;
}

static int lay_instance(const void *from, union view *v, struct skv_arena *a, struct skv_error *err)
{
	const struct slabkv_instance *i = from;
	struct skv_instance_spec *to = &v->instance.spec;
	int rc = i->group ? skv_name_check(i->group, "group", err) : SKV_OK;

	if (rc == SKV_OK && (i->specs || to->n_specs == 0))
		rc = lay_specs(i, to, a, err);
	if (rc == SKV_OK)
		rc = lay_number(i->weight, SKV_MAX_WEIGHT, "weight", &to->weight, err);
	lay_text(i->group, &to->group);
	lay_text(i->extra, &to->extra);
	to->capacity = number(i->capacity, to->capacity);
	if (i->block_tokens)
		to->block_tokens = i->block_tokens;
	return rc;
}

/* The values in effect, or the defaults of a new object. */
static int before_put(struct slabkv *kv, const struct kind *kind, const char *name,
		      const union view *fresh, struct skv_arena *a, union view *v,
		      struct skv_error *err)
{
	int rc = get(kv, kind, name, a, v, err);

	if (rc != SKV_E_NOT_FOUND)
		return rc;
	*v = *fresh;
	skv_error_clear(err);
	return SKV_OK;
}

static int put(struct slabkv *kv, const struct kind *kind, const char *name,
	       const union view *fresh, const void *named, bool whole,
	       int (*lay)(const void *from, union view *v, struct skv_arena *a,
			  struct skv_error *err),
	       struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	struct skv_answer answer = { 0 };
	struct skv_arena a;
	union view v;
	int rc = skv_enter(kv, &e);

	skv_arena_init(&a);
	if (rc == SKV_OK && !whole)
		rc = skv_size_refuse(&e, "sizeof");
	if (rc == SKV_OK)
		rc = before_put(kv, kind, name, fresh, &a, &v, &e);
	if (rc == SKV_OK)
		rc = lay(named, &v, &a, &e);
	if (rc == SKV_OK)
		rc = object_call(kv, kind->op_put, "PUT", kind->path, name, kind, &v, &answer, &e);
	skv_buf_destroy(&answer.body);
	skv_arena_destroy(&a);
	return skv_result_fail(err, &e, rc);
}

/* ---- the public functions -------------------------------------------------------------------- */

int slabkv_storage_put(struct slabkv *kv, const struct slabkv_storage *s, struct slabkv_error *err)
{
	static const union view fresh =
		{ .storage = { .spec = { .type = "file", .root = "", .enabled = true } } };

	return put(kv, &storages, s->name, &fresh, s, SKV_HAS(s, n_fs_master), lay_storage, err);
}

int slabkv_group_put(struct slabkv *kv, const struct slabkv_group *g, struct slabkv_error *err)
{
	static const union view fresh = { .group = { .spec = { .policy = "" } } };

	return put(kv, &groups, g->name, &fresh, g, SKV_HAS(g, share), lay_group, err);
}

int slabkv_instance_put(struct slabkv *kv, const struct slabkv_instance *i,
			struct slabkv_error *err)
{
	static const union view fresh =
		{ .instance = { .spec = { .tenant = "", .group = "default", .extra = "" } } };

	return put(kv, &instances, i->id, &fresh, i, SKV_HAS(i, capacity), lay_instance, err);
}

int skv_object_storage(struct slabkv *kv, const char *name, const struct slabkv_storage_info **out,
		       struct skv_error *err)
{
	const void *info;
	int rc = get_info(kv, &storages, sizeof **out, name, &info, err);

	if (rc == SKV_OK)
		*out = info;
	return rc;
}

int slabkv_storage_get(struct slabkv *kv, const char *name, const struct slabkv_storage_info **out,
		       struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	int rc = skv_enter(kv, &e);

	return skv_result_fail(err, &e, rc == SKV_OK ? skv_object_storage(kv, name, out, &e) : rc);
}

int slabkv_group_get(struct slabkv *kv, const char *name, const struct slabkv_group_info **out,
		     struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	const void *info;
	int rc = skv_enter(kv, &e);

	if (rc == SKV_OK)
		rc = get_info(kv, &groups, sizeof **out, name, &info, &e);
	if (rc == SKV_OK)
		*out = info;
	return skv_result_fail(err, &e, rc);
}

int slabkv_instance_get(struct slabkv *kv, const char *id, const struct slabkv_instance_info **out,
			struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	const void *info;
	int rc = skv_enter(kv, &e);

	if (rc == SKV_OK)
		rc = get_info(kv, &instances, sizeof **out, id, &info, &e);
	if (rc == SKV_OK)
		*out = info;
	return skv_result_fail(err, &e, rc);
}

int slabkv_storages(struct slabkv *kv, const struct slabkv_storages **out, struct slabkv_error *err)
{
	const void *all;
	int rc = list(kv, &storages, &all, err);

	if (rc == SLABKV_OK)
		*out = all;
	return rc;
}

int slabkv_groups(struct slabkv *kv, const struct slabkv_groups **out, struct slabkv_error *err)
{
	const void *all;
	int rc = list(kv, &groups, &all, err);

	if (rc == SLABKV_OK)
		*out = all;
	return rc;
}

int slabkv_instances(struct slabkv *kv, const struct slabkv_instances **out,
		     struct slabkv_error *err)
{
	const void *all;
	int rc = list(kv, &instances, &all, err);

	if (rc == SLABKV_OK)
		*out = all;
	return rc;
}

int slabkv_storage_delete(struct slabkv *kv, const char *name, struct slabkv_error *err)
{
	return delete (kv, &storages, name, err);
}

int slabkv_group_delete(struct slabkv *kv, const char *name, struct slabkv_error *err)
{
	return delete (kv, &groups, name, err);
}

int slabkv_instance_delete(struct slabkv *kv, const char *id, struct slabkv_error *err)
{
	return delete (kv, &instances, id, err);
}
