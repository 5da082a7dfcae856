/*
 * test_core_golden.c - durable records byte by byte (ON_DISK.md): what is written today, and
 * forms of before that must be read. Sees the core's insides: decoders have no outside.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <lock/lock.h>
#include <model/block.h>
#include <model/index.h>
#include <model/leases.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <journal/record.h>
#include <journal/replay.h>
#include <recovery/load.h>
#include <recovery/recover.h>

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_init(&e);
	env_open(&e);
	env_make(&e, 1 << 20, 65536, 4096);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_destroy(&e);
	return 0;
}

/* The record is these bytes and their checksum. */
static void assert_record(const struct skv_buf *b, const uint8_t *bytes, size_t n)
{
	uint64_t sum = skv_checksum(bytes + 4, n - 4);

	assert_int_equal(b->len, n + 8);
	assert_memory_equal(b->data, bytes, n);
	assert_memory_equal(b->data + n, &sum, 8);
}

/* A partition that has read these bytes, with their checksum behind them, and nothing
 * else. The caller destroys it. */
static struct partition *part_of(const uint8_t *bytes, size_t n, const char *boot_id)
{
	struct replay r = { .p = loading_make(e.core), .now = skv_now_ms(e.core->clock) };
	struct skv_buf b = { 0 };

	assert_non_null(r.p);
	snprintf(r.boot_id, sizeof r.boot_id, "%s", boot_id);
	assert_int_equal(registry_load(r.p, &e.err), SKV_OK);
	skv_put_bytes(&b, bytes, n);
	skv_put_u64(&b, skv_checksum(bytes + 4, n - 4));
	assert_int_equal(replay_close(&r, replay_records(&r, b.data, b.len, &e.err), &e.err),
			 SKV_OK);
	skv_buf_destroy(&b);
	return r.p;
}

/* ---- 17 ENDED -------------------------------------------------------------------------------- */

#define ENDED_AS 8u /* bytes at its end, left out if no finish said anything */

static const uint8_t ended[] = {
	0x60, 0, 0, 0, 17, 1, 0, 0,                                               /* header */
	2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,                           /* session */
	4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,                           /* tenant */
	6, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,                           /* request */
	8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0,                           /* body */
	/* finished; 3 writes, 2 committed, 1 failed */
	1, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0,
	/* 600,000 ms to remember */
	0xc0, 0xcf, 0x24,
	9, 0, 0, 0,                                                               /* instance */
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,                           /* finished as */
};

static void an_ended_session(void **state)
{
	struct session s = { .id = { 2, 1 }, .tenant = { 4, 3 }, .request = { 6, 5 },
			     .body = { 8, 7 },
			     .state = SKV_SESSION_FINISHED, .n_write = 3, .committed = 2,
			     .failed = 1, .forget_at = 700000,
			     .instance = 9, .finished_as = 0x1122334455667788u };
	struct skv_buf b = { 0 };
	uint8_t before[sizeof ended];

	(void)state;
	record_ended(&b, &s, 100000);
	assert_record(&b, ended, sizeof ended);
	skv_buf_clear(&b);
	s.finished_as = 0; /* say, the session was aborted */
	record_ended(&b, &s, 100000);
	memcpy(before, ended, sizeof before);
	before[0] = 0x58;
	assert_record(&b, before, sizeof before - ENDED_AS);
	skv_buf_destroy(&b);
}

static void ended_sessions_are_read(void **state)
{
	static const struct { uint8_t less; uint32_t instance; uint64_t as; } form[] = {
		{ 0, 9, 0x1122334455667788u }, { ENDED_AS, 9, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof form / sizeof form[0]; i++) {
		uint8_t bytes[sizeof ended];
		const struct session *s;
		struct partition *p;

		memcpy(bytes, ended, sizeof bytes);
		bytes[0] = (uint8_t)(bytes[0] - form[i].less);
		p = part_of(bytes, sizeof bytes - form[i].less, "");
		s = session_find(p, (struct skv_key){ 2, 1 });
		assert_non_null(s);
		assert_true(skv_key_equal(s->tenant, (struct skv_key){ 4, 3 }) &&
			    skv_key_equal(s->request, (struct skv_key){ 6, 5 }) &&
			    skv_key_equal(s->body, (struct skv_key){ 8, 7 }));
		assert_int_equal(s->state, SKV_SESSION_FINISHED);
		assert_true(s->n_write == 3 && s->committed == 2 && s->failed == 1);
		assert_int_equal(s->instance, form[i].instance);
		assert_true(s->finished_as == form[i].as);
		partition_destroy(p);
	}
}

/* ---- 5 HORIZON ------------------------------------------------------------------------------- */

static const uint8_t horizon[] = {
	0x41, 0, 0, 0, 5, 1, 0, 0,                      /* header */
	'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', '-', '0', '0', '0', '0', '-', '4', '0', '0', '0',
	'-', '8', '0', '0', '0', '-', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '1',
	0x50, 0x46, 0x0f, 0, 0, 0, 0, 0,                /* until 1,001,040 */
	0x10, 4, 0, 0,                                  /* in 1,040 ms */
	0,                                              /* not clean */
	0xd0, 0x0f,                                     /* a freeze of 2,000 ms */
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* base of the birth clock */
	0xac, 0x02,                                     /* lead of the birth clock: 300 ms */
};

static void the_horizon_of_an_ownership(void **state)
{
	const uint64_t now = skv_now_ms(e.core->clock);
	struct partition *p = e.core->partition;
	struct skv_buf b = { 0 };

	(void)state;
	assert_int_equal(now, 1000000);
	core_lock(e.core);
	memcpy(e.core->boot_id, horizon + 8, 36);
	p->old_horizon = now + 1040;
	p->freeze_until = now + 2000;
	p->birth_base = 0x1122334455667788;
	p->birth_most_lead = 300;
	record_horizon(&b, p, false);
	core_unlock(e.core);
	assert_record(&b, horizon, sizeof horizon);
	skv_buf_destroy(&b);
}

static void a_horizon_is_read(void **state)
{
	struct replay r = { .p = loading_make(e.core), .now = skv_now_ms(e.core->clock) };
	uint8_t bytes[sizeof horizon + 8];
	const uint64_t sum = skv_checksum(horizon + 4, sizeof horizon - 4);

	(void)state;
	memcpy(bytes, horizon, sizeof horizon);
	memcpy(bytes + sizeof horizon, &sum, sizeof sum);
	assert_int_equal(replay_records(&r, bytes, sizeof bytes, &e.err), SKV_OK);
	assert_memory_equal(r.boot_id, horizon + 8, 36);
	assert_true(r.horizon_until == 1001040 && r.horizon_span == 1040 && !r.clean);
	assert_int_equal(r.freeze_ms, 2000);
	assert_true(r.birth_base == 0x1122334455667788);
	assert_int_equal(r.birth_lead, 300);
	partition_destroy(r.p);
}

/* ---- 22 LEASES ------------------------------------------------------------------------------- */

static const uint8_t leases[] = {
	0x22, 0, 0, 0, 22, 1, 0, 0,                     /* header */
	2, 0, 0, 0,                                     /* instance */
	7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, /* key */
	0x10, 0x4a, 0x0f, 0, 0, 0, 0, 0,                /* until 1,002,000 */
	0xd0, 0x0f,                                     /* in 2,000 ms */
};

static void leases_of_a_clean_stop(void **state)
{
	struct skv_key k[2] = { { 7, 1 }, { 7, 2 } };
	struct skv_lookup_res res;
	struct skv_buf b = { 0 };

	(void)state;
	assert_int_equal(env_put(&e, k, 2), 2);
	/* the second has none */
	assert_int_equal(env_lookup(&e, k, 1, SKV_LOOKUP_BATCH, 2000, &res), SKV_OK);
	assert_int_equal(res.matched, 1);
	core_lock(e.core);
	record_leases(&b, e.core->partition, e.core->partition->chunk[1],
		      skv_now_ms(e.core->clock));
	core_unlock(e.core);
	assert_record(&b, leases, sizeof leases);
	skv_buf_destroy(&b);
}

static void leases_are_read(void **state)
{
	const uint64_t now = skv_now_ms(e.core->clock);

	(void)state;
	for (int boot = 0; boot < 2; boot++) { /* this one's clock, or another's */
		struct partition *p =
			part_of(leases, sizeof leases, boot ? "another" : e.core->boot_id);

		assert_int_equal(p->n_lease, 1);
		assert_int_equal(p->lease[0].inst, 2);
		assert_true(skv_key_equal(p->lease[0].key, (struct skv_key){ 7, 1 }));
		assert_true(p->lease[0].until == (boot ? now + 2000 : 1002000));
		partition_destroy(p);
	}
}

/* ---- 23 CHUNK -------------------------------------------------------------------------------- */

static const uint8_t chunk[] = {
	0x41, 0, 0, 0, 23, 1, 0, 0,                     /* header */
	2, 0, 0, 0,                                     /* instance */
	1, 0, 0, 0,                                     /* chunk */
	2, 0x80, 0xa0, 0xc2, 0x1e,                      /* entries; least use: 1,000,000 ms */
	7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, /* keys */
	7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
	0x0d,                                           /* the next place, slots of all specs */
	0,                                              /* used then, once, no tag */
	0, 1, 0, 0, 0, 0, 1,                            /* slot: place, its number, generation */
	0x0f, 0, 1, 0, 0,                               /* the next place, with a parent */
	1,                                              /* tag 1 */
	7,                                              /* the next slot there, and generation */
};

static void the_blocks_of_a_chunk(void **state)
{
	struct skv_key k[2] = { { 7, 1 }, { 7, 2 } };
	struct skv_buf b = { 0 };

	(void)state;
	assert_int_equal(env_put(&e, k, 2), 2);
	core_lock(e.core);
	record_chunk(&b, e.core->partition, e.core->partition->chunk[1]);
	core_unlock(e.core);
	assert_record(&b, chunk, sizeof chunk);
	skv_buf_destroy(&b);
}

static void a_chunk_is_read(void **state)
{
	const struct block *first, *second;
	const struct instance *inst;
	struct partition *p;

	(void)state;
	assert_int_equal(env_put(&e, &(struct skv_key){ 7, 3 }, 1), 1); /* the slab file is there */
	p = part_of(chunk, sizeof chunk, "");
	inst = instance_by_id(p, 2);
	first = index_find(p, inst, (struct skv_key){ 7, 1 });
	second = index_find(p, inst, (struct skv_key){ 7, 2 });
	assert_true(first && second && p->blocks == 2);
	assert_int_equal(second->parent, block_id(first));
	assert_true(first->parent == NO_BLOCK && first->children == 1);
	assert_true(second->slot[0].index == first->slot[0].index + 1);
	assert_true(first->slot[0].generation == 1 && second->slot[0].generation == 2);
	assert_true(second->slot[0].state == SLOT_COMMITTED);
	assert_true(use_ms(mark_use(atomic_load(&first->mark))) == 1000000);
	partition_destroy(p);
}

/* ---- 4 REMOVE, 11 REMOVE_SLOTS --------------------------------------------------------------- */

static const uint8_t removed_slots[] = {
	0x0e, 0, 0, 0, 11, 1, 0, 0, /* header */
	2, 0, 0, 0,                 /* instance */
	1 << 2 | 2, 1, 0, 0, 0,     /* two, downwards; their place */
	1,                          /* the first of them */
};

static const uint8_t removed[] = {
	0x2d, 0, 0, 0, 4, 1, 0, 0,                      /* header */
	2, 0, 0, 0, 2,                                  /* instance, how many */
	7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, /* key */
	1, 0,                                           /* specs, hold */
	7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
	1, 0,
};

static void removed_blocks(void **state)
{
	struct skv_key k[4] = { { 7, 1 }, { 7, 2 }, { 7, 3 }, { 7, 4 } };
	struct removal r[4];
	struct skv_buf b = { 0 };
	const struct instance *inst;

	(void)state;
	assert_int_equal(env_put(&e, k, 4), 4);
	core_lock(e.core);
	inst = instance_by_id(e.core->partition, 2);
	for (uint32_t i = 0; i < 4; i++)
		r[i] = (struct removal){ .block = block_id(index_find(e.core->partition, inst,
								      k[1 - i % 2 + i / 2 * 2])),
					 .specs = 1 };
	assert_int_equal(record_remove(&b, e.core->partition, r, 2, 1000000), 2);
	assert_record(&b, removed_slots, sizeof removed_slots);
	skv_buf_clear(&b);
	/* 2 and 1, 4 and 3: another run in the same slab needs no place */
	assert_int_equal(record_remove(&b, e.core->partition, r, 4, 1000000), 4);
	assert_int_equal(b.len, sizeof removed_slots + 2 + 8);
	assert_memory_equal(b.data + sizeof removed_slots, "\7\3", 2);
	skv_buf_clear(&b);
	r[1].hold_until = 1000500; /* slots that are held are not told this way */
	assert_int_equal(record_remove(&b, e.core->partition, r, 2, 1000000), 2);
	assert_int_equal(b.data[4], 4);
	core_unlock(e.core);
	skv_buf_destroy(&b);
}

/* Puts a record behind another, with its checksum. */
static void put_record(struct skv_buf *b, const uint8_t *bytes, size_t n)
{
	skv_put_bytes(b, bytes, n);
	skv_put_u64(b, skv_checksum(bytes + 4, n - 4));
}

static void removals_of_all_versions_are_read(void **state)
{
	static const struct { const uint8_t *bytes; size_t n; } form[] = {
		{ removed, sizeof removed }, { removed_slots, sizeof removed_slots },
	};

	(void)state;
	assert_int_equal(env_put(&e, &(struct skv_key){ 7, 3 }, 1), 1); /* the slab file is there */
	for (unsigned i = 0; i < sizeof form / sizeof form[0]; i++) {
		struct skv_buf b = { 0 };
		struct replay r = { .p = loading_make(e.core),
				    .now = skv_now_ms(e.core->clock) };

		assert_int_equal(registry_load(r.p, &e.err), SKV_OK);
		put_record(&b, chunk, sizeof chunk);
		assert_int_equal(replay_records(&r, b.data, b.len, &e.err), SKV_OK);
		assert_int_equal(r.p->blocks, 2);
		skv_buf_clear(&b);
		put_record(&b, form[i].bytes, form[i].n);
		assert_int_equal(replay_records(&r, b.data, b.len, &e.err), SKV_OK);
		assert_int_equal(r.p->blocks, 0);
		assert_int_equal(r.p->volume[0].used_bytes, 0);
		/* and not twice */
		assert_int_equal(replay_close(&r, replay_records(&r, b.data, b.len, &e.err),
					      &e.err),
				 SKV_E_CORRUPT);
		skv_error_clear(&e.err);
		skv_buf_destroy(&b);
		partition_destroy(r.p);
	}
}

/* ---- 14 CHECKED ------------------------------------------------------------------------------ */

static const uint8_t checked[] = {
	0x0f, 0, 0, 0, 14, 1, 0, 0, /* header */
	1, 0,                       /* storage, file */
	0xac, 2, 0,                 /* the last pass began at 300, no other has */
	3, 5,                       /* unit, slot */
	7, 1, 2, 1,                 /* slots, without a checksum; of the current pass */
};

static void progress_of_a_scrub(void **state)
{
	const struct file_check c = { .checked_ms = 300, .unit = 3, .slot = 5, .slots = 7,
				      .unsummed = 1, .saw_slots = 2, .saw_unsummed = 1 };
	struct skv_buf b = { 0 };
	struct partition *p;

	(void)state;
	assert_int_equal(env_put(&e, &(struct skv_key){ 7, 3 }, 1), 1); /* the slab file is there */
	core_lock(e.core);
	p = e.core->partition;
	record_checked(&b, p, &p->volume[0], &p->volume[0].file[0]);
	assert_int_equal(b.len, 0); /* nothing to tell */
	p->volume[0].file[0].check = c;
	record_checked(&b, p, &p->volume[0], &p->volume[0].file[0]);
	core_unlock(e.core);
	assert_record(&b, checked, sizeof checked);
	skv_buf_destroy(&b);
	p = part_of(checked, sizeof checked, "");
	assert_memory_equal(&p->volume[0].file[0].check, &c, sizeof c);
	partition_destroy(p);
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(an_ended_session),
		SCENE(removed_blocks),
		SCENE(progress_of_a_scrub),
		SCENE(removals_of_all_versions_are_read),
		SCENE(ended_sessions_are_read),
		SCENE(the_horizon_of_an_ownership),
		SCENE(a_horizon_is_read),
		SCENE(leases_of_a_clean_stop),
		SCENE(leases_are_read),
		SCENE(the_blocks_of_a_chunk),
		SCENE(a_chunk_is_read),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
