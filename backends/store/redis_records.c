/*
 * redis_records.c - records of replicas that writing went on without (redis_silent.c), and what
 * they are for: a primary that has one is not used.
 *
 * On the caller's thread, which holds its link; a change takes the link of the record's key.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>

#include "redis_store.h"

#define IDLE_MS 500u   /* less than a primary takes to be a replica, silent, and back */
#define TELL_MS 10000u /* how often a refused primary is told of */

static const char *const state_names[] = { "out", "back", "in" };

/* "STATE NONCE HOST:PORT ID,ID". */
void redis_record_compose(char out[REDIS_ABSENT_MAX], unsigned state, const struct redis_link *l,
			  const struct redis_node *at, const struct redis_have *h,
			  const struct redis_listing *lists)
{
	char nonce[REDIS_OP + 1];
	size_t n;

	assert(l->id[0] && state < sizeof state_names / sizeof state_names[0]);
	redis_new_op(nonce);
	n = (size_t)snprintf(out, REDIS_ABSENT_MAX, "%s %s %s:%u %s", state_names[state], nonce,
			     at->host, at->port, l->id);
	for (uint32_t i = 0; i < h->n; i++)
		for (uint32_t j = 0; h->has[i] && j < lists->n; j++)
			if (redis_node_equal(&lists->v[j].at, &h->at[i]) &&
			    redis_node_equal(&lists->v[j].primary, &l->at) &&
			    n + REDIS_ID + 2 < REDIS_ABSENT_MAX)
				n += (size_t)snprintf(out + n, REDIS_ABSENT_MAX - n, ",%s",
						      lists->v[j].id);
}

static bool parse(const char *text, struct redis_absent *out)
{
	char state[8], at[REDIS_HOST_MAX + 8];

	if (strlen(text) >= sizeof out->text ||
	    sscanf(text, "%7s %*s %262s", state, at) != 2 ||
	    !redis_node_parse(at, strlen(at), &out->at))
		return false;
	memcpy(out->text, text, strlen(text) + 1);
	for (unsigned i = 0; i < sizeof state_names / sizeof state_names[0]; i++)
		if (strcmp(state, state_names[i]) == 0) {
			out->state = i;
			return true;
		}
	return false;
}

static void note(struct redis_listing *l, const struct redis_absent *found)
{
	for (uint32_t i = 0; i < l->n_absent; i++)
		if (l->absent[i].key == found->key && strcmp(l->absent[i].id, found->id) == 0)
			return;
	if (l->n_absent < REDIS_ABSENT)
		l->absent[l->n_absent++] = *found;
	else
		l->unread = true;
}

static void read_key(struct redis_listing *l, const struct redis_node *at, uint32_t key,
		     const redisReply *r)
{
	assert(key < REDIS_SILENT && at->port);
	if (!r || r->type != REDIS_REPLY_ARRAY)
		return; /* another node has it */
	l->key_at[key] = *at;
	for (size_t i = 0; i + 1 < r->elements; i += 2) {
		struct redis_absent a = { .key = key, .from = *at, .seen_us = skv_now_us() };

		if (strlen(redis_text(r, i)) != REDIS_ID)
			continue; /* "again" */
		memcpy(a.id, redis_text(r, i), sizeof a.id);
		if (parse(redis_text(r, i + 1), &a))
			note(l, &a);
		else
			l->unread = true;
	}
}

void redis_silent_read(const struct redis_store *s, struct redis_conn *c,
		       const struct redis_node *at, struct redis_listing *l)
{
	bool sent = true;

	for (uint32_t k = 0; k < REDIS_SILENT; k++) {
		char key[REDIS_KEY_MAX];

		redis_key(s, REDIS_SILENT_TAG + k, key, "nodes");
		sent &= redis_send(c, "HGETALL %s", key);
	}
	for (uint32_t k = 0; sent && k < REDIS_SILENT; k++) {
		redisReply *r = redis_receive(c);

		sent = r != NULL;
		read_key(l, at, k, r);
		freeReplyObject(r);
	}
}

bool redis_record_change(struct redis_link *l, const struct redis_absent *a, const char *before,
			 const char *after)
{
	struct redis_link *at = redis_link_take(l->store, REDIS_SILENT_TAG + a->key, REDIS_OWNER);
	struct redis_args args = { .n = 0 };
	struct skv_error why = { 0 };
	redisReply *r = NULL;
	bool well;

	assert(a->key < REDIS_SILENT);
	if (!at)
		return false;
	redis_arg_key(&args, l->store, at->tag, "nodes");
	redis_arg_text(&args, a->id);
	redis_arg_text(&args, before);
	redis_arg_text(&args, after);
	well = redis_run(at, RUN_SILENT, &args, REDIS_ACKNOWLEDGED, &r, &why) == SKV_OK &&
	       redis_says(r, "OK") && !redis_node_equal(&at->at, &l->at);
	freeReplyObject(r);
	redis_link_give(at);
	if (!well)
		skv_log(SKV_LOG_WARN, "store", "the record of %s:%u is not written: %.160s",
			a->at.host, a->at.port, why.message[0] ? why.message : "it has changed");
	return well;
}

void redis_record_learn(struct redis_store *s, const struct redis_absent *a, const char *text)
{
	struct redis_absent now = *a;

	now.durable = true;
	now.seen_us = skv_now_us();
	assert(strlen(text) < REDIS_ABSENT_MAX && strlen(a->id) == REDIS_ID);
	skv_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->lists.n_absent; i++)
		if (s->lists.absent[i].key == a->key && strcmp(s->lists.absent[i].id, a->id) == 0)
			s->lists.absent[i--] = s->lists.absent[--s->lists.n_absent];
	if (text[0] && parse(text, &now))
		note(&s->lists, &now);
	skv_mutex_unlock(&s->lock);
}

/* ---- who may be a primary -------------------------------------------------------------------- */

static int read_own_id(struct redis_link *l, char out[REDIS_ID + 1], struct skv_error *err)
{
	redisReply *r = redis_command(l->c, "CLUSTER MYID");
	bool well = r && r->type == REDIS_REPLY_STRING && r->len == REDIS_ID;

	if (well)
		memcpy(out, r->str, REDIS_ID + 1);
	freeReplyObject(r);
	return well ? SKV_OK
		    : skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u does not tell its id",
			       l->at.host, l->at.port);
}

static bool is_due(struct redis_store *s)
{
	const uint64_t now = skv_now_us();
	bool due;

	skv_mutex_lock(&s->lock);
	due = !s->told_us || now - s->told_us > TELL_MS * 1000u;
	if (due)
		s->told_us = now;
	skv_mutex_unlock(&s->lock);
	return due;
}

static int refuse(const struct redis_link *l, const struct redis_absent *a, struct skv_error *err)
{
	char key[REDIS_KEY_MAX];
	const char *in_sync = strrchr(a->text, ' ');

	redis_key(l->store, REDIS_SILENT_TAG + a->key, key, "nodes");
	if (is_due(l->store))
		skv_log(SKV_LOG_ERROR, "store",
			"%s:%u is a primary, but was silent when others acknowledged: it is not "
			"used. Make one of these the primary:%s; or, to go on with what it has: "
			"HDEL %s %s",
			l->at.host, l->at.port, in_sync ? in_sync : "", key, a->id);
	return skv_fail(err, SKV_E_UNSUPPORTED, "store",
			"%.120s:%u is a primary, but was silent when others acknowledged: make one "
			"of those the primary (see the log)",
			l->at.host, l->at.port);
}

int redis_silent_vet(struct redis_link *l, struct skv_error *err)
{
	const uint64_t now = skv_now_us();
	const bool idle = now - l->used_us > IDLE_MS * 1000u;
	char id[REDIS_ID + 1];
	struct redis_listing found;
	int rc;

	if (!l->store->url.silent_ms || !l->store->cluster)
		return SKV_OK;
	l->used_us = now;
	if (l->id[0] && !idle)
		return SKV_OK;
	rc = read_own_id(l, id, err);
	if (rc != SKV_OK)
		return rc;
	redis_look(l, &found);
	for (uint32_t k = 0; k < REDIS_SILENT; k++)
		if (!found.key_at[k].port)
			return skv_fail(err, SKV_E_STORE_IO, "store",
					"a part of the cluster has no primary, so nobody can tell "
					"whether %.120s:%u has all (see CLUSTER INFO)",
					l->at.host, l->at.port);
	if (found.unread)
		return skv_fail(err, SKV_E_STORE_IO, "store",
				"records of silent replicas are malformed, or more than %u",
				REDIS_ABSENT);
	for (uint32_t i = 0; i < found.n_absent; i++)
		if (strcmp(found.absent[i].id, id) == 0 && found.absent[i].state != REDIS_IN &&
		    !redis_node_equal(&found.absent[i].from, &l->at))
			return refuse(l, &found.absent[i], err);
	memcpy(l->id, id, sizeof id);
	assert(strlen(l->id) == REDIS_ID);
	return SKV_OK;
}

/* Managers without silent_ms would use any primary. */
static int check_for_records(struct redis_link *l, struct skv_error *err)
{
	struct redis_listing found;

	redis_look(l, &found);
	redis_silent_read(l->store, l->c, &l->at, &found);
	for (uint32_t i = 0; i < found.n_masters; i++) {
		struct skv_error ignored = { 0 };
		struct redis_conn *c = redis_connect_to(l->store, &found.master[i], &ignored);

		if (c)
			redis_silent_read(l->store, c, &found.master[i], &found);
		redis_conn_close(c);
	}
	return found.n_absent == 0 && !found.unread
		       ? SKV_OK
		       : skv_fail(err, SKV_E_UNSUPPORTED, "store",
				  "managers of this store go on without a replica that is silent: "
				  "set silent_ms here, too, or wait until it is back");
}

int redis_silent_check(struct redis_link *l, struct skv_error *err)
{
	struct redis_listing found;
	redisReply *r;
	bool allowed;
	int rc = redis_link_connect(l, redis_deadline(l->store), err);

	if (rc != SKV_OK)
		return rc;
	if (!l->store->url.silent_ms)
		return l->store->cluster ? check_for_records(l, err) : SKV_OK;
	if (l->store->cluster)
		redis_look(l, &found);
	if (!l->store->cluster || found.n_voters < 2)
		return skv_fail(err, SKV_E_UNSUPPORTED, "store",
				"silent_ms is for a cluster of two or more shards, and this is %s: "
				"leave it out",
				l->store->cluster ? "one shard" : "no cluster");
	r = redis_command(l->c, "CLUSTER FORGET %040d", 0);
	allowed = r && r->type == REDIS_REPLY_ERROR && strstr(r->str, "Unknown node");
	freeReplyObject(r);
	return allowed ? SKV_OK
		       : skv_fail(err, SKV_E_UNSUPPORTED, "store",
				  "silent_ms needs CLUSTER FORGET, which %.120s:%u does not allow: "
				  "leave it out",
				  l->at.host, l->at.port);
}

