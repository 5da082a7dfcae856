/*
 * etcd_news.c - the watch of a handle: which owners, ends of journals and registry documents have
 * changed, without a request.
 *
 * Events are noted when somebody asks (etcd_news_poll_locked). A watch that ended may have lost
 * some: then everything counts as changed, and the next one begins behind the newest revision that
 * this client has seen. What is older than that is found by the reads that follow.
 *
 * News only save requests. What must not be missed is read.
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
			    const struct skv_etcd_event *e)
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

static void note_document_locked(struct etcd_store *s, const char *key, size_t n)
{
	char *at = s->news.ring[s->news.changes++ % ETCD_RING];

	assert(skv_mutex_held(&s->lock));
	n = n < ETCD_RING_KEY ? n : ETCD_RING_KEY - 1;
	memcpy(at, key, n);
	at[n] = '\0';
	if (s->news.changes - s->news.lost > ETCD_RING)
		s->news.lost = s->news.changes - ETCD_RING;
}

static void note_locked(struct etcd_store *s, const struct skv_etcd_event *e)
{
	const char *rest;
	size_t n;

	if (is_below(s, &e->kv, 'e', &rest, &n))
		s->look.began_us = 0;
	else if (is_below(s, &e->kv, 'n', &rest, &n))
		note_end_locked(s, rest, n, e);
	else if (is_below(s, &e->kv, 'r', &rest, &n))
		note_document_locked(s, rest, n);
}

static void open_locked(struct etcd_store *s)
{
	struct etcd_key from, to;

	assert(!s->news.watch);
	if (skv_etcd_watch_open(s->client, etcd_key(s, &from, "e/"), etcd_key(s, &to, "s"),
				atomic_load(&s->revision) + 1, &s->news.watch, NULL) != SKV_OK) {
		s->news.watch = NULL; /* another call tries again; until then everything is read */
		return;
	}
	s->news.opened++;
	s->news.lost = ++s->news.changes;
	s->look.began_us = 0;
	for (struct etcd_part *p = s->parts; p; p = p->next)
		p->certain = false;
}

void etcd_news_poll_locked(struct etcd_store *s)
{
	struct skv_etcd_event e;
	int rc = SKV_E_TIMEOUT;

	assert(skv_mutex_held(&s->lock));
	while (s->news.watch &&
	       (rc = skv_etcd_watch_next(s->news.watch, 0, &e, NULL)) == SKV_OK)
		note_locked(s, &e);
	if (rc != SKV_E_TIMEOUT)
		etcd_news_close(s);
	if (!s->news.watch)
		open_locked(s);
}

void etcd_news_close(struct etcd_store *s)
{
	skv_etcd_watch_close(s->news.watch);
	s->news.watch = NULL;
}

bool etcd_changed(void *self, const char *prefix, uint64_t *at)
{
	struct etcd_store *s = self;
	size_t n = strlen(prefix);
	uint64_t i = *at;
	bool yes;

	n = n < ETCD_RING_KEY ? n : ETCD_RING_KEY - 1;
	skv_mutex_lock(&s->lock);
	etcd_news_poll_locked(s);
	yes = !s->news.watch || i < s->news.lost;
	for (; !yes && i < s->news.changes; i++)
		yes = strncmp(s->news.ring[i % ETCD_RING], prefix, n) == 0;
	*at = s->news.changes;
	skv_mutex_unlock(&s->lock);
	return yes;
}
