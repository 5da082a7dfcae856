/*
 * op_admin.c - storages, groups and instances: put, get, list, delete.
 *
 * Puts and deletes run on a worker (they write the store and open directories), gets on a thread of
 * the transport. Everything lives in the request. A put answers with the object as it then is.
 */
#include "v1.h"

#include <assert.h>

/* ---- storages -------------------------------------------------------------------------------- */

static int get_storages(struct skv_request *r, const char *name)
{
	return skv_core_storages(r->s->core, name, &r->arena, &v1_of(r)->u.storages.v, &v1_of(r)->u.storages.n,
				 &r->err);
}

int skv_op_storage_list_run(struct skv_request *r) { return get_storages(r, NULL); }
void skv_op_storage_list_write(struct skv_request *r)
{
	v1_of(r)->codec->write_storage_list(&r->out, v1_of(r)->u.storages.v, v1_of(r)->u.storages.n);
}

int skv_op_storage_get_run(struct skv_request *r) { return get_storages(r, r->param[0].value); }
void skv_op_storage_get_write(struct skv_request *r)
{
	assert(v1_of(r)->u.storages.n == 1);
	v1_of(r)->codec->write_storage_view(&r->out, &v1_of(r)->u.storages.v[0]);
}

int skv_op_storage_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_storage_spec spec = { 0 };
	int rc = v1_of(r)->body_codec->read_storage(&in, r->body, r->n_body, &spec, &r->err);

	if (rc != SKV_OK)
		return rc;
	spec.name = r->param[0].value;
	rc = skv_core_storage_put(r->s->core, &spec, &r->created, &r->err);
	return rc == SKV_OK ? get_storages(r, spec.name) : rc;
}
void skv_op_storage_put_write(struct skv_request *r) { skv_op_storage_get_write(r); }

int skv_op_storage_delete_run(struct skv_request *r)
{
	return skv_core_storage_delete(r->s->core, r->param[0].value, &r->err);
}
void skv_op_storage_delete_write(struct skv_request *r) { (void)r; } /* 204 */

/* ---- slab files ------------------------------------------------------------------------------ */

int skv_op_file_list_run(struct skv_request *r)
{
	return skv_core_files(r->s->core, r->param[0].value, &r->arena, &v1_of(r)->u.files.v, &v1_of(r)->u.files.n,
			      &r->err);
}
void skv_op_file_list_write(struct skv_request *r)
{
	v1_of(r)->codec->write_file_list(&r->out, v1_of(r)->u.files.v, v1_of(r)->u.files.n);
}

int skv_op_file_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_file_wish wish;
	int rc = v1_of(r)->body_codec->read_file_wish(&in, r->body, r->n_body, &wish, &r->err);

	if (rc == SKV_OK && wish.forget)
		rc = skv_core_file_forget(r->s->core, r->param[0].value, wish.file, &r->err);
	else if (rc == SKV_OK)
		rc = skv_core_file_drain(r->s->core, r->param[0].value, wish.file, wish.draining, &r->err);
	return rc == SKV_OK ? skv_op_file_list_run(r) : rc;
}
void skv_op_file_put_write(struct skv_request *r) { skv_op_file_list_write(r); }

/* ---- groups ---------------------------------------------------------------------------------- */

static int get_groups(struct skv_request *r, const char *name)
{
	return skv_core_groups(r->s->core, name, &r->arena, &v1_of(r)->u.groups.v, &v1_of(r)->u.groups.n,
			       &r->err);
}

int skv_op_group_list_run(struct skv_request *r) { return get_groups(r, NULL); }
void skv_op_group_list_write(struct skv_request *r)
{
	v1_of(r)->codec->write_group_list(&r->out, v1_of(r)->u.groups.v, v1_of(r)->u.groups.n);
}

int skv_op_group_get_run(struct skv_request *r) { return get_groups(r, r->param[0].value); }
void skv_op_group_get_write(struct skv_request *r)
{
	assert(v1_of(r)->u.groups.n == 1);
	v1_of(r)->codec->write_group_view(&r->out, &v1_of(r)->u.groups.v[0]);
}

int skv_op_group_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_group_spec spec = { 0 };
	int rc = v1_of(r)->body_codec->read_group(&in, r->body, r->n_body, &spec, &r->err);

	if (rc != SKV_OK)
		return rc;
	spec.name = r->param[0].value;
	rc = skv_core_group_put(r->s->core, &spec, NULL, &r->created, &r->err);
	return rc == SKV_OK ? get_groups(r, spec.name) : rc;
}
void skv_op_group_put_write(struct skv_request *r) { skv_op_group_get_write(r); }

int skv_op_group_delete_run(struct skv_request *r)
{
	return skv_core_group_delete(r->s->core, r->param[0].value, &r->err);
}
void skv_op_group_delete_write(struct skv_request *r) { (void)r; } /* 204 */

/* ---- instances ------------------------------------------------------------------------------- */

static int get_instances(struct skv_request *r, const char *id)
{
	return skv_core_instances(r->s->core, r->caller.tenant, id, &r->arena, &v1_of(r)->u.instances.v,
				  &v1_of(r)->u.instances.n, &r->err);
}

int skv_op_instance_list_run(struct skv_request *r) { return get_instances(r, NULL); }
void skv_op_instance_list_write(struct skv_request *r)
{
	v1_of(r)->codec->write_instance_list(&r->out, v1_of(r)->u.instances.v, v1_of(r)->u.instances.n);
}

int skv_op_instance_get_run(struct skv_request *r) { return get_instances(r, r->param[0].value); }
void skv_op_instance_get_write(struct skv_request *r)
{
	assert(v1_of(r)->u.instances.n == 1);
	v1_of(r)->codec->write_instance_view(&r->out, &v1_of(r)->u.instances.v[0]);
}

int skv_op_instance_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_instance_spec spec = { 0 };
	int rc = v1_of(r)->body_codec->read_instance(&in, r->body, r->n_body, &spec, &r->err);

	if (rc != SKV_OK)
		return rc;
	if ((spec.weight || spec.capacity) && r->caller.role < ROLE_ADMIN)
		return skv_fail(&r->err, SKV_E_FORBIDDEN, spec.weight ? "weight" : "capacity", "role admin sets it");
	spec.tenant = r->caller.tenant;
	spec.id = r->param[0].value;
	rc = skv_core_instance_put(r->s->core, &spec, &r->created, &r->err);
	return rc == SKV_OK ? get_instances(r, spec.id) : rc;
}
void skv_op_instance_put_write(struct skv_request *r) { skv_op_instance_get_write(r); }

int skv_op_instance_delete_run(struct skv_request *r)
{
	return skv_core_instance_delete(r->s->core, r->caller.tenant, r->param[0].value, &r->err);
}
void skv_op_instance_delete_write(struct skv_request *r) { (void)r; } /* 204 */
