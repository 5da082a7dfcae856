/*
 * model.h - the trivial model of a pool that test_model.c drives: items, and whose each byte is.
 */
#ifndef SKV_TESTS_ALLOCATOR_MODEL_H
#define SKV_TESTS_ALLOCATOR_MODEL_H

#include "pooltest.h"

#define MAX_FILES 4
#define MAX_CLASSES 4

struct geometry {
	const char *name;
	uint64_t unit;
	uint64_t header;
	uint64_t trailer;
	uint64_t lengths[MAX_FILES]; /* 0 = none */
	uint64_t grown[MAX_FILES];   /* length that each file gets half-way, 0 = unchanged */
	uint64_t strides[MAX_CLASSES];
	uint64_t aligns[MAX_CLASSES];
	uint64_t segments[MAX_CLASSES]; /* 0 = the class has none */
};

enum state { GONE, USED, HELD };

struct item {
	enum state state;
	uint32_t class;
	uint32_t file;
	uint64_t offset;
	uint32_t slab;
	uint32_t slot;
	uint64_t until;
};

struct model {
	const struct geometry *g;
	struct skv_pool *p;
	uint32_t n_classes;
	uint32_t ids[MAX_CLASSES];
	uint64_t lengths[MAX_FILES];
	uint32_t *bytes[MAX_FILES]; /* item + 1 of each byte */
	bool *frozen[MAX_FILES];    /* of each unit */
	uint64_t frozen_until;
	struct item *items;
	uint32_t n_items;
	size_t cap_items;
	uint64_t now;
	uint64_t random;
};

#define DEAD UINT32_MAX /* as the owner of bytes */

uint32_t model_class(const struct model *m, struct skv_pool *p, uint32_t class);
/* Rebuilds the pool with skv_pool_take from what durable records would hold, and compares. */
void model_rebuild(const struct model *m);

#endif
