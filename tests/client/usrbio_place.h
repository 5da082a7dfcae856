/* usrbio_place.h - the engine "usrbio" on the stand-in for 3FS's client library (tests/usrbio), for
 * the tests of it. One mount for all tests of a program: the library stays loaded. */
#ifndef SKV_TEST_USRBIO_PLACE_H
#define SKV_TEST_USRBIO_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "client.h"
#include "control.h"
#include "usrbio.h"

#define MIB (1u << 20)
#define LENGTH (256ull * MIB) /* of the file "slab" */

extern char root[64]; /* the mount */
extern int rootfd;

struct place {
	struct skv_hf3fs_options o;
	struct skv_engine_options with;
	struct skv_engine *engine;
	struct skv_engine_file *r, *w;
	struct skv_fake_clock clock;
	struct skv_io_call by;
};

/* Around all tests of the program: makes and removes the mount. */
int place_begin(void);
void place_end(void);
/* cmocka's, around each: an engine with "slab" open both ways; nothing is left behind. */
int setup(void **state);
int teardown(void **state);
void open_files(struct place *p);
void close_files(struct place *p);
void make_file(const char *name);

/* The same daemon, with other knobs; and another daemon. */
void knobs(const char *text);
void restart(void);
uint64_t count(enum counter_name name);

struct skv_usrbio_conn *conn(const struct place *p);
/* Is a buffer of the pool taken? */
bool in_use(struct skv_usrbio_conn *g, enum skv_usrbio_way way);
void fill(uint8_t *data, size_t n, uint64_t seed);
/* Returns a run of `n` pieces of `size` bytes, each in memory of its own `stride` bytes apart. */
struct skv_io_run run_of(struct skv_engine_file *f, uint64_t offset, uint8_t *data, size_t size,
			 size_t stride, int n, struct iovec *iov);
void write_bytes(struct place *p, uint64_t offset, uint8_t *data, size_t n);

#endif
