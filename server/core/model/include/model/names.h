/* names.h - names of blocks in `named` instances: an API's own text for each, for exports. */
#ifndef SKV_CORE_MODEL_NAMES_H
#define SKV_CORE_MODEL_NAMES_H

#include <stdint.h>

#include <skv/ops.h>

struct block;
struct chunk;
struct name;

/* Makes the table of names of a chunk with this capacity. */
int names_make(uint32_t capacity, struct name ***out);
void names_drop(struct chunk *c);
/* Replaces the block's name; no effect in instances that are not `named`. SKV_E_NOMEM: the block
 * has no name. */
int block_set_name(struct block *b, struct skv_bytes name);
void block_drop_name(struct block *b);
struct skv_bytes block_name(const struct block *b);

#endif
