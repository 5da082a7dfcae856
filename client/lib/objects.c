/*
 * objects.c - storages, groups, instances and tenants: change, get, list, delete. No state; any
 * thread.
 *
 * Objects are JSON texts, as in the manager's API; a change reads the existing object, replaces the
 * named fields and puts the whole, because the manager's PUT takes an object as a whole. Only the
 * layout of an instance's blocks, which programs need, is a struct.
 */
#include "client.h"

#include <string.h>

#include <skv/json_out.h>

struct kind {
	const char *op_set, *op_get, *op_list, *op_delete;
	const char *path; /* of all of them */
	const char *view; /* schema of the answer */
};

static const struct kind kinds[] = {
	[SLABKV_STORAGE] = { "storage_put", "storage_get", "storages", "storage_delete",
			     "/v1/storages", "StorageView" },
	[SLABKV_GROUP] = { "group_put", "group_get", "groups", "group_delete", "/v1/groups",
			   "GroupView" },
	[SLABKV_INSTANCE] = { "instance_put", "instance_get", "instances", "instance_delete",
			      "/v1/instances", "InstanceView" },
	[SLABKV_TENANT] = { "tenant_put", "tenant_get", "tenants", "tenant_delete", "/v1/tenants",
			    "TenantView" },
};

/* Calls about one object; `x` has the answer of the newest one. */
struct object {
	struct slabkv *kv;
	const struct kind *kind;
	struct skv_exchange x;
};

/* `name` NULL: all of the kind. Pair with close_object, also after an error. */
static int name_object(struct object *o, struct slabkv *kv, enum slabkv_object kind,
		       const char *name, struct skv_error *err)
{
	int rc = SKV_OK;

	memset(o, 0, sizeof *o);
	if ((unsigned)kind > SLABKV_TENANT)
		return skv_fail(err, SKV_E_INVALID, "kind", "is one of enum slabkv_object");
	if (name && kind == SLABKV_INSTANCE)
		rc = skv_model_name_check(name, "name", err);
	else if (name)
		rc = skv_name_check(name, "name", err);
	if (rc != SKV_OK)
		return rc;
	o->kv = kv;
	o->kind = &kinds[kind];
	skv_exchange_begin(&o->x, o->kind->op_get, "GET", "%s%s%s", o->kind->path, name ? "/" : "",
			   name ? SKV_SEGMENT(name) : "");
	return SKV_OK;
}

/* The same at the entry of a public function. */
static int open_object(struct object *o, struct slabkv *kv, enum slabkv_object kind,
		       const char *name, struct skv_error *err)
{
	int rc = skv_enter(kv, err), named = name_object(o, kv, kind, name, rc ? NULL : err);

	return rc == SKV_OK ? named : rc;
}

static void close_object(struct object *o) { skv_exchange_end(&o->x); }

enum form { PROTOBUF, JSON };

static int call(struct object *o, const char *op, const char *method, enum form form,
		struct skv_error *err)
{
	o->x.call.op = op;
	o->x.call.method = method;
	o->x.call.json = form == JSON;
	o->x.call.body = strcmp(method, "PUT") == 0 ? &o->x.body : NULL;
	skv_buf_destroy(&o->x.answer.body);
	return skv_exchange_do(o->kv, &o->x, err);
}

/* The object as it is. */
static int get(struct object *o, enum form form, struct skv_error *err)
{
	return call(o, o->kind->op_get, "GET", form, err);
}

/* Ends a public function whose result is the text of the answer. */
static int end(struct object *o, int rc, const char **json, struct slabkv_error *err,
	       struct skv_error *e)
{
	if (rc == SKV_OK && json)
		rc = skv_result_text(&o->x.answer.body, json, e);
	close_object(o);
	return skv_result_fail(err, e, rc);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

int slabkv_object_get(struct slabkv *kv, enum slabkv_object kind, const char *name,
		      const char **json, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	struct object o;
	int rc = open_object(&o, kv, kind, name, &e);

	if (rc == SKV_OK)
		rc = call(&o, name ? o.kind->op_get : o.kind->op_list, "GET", JSON, &e);
	return end(&o, rc, json, err, &e);
}

int slabkv_object_delete(struct slabkv *kv, enum slabkv_object kind, const char *name,
			 struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	struct object o;
	int rc = open_object(&o, kv, kind, name ? name : "", &e);

	if (rc == SKV_OK)
		rc = call(&o, o.kind->op_delete, "DELETE", PROTOBUF, &e);
	return end(&o, rc == SKV_E_NOT_FOUND ? SKV_OK : rc, NULL, err, &e);
}

/* Overlays the fields on the existing object, or creates an object with these fields. */
static int change(struct object *o, const char *fields, struct skv_error *err)
{
	struct skv_arena a;
	const struct skv_v1_in in = { .arena = &a };
	int rc = get(o, PROTOBUF, err);
	const bool is_new = rc == SKV_E_NOT_FOUND;

	skv_arena_init(&a);
	if (rc == SKV_OK || is_new)
		rc = skv_v1_change(&in, o->kind->view, is_new ? NULL : &o->x.answer.body, fields,
				   &o->x.body, err);
	if (rc == SKV_OK)
		rc = call(o, o->kind->op_set, "PUT", JSON, err);
	skv_arena_destroy(&a);
	return rc;
}

int slabkv_object_set(struct slabkv *kv, enum slabkv_object kind, const char *name,
		      const char *fields, const char **json, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	struct object o;
	int rc = open_object(&o, kv, kind, name ? name : "", &e);

	if (rc == SKV_OK)
		rc = change(&o, fields, &e);
	return end(&o, rc, json, err, &e);
}

/* ---- instances ------------------------------------------------------------------------------- */

static uint64_t number(uint64_t v) { return v == SLABKV_NONE ? 0 : v; }

static void put_specs(struct skv_buf *b, const struct slabkv_instance *i)
{
	skv_jout_name(b, "specs");
	skv_jout_open(b, '[');
	for (uint32_t s = 0; s < i->n_specs; s++) {
		const struct slabkv_spec *spec =
			SLABKV_AT(struct slabkv_spec, i->specs, i->spec_size, s);

		skv_jout_open(b, '{');
		skv_jout_field_string(b, "name", spec->name ? spec->name : "");
		skv_jout_field_u64(b, "size", spec->size);
		skv_jout_close(b, '}');
	}
	skv_jout_close(b, ']');
}

/* The members that are named, as fields. */
static void put_instance(struct skv_buf *b, const struct slabkv_instance *i)
{
	skv_jout_begin(b);
	if (i->group)
		skv_jout_field_string(b, "group", i->group);
	if (i->block_tokens)
		skv_jout_field_u64(b, "block_tokens", i->block_tokens);
	if (i->specs)
		put_specs(b, i);
	if (i->extra)
		skv_jout_field_string(b, "extra", i->extra);
	if (i->weight)
		skv_jout_field_u64(b, "weight", number(i->weight));
	if (i->capacity)
		skv_jout_field_u64(b, "capacity", number(i->capacity));
	skv_jout_close(b, '}');
	skv_put_u8(b, 0);
}

int slabkv_instance_put(struct slabkv *kv, const struct slabkv_instance *i,
			struct slabkv_error *err)
{
	const bool whole = SKV_HAS(i, capacity);
	struct skv_buf fields = { 0 };
	struct skv_error e = { 0 };
	struct object o;
	int rc = open_object(&o, kv, SLABKV_INSTANCE, whole && i->id ? i->id : "", &e);

	if (!whole)
		rc = skv_size_refuse(&e, "sizeof");
	else if (rc == SKV_OK && i->specs && i->spec_size < sizeof *i->specs)
		rc = skv_fail(&e, SKV_E_INVALID, "spec_size", "is sizeof(struct slabkv_spec)");
	else if (rc == SKV_OK && i->n_specs > SKV_MAX_SPECS)
		rc = skv_fail(&e, SKV_E_INVALID, "specs", "1..%u specs", SKV_MAX_SPECS);
	if (rc == SKV_OK)
		put_instance(&fields, i);
	if (rc == SKV_OK && fields.failed)
		rc = skv_fail(&e, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = change(&o, (const char *)fields.data, &e);
	skv_buf_destroy(&fields);
	return end(&o, rc, NULL, err, &e);
}

/* Texts of the view are in the result's arena. */
static int make_layout(struct slabkv_instance *out, const struct skv_instance_view *v,
		       struct skv_error *err)
{
	struct slabkv_spec *specs = skv_arena_calloc(skv_result_arena(out), v->spec.n_specs,
						     sizeof *specs);

	if (!specs)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < v->spec.n_specs; i++)
		specs[i] = (struct slabkv_spec){ v->spec.specs[i].name, v->spec.specs[i].size };
	*out = (struct slabkv_instance){ .size = sizeof *out,
					 .id = v->spec.id,
					 .group = v->spec.group,
					 .block_tokens = v->spec.block_tokens,
					 .specs = specs,
					 .spec_size = sizeof *specs,
					 .n_specs = v->spec.n_specs,
					 .extra = v->spec.extra,
					 .weight = v->spec.weight ? v->spec.weight : 1,
					 .capacity = v->spec.capacity ? v->spec.capacity
						     : SLABKV_NONE };
	return SKV_OK;
}

int slabkv_instance_get(struct slabkv *kv, const char *id, const struct slabkv_instance **out,
			struct slabkv_error *err)
{
	struct slabkv_instance *layout = skv_result_new(sizeof *layout);
	struct skv_instance_view v = { .blocks = 0 };
	struct skv_error e = { 0 };
	struct object o;
	int rc = open_object(&o, kv, SLABKV_INSTANCE, id ? id : "", &e);

	if (rc == SKV_OK && !layout)
		rc = skv_fail(&e, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = get(&o, PROTOBUF, &e);
	if (rc == SKV_OK)
		rc = skv_pb_read_instance_view(
			&(struct skv_v1_in){ .arena = skv_result_arena(layout) },
			SKV_ANSWER(o.x), &v, &e);
	if (rc == SKV_OK)
		rc = make_layout(layout, &v, &e);
	if (rc == SKV_OK)
		*out = layout;
	else
		slabkv_free(layout);
	return end(&o, rc, NULL, err, &e);
}

/* ---- a storage, for the directories mounted here --------------------------------------------- */

int skv_object_storage(struct slabkv *kv, const char *name, struct skv_arena *a,
		       struct skv_storage_view *out, struct skv_error *err)
{
	struct object o;
	int rc = name_object(&o, kv, SLABKV_STORAGE, name ? name : "", err);

	memset(out, 0, sizeof *out);
	if (rc == SKV_OK)
		rc = get(&o, PROTOBUF, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_storage_view(&(struct skv_v1_in){ .arena = a }, SKV_ANSWER(o.x),
					      out, err);
	close_object(&o);
	return rc;
}
