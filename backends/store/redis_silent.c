/*
 * redis_silent.c - going on without a replica of a cluster that is silent (?silent_ms=N).
 *
 * Whom masters list may be elected, so what is acknowledged without it would be lost with its
 * election. So it is recorded first, in another shard, that this node lacks something, acknowledged
 * like every write; then all that can be asked forget it (CLUSTER FORGET), never one that anybody
 * calls a primary; then its acknowledgement is not waited for. A node that does not know a replica
 * does not vote for it. Whoever lists it again (after the 60 s of a FORGET gossip may do that)
 * makes it count again, and is told again. And should it become a primary after all, nobody takes
 * it for one: whoever connects to a primary reads the records first.
 *
 * A record is at {PREFIX.silent.K}:nodes, on the first K that lies on another shard and
 * acknowledges: its node's id -> "STATE NONCE HOST:PORT ID,ID" (of those in sync, the primary
 * first). Its states:
 *	out	it may lack something. A write is acknowledged without it only if, after those in
 *		sync had it, the record was still the same.
 *	back	it answers again, and counts. It is still not known to have all.
 *	in	it has had a write that was begun after everybody counted it, so it has all; it is
 *		introduced to all masters again (CLUSTER MEET). When all list it, the record goes.
 * Each change compares the record with what it was, so managers may do all of this side by side,
 * and one that is killed leaves a state that others go on from.
 *
 * On the caller's thread, which holds its link, and takes the link of a record's key, which takes
 * none. Other nodes are asked over connections of its own.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>

#include "redis_store.h"

#define MEET_MS 1000u /* between two introductions */
#define SAYS_MS 1000u /* a replica says its offset unasked so often */

static bool is_on(const struct redis_store *s) { return s->url.silent_ms && s->cluster; }

/* A link to a record: it waits for whomever it must, and changes nothing. */
static bool is_record(const struct redis_link *l)
{
	return l->tag >= REDIS_SILENT_TAG && l->tag != REDIS_REGISTRY;
}

/* ---- what the newest lists say --------------------------------------------------------------- */

struct view {
	struct redis_absent absent[REDIS_ABSENT];
	uint32_t n;
	uint32_t listed[REDIS_ABSENT]; /* by so many masters that answered */
	uint32_t answered;
	bool majority; /* of the masters has answered */
};

static uint32_t listed_by(const struct redis_listing *l, const char *id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].id, id) == 0)
			n += l->v[i].listed;
	return n;
}

static bool has_majority(const struct redis_listing *l)
{
	return l->answered * 2 > l->n_voters;
}

static void look_at_lists(struct redis_store *s, struct view *v)
{
	skv_mutex_lock(&s->lock);
	v->n = s->lists.n_absent;
	memcpy(v->absent, s->lists.absent, v->n * sizeof v->absent[0]);
	for (uint32_t i = 0; i < v->n; i++)
		v->listed[i] = listed_by(&s->lists, v->absent[i].id);
	v->answered = s->lists.answered;
	v->majority = has_majority(&s->lists);
	skv_mutex_unlock(&s->lock);
}

/* Could it not be elected, and is it recorded that it lacks something? All records of a node must
 * say so. */
static bool is_excused(const struct view *v, const struct redis_node *at)
{
	bool out = false;

	for (uint32_t i = 0; i < v->n; i++) {
		const struct redis_absent *a = &v->absent[i];

		if (!redis_node_equal(&a->at, at))
			continue;
		if (a->state != REDIS_OUT || v->listed[i] > 0 || !v->majority)
			return false;
		out |= a->durable;
	}
	return out;
}

uint32_t redis_silent_excused(struct redis_link *l, const struct redis_node *must, uint32_t n)
{
	struct view v;
	uint32_t excused = 0;

	assert(skv_mutex_held(&l->lock));
	if (!is_on(l->store))
		return 0;
	look_at_lists(l->store, &v);
	for (uint32_t i = 0; i < n; i++)
		excused += is_excused(&v, &must[i]);
	return excused;
}

/* ---- going on without it --------------------------------------------------------------------- */

/* At least one record of it says "out", acknowledged, and none says otherwise. */
static bool record_out(struct redis_link *l, const char *id, const struct redis_node *at,
		       const char *text, const struct redis_listing *lists)
{
	struct redis_node failed[REDIS_SILENT];
	uint32_t n_failed = 0;
	bool done = false;

	assert(!is_record(l) && strlen(id) == REDIS_ID);
	for (uint32_t i = 0; i < lists->n_absent; i++) {
		const struct redis_absent *a = &lists->absent[i];
		const char *after = a->state == REDIS_OUT ? a->text : text;

		if (strcmp(a->id, id) != 0)
			continue;
		if (redis_record_change(l, a, a->text, after)) {
			redis_record_learn(l->store, a, after);
			done = true;
		} else if (a->state != REDIS_OUT) {
			return false;
		} else if (n_failed < REDIS_SILENT) {
			failed[n_failed++] = a->from;
		}
	}
	for (uint32_t k = 0; k < REDIS_SILENT && !done; k++) {
		struct redis_absent a = { .key = k, .at = *at, .from = lists->key_at[k] };

		if (!a.from.port || redis_node_equal(&a.from, &l->at) ||
		    redis_has_node(failed, n_failed, &a.from))
			continue;
		memcpy(a.id, id, sizeof a.id);
		done = redis_record_change(l, &a, "", text);
		if (done)
			redis_record_learn(l->store, &a, text);
		else
			failed[n_failed++] = a.from;
	}
	return done;
}

/* A command of CLUSTER: its words. */
struct words {
	const char *v[5];
	int n;
};

static void tell(const struct redis_store *s, const struct redis_node *to, const struct words *what)
{
	struct skv_error ignored = { 0 };
	struct redis_conn *c = redis_connect_to(s, to, &ignored);

	if (c)
		freeReplyObject(redis_command_argv(c, what->n, (const char **)what->v, NULL));
	redis_conn_close(c);
}

/* All masters and replicas but `at`: who has forgotten a node does not follow it either when it is
 * elected. */
static void tell_all(const struct redis_store *s, const struct redis_listing *lists,
		     const struct redis_node *at, const struct words *what)
{
	for (uint32_t i = 0; i < lists->n_masters; i++)
		tell(s, &lists->master[i], what);
	for (uint32_t i = 0; i < lists->n; i++)
		if (!redis_node_equal(&lists->v[i].at, at) &&
		    !redis_has_node(lists->primary, lists->n_primaries, &lists->v[i].at))
			tell(s, &lists->v[i].at, what);
}

static const char *find_id(const struct redis_listing *l, const struct redis_node *at)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (redis_node_equal(&l->v[i].at, at))
			return l->v[i].id;
	for (uint32_t i = 0; i < l->n_absent; i++)
		if (redis_node_equal(&l->absent[i].at, at))
			return l->absent[i].id;
	return NULL;
}

/* Nothing is taken from it: until the next look shows that nobody lists it, it still counts. */
static void go_without(struct redis_link *l, const struct redis_node *at,
		       const struct redis_have *h)
{
	char text[REDIS_ABSENT_MAX];
	struct redis_listing lists;
	const char *id;

	redis_look(l, &lists);
	id = find_id(&lists, at);
	if (!id || !has_majority(&lists) ||
	    redis_has_node(lists.primary, lists.n_primaries, at))
		return;
	redis_record_compose(text, REDIS_OUT, l, at, h, &lists);
	if (!record_out(l, id, at, text, &lists))
		return;
	skv_log(SKV_LOG_WARN, "store",
		"replica %s:%u is silent: writing goes on without it, and it is not elected",
		at->host, at->port);
	tell_all(l->store, &lists, at, &(struct words){ { "CLUSTER", "FORGET", id }, 3 });
	redis_look(l, &lists);
}

/* ---- taking it back -------------------------------------------------------------------------- */

/* Its own port for other nodes, by itself. 0: it does not tell. */
static uint16_t bus_of(const struct redis_store *s, const struct redis_node *at)
{
	struct skv_error ignored = { 0 };
	struct redis_conn *c = redis_connect_to(s, at, &ignored);
	redisReply *r = c ? redis_command(c, "CLUSTER NODES") : NULL;
	const char *line = r && r->type == REDIS_REPLY_STRING ? r->str : "";
	uint16_t bus = 0;

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct redis_member m;

		if (redis_member_parse(line, &m) && m.myself)
			bus = m.bus;
	}
	freeReplyObject(r);
	redis_conn_close(c);
	return bus;
}

static void introduce(struct redis_link *l, const struct redis_node *at)
{
	struct redis_store *s = l->store;
	struct redis_listing lists;
	char port[8], bus_port[8];
	uint16_t bus;
	bool due;

	skv_mutex_lock(&s->lock);
	due = skv_now_us() - s->meet_us > MEET_MS * 1000u;
	if (due)
		s->meet_us = skv_now_us();
	skv_mutex_unlock(&s->lock);
	bus = due ? bus_of(s, at) : 0;
	if (!bus)
		return;
	redis_look(l, &lists);
	snprintf(port, sizeof port, "%u", at->port);
	snprintf(bus_port, sizeof bus_port, "%u", bus);
	tell_all(s, &lists, at,
		 &(struct words){ { "CLUSTER", "MEET", at->host, port, bus_port }, 5 });
}

/* Is a part of its record in this state? */
static bool is_anywhere(const struct view *v, const char *id, unsigned state)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (strcmp(v->absent[i].id, id) == 0 && v->absent[i].state == state)
			return true;
	return false;
}

/* Has it, soon enough, what its primary had a while ago? Nobody waits for it, so it may never have
 * the newest when it is asked. */
static bool follows(struct redis_store *s, const struct redis_absent *of, uint64_t upto,
		    uint64_t offset)
{
	const uint64_t now = skv_now_us(), limit = (s->url.silent_ms + SAYS_MS) * UINT64_C(1000);
	bool soon = false;

	skv_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->lists.n_absent; i++) {
		struct redis_absent *a = &s->lists.absent[i];

		if (a->key != of->key || strcmp(a->id, of->id) != 0 || upto < a->goal)
			continue;
		soon = a->goal_us && now - a->goal_us < limit;
		a->goal = offset;
		a->goal_us = now;
	}
	skv_mutex_unlock(&s->lock);
	return soon;
}

static bool is_back(struct redis_store *s, const struct redis_absent *a,
		    const struct redis_have *h, uint32_t i)
{
	return a->state == REDIS_OUT ? follows(s, a, h->upto[i], h->offset) : h->has[i];
}

/* It is connected: the next step, if it may be taken. */
static void take_back(struct redis_link *l, const struct view *v, uint32_t i,
		      const struct redis_have *h, uint64_t begun_us)
{
	const struct redis_absent *a = &v->absent[i];
	struct redis_listing lists;
	char text[REDIS_ABSENT_MAX] = "";

	assert(!is_record(l) && i < v->n);
	if (a->state == REDIS_BACK &&
	    (begun_us <= a->seen_us || is_anywhere(v, a->id, REDIS_OUT)))
		return;
	if (a->state == REDIS_IN && (v->listed[i] < v->answered || !v->majority)) {
		introduce(l, &a->at);
		return;
	}
	skv_mutex_lock(&l->store->lock);
	lists = l->store->lists;
	skv_mutex_unlock(&l->store->lock);
	if (a->state != REDIS_IN)
		redis_record_compose(text, a->state + 1, l, &a->at, h, &lists);
	if (!redis_record_change(l, a, a->text, text))
		return;
	redis_record_learn(l->store, a, text);
	skv_log(SKV_LOG_INFO, "store", "replica %s:%u %s", a->at.host, a->at.port,
		a->state == REDIS_OUT	 ? "answers again, and counts"
		: a->state == REDIS_BACK ? "has all, and may be elected again"
					 : "is one like the others again");
}

/* ---- acknowledging --------------------------------------------------------------------------- */

static bool is_of_shard(const struct redis_absent *a, const struct redis_link *l)
{
	const char *in_sync = strrchr(a->text, ' ');

	return in_sync && l->id[0] && strstr(in_sync, l->id);
}

/* Those that are not known to have all again count, wherever they are. */
static void add_returning(const struct view *v, const struct redis_link *l, struct redis_have *h)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->absent[i].state != REDIS_OUT && is_of_shard(&v->absent[i], l) &&
		    h->n < 2 * REDIS_NODES && !redis_has_node(h->at, h->n, &v->absent[i].at)) {
			h->has[h->n] = false;
			h->upto[h->n] = 0;
			h->at[h->n++] = v->absent[i].at;
		}
}

/* The record, read anew over a connection that is kept. */
static bool is_same(struct redis_link *l, const struct redis_absent *a)
{
	struct skv_error ignored = { 0 };
	char key[REDIS_KEY_MAX];
	redisReply *r;
	bool same;

	if (l->side && !redis_node_equal(&l->side_at, &a->from)) {
		redis_conn_close(l->side);
		l->side = NULL;
	}
	if (!l->side)
		l->side = redis_connect_to(l->store, &a->from, &ignored);
	l->side_at = a->from;
	redis_key(l->store, REDIS_SILENT_TAG + a->key, key, "nodes");
	r = l->side ? redis_command(l->side, "HGET %s %s", key, a->id) : NULL;
	same = r && r->type == REDIS_REPLY_STRING && strcmp(r->str, a->text) == 0;
	if (!r) {
		redis_conn_close(l->side);
		l->side = NULL;
	}
	freeReplyObject(r);
	return same;
}

/* Is whoever was out when this write was sent out still? Others may count it by now. */
static bool are_still_out(struct redis_link *l, const struct view *v)
{
	bool same = true;

	for (uint32_t i = 0; i < v->n && same; i++)
		same = v->absent[i].state != REDIS_OUT || is_same(l, &v->absent[i]);
	if (same)
		return true;
	skv_mutex_lock(&l->store->lock);
	l->store->lists_us = 0; /* look again */
	skv_mutex_unlock(&l->store->lock);
	return false;
}

/* The first that has been silent for long enough, or is recorded as such; NULL: none. */
static const struct redis_node *too_late(const struct redis_link *l, const struct view *v,
					 const struct redis_have *h, uint64_t begun_us)
{
	const bool over = skv_now_us() - begun_us > l->store->url.silent_ms * UINT64_C(1000);

	for (uint32_t i = 0; i < h->n; i++) {
		bool out = false;

		for (uint32_t j = 0; j < v->n; j++)
			out |= v->absent[j].state == REDIS_OUT &&
			       redis_node_equal(&v->absent[j].at, &h->at[i]);
		if (!h->has[i] && (over || out) && !is_excused(v, &h->at[i]))
			return &h->at[i];
	}
	return NULL;
}

bool redis_silent_suffices(struct redis_link *l, struct redis_have *h, uint64_t begun_us)
{
	uint32_t have = 0, lack = 0;
	const struct redis_node *silent;
	struct view v;

	assert(skv_mutex_held(&l->lock) && is_on(l->store));
	look_at_lists(l->store, &v);
	add_returning(&v, l, h);
	assert(v.n <= REDIS_ABSENT && h->n <= 2 * REDIS_NODES);
	for (uint32_t i = 0; i < h->n; i++) {
		const bool excused = is_excused(&v, &h->at[i]);

		have += h->has[i] && !excused;
		lack += !h->has[i] && !excused;
	}
	if (lack == 0 && have >= l->store->url.replicas && are_still_out(l, &v)) {
		for (uint32_t i = 0; i < v.n && !is_record(l) && l->id[0]; i++)
			for (uint32_t j = 0; j < h->n; j++)
				if (redis_node_equal(&h->at[j], &v.absent[i].at) &&
				    is_back(l->store, &v.absent[i], h, j))
					take_back(l, &v, i, h, begun_us);
		return true;
	}
	silent = is_record(l) || !l->id[0] || have < l->store->url.replicas
			 ? NULL
			 : too_late(l, &v, h, begun_us);
	if (silent)
		go_without(l, silent, h);
	return false;
}
