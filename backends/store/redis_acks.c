/*
 * redis_acks.c - acknowledgement of writes: every replica that could be elected has them, and at
 * least `replicas` of them.
 *
 * Electable are the replicas of the link's primary that any voting master of the cluster lists, and
 * those that the primary sends to; without a cluster only the latter. WAIT counts any replicas, so
 * a count proves it only if all that the primary sends to have answered; otherwise each replica's
 * offset is compared with the primary's after the write. A silent replica blocks everything: going
 * on without it could lose acknowledged writes when it is elected. With silent_ms it is made sure
 * first that it is not (redis_silent.c).
 *
 * On the caller's thread, which holds the link.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "redis_store.h"

#define WAIT_MS 50u /* of one WAIT; then the list of replicas is read again */

/* ---- ROLE ------------------------------------------------------------------------------------ */

struct role {
	bool primary;
	uint64_t offset;
	uint32_t n;
	struct redis_node at[REDIS_NODES];
	uint64_t has[REDIS_NODES]; /* up to which offset */
};

static bool read_role(const redisReply *r, struct role *out)
{
	*out = (struct role){ .n = 0 };
	if (!r || r->type != REDIS_REPLY_ARRAY || r->elements < 3 ||
	    r->element[0]->type != REDIS_REPLY_STRING)
		return false;
	out->primary = strcmp(r->element[0]->str, "master") == 0;
	if (!out->primary)
		return true;
	if (r->element[1]->type != REDIS_REPLY_INTEGER || r->element[2]->type != REDIS_REPLY_ARRAY)
		return false;
	out->offset = (uint64_t)r->element[1]->integer;
	for (size_t i = 0; i < r->element[2]->elements && out->n < REDIS_NODES; i++) {
		const redisReply *e = r->element[2]->element[i];

		if (e->type != REDIS_REPLY_ARRAY || e->elements < 3)
			return false;
		snprintf(out->at[out->n].host, sizeof out->at[0].host, "%s", redis_text(e, 0));
		out->at[out->n].port = (uint16_t)redis_u64(e, 1);
		out->has[out->n++] = redis_u64(e, 2);
	}
	assert(out->n <= REDIS_NODES);
	return true;
}

/* WAIT for so many replicas, then ROLE, pipelined. False: the connection is broken. */
static bool wait_and_look(struct redis_link *l, uint32_t replicas, uint64_t *counted,
			  struct role *role)
{
	bool sent = redis_send(l->c, "WAIT %u %u", replicas, WAIT_MS) && redis_send(l->c, "ROLE");
	redisReply *waited = sent ? redis_receive(l->c) : NULL;
	redisReply *told = waited ? redis_receive(l->c) : NULL;
	bool well = told && waited->type == REDIS_REPLY_INTEGER && read_role(told, role);

	if (well)
		*counted = (uint64_t)waited->integer;
	freeReplyObject(waited);
	freeReplyObject(told);
	return well;
}

/* Who has what was written up to `offset`, of all that have to. */
static void gather(const struct role *role, uint64_t counted, uint64_t offset,
		   const struct redis_node *must, uint32_t n, struct redis_have *out)
{
	out->n = 0;
	out->offset = role->offset;
	for (uint32_t i = 0; i < role->n; i++) {
		out->at[out->n] = role->at[i];
		out->upto[out->n] = role->has[i];
		out->has[out->n++] = counted >= role->n || role->has[i] >= offset;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (redis_has_node(role->at, role->n, &must[i]))
			continue;
		out->at[out->n] = must[i];
		out->upto[out->n] = 0;
		out->has[out->n++] = false;
	}
	assert(out->n <= 2 * REDIS_NODES);
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static bool all_have(const struct redis_have *h)
{
	for (uint32_t i = 0; i < h->n; i++)
		if (!h->has[i])
			return false;
	return true;
}

/* How many must acknowledge: of those that may be elected, and those that the primary sends to. */
static uint32_t needed(struct redis_link *l, const struct redis_node *must, uint32_t n,
		       const struct role *role)
{
	n -= redis_silent_excused(l, must, n);
	return larger(l->store->url.replicas,
		      larger(n, role->n - redis_silent_excused(l, role->at, role->n)));
}

static int say_who(const struct role *role, uint32_t need, uint64_t offset, struct skv_error *err)
{
	for (uint32_t i = 0; i < role->n; i++)
		if (role->has[i] < offset)
			return skv_fail(err, SKV_E_UNKNOWN_OUTCOME, "store",
					"replica %.120s:%u does not acknowledge", role->at[i].host,
					role->at[i].port);
	return skv_fail(
		err, SKV_E_UNKNOWN_OUTCOME, "store",
		"%u replicas are connected and %u must acknowledge (?replicas= of the URL, and all "
		"that may be elected)",
		role->n, need);
}

uint32_t redis_replicas(struct redis_link *l, struct redis_node out[REDIS_NODES])
{
	redisReply *r = redis_command(l->c, "ROLE");
	struct role role = { .n = 0 };
	uint32_t n = read_role(r, &role) ? role.n : 0;

	assert(skv_mutex_held(&l->lock) && n <= REDIS_NODES);
	memcpy(out, role.at, n * sizeof out[0]);
	freeReplyObject(r);
	return n;
}

int redis_acknowledge(struct redis_link *l, uint64_t deadline, struct skv_error *err)
{
	struct redis_node must[REDIS_NODES];
	const bool excuses = l->store->url.silent_ms && l->store->cluster;
	const uint64_t begun = skv_now_us();
	uint32_t n = redis_electable(l, must);
	struct role role = { .n = 0 };
	uint64_t counted = 0, offset = 0;
	struct redis_have have;

	assert(skv_mutex_held(&l->lock) && l->c);
	do {
		if (!wait_and_look(l, needed(l, must, n, &role), &counted, &role) ||
		    !role.primary) {
			redis_link_drop(l);
			return skv_fail(err, SKV_E_UNKNOWN_OUTCOME, "store",
					"the primary failed before its replicas had the record");
		}
		if (!offset)
			offset = role.offset;
		gather(&role, counted, offset, must, n, &have);
		if (excuses ? redis_silent_suffices(l, &have, begun)
			    : role.n >= l->store->url.replicas && all_have(&have))
			return SKV_OK;
		n = redis_electable(l, must);
	} while (skv_now_us() < deadline);
	return say_who(&role, needed(l, must, n, &role), offset, err);
}
