/* fixture.c - see fixture.h. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_mismatch(void *ctx, const struct slabkv_mismatch *m)
{
	struct fixture *f = ctx;

	f->mismatches++;
	f->last = *m;
}

void fixture_reopen(struct fixture *f, const struct skv_clock *clock,
		    const struct skv_engine_ops *engine)
{
	struct skv_error err;

	slabkv_close(f->kv);
	f->kv = NULL;
	assert_int_equal(skv_client_open(&f->o, clock, engine, &f->kv, &err), SKV_OK);
}

/* In tests a failed check ends the process. */
static void die(const char *expr, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
	abort();
}

static __attribute__((constructor)) void begin(void) { skv_check_hook = die; }

int fixture_setup(void **state)
{
	static const struct slabkv_spec spec = { "kv", FIX_BYTES };
	static const struct slabkv_instance instance = { .size = sizeof(struct slabkv_instance),
							 .id = "m",
							 .group = "g",
							 .specs = &spec,
							 .spec_size = sizeof(struct slabkv_spec),
							 .n_specs = 1 };
	struct fixture *f = calloc(1, sizeof *f);
	struct slabkv_error err;

	assert_non_null(f);
	standin_start(&f->s);
	slabkv_options_init(&f->o, sizeof f->o);
	f->urls[0] = f->s.url;
	f->o.urls = f->urls;
	f->o.n_urls = 1;
	f->o.on_mismatch = on_mismatch;
	f->o.on_mismatch_ctx = f;
	fixture_reopen(f, NULL, NULL);
	assert_int_equal(slabkv_instance_put(f->kv, &instance, &err), SLABKV_OK);
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	slabkv_close(f->kv);
	standin_stop(&f->s);
	free(f);
	return 0;
}

void set_init(struct set *b, uint64_t first, uint32_t n)
{
	memset(b, 0, sizeof *b);
	b->n = n;
	b->ids = calloc(n, sizeof *b->ids);
	b->memory = calloc(n, FIX_BYTES);
	b->bufs = calloc(n, sizeof *b->bufs);
	b->blocks = calloc(n, sizeof *b->blocks);
	assert_true(b->ids && b->memory && b->bufs && b->blocks);
	for (uint32_t i = 0; i < n; i++) {
		b->ids[i] = first + i;
		b->bufs[i] = (struct slabkv_buf){ b->memory + (size_t)i * FIX_BYTES, FIX_BYTES };
		b->blocks[i] = (struct slabkv_block){ .bufs = &b->bufs[i], .n_bufs = 1 };
	}
	b->keys = slabkv_keys_ints(b->ids, n);
	b->io.size = sizeof b->io;
}

void set_free(struct set *b)
{
	free(b->ids);
	free(b->memory);
	free(b->bufs);
	free(b->blocks);
}

static uint8_t byte_of(uint64_t key, uint32_t at)
{
	return (uint8_t)(key * 31 + at * 7 + (at >> 8) + 1);
}

void set_fill(struct set *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		for (uint32_t k = 0; k < FIX_BYTES; k++)
			b->memory[(size_t)i * FIX_BYTES + k] = byte_of(b->ids[i], k);
}

void set_clear(struct set *b) { memset(b->memory, 0, (size_t)b->n * FIX_BYTES); }

bool set_right(const struct set *b, uint32_t i)
{
	for (uint32_t k = 0; k < FIX_BYTES; k++)
		if (b->memory[(size_t)i * FIX_BYTES + k] != byte_of(b->ids[i], k))
			return false;
	return true;
}

int set_put(struct fixture *f, struct set *b)
{
	set_fill(b);
	return slabkv_put(f->kv, "m", &b->keys, NULL, b->blocks, sizeof(struct slabkv_block),
			  &b->io, &b->err);
}

int set_get(struct fixture *f, struct set *b, enum slabkv_mode mode)
{
	const struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
						 .mode = mode,
						 .lease_ms = SLABKV_LEASE_DEFAULT };

	set_clear(b);
	return slabkv_get(f->kv, "m", &b->keys, &o, b->blocks, sizeof(struct slabkv_block), &b->io,
			  &b->err);
}

void put_all(struct fixture *f, uint64_t first, uint32_t n)
{
	struct set b;

	set_init(&b, first, n);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, n);
	set_free(&b);
}
