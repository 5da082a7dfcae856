/*
 * redis_calls.h - calls on partition 0 of a store on Redis that must succeed, for tests on real
 * servers.
 */
#ifndef SKV_TESTS_REDIS_CALLS_H
#define SKV_TESTS_REDIS_CALLS_H

#include "bench_store.h"
#include "redis_servers.h"

static struct skv_error err; /* of the newest call */

static inline uint64_t acquire(struct skv_store *s)
{
	uint64_t fence = 0;
	int rc = skv_store_acquire(s, 0, "me", 60000, &fence, NULL, 0, &err);

	if (rc != SKV_OK)
		fail_msg("%s: %s", skv_status_name(rc), err.message);
	return fence;
}

static inline int append(struct skv_store *s, uint64_t fence, uint64_t seq)
{
	uint8_t bytes[200];

	bench_fill(seq, bytes, sizeof bytes);
	return skv_store_append(s, 0, fence, seq, bytes, sizeof bytes, 0, &err);
}

static inline void appended(struct skv_store *s, uint64_t fence, uint64_t seq)
{
	int rc = append(s, fence, seq);

	if (rc != SKV_OK)
		fail_msg("append %llu: %s: %s", (unsigned long long)seq, skv_status_name(rc),
			 err.message);
}

/* It is not opened, and says why. */
static inline void refused_url(const char *url, int status, const char *part)
{
	const struct skv_store_options o = { .path = url };
	struct skv_store *s = NULL;

	assert_int_equal(skv_store_open(&skv_store_redis, &o, &s, &err), status);
	if (!strstr(err.message, part))
		fail_msg("'%s' does not say '%s'", err.message, part);
}

#endif
