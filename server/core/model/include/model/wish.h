/*
 * wish.h - blocks that are wanted in their group's fast tier, for movers to copy (ops/copy.c).
 *
 * What is known of them is a guess: whoever takes one looks at the block. The newest WISHES are
 * kept, and none twice within WISH_REST_MS. Any thread that has the partition's lock, for reading.
 */
#ifndef SKV_CORE_MODEL_WISH_H
#define SKV_CORE_MODEL_WISH_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hash.h>

struct block;
struct partition;
struct wishes;

#define WISHES 4096u
#define WISH_REST_MS 5000u /* who has taken one has begun by then */

struct wish {
	struct skv_key key;
	uint32_t instance; /* its durable number */
};

struct wishes *wishes_make(void); /* NULL: out of memory */
void wishes_free(struct wishes *w); /* NULL is allowed */
/* `now`: boot time ms. */
void wish_note(const struct partition *p, const struct block *b, uint64_t now);
/* The oldest, without taking it. False: there is none. */
bool wish_next(const struct partition *p, struct wish *out);
/* Takes the oldest. */
void wish_taken(const struct partition *p);

#endif
