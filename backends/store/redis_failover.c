/*
 * redis_failover.c - a replica is elected as soon as its primary is missed (?force=1).
 *
 * A cluster of Redis 7 or Valkey 8 takes about 1.5 s to replace a primary: after a majority of
 * masters has found it failed, a replica still waits for half a second to a second before it asks
 * for their votes. CLUSTER FAILOVER FORCE makes it ask at once; the masters vote as always.
 *
 * It is sent only when a majority of the voting masters no longer reaches the primary, to the
 * replica with the largest offset (all have what was acknowledged), and by one sender: two delay
 * each other. Who may send is a lease on a key of another shard, taken at once when the primary is
 * missed: as soon as the masters agree that it has failed, they serve nothing at all. Then it is
 * the owner of the partition, whose appends wait.
 *
 * A cluster that forbids the command is told so once and left to its own election.
 *
 * A primary that is stopped (SIGSTOP, a host that hangs) keeps its connections, so it is looked for
 * while its answer is late. That counts: once the masters agree that it has failed, its replica has
 * set the time of an election of its own, half a second to a second later, and FORCE does not
 * change that.
 *
 * On the thread of whoever misses the primary, which holds that link; connections of its own.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>

#include "redis_store.h"

#define LOOK_MS 30u    /* between two looks */
#define LEASE_MS 2000u /* of the sender: to miss a primary and to elect another takes less */
#define LEASES 16u     /* keys that are tried: one in 16384 slots of a shard that lives */

/* What the living nodes say of the primary. */
struct view {
	struct redis_node missed, master[REDIS_NODES], replica[REDIS_NODES];
	uint32_t n_masters, n_replicas; /* masters with slots but the missed one; its replicas */
	uint32_t suspects;              /* of the masters */
	char id[64];                    /* of the missed one; "" = not in the list */
};

static bool knows(const struct redis_node *v, uint32_t n, const struct redis_node *at)
{
	for (uint32_t i = 0; i < n; i++)
		if (redis_node_equal(&v[i], at))
			return true;
	return false;
}

static void add(struct redis_node *v, uint32_t *n, const struct redis_node *at)
{
	if (*n < REDIS_NODES && !knows(v, *n, at))
		v[(*n)++] = *at;
}

/* ---- looking --------------------------------------------------------------------------------- */

static void read_primary(struct view *v, const char *text, bool *suspect)
{
	struct redis_member m;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (redis_member_parse(line, &m) && m.master &&
		    redis_node_equal(&m.at, &v->missed)) {
			memcpy(v->id, m.id, sizeof v->id);
			*suspect = m.suspect;
		}
}

static void read_others(struct view *v, const char *text)
{
	struct redis_member m;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (!redis_member_parse(line, &m) || m.gone ||
		    redis_node_equal(&m.at, &v->missed))
			continue;
		if (m.votes)
			add(v->master, &v->n_masters, &m.at);
		else if (m.replica && v->id[0] && strcmp(m.of, v->id) == 0)
			add(v->replica, &v->n_replicas, &m.at);
	}
}

/* A node's list; false: no answer. */
static bool ask_node(const struct redis_store *s, struct view *v, const struct redis_node *at,
		     bool *suspect)
{
	struct skv_error ignored = { 0 };
	struct redis_conn *c = redis_connect_to(s, at, &ignored);
	redisReply *r = c ? redis_command(c, "CLUSTER NODES") : NULL;
	bool well = r && r->type == REDIS_REPLY_STRING;

	*suspect = false;
	if (well) {
		read_primary(v, r->str, suspect);
		read_others(v, r->str);
	}
	freeReplyObject(r);
	redis_conn_close(c);
	return well;
}

/* Who is who, by the first node that answers. False: none knows the missed one. */
static bool learn(struct redis_store *s, struct view *v)
{
	struct redis_node known[REDIS_NODES];
	uint32_t n;
	bool ignored;

	skv_mutex_lock(&s->lock);
	n = s->n_node;
	memcpy(known, s->node, n * sizeof known[0]);
	skv_mutex_unlock(&s->lock);
	for (uint32_t i = 0; i < n && v->n_masters == 0; i++)
		if (!redis_node_equal(&known[i], &v->missed))
			ask_node(s, v, &known[i], &ignored);
	return v->n_masters > 0 && v->id[0];
}

/* Does a majority of the masters miss it? Those that are learned on the way count, too. */
static bool is_missed(const struct redis_store *s, struct view *v)
{
	bool suspect;

	for (uint32_t i = 0; i < v->n_masters; i++)
		if (ask_node(s, v, &v->master[i], &suspect))
			v->suspects += suspect;
	assert(v->suspects <= v->n_masters);
	return v->n_replicas > 0 && v->suspects > (v->n_masters + 1) / 2;
}

/* ---- one sender ------------------------------------------------------------------------------ */

enum answer { OURS, THEIRS, ELSEWHERE, NOBODY };

/* SET NX on one node. *moved: the node that has the key's slot. */
static enum answer ask_lease(const struct redis_store *s, const struct redis_node *at,
			     const char *key, struct redis_node *moved)
{
	struct skv_error ignored = { 0 };
	struct redis_conn *c = redis_connect_to(s, at, &ignored);
	redisReply *r = c ? redis_command(c, "SET %s 1 NX PX %u", key, LEASE_MS) : NULL;
	enum answer is = NOBODY;
	const char *host;

	if (r && r->type == REDIS_REPLY_STATUS) {
		is = OURS;
	} else if (r && r->type == REDIS_REPLY_NIL) {
		is = THEIRS;
	} else if (r && r->type == REDIS_REPLY_ERROR && strncmp(r->str, "MOVED ", 6) == 0) {
		host = strrchr(r->str, ' ') + 1;
		is = redis_node_parse(host, strlen(host), moved) ? ELSEWHERE : NOBODY;
	}
	freeReplyObject(r);
	redis_conn_close(c);
	return is;
}

/* May this process send? The first key that lies on another shard decides, the same for all.
 * NOBODY: no shard serves any more. */
static enum answer take_lease(const struct redis_store *s, const struct view *v)
{
	for (uint32_t k = 0; k < LEASES; k++) {
		char key[REDIS_KEY_MAX + 128];
		struct redis_node at = v->master[0], moved;
		enum answer is;

		snprintf(key, sizeof key, "{%s.force.%u}:%s", s->url.prefix, k, v->id);
		is = ask_lease(s, &at, key, &moved);
		if (is == ELSEWHERE && !redis_node_equal(&moved, &v->missed))
			is = ask_lease(s, &moved, key, &at);
		if (is == OURS || is == THEIRS)
			return is;
	}
	return NOBODY;
}

/* Where no lease is to be had any more, an owner whose append waits is the one. */
static bool may_send(const struct redis_link *l, const struct view *v)
{
	enum answer is = take_lease(l->store, v);

	return is == OURS || (is == NOBODY && l->use == REDIS_JOURNAL);
}

/* ---- the election ---------------------------------------------------------------------------- */

/* The replica's offset; 0: it does not answer, or is none. Without a primary ROLE does not tell. */
static uint64_t offset_of(struct redis_conn *c)
{
	static const char name[] = "\nslave_repl_offset:";
	redisReply *r = redis_command(c, "INFO replication");
	const char *at = r && r->type == REDIS_REPLY_STRING ? strstr(r->str, name) : NULL;
	uint64_t offset = at ? strtoull(at + sizeof name - 1, NULL, 10) : 0;

	freeReplyObject(r);
	return offset;
}

static struct redis_conn *connect_best(const struct redis_store *s, const struct view *v,
				  struct redis_node *out)
{
	struct redis_conn *best = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < v->n_replicas; i++) {
		struct skv_error ignored = { 0 };
		struct redis_conn *c = redis_connect_to(s, &v->replica[i], &ignored);
		uint64_t offset = c ? offset_of(c) : 0;
		struct redis_conn *lesser = offset > most ? best : c;

		if (offset > most) {
			most = offset;
			best = c;
			*out = v->replica[i];
		}
		redis_conn_close(lesser);
	}
	return best;
}

static void elect(struct redis_store *s, const struct view *v)
{
	struct redis_node at;
	struct redis_conn *c = connect_best(s, v, &at);
	redisReply *r = c ? redis_command(c, "CLUSTER FAILOVER FORCE") : NULL;

	if (r && r->type == REDIS_REPLY_ERROR) {
		skv_log(SKV_LOG_WARN, "store",
			"%s:%u refuses CLUSTER FAILOVER FORCE (%.100s): elections take their time",
			at.host, at.port, r->str);
		skv_mutex_lock(&s->lock);
		s->force_refused = true;
		skv_mutex_unlock(&s->lock);
	} else if (r) {
		skv_log(SKV_LOG_INFO, "store",
			"%u of %u masters miss %s:%u: its replica %s:%u asks for their votes",
			v->suspects, v->n_masters + 1, v->missed.host, v->missed.port, at.host,
			at.port);
	}
	freeReplyObject(r);
	redis_conn_close(c);
}

/* One thread at a time, and not too often. */
static bool begin(struct redis_store *s)
{
	bool look;

	skv_mutex_lock(&s->lock);
	look = !s->force_refused && !s->failing_over &&
	       skv_now_us() - s->failover_us > LOOK_MS * 1000u;
	s->failing_over |= look;
	skv_mutex_unlock(&s->lock);
	return look;
}

static void end(struct redis_store *s, uint64_t sender_until_us)
{
	skv_mutex_lock(&s->lock);
	assert(s->failing_over);
	s->failing_over = false;
	s->failover_us = skv_now_us();
	s->sender_until_us = sender_until_us;
	skv_mutex_unlock(&s->lock);
}

void redis_failover(struct redis_link *l)
{
	struct redis_store *s = l->store;
	struct view v = { .missed = l->home };
	const uint64_t now = skv_now_us();
	uint64_t until;

	assert(skv_mutex_held(&l->lock));
	if (!s->url.force || !s->cluster || !l->home.port || !begin(s))
		return;
	until = s->sender_until_us; /* only this thread changes it now */
	if (learn(s, &v)) {
		if (until < now && may_send(l, &v))
			until = now + LEASE_MS * 1000u;
		if (until >= now && is_missed(s, &v)) {
			elect(s, &v);
			until = 0;
		}
	}
	end(s, until);
}
