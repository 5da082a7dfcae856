/* partition.c - a partition without anything in it, and its end. */
#include <model/partition.h>

#include <skv/hash.h>
#include <skv/mem.h>

#include <lock/core.h>
#include <model/leases.h>
#include <model/objects.h>
#include <model/session.h>
#include <model/wish.h>

struct partition *partition_make(struct skv_core *c)
{
	struct partition *p = skv_calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->wishes = wishes_make();
	if (!p->wishes) {
		skv_free(p);
		return NULL;
	}
	p->core = c;
	p->n_chunk = 1; /* so that id 0 means none */
	p->roomy = true;
	p->next_generation = 1;
	p->lease_shift = lease_shift(c->o.lease_max_ms);
	p->detached.policy = skv_policy_find("lru"); /* which has no state */
	p->detached.n_queues = p->detached.policy->n_queues;
	skv_heaps_init(&p->deadlines, 1, session_due_place, p);
	skv_random(&p->mix_seed, sizeof p->mix_seed);
	return p;
}
