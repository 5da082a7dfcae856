/*
 * files.c - files of a pool: drain, remove, inspect. units.c adds them.
 *
 * The caller serialises calls.
 */
#include "internal.h"

int skv_pool_drain_file(struct skv_pool *p, uint32_t file, bool on)
{
	struct pool_file *f = skv_file_find(p, file);
	struct slab *s;

	if (!f)
		return SKV_E_NOT_FOUND;
	if (f->draining == on)
		return SKV_OK;
	for (uint32_t unit = 0; (s = skv_file_next_slab(p, f, f->n_units, &unit)) != NULL;)
		skv_slab_unlist(s);
	skv_file_park(p, f, on);
	for (uint32_t unit = 0; (s = skv_file_next_slab(p, f, f->n_units, &unit)) != NULL;)
		skv_slab_list(s);
	return SKV_OK;
}

int skv_pool_remove_file(struct skv_pool *p, uint32_t file)
{
	struct pool_file *f = skv_file_find(p, file);

	if (!f)
		return SKV_E_NOT_FOUND;
	if (f->n_slabs || f->n_frozen)
		return SKV_E_IN_USE;
	skv_file_forget(p, f);
	return SKV_OK;
}

bool skv_pool_file(const struct skv_pool *p, uint32_t file, struct skv_file_info *out)
{
	struct pool_file *f = skv_file_find(p, file);
	const struct slab *s;

	if (!f)
		return false;
	*out = (struct skv_file_info){ .file = file, .draining = f->draining, .length = f->length };
	for (uint32_t unit = 0; (s = skv_file_next_slab(p, f, f->n_units, &unit)) != NULL;) {
		out->assigned_bytes += skv_window_bytes(p, s->at);
		out->used_bytes += s->used * s->class->stride;
		out->held_bytes += s->held * s->class->stride;
	}
	for (uint32_t i = 0; i < f->n_units; i++)
		if (f->units[i].frozen)
			out->frozen_bytes += skv_window_bytes(p, (struct window){ f, i, 1 });
	return true;
}

bool skv_pool_file_is_empty(const struct skv_pool *p, uint32_t file)
{
	const struct pool_file *f = skv_file_find(p, file);

	return !f || (f->n_slabs == 0 && f->n_frozen == 0);
}

uint64_t skv_pool_file_used(const struct skv_pool *p, uint32_t file)
{
	const struct pool_file *f = skv_file_find(p, file);

	return f ? f->used_bytes : 0;
}

bool skv_pool_next_slab(const struct skv_pool *p, uint32_t file, uint32_t *unit, uint32_t *slab)
{
	const struct pool_file *f = skv_file_find(p, file);
	const struct slab *s = f ? skv_file_next_slab(p, f, f->n_units, unit) : NULL;

	if (s)
		*slab = s->handle;
	return s != NULL;
}
