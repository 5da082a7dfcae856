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

/* ---- puts ------------------------------------------------------------------------------------ */

/* ?only=new, ?only=existing. */
static int read_only(struct skv_request *r, enum skv_put *how)
{
	const char *only = v1_of(r)->only;

	*how = !only ? SKV_PUT_ANY : strcmp(only, "new") == 0 ? SKV_PUT_NEW : SKV_PUT_THERE;
	return *how != SKV_PUT_THERE || strcmp(only, "existing") == 0
		       ? SKV_OK
		       : skv_fail(&r->err, SKV_E_INVALID, "only", "new or existing");
}

/* ---- storages -------------------------------------------------------------------------------- */

static int no_such(struct skv_request *r, const char *what, const char *name)
{
	return skv_fail(&r->err, SKV_E_NOT_FOUND, "name", "no %s '%s'", what, name);
}

/* Lists a page of the objects that the caller sees; `whose`: the tenant. */
#define LIST_RUN(kind, whose)                                                                      \
	int skv_op_##kind##_list_run(struct skv_request *r)                                        \
	{                                                                                          \
		struct skv_##kind##_list *out = &v1_of(r)->u.kind##s;                              \
		struct skv_page page;                                                              \
		int rc = skv_v1_page(r, &page);                                                    \
                                                                                                   \
		page.tenant = (whose);                                                             \
		v1_of(r)->answer = out;                                                            \
		return rc == SKV_OK ? skv_cluster_##kind##_list(skv_request_cluster(r), &page,     \
								&r->arena, out, &r->err)           \
				    : rc;                                                          \
	}

LIST_RUN(storage, page.tenant)
LIST_RUN(group, page.tenant)
/* Another manager may list those of all tenants. */
LIST_RUN(instance, *r->caller.tenant ? r->caller.tenant : NULL)

int skv_op_storage_get_run(struct skv_request *r)
{
	const char *name = r->param[0].value;
	struct skv_storage_view *v;
	int rc;

	if (!skv_tenant_sees(r, SKV_OWNED_STORAGE, name))
		return no_such(r, "storage", name);
	rc = skv_cluster_storage(skv_request_cluster(r), name, &r->arena, &v, &r->err);
	if (rc == SKV_OK)
		v1_of(r)->answer = v;
	return rc;
}

int skv_op_storage_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_storage_spec spec = { 0 };
	enum skv_put how;
	int rc = v1_of(r)->body_codec->read_storage(&in, r->body, r->n_body, &spec, &r->err);

	if (rc == SKV_OK)
		rc = read_only(r, &how);
	if (rc != SKV_OK)
		return rc;
	spec.name = r->param[0].value;
	rc = skv_cluster_storage_put(skv_request_cluster(r), &spec, how, &r->created, &r->err);
	return rc == SKV_OK ? skv_op_storage_get_run(r) : rc;
}

int skv_op_storage_delete_run(struct skv_request *r)
{
	return skv_cluster_storage_delete(skv_request_cluster(r), r->param[0].value, &r->err);
}

/* ---- slab files ------------------------------------------------------------------------------ */

/* Cuts the page from the files, which are in order of their numbers. */
static int cut_files(struct skv_request *r, const struct skv_page *page, struct skv_file_list *out)
{
	const uint32_t limit = page->limit < page->bytes / sizeof *out->files + 1
				       ? page->limit
				       : (uint32_t)(page->bytes / sizeof *out->files + 1);
	uint64_t after;
	char next[16];
	int rc = SKV_OK;

	assert(limit >= 1 && limit <= SKV_MAX_PAGE);
	if (page->after && *page->after)
		rc = skv_v1_number(r, "after", page->after, &after);
	while (rc == SKV_OK && page->after && *page->after && out->n_files &&
	       out->files->file <= after) {
		out->files++;
		out->n_files--;
	}
	if (rc != SKV_OK || out->n_files <= limit)
		return rc;
	out->n_files = limit;
	snprintf(next, sizeof next, "%u", (unsigned)out->files[limit - 1].file);
	out->next = skv_arena_strndup(&r->arena, next, strlen(next));
	return out->next ? SKV_OK : skv_fail(&r->err, SKV_E_NOMEM, NULL, "out of memory");
}

int skv_op_file_list_run(struct skv_request *r)
{
	struct skv_file_list *out = &v1_of(r)->u.files;
	struct skv_page page;
	int rc = skv_v1_page(r, &page);

	if (rc == SKV_OK && !skv_tenant_sees(r, SKV_OWNED_STORAGE, r->param[0].value))
		rc = no_such(r, "storage", r->param[0].value);
	if (rc == SKV_OK)
		rc = skv_cluster_files(skv_request_cluster(r), r->param[0].value, &r->arena,
				       &out->files, &out->n_files, &r->err);
	v1_of(r)->answer = out;
	return rc == SKV_OK ? cut_files(r, &page, out) : rc;
}

int skv_op_file_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_file_wish wish;
	int rc = v1_of(r)->body_codec->read_file_wish(&in, r->body, r->n_body, &wish, &r->err);

	if (rc == SKV_OK)
		rc = skv_tenant_change(r, SKV_OWNED_STORAGE, r->param[0].value);
	if (rc == SKV_OK)
		rc = skv_cluster_file_put(skv_request_cluster(r), r->param[0].value, &wish,
					  &r->err);
	return rc == SKV_OK ? skv_op_file_list_run(r) : rc;
}

/* ---- groups ---------------------------------------------------------------------------------- */

int skv_op_group_get_run(struct skv_request *r)
{
	const char *name = r->param[0].value;
	struct skv_group_view *v;
	int rc;

	if (!skv_tenant_sees(r, SKV_OWNED_GROUP, name))
		return no_such(r, "group", name);
	rc = skv_cluster_group(skv_request_cluster(r), name, &r->arena, &v, &r->err);
	if (rc == SKV_OK)
		v1_of(r)->answer = v;
	return rc;
}

int skv_op_group_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	const char *version = v1_of(r)->version;
	struct skv_group_spec spec = { 0 };
	bool claimed = false;
	enum skv_put how;
	uint64_t expect;
	int rc = v1_of(r)->body_codec->read_group(&in, r->body, r->n_body, &spec, &r->err);

	if (rc == SKV_OK)
		rc = read_only(r, &how);
	if (rc == SKV_OK && version)
		rc = skv_v1_number(r, "version", version, &expect);
	for (uint32_t i = 0; rc == SKV_OK && i < spec.n_storages; i++)
		rc = skv_tenant_use(r, SKV_OWNED_STORAGE, spec.storages[i]);
	spec.name = r->param[0].value;
	if (rc == SKV_OK)
		rc = skv_tenant_claim(r, spec.name, &claimed);
	if (rc != SKV_OK)
		return rc;
	rc = skv_cluster_group_put(skv_request_cluster(r), &spec, how, version ? &expect : NULL,
				   &r->created, &r->err);
	if (rc != SKV_OK && claimed)
		skv_tenant_disclaim(r, spec.name);
	return rc == SKV_OK ? skv_op_group_get_run(r) : rc;
}

int skv_op_group_delete_run(struct skv_request *r)
{
	int rc = skv_tenant_change(r, SKV_OWNED_GROUP, r->param[0].value);

	if (rc == SKV_OK)
		rc = skv_cluster_group_delete(skv_request_cluster(r), r->param[0].value, &r->err);
	if (rc == SKV_OK)
		skv_tenant_disclaim(r, r->param[0].value);
	return rc;
}

/* ---- instances ------------------------------------------------------------------------------- */

int skv_op_instance_get_run(struct skv_request *r)
{
	struct skv_instance_view *v;
	int rc = skv_cluster_instance(skv_request_cluster(r), r->caller.tenant, r->param[0].value,
				      &r->arena, &v, &r->err);

	if (rc == SKV_OK)
		v1_of(r)->answer = v;
	return rc;
}

int skv_op_instance_put_run(struct skv_request *r)
{
	struct skv_v1_in in = skv_v1_input(r);
	struct skv_instance_spec spec = { 0 };
	enum skv_put how;
	int rc = v1_of(r)->body_codec->read_instance(&in, r->body, r->n_body, &spec, &r->err);

	if (rc == SKV_OK)
		rc = read_only(r, &how);
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
	rc = skv_cluster_instance_put(skv_request_cluster(r), &spec, how, &r->created, &r->err);
	return rc == SKV_OK ? skv_op_instance_get_run(r) : rc;
}

/* ?unused_s=N: only if unused for N seconds, and empty unless ?with_blocks=true. */
static int read_unused(struct skv_request *r, const char *with_blocks, struct skv_unused *out)
{
	uint64_t s;
	int rc = skv_v1_number(r, "unused_s", v1_of(r)->unused_s, &s);

	if (rc != SKV_OK || s > UNUSED_MAX_S)
		return skv_fail(&r->err, SKV_E_INVALID, "unused_s", "0 to %u seconds",
				UNUSED_MAX_S);
	out->ms = s * 1000;
	out->with_blocks = with_blocks && strcmp(with_blocks, "true") == 0;
	return !with_blocks || out->with_blocks || strcmp(with_blocks, "false") == 0
		       ? SKV_OK
		       : skv_fail(&r->err, SKV_E_INVALID, "with_blocks", "true or false");
}

int skv_op_instance_delete_run(struct skv_request *r)
{
	const struct v1_request *n = v1_of(r);
	struct skv_unused unused;
	int rc = SKV_OK;

	if (n->unused_s)
		rc = read_unused(r, n->with_blocks, &unused);
	else if (n->with_blocks)
		rc = skv_fail(&r->err, SKV_E_INVALID, "with_blocks", "only with unused_s");
	return rc == SKV_OK ? skv_cluster_instance_delete(skv_request_cluster(r), r->caller.tenant,
							  r->param[0].value,
							  n->unused_s ? &unused : NULL, &r->err)
			    : rc;
}

/* An operator's administrator means all tenants, by group or by tenant; another manager says whom
 * it means. */
static int purge_of(struct skv_request *r, struct skv_purge_req *req)
{
	const bool any =
		!r->alone && skv_tenant_is_operator(r) && r->caller.role >= ROLE_ADMIN;

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
	v1_of(r)->answer = &v1_of(r)->u.purge;
	return rc == SKV_OK ? skv_cluster_purge(skv_request_cluster(r), &req, &v1_of(r)->u.purge,
						&r->arena, &r->err)
			    : rc;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static int get_tokens(struct skv_request *r, const char *name)
{
	struct skv_token_view **v = &v1_of(r)->u.tokens.tokens;
	uint32_t *n = &v1_of(r)->u.tokens.n_tokens, k = 0;
	int rc = skv_tokens_list(&r->s->tokens, name, &r->arena, v, n, &r->err);

	if (rc != SKV_OK)
		return rc;
	assert(!name || *n > 0);
	for (uint32_t i = 0; i < *n; i++)
		if (skv_tenant_is_own(r, (*v)[i].tenant))
			(*v)[k++] = (*v)[i];
	*n = k;
	v1_of(r)->answer = name ? (const void *)*v : &v1_of(r)->u.tokens;
	return name && k == 0 ? skv_fail(&r->err, SKV_E_NOT_FOUND, NULL, "there is no token '%s'",
					 name)
			      : SKV_OK;
}

/* An administrator of a tenant gives tokens of that one only. */
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
	rc = skv_tenant_names(r, r->param[0].value);
	if (rc == SKV_OK)
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

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct skv_token_view *)a)->name,
		      ((const struct skv_token_view *)b)->name);
}

int skv_op_token_list_run(struct skv_request *r)
{
	struct skv_token_list *out = &v1_of(r)->u.tokens;
	struct skv_page page;
	int rc = skv_v1_page(r, &page);

	if (rc == SKV_OK)
		rc = get_tokens(r, NULL);
	if (rc != SKV_OK)
		return rc;
	qsort(out->tokens, out->n_tokens, sizeof *out->tokens, by_name);
	while (out->n_tokens && page.after && strcmp(out->tokens->name, page.after) <= 0) {
		out->tokens++;
		out->n_tokens--;
	}
	if (out->n_tokens > page.limit) {
		out->n_tokens = page.limit;
		out->next = out->tokens[page.limit - 1].name;
	}
	return SKV_OK;
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

int skv_op_token_delete_run(struct skv_request *r)
{
	int rc = skv_tenant_is_operator(r) ? SKV_OK : get_tokens(r, r->param[0].value);

	return rc == SKV_OK ? skv_tokens_delete(&r->s->tokens, r->param[0].value, &r->err) : rc;
}

/* ---- tenants --------------------------------------------------------------------------------- */

/* Returns the tenants; a caller that is no operator sees only its own tenant. */
static int get_tenants(struct skv_request *r, const char *name)
{
	struct skv_tenant_view **v = &v1_of(r)->u.tenants.tenants;
	uint32_t *n = &v1_of(r)->u.tenants.n_tenants;
	const bool one = name != NULL;
	struct skv_page page;
	int rc = skv_v1_page(r, &page);

	if (rc != SKV_OK)
		return rc;
	if (name && !skv_tenant_is_own(r, name))
		return no_such(r, "tenant", name);
	if (!name && !skv_tenant_is_operator(r))
		name = r->caller.tenant;
	rc = skv_tenants_list(&r->s->tenants, name, &page, &r->arena, v, n,
			      &v1_of(r)->u.tenants.next, &r->err);
	if (rc == SKV_E_NOT_FOUND) {
		assert(name && *n == 0 && *v);
		skv_error_clear(&r->err); /* the tenant has no document */
		*n = 1;
		snprintf((*v)[0].name, sizeof (*v)[0].name, "%s", name);
		rc = SKV_OK;
	}
	if (rc == SKV_OK && !one && page.after && *n && strcmp((*v)[0].name, page.after) <= 0)
		*n = 0; /* the caller's own one was on the page before */
	for (uint32_t i = 0; rc == SKV_OK && i < *n; i++)
		skv_tenant_look(r, &(*v)[i]);
	v1_of(r)->answer = one ? (const void *)*v : &v1_of(r)->u.tenants;
	return rc;
}

int skv_op_tenant_list_run(struct skv_request *r) { return get_tenants(r, NULL); }

int skv_op_tenant_get_run(struct skv_request *r) { return get_tenants(r, r->param[0].value); }

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

int skv_op_tenant_delete_run(struct skv_request *r)
{
	return skv_tenants_delete(&r->s->tenants, r->param[0].value, &r->err);
}
