/* pin.h - pins: blocks protected from eviction. */
#ifndef SKV_CORE_MODEL_PIN_H
#define SKV_CORE_MODEL_PIN_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/ops.h>

struct block;
struct instance;
struct partition;

/* A pinned block (pin.c). */
struct pin {
	uint32_t block; /* id; NO_BLOCK = the cell is empty */
	uint32_t kind;  /* enum skv_pin_kind */
	uint64_t until; /* boot time ms; 0 = until unpinned */
};

/* By block id, open addressing. */
struct pins {
	struct pin *cell;
	uint32_t cells; /* a power of two, or 0 */
	uint32_t n;
	uint32_t hard;  /* of n */
	uint32_t timed; /* of n: those that expire */
	uint32_t looked; /* the cell where the ticker continues */
};

enum skv_pin_kind pin_kind(const struct block *b);
/* A slot of a pinned block was released; the pin goes with the last committed one. */
void pin_of_slot_gone(struct block *b);
struct pin pin_get(const struct block *b); /* kind SKV_PIN_NONE: not pinned */
/* Makes room for n more. SKV_E_NOMEM changes nothing. */
int pins_reserve(struct pins *pins, uint32_t n);
/* Room must be reserved. */
void pin_set(struct partition *p, struct block *b, struct pin to);
/* Returns true if the block has committed bytes, or would have if its removal were undone. */
bool pin_keeps_bytes(const struct instance *inst, const struct block *b);
/* Bytes of blocks pinned hard or (`hard` false) soft. */
uint64_t pinned_bytes(const struct instance *inst, bool hard);
/* So many more of its blocks count as pinned of its tenant: none of a retired instance do. */
void pins_count(struct instance *inst, int64_t by);
void pins_destroy(struct instance *inst);

#endif
