/*
 * leader.c - looks up and remembers the address of the manager that owns the partition. See leader.h.
 *
 * Owns struct leader of the service. Callers only compare names under the lock; the store is read by a worker, without
 * the lock. An owner publishes its address at about the time when it gets the ownership, so one that has none yet is
 * looked up again.
 */
#include <kvb/leader.h>

#include <stdio.h>
#include <string.h>

#include <kvb/clock.h>
#include <kvb/nodes.h>
#include <kvb/service.h>

#define LOOK_AGAIN_MS 500u
#define SURELY_MS 3000u /* who has not told by then will not */

/* Another manager wrote it, and it goes into a header. */
static bool is_url(const char *s)
{
	const size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f)
			return false;
	return n < KVB_URL_MAX && strncmp(s, "http", 4) == 0;
}

static void look(struct job *job, bool expired)
{
	struct leader *l = (struct leader *)((char *)job - offsetof(struct leader, job));
	struct kvb_service *s = (struct kvb_service *)((char *)l - offsetof(struct kvb_service, leader));
	char owner[KVB_OWNER_NAME];
	const char *text = "";
	struct kvb_error ignored;
	struct kvb_arena a;

	kvb_mutex_lock(&l->lock);
	memcpy(owner, l->owner, sizeof owner);
	kvb_mutex_unlock(&l->lock);
	kvb_arena_init(&a);
	if (expired || kvb_node_text(s->core, KVB_NODE_URL, owner, &a, &text, &ignored) != KVB_OK)
		text = "";
	kvb_mutex_lock(&l->lock);
	l->looking = false;
	if (strcmp(l->owner, owner) == 0 && is_url(text))
		snprintf(l->url, sizeof l->url, "%s", text);
	kvb_mutex_unlock(&l->lock);
	kvb_arena_destroy(&a);
}

/* True: the caller has the look-up made. */
static bool must_look_locked(struct leader *l, const char *owner, uint64_t now)
{
	if (strcmp(l->owner, owner) != 0) {
		snprintf(l->owner, sizeof l->owner, "%s", owner);
		*l->url = '\0';
		l->since_ms = now;
		l->looked_ms = 0;
	}
	if (*l->url || l->looking || (l->looked_ms && now - l->looked_ms < LOOK_AGAIN_MS))
		return false;
	l->looking = true;
	l->looked_ms = now;
	l->job.run = look;
	return true;
}

int kvb_service_leader_url(struct kvb_service *s, char *out)
{
	struct leader *l = &s->leader;
	char self[KVB_OWNER_NAME], owner[KVB_OWNER_NAME];
	const uint64_t now = kvb_now_ms(&kvb_clock_system);
	uint64_t left;
	bool must_look;
	int rc;

	kvb_core_leader(s->core, self, owner, &left);
	if (!*owner || strcmp(self, owner) == 0)
		return KVB_E_NOT_FOUND;
	kvb_mutex_lock(&l->lock);
	must_look = must_look_locked(l, owner, now);
	memcpy(out, l->url, sizeof l->url);
	if (*out && strcmp(out, s->advertised) != 0)
		rc = KVB_OK;
	else /* our own: the one before us on the same socket ends right now */
		rc = *out || now - l->since_ms < SURELY_MS ? KVB_E_NOT_READY : KVB_E_NOT_FOUND;
	kvb_mutex_unlock(&l->lock);
	if (must_look && !kvb_workers_submit(&s->workers, &l->job, now)) {
		kvb_mutex_lock(&l->lock);
		l->looking = false;
		kvb_mutex_unlock(&l->lock);
	}
	return rc;
}
