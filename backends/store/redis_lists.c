/*
 * redis_lists.c - the lists of a cluster's masters: who they are, and which replicas could be
 * elected, since any voting master lists them.
 *
 * They are read every LOOK_MS; a replica added since is in its primary's own list (ROLE). A master
 * that does not answer keeps its previous list: it may vote again.
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

bool redis_has_node(const struct redis_node *v, uint32_t n, const struct redis_node *at)
{
	for (uint32_t i = 0; i < n; i++)
		if (redis_node_equal(&v[i], at))
			return true;
	return false;
}

static void add_node(struct redis_node *v, uint32_t *n, const struct redis_node *at)
{
	if (*n < REDIS_NODES && !redis_has_node(v, *n, at))
		v[(*n)++] = *at;
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

static void note_replica(struct redis_listing *l, const struct redis_member *at, const char *all)
{
	struct redis_node primary;

	if (!find_id(all, at->of, &primary))
		return;
	for (uint32_t i = 0; i < l->n; i++)
		if (redis_node_equal(&l->v[i].at, &at->at) &&
		    redis_node_equal(&l->v[i].primary, &primary)) {
			l->v[i].listed++;
			return;
		}
	if (l->n == REDIS_NODES)
		return;
	l->v[l->n] = (struct redis_replica){ .at = at->at, .primary = primary, .listed = 1 };
	snprintf(l->v[l->n++].id, sizeof l->v[0].id, "%.40s", at->id);
}

static void note_line(struct redis_listing *l, const struct redis_member *at, const char *all)
{
	l->silent |= at->master && at->suspect;
	if (at->master)
		add_node(l->primary, &l->n_primaries, &at->at);
	if (at->master && !at->suspect)
		add_node(l->master, &l->n_masters, &at->at);
	if (at->votes)
		add_node(l->voter, &l->n_voters, &at->at);
	if (at->replica)
		note_replica(l, at, all);
}

/* Adds this node's list. False: no answer. */
static bool ask_node(const struct redis_store *s, struct redis_conn *c, const struct redis_node *at,
		     struct redis_listing *l)
{
	redisReply *r = redis_command(c, "CLUSTER NODES");
	bool well = r && r->type == REDIS_REPLY_STRING;
	char *copy = well ? skv_strdup(r->str) : NULL, *save = NULL;

	for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct redis_member m;
		bool told = redis_member_parse(line, &m) && !m.gone;

		if (told)
			note_line(l, &m, r->str);
		l->answered += told && m.myself && m.votes;
	}
	skv_free(copy);
	freeReplyObject(r);
	if (well && s->url.silent_ms)
		redis_silent_read(s, c, at, l);
	return well;
}

/* Lines of before stay: not all have answered. */
static void keep_previous(const struct redis_listing *before, struct redis_listing *now)
{
	for (uint32_t i = 0; i < before->n && now->n < REDIS_NODES; i++) {
		bool known = false;

		for (uint32_t j = 0; j < now->n && !known; j++)
			known = redis_node_equal(&now->v[j].at, &before->v[i].at);
		if (known)
			continue;
		now->v[now->n] = before->v[i];
		now->v[now->n++].listed = 0;
	}
	assert(now->n <= REDIS_NODES);
}

/* What this handle knows of a record holds while the record is the same. */
static void keep_known(const struct redis_listing *before, struct redis_listing *now)
{
	for (uint32_t i = 0; i < before->n_absent; i++)
		for (uint32_t j = 0; j < now->n_absent; j++) {
			const struct redis_absent *was = &before->absent[i];
			struct redis_absent *is = &now->absent[j];

			if (was->key != is->key || strcmp(was->id, is->id) != 0 ||
			    strcmp(was->text, is->text) != 0)
				continue;
			is->durable = was->durable;
			is->seen_us = was->seen_us;
			is->goal = was->goal;
			is->goal_us = was->goal_us;
		}
}

static void keep(struct redis_store *s, const struct redis_listing *found, bool all)
{
	struct redis_listing now = *found;

	skv_mutex_lock(&s->lock);
	if (!all)
		keep_previous(&s->lists, &now);
	keep_known(&s->lists, &now);
	s->lists = now;
	s->lists_us = skv_now_us();
	skv_mutex_unlock(&s->lock);
}

void redis_look(struct redis_link *l, struct redis_listing *out)
{
	struct redis_store *s = l->store;
	bool all = true;

	assert(skv_mutex_held(&l->lock) && l->c);
	*out = (struct redis_listing){ .n = 0 };
	all = ask_node(s, l->c, &l->at, out);
	for (uint32_t asked = 0; asked < out->n_masters; asked++) {
		struct skv_error ignored = { 0 };
		struct redis_conn *c;

		if (redis_node_equal(&out->master[asked], &l->at))
			continue;
		c = redis_connect_to(s, &out->master[asked], &ignored);
		all &= c && ask_node(s, c, &out->master[asked], out);
		redis_conn_close(c);
	}
	all &= !out->silent;
	for (uint32_t i = 0; i < out->n; i++)
		redis_learn(s, &out->v[i].at);
	for (uint32_t i = 0; i < out->n_masters; i++)
		redis_learn(s, &out->master[i]);
	assert(out->n <= REDIS_NODES && out->n_masters <= REDIS_NODES);
	keep(s, out, all);
}

uint32_t redis_electable(struct redis_link *l, struct redis_node out[REDIS_NODES])
{
	struct redis_store *s = l->store;
	struct redis_listing found;
	uint32_t n = 0;
	bool look;

	if (!s->cluster)
		return 0;
	skv_mutex_lock(&s->lock);
	look = skv_now_us() - s->lists_us > LOOK_MS * 1000u;
	skv_mutex_unlock(&s->lock);
	if (look)
		redis_look(l, &found);
	skv_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->lists.n; i++)
		if (redis_node_equal(&s->lists.v[i].primary, &l->at))
			out[n++] = s->lists.v[i].at;
	assert(n <= s->lists.n && s->lists.n <= REDIS_NODES);
	skv_mutex_unlock(&s->lock);
	return n;
}
