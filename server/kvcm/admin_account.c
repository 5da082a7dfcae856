/*
 * admin_account.c - calls about accounts; account.h does the work.
 *
 * No state. Run on workers: hashes take a tenth of a second, the rest writes the store.
 */
#include "op_list.h"

#include "account.h"

int kvcm_run_admin_addAccount(struct kvcm_request *k)
{
	const KvcmAdmin__AddAccountRequest *req = k->req;

	if (!*req->user_name)
		return kvcm_missing(k, "user_name");
	if (!*req->password)
		return kvcm_missing(k, "password");
	return kvcm_account_add(kvcm_cluster(k), req->user_name, req->password, (int)req->role,
				&k->c->err);
}

int kvcm_run_admin_deleteAccount(struct kvcm_request *k)
{
	const KvcmAdmin__DeleteAccountRequest *req = k->req;

	if (!*req->user_name)
		return kvcm_missing(k, "user_name");
	return kvcm_account_delete(kvcm_cluster(k), req->user_name, &k->c->err);
}

int kvcm_run_admin_listAccount(struct kvcm_request *k)
{
	KvcmAdmin__ListAccountResponse *res = k->res;
	struct kvcm_account *v;
	uint32_t n;
	int rc = kvcm_account_list(kvcm_cluster(k), &k->c->arena, &v, &n, &k->c->err);

	if (rc != SKV_OK)
		return rc;
	res->accounts = skv_arena_calloc(&k->c->arena, n + 1, sizeof(void *));
	for (; res->accounts && res->n_accounts < n; res->n_accounts++) {
		KvcmAdmin__Account *m = skv_arena_alloc(&k->c->arena, sizeof *m);

		if (!m)
			return kvcm_nomem(k);
		kvcm_admin__account__init(m);
		m->user_name = (char *)v[res->n_accounts].name;
		m->role = (KvcmAdmin__AccountRole)v[res->n_accounts].role;
		res->accounts[res->n_accounts] = m;
	}
	return res->accounts ? SKV_OK : kvcm_nomem(k);
}
