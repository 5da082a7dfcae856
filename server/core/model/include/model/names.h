/*
 * names.h - names that blocks of `named` instances keep: whatever an API calls them, for exports.
 */
#ifndef SKV_CORE_MODEL_NAMES_H
#define SKV_CORE_MODEL_NAMES_H

#include <stdint.h>

#include <skv/ops.h>

struct block;
struct chunk;
struct name;

/* For a chunk of so many capacity. */
int names_make(uint32_t capacity, struct name ***out);
void names_drop(struct chunk *c);
/* In place of the one that it has; nothing in an instance that is not `named`. SKV_E_NOMEM: it has none. */
int block_set_name(struct block *b, struct skv_bytes name);
void block_drop_name(struct block *b);
struct skv_bytes block_name(const struct block *b);

#endif
