/*
 * startup.c - the initial objects in KVCM's mode, from JSON of its admin service.
 *
 * No state. One thread.
 */
#include <skv/kvcm_run.h>

#include <string.h>

#include <skv/core.h>
#include <skv/proto_codec.h>

#include "model.h"

static int read_message(const char *file, const char *text, const ProtobufCMessageDescriptor *d,
			struct skv_arena *a, ProtobufCMessage **out, struct skv_error *err)
{
	struct skv_error cause;
	int rc = skv_proto_json.read(d, text, strlen(text), a, out, &cause);

	return rc == SKV_OK ? rc
			    : skv_fail(err, rc, "kvcm_startup_config", "%.120s: %.180s", file,
				       cause.message);
}

int kvcm_startup_storage(const char *file, const char *json, bool enabled,
			 const struct kvcm_model *model, struct skv_arena *a,
			 struct kvcm_startup_storage *out, struct skv_error *err)
{
	struct skv_storage_spec checked;
	struct skv_error cause;
	ProtobufCMessage *m;
	int rc = read_message(file, json, &kvcm_admin__storage_config__descriptor, a, &m, err);

	if (rc != SKV_OK)
		return rc;
	rc = kvcm_storage_spec((KvcmAdmin__StorageConfig *)m, model, "", a, &checked, &cause);
	if (rc != SKV_OK)
		return skv_fail(err, rc, "kvcm_startup_config", "%.100s: storage_config: %.180s",
				file, cause.message);
	*out = (struct kvcm_startup_storage){ .config = m, .name = checked.name,
					      .enabled = enabled };
	return SKV_OK;
}

int kvcm_startup_group(const char *file, const char *json, struct skv_arena *a,
		       struct kvcm_startup_group *out, struct skv_error *err)
{
	struct skv_group_spec checked;
	struct skv_error cause;
	ProtobufCMessage *m;
	int rc = read_message(file, json, &kvcm_admin__instance_group__descriptor, a, &m, err);

	if (rc != SKV_OK)
		return rc;
	rc = kvcm_group_spec((KvcmAdmin__InstanceGroup *)m, NULL, 0, a, &checked, &cause);
	if (rc != SKV_OK)
		return skv_fail(err, rc, "kvcm_startup_config", "%.100s: instance_group: %.180s",
				file, cause.message);
	*out = (struct kvcm_startup_group){ .group = m, .name = checked.name };
	return SKV_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int make_storage(const struct kvcm_startup_storage *s, const struct kvcm_model *model,
			struct skv_cluster *cluster, struct skv_arena *a, struct skv_error *err)
{
	struct skv_storage_view *v;
	int rc = skv_cluster_storage(cluster, s->name, a, &v, err);

	if (rc != SKV_E_NOT_FOUND)
		return rc;
	rc = kvcm_storage_create(cluster, s->config, model, err);
	if (rc == SKV_E_CONFLICT && strcmp(err->field, "name") == 0)
		return SKV_OK; /* somebody was faster */
	if (rc != SKV_OK || s->enabled)
		return rc;
	rc = skv_cluster_storage(cluster, s->name, a, &v, err);
	if (rc != SKV_OK)
		return rc;
	v[0].spec.enabled = false;
	return skv_cluster_storage_put(cluster, &v[0].spec, SKV_PUT_THERE, NULL, err);
}

static int make_group(const struct kvcm_startup_group *g, struct skv_cluster *cluster,
		      struct skv_arena *a, struct skv_error *err)
{
	struct skv_storage_view *storages;
	struct skv_group_view *v;
	struct skv_group_spec spec;
	uint32_t n;
	int rc = skv_cluster_group(cluster, g->name, a, &v, err);

	if (rc != SKV_E_NOT_FOUND)
		return rc;
	rc = skv_cluster_every_storage(cluster, "", a, &storages, &n, err);
	if (rc == SKV_OK)
		rc = kvcm_group_spec(g->group, storages, n, a, &spec, err);
	if (rc == SKV_OK)
		rc = skv_cluster_group_put(cluster, &spec, SKV_PUT_NEW, NULL, NULL, err);
	return rc == SKV_E_CONFLICT && strcmp(err->field, "name") == 0 ? SKV_OK : rc;
}

int kvcm_startup_make(const struct kvcm_startup *s, const struct kvcm_model *model,
		      struct skv_cluster *cluster, struct skv_error *err)
{
	struct skv_arena a;
	int rc = SKV_OK;

	skv_arena_init(&a);
	for (size_t i = 0; rc == SKV_OK && i < s->n_storages; i++)
		rc = make_storage(&s->storages[i], model, cluster, &a, err);
	for (size_t i = 0; rc == SKV_OK && i < s->n_groups; i++)
		rc = make_group(&s->groups[i], cluster, &a, err);
	skv_arena_destroy(&a);
	return rc;
}
