/*
 * members.c - the present managers of a store. See skv/members.h.
 *
 * One thread renews this manager's document and reads the others', three times per lease. The lock
 * protects its results, and is never held during a call of the store.
 */
#include <skv/members.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/core.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/nodes.h>
#include <skv/service.h>
#include <skv/store.h>

#define BEATS 3u /* per lease */

struct member_sighting {
	char name[SKV_OWNER_NAME];
	uint64_t version; /* of its document */
	uint64_t since_ms; /* time at which the document was first seen */
	uint32_t lease_ms;
	uint32_t takes;
	bool draining;
	char peer[SKV_URL_MAX];
};

/* ---- the last look --------------------------------------------------------------------------- */

static const struct member_sighting *find_locked(const struct skv_members *m, const char *name)
	SKV_REQUIRES(m->lock)
{
	for (uint32_t i = 0; i < m->n_seen; i++)
		if (strcmp(m->seen[i].name, name) == 0)
			return &m->seen[i];
	return NULL;
}

/* Reads a document's text. A state other than "up", of a later version, does not exclude the
 * member. */
static void read_text(const char *text, uint32_t otherwise_ms, struct member_sighting *out)
{
	char word[16] = "";

	_Static_assert(SKV_URL_MAX == 300, "a peer's room");
	out->lease_ms = out->takes = 0;
	*out->peer = '\0';
	if (sscanf(text, "%9" SCNu32 " %15s %8" SCNx32 " %299s", &out->lease_ms, word, &out->takes,
		   out->peer) < 1 ||
	    !out->lease_ms)
		out->lease_ms = otherwise_ms;
	out->draining = strcmp(word, "drained") == 0;
}

int skv_members_look(struct skv_members *m, const struct skv_doc *docs, uint32_t n,
		     const struct skv_homes *homes, uint64_t now_ms)
{
	struct member_sighting *fresh = skv_calloc((size_t)n + 1, sizeof *fresh), *before;
	uint32_t found = 0;

	if (!fresh)
		return SKV_E_NOMEM;
	skv_mutex_lock(&m->lock);
	for (uint32_t i = 0; i < n; i++) {
		struct member_sighting *at = &fresh[found];
		const struct member_sighting *was = find_locked(m, docs[i].name);

		if (strlen(docs[i].name) >= sizeof at->name)
			continue;
		snprintf(at->name, sizeof at->name, "%s", docs[i].name);
		read_text(docs[i].text, m->lease_ms, at);
		at->version = docs[i].version;
		at->since_ms = was && was->version == at->version ? was->since_ms : now_ms;
		assert(at->since_ms <= now_ms);
		found++;
	}
	before = m->seen;
	m->seen = fresh;
	m->n_seen = found;
	m->homes = *homes;
	m->looked_ms = now_ms;
	skv_mutex_unlock(&m->lock);
	skv_free(before);
	return SKV_OK;
}

static bool is_silent_locked(const struct skv_members *m, const struct member_sighting *at)
	SKV_REQUIRES(m->lock)
{
	assert(at->since_ms <= m->looked_ms);
	return m->looked_ms - at->since_ms >= at->lease_ms;
}

/* Returns false if the member is not present. */
static bool fill(struct skv_members *m, struct skv_member *out)
{
	const struct member_sighting *at;
	bool there;

	if (!m->started)
		return true;
	skv_mutex_lock(&m->lock);
	at = find_locked(m, out->name);
	there = !at || !is_silent_locked(m, at);
	out->draining = at && at->draining;
	skv_mutex_unlock(&m->lock);
	return there;
}

int skv_members_seen(struct skv_members *m, struct skv_member_seen **out, uint32_t *n)
{
	int rc = SKV_E_NOMEM;

	*n = 0;
	skv_mutex_lock(&m->lock);
	*out = skv_calloc((size_t)m->n_seen + 1, sizeof **out);
	for (uint32_t i = 0; *out && i < m->n_seen; i++) {
		const struct member_sighting *at = &m->seen[i];
		struct skv_member_seen *s = &(*out)[*n];

		if (is_silent_locked(m, at) || skv_owner_is_dead(at->name))
			continue;
		skv_node_process(at->name, s->id);
		s->since_ms = at->since_ms;
		s->takes = at->takes;
		s->draining = at->draining;
		memcpy(s->peer, at->peer, sizeof s->peer);
		(*n)++;
	}
	if (*out)
		rc = SKV_OK;
	skv_mutex_unlock(&m->lock);
	return rc;
}

/* ---- homes ----------------------------------------------------------------------------------- */

uint32_t skv_members_home(struct skv_members *m, uint32_t number, const struct skv_member_seen *v,
			  uint32_t n)
{
	uint32_t found = UINT32_MAX, all = 0;
	char peer[SKV_URL_MAX];

	assert(number < SKV_MAX_PARTITIONS);
	skv_mutex_lock(&m->lock);
	memcpy(peer, m->homes.peer[number], sizeof peer);
	skv_mutex_unlock(&m->lock);
	for (uint32_t i = 0; *peer && i < n; i++) {
		if (v[i].draining || strcmp(v[i].peer, peer) != 0)
			continue;
		found = i;
		all++;
	}
	return all == 1 ? found : UINT32_MAX;
}

int skv_homes_read(struct skv_cluster *cluster, struct skv_homes *out, struct skv_error *err)
{
	struct skv_doc *docs;
	struct skv_arena a;
	uint32_t n = 0, number;
	int rc;

	memset(out, 0, sizeof *out);
	skv_arena_init(&a);
	rc = skv_cluster_doc_list(cluster, SKV_HOME, &a, &docs, &n, err);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		if (sscanf(docs[i].name, SKV_HOME "%9" SCNu32, &number) == 1 &&
		    number < SKV_MAX_PARTITIONS && strlen(docs[i].text) < SKV_URL_MAX)
			snprintf(out->peer[number], SKV_URL_MAX, "%s", docs[i].text);
	skv_arena_destroy(&a);
	return rc;
}

int skv_home_put(struct skv_cluster *cluster, uint32_t number, const char *peer,
		 struct skv_error *err)
{
	char name[sizeof SKV_HOME + 10];
	int rc;

	assert(number < skv_cluster_partitions(cluster) && strlen(peer) < SKV_URL_MAX);
	snprintf(name, sizeof name, SKV_HOME "%" PRIu32, number);
	if (*peer)
		return skv_cluster_doc_put(cluster, name, SKV_PUT_ANY, peer, err);
	rc = skv_cluster_doc_delete(cluster, name, err);
	if (rc == SKV_E_NOT_FOUND)
		skv_error_clear(err);
	return rc == SKV_E_NOT_FOUND ? SKV_OK : rc;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool is_leaving(struct skv_members *m)
{
	bool leaving;

	skv_mutex_lock(&m->lock);
	leaving = m->leaving;
	skv_mutex_unlock(&m->lock);
	return leaving || skv_cluster_draining(m->cluster);
}

static uint32_t takes(struct skv_cluster *cluster)
{
	const uint32_t n = skv_cluster_partitions(cluster);
	struct skv_partition_view v;
	uint32_t bits = 0;

	assert(n > 0 && n <= SKV_MAX_PARTITIONS);
	for (uint32_t i = 0; i < n; i++) {
		skv_cluster_partition_get(cluster, i, &v);
		bits |= (uint32_t)v.takes << i;
	}
	return bits;
}

static int beat(struct skv_members *m, struct skv_error *err)
{
	struct skv_homes homes;
	struct skv_doc *docs;
	struct skv_arena a;
	uint32_t n;
	char text[40 + SKV_URL_MAX];
	int rc;

	snprintf(text, sizeof text, "%" PRIu32 " %s %" PRIx32 " %s", m->lease_ms,
		 is_leaving(m) ? "drained" : "up", takes(m->cluster), m->peer);
	skv_arena_init(&a);
	rc = skv_node_publish(m->cluster, SKV_NODE_MEMBER, text, err);
	if (rc == SKV_OK)
		rc = skv_node_list(m->cluster, SKV_NODE_MEMBER, &a, &docs, &n, err);
	if (rc == SKV_OK)
		rc = skv_homes_read(m->cluster, &homes, err);
	if (rc == SKV_OK &&
	    skv_members_look(m, docs, n, &homes, skv_now_ms(&skv_clock_system)) != SKV_OK)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_arena_destroy(&a);
	return rc;
}

static bool wait_for_end(struct skv_members *m)
{
	bool stopping;

	skv_mutex_lock(&m->lock);
	if (!m->stopping)
		skv_cond_wait_ms(&m->wake, &m->lock, m->lease_ms / BEATS);
	stopping = m->stopping;
	skv_mutex_unlock(&m->lock);
	return stopping;
}

static void *beat_on(void *arg)
{
	struct skv_members *m = arg;

	do {
		struct skv_error err = { 0 };
		const int rc = beat(m, &err);

		if (rc != SKV_OK && !m->told)
			skv_log(SKV_LOG_WARN, "members",
				"the other managers may count this one as gone: %s",
				*err.message ? err.message : skv_status_text(rc));
		m->told = rc != SKV_OK;
	} while (!wait_for_end(m));
	return NULL;
}

int skv_members_start(struct skv_members *m, struct skv_cluster *cluster, const char *peer,
		      uint32_t lease_ms, struct skv_error *err)
{
	assert(!m->started && cluster && lease_ms >= BEATS && strlen(peer) < SKV_URL_MAX);
	*m = (struct skv_members){ .cluster = cluster, .peer = peer, .lease_ms = lease_ms };
	skv_mutex_init(&m->lock);
	skv_cond_init(&m->wake);
	m->started = pthread_create(&m->thread, NULL, beat_on, m) == 0;
	if (m->started)
		return SKV_OK;
	skv_cond_destroy(&m->wake);
	skv_mutex_destroy(&m->lock);
	return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread for the members");
}

void skv_members_leave(struct skv_members *m)
{
	if (!m->started)
		return;
	skv_mutex_lock(&m->lock);
	m->leaving = true;
	skv_cond_broadcast(&m->wake);
	skv_mutex_unlock(&m->lock);
}

void skv_members_stop(struct skv_members *m)
{
	if (!m->started)
		return;
	skv_mutex_lock(&m->lock);
	m->stopping = true;
	skv_cond_broadcast(&m->wake);
	skv_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	skv_node_retire(m->cluster, SKV_NODE_MEMBER);
	m->started = false;
	skv_free(m->seen);
	m->seen = NULL;
	skv_cond_destroy(&m->wake);
	skv_mutex_destroy(&m->lock);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const char *text_of(const struct skv_doc *docs, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(docs[i].name, name) == 0)
			return docs[i].text;
	return "";
}

int skv_members_list(struct skv_service *s, struct skv_arena *a, struct skv_member **out,
		     uint32_t *n, struct skv_error *err)
{
	struct skv_doc *peers, *urls = NULL;
	uint32_t n_peers, n_urls = 0;
	int rc = skv_node_list(s->cluster, SKV_NODE_PEER, a, &peers, &n_peers, err);

	*n = 0;
	if (rc == SKV_OK)
		rc = skv_node_list(s->cluster, SKV_NODE_URL, a, &urls, &n_urls, err);
	if (rc != SKV_OK)
		return rc;
	*out = skv_arena_calloc(a, (size_t)n_peers + 1, sizeof **out);
	if (!*out)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < n_peers; i++) {
		struct skv_member *m = &(*out)[*n];

		*m = (struct skv_member){ .name = peers[i].name, .peer = peers[i].text,
					  .url = text_of(urls, n_urls, peers[i].name) };
		*n += strlen(m->name) < SKV_OWNER_NAME && fill(&s->members, m);
	}
	return SKV_OK;
}
