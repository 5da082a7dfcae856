/* fixture.h - a stand-in, a handle on it, an instance, and blocks with known contents. */
#ifndef SKV_TEST_CLIENT_FIXTURE_H
#define SKV_TEST_CLIENT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client.h"
#include "standin.h"

#define FIX_BYTES 4096u /* of the one spec "kv" of instance "m" */

struct fixture {
	struct standin s;
	struct slabkv_options o;
	struct slabkv *kv;
	uint32_t mismatches; /* on_mismatch */
	struct slabkv_mismatch last;
	const char *urls[4];
};

/* Starts the stand-in and opens a handle that reaches it, with instance "m". */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* Opens the handle anew with f->o, a clock and an engine (NULL = defaults). */
void fixture_reopen(struct fixture *f, const struct skv_clock *clock,
		    const struct skv_engine_ops *engine);

/* `n` blocks with keys first.. and one buffer each; contents differ per key. Free with set_free. */
struct set {
	uint32_t n;
	uint64_t *ids;
	uint8_t *memory;
	struct slabkv_buf *bufs;
	struct slabkv_block *blocks;
	struct slabkv_keys keys;
	struct slabkv_io io;
	struct slabkv_error err;
};
void set_init(struct set *b, uint64_t first, uint32_t n);
void set_free(struct set *b);
void set_fill(struct set *b);  /* contents of each key */
void set_clear(struct set *b); /* zeros */
/* Block i holds what set_fill makes. */
bool set_right(const struct set *b, uint32_t i);
int set_put(struct fixture *f, struct set *b);
int set_get(struct fixture *f, struct set *b, enum slabkv_mode mode);
/* Puts keys first.. and checks that all were written. */
void put_all(struct fixture *f, uint64_t first, uint32_t n);

#endif
