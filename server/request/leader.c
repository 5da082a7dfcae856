/*
 * leader.c - looks up and caches the address of the manager that owns a partition. See leader.h.
 *
 * Owns struct leader of the service. Callers only compare names under the lock; the store is read
 * by a worker, without the lock. An owner publishes its address at about the time when it gets the
 * ownership, so one that has none yet is looked up again.
 */
#include <skv/leader.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/nodes.h>
#include <skv/service.h>

#define LOOK_AGAIN_MS 500u
#define SURELY_MS 3000u /* an owner that has not published its URL by then will not */
/* An owner that hands its socket over has ended by then (DRAIN_MS of server/main/serve.c). */
#define HAND_OVER_MS 12000u

/* Checks a URL that another manager wrote, because it goes into a header. */
static bool is_url(const char *s)
{
	const size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f)
			return false;
	return n < SKV_URL_MAX && strncmp(s, "http", 4) == 0;
}

/* "" unless it is published. */
static void read_url(struct skv_service *s, const char *kind, const char *owner,
		     char out[SKV_URL_MAX])
{
	const char *text = "";
	struct skv_error ignored;
	struct skv_arena a;

	skv_arena_init(&a);
	if (skv_node_text(s->cluster, kind, owner, &a, &text, &ignored) != SKV_OK || !is_url(text))
		text = "";
	snprintf(out, SKV_URL_MAX, "%s", text);
	skv_arena_destroy(&a);
}

static void look(struct job *job, bool expired)
{
	struct leader_of *l = (struct leader_of *)((char *)job - offsetof(struct leader_of, job));
	struct skv_service *s = l->service;
	struct skv_mutex *lock = &s->leader.lock;
	char owner[SKV_OWNER_NAME], url[SKV_URL_MAX] = "", peer[SKV_URL_MAX] = "";

	skv_mutex_lock(lock);
	memcpy(owner, l->owner, sizeof owner);
	skv_mutex_unlock(lock);
	if (!expired) {
		read_url(s, SKV_NODE_URL, owner, url);
		read_url(s, SKV_NODE_PEER, owner, peer);
	}
	skv_mutex_lock(lock);
	assert(l->looking);
	l->looking = false;
	if (strcmp(l->owner, owner) == 0 && *url)
		memcpy(l->url, url, sizeof l->url);
	if (strcmp(l->owner, owner) == 0 && *peer)
		memcpy(l->peer, peer, sizeof l->peer);
	skv_mutex_unlock(lock);
}

/* Notes the owner; a new owner makes the known data of the previous one void. */
static void see_owner_locked(struct leader_of *l, const char *owner, uint64_t now)
{
	assert(skv_mutex_held(&l->service->leader.lock));
	if (strcmp(l->owner, owner) == 0)
		return;
	snprintf(l->owner, sizeof l->owner, "%s", owner);
	*l->url = *l->peer = *l->token = '\0';
	l->since_ms = now;
	l->looked_ms = 0;
}

/* Returns true if the caller must have the look-up made. `known`: the value that it looks up. */
static bool must_look_locked(struct leader_of *l, const char *owner, const char *known,
			     uint64_t now)
{
	see_owner_locked(l, owner, now);
	if (*known || l->looking || (l->looked_ms && now - l->looked_ms < LOOK_AGAIN_MS))
		return false;
	l->looking = true;
	l->looked_ms = now;
	l->job.run = look;
	return true;
}

/* `known` is the url or the peer of it, `own` what this manager publishes there. */
static int find(struct skv_service *s, uint32_t partition, const char *known, const char *own,
		char out[SKV_URL_MAX], char owner[SKV_OWNER_NAME])
{
	struct leader_of *l = &s->leader.of[partition];
	struct skv_mutex *lock = &s->leader.lock;
	char self[SKV_OWNER_NAME];
	const uint64_t now = skv_now_ms(&skv_clock_system);
	uint64_t left;
	bool must_look;
	int rc;

	assert(partition < SKV_MAX_PARTITIONS && l->service == s);
	skv_cluster_partition_leader(s->cluster, partition, self, owner, &left);
	if (!*owner || strcmp(self, owner) == 0)
		return SKV_E_NOT_FOUND;
	skv_mutex_lock(lock);
	must_look = must_look_locked(l, owner, known, now);
	memcpy(out, known, SKV_URL_MAX);
	if (*out && strcmp(out, own) != 0)
		rc = SKV_OK;
	else
		/* our own: the one before us on the same socket ends right now, or all
		 * managers share one address */
		rc = now - l->since_ms < (*out ? HAND_OVER_MS : SURELY_MS) ? SKV_E_NOT_READY
									   : SKV_E_NOT_FOUND;
	skv_mutex_unlock(lock);
	if (must_look && !skv_workers_submit(&s->workers, &l->job, now)) {
		skv_mutex_lock(lock);
		l->looking = false;
		skv_mutex_unlock(lock);
	}
	return rc;
}

int skv_service_owner_url(struct skv_service *s, uint32_t partition, char *out)
{
	char owner[SKV_OWNER_NAME];

	return find(s, partition, s->leader.of[partition].url, s->advertised, out, owner);
}

int skv_service_peer(struct skv_service *s, uint32_t partition, char out[SKV_URL_MAX],
		     char owner[SKV_OWNER_NAME])
{
	return find(s, partition, s->leader.of[partition].peer, s->peer, out, owner);
}

/* Reads the token of the owner. The token is sent in a header. */
static void read_token(struct skv_service *s, const char *owner, char out[SKV_PEER_TOKEN])
{
	const char *text = "";
	struct skv_error ignored;
	struct skv_arena a;

	skv_arena_init(&a);
	if (skv_node_text(s->cluster, SKV_NODE_ASK, owner, &a, &text, &ignored) != SKV_OK ||
	    strspn(text, "0123456789abcdef") != strlen(text))
		text = "";
	snprintf(out, SKV_PEER_TOKEN, "%s", text);
	skv_arena_destroy(&a);
}

int skv_service_peer_wait(struct skv_service *s, uint32_t partition, char out[SKV_URL_MAX],
			  char token[SKV_PEER_TOKEN], char owner[SKV_OWNER_NAME])
{
	struct leader_of *l = &s->leader.of[partition];
	struct skv_mutex *lock = &s->leader.lock;
	char self[SKV_OWNER_NAME];
	uint64_t left;

	assert(skv_thread_locks == 0);
	skv_cluster_partition_leader(s->cluster, partition, self, owner, &left);
	if (!*owner || strcmp(self, owner) == 0)
		return SKV_E_NOT_FOUND;
	skv_mutex_lock(lock);
	*out = *token = '\0';
	if (strcmp(l->owner, owner) == 0) {
		memcpy(out, l->peer, SKV_URL_MAX);
		memcpy(token, l->token, SKV_PEER_TOKEN);
	}
	skv_mutex_unlock(lock);
	if (*out && *token)
		return SKV_OK;
	read_url(s, SKV_NODE_PEER, owner, out);
	read_token(s, owner, token);
	skv_mutex_lock(lock);
	see_owner_locked(l, owner, skv_now_ms(&skv_clock_system));
	if (*out) {
		memcpy(l->peer, out, SKV_URL_MAX);
		memcpy(l->token, token, SKV_PEER_TOKEN);
	}
	skv_mutex_unlock(lock);
	return *out && *token ? SKV_OK : SKV_E_NOT_READY;
}
