/*
 * pin.h - which blocks eviction leaves alone.
 */
#ifndef SKV_CORE_MODEL_PIN_H
#define SKV_CORE_MODEL_PIN_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/ops.h>

struct block;
struct instance;
struct partition;

/* A block that eviction leaves alone (pin.c). */
struct pin {
	uint32_t block; /* id; NO_BLOCK = the cell is empty */
	uint32_t kind;  /* enum skv_pin_kind */
	uint64_t until; /* boot time ms; 0 = until it is unpinned */
};

/* By block id, open addressing. */
struct pins {
	struct pin *cell;
	uint32_t cells; /* a power of two, or 0 */
	uint32_t n;
	uint32_t hard;  /* of n */
	uint32_t timed; /* of n: those that end by themselves */
	uint32_t looked; /* the cell where the ticker goes on */
};

enum skv_pin_kind pin_kind(const struct block *b);
/* A slot of a pinned block was released: with the last one that was committed the pin goes. */
void pin_of_slot_gone(struct block *b);
struct pin pin_get(const struct block *b); /* kind SKV_PIN_NONE: it has none */
/* Room for n more. SKV_E_NOMEM changes nothing. */
int pins_reserve(struct pins *pins, uint32_t n);
/* Room is reserved. */
void pin_set(struct partition *p, struct block *b, struct pin to);
/* Has it anything to be pinned, or had, if its removal is undone? */
bool pin_keeps_bytes(const struct instance *inst, const struct block *b);
/* Bytes of blocks that are pinned hard, or (`hard` false) soft. */
uint64_t pinned_bytes(const struct instance *inst, bool hard);
void pins_destroy(struct instance *inst);

#endif
