/*
 * admin_account.c - calls about accounts and configuration snapshots; account.h and snapshot.h do
 * the work.
 *
 * No state. Run on workers: hashes take a tenth of a second, the rest writes the store.
 */
#include "op_list.h"

#include <string.h>

#include "account.h"
#include "snapshot.h"

int kvcm_run_admin_addAccount(struct kvcm_request *k)
{
	const KvcmAdmin__AddAccountRequest *req = k->req;

	if (!*req->user_name)
		return kvcm_missing(k, "user_name");
	if (!*req->password)
		return kvcm_missing(k, "password");
	return kvcm_account_add(kvcm_core(k), req->user_name, req->password, (int)req->role,
				&k->c->err);
}

int kvcm_run_admin_deleteAccount(struct kvcm_request *k)
{
	const KvcmAdmin__DeleteAccountRequest *req = k->req;

	if (!*req->user_name)
		return kvcm_missing(k, "user_name");
	return kvcm_account_delete(kvcm_core(k), req->user_name, &k->c->err);
}

int kvcm_run_admin_listAccount(struct kvcm_request *k)
{
	KvcmAdmin__ListAccountResponse *res = k->res;
	struct kvcm_account *v;
	uint32_t n;
	int rc = kvcm_account_list(kvcm_core(k), &k->c->arena, &v, &n, &k->c->err);

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

/* ---- snapshots ------------------------------------------------------------------------------- */

int kvcm_run_admin_genConfigSnapshot(struct kvcm_request *k)
{
	KvcmAdmin__ConfigSnapShotResponse *res = k->res;
	struct kvcm_snapshot s;
	struct skv_buf text;
	int rc = kvcm_snapshot_take(kvcm_core(k), &k->c->arena, &s, &k->c->err);

	if (rc != SKV_OK)
		return rc;
	skv_buf_init(&text);
	kvcm_snapshot_write(&s, &text);
	res->config_snapshot =
		text.failed ? NULL
			    : skv_arena_strndup(&k->c->arena, (const char *)text.data, text.len);
	skv_buf_destroy(&text);
	return res->config_snapshot ? SKV_OK : kvcm_nomem(k);
}

int kvcm_run_admin_loadConfigSnapshot(struct kvcm_request *k)
{
	const KvcmAdmin__LoadConfigSnapshotRequest *req = k->req;
	struct kvcm_snapshot s;
	int rc;

	if (!*req->config_snapshot)
		return kvcm_missing(k, "config_snapshot");
	rc = kvcm_snapshot_read(req->config_snapshot, strlen(req->config_snapshot), &k->c->arena,
				&s, &k->c->err);
	if (rc == SKV_OK)
		rc = kvcm_snapshot_load(kvcm_core(k), &kvcm_of(k)->model, &s, &k->c->arena,
					&k->c->err);
	if (rc != SKV_OK && *k->c->err.field)
		return skv_fail(&k->c->err, k->c->err.status,
				kvcm_text(k, "config_snapshot.%s", k->c->err.field),
				"config_snapshot.%s: %s", k->c->err.field, k->c->err.message);
	return rc;
}
