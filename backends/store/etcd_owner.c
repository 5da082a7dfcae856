/*
 * etcd_owner.c - ownership of partitions in the store on etcd.
 *
 * P/e/N names the owner and the handle (manager) that it has the partition by; its mod revision is
 * the fence, which each write compares. P/m/MANAGER is the lease of all partitions of a handle:
 * one transaction renews it and reads all rows of both, so it serves renewals and claims at once.
 * Calls that come while a renewal is under way share the next one.
 *
 * A claim is a transaction that compares P/e/N and the old owner's P/m as they were read, so a
 * renewal that comes first makes it fail. It may be tried when
 *	- nobody owns the partition, or the same owner claims it again, or
 *	- the owner's process is provably dead (skv_owner_is_dead), or
 *	- the lease is from this boot of this host, and has expired by the clock that both share, or
 *	- this handle's own reads have seen the lease unchanged for its full length. Only time
 *	  between two reads that both succeeded counts, at most two intervals for each pair: so
 *	  neither an outage of etcd nor a pause of this process takes a lease away.
 * After an outage, a lease of this host gets its full length again, too: its owner could not renew
 * it meanwhile, as when etcd elects a leader.
 *
 * Rows are read at most once in an interval (a twentieth of the shortest lease), unless the watch
 * has seen an owner change. Any thread.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#include "etcd_store.h"

#define INTERVAL_MIN_MS 50u
#define INTERVAL_MAX_MS 250u
#define OUTAGE_INTERVALS 10u /* half a lease: a read that takes longer is an outage of etcd */
#define CLAIMS 16 /* tries of an acquire, each after another change */

void etcd_look_free(struct etcd_store *s)
{
	skv_free(s->look.rows);
	skv_free(s->look.managers);
}

static struct etcd_row *row_of_locked(struct etcd_store *s, uint32_t partition)
	SKV_REQUIRES(s->lock)
{
	assert(skv_mutex_held(&s->lock));
	for (size_t i = 0; i < s->look.n_rows; i++)
		if (s->look.rows[i].partition == partition)
			return &s->look.rows[i];
	return NULL;
}

static struct etcd_manager *manager_in(struct etcd_manager *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].name, name) == 0)
			return &v[i];
	return NULL;
}

static struct etcd_manager *manager_locked(struct etcd_store *s, const char *name)
	SKV_REQUIRES(s->lock)
{
	assert(skv_mutex_held(&s->lock));
	return manager_in(s->look.managers, s->look.n_managers, name);
}

static uint32_t interval_ms_locked(const struct etcd_store *s) SKV_REQUIRES(s->lock)
{
	uint32_t least = INTERVAL_MAX_MS;

	assert(skv_mutex_held((struct skv_mutex *)&s->lock));
	for (size_t i = 0; i < s->look.n_managers; i++)
		if (s->look.managers[i].l.ttl_ms / 20 < least)
			least = s->look.managers[i].l.ttl_ms / 20;
	return least > INTERVAL_MIN_MS ? least : INTERVAL_MIN_MS;
}

/* ---- reading the rows ------------------------------------------------------------------------ */

struct rows {
	struct etcd_row *rows;
	size_t n_rows, cap_rows;
	struct etcd_manager *managers;
	size_t n_managers, cap_managers;
};

/* The part of a key after "P/e/" or "P/m/". */
static const char *rest_of(const struct etcd_store *s, const struct skv_etcd_kv *kv, size_t *n)
{
	const size_t skip = strlen(s->url.prefix) + 3;

	*n = kv->key.n - skip;
	return (const char *)kv->key.p + skip;
}

static int add_row(const struct etcd_store *s, struct rows *all, const struct skv_etcd_kv *kv,
		   struct skv_error *err)
{
	struct etcd_row *row;
	char number[16] = "";
	const char *rest;
	size_t n;

	if (skv_grow((void **)&all->rows, &all->cap_rows, all->n_rows + 1, sizeof *row) != SKV_OK)
		return etcd_no_memory(err);
	row = &all->rows[all->n_rows++];
	rest = rest_of(s, kv, &n);
	memcpy(number, rest, n < sizeof number ? n : sizeof number - 1);
	*row = (struct etcd_row){ .partition = (uint32_t)strtoul(number, NULL, 10),
				  .mod = kv->mod_revision };
	return etcd_get_owner(kv, &row->o, err);
}

static int add_manager(const struct etcd_store *s, struct rows *all, const struct skv_etcd_kv *kv,
		       struct skv_error *err)
{
	struct etcd_manager *m;
	const char *rest;
	size_t n;

	if (skv_grow((void **)&all->managers, &all->cap_managers, all->n_managers + 1,
		     sizeof *m) != SKV_OK)
		return etcd_no_memory(err);
	m = &all->managers[all->n_managers++];
	rest = rest_of(s, kv, &n);
	*m = (struct etcd_manager){ .mod = kv->mod_revision };
	snprintf(m->name, sizeof m->name, "%.*s", (int)n, rest);
	return etcd_get_lease(kv, &m->l, err);
}

static int decode(const struct etcd_store *s, struct skv_etcd_answer *a, struct rows *all,
		  struct skv_error *err)
{
	struct skv_etcd_result r;
	struct skv_etcd_kv kv;
	unsigned ranges = 0;
	int rc = SKV_OK;

	while (rc == SKV_OK && skv_etcd_next_result(&a->result, &r)) {
		if (r.kind != SKV_ETCD_RANGE)
			continue;
		while (rc == SKV_OK && skv_etcd_next_kv(&r, &kv))
			rc = (ranges == 0 ? add_row : add_manager)(s, all, &kv, err);
		ranges++;
	}
	return rc;
}

/* Keeps the known state of a manager if its lease is the same. */
static void count_locked(struct etcd_store *s, struct etcd_manager *m, uint64_t began_ms,
			 uint64_t ended_ms) SKV_REQUIRES(s->lock)
{
	const struct etcd_manager *old = manager_locked(s, m->name);
	const uint64_t most = 2 * interval_ms_locked(s);
	uint64_t more;

	m->seen_ms = m->read_ms = ended_ms;
	if (!old || old->mod != m->mod)
		return;
	m->seen_ms = old->seen_ms;
	if (old->read_ms == 0)
		return; /* a read failed: counted anew */
	more = began_ms > old->read_ms ? began_ms - old->read_ms : 0;
	m->counted_ms = old->counted_ms + (more < most ? more : most);
}

static void accept_locked(struct etcd_store *s, struct rows *all, uint64_t began_us,
			  uint64_t began_ms) SKV_REQUIRES(s->lock)
{
	const uint64_t ended_ms = skv_now_ms(s->clock);

	for (size_t i = 0; i < all->n_managers; i++)
		count_locked(s, &all->managers[i], began_ms, ended_ms);
	etcd_look_free(s);
	s->look.rows = all->rows;
	s->look.n_rows = all->n_rows;
	s->look.cap_rows = all->cap_rows;
	s->look.managers = all->managers;
	s->look.n_managers = all->n_managers;
	s->look.cap_managers = all->cap_managers;
	s->look.began_us = began_us;
	if (s->look.failed || ended_ms - began_ms > OUTAGE_INTERVALS * interval_ms_locked(s))
		s->look.whole_since_ms = ended_ms;
	s->look.failed = false;
}

/* Takes the rows over, unless others have come that are newer. */
static void accept_rows(struct etcd_store *s, struct rows *all, uint64_t revision,
			uint64_t began_us, uint64_t began_ms)
{
	skv_mutex_lock(&s->lock);
	if (revision >= s->look.revision) {
		accept_locked(s, all, began_us, began_ms);
		s->look.revision = revision;
		*all = (struct rows){ 0 };
	}
	skv_mutex_unlock(&s->lock);
}

static void count_anew(struct etcd_store *s)
{
	skv_mutex_lock(&s->lock);
	s->look.failed = true;
	for (size_t i = 0; i < s->look.n_managers; i++)
		s->look.managers[i].read_ms = s->look.managers[i].counted_ms = 0;
	skv_mutex_unlock(&s->lock);
}

/* Reads all rows, in one transaction with `put` (NULL: none) before it. */
static int read_rows(struct etcd_store *s, const struct skv_etcd_op *put, struct skv_error *err)
{
	const uint64_t began_us = skv_now_us(), began_ms = skv_now_ms(s->clock);
	struct etcd_key k[4];
	struct skv_etcd_answer a = { 0 };
	struct rows all = { 0 };
	struct skv_etcd_op ops[3];
	size_t n = 0;
	int rc;

	if (put)
		ops[n++] = *put;
	ops[n++] = etcd_range_to(etcd_key(s, &k[0], "e/"), etcd_key(s, &k[1], "e0"), 0);
	ops[n++] = etcd_range_to(etcd_key(s, &k[2], "m/"), etcd_key(s, &k[3], "m0"), 0);
	rc = etcd_read(s, ops, n, &a, err);
	if (rc == SKV_OK)
		rc = decode(s, &a, &all, err);
	if (rc == SKV_OK)
		accept_rows(s, &all, a.revision, began_us, began_ms);
	else
		count_anew(s);
	skv_etcd_answer_free(&a);
	skv_free(all.rows);
	skv_free(all.managers);
	return rc;
}

/* Sees to it that the rows are not older than an interval. Others that come meanwhile wait. */
static int look(struct etcd_store *s, struct skv_error *err)
{
	int rc = SKV_OK;

	skv_mutex_lock(&s->lock);
	etcd_news_poll_locked(s);
	while (s->look.looking)
		skv_cond_wait(&s->changed, &s->lock);
	if (s->look.began_us == 0 || s->look.failed ||
	    skv_now_us() - s->look.began_us >= interval_ms_locked(s) * 1000u) {
		s->look.looking = true;
		skv_mutex_unlock(&s->lock);
		rc = read_rows(s, NULL, err);
		skv_mutex_lock(&s->lock);
		s->look.looking = false;
		skv_cond_broadcast(&s->changed);
	}
	skv_mutex_unlock(&s->lock);
	return rc;
}

/* ---- acquiring ------------------------------------------------------------------------------- */

/* A claim of a partition, as it was decided. */
struct claim {
	uint32_t partition;
	uint64_t mod;                 /* of P/e/N; 0: no owner */
	struct etcd_owner old, mine;
	bool compare_manager;         /* the old owner's lease must be the one that was read */
	bool last_of_old;             /* the old manager has nothing else: its lease is removed */
	uint64_t manager_mod;
};

static bool lease_over_locked(const struct etcd_store *s, const struct etcd_manager *m,
			      uint64_t now) SKV_REQUIRES(s->lock)
{
	if (strcmp(m->l.boot_id, s->boot_id) == 0)
		return now >= m->l.expires_ms && (s->look.whole_since_ms == 0 ||
						  now - s->look.whole_since_ms >= m->l.ttl_ms);
	return m->counted_ms >= m->l.ttl_ms;
}

static bool has_others_locked(const struct etcd_store *s, const struct etcd_row *row)
	SKV_REQUIRES(s->lock)
{
	assert(skv_mutex_held((struct skv_mutex *)&s->lock));
	for (size_t i = 0; i < s->look.n_rows; i++)
		if (&s->look.rows[i] != row &&
		    strcmp(s->look.rows[i].o.manager, row->o.manager) == 0)
			return true;
	return false;
}

/* Returns true if the rows permit the claim. Fills in the claim. */
static bool may_claim(struct etcd_store *s, struct claim *c, uint64_t now)
{
	const struct etcd_manager *m;
	const struct etcd_row *row;
	bool yes = true;

	skv_mutex_lock(&s->lock);
	row = row_of_locked(s, c->partition);
	c->mod = row ? row->mod : 0;
	c->old = row ? row->o : (struct etcd_owner){ .owner = "" };
	c->compare_manager = row && strcmp(row->o.manager, s->manager) != 0;
	c->last_of_old = c->compare_manager && !has_others_locked(s, row);
	m = row ? manager_locked(s, row->o.manager) : NULL;
	c->manager_mod = m ? m->mod : 0;
	if (row && strcmp(row->o.owner, c->mine.owner) != 0)
		yes = !m || lease_over_locked(s, m, now);
	skv_mutex_unlock(&s->lock);
	return yes || skv_owner_is_dead(c->old.owner);
}

static void put_my_lease(struct etcd_store *s, struct skv_buf *b, uint32_t ttl_ms, uint64_t now)
{
	struct etcd_lease l = { 0 };

	skv_mutex_lock(&s->lock);
	if (ttl_ms > s->look.ttl_ms)
		s->look.ttl_ms = ttl_ms;
	l.ttl_ms = s->look.ttl_ms;
	skv_mutex_unlock(&s->lock);
	l.expires_ms = now + l.ttl_ms;
	memcpy(l.boot_id, s->boot_id, sizeof l.boot_id);
	etcd_put_lease(b, &l);
}

/* The transaction. SKV_E_CONFLICT: something has changed since it was read. */
static int claim(struct etcd_store *s, const struct claim *c, const struct skv_buf *lease,
		 uint64_t *fence, struct skv_error *err)
{
	struct etcd_key k[5];
	const struct skv_etcd_bytes e = etcd_key(s, &k[0], "e/%05u", c->partition),
				    n = etcd_key(s, &k[1], "n/%05u", c->partition),
				    mine = etcd_key(s, &k[2], "m/%s", s->manager),
				    old = etcd_key(s, &k[3], "m/%s", c->old.manager),
				    format = etcd_key(s, &k[4], "format");
	const struct skv_etcd_compare compare[] = { etcd_mod_is(e, c->mod),
						    etcd_mod_is(format, s->format_mod),
						    etcd_mod_is(old, c->manager_mod) };
	const struct skv_etcd_compare no_end = etcd_mod_is(n, 0);
	struct skv_buf owner = { 0 }, end = { 0 };
	struct skv_etcd_op put_end, ops[4];
	const struct skv_etcd_txn make_end = { &no_end, 1, &put_end, 1, NULL, 0 };
	const struct skv_etcd_op why[] = { etcd_range(e), etcd_range(format) };
	struct skv_etcd_txn t = { compare, c->compare_manager ? 3 : 2, ops, 3, why, 2 };
	struct skv_etcd_answer a = { 0 };
	struct etcd_owner is;
	struct skv_etcd_kv kv, is_format;
	int rc;

	etcd_put_owner(&owner, &c->mine);
	etcd_put_end(&end, &(struct etcd_end){ 0 });
	put_end = etcd_put(n, &end);
	ops[0] = etcd_put(e, &owner);
	ops[1] = etcd_put(mine, lease);
	ops[2] = (struct skv_etcd_op){ .kind = SKV_ETCD_TXN, .txn = &make_end };
	if (c->last_of_old)
		ops[t.n_then++] = etcd_delete(old);
	rc = owner.failed || end.failed ? etcd_no_memory(err) : etcd_settle(s, &t, &a, NULL, err);
	if (rc == SKV_OK && a.result.succeeded) {
		*fence = a.revision;
	} else if (rc == SKV_OK) {
		kv = etcd_first(&a);
		is_format = etcd_first(&a);
		rc = etcd_check_here(s, &is_format, err);
		if (rc == SKV_OK)
			rc = kv.mod_revision ? etcd_get_owner(&kv, &is, err) : SKV_E_CONFLICT;
		if (rc == SKV_OK && is.nonce == c->mine.nonce)
			*fence = kv.mod_revision; /* an earlier try was executed */
		else if (rc == SKV_OK)
			rc = SKV_E_CONFLICT;
	}
	skv_etcd_answer_free(&a);
	skv_buf_destroy(&owner);
	skv_buf_destroy(&end);
	return rc;
}

static void old_rows(struct etcd_store *s)
{
	skv_mutex_lock(&s->lock);
	s->look.began_us = 0;
	skv_mutex_unlock(&s->lock);
}

/* From here on this handle keeps house in the partition. */
static int own(struct etcd_store *s, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	struct etcd_part *part = etcd_part(s, partition);

	old_rows(s);
	if (!part)
		return etcd_no_memory(err);
	skv_mutex_lock(&s->lock);
	part->owned = fence;
	part->untidy = fence != 0;
	etcd_keeper_wake_locked(s);
	skv_mutex_unlock(&s->lock);
	return etcd_keeper_start(s, err);
}

/* SKV_E_CONFLICT: to be tried again. */
static int try_claim(struct etcd_store *s, struct claim *c, uint32_t ttl_ms, uint64_t *fence,
		     struct skv_error *err)
{
	const uint64_t now = skv_now_ms(s->clock);
	struct skv_buf lease = { 0 };
	int rc = look(s, err);

	if (rc != SKV_OK)
		return rc;
	if (!may_claim(s, c, now))
		return skv_fail(err, SKV_E_NOT_OWNER, NULL, "partition %u belongs to %s",
				c->partition, c->old.owner);
	if (ttl_ms == 0)
		return SKV_OK;
	put_my_lease(s, &lease, ttl_ms, now);
	rc = lease.failed ? etcd_no_memory(err) : claim(s, c, &lease, fence, err);
	skv_buf_destroy(&lease);
	if (rc == SKV_E_CONFLICT)
		old_rows(s);
	return rc == SKV_OK ? own(s, c->partition, *fence, err) : rc;
}

int etcd_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
		 uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err)
{
	struct etcd_store *s = self;
	struct claim c = { .partition = partition };
	uint64_t taken = 0;
	int rc = SKV_E_CONFLICT;

	skv_random(&c.mine.nonce, sizeof c.mine.nonce);
	snprintf(c.mine.owner, sizeof c.mine.owner, "%s", owner);
	memcpy(c.mine.manager, s->manager, sizeof s->manager);
	for (int i = 0; rc == SKV_E_CONFLICT && i < CLAIMS; i++)
		rc = try_claim(s, &c, ttl_ms, &taken, err);
	if (rc == SKV_E_CONFLICT)
		rc = skv_fail(err, SKV_E_STORE_IO, "store",
			      "partition %u changes its owner all the time", partition);
	if (rc == SKV_E_NOT_OWNER)
		snprintf(holder, holder_size, "%s", c.old.owner);
	if (rc == SKV_OK && ttl_ms > 0)
		*fence = taken;
	return rc;
}

/* ---- renewing and giving up ------------------------------------------------------------------ */

/* Writes the lease of a manager, and reads all rows. */
static int renew_lease(struct etcd_store *s, const char *manager, uint32_t ttl_ms,
		       struct skv_error *err)
{
	struct skv_buf lease = { 0 };
	struct skv_etcd_op put;
	struct etcd_key k;
	int rc;

	put_my_lease(s, &lease, ttl_ms, skv_now_ms(s->clock));
	put = etcd_put(etcd_key(s, &k, "m/%s", manager), &lease);
	rc = lease.failed ? etcd_no_memory(err) : read_rows(s, &put, err);
	skv_buf_destroy(&lease);
	return rc;
}

/* Renews once for all waiting callers; the renewal begins after this call did. */
static int renew_mine(struct etcd_store *s, uint32_t ttl_ms, struct skv_error *err)
{
	struct skv_error said = { 0 };
	uint64_t mine;
	int rc;

	skv_mutex_lock(&s->lock);
	etcd_news_poll_locked(s);
	mine = s->look.renewals + 1;
	if (ttl_ms > s->look.ttl_ms)
		s->look.ttl_ms = ttl_ms;
	while (s->look.renewed < mine) {
		if (s->look.renewing) {
			skv_cond_wait(&s->changed, &s->lock);
			continue;
		}
		s->look.renewing = true;
		s->look.renewals++;
		skv_mutex_unlock(&s->lock);
		rc = renew_lease(s, s->manager, ttl_ms, &said);
		skv_mutex_lock(&s->lock);
		s->look.renewing = false;
		s->look.renewed = s->look.renewals;
		s->look.rc = rc;
		s->look.err = said;
		skv_cond_broadcast(&s->changed);
	}
	rc = s->look.rc;
	if (rc != SKV_OK && err)
		*err = s->look.err;
	skv_mutex_unlock(&s->lock);
	return rc;
}

/* The manager by whose lease the partition is owned with this fence; false: it is not. */
static bool find_manager(struct etcd_store *s, uint32_t partition, uint64_t fence,
			 char out[ETCD_NAME + 1])
{
	const struct etcd_row *row;
	bool found;

	skv_mutex_lock(&s->lock);
	row = row_of_locked(s, partition);
	found = row && row->mod == fence;
	if (found)
		memcpy(out, row->o.manager, ETCD_NAME + 1);
	skv_mutex_unlock(&s->lock);
	return found;
}

int etcd_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
	       struct skv_error *err)
{
	struct etcd_store *s = self;
	char manager[ETCD_NAME + 1];
	int rc = SKV_OK;

	if (!find_manager(s, partition, fence, manager)) {
		rc = read_rows(s, NULL, err); /* the partition may have been acquired since */
		if (rc == SKV_OK && !find_manager(s, partition, fence, manager))
			rc = etcd_fenced(partition, err);
	}
	if (rc == SKV_OK)
		rc = strcmp(manager, s->manager) == 0 ? renew_mine(s, ttl_ms, err)
						      : renew_lease(s, manager, ttl_ms, err);
	if (rc == SKV_OK && !find_manager(s, partition, fence, manager))
		rc = etcd_fenced(partition, err);
	return rc;
}

int etcd_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	struct etcd_store *s = self;
	struct etcd_key k;
	const struct skv_etcd_bytes e = etcd_key(s, &k, "e/%05u", partition);
	const struct skv_etcd_compare is_mine = etcd_mod_is(e, fence);
	const struct skv_etcd_op del = etcd_delete(e), why = etcd_range(e);
	const struct skv_etcd_txn t = { &is_mine, 1, &del, 1, &why, 1 };
	struct skv_etcd_answer a = { 0 };
	bool again = false;
	int rc = fence ? etcd_settle(s, &t, &a, &again, err) : etcd_fenced(partition, err);

	if (rc == SKV_OK && !a.result.succeeded && !(again && etcd_first(&a).mod_revision == 0))
		rc = etcd_fenced(partition, err);
	skv_etcd_answer_free(&a);
	return rc == SKV_OK ? own(s, partition, 0, err) : rc;
}

/* Returns true if this handle, by the rows, still has any partition that it acquired and did not
 * release. */
static bool owns_any(struct etcd_store *s)
{
	const struct etcd_row *row;
	bool yes = false;

	skv_mutex_lock(&s->lock);
	for (const struct etcd_part *p = s->parts; p; p = p->next) {
		row = p->owned ? row_of_locked(s, p->number) : NULL;
		yes |= p->owned && !(row && row->mod > p->owned);
	}
	skv_mutex_unlock(&s->lock);
	return yes;
}

void etcd_leave(struct etcd_store *s)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k;
	const struct skv_etcd_op del = etcd_delete(etcd_key(s, &k, "m/%s", s->manager));

	if (s->look.ttl_ms && !owns_any(s)) /* a failure leaves 80 harmless bytes */
		(void)skv_etcd_run(s->client, &del, &a, NULL);
	skv_etcd_answer_free(&a);
}

uint64_t etcd_renewed(void *self, uint32_t partition)
{
	struct etcd_store *s = self;
	const struct etcd_manager *m;
	const struct etcd_row *row;
	uint64_t seen;

	skv_mutex_lock(&s->lock);
	row = row_of_locked(s, partition);
	m = row ? manager_locked(s, row->o.manager) : NULL;
	seen = m ? m->seen_ms : 0;
	skv_mutex_unlock(&s->lock);
	return seen;
}
