/*
 * meta_instance.c - registrations: registerInstance, getInstanceInfo.
 *
 * Registering again is a question whether all is the same. No state.
 */
#include "meta.h"

#include <assert.h>

/* ---- registerInstance ------------------------------------------------------------------------ */

static const char *missing_field(const KvcmMeta__RegisterInstanceRequest *m)
{
	if (!*m->instance_group)
		return "instance_group";
	if (!*m->instance_id)
		return "instance_id";
	if (m->block_size <= 0)
		return "block_size";
	if (m->n_location_spec_infos == 0)
		return "location_spec_infos";
	for (size_t i = 0; i < m->n_location_spec_infos; i++) {
		if (!*m->location_spec_infos[i]->name)
			return "location_spec_infos.name";
		if (m->location_spec_infos[i]->size <= 0)
			return "location_spec_infos.size";
	}
	if (!m->model_deployment)
		return "model_deployment";
	if (!*m->model_deployment->model_name)
		return "model_deployment.model_name";
	return *m->model_deployment->dtype ? NULL : "model_deployment.dtype";
}

/* SKV_OK: it is there and the same. SKV_E_NOT_FOUND: it is not there. */
static int compare(struct kvcm_request *k, const struct skv_instance_spec *asked)
{
	const KvcmMeta__InstanceInfo *have, *want = kvcm_instance_message(asked, &k->c->arena);
	int rc = kvcm_take_info(k, asked->id, &have);
	const char *fields;

	if (rc != SKV_OK)
		return rc;
	fields = want ? kvcm_instance_differs(have, want, &k->c->arena) : NULL;
	if (!fields)
		return kvcm_nomem(k);
	if (*fields)
		return skv_fail(&k->c->err, SKV_E_CONFLICT, NULL,
				"instance %s is registered with other data: %s", asked->id, fields);
	return SKV_OK;
}

static int put(struct kvcm_request *k, const struct skv_instance_spec *spec)
{
	int rc = skv_tenant_use(k->c, SKV_OWNED_GROUP, spec->group);

	if (rc == SKV_OK)
		rc = skv_cluster_instance_put(kvcm_cluster(k), spec, SKV_PUT_NEW, NULL, &k->c->err);
	if (rc == SKV_E_CONFLICT)
		return compare(k, spec); /* somebody was faster */
	if (rc == SKV_E_NOT_FOUND)
		return skv_fail(&k->c->err, rc, "instance_group", "there is no instance group %s",
				spec->group);
	return rc;
}

static int tell_storages(struct kvcm_request *k, const char *group, char **out)
{
	struct skv_storage_view *storages;
	struct skv_group_view *v;
	KvcmAdmin__InstanceGroup *m;
	struct skv_buf text;
	uint32_t n_storages;
	int rc = skv_cluster_group(kvcm_cluster(k), group, &k->c->arena, &v, &k->c->err);

	if (rc == SKV_OK)
		rc = skv_cluster_every_storage(kvcm_cluster(k), "", &k->c->arena, &storages,
					       &n_storages, &k->c->err);
	if (rc != SKV_OK)
		return rc;
	m = kvcm_group_message(&v[0].spec, &k->c->arena);
	if (!m)
		return kvcm_nomem(k);
	skv_buf_init(&text);
	kvcm_storage_configs(m, storages, n_storages, &k->c->arena, &text);
	*out = text.failed ? NULL
			   : skv_arena_strndup(&k->c->arena, (const char *)text.data, text.len);
	skv_buf_destroy(&text);
	return *out ? SKV_OK : kvcm_nomem(k);
}

int kvcm_register(struct kvcm_request *k, const KvcmMeta__RegisterInstanceRequest *req,
		  char **storage_configs)
{
	const char *field = missing_field(req);
	struct skv_instance_spec spec;
	int rc;

	if (field)
		return kvcm_missing(k, field);
	rc = kvcm_instance_spec(req, k->c->caller.tenant, &k->c->arena, &spec, &k->c->err);
	if (rc == SKV_OK)
		rc = compare(k, &spec);
	if (rc == SKV_E_NOT_FOUND)
		rc = put(k, &spec);
	return rc == SKV_OK && storage_configs ? tell_storages(k, spec.group, storage_configs) : rc;
}

int kvcm_run_meta_registerInstance(struct kvcm_request *k)
{
	return kvcm_register(k, k->req,
			     &((KvcmMeta__RegisterInstanceResponse *)k->res)->storage_configs);
}

/* ---- getInstanceInfo ------------------------------------------------------------------------- */

int kvcm_run_meta_getInstanceInfo(struct kvcm_request *k)
{
	const KvcmMeta__GetInstanceInfoRequest *req = k->req;
	KvcmMeta__GetInstanceInfoResponse *res = k->res;
	const struct skv_instance_spec *spec;
	int rc;

	if (!*req->instance_id)
		return kvcm_missing(k, "instance_id");
	rc = kvcm_take_instance(k, req->instance_id, &spec);
	if (rc != SKV_OK)
		return rc;
	res->instance_info = kvcm_instance_message(spec, &k->c->arena);
	res->instance_group = (char *)spec->group;
	return res->instance_info ? SKV_OK : kvcm_nomem(k);
}
