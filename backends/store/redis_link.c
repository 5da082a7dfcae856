/*
 * redis_link.c - connections: which node is the primary of a hash tag, and how it is reached.
 *
 * A link looks for the primary until its call's deadline: where it was, where a node said that it is (MOVED, or the master
 * that a replica follows), then every address of the URL and every one that was learned since, in turn. A node that does
 * not answer within CONNECT_MS is passed over, so one that drops packets costs little.
 *
 * Any thread. A link's lock is held across its call; the store's lock guards the lists and is never held across I/O.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "redis_store.h"

#define CONNECT_MS 300u
#define ANSWER_MS 1000u /* of a small call; scripts with many bytes get more (redis_script.c) */
#define AGAIN_MS 10u    /* between two looks for a primary */

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

void redis_key(const struct redis_store *s, uint32_t tag, char out[REDIS_KEY_MAX], const char *fmt, ...)
{
	int n = tag == REDIS_REGISTRY ? snprintf(out, REDIS_KEY_MAX, "{%s.registry}:", s->url.prefix)
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

/* ---- links ------------------------------------------------------------------------------------- */

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
		skv_mutex_lock(&l->lock); /* a link stays as long as its store */
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
	if (l->c)
		redisFree(l->c);
	l->c = NULL;
}

void redis_link_destroy(struct redis_link *l)
{
	if (l->c)
		redisFree(l->c);
	skv_mutex_destroy(&l->lock);
	skv_free(l);
}

/* ---- connecting -------------------------------------------------------------------------------- */

static struct timeval milliseconds(uint64_t ms)
{
	return (struct timeval){ .tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000 };
}

static int log_in(const struct redis_store *s, redisContext *c, struct skv_error *err)
{
	const struct redis_url *u = &s->url;
	redisReply *r;
	int rc = SKV_OK;

	if (!u->password[0])
		return SKV_OK;
	r = u->user[0] ? redisCommand(c, "AUTH %s %s", u->user, u->password) : redisCommand(c, "AUTH %s", u->password);
	if (!r)
		rc = skv_fail(err, SKV_E_STORE_IO, "store", "no answer to AUTH: %s", c->errstr);
	else if (r->type == REDIS_REPLY_ERROR)
		rc = skv_fail(err, SKV_E_FORBIDDEN, "store", "user or password is wrong: %.150s", r->str);
	freeReplyObject(r);
	return rc;
}

redisContext *redis_connect_to(const struct redis_store *s, const struct redis_node *at, struct skv_error *err)
{
	redisContext *c = redisConnectWithTimeout(at->host, at->port, milliseconds(CONNECT_MS));

	if (!c) {
		redis_no_memory(err);
		return NULL;
	}
	if (c->err) {
		skv_fail(err, SKV_E_STORE_IO, "store", "cannot connect to %.120s:%u: %.100s", at->host, at->port, c->errstr);
	} else if (redisSetTimeout(c, milliseconds(ANSWER_MS)) == REDIS_OK && log_in(s, c, err) == SKV_OK) {
		return c;
	}
	redisFree(c);
	return NULL;
}

/* ROLE of a node: is it a primary? If it is a replica, it tells of whom. */
static bool is_primary(struct redis_link *l, redisContext *c, struct skv_error *err)
{
	redisReply *r = redisCommand(c, "ROLE");
	bool primary = false;

	assert(skv_mutex_held(&l->lock) && c != l->c);
	if (!r) {
		skv_fail(err, SKV_E_STORE_IO, "store", "no answer to ROLE: %s", c->errstr);
	} else if (r->type == REDIS_REPLY_ERROR) {
		skv_fail(err, SKV_E_FORBIDDEN, "store", "ROLE is refused: %.150s", r->str);
	} else if (r->type == REDIS_REPLY_ARRAY && r->elements >= 3 && r->element[0]->type == REDIS_REPLY_STRING) {
		primary = strcmp(r->element[0]->str, "master") == 0;
		if (!primary && strcmp(r->element[0]->str, "slave") == 0 && r->element[1]->type == REDIS_REPLY_STRING &&
		    r->element[2]->type == REDIS_REPLY_INTEGER && r->element[1]->len <= REDIS_HOST_MAX) {
			snprintf(l->moved.host, sizeof l->moved.host, "%s", r->element[1]->str);
			l->moved.port = (uint16_t)r->element[2]->integer;
			skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u is a replica", l->at.host, l->at.port);
		}
	}
	freeReplyObject(r);
	return primary;
}

/* Where to look next: where a node said, then all that are known in turn. */
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

static int try_one(struct redis_link *l, struct skv_error *err)
{
	bool told = l->moved.port != 0;
	redisContext *c;

	assert(!l->c); /* or it would be lost */
	skv_error_clear(err);
	l->at = next_node(l);
	c = redis_connect_to(l->store, &l->at, err);
	if (!c)
		return err->status != SKV_OK ? err->status : SKV_E_STORE_IO;
	/* In a cluster any node tells where the keys are, and one that was told of may be trusted to have them. */
	if ((l->store->cluster && told) || is_primary(l, c, err)) {
		l->c = c;
		l->tries = 0;
		return SKV_OK;
	}
	redisFree(c);
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
		if (!l->moved.port)
			nanosleep(&(struct timespec){ .tv_nsec = AGAIN_MS * 1000000l }, NULL);
	}
	return rc;
}
