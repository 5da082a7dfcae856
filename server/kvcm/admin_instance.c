/*
 * admin_instance.c - instances on the admin service: register, remove, get, list.
 *
 * Registration is the meta service's, asked and answered in the admin
 * service's own messages. No state.
 */
#include "op_list.h"

#include <assert.h>
#include <string.h>

static int no_such_instance(struct kvcm_request *k, const char *id)
{
	return skv_fail(&k->c->err, SKV_E_NOT_FOUND, NULL, "there is no instance %.127s", id);
}

static int find(struct kvcm_request *k, const char *id, struct skv_instance_view **out)
{
	int rc = skv_cluster_instance(kvcm_cluster(k), k->c->caller.tenant, id, &k->c->arena, out,
				      &k->c->err);

	return rc == SKV_E_NOT_FOUND ? no_such_instance(k, id) : rc;
}

int kvcm_run_admin_removeInstance(struct kvcm_request *k)
{
	const KvcmAdmin__RemoveInstanceRequest *req = k->req;
	struct skv_instance_view *v;
	int rc;

	if (!*req->instance_id)
		return kvcm_missing(k, "instance_id");
	rc = find(k, req->instance_id, &v);
	if (rc == SKV_OK && *req->instance_group &&
	    strcmp(req->instance_group, v[0].spec.group) != 0)
		return skv_fail(&k->c->err, SKV_E_NOT_FOUND, NULL,
				"the instance %.127s is not in the group %.100s", req->instance_id,
				req->instance_group);
	if (rc == SKV_OK)
		rc = skv_cluster_instance_delete(kvcm_cluster(k), k->c->caller.tenant,
						 req->instance_id, NULL, &k->c->err);
	if (rc == SKV_E_NOT_FOUND)
		return no_such_instance(k, req->instance_id);
	return rc;
}

static KvcmAdmin__InstanceInfo *info(struct kvcm_request *k, const struct skv_instance_spec *s)
{
	KvcmMeta__InstanceInfo *m = kvcm_instance_message(s, &k->c->arena);

	return m ? kvcm_instance_for_admin(m, &k->c->arena) : NULL;
}

int kvcm_run_admin_getInstanceInfo(struct kvcm_request *k)
{
	const KvcmAdmin__GetInstanceInfoRequest *req = k->req;
	KvcmAdmin__GetInstanceInfoResponse *res = k->res;
	struct skv_instance_view *v;
	int rc;

	if (!*req->instance_id)
		return kvcm_missing(k, "instance_id");
	rc = find(k, req->instance_id, &v);
	if (rc != SKV_OK)
		return rc;
	res->instance_info = info(k, &v[0].spec);
	return res->instance_info ? SKV_OK : kvcm_nomem(k);
}

/* An unknown group has no instances: KVCM's tests expect that. */
int kvcm_run_admin_listInstanceInfo(struct kvcm_request *k)
{
	const char *group =
		((const KvcmAdmin__ListInstanceInfoRequest *)k->req)->instance_group_name;
	KvcmAdmin__ListInstanceInfoResponse *res = k->res;
	struct skv_instance_view *v;
	uint32_t n;
	int rc = skv_cluster_every_instance(kvcm_cluster(k), k->c->caller.tenant, &k->c->arena,
					    &v, &n, &k->c->err);

	if (rc != SKV_OK)
		return rc;
	res->instance_info = skv_arena_calloc(&k->c->arena, n + 1, sizeof(void *));
	if (!res->instance_info)
		return kvcm_nomem(k);
	for (uint32_t i = 0; i < n; i++) {
		KvcmAdmin__InstanceInfo *m;

		if (*group && strcmp(v[i].spec.group, group) != 0)
			continue;
		m = info(k, &v[i].spec);
		if (!m)
			return kvcm_nomem(k);
		res->instance_info[res->n_instance_info++] = m;
	}
	return SKV_OK;
}
