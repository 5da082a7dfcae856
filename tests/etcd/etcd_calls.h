/* etcd_calls.h - for the tests of the etcd client: calls in one line, which fail the test. */
#ifndef SKV_TESTS_ETCD_CALLS_H
#define SKV_TESTS_ETCD_CALLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skv/etcd.h>

#include "etcd_servers.h"
#include "etcd_upkeep.h"

#define LONG_MS 60000u /* for a cluster that starts or elects on a busy machine */

static struct skv_error err;

static inline struct skv_etcd *open_client(const struct skv_etcd_options *o)
{
	struct skv_etcd *c = NULL;

	if (skv_etcd_open(o, &c, &err) != SKV_OK)
		fail_msg("%s: %s", err.field, err.message);
	return c;
}

static inline struct skv_etcd *open_at(const char *endpoints, uint32_t timeout_ms)
{
	return open_client(&(struct skv_etcd_options){ .endpoints = endpoints,
						       .timeout_ms = timeout_ms });
}

static inline void expect_at(int line, int rc, int want, const char *part)
{
	if (rc != want || (part && !strstr(err.message, part)))
		fail_msg("line %d: %s ('%s'), not %s with '%s'", line, skv_status_name(rc),
			 rc == SKV_OK ? "" : err.message, skv_status_name(want), part ? part : "");
}
/* The call's status, and a part of the message (NULL: any). */
#define expect(rc, want, part) expect_at(__LINE__, rc, want, part)

static inline int put_once(struct skv_etcd *c, const char *key, const char *value)
{
	return skv_etcd_run(c, &(struct skv_etcd_op){ SKV_ETCD_PUT, .key = skv_etcd_text(key),
						      .value = skv_etcd_text(value) }, NULL, &err);
}

/* Repeats it until its outcome is known: on a busy machine a member may lose its leader, or time
 * out, at any time. */
static inline int put(struct skv_etcd *c, const char *key, const char *value)
{
	int rc;

	while ((rc = put_once(c, key, value)) == SKV_E_UNKNOWN_OUTCOME)
		;
	return rc;
}

/* The value, "" if there is none; valid until the next call. */
static inline const char *get(struct skv_etcd *c, const char *key)
{
	static char out[4096];
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_kv kv;
	const struct skv_etcd_op op = { SKV_ETCD_RANGE, .key = skv_etcd_text(key) };
	int rc = skv_etcd_run(c, &op, &a, &err);

	expect(rc, SKV_OK, NULL);
	out[0] = '\0';
	if (skv_etcd_next_kv(&a.result, &kv))
		snprintf(out, sizeof out, "%.*s", (int)kv.value.n, (const char *)kv.value.p);
	skv_etcd_answer_free(&a);
	return out;
}

/* Until the cluster answers. Returns its revision. */
static inline uint64_t wait_ready(struct skv_etcd *c)
{
	struct skv_etcd_answer a = { 0 };
	const struct skv_etcd_op op = { SKV_ETCD_RANGE, .key = skv_etcd_text("none") };
	uint64_t revision;

	expect(skv_etcd_run_within(c, LONG_MS, &op, &a, &err), SKV_OK, NULL);
	revision = a.revision;
	skv_etcd_answer_free(&a);
	return revision;
}

#endif
