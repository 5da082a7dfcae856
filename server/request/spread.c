/*
 * spread.c - shares the partitions of a store with the other managers. See skv/spread.h.
 *
 * One thread uses only the state of the core and the members, and calls nobody: so a hanging store
 * does not prevent it from detecting that another manager is gone. Only until all objects have
 * places (decision 0050) it reads the store, and one manager, the owner of the first partition, has
 * all partitions. The same applies to a store that is a file, which one process writes at a time.
 *
 * State: struct skv_spread, of the thread alone.
 */
#include <skv/spread.h>

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/assign.h>
#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/nodes.h>

#define STEP_MS 20u
#define PLACED_MS 500u /* between two questions whether all objects have places */
#define FREE_MS 300u   /* after this time the assigned manager counts as absent */
#define GIVEN_MS 1000u /* then who was to take it has not, and the next one may go */

struct view {
	struct skv_member_seen *v;
	uint32_t n, self;
	uint32_t n_partitions;
	struct skv_assign_partition of[SKV_MAX_PARTITIONS]; /* shuns: who had a free one before */
	uint32_t should[SKV_MAX_PARTITIONS];
};

/* ---- owners of partitions -------------------------------------------------------------------- */

static void look_at(struct skv_spread *s, uint32_t number, uint64_t now)
{
	struct skv_spread_of *of = &s->of[number];
	char self[SKV_OWNER_NAME], owner[SKV_OWNER_NAME], holder[SKV_OWNER_NAME];
	uint64_t left;

	skv_cluster_partition_leader(s->cluster, number, self, owner, &left);
	skv_node_process(skv_cluster_partition_state(s->cluster, number) == SKV_CORE_STANDBY ? owner
											     : self,
			 holder);
	if (!*holder && (*of->holder || !of->free_ms))
		of->free_ms = now;
	if (strcmp(holder, of->holder) == 0)
		return;
	if (*of->holder) {
		memcpy(of->before, of->holder, sizeof of->before);
		of->lost_ms = now;
	}
	memcpy(of->holder, holder, sizeof of->holder);
	assert(of->lost_ms <= now && of->free_ms <= now);
}

/* ---- present members ------------------------------------------------------------------------- */

static uint32_t find(const struct view *w, const char *id)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (strcmp(w->v[i].id, id) == 0)
			return i;
	return SKV_NOBODY;
}

/* Returns false before the first look, or if out of memory. */
static bool look(struct skv_spread *s, struct view *w)
{
	char self[SKV_OWNER_NAME], leader[SKV_OWNER_NAME], id[SKV_OWNER_NAME];
	uint64_t left;

	skv_cluster_leader(s->cluster, self, leader, &left);
	skv_node_process(self, id);
	w->n_partitions = skv_cluster_partitions(s->cluster);
	assert(w->n_partitions > 1 && w->n_partitions <= SKV_MAX_PARTITIONS);
	if (skv_members_seen(s->members, &w->v, &w->n) != SKV_OK)
		return false;
	w->self = find(w, id);
	for (uint32_t p = 0; p < w->n_partitions; p++) {
		const struct skv_spread_of *of = &s->of[p];

		w->of[p] = (struct skv_assign_partition){
			.has = *of->holder ? find(w, of->holder) : SKV_NOBODY,
			.shuns = *of->holder || !*of->before ? SKV_NOBODY : find(w, of->before),
			.home = skv_members_home(s->members, p, w->v, w->n),
		};
	}
	return w->self != SKV_NOBODY;
}

static bool assign(struct view *w)
{
	struct skv_assign_member *m = skv_calloc((size_t)w->n + 1, sizeof *m);
	int rc;

	if (!m)
		return false;
	for (uint32_t i = 0; i < w->n; i++)
		m[i] = (struct skv_assign_member){ w->v[i].id, w->v[i].draining };
	rc = skv_assign(m, w->n, w->of, w->should, w->n_partitions);
	skv_free(m);
	return rc == SKV_OK;
}

/* ---- partitions that may be owned ------------------------------------------------------------ */

static uint32_t bit(uint32_t number) { return 1u << number; }

/* Returns the manager that should own all partitions. Any manager may try to be the owner, unless
 * there is one. */
static uint32_t together(const struct skv_spread *s, const struct view *w)
{
	const char *self = w->v[w->self].id, *first = s->of[0].holder;
	uint32_t own = 1;

	if (strcmp(first, self) == 0)
		return bit(w->n_partitions) - 1;
	for (uint32_t p = 1; !*first && p < w->n_partitions; p++)
		if (strcmp(s->of[p].holder, self) == 0)
			own |= bit(p);
	return own;
}

/* Returns true if the partition can be given to that member: it follows the partition, and was
 * heard of since it lost its own. */
static bool can_take(const struct skv_spread *s, const struct view *w, uint32_t to, uint32_t number)
{
	const struct skv_member_seen *m = &w->v[to];

	for (uint32_t p = 0; p < w->n_partitions; p++)
		if (strcmp(s->of[p].before, m->id) == 0 && m->since_ms <= s->of[p].lost_ms)
			return false;
	return !m->draining && m->takes & bit(number);
}

/* The next one to let go, + 1; 0: none, for now. */
static uint32_t give(struct skv_spread *s, const struct view *w, uint64_t now)
{
	const uint32_t last = s->given - 1;

	if (s->given && w->of[last].has != SKV_NOBODY && w->of[last].has != w->self)
		s->given = 0; /* the partition has arrived */
	if (s->given && now - s->given_ms < GIVEN_MS) {
		/* nobody took it, and it is here again: for now it stays */
		const bool back = w->of[last].has == w->self && s->of[last].lost_ms >= s->given_ms;

		return back ? 0 : s->given;
	}
	s->given = 0;
	for (uint32_t p = 0; p < w->n_partitions && !s->given; p++) {
		const uint32_t to = w->should[p];
		uint32_t was;

		if (w->of[p].has != w->self || to == SKV_NOBODY || to == w->self ||
		    !can_take(s, w, to, p))
			continue;
		s->given = p + 1;
		s->given_ms = now;
		was = skv_log_partition(p + 1);
		skv_log(SKV_LOG_INFO, "members", "the partition goes to %s", w->v[to].id);
		skv_log_partition(was);
	}
	return s->given;
}

static uint32_t shared(struct skv_spread *s, struct view *w, uint64_t now)
{
	const bool takes = !w->v[w->self].draining && !skv_cluster_draining(s->cluster);
	uint32_t own = 0, goes;

	if (!assign(w))
		return 0;
	goes = give(s, w, now);
	assert(goes <= w->n_partitions);
	for (uint32_t p = 0; p < w->n_partitions; p++) {
		const struct skv_spread_of *of = &s->of[p];

		if (w->of[p].has == w->self)
			own |= p + 1 == goes ? 0 : bit(p);
		else if (!*of->holder && takes &&
			 (w->should[p] == w->self || now - of->free_ms >= FREE_MS))
			own |= bit(p);
	}
	return own;
}

static bool is_placed(struct skv_spread *s, uint64_t now)
{
	struct skv_error ignored;
	bool placed;

	if (s->placed || (s->asked_ms && now - s->asked_ms < PLACED_MS))
		return s->placed;
	s->asked_ms = now;
	s->placed = skv_cluster_placed(s->cluster, &placed, &ignored) == SKV_OK && placed;
	return s->placed;
}

void skv_spread_step(struct skv_spread *s, uint64_t now)
{
	struct view w = { .n = 0 };
	const bool shares = s->shares && is_placed(s, now);

	for (uint32_t p = 0; p < skv_cluster_partitions(s->cluster); p++)
		look_at(s, p, now);
	if (look(s, &w))
		skv_cluster_may_own(s->cluster, shares ? shared(s, &w, now) : together(s, &w));
	skv_free(w.v);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *go_on(void *arg)
{
	struct skv_spread *s = arg;

	skv_mutex_lock(&s->lock);
	while (!s->stopping) {
		skv_mutex_unlock(&s->lock);
		skv_spread_step(s, skv_now_ms(&skv_clock_system));
		skv_mutex_lock(&s->lock);
		if (!s->stopping)
			skv_cond_wait_ms(&s->wake, &s->lock, STEP_MS);
	}
	skv_mutex_unlock(&s->lock);
	return NULL;
}

int skv_spread_start(struct skv_spread *s, struct skv_cluster *cluster, struct skv_members *members,
		     bool shares, struct skv_error *err)
{
	assert(!s->started && cluster && members->started && skv_cluster_partitions(cluster) > 1);
	*s = (struct skv_spread){ .cluster = cluster, .members = members, .shares = shares };
	skv_mutex_init(&s->lock);
	skv_cond_init(&s->wake);
	s->started = pthread_create(&s->thread, NULL, go_on, s) == 0;
	if (s->started)
		return SKV_OK;
	skv_cond_destroy(&s->wake);
	skv_mutex_destroy(&s->lock);
	return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread for the partitions");
}

void skv_spread_stop(struct skv_spread *s)
{
	if (!s->started)
		return;
	skv_mutex_lock(&s->lock);
	s->stopping = true;
	skv_cond_broadcast(&s->wake);
	skv_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->started = false;
	skv_cond_destroy(&s->wake);
	skv_mutex_destroy(&s->lock);
}
