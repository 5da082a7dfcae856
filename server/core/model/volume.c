/*
 * volume.c - slots of a storage: classes, release, locations.
 *
 * Connects blocks and the allocator (skv/pool.h). Under the partition's lock, for writing where
 * something changes. Slab files are created by the device's thread (device.c), never here.
 */
#include <model/volume.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/device.h>
#include <model/find.h>
#include <model/geometry.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/rows.h>
#include <model/table.h>
#include <model/tenant.h>

uint64_t stride_align(uint64_t stride, bool numbered)
{
	return geometry_of(stride, numbered, 0, 0).align;
}

struct geometry volume_geometry(const struct volume *sp, const struct skv_instance_spec *i,
				uint32_t spec)
{
	return geometry_of(i->specs[spec].size, i->numbered, sp->dev->chunk, sp->dev->unit);
}

bool volume_fits(const struct volume *sp, const struct skv_instance_spec *i, uint32_t spec)
{
	uint64_t file = sp->dev->file_size < sp->capacity ? sp->dev->file_size : sp->capacity;
	struct geometry g = volume_geometry(sp, i, spec);
	uint64_t other = 2 * sp->dev->edge + g.align;

	if (sp->dev->ops->counted)
		return i->specs[spec].size == 1;
	return file > other && (g.segment ? g.segment : g.stride) <= file - other;
}

struct group_volume *group_in(const struct group *g, uint32_t volume)
{
	if (g->n_in && g->in->volume == volume)
		return g->in; /* the only one of most groups */
	return row_find(g->in, sizeof *g->in, g->n_in, volume);
}

void used_add(struct partition *p, struct instance *inst, uint32_t volume, int64_t bytes)
{
	struct group_volume *in = group_in(inst->group, volume);

	inst->used_bytes += (uint64_t)bytes;
	inst->group->used_bytes += (uint64_t)bytes;
	p->volume[volume].used_bytes += (uint64_t)bytes;
	if (in)
		in->used_bytes += (uint64_t)bytes;
	tenant_used_add(inst->tenant, volume, bytes);
}

void removing_add(struct partition *p, struct instance *inst, uint32_t volume, int64_t bytes)
{
	struct group_volume *in = group_in(inst->group, volume);

	inst->removing_bytes += (uint64_t)bytes;
	inst->group->removing_bytes += (uint64_t)bytes;
	p->volume[volume].removing_bytes += (uint64_t)bytes;
	if (in)
		in->removing_bytes += (uint64_t)bytes;
	tenant_removing_add(inst->tenant, volume, bytes);
}

static int group_enters(const struct partition *p, struct group *g, uint32_t volume)
{
	void *v = g->in;
	int rc;

	ASSERT_EXCLUSIVE(p);
	if (g == &p->detached || group_in(g, volume))
		return SKV_OK;
	rc = skv_grow(&v, &g->cap_in, g->n_in + 1, sizeof *g->in);
	g->in = v;
	if (rc == SKV_OK)
		row_insert(g->in, sizeof *g->in, &g->n_in, volume);
	return rc;
}

/* The instance's classes in this volume, NULL: out of memory. */
static uint32_t *classes_in(struct partition *p, struct instance *inst, uint32_t volume)
{
	uint32_t *classes = instance_classes(inst, volume), size = 1 + inst->spec.n_specs;
	void *v = inst->classes;
	int rc;

	if (classes)
		return classes;
	rc = skv_grow(&v, &inst->cap_classes, (size_t)(inst->n_classes + 1) * size,
		      sizeof *inst->classes);
	inst->classes = v;
	if (rc != SKV_OK || group_enters(p, inst->group, volume) != SKV_OK ||
	    tenant_enters(inst->tenant, volume) != SKV_OK)
		return NULL;
	classes = (uint32_t *)row_insert(inst->classes, size * sizeof *classes, &inst->n_classes,
					 volume) +
		  1;
	memset(classes, 0xff, inst->spec.n_specs * sizeof *classes);
	return classes;
}

int volume_class(struct partition *p, struct instance *inst, uint32_t spec, uint32_t volume,
		 uint32_t *class_id)
{
	uint32_t *at = classes_in(p, inst, volume);

	ASSERT_EXCLUSIVE(p);
	if (!at)
		return SKV_E_NOMEM;
	at += spec;
	if (*at == UINT32_MAX) {
		struct volume *s = &p->volume[volume];
		void *v = s->class;
		struct geometry g = volume_geometry(s, &inst->spec, spec);
		uint32_t id;
		int rc = g.segment ? skv_pool_class_segmented(s->pool, g.stride, g.segment, &id)
				   : skv_pool_class(s->pool, g.stride, g.align, &id);

		if (rc == SKV_OK)
			rc = skv_grow(&v, &s->cap_class, id + 1, sizeof *s->class);
		if (rc != SKV_OK)
			return rc;
		s->class = v;
		for (; s->n_class <= id; s->n_class++)
			s->class[s->n_class] = (struct volume_class){ 0 };
		s->class[id].stride = g.stride;
		*at = id;
	}
	*class_id = *at;
	return SKV_OK;
}

uint64_t slots_free_by(const struct volume *s, uint64_t now)
{
	uint64_t quiet;

	if (!s->dev->ops->forgetful)
		return now;
	quiet = atomic_load_explicit(&s->dev->quiet, memory_order_relaxed);
	return quiet < now ? quiet : now;
}

bool place_slab(const struct partition *p, uint32_t volume, struct skv_slab_place at,
		uint32_t *slab)
{
	const struct skv_pool *pool = p->volume[volume].pool;
	struct skv_slab_info info;
	uint32_t unit = at.unit;

	return pool && skv_pool_next_slab(pool, at.file, &unit, slab) &&
	       skv_pool_slab(pool, *slab, &info) && info.place.unit == at.unit &&
	       info.place.units == at.units;
}

struct block *slot_block(const struct partition *p, uint32_t volume, uint32_t slab, uint64_t index)
{
	const struct skv_pool *pool = p->volume[volume].pool;

	if (index >= SKV_SLAB_SLOTS || !skv_pool_is_used(pool, slab, (uint32_t)index) ||
	    skv_pool_owner(pool, slab, (uint32_t)index) == NO_BLOCK)
		return NULL;
	return block_get(p, skv_pool_owner(pool, slab, (uint32_t)index));
}

void slot_release(struct partition *p, struct block *b, uint32_t spec, uint64_t hold_until)
{
	struct instance *inst = block_instance(b);
	struct slot *s = &b->slot[spec];
	struct skv_run run = { s->slab, s->index, 1 };
	struct skv_pool *pool = p->volume[s->volume].pool;
	uint64_t size = inst->spec.specs[spec].size;

	ASSERT_EXCLUSIVE(p);
	assert(!s->queued);
	block_touch(p, b);
	if (hold_until && hold_until > slots_free_by(&p->volume[s->volume],
						     skv_now_ms(p->core->clock)))
		skv_pool_hold(pool, run, hold_until);
	else
		skv_pool_free(pool, run);
	used_add(p, inst, s->volume, -(int64_t)size);
	slot_set_state(s, SLOT_ABSENT);
	*s = (struct slot){ .tag = s->tag };
	if (b->pinned)
		pin_of_slot_gone(b);
}

int volume_of_offsets(const struct partition *p, const struct instance *inst)
{
	int at = inst->spec.n_specs == 1 && inst->group->spec.n_storages == 1
			 ? volume_find(p, inst->group->spec.storages[0])
			 : -1;

	ASSERT_SHARED(p);
	return at >= 0 && p->volume[at].dev->ops->counted ? at : -1;
}

static int file_table_grow(struct file_table *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 8;
	struct skv_file_ref *v = skv_arena_alloc(t->arena, cap * sizeof *v);
	uint64_t *seen = skv_arena_alloc(t->arena, cap * sizeof *seen);

	if (!v || !seen)
		return SKV_E_NOMEM;
	if (t->files->n) {
		memcpy(v, t->files->v, t->files->n * sizeof *v);
		memcpy(seen, t->seen, t->files->n * sizeof *seen);
	}
	t->files->v = v;
	t->seen = seen;
	t->cap = cap;
	return SKV_OK;
}

static const char *client_root(const struct device *d, struct skv_arena *a)
{
	const char *root = *d->client_root ? d->client_root : d->root;

	return skv_arena_strndup(a, root, strlen(root));
}

/* Adds the file of t->slab's slab. */
static int add_file(struct file_table *t, const struct partition *p)
{
	const struct volume *volume = &p->volume[t->volume];
	uint64_t mark = (uint64_t)t->volume << 32 | t->slab.place.file;
	struct skv_file_ref *ref;

	for (t->file = t->files->n; t->file-- > 0;)
		if (t->seen[t->file] == mark)
			return SKV_OK;
	if (t->files->n == t->cap && file_table_grow(t) != SKV_OK)
		return SKV_E_NOMEM;
	t->seen[t->files->n] = mark;
	ref = &t->files->v[t->files->n];
	ref->storage = skv_arena_strndup(t->arena, volume->dev->name, strlen(volume->dev->name));
	ref->type = volume->dev->ops->type;
	ref->client_root = client_root(volume->dev, t->arena);
	if (!ref->storage || !ref->client_root)
		return SKV_E_NOMEM;
	skv_uuid_to_text(volume->dev->uuid, ref->uuid);
	if (volume->dev->ops->counted)
		ref->path[0] = '\0';
	else
		skv_slab_path(t->slab.place.file, ref->path);
	t->file = t->files->n++;
	return SKV_OK;
}

static int look_at_slab(struct file_table *t, const struct partition *p, const struct slot *s)
{
	bool known = skv_pool_slab(p->volume[s->volume].pool, s->slab, &t->slab);

	assert(known);
	(void)known;
	t->volume = s->volume;
	t->handle = s->slab;
	t->any = add_file(t, p) == SKV_OK;
	return t->any ? SKV_OK : SKV_E_NOMEM;
}

int location_of_slot(struct file_table *t, const struct partition *p, const struct slot *s,
		     uint64_t length, struct skv_location *out)
{
	if ((!t->any || t->volume != s->volume || t->handle != s->slab) &&
	    look_at_slab(t, p, s) != SKV_OK)
		return SKV_E_NOMEM;
	*out = (struct skv_location){
		.file = t->file,
		.offset = skv_slot_offset(&t->slab, s->index),
		.length = length,
		.generation = s->generation,
		.checksum = s->has_checksum ? s->checksum : 0,
		.has_checksum = s->has_checksum,
	};
	return SKV_OK;
}

int location_fill(struct file_table *t, const struct partition *p, const struct instance *inst,
		  const struct block *b, uint32_t spec, struct skv_location *out)
{
	return location_of_slot(t, p, &b->slot[spec], inst->spec.specs[spec].size, out);
}

void commit_slot(struct partition *p, struct block *b, uint32_t spec, const uint64_t *sum)
{
	struct slot *s = &b->slot[spec];

	ASSERT_EXCLUSIVE(p);
	block_touch(p, b);
	slot_set_state(s, SLOT_COMMITTED);
	s->has_checksum = sum != NULL;
	s->checksum = sum ? *sum : 0;
}
