/*
 * pool.c - creates and destroys a pool; its files and classes.
 *
 * Owns the class table. The caller serialises calls. Does no I/O: a file is only a length here.
 */
#include "internal.h"

#include <skv/mem.h>

#include <assert.h>

#define UNITS 1024u /* of a storage by default */

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;

		a = b;
		b = r;
	}
	return a;
}

struct skv_pool *skv_pool_create(const struct skv_pool_options *options)
{
	const struct skv_pool_options *o = options;
	struct skv_pool *p;

	if (o->unit == 0 || (o->unit & (o->unit - 1)) != 0)
		return NULL;
	if (o->unit > MAX_BYTES || o->header > MAX_BYTES || o->trailer > MAX_BYTES)
		return NULL;
	p = skv_calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->options = *o;
	p->spare_hold = NO_HOLD;
	p->last_hold = NO_HOLD;
	return p;
}

void skv_pool_destroy(struct skv_pool *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_slabs; i++)
		skv_free(p->slabs[i]);
	for (size_t i = 0; i < p->n_classes; i++)
		skv_free(p->classes[i]);
	skv_files_destroy(p);
	skv_free(p->slabs);
	skv_free(p->spare);
	skv_free(p->classes);
	skv_free(p->holds);
	skv_free(p->heap);
	skv_free(p);
}

int skv_pool_add_file(struct skv_pool *p, uint32_t file, uint64_t length)
{
	uint64_t units = length / p->options.unit + (length % p->options.unit != 0);

	if (length > MAX_BYTES || length <= p->options.header + p->options.trailer)
		return SKV_E_INVALID;
	if (units >= NO_SLAB)
		return SKV_E_INVALID;
	return skv_file_add(p, file, length);
}

/*
 * Sets the slab lengths of a class: the smallest window with a slot, and the smallest of which at
 * most 1 % is no slot, wherever in the file it lies. A slab begins at a multiple of its length L,
 * so the way to the next multiple of `align` is a multiple of gcd(align, L): at worst align - gcd.
 * Header and trailer are the file's cost, not the length's, and do not count here. When even 2^31
 * units do not suffice, the longest that can be computed stands; files cap it anyway.
 */
static void set_lengths(const struct skv_pool *p, struct pool_class *c)
{
	for (;; c->most++) {
		uint64_t len = p->options.unit << c->most;
		uint64_t head = c->align - gcd(c->align, len);
		uint64_t slots = head < len ? (len - head) / c->stride : 0;

		if (len - slots * c->stride <= len / 100 || c->most == ORDERS - 1 ||
		    len > MAX_BYTES / 2)
			break;
		if (slots == 0)
			c->least = c->most + 1;
	}
	c->order = c->least;
}

static int find_or_make(struct skv_pool *p, const struct pool_class *want, uint32_t *class_id)
{
	struct pool_class *c;

	for (size_t i = 0; i < p->n_classes; i++) {
		c = p->classes[i];
		if (c->stride == want->stride && c->align == want->align &&
		    c->per_segment == want->per_segment) {
			*class_id = (uint32_t)i;
			return SKV_OK;
		}
	}
	assert(want->most < ORDERS && want->stride <= MAX_BYTES);
	if ((p->options.unit << want->most) / want->stride > MAX_SLAB_SLOTS)
		return SKV_E_INVALID;
	if (skv_grow((void **)&p->classes, &p->cap_classes, p->n_classes + 1, sizeof *p->classes))
		return SKV_E_NOMEM;
	c = skv_malloc(sizeof *c);
	if (!c)
		return SKV_E_NOMEM;
	*c = *want;
	c->id = (uint32_t)p->n_classes;
	c->unit_slots = skv_units_slots(p, c);
	p->classes[p->n_classes++] = c;
	*class_id = c->id;
	return SKV_OK;
}

int skv_pool_class(struct skv_pool *p, uint64_t stride, uint64_t align, uint32_t *class_id)
{
	struct pool_class want = { .stride = stride, .align = align };

	if (stride == 0 || align == 0 || stride > MAX_BYTES || stride % align != 0)
		return SKV_E_INVALID;
	set_lengths(p, &want);
	return find_or_make(p, &want, class_id);
}

int skv_pool_class_segmented(struct skv_pool *p, uint64_t stride, uint64_t segment,
			     uint32_t *class_id)
{
	struct pool_class want = { .stride = stride, .align = segment };

	if (stride == 0 || segment < stride || (segment & (segment - 1)) != 0 ||
	    segment > p->options.unit || segment / stride > MAX_SLAB_SLOTS)
		return SKV_E_INVALID;
	want.per_segment = (uint32_t)(segment / stride);
	return find_or_make(p, &want, class_id);
}

struct skv_slab_lengths skv_pool_slab_lengths(const struct skv_pool *p, uint64_t stride,
					      uint64_t align, uint64_t segment)
{
	struct pool_class c = { .stride = stride, .align = align };

	assert(stride > 0 && align > 0);
	if (!segment)
		set_lengths(p, &c);
	return (struct skv_slab_lengths){ p->options.unit << c.least, p->options.unit << c.most };
}

uint64_t skv_pool_default_unit(uint64_t capacity)
{
	uint64_t unit = SKV_UNIT_MAX;

	while (unit > SKV_UNIT_MIN && unit > capacity / UNITS)
		unit /= 2;
	return unit;
}

uint64_t skv_pool_slab_bytes(const struct skv_pool *p, uint32_t class_id)
{
	assert(class_id < p->n_classes);
	return p->options.unit << p->classes[class_id]->order;
}

uint64_t skv_pool_class_bytes(const struct skv_pool *p, uint32_t class_id)
{
	assert(class_id < p->n_classes);
	return p->classes[class_id]->units * p->options.unit;
}

uint64_t skv_pool_slots_in_file(const struct skv_pool *p, uint32_t class_id, uint64_t length)
{
	uint64_t units = length / p->options.unit + (length % p->options.unit != 0);
	uint64_t slots = 0;
	uint32_t first = 0;

	assert(class_id < p->n_classes);
	if (length > MAX_BYTES || units >= NO_SLAB ||
	    length <= p->options.header + p->options.trailer)
		return 0;
	/* The file's maximal aligned blocks, from the longest: the binary digits of its units. */
	for (uint32_t order = ORDERS; order-- > 0;) {
		if (units >> order & 1) {
			slots += skv_block_slots(p, p->classes[class_id], length, first, order);
			first += UINT32_C(1) << order;
		}
	}
	assert(first == units);
	return slots;
}

uint64_t skv_pool_available(const struct skv_pool *p, uint32_t class_id)
{
	assert(class_id < p->n_classes);
	return p->classes[class_id]->free + p->classes[class_id]->unit_slots;
}
