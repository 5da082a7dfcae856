/*
 * etcd_txn.c - keys and transactions of the store on etcd.
 *
 * A transaction of unknown outcome is sent again unchanged. That is safe, because its compares let
 * at most one of the tries through; a failed compare may be the effect of an earlier try, which the
 * caller detects by the keys that `otherwise` has read.
 *
 * Any thread.
 */
#include <assert.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>

#include "etcd_store.h"

#define PAUSE_MS 20u  /* between two tries */
#define TRY_MS 400u   /* a member whose leader died keeps a call for 7 s before it reports that */
#define ELECTION_MS 2000u /* after which tries last longer: etcd is slow, and not electing */
#define SLOW_MS 1000u
#define READ_MS 4000u /* a read: large answers take their time */
#define GONE_MS 3000u /* how long an etcd that does not answer at all is asked */

struct skv_etcd_bytes etcd_key(const struct etcd_store *s, struct etcd_key *k, const char *format,
			       ...)
{
	const size_t n = (size_t)snprintf(k->text, sizeof k->text, "%s/", s->url.prefix);
	va_list args;
	int more;

	va_start(args, format);
	more = vsnprintf(k->text + n, sizeof k->text - n, format, args);
	va_end(args);
	assert(more >= 0 && n + (size_t)more < sizeof k->text);
	return (struct skv_etcd_bytes){ k->text, n + (size_t)more };
}

struct skv_etcd_compare etcd_mod_is(struct skv_etcd_bytes key, uint64_t mod)
{
	return (struct skv_etcd_compare){ .target = SKV_ETCD_MOD, .relation = SKV_ETCD_EQUAL,
					  .key = key, .number = mod };
}

struct skv_etcd_op etcd_range(struct skv_etcd_bytes key)
{
	return (struct skv_etcd_op){ .kind = SKV_ETCD_RANGE, .key = key };
}

struct skv_etcd_op etcd_range_to(struct skv_etcd_bytes key, struct skv_etcd_bytes end,
				 uint64_t limit)
{
	return (struct skv_etcd_op){ .kind = SKV_ETCD_RANGE, .key = key, .end = end,
				     .limit = limit };
}

struct skv_etcd_op etcd_put(struct skv_etcd_bytes key, const struct skv_buf *value)
{
	return (struct skv_etcd_op){ .kind = SKV_ETCD_PUT, .key = key,
				     .value = { value->data, value->len } };
}

struct skv_etcd_op etcd_delete(struct skv_etcd_bytes key)
{
	return (struct skv_etcd_op){ .kind = SKV_ETCD_DELETE, .key = key };
}

static void note_revision(struct etcd_store *s, uint64_t revision)
{
	uint64_t seen = atomic_load(&s->revision);

	while (seen < revision && !atomic_compare_exchange_weak(&s->revision, &seen, revision))
		;
}

static bool only_reads(const struct skv_etcd_txn *t)
{
	for (size_t i = 0; i < t->n_then; i++)
		if (t->then[i].kind != SKV_ETCD_RANGE)
			return false;
	return true;
}

/* Returns true if etcd executed a transaction that it refused for its quota. etcd does so with the
 * one that reaches the quota. False: the compares still hold. Else `a` is the answer of its
 * reads. */
static bool was_executed(struct etcd_store *s, const struct skv_etcd_txn *t,
			 struct skv_etcd_answer *a, int *rc, struct skv_error *err)
{
	const struct skv_etcd_txn reads = { t->compare, t->n_compare, NULL, 0, t->otherwise,
					    t->n_otherwise };
	const struct skv_etcd_op op = { .kind = SKV_ETCD_TXN, .txn = &reads };
	struct skv_error ignored = { 0 };
	const int read = skv_etcd_run_within(s->client, READ_MS, &op, a, &ignored);

	if (read == SKV_OK && a->result.succeeded)
		return false;
	*rc = read == SKV_OK ? SKV_OK
			     : skv_fail(err, SKV_E_UNKNOWN_OUTCOME, "store", "%s", ignored.message);
	return read == SKV_OK;
}

/* How long the next try may last. */
static uint32_t next_try_ms(uint32_t last_ms, bool reads, uint64_t ms)
{
	if (!reads)
		return ms < ELECTION_MS ? TRY_MS : SLOW_MS;
	return 2 * last_ms < READ_MS ? 2 * last_ms : READ_MS;
}

int etcd_settle(struct etcd_store *s, const struct skv_etcd_txn *t, struct skv_etcd_answer *a,
		bool *again, struct skv_error *err)
{
	const uint64_t begin_us = skv_now_us();
	const struct skv_etcd_op op = { .kind = SKV_ETCD_TXN, .txn = t };
	const bool reads = only_reads(t);
	uint32_t try_ms = TRY_MS;
	bool unknown = false;

	assert(!skv_mutex_held(&s->lock));
	for (;;) {
		int rc = skv_etcd_run_within(s->client, try_ms, &op, a, err);
		const uint64_t ms = (skv_now_us() - begin_us) / 1000;

		try_ms = next_try_ms(try_ms, reads, ms);
		if (again)
			*again = unknown;
		if (rc == SKV_E_STORE_FULL && was_executed(s, t, a, &rc, err) && again)
			*again = true;
		if (rc == SKV_OK)
			note_revision(s, a->revision);
		unknown |= rc == SKV_E_UNKNOWN_OUTCOME;
		if (rc == SKV_OK || (!unknown && (rc != SKV_E_STORE_IO || ms >= GONE_MS)))
			return rc;
		if (ms >= ETCD_SETTLE_MS)
			return skv_fail(err, SKV_E_UNKNOWN_OUTCOME, "store",
					"etcd has not said for %u ms whether it has executed a "
					"write: %s", ETCD_SETTLE_MS, err ? err->message : "");
		poll(NULL, 0, PAUSE_MS);
	}
}

int etcd_read(struct etcd_store *s, const struct skv_etcd_op *ops, size_t n,
	      struct skv_etcd_answer *a, struct skv_error *err)
{
	const struct skv_etcd_txn t = { .then = ops, .n_then = n };
	const int rc = etcd_settle(s, &t, a, NULL, err);

	if (rc == SKV_E_CONFLICT)
		return skv_fail(err, SKV_E_STORE_IO, "store", "etcd has compacted what was being "
				"read: it is read again");
	return rc;
}

struct skv_etcd_kv etcd_first(struct skv_etcd_answer *a)
{
	struct skv_etcd_result r;
	struct skv_etcd_kv kv;

	if (skv_etcd_next_result(&a->result, &r) && r.kind == SKV_ETCD_RANGE &&
	    skv_etcd_next_kv(&r, &kv))
		return kv;
	return (struct skv_etcd_kv){ .mod_revision = 0 };
}

int etcd_as_owner(struct etcd_store *s, uint32_t partition, struct skv_etcd_txn *t,
		  struct skv_etcd_answer *a, struct skv_error *err)
{
	const struct skv_etcd_op why = { .kind = SKV_ETCD_RANGE, .key = t->compare[0].key,
					 .keys_only = true };
	int rc;

	assert(t->n_compare > 0 && t->n_otherwise == 0);
	if (t->compare[0].number == 0)
		return etcd_fenced(partition, err);
	t->otherwise = &why;
	t->n_otherwise = 1;
	rc = etcd_settle(s, t, a, NULL, err);
	t->n_otherwise = 0;
	if (rc != SKV_OK || a->result.succeeded)
		return rc;
	if (etcd_first(a).mod_revision != t->compare[0].number)
		return etcd_fenced(partition, err);
	return skv_fail(err, SKV_E_CONFLICT, NULL, "partition %u has changed meanwhile", partition);
}

int etcd_check_here(const struct etcd_store *s, const struct skv_etcd_kv *format,
		    struct skv_error *err)
{
	if (format->mod_revision == s->format_mod)
		return SKV_OK;
	return skv_fail(err, SKV_E_CORRUPT, "store",
			"the keys below %s/ in etcd were deleted, or replaced, while this manager "
			"ran: bring them back", s->url.prefix);
}
