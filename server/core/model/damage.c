/* damage.c - the table of slots whose bytes are damaged, or were reported to be; see damage.h. */
#include <model/damage.h>

#include <string.h>

#include <skv/mem.h>
#include <skv/status.h>

#include <lock/core.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/sorted.h>

static uint64_t generation_of(const void *damage)
{
	return ((const struct damage *)damage)->generation;
}

static size_t place_of(const struct damages *t, uint64_t generation)
{
	return sorted_place(t->v, t->n, sizeof *t->v, generation, generation_of);
}

struct damage *damage_find(const struct partition *p, uint64_t generation)
{
	const size_t at = place_of(&p->damage, generation);

	return at < p->damage.n && p->damage.v[at].generation == generation ? &p->damage.v[at]
									    : NULL;
}

int damage_add(struct partition *p, const struct block *b, uint32_t spec, bool hidden)
{
	struct damages *t = &p->damage;
	const uint64_t generation = b->slot[spec].generation;
	struct damage *d = damage_find(p, generation);
	const size_t at = place_of(t, generation);
	void *v = t->v;
	int rc;

	ASSERT_EXCLUSIVE(p);
	assert(b->slot[spec].state == SLOT_COMMITTED && b->slot[spec].has_checksum);
	if (d) {
		t->n_hidden += hidden && !d->hidden;
		d->hidden |= hidden;
		return SKV_OK;
	}
	if (t->n == MAX_DAMAGE)
		return SKV_E_TOO_MANY;
	rc = skv_grow(&v, &t->cap, t->n + 1, sizeof *t->v);
	t->v = v;
	if (rc != SKV_OK)
		return rc;
	memmove(t->v + at + 1, t->v + at, (t->n - at) * sizeof *t->v);
	t->v[at] = (struct damage){ .generation = generation, .key = b->key,
				    .instance = block_instance(b)->id, .spec = spec,
				    .hidden = hidden };
	t->n++;
	t->n_hidden += hidden;
	return SKV_OK;
}

void damage_remove(struct partition *p, uint64_t generation)
{
	struct damages *t = &p->damage;
	struct damage *d = t->n ? damage_find(p, generation) : NULL;

	ASSERT_EXCLUSIVE(p);
	if (!d)
		return;
	assert(t->n_hidden >= d->hidden);
	t->n_hidden -= d->hidden;
	t->n--;
	memmove(d, d + 1, (size_t)(t->v + t->n - d) * sizeof *d);
}

void damage_ask(struct partition *p, size_t at, uint64_t until)
{
	ASSERT_EXCLUSIVE(p);
	assert(at < p->damage.n && !p->damage.v[at].hidden);
	p->damage.v[at].asked_until = until;
}

void damages_free(struct partition *p)
{
	skv_free(p->damage.v);
	p->damage = (struct damages){ 0 };
}

struct block *damage_block(const struct partition *p, const struct damage *d)
{
	const struct instance *inst = instance_by_id(p, d->instance);
	struct block *b = inst ? index_find(p, inst, d->key) : NULL;

	ASSERT_SHARED(p);
	return b && d->spec < inst->spec.n_specs && b->slot[d->spec].state == SLOT_COMMITTED &&
			       b->slot[d->spec].generation == d->generation
		       ? b
		       : NULL;
}
