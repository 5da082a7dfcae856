/*
 * startup.c - the objects that a manager in the peer's mode begins with, from the JSON of its admin service.
 *
 * No state. One thread.
 */
#include <kvb/kvcm_run.h>

#include <string.h>

#include <kvb/core.h>
#include <kvb/proto_codec.h>

#include "model.h"

static int read_message(const char *file, const char *text, const ProtobufCMessageDescriptor *d, struct kvb_arena *a,
			ProtobufCMessage **out, struct kvb_error *err)
{
	struct kvb_error cause;
	int rc = kvb_proto_json.read(d, text, strlen(text), a, out, &cause);

	return rc == KVB_OK ? rc
			    : kvb_fail(err, rc, "kvcm_startup_config", "%.120s: %.180s", file, cause.message);
}

int kvcm_startup_storage(const char *file, const char *json, bool enabled, const struct kvcm_model *model,
			 struct kvb_arena *a, struct kvcm_startup_storage *out, struct kvb_error *err)
{
	struct kvb_storage_spec checked;
	struct kvb_error cause;
	ProtobufCMessage *m;
	int rc = read_message(file, json, &kvcm_admin__storage_config__descriptor, a, &m, err);

	if (rc != KVB_OK)
		return rc;
	rc = kvcm_storage_spec((KvcmAdmin__StorageConfig *)m, model, "", a, &checked, &cause);
	if (rc != KVB_OK)
		return kvb_fail(err, rc, "kvcm_startup_config", "%.100s: storage_config: %.180s", file, cause.message);
	*out = (struct kvcm_startup_storage){ .config = m, .name = checked.name, .enabled = enabled };
	return KVB_OK;
}

int kvcm_startup_group(const char *file, const char *json, struct kvb_arena *a, struct kvcm_startup_group *out,
		       struct kvb_error *err)
{
	struct kvb_group_spec checked;
	struct kvb_error cause;
	ProtobufCMessage *m;
	int rc = read_message(file, json, &kvcm_admin__instance_group__descriptor, a, &m, err);

	if (rc != KVB_OK)
		return rc;
	rc = kvcm_group_spec((KvcmAdmin__InstanceGroup *)m, NULL, 0, a, &checked, &cause);
	if (rc != KVB_OK)
		return kvb_fail(err, rc, "kvcm_startup_config", "%.100s: instance_group: %.180s", file, cause.message);
	*out = (struct kvcm_startup_group){ .group = m, .name = checked.name };
	return KVB_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int make_storage(const struct kvcm_startup_storage *s, const struct kvcm_model *model,
			struct kvb_core *core, struct kvb_arena *a, struct kvb_error *err)
{
	struct kvb_storage_view *v;
	uint32_t n;
	int rc = kvb_core_storages(core, s->name, a, &v, &n, err);

	if (rc != KVB_E_NOT_FOUND)
		return rc;
	rc = kvcm_storage_put(core, s->config, model, NULL, err);
	if (rc != KVB_OK || s->enabled)
		return rc;
	rc = kvb_core_storages(core, s->name, a, &v, &n, err);
	if (rc != KVB_OK)
		return rc;
	v[0].spec.enabled = false;
	return kvb_core_storage_put(core, &v[0].spec, NULL, err);
}

static int make_group(const struct kvcm_startup_group *g, struct kvb_core *core, struct kvb_arena *a,
		      struct kvb_error *err)
{
	struct kvb_storage_view *storages;
	struct kvb_group_view *v;
	struct kvb_group_spec spec;
	uint32_t n;
	int rc = kvb_core_groups(core, g->name, a, &v, &n, err);

	if (rc != KVB_E_NOT_FOUND)
		return rc;
	rc = kvb_core_storages(core, NULL, a, &storages, &n, err);
	if (rc == KVB_OK)
		rc = kvcm_group_spec(g->group, storages, n, a, &spec, err);
	return rc == KVB_OK ? kvb_core_group_put(core, &spec, NULL, NULL, err) : rc;
}

int kvcm_startup_make(const struct kvcm_startup *s, const struct kvcm_model *model, struct kvb_core *core,
		      struct kvb_error *err)
{
	struct kvb_arena a;
	int rc = KVB_OK;

	kvb_arena_init(&a);
	for (size_t i = 0; rc == KVB_OK && i < s->n_storages; i++)
		rc = make_storage(&s->storages[i], model, core, &a, err);
	for (size_t i = 0; rc == KVB_OK && i < s->n_groups; i++)
		rc = make_group(&s->groups[i], core, &a, err);
	kvb_arena_destroy(&a);
	return rc;
}
