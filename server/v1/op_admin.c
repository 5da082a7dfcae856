/*
 * op_admin.c - storages, groups, instances, tokens and tenants: put, get, list, delete.
 *
 * Puts and deletes run on a worker (they write the store and open directories), gets on a thread of
 * the transport. Everything lives in the request. A put answers with the object as it then is.
 */
#include "v1.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED_MAX_S 4000000000u

/* ---- storages -------------------------------------------------------------------------------- */

static int no_such(struct skv_request *r, const char *what, const char *name)
{
	return skv_fail(&r->err, SKV_E_NOT_FOUND, "name", "no %s '%s'", what, name);
}

/* What the caller sees. */
static int get_storages(struct skv_request *r, const char *name)
{
	int rc = skv_core_storages(skv_request_core(r), name, &r->arena, &v1_of(r)->u.storages.v,
				   &v1_of(r)->u.storages.n, &r->err);

	if (rc != SKV_OK)
		return rc;
	skv_tenant_filter_storages(r, v1_of(r)->u.storages.v, &v1_of(r)->u.storages.n);
	return name && v1_of(r)->u.storages.n == 0 ? no_such(r, "storage", name) : SKV_OK;
}

int skv_op_storage_list_run(struct skv_request *r) { return get_storages(r, NULL); }
void skv_op_storage_list_write(struct skv_request *r)
{
	v1_of(r)->codec->write_storage_list(&r->out, v1_of(r)->u.storages.v,
					    v1_of(r)->u.storages.n);
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
	rc = skv_core_storage_put(skv_request_core(r), &spec, &r->created, &r->err);
	return rc == SKV_OK ? get_storages(r, spec.name) : rc;
}
void skv_op_storage_put_write(struct skv_request *r) { skv_op_storage_get_write(r); }

int skv_op_storage_delete_run(struct skv_request *r)
{
	return skv_core_storage_delete(skv_request_core(r), r->param[0].value, &r->err);
}
void skv_op_storage_delete_write(struct skv_request *r) { (void)r; } /* 204 */

/* ---- slab files ------------------------------------------------------------------------------ */

int skv_op_file_list_run(struct skv_request *r)
{
	if (!skv_tenant_sees(r, SKV_OWNED_STORAGE, r->param[0].value))
		return no_such(r, "storage", r->param[0].value);
	return skv_core_files(skv_request_core(r), r->param[0].value, &r->arena,
			      &v1_of(r)->u.files.v, &v1_of(r)->u.files.n, &r->err);
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

	if (rc == SKV_OK)
		rc = skv_tenant_change(r, SKV_OWNED_STORAGE, r->param[0].value);
	if (rc == SKV_OK && wish.forget)
		rc = skv_core_file_forget(skv_request_core(r), r->param[0].value, wish.file,
					  &r->err);
	else if (rc == SKV_OK)
		rc = skv_core_file_drain(skv_request_core(r), r->param[0].value, wish.file,
					 wish.draining, wish.move, &r->err);
	return rc == SKV_OK ? skv_op_file_list_run(r) : rc;
}
void skv_op_file_put_write(struct skv_request *r) { skv_op_file_list_write(r); }

/* ---- groups ---------------------------------------------------------------------------------- */

static int get_groups(struct skv_request *r, const char *name)
{
	int rc = skv_core_groups(skv_request_core(r), name, &r->arena, &v1_of(r)->u.groups.v,
				 &v1_of(r)->u.groups.n, &r->err);

	if (rc != SKV_OK)
		return rc;
	skv_tenant_filter_groups(r, v1_of(r)->u.groups.v, &v1_of(r)->u.groups.n);
	return name && v1_of(r)->u.groups.n == 0 ? no_such(r, "group", name) : SKV_OK;
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
	bool claimed = false;
	int rc = v1_of(r)->body_codec->read_group(&in, r->body, r->n_body, &spec, &r->err);

	for (uint32_t i = 0; rc == SKV_OK && i < spec.n_storages; i++)
		rc = skv_tenant_use(r, SKV_OWNED_STORAGE, spec.storages[i]);
	spec.name = r->param[0].value;
	if (rc == SKV_OK)
		rc = skv_tenant_claim(r, spec.name, &claimed);
	if (rc != SKV_OK)
		return rc;
	rc = skv_core_group_put(skv_request_core(r), &spec, NULL, &r->created, &r->err);
	if (rc != SKV_OK && claimed)
		skv_tenant_disclaim(r, spec.name);
	return rc == SKV_OK ? get_groups(r, spec.name) : rc;
}
void skv_op_group_put_write(struct skv_request *r) { skv_op_group_get_write(r); }

int skv_op_group_delete_run(struct skv_request *r)
{
	int rc = skv_tenant_change(r, SKV_OWNED_GROUP, r->param[0].value);

	if (rc == SKV_OK)
		rc = skv_core_group_delete(skv_request_core(r), r->param[0].value, &r->err);
	if (rc == SKV_OK)
		skv_tenant_disclaim(r, r->param[0].value);
	return rc;
}
void skv_op_group_delete_write(struct skv_request *r) { (void)r; } /* 204 */

/* ---- instances ------------------------------------------------------------------------------- */

static int get_instances(struct skv_request *r, const char *id)
{
	return skv_core_instances(skv_request_core(r), r->caller.tenant, id, &r->arena,
				  &v1_of(r)->u.instances.v, &v1_of(r)->u.instances.n, &r->err);
}

int skv_op_instance_list_run(struct skv_request *r) { return get_instances(r, NULL); }
void skv_op_instance_list_write(struct skv_request *r)
{
	v1_of(r)->codec->write_instance_list(&r->out, v1_of(r)->u.instances.v,
					     v1_of(r)->u.instances.n);
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
		return skv_fail(&r->err, SKV_E_FORBIDDEN, spec.weight ? "weight" : "capacity",
				"role admin sets it");
	rc = skv_tenant_use(r, SKV_OWNED_GROUP, spec.group);
	if (rc == SKV_OK && (spec.weight || spec.capacity))
		rc = skv_tenant_change(r, SKV_OWNED_GROUP, spec.group);
	if (rc != SKV_OK)
		return rc;
	spec.tenant = r->caller.tenant;
	spec.id = r->param[0].value;
	rc = skv_tenant_begin_instance(r, spec.id, false);
	if (rc != SKV_OK)
		return rc;
	rc = skv_core_instance_put(skv_request_core(r), &spec, &r->created, &r->err);
	skv_tenant_end_instance(r);
	return rc == SKV_OK ? get_instances(r, spec.id) : rc;
}
void skv_op_instance_put_write(struct skv_request *r) { skv_op_instance_get_write(r); }

/* ?unused_s=N: only if unused so long, and empty unless ?with_blocks=true. */
static int delete_unused(struct skv_request *r, const char *seconds, const char *with_blocks)
{
	const bool with = with_blocks && strcmp(with_blocks, "true") == 0;
	char *end = NULL;
	uint64_t s = strtoull(seconds, &end, 10);

	if (*seconds < '0' || *seconds > '9' || *end || s > UNUSED_MAX_S)
		return skv_fail(&r->err, SKV_E_INVALID, "unused_s", "0 to %u seconds",
				UNUSED_MAX_S);
	if (with_blocks && !with && strcmp(with_blocks, "false") != 0)
		return skv_fail(&r->err, SKV_E_INVALID, "with_blocks", "true or false");
	return skv_core_instance_delete_unused(skv_request_core(r), r->caller.tenant,
					       r->param[0].value, s * 1000, with, &r->err);
}

int skv_op_instance_delete_run(struct skv_request *r)
{
	const struct v1_request *n = v1_of(r);

	if (n->unused_s)
		return delete_unused(r, n->unused_s, n->with_blocks);
	if (n->with_blocks)
		return skv_fail(&r->err, SKV_E_INVALID, "with_blocks", "only with unused_s");
	return skv_core_instance_delete(skv_request_core(r), r->caller.tenant, r->param[0].value,
					&r->err);
}
void skv_op_instance_delete_write(struct skv_request *r) { (void)r; } /* 204 */

/* An operator's administrator means all tenants, by group or by tenant. */
static int purge_of(struct skv_request *r, struct skv_purge_req *req)
{
	const bool any = skv_tenant_is_operator(r) && r->caller.role >= ROLE_ADMIN;

	req->tenant = any && (*req->group || *req->whose) ? "" : r->caller.tenant;
	if (*req->tenant && *req->whose && strcmp(req->whose, req->tenant) != 0)
		return skv_fail(&r->err, SKV_E_FORBIDDEN, "tenant",
				"only administrators of tenant 'default' purge other tenants");
	return SKV_OK;
}

int skv_op_purge_run(struct skv_request *r)
{
	const struct skv_v1_in in = skv_v1_input(r);
	struct skv_purge_req req;
	int rc = v1_of(r)->body_codec->read_purge_req(&in, r->body, r->n_body, &req, &r->err);

	if (rc == SKV_OK)
		rc = purge_of(r, &req);
	return rc == SKV_OK ? skv_core_purge(skv_request_core(r), &req, &v1_of(r)->u.purge,
					     &r->arena, &r->err)
			    : rc;
}

void skv_op_purge_write(struct skv_request *r)
{
	v1_of(r)->codec->write_purge_res(&r->out, &v1_of(r)->u.purge);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static int get_tokens(struct skv_request *r, const char *name)
{
	struct skv_token_view **v = &v1_of(r)->u.tokens.v;
	uint32_t *n = &v1_of(r)->u.tokens.n, k = 0;
	int rc = skv_tokens_list(&r->s->tokens, name, &r->arena, v, n, &r->err);

	if (rc != SKV_OK)
		return rc;
	assert(!name || *n > 0);
	for (uint32_t i = 0; i < *n; i++)
		if (skv_tenant_is_own(r, (*v)[i].tenant))
			(*v)[k++] = (*v)[i];
	*n = k;
	return name && k == 0 ? skv_fail(&r->err, SKV_E_NOT_FOUND, NULL, "there is no token '%s'",
					 name)
			      : SKV_OK;
}

/* An administrator of a tenant gives tokens of that one only; names are everybody's. */
static int check_token(struct skv_request *r, const struct skv_token_spec *spec)
{
	struct skv_token_view *v;
	uint32_t n, own = 0;
	int rc;

	assert(r->caller.role >= ROLE_ADMIN && spec->tenant);
	if (skv_tenant_is_operator(r))
		return SKV_OK;
	if (!skv_tenant_is_own(r, spec->tenant))
		return skv_fail(&r->err, SKV_E_FORBIDDEN, "tenant",
				"an administrator of tenant '%s' adds tokens of that one",
				r->caller.tenant);
	rc = skv_tokens_list(&r->s->tokens, NULL, &r->arena, &v, &n, &r->err);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		const bool same = strcmp(v[i].name, r->param[0].value) == 0;

		if (same && !skv_tenant_is_own(r, v[i].tenant))
			return skv_fail(&r->err, SKV_E_CONFLICT, "name", "this name is taken");
		own += skv_tenant_is_own(r, v[i].tenant) && !same;
	}
	if (rc == SKV_OK && own >= SKV_TENANT_GROUPS)
		return skv_fail(&r->err, SKV_E_TOO_MANY, NULL,
				"tenant '%s' has %u tokens, the most", r->caller.tenant, own);
	return rc;
}

int skv_op_token_list_run(struct skv_request *r) { return get_tokens(r, NULL); }
void skv_op_token_list_write(struct skv_request *r)
{
	v1_of(r)->codec->write_token_list(&r->out, v1_of(r)->u.tokens.v, v1_of(r)->u.tokens.n);
}

int skv_op_token_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_token_spec spec = { 0 };
	int rc = v1_of(r)->body_codec->read_token(&in, r->body, r->n_body, &spec, &r->err);

	if (rc == SKV_OK)
		rc = check_token(r, &spec);
	if (rc == SKV_OK)
		rc = skv_tokens_put(&r->s->tokens, r->param[0].value, &spec, &r->created, &r->err);
	return rc == SKV_OK ? get_tokens(r, r->param[0].value) : rc;
}
void skv_op_token_put_write(struct skv_request *r)
{
	assert(v1_of(r)->u.tokens.n > 0);
	v1_of(r)->codec->write_token_view(&r->out, &v1_of(r)->u.tokens.v[0]);
}

int skv_op_token_delete_run(struct skv_request *r)
{
	int rc = skv_tenant_is_operator(r) ? SKV_OK : get_tokens(r, r->param[0].value);

	return rc == SKV_OK ? skv_tokens_delete(&r->s->tokens, r->param[0].value, &r->err) : rc;
}
void skv_op_token_delete_write(struct skv_request *r) { (void)r; } /* 204 */

/* ---- tenants --------------------------------------------------------------------------------- */

/* Who is no operator sees the own tenant. */
static int get_tenants(struct skv_request *r, const char *name)
{
	struct skv_tenant_view **v = &v1_of(r)->u.tenants.v;
	uint32_t *n = &v1_of(r)->u.tenants.n;
	int rc;

	if (name && !skv_tenant_is_own(r, name))
		return no_such(r, "tenant", name);
	if (!name && !skv_tenant_is_operator(r))
		name = r->caller.tenant;
	rc = skv_tenants_list(&r->s->tenants, name, &r->arena, v, n, &r->err);
	if (rc == SKV_E_NOT_FOUND) {
		assert(name && *n == 0 && *v);
		skv_error_clear(&r->err); /* nothing was said */
		*n = 1;
		snprintf((*v)[0].name, sizeof (*v)[0].name, "%s", name);
		rc = SKV_OK;
	}
	for (uint32_t i = 0; rc == SKV_OK && i < *n; i++)
		rc = skv_tenant_look(r, &(*v)[i]);
	return rc;
}

int skv_op_tenant_list_run(struct skv_request *r) { return get_tenants(r, NULL); }
void skv_op_tenant_list_write(struct skv_request *r)
{
	assert(skv_tenant_is_operator(r) || v1_of(r)->u.tenants.n == 1);
	v1_of(r)->codec->write_tenant_list(&r->out, v1_of(r)->u.tenants.v, v1_of(r)->u.tenants.n);
}

int skv_op_tenant_get_run(struct skv_request *r) { return get_tenants(r, r->param[0].value); }
void skv_op_tenant_get_write(struct skv_request *r)
{
	assert(v1_of(r)->u.tenants.n == 1);
	v1_of(r)->codec->write_tenant_view(&r->out, &v1_of(r)->u.tenants.v[0]);
}

int skv_op_tenant_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_tenant_spec spec = { 0 };
	int rc = v1_of(r)->body_codec->read_tenant(&in, r->body, r->n_body, &spec, &r->err);

	if (rc == SKV_OK)
		rc = skv_tenants_put(&r->s->tenants, r->param[0].value, &spec, &r->created,
				     &r->err);
	return rc == SKV_OK ? get_tenants(r, r->param[0].value) : rc;
}
void skv_op_tenant_put_write(struct skv_request *r) { skv_op_tenant_get_write(r); }

int skv_op_tenant_delete_run(struct skv_request *r)
{
	return skv_tenants_delete(&r->s->tenants, r->param[0].value, &r->err);
}
void skv_op_tenant_delete_write(struct skv_request *r) { (void)r; } /* 204 */
