/*
 * admin_group.c - KVCM's instance groups: create, update, remove, get, list.
 *
 * A group is replaced as a whole, and only by somebody who knows its version. No state. Changes
 * block: they run on workers.
 */
#include "op_list.h"

#include <assert.h>
#include <string.h>

/* Path of a required field that is missing. */
static const char *missing(struct kvcm_request *k, const KvcmAdmin__InstanceGroup *m)
{
	const char *field = m ? kvcm_group_missing(m) : NULL;

	if (!m)
		return "instance_group";
	return field ? kvcm_text(k, "instance_group.%s", field) : NULL;
}

static int no_such_group(struct kvcm_request *k, const char *name)
{
	return skv_fail(&k->c->err, SKV_E_NOT_FOUND, NULL, "there is no instance group %.100s",
			name);
}

static int translate(struct kvcm_request *k, const KvcmAdmin__InstanceGroup *m,
		     struct skv_group_spec *out)
{
	struct skv_storage_view *v;
	uint32_t n;
	int rc = skv_cluster_every_storage(kvcm_cluster(k), "", &k->c->arena, &v, &n, &k->c->err);

	return rc == SKV_OK ? kvcm_group_spec(m, v, n, &k->c->arena, out, &k->c->err) : rc;
}

static int find(struct kvcm_request *k, const char *name, struct skv_group_view **out)
{
	int rc = skv_cluster_group(kvcm_cluster(k), name, &k->c->arena, out, &k->c->err);

	return rc == SKV_E_NOT_FOUND ? no_such_group(k, name) : rc;
}

int kvcm_run_admin_createInstanceGroup(struct kvcm_request *k)
{
	const KvcmAdmin__CreateInstanceGroupRequest *req = k->req;
	const char *field = missing(k, req->instance_group);
	struct skv_group_spec spec;
	int rc;

	if (field)
		return kvcm_missing(k, field);
	rc = translate(k, req->instance_group, &spec);
	if (rc == SKV_OK)
		rc = skv_cluster_group_put(kvcm_cluster(k), &spec, SKV_PUT_NEW, NULL, NULL,
					   &k->c->err);
	if (rc == SKV_E_CONFLICT && strcmp(k->c->err.field, "name") == 0)
		return skv_fail(&k->c->err, SKV_E_CONFLICT, NULL,
				"the instance group %s exists: updateInstanceGroup changes it",
				spec.name);
	return rc;
}

int kvcm_run_admin_updateInstanceGroup(struct kvcm_request *k)
{
	const KvcmAdmin__UpdateInstanceGroupRequest *req = k->req;
	const char *field = missing(k, req->instance_group);
	const uint64_t expect = (uint64_t)req->current_version;
	struct skv_group_view *have;
	struct skv_group_spec spec;
	int rc;

	if (field)
		return kvcm_missing(k, field);
	rc = find(k, req->instance_group->name, &have);
	if (rc == SKV_OK)
		rc = translate(k, req->instance_group, &spec);
	if (rc == SKV_OK)
		rc = skv_cluster_group_put(kvcm_cluster(k), &spec, SKV_PUT_ANY, &expect, NULL,
					   &k->c->err);
	if (rc == SKV_E_CONFLICT && strcmp(k->c->err.field, "version") == 0)
		return skv_fail(
			&k->c->err, SKV_E_INVALID, "current_version",
			"current_version: the instance group %s has another version than %lld",
			spec.name, (long long)req->current_version);
	return rc;
}

int kvcm_run_admin_removeInstanceGroup(struct kvcm_request *k)
{
	const char *name = ((const KvcmAdmin__RemoveInstanceGroupRequest *)k->req)->name;
	int rc;

	if (!*name)
		return kvcm_missing(k, "name");
	rc = skv_cluster_group_delete(kvcm_cluster(k), name, &k->c->err);
	if (rc == SKV_E_NOT_FOUND)
		return no_such_group(k, name);
	if (rc == SKV_E_IN_USE)
		return skv_fail(&k->c->err, rc, NULL,
				"the instance group %.100s has instances: removeInstance first",
				name);
	return rc;
}

int kvcm_run_admin_getInstanceGroup(struct kvcm_request *k)
{
	const char *name = ((const KvcmAdmin__GetInstanceGroupRequest *)k->req)->name;
	KvcmAdmin__GetInstanceGroupResponse *res = k->res;
	struct skv_group_view *v;
	int rc;

	if (!*name)
		return kvcm_missing(k, "name");
	rc = find(k, name, &v);
	if (rc != SKV_OK)
		return rc;
	res->instance_group = kvcm_group_message(&v[0].spec, &k->c->arena);
	return res->instance_group ? SKV_OK : kvcm_nomem(k);
}

int kvcm_run_admin_listInstanceGroup(struct kvcm_request *k)
{
	KvcmAdmin__ListInstanceGroupResponse *res = k->res;
	struct skv_group_view *v;
	uint32_t n;
	int rc = skv_cluster_every_group(kvcm_cluster(k), "", &k->c->arena, &v, &n, &k->c->err);

	if (rc != SKV_OK)
		return rc;
	res->instance_group = skv_arena_calloc(&k->c->arena, n + 1, sizeof(void *));
	if (!res->instance_group)
		return kvcm_nomem(k);
	for (; res->n_instance_group < n; res->n_instance_group++) {
		KvcmAdmin__InstanceGroup *m =
			kvcm_group_message(&v[res->n_instance_group].spec, &k->c->arena);

		res->instance_group[res->n_instance_group] = m;
		if (!m)
			return kvcm_nomem(k);
	}
	return SKV_OK;
}
