/*
 * redis_engine.c - is the data still that of the processes that acknowledged it?
 *
 * An owner records, beside its lease, the history that the primary goes on with (its replication
 * id) and the processes that have it (run ids of the primary and its replicas). What a claimant
 * finds is trusted if the primary is one of these processes, with that history or as the one it
 * was promoted from. A primary that was started again has read a file, and a replica may have
 * copied such a one: what was acknowledged last may be missing there.
 *
 * Two elections since the last record look like a restart: then too much care is taken.
 *
 * Any thread; a replica is asked over a connection of its own.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>

#include "redis_store.h"

#define LOOK_MS 1000u  /* at the primary */
#define ASK_MS 10000u  /* its replicas, where nothing has changed there */
#define ID 40u /* hex digits of a replication or run id */

struct engine {
	char history[ID + 1], before[ID + 1], run[ID + 1];
	bool primary;
};

static bool read_id(const char *info, const char *name, char out[ID + 1])
{
	const char *at = strstr(info, name);
	size_t n;

	if (!at)
		return false;
	at += strlen(name);
	n = strcspn(at, "\r\n");
	if (n > ID)
		return false;
	memcpy(out, at, n);
	out[n] = '\0';
	return n > 0;
}

/* False: it does not tell. */
static bool ask(struct redis_conn *c, struct engine *out)
{
	redisReply *r = redis_command(c, "INFO");
	bool well = r && r->type == REDIS_REPLY_STRING && read_id(r->str, "\nrun_id:", out->run) &&
		    read_id(r->str, "\nmaster_replid:", out->history) &&
		    read_id(r->str, "\nmaster_replid2:", out->before);

	if (well)
		out->primary = strstr(r->str, "\nrole:master") != NULL;
	freeReplyObject(r);
	return well;
}

/* What was recorded, into `recorded`, and the primary that has it. SKV_E_UNSUPPORTED: that does not
 * tell what it is. */
static int look(struct redis_link *l, char recorded[REDIS_ENGINE_MAX], struct engine *out,
		struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	redis_arg_key(&a, l->store, l->tag, "owner");
	rc = redis_run(l, RUN_VOUCHED, &a, 0, &r, err); /* in a cluster: by the right node */
	if (rc != SKV_OK)
		return rc == SKV_E_UNKNOWN_OUTCOME
			       ? skv_fail(err, SKV_E_STORE_IO, "store", "no primary answers")
			       : rc;
	snprintf(recorded, REDIS_ENGINE_MAX, "%s", redis_text(r, 1));
	freeReplyObject(r);
	assert(l->c);
	if (ask(l->c, out)) {
		if (out->primary)
			return SKV_OK;
		redis_link_drop(l); /* not any more, and what it says may be another's */
		return skv_fail(err, SKV_E_STORE_IO, "store", "%s:%u is a replica", l->at.host,
				l->at.port);
	}
	redis_link_drop(l);
	return skv_fail(err, SKV_E_UNSUPPORTED, "store", "%s:%u does not tell its run_id",
			l->at.host, l->at.port);
}

/* Who has what is acknowledged: the primary, and the replicas at these addresses. */
struct members {
	struct engine primary;
	struct redis_node replica[REDIS_NODES];
	uint32_t n;
};

static uint64_t sum_of(const struct members *m)
{
	uint64_t sum = skv_checksum(m->primary.history, ID) ^ skv_checksum(m->primary.run, ID);

	for (uint32_t i = 0; i < m->n; i++)
		sum = sum * 31 + m->replica[i].port +
		      skv_checksum(m->replica[i].host, strlen(m->replica[i].host));
	return sum;
}

/* "HISTORY RUN RUN ...": of the primary and of the replicas that answer. False: one did not. */
static bool describe(struct redis_link *l, const struct members *m, char out[REDIS_ENGINE_MAX])
{
	size_t len = (size_t)snprintf(out, REDIS_ENGINE_MAX, "%s %s", m->primary.history,
				      m->primary.run);
	bool all = true;

	for (uint32_t i = 0; i < m->n && len + ID + 2 < REDIS_ENGINE_MAX; i++) {
		struct skv_error ignored = { 0 };
		struct redis_conn *c = redis_connect_to(l->store, &m->replica[i], &ignored);
		struct engine e;

		if (c && ask(c, &e))
			len += (size_t)snprintf(out + len, REDIS_ENGINE_MAX - len, " %s", e.run);
		else
			all = false;
		redis_conn_close(c);
	}
	assert(len < REDIS_ENGINE_MAX);
	return all;
}

static int record(struct redis_link *l, uint64_t fence, const char *nonce, const char *text,
		  struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	redisReply *r = NULL;
	int rc;

	redis_arg_key(&a, l->store, l->tag, "owner");
	redis_arg_u64(&a, fence);
	redis_arg_text(&a, nonce);
	redis_arg_text(&a, text);
	rc = redis_run(l, RUN_VOUCH, &a, REDIS_ACKNOWLEDGED, &r, err);
	if (rc == SKV_OK && !redis_says(r, "OK"))
		rc = redis_says(r, "FENCED") ? redis_fenced(l->tag, err) : redis_odd(r, err);
	freeReplyObject(r);
	return rc;
}

static int vouch(struct redis_link *l, uint64_t fence, const char *nonce, struct skv_error *err)
{
	const uint64_t now = skv_now_us();
	struct redis_vouched *v = &l->vouched;
	const bool known = v->fence == fence;
	char text[REDIS_ENGINE_MAX], recorded[REDIS_ENGINE_MAX];
	struct members m = { .n = 0 };
	uint64_t sum;
	bool all;
	int rc;

	if (known && now - v->looked_us < LOOK_MS * 1000u)
		return SKV_OK;
	rc = look(l, recorded, &m.primary, err);
	if (rc != SKV_OK)
		return rc;
	m.n = redis_replicas(l, m.replica);
	sum = sum_of(&m);
	v->looked_us = now;
	if (known && v->sum == sum && now - v->asked_us < ASK_MS * 1000u)
		return SKV_OK;
	all = describe(l, &m, text);
	if (strcmp(text, recorded) != 0)
		rc = record(l, fence, nonce, text, err);
	if (rc == SKV_OK)
		*v = (struct redis_vouched){ .fence = fence, .sum = sum, .looked_us = now,
					     .asked_us = all ? now : 0 };
	return rc;
}

int redis_vouch(void *self, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	char nonce[REDIS_OP + 1];
	struct redis_link *l;
	int rc = redis_nonce(self, partition, fence, nonce, err);

	if (rc != SKV_OK)
		return rc;
	l = redis_link_take(self, partition, REDIS_BULK);
	if (!l)
		return redis_no_memory(err);
	rc = vouch(l, fence, nonce, err);
	redis_link_give(l);
	if (rc != SKV_E_UNSUPPORTED)
		return rc;
	skv_error_clear(err); /* nothing can be known */
	return SKV_OK;
}

static bool survives(const struct engine *e, const char *recorded)
{
	const char *processes = strchr(recorded, ' ');

	if (!processes) /* by none that knows of this */
		return true;
	return strstr(processes, e->run) &&
	       (strncmp(recorded, e->history, ID) == 0 || strncmp(recorded, e->before, ID) == 0);
}

int redis_survived(void *self, uint32_t partition, bool *yes, struct skv_error *err)
{
	struct redis_store *s = self;
	struct redis_link *l = redis_link_take(s, partition, REDIS_BULK);
	char recorded[REDIS_ENGINE_MAX];
	struct engine e;
	int rc;

	if (!l)
		return redis_no_memory(err);
	rc = look(l, recorded, &e, err);
	redis_link_give(l);
	if (rc == SKV_OK) {
		*yes = survives(&e, recorded);
		if (!*yes)
			skv_log(SKV_LOG_INFO, "store",
				"partition %u: the primary (run_id %s, master_replid %s after %s) "
				"is not of those that had all: %s",
				partition, e.run, e.history, e.before, recorded);
	}
	if (rc == SKV_E_UNSUPPORTED) {
		skv_error_clear(err);
		*yes = true;
		rc = SKV_OK;
	}
	return rc;
}
