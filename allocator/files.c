/*
 * files.c - files of a pool as a whole: drained, removed, looked at. Adding them is the units' matter (units.c).
 *
 * The caller serialises calls.
 */
#include "internal.h"

int kvb_pool_drain_file(struct kvb_pool *p, uint32_t file, bool on)
{
	struct pool_file *f = kvb_file_find(p, file);
	struct slab *s;

	if (!f)
		return KVB_E_NOT_FOUND;
	if (f->draining == on)
		return KVB_OK;
	for (uint32_t unit = 0; (s = kvb_file_next_slab(p, f, f->n_units, &unit)) != NULL;)
		kvb_slab_unlist(s);
	kvb_file_park(p, f, on);
	for (uint32_t unit = 0; (s = kvb_file_next_slab(p, f, f->n_units, &unit)) != NULL;)
		kvb_slab_list(s);
	return KVB_OK;
}

int kvb_pool_remove_file(struct kvb_pool *p, uint32_t file)
{
	struct pool_file *f = kvb_file_find(p, file);

	if (!f)
		return KVB_E_NOT_FOUND;
	for (uint32_t i = 0; i < f->n_units; i++)
		if (f->units[i].slab != NO_SLAB || f->units[i].frozen)
			return KVB_E_IN_USE;
	kvb_file_forget(p, f);
	return KVB_OK;
}

bool kvb_pool_file(const struct kvb_pool *p, uint32_t file, struct kvb_file_info *out)
{
	struct pool_file *f = kvb_file_find(p, file);
	const struct slab *s;

	if (!f)
		return false;
	*out = (struct kvb_file_info){ .file = file, .draining = f->draining, .length = f->length };
	for (uint32_t unit = 0; (s = kvb_file_next_slab(p, f, f->n_units, &unit)) != NULL;) {
		out->assigned_bytes += kvb_window_bytes(p, s->at);
		out->used_bytes += s->used * s->class->stride;
		out->held_bytes += s->held * s->class->stride;
	}
	for (uint32_t i = 0; i < f->n_units; i++)
		if (f->units[i].frozen)
			out->frozen_bytes += kvb_window_bytes(p, (struct window){ f, i, 1 });
	return true;
}

bool kvb_pool_next_file(const struct kvb_pool *p, uint32_t from, uint32_t *file)
{
	size_t i = kvb_file_position(p, from);

	if (i == p->n_files)
		return false;
	*file = p->files[i]->id;
	return true;
}

bool kvb_pool_next_slab(const struct kvb_pool *p, uint32_t file, uint32_t *unit, uint32_t *slab)
{
	const struct pool_file *f = kvb_file_find(p, file);
	const struct slab *s = f ? kvb_file_next_slab(p, f, f->n_units, unit) : NULL;

	if (s)
		*slab = s->handle;
	return s != NULL;
}
