/*
 * service.c - what all fronts of one manager share: its beginning and end, readiness, held bytes.
 *
 * Any thread; atomics only, the parts have their own locks.
 */
#include <kvb/service.h>

#include <kvb/core.h>
#include <kvb/hash.h>

int kvb_service_init(struct kvb_service *s, const char *tokens_file, struct kvb_error *err)
{
	kvb_random(&s->id_prefix, sizeof s->id_prefix);
	return kvb_auth_init(&s->auth, tokens_file, err);
}

void kvb_service_destroy(struct kvb_service *s) { kvb_auth_destroy(&s->auth); }

int kvb_service_ready(struct kvb_service *s, struct kvb_error *err)
{
	int rc = kvb_core_ready(s->core, err);

	if (rc == KVB_OK && atomic_load(&s->holding))
		rc = kvb_fail(err, KVB_E_NOT_READY, NULL, "the default objects are not made yet");
	return rc;
}

bool kvb_service_hold(struct kvb_service *s, uint64_t n)
{
	if (atomic_fetch_add(&s->body_held, n) + n <= s->body_total_max)
		return true;
	atomic_fetch_sub(&s->body_held, n);
	return false;
}

void kvb_service_let_go(struct kvb_service *s, uint64_t n) { atomic_fetch_sub(&s->body_held, n); }
