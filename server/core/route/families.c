/*
 * families.c - finds the partition here that has the instances of a family.
 *
 * A family is whole in one partition (places.c), so a partition that has one of its instances has
 * all of them. A search asks each partition here; its result stays valid as long as no instance is
 * made or deleted there. State: route->family, under route->lock.
 */
#include "route.h"

#include <assert.h>
#include <string.h>

#include <lock/gate.h>
#include <lock/lock.h>
#include <model/objects.h>
#include <model/partition.h>

/* Each load of a partition begins to count anew: how often it was given up comes first. */
static uint64_t turn_of_one(struct skv_core *one)
{
	uint64_t turn = owner_given_up(one) << 32;

	skv_rwlock_read(&one->lock);
	if (one->partition)
		turn += one->partition->inst_turn;
	skv_rwlock_read_unlock(&one->lock);
	return turn;
}

static bool has_instance_of(struct skv_core *one, skv_family_fn *family_of, const char *family)
{
	char name[SKV_MAX_NAME + 1];
	bool has = false;

	skv_rwlock_read(&one->lock);
	for (size_t i = 0; one->partition && !has && i < one->partition->n_inst; i++) {
		const struct instance *inst = one->partition->inst[i];

		has = !inst->deleting && family_of(inst->spec.tenant, inst->spec.id, name) &&
		      strcmp(name, family) == 0;
	}
	skv_rwlock_read_unlock(&one->lock);
	return has;
}

/* Returns true if no instance has been made or deleted since, in the partition where it was found,
 * or anywhere. */
static bool is_new(struct route *r, const struct route_family *f)
{
	uint64_t turn = 0;

	for (uint32_t i = 0; i < r->n; i++)
		if (f->at == i || f->at == r->n)
			turn += turn_of_one(r->core[i]);
	return turn == f->turn;
}

static struct route_family look_for(struct route *r, struct skv_key name, const char *family)
{
	struct route_family f = { .name = name };
	uint64_t all = 0;

	for (; f.at < r->n; f.at++) {
		f.turn = turn_of_one(r->core[f.at]);
		if (has_instance_of(r->core[f.at], r->family_of, family))
			return f;
		all += f.turn;
	}
	f.turn = all;
	return f;
}

struct skv_cluster *family_here(struct route *r, const char *family)
{
	const struct skv_key name = skv_hash128(family, strlen(family));
	struct route_family *kept = &r->family[name.lo % ROUTE_FAMILIES], f;

	if (!r->family_of)
		return NULL;
	skv_mutex_lock(&r->lock);
	f = *kept;
	skv_mutex_unlock(&r->lock);
	if (!skv_key_equal(f.name, name) || !is_new(r, &f)) {
		f = look_for(r, name, family);
		skv_mutex_lock(&r->lock);
		*kept = f;
		skv_mutex_unlock(&r->lock);
	}
	assert(f.at <= r->n);
	return f.at < r->n ? &r->part[f.at] : NULL;
}

uint64_t skv_cluster_partition_turn(struct skv_cluster *c, uint32_t number)
{
	return turn_of_one(route_core(c, number));
}
