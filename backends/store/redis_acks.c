/*
 * redis_acks.c - acknowledgement of writes: every replica that could be elected has them, and at
 * least `replicas` of them.
 *
 * Electable are the replicas of the link's primary that any voting master of the cluster lists, and
 * those that the primary sends to; without a cluster only the latter. WAIT counts any replicas, so
 * a count proves it only if all that the primary sends to have answered; otherwise each replica's
 * offset is compared with the primary's after the write. A silent replica blocks everything: going
 * on without it could lose acknowledged writes when it is elected.
 *
 * The masters' lists are read every LOOK_MS; a replica added since is in the primary's own list.
 *
 * On the caller's thread, which holds the link; masters are asked over separate connections.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "redis_store.h"

#define LOOK_MS 500u
#define WAIT_MS 50u /* of one WAIT; then the list of replicas is read again */

/* ---- lists of the masters
 * ------------------------------------------------------------------------- */

struct listing {
	struct redis_replica v[REDIS_NODES];
	struct redis_node master[REDIS_NODES];
	uint32_t n, n_masters;
	bool silent; /* a master that others do not reach is not asked: it may hang */
};

/* ID HOST:PORT@BUSPORT[,NAME] FLAGS PRIMARY PING PONG EPOCH STATE [SLOTS...] */
bool redis_member_parse(const char *text, struct redis_member *out)
{
	char at[REDIS_HOST_MAX + 16], flags[128];
	int slots = 0;

	if (sscanf(text, "%63s %270s %127s %63s %*s %*s %*s %*s%n", out->id, at, flags, out->of,
		   &slots) != 4)
		return false;
	at[strcspn(at, "@")] = '\0';
	out->master = strstr(flags, "master") != NULL;
	out->replica = strstr(flags, "slave") != NULL;
	out->gone = strstr(flags, "noaddr") || strstr(flags, "handshake");
	out->suspect = strstr(flags, "fail") && !strstr(flags, "nofailover");
	out->votes = out->master && slots > 0 && text[slots] == ' ';
	return strrchr(at, ':') && at[0] != ':' && redis_node_parse(at, strlen(at), &out->at);
}

/* Calls `each` for the lines of CLUSTER NODES. */
static void each_line(char *text,
		      void (*each)(struct listing *l, const struct redis_member *at,
				   const char *all),
		      const char *all, struct listing *l)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct redis_member at;

		if (redis_member_parse(line, &at) && !at.gone)
			each(l, &at, all);
	}
}

static bool has_node(const struct redis_node *v, uint32_t n, const struct redis_node *at)
{
	for (uint32_t i = 0; i < n; i++)
		if (redis_node_equal(&v[i], at))
			return true;
	return false;
}

/* The address of the node with this id, from the whole text. */
static bool find_id(const char *all, const char *id, struct redis_node *out)
{
	const char *at = strstr(all, id);

	while (at && at != all && at[-1] != '\n')
		at = strstr(at + 1, id);
	if (!at)
		return false;
	struct redis_member line;

	if (!redis_member_parse(at, &line))
		return false;
	*out = line.at;
	return true;
}

static void note_line(struct listing *l, const struct redis_member *at, const char *all)
{
	struct redis_node primary;

	l->silent |= at->master && at->suspect;
	if (at->master && !at->suspect && l->n_masters < REDIS_NODES &&
	    !has_node(l->master, l->n_masters, &at->at))
		l->master[l->n_masters++] = at->at;
	if (!at->replica || !find_id(all, at->of, &primary))
		return;
	for (uint32_t i = 0; i < l->n; i++)
		if (redis_node_equal(&l->v[i].at, &at->at) &&
		    redis_node_equal(&l->v[i].primary, &primary))
			return;
	if (l->n < REDIS_NODES)
		l->v[l->n++] = (struct redis_replica){ at->at, primary };
}

/* Adds this node's list. False: no answer. */
static bool ask_node(struct redis_conn *c, struct listing *l)
{
	redisReply *r = redis_command(c, "CLUSTER NODES");
	bool well = r && r->type == REDIS_REPLY_STRING;
	char *copy = well ? skv_strdup(r->str) : NULL;

	if (copy)
		each_line(copy, note_line, r->str, l);
	skv_free(copy);
	freeReplyObject(r);
	return well;
}

/* A master that does not answer keeps its previous list: it may vote again. */
static void look_at_cluster(struct redis_link *l)
{
	struct redis_store *s = l->store;
	struct listing found = { .n = 0 };
	bool all = ask_node(l->c, &found);
	uint32_t asked = 0;

	for (; asked < found.n_masters; asked++) {
		struct skv_error ignored = { 0 };
		struct redis_conn *c;

		if (redis_node_equal(&found.master[asked], &l->at))
			continue;
		c = redis_connect_to(s, &found.master[asked], &ignored);
		all &= c && ask_node(c, &found);
		redis_conn_close(c);
	}
	all &= !found.silent;
	for (uint32_t i = 0; i < found.n; i++)
		redis_learn(s, &found.v[i].at);
	for (uint32_t i = 0; i < found.n_masters; i++)
		redis_learn(s, &found.master[i]);
	assert(found.n <= REDIS_NODES && found.n_masters <= REDIS_NODES);
	skv_mutex_lock(&s->lock);
	for (uint32_t i = 0; !all && i < s->n_replica && found.n < REDIS_NODES; i++) {
		bool known = false;

		for (uint32_t j = 0; j < found.n && !known; j++)
			known = redis_node_equal(&found.v[j].at, &s->replica[i].at);
		if (!known)
			found.v[found.n++] = s->replica[i];
	}
	memcpy(s->replica, found.v, found.n * sizeof found.v[0]);
	s->n_replica = found.n;
	s->replicas_us = skv_now_us();
	skv_mutex_unlock(&s->lock);
}

/* The replicas of this link's primary, by the newest lists. */
static uint32_t electable(struct redis_link *l, struct redis_node out[REDIS_NODES])
{
	struct redis_store *s = l->store;
	uint32_t n = 0;
	bool look;

	if (!s->cluster)
		return 0;
	skv_mutex_lock(&s->lock);
	look = skv_now_us() - s->replicas_us > LOOK_MS * 1000u;
	skv_mutex_unlock(&s->lock);
	if (look)
		look_at_cluster(l);
	skv_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->n_replica; i++)
		if (redis_node_equal(&s->replica[i].primary, &l->at))
			out[n++] = s->replica[i].at;
	assert(n <= s->n_replica && s->n_replica <= REDIS_NODES);
	skv_mutex_unlock(&s->lock);
	return n;
}

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

/* Has every replica in `must` reached the primary's `offset`? `counted`: how many have what this
 * connection wrote. */
static bool all_have(const struct role *role, uint64_t counted, uint64_t offset,
		     const struct redis_node *must, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = 0;

		while (at < role->n && !redis_node_equal(&role->at[at], &must[i]))
			at++;
		if (at == role->n || (counted < role->n && role->has[at] < offset))
			return false;
	}
	for (uint32_t i = 0; counted < role->n && i < role->n; i++)
		if (role->has[i] < offset)
			return false;
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

int redis_acknowledge(struct redis_link *l, uint64_t deadline, struct skv_error *err)
{
	struct redis_node must[REDIS_NODES];
	uint32_t n = electable(l, must),
		 need = n > l->store->url.replicas ? n : l->store->url.replicas;
	struct role role = { .n = 0 };
	uint64_t counted = 0, offset = 0;

	assert(skv_mutex_held(&l->lock) && l->c);
	do {
		if (!wait_and_look(l, need > role.n ? need : role.n, &counted, &role) ||
		    !role.primary) {
			redis_link_drop(l);
			return skv_fail(err, SKV_E_UNKNOWN_OUTCOME, "store",
					"the primary failed before its replicas had the record");
		}
		assert(need >= n && need >= l->store->url.replicas);
		if (!offset)
			offset = role.offset;
		if (role.n >= l->store->url.replicas && all_have(&role, counted, offset, must, n))
			return SKV_OK;
		n = electable(l, must);
		need = n > l->store->url.replicas ? n : l->store->url.replicas;
	} while (skv_now_us() < deadline);
	return say_who(&role, need, offset, err);
}
