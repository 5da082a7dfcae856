/*
 * etcd_registry.c - registry documents of the store on etcd.
 *
 * A value is a nonce of the write, then the document: by the nonce a write whose outcome was
 * unknown is recognised. Versions are etcd's. Any thread.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include "etcd_store.h"

#define PAGE 2000u /* documents in one answer, unless they are large */

struct registry_key {
	char text[ETCD_PREFIX_MAX + SKV_STORE_KEY_MAX + 8];
};

static struct skv_etcd_bytes registry_key(const struct etcd_store *s, struct registry_key *k,
					  const char *key)
{
	const int n = snprintf(k->text, sizeof k->text, "%s/r/%s", s->url.prefix, key);

	assert(n > 0 && (size_t)n < sizeof k->text);
	return (struct skv_etcd_bytes){ k->text, (size_t)n };
}

static int none(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOT_FOUND, NULL, "there is no such entry");
}

static int conflict(const struct skv_etcd_kv *kv, struct skv_error *err)
{
	return skv_fail(err, SKV_E_CONFLICT, NULL,
			kv->mod_revision ? "the entry has version %llu" : "there is no such entry",
			(unsigned long long)kv->version);
}

int etcd_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
	     struct skv_error *err)
{
	struct etcd_store *s = self;
	struct skv_etcd_answer a = { 0 };
	struct registry_key k;
	struct etcd_key f;
	const struct skv_etcd_op get[] = { etcd_range(registry_key(s, &k, key)),
					   etcd_range(etcd_key(s, &f, "format")) };
	struct skv_etcd_kv kv, format;
	int rc = etcd_read(s, get, 2, &a, err);

	if (rc == SKV_OK) {
		kv = etcd_first(&a);
		format = etcd_first(&a);
		rc = etcd_check_here(s, &format, err);
		if (rc == SKV_OK && kv.mod_revision == 0)
			rc = none(err);
		else if (rc == SKV_OK && kv.value.n < ETCD_NONCE)
			rc = etcd_corrupt(err, kv.key, "has a damaged value");
	}
	if (rc == SKV_OK) {
		skv_put_bytes(value, (const uint8_t *)kv.value.p + ETCD_NONCE,
			      kv.value.n - ETCD_NONCE);
		*version = kv.version;
		rc = value->failed ? etcd_no_memory(err) : SKV_OK;
	}
	skv_etcd_answer_free(&a);
	return rc;
}

/* Runs one operation on a document, if it has the version that is expected and `fence` (may be
 * NULL) is the newest. *was: what the document was if a compare failed, valid as long as the
 * answer. */
static int change(struct etcd_store *s, const struct skv_fence *fence, const struct skv_etcd_op *op,
		  uint64_t expect, struct skv_etcd_answer *a, bool *again, struct skv_etcd_kv *was,
		  struct skv_error *err)
{
	struct etcd_key e;
	const struct skv_etcd_bytes owner = etcd_key(s, &e, "e/%05u", fence ? fence->partition : 0);
	const struct skv_etcd_compare compare[] = {
		{ .target = SKV_ETCD_VERSION, .relation = SKV_ETCD_EQUAL, .key = op->key,
		  .number = expect },
		etcd_mod_is(owner, fence ? fence->number : 0),
	};
	const struct skv_etcd_op why[] = { etcd_range(op->key), etcd_range(owner) };
	const size_t n = fence ? 2 : 1;
	const struct skv_etcd_txn t = { compare, n, op, 1, why, n };
	int rc;

	assert(op->kind == SKV_ETCD_PUT || op->kind == SKV_ETCD_DELETE);
	*was = (struct skv_etcd_kv){ 0 };
	if (fence && fence->number == 0)
		return etcd_fenced(fence->partition, err);
	rc = etcd_settle(s, &t, a, again, err);
	if (rc != SKV_OK || a->result.succeeded)
		return rc;
	*was = etcd_first(a);
	if (fence && etcd_first(a).mod_revision != fence->number)
		return (*again ? etcd_taken_over : etcd_fenced)(fence->partition, err);
	return SKV_E_CONFLICT;
}

int etcd_registry_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		      const void *bytes, size_t n, uint64_t *version, struct skv_error *err)
{
	struct etcd_store *s = self;
	struct skv_etcd_answer a = { 0 };
	struct skv_buf value = { 0 };
	struct registry_key k;
	struct skv_etcd_op put;
	struct skv_etcd_kv was;
	uint8_t nonce[ETCD_NONCE];
	bool again = false;
	int rc = SKV_E_NOMEM;

	skv_random(nonce, sizeof nonce);
	if (skv_buf_reserve(&value, sizeof nonce + n)) {
		skv_put_bytes(&value, nonce, sizeof nonce);
		skv_put_bytes(&value, bytes, n);
		put = etcd_put(registry_key(s, &k, key), &value);
		rc = change(s, fence, &put, expect, &a, &again, &was, err);
		if (again && was.value.n >= ETCD_NONCE &&
		    memcmp(was.value.p, nonce, ETCD_NONCE) == 0)
			rc = SKV_OK; /* an earlier try was executed */
		else if (rc == SKV_E_CONFLICT)
			rc = conflict(&was, err);
	}
	if (rc == SKV_OK)
		*version = expect + 1;
	skv_etcd_answer_free(&a);
	skv_buf_destroy(&value);
	return rc;
}

int etcd_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	     struct skv_error *err)
{
	struct etcd_store *s = self;
	struct skv_etcd_answer a = { 0 };
	struct registry_key k;
	const struct skv_etcd_op del = etcd_delete(registry_key(s, &k, key));
	struct skv_etcd_kv was;
	bool again = false;
	int rc = change(s, fence, &del, expect, &a, &again, &was, err);

	if (rc == SKV_E_CONFLICT && was.mod_revision)
		rc = conflict(&was, err);
	else if (rc == SKV_E_CONFLICT)
		rc = again ? SKV_OK : none(err); /* an earlier try was executed */
	skv_etcd_answer_free(&a);
	return rc;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct lister {
	struct etcd_store *s;
	struct skv_buf from, end; /* keys */
	uint64_t revision, limit;
	size_t skip; /* bytes of "P/r/" */
	struct skv_buf *found;
};

static void set_text(struct skv_buf *b, const void *p, size_t n)
{
	skv_buf_clear(b);
	skv_put_bytes(b, p, n);
}

static int add(struct lister *l, const struct skv_etcd_kv *kv, struct skv_error *err)
{
	char key[SKV_STORE_KEY_MAX + 1];
	const size_t n = kv->key.n - l->skip;

	if (n > SKV_STORE_KEY_MAX || kv->value.n < ETCD_NONCE)
		return etcd_corrupt(err, kv->key, "is no registry document");
	memcpy(key, (const char *)kv->key.p + l->skip, n);
	key[n] = '\0';
	listing_add(l->found, key, (const uint8_t *)kv->value.p + ETCD_NONCE,
		    kv->value.n - ETCD_NONCE, kv->version);
	return SKV_OK;
}

/* Adds a page; *more: further pages exist. */
static int list_page(struct lister *l, bool *more, struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_op op = etcd_range_to((struct skv_etcd_bytes){ l->from.data, l->from.len },
					      (struct skv_etcd_bytes){ l->end.data, l->end.len },
					      l->limit);
	struct skv_etcd_result r;
	struct skv_etcd_kv kv;
	int rc;

	op.revision = l->revision;
	rc = etcd_read(l->s, &op, 1, &a, err);
	if (rc == SKV_E_TOO_LARGE && l->limit > ETCD_PAGE) {
		l->limit = l->limit / 4 > ETCD_PAGE ? l->limit / 4 : ETCD_PAGE;
		*more = true;
		skv_etcd_answer_free(&a);
		return SKV_OK;
	}
	if (rc == SKV_OK && skv_etcd_next_result(&a.result, &r)) {
		*more = r.more;
		l->revision = l->revision ? l->revision : a.revision;
		while (rc == SKV_OK && skv_etcd_next_kv(&r, &kv)) {
			rc = add(l, &kv, err);
			set_text(&l->from, kv.key.p, kv.key.n);
			skv_put_u8(&l->from, 0);
		}
	}
	skv_etcd_answer_free(&a);
	return rc;
}

/* Adds the documents of a prefix to *found, at *revision; 0: at the newest, which is set. */
static int list_at(struct etcd_store *s, const char *prefix, uint64_t *revision,
		   struct skv_buf *found, struct skv_error *err)
{
	struct lister l = { .s = s, .limit = PAGE, .revision = *revision, .found = found };
	struct registry_key k;
	uint8_t end[sizeof k.text + 1];
	struct skv_etcd_bytes first = registry_key(s, &k, prefix), last;
	bool more = true;
	int rc = SKV_OK;

	l.skip = first.n - strlen(prefix);
	last = skv_etcd_prefix_end(first, end);
	set_text(&l.from, first.p, first.n);
	set_text(&l.end, last.p, last.n);
	while (rc == SKV_OK && more) {
		rc = l.from.failed || l.end.failed ? etcd_no_memory(err) : SKV_OK;
		more = false;
		if (rc == SKV_OK)
			rc = list_page(&l, &more, err);
	}
	*revision = l.revision;
	skv_buf_destroy(&l.from);
	skv_buf_destroy(&l.end);
	return rc;
}

/* A list and the changes after it are one history: each is of revisions behind *at. */
int etcd_changes(void *self, const char *const *prefixes, size_t n, uint64_t *at, bool *all,
		 skv_registry_fn fn, void *ctx, struct skv_error *err)
{
	struct etcd_store *s = self;
	struct skv_buf found = { 0 };
	uint64_t to = *at;
	int rc = SKV_OK;

	*all = !etcd_news_changes(s, prefixes, n, &to, &found);
	if (*all)
		to = 0;
	for (size_t i = 0; *all && rc == SKV_OK && i < n; i++)
		rc = list_at(s, prefixes[i], &to, &found, err);
	if (rc == SKV_OK)
		rc = listing_deliver(&found, fn, ctx, err);
	else
		skv_buf_destroy(&found);
	if (rc == SKV_OK)
		*at = to;
	return rc;
}

int etcd_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx, struct skv_error *err)
{
	uint64_t at = 0;
	bool all;

	return etcd_changes(self, &prefix, 1, &at, &all, fn, ctx, err);
}
