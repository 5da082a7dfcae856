/*
 * redis_link.c - connections: finds and connects to the primary of a hash tag.
 *
 * Until its call's deadline a link tries: the last primary, a node named by another (MOVED, or a
 * replica's master), then every address of the URL and every one learned since, in turn. A node
 * that does not answer in time is skipped, so one that drops packets costs little.
 *
 * Any thread. A link's lock is held during its call; the store's lock guards the lists and is never
 * held across I/O.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "redis_store.h"

#define MUTE_MS 1000u
#define AGAIN_MS 10u    /* between two attempts to find a primary */

int redis_no_memory(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

bool redis_node_equal(const struct redis_node *a, const struct redis_node *b)
{
	return a->port == b->port && strcmp(a->host, b->host) == 0;
}

void redis_learn(struct redis_store *s, const struct redis_node *at)
{
	bool known = false;

	skv_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->n_node && !known; i++)
		known = redis_node_equal(&s->node[i], at);
	if (!known && s->n_node < REDIS_NODES)
		s->node[s->n_node++] = *at;
	assert(s->n_node <= REDIS_NODES);
	skv_mutex_unlock(&s->lock);
}

uint64_t redis_deadline(const struct redis_store *s)
{
	return skv_now_us() + (uint64_t)s->url.timeout_ms * 1000;
}

void redis_key(const struct redis_store *s, uint32_t tag, char out[REDIS_KEY_MAX], const char *fmt,
	       ...)
{
	int n = tag == REDIS_REGISTRY
			? snprintf(out, REDIS_KEY_MAX, "{%s.registry}:", s->url.prefix)
		: tag >= REDIS_SILENT_TAG
			? snprintf(out, REDIS_KEY_MAX, "{%s.silent.%u}:", s->url.prefix,
				   tag - REDIS_SILENT_TAG)
			: snprintf(out, REDIS_KEY_MAX, "{%s.%u}:", s->url.prefix, tag);
	va_list ap;

	assert(n > 0 && (size_t)n < REDIS_KEY_MAX);
	va_start(ap, fmt);
	n += vsnprintf(out + n, REDIS_KEY_MAX - (size_t)n, fmt, ap);
	va_end(ap);
	assert((size_t)n < REDIS_KEY_MAX);
}

void redis_new_op(char out[REDIS_OP + 1])
{
	uint64_t random;

	skv_random(&random, sizeof random);
	snprintf(out, REDIS_OP + 1, "%016llx", (unsigned long long)random);
}

/* ---- links ----------------------------------------------------------------------------------- */

static struct redis_link *find_locked(struct redis_store *s, uint32_t tag, enum redis_use use)
{
	struct redis_link *l = s->links;

	assert(skv_mutex_held(&s->lock));
	while (l && (l->tag != tag || l->use != use))
		l = l->next;
	if (l)
		return l;
	l = skv_calloc(1, sizeof *l);
	if (!l)
		return NULL;
	skv_mutex_init(&l->lock);
	l->store = s;
	l->tag = tag;
	l->use = use;
	l->chain_seq = UINT64_MAX;
	l->next = s->links;
	s->links = l;
	return l;
}

struct redis_link *redis_link_take(struct redis_store *s, uint32_t tag, enum redis_use use)
{
	struct redis_link *l;

	skv_mutex_lock(&s->lock);
	l = find_locked(s, tag, use);
	skv_mutex_unlock(&s->lock);
	if (l)
		skv_mutex_lock(&l->lock); /* a link lives as long as its store */
	return l;
}

void redis_link_give(struct redis_link *l)
{
	assert(skv_mutex_held(&l->lock) && (l->chain_seq == UINT64_MAX || l->use == REDIS_JOURNAL));
	skv_mutex_unlock(&l->lock);
}

void redis_link_drop(struct redis_link *l)
{
	assert(skv_mutex_held(&l->lock));
	redis_conn_close(l->c);
	l->c = NULL;
	l->id[0] = '\0';
}

void redis_link_mute(struct redis_link *l)
{
	assert(skv_mutex_held(&l->lock));
	l->mute = l->at;
	l->mute_us = skv_now_us() + MUTE_MS * 1000u;
}

void redis_link_destroy(struct redis_link *l)
{
	redis_conn_close(l->c);
	redis_conn_close(l->side);
	skv_mutex_destroy(&l->lock);
	skv_free(l);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static int log_in(const struct redis_store *s, struct redis_conn *c, struct skv_error *err)
{
	const struct redis_url *u = &s->url;
	redisReply *r;
	int rc = SKV_OK;

	if (!u->password[0])
		return SKV_OK;
	r = u->user[0] ? redis_command(c, "AUTH %s %s", u->user, u->password)
		       : redis_command(c, "AUTH %s", u->password);
	if (!r)
		rc = skv_fail(err, SKV_E_STORE_IO, "store", "no answer to AUTH: %s",
			      redis_conn_error(c));
	else if (r->type == REDIS_REPLY_ERROR)
		rc = skv_fail(err, SKV_E_FORBIDDEN, "store", "user or password is wrong: %.150s",
			      r->str);
	freeReplyObject(r);
	return rc;
}

struct redis_conn *redis_connect_to(const struct redis_store *s, const struct redis_node *at,
				    struct skv_error *err)
{
	struct redis_conn *c = redis_conn_open(at, &s->url.tls, err);

	if (c && log_in(s, c, err) == SKV_OK)
		return c;
	redis_conn_close(c);
	return NULL;
}

int redis_refused(const struct redis_link *l, const char *text, struct skv_error *err)
{
	return skv_fail(err, SKV_E_FORBIDDEN, "store", "%.120s:%u %s: %.150s", l->at.host,
			l->at.port,
			strncmp(text, "NOAUTH", 6) == 0
				? "wants a password (redis://user:password@host:port)"
				: "does not let this user do what a manager must",
			text);
}

/* ROLE of a node: is it a primary? A replica names its master. */
static bool is_primary(struct redis_link *l, struct redis_conn *c, struct skv_error *err)
{
	redisReply *r = redis_command(c, "ROLE");
	bool primary = false;

	assert(skv_mutex_held(&l->lock) && c != l->c);
	if (!r) {
		skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u does not answer to ROLE: %s",
			 l->at.host, l->at.port, redis_conn_error(c));
	} else if (r->type == REDIS_REPLY_ERROR) {
		redis_refused(l, r->str, err);
	} else if (r->type == REDIS_REPLY_ARRAY && r->elements >= 3 &&
		   r->element[0]->type == REDIS_REPLY_STRING) {
		primary = strcmp(r->element[0]->str, "master") == 0;
		if (!primary && strcmp(r->element[0]->str, "slave") == 0 &&
		    r->element[1]->type == REDIS_REPLY_STRING &&
		    r->element[2]->type == REDIS_REPLY_INTEGER &&
		    r->element[1]->len <= REDIS_HOST_MAX) {
			snprintf(l->moved.host, sizeof l->moved.host, "%s", r->element[1]->str);
			l->moved.port = (uint16_t)r->element[2]->integer;
			skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u is a replica", l->at.host,
				 l->at.port);
		}
	}
	freeReplyObject(r);
	return primary;
}

/* The next candidate: one named by a node, then all known ones in turn. */
static struct redis_node next_node(struct redis_link *l)
{
	struct redis_store *s = l->store;
	struct redis_node at;

	assert(skv_mutex_held(&l->lock));
	if (l->moved.port) {
		at = l->moved;
		l->moved.port = 0;
		redis_learn(s, &at);
		return at;
	}
	skv_mutex_lock(&s->lock);
	assert(s->n_node > 0);
	at = s->node[l->tries++ % s->n_node];
	skv_mutex_unlock(&s->lock);
	return at;
}

/* One that is stopped keeps its connections. The masters miss it before its answer is given up. */
static void is_late(void *link) { redis_failover(link); }

static int try_one(struct redis_link *l, struct skv_error *err)
{
	bool told = l->moved.port != 0;
	struct redis_conn *c;

	assert(!l->c); /* or it would be lost */
	skv_error_clear(err);
	l->at = next_node(l);
	if (l->store->cluster && skv_now_us() < l->mute_us && redis_node_equal(&l->at, &l->mute))
		return skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u does not answer",
				l->at.host, l->at.port);
	c = redis_connect_to(l->store, &l->at, err);
	if (!c)
		return err->status != SKV_OK ? err->status : SKV_E_STORE_IO;
	/* In a cluster any node knows where the keys are, and a node named by another is trusted to
	 * have them. */
	if ((l->store->cluster && told) || is_primary(l, c, err)) {
		l->c = c;
		redis_conn_late(c, is_late, l);
		l->tries = 0;
		return SKV_OK;
	}
	redis_conn_close(c);
	return err->status == SKV_E_FORBIDDEN ? SKV_E_FORBIDDEN : SKV_E_STORE_IO;
}

int redis_link_connect(struct redis_link *l, uint64_t deadline, struct skv_error *err)
{
	int rc = SKV_OK;

	assert(skv_mutex_held(&l->lock));
	while (!l->c) {
		rc = try_one(l, err);
		if (rc == SKV_OK || rc == SKV_E_FORBIDDEN || rc == SKV_E_NOMEM)
			break;
		if (skv_now_us() >= deadline)
			return rc;
		redis_failover(l);
		if (!l->moved.port)
			nanosleep(&(struct timespec){ .tv_nsec = AGAIN_MS * 1000000l }, NULL);
	}
	return rc;
}
