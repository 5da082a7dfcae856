/*
 * etcd.c - the store on etcd: opening and closing a handle, and the table of its operations.
 *
 * A handle has one client (one connection for all threads), one watch, and one thread for
 * housekeeping. Everything that has to survive it lies in etcd, and checkpoints in files if the URL
 * says so.
 */
#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include "etcd_store.h"

#define FORMAT "slabkv store 1"

struct etcd_part *etcd_part(struct etcd_store *s, uint32_t number)
{
	struct etcd_part *p;

	assert(number <= SKV_STORE_PARTITION_MAX);
	skv_mutex_lock(&s->lock);
	for (p = s->parts; p && p->number != number; p = p->next)
		;
	if (!p && (p = skv_calloc(1, sizeof *p)) != NULL) {
		p->number = number;
		p->next = s->parts;
		s->parts = p;
	}
	skv_mutex_unlock(&s->lock);
	return p;
}

void etcd_take(struct etcd_store *s, bool *flag)
{
	skv_mutex_lock(&s->lock);
	while (*flag)
		skv_cond_wait(&s->changed, &s->lock);
	*flag = true;
	skv_mutex_unlock(&s->lock);
}

void etcd_give(struct etcd_store *s, bool *flag)
{
	skv_mutex_lock(&s->lock);
	assert(*flag);
	*flag = false;
	skv_cond_broadcast(&s->changed);
	skv_mutex_unlock(&s->lock);
}

/* Writes the mark of this format where there is none, or checks it. */
static int check_format(struct etcd_store *s, struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k;
	const struct skv_etcd_bytes key = etcd_key(s, &k, "format");
	const struct skv_etcd_compare is_new = etcd_mod_is(key, 0);
	const struct skv_etcd_op put = { .kind = SKV_ETCD_PUT, .key = key,
					 .value = skv_etcd_text(FORMAT) };
	const struct skv_etcd_op get = etcd_range(key);
	const struct skv_etcd_txn t = { &is_new, 1, &put, 1, &get, 1 };
	struct skv_etcd_kv kv;
	int rc = etcd_settle(s, &t, &a, NULL, err);

	if (rc == SKV_OK && !a.result.succeeded) {
		kv = etcd_first(&a);
		if (kv.value.n != strlen(FORMAT) || memcmp(kv.value.p, FORMAT, kv.value.n) != 0)
			rc = skv_fail(err, SKV_E_UNSUPPORTED, "store",
				      "the keys below %s/ in etcd are of another program or "
				      "version: choose another prefix in the URL", s->url.prefix);
		s->format_mod = kv.mod_revision;
	} else if (rc == SKV_OK) {
		s->format_mod = a.revision;
	}
	skv_etcd_answer_free(&a);
	return rc;
}

static int connect_client(struct etcd_store *s, struct skv_error *err)
{
	const struct skv_etcd_options o = {
		.endpoints = s->url.endpoints,
		.tls = s->url.tls,
		.user = *s->url.user ? s->url.user : NULL,
		.password = *s->url.user ? s->url.password : NULL,
	};
	int rc = skv_etcd_open(&o, &s->client, err);

	if (rc == SKV_OK)
		rc = check_format(s, err);
	return rc;
}

static void destroy(struct etcd_store *s)
{
	struct etcd_part *p;

	assert(!s->group.first && !s->group.busy && !s->look.looking && !s->look.renewing);
	etcd_news_close(s);
	skv_buf_destroy(&s->news.log[0]);
	skv_buf_destroy(&s->news.log[1]);
	skv_etcd_close(s->client);
	while ((p = s->parts) != NULL) {
		assert(!p->appending && !p->checkpointing);
		s->parts = p->next;
		etcd_draft_free(p->draft);
		skv_free(p);
	}
	etcd_look_free(s);
	skv_cond_destroy(&s->changed);
	skv_cond_destroy(&s->keeper.wake);
	skv_mutex_destroy(&s->lock);
	skv_free(s);
}

static int store_open(const struct skv_store_options *o, void **self, struct skv_error *err)
{
	struct etcd_store *s = skv_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return etcd_no_memory(err);
	skv_mutex_init(&s->lock);
	skv_cond_init(&s->changed);
	skv_cond_init(&s->keeper.wake);
	s->clock = o->clock ? o->clock : &skv_clock_system;
	etcd_new_name(s->manager);
	skv_boot_id(s->boot_id);
	rc = etcd_url_parse(o->path, &s->url, err);
	if (rc == SKV_OK)
		rc = connect_client(s, err);
	if (rc != SKV_OK) {
		destroy(s);
		return rc;
	}
	*self = s;
	return SKV_OK;
}

static void store_close(void *self)
{
	etcd_keeper_stop(self);
	etcd_leave(self);
	destroy(self);
}

const struct skv_store_ops skv_store_etcd = {
	.size = sizeof skv_store_etcd,
	.name = "etcd",
	.open = store_open,
	.close = store_close,
	.get = etcd_get,
	.put = etcd_registry_put,
	.del = etcd_del,
	.list = etcd_list,
	.acquire = etcd_acquire,
	.renew = etcd_renew,
	.release = etcd_release,
	.append = etcd_append,
	.sync = etcd_sync,
	.checkpoint_begin = etcd_checkpoint_begin,
	.checkpoint_slice = etcd_checkpoint_slice,
	.checkpoint_commit = etcd_checkpoint_commit,
	.checkpoint_abort = etcd_checkpoint_abort,
	.load = etcd_load,
	.stats = etcd_stats,
	.follow = etcd_follow,
	.renewed = etcd_renewed,
	.changes = etcd_changes,
};
