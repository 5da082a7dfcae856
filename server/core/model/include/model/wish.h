/*
 * wish.h - blocks that movers should copy or move to another storage (ops/copy.c).
 *
 * Two rings. *Noted* are guesses: blocks that are used often and have no copy in their group's fast
 * tier; the newest WISHES are kept. *Asked* wishes name blocks that a caller has requested
 * (ops/want.c); while WISHES of them wait, more are refused. A block is not noted twice within
 * WISH_REST_MS, nor asked for while it waits. Wishes are not durable: the taker of a wish checks
 * the block. Any thread that holds the partition's lock for reading.
 */
#ifndef SKV_CORE_MODEL_WISH_H
#define SKV_CORE_MODEL_WISH_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hash.h>

struct block;
struct partition;
struct wishes;

#define WISHES 4096u       /* of a ring */
#define WISH_REST_MS 5000u /* a mover that has taken a wish has begun by then */
#define WISH_ANYWHERE UINT32_MAX

enum wish_kind { WISH_ASKED, WISH_NOTED, WISH_KINDS };

struct wish {
	struct skv_key key;
	uint32_t instance; /* durable number of the instance */
	/* Of asked wishes only: */
	uint32_t to;    /* volume, or WISH_ANYWHERE in the fast tier */
	/* The volume is one of its group: the block is to lie there. Else it is to have a copy
	 * there. */
	bool moves;
	/* Boot time ms: it has waited for room since, and is given up then; 0 = it has not
	 * waited. */
	uint64_t until;
};

struct wishes *wishes_make(void); /* NULL: out of memory */
void wishes_free(struct wishes *w); /* NULL is allowed */
/* `now`: boot time ms. */
void wish_note(const struct partition *p, const struct block *b, uint64_t now);
/* Returns false if too many wishes are waiting; then the wish is not taken up. */
bool wish_ask(const struct partition *p, const struct wish *wish, uint64_t now);
/* How many of that kind wait. */
uint32_t wishes_waiting(const struct partition *p, enum wish_kind kind);
/* Returns the oldest wish, without taking it. False: there is none. */
bool wish_next(const struct partition *p, enum wish_kind kind, struct wish *out);
/* Takes the oldest. */
void wish_taken(const struct partition *p, enum wish_kind kind);
/* Replaces the oldest asked wish by `wish`, and moves it behind the others. */
void wish_again(const struct partition *p, const struct wish *wish);

#endif
