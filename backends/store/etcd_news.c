/*
 * etcd_news.c - the watch of a handle: reports changed owners, ends of journals and registry
 * documents without a request. Changed documents are kept for a while (`log`) for followers of the
 * registry; a follower that comes too late lists the registry.
 *
 * Events are noted when a caller polls (etcd_news_poll_locked). A watch that ended may have lost
 * some: then everything counts as changed, and the next one begins after the newest revision that
 * this client has seen. The reads that follow find older changes.
 *
 * The watch only saves requests. Facts that must not be missed are read.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd_store.h"

/* "P/e/" and so on. */
static bool is_below(const struct etcd_store *s, const struct skv_etcd_kv *kv, char kind,
		     const char **rest, size_t *n)
{
	const size_t at = strlen(s->url.prefix);
	const char *key = kv->key.p;

	if (kv->key.n < at + 3 || key[at + 1] != kind || key[at + 2] != '/')
		return false;
	*rest = key + at + 3;
	*n = kv->key.n - at - 3;
	return true;
}

static void note_end_locked(struct etcd_store *s, const char *number, size_t n,
			    const struct skv_etcd_event *e) SKV_REQUIRES(s->lock)
{
	char text[8] = "";
	struct etcd_part *p;
	struct etcd_end end;

	memcpy(text, number, n < sizeof text ? n : sizeof text - 1);
	for (p = s->parts; p && p->number != strtoul(text, NULL, 10); p = p->next)
		;
	if (!p)
		return;
	if (e->deleted || etcd_get_end(&e->kv, &end, NULL) != SKV_OK)
		p->certain = false;
	else if (end.seq > p->newest)
		p->newest = end.seq;
}

/* Forgets the older half of the changes, and begins another one. */
static void turn_log_locked(struct etcd_store *s) SKV_REQUIRES(s->lock)
{
	const struct skv_buf old = s->news.log[0];

	s->news.lost = s->news.turned;
	s->news.turned = s->news.newest;
	s->news.log[0] = s->news.log[1];
	s->news.log[1] = old;
	skv_buf_clear(&s->news.log[1]);
}

static void forget_log_locked(struct etcd_store *s, uint64_t revision) SKV_REQUIRES(s->lock)
{
	s->news.newest = revision;
	turn_log_locked(s);
	turn_log_locked(s);
}

static void note_document_locked(struct etcd_store *s, const char *rest, size_t n,
				 const struct skv_etcd_event *e) SKV_REQUIRES(s->lock)
{
	const struct skv_etcd_bytes v = e->kv.value;
	char key[SKV_STORE_KEY_MAX + 1];

	assert(skv_mutex_held(&s->lock));
	if (s->news.log[1].len > ETCD_LOG)
		turn_log_locked(s);
	s->news.newest = e->kv.mod_revision;
	skv_put_u64(&s->news.log[1], e->kv.mod_revision);
	if (n < sizeof key && (e->deleted || v.n >= ETCD_NONCE)) {
		memcpy(key, rest, n);
		key[n] = '\0';
		listing_add(&s->news.log[1], key, e->deleted ? "" : (const char *)v.p + ETCD_NONCE,
			    e->deleted ? 0 : v.n - ETCD_NONCE,
			    e->deleted ? SKV_VERSION_NONE : e->kv.version);
	} else {
		s->news.log[1].failed = true; /* a list determines the change */
	}
	if (s->news.log[1].failed)
		forget_log_locked(s, e->kv.mod_revision);
}

static void note_locked(struct etcd_store *s, const struct skv_etcd_event *e) SKV_REQUIRES(s->lock)
{
	const char *rest;
	size_t n;

	if (is_below(s, &e->kv, 'e', &rest, &n))
		s->look.began_us = 0;
	else if (is_below(s, &e->kv, 'n', &rest, &n))
		note_end_locked(s, rest, n, e);
	else if (is_below(s, &e->kv, 'r', &rest, &n))
		note_document_locked(s, rest, n, e);
}

/* Marks everything that the watch has reported as uncertain. */
static void doubt_locked(struct etcd_store *s) SKV_REQUIRES(s->lock)
{
	s->look.began_us = 0;
	for (struct etcd_part *p = s->parts; p; p = p->next)
		p->certain = false;
}

static void open_locked(struct etcd_store *s) SKV_REQUIRES(s->lock)
{
	const uint64_t from = atomic_load(&s->revision) + 1;
	struct etcd_key first, end;

	assert(!s->news.watch);
	if (from == s->news.from)
		return; /* a watch ended here because of a compaction: read first */
	if (skv_etcd_watch_open(s->client, etcd_key(s, &first, "e/"), etcd_key(s, &end, "s"), from,
				&s->news.watch, NULL) != SKV_OK) {
		s->news.watch = NULL; /* another call tries again; until then everything is read */
		return;
	}
	s->news.opened++;
	s->news.from = from;
	forget_log_locked(s, from - 1);
	doubt_locked(s);
}

void etcd_news_poll_locked(struct etcd_store *s)
{
	struct skv_etcd_event e;
	int rc = SKV_E_TIMEOUT;

	assert(skv_mutex_held(&s->lock));
	while (s->news.watch &&
	       (rc = skv_etcd_watch_next(s->news.watch, 0, &e, NULL)) == SKV_OK)
		note_locked(s, &e);
	if (rc != SKV_E_TIMEOUT) {
		etcd_news_close(s);
		doubt_locked(s);
	}
	if (!s->news.watch)
		open_locked(s);
}

void etcd_news_close(struct etcd_store *s)
{
	skv_etcd_watch_close(s->news.watch);
	s->news.watch = NULL;
}

static bool begins_with_one_of(const char *const *prefixes, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Adds the changes after revision `at`. */
static void find_changes(const struct skv_buf *log, const char *const *prefixes, size_t n,
			 uint64_t at, struct skv_buf *found)
{
	struct skv_rd r = skv_rd_make(log->data, log->len);

	while (skv_rd_left(&r) > 0) {
		const uint64_t revision = skv_get_u64(&r);
		size_t key_n, bytes_n;
		const char *key = skv_get_string(&r, &key_n, SIZE_MAX);
		const uint64_t version = skv_get_u64(&r);
		const char *bytes = skv_get_string(&r, &bytes_n, SIZE_MAX);

		assert(!r.failed);
		if (revision > at && begins_with_one_of(prefixes, n, key))
			listing_add(found, key, bytes, bytes_n, version);
	}
}

bool etcd_news_changes(struct etcd_store *s, const char *const *prefixes, size_t n, uint64_t *at,
		       struct skv_buf *found)
{
	bool known;

	skv_mutex_lock(&s->lock);
	etcd_news_poll_locked(s);
	known = *at > 0 && s->news.watch && *at >= s->news.lost;
	if (known && s->news.newest > *at) {
		find_changes(&s->news.log[0], prefixes, n, *at, found);
		find_changes(&s->news.log[1], prefixes, n, *at, found);
		*at = s->news.newest;
	}
	skv_mutex_unlock(&s->lock);
	return known;
}
