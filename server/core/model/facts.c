/*
 * facts.c - inputs of policies about blocks: facts, births, and blocks older than the policy's
 * state.
 *
 * Under the write lock, except for hashes and facts, which are only read.
 */
#include <model/queue.h>

#include <model/block.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>

uint64_t evict_hash(const struct instance *inst, struct skv_key key)
{
	return skv_policy_hash(inst->hash, key);
}

static struct skv_policy_block facts_without_hash(const struct instance *inst,
						  const struct block *b)
{
	uint64_t mark = atomic_load_explicit(&b->mark, memory_order_relaxed);

	return (struct skv_policy_block){
		.use = mark_use(mark),
		.born = block_generation(inst, b),
		.freq = mark_freq(mark),
		.tag = b->slot[0].tag,
	};
}

struct skv_policy_block evict_facts(const struct instance *inst, const struct block *b)
{
	struct skv_policy_block facts = facts_without_hash(inst, b);

	facts.hash = evict_hash(inst, b->key);
	return facts;
}

void evict_keep(struct block *b, const struct skv_policy_block *facts)
{
	uint64_t mark = atomic_load_explicit(&b->mark, memory_order_relaxed);

	b->slot[0].tag = facts->tag;
	if (mark_freq(mark) != facts->freq)
		atomic_store_explicit(&b->mark, mark_with_freq(mark, facts->freq),
				      memory_order_relaxed);
}

void evict_expect(const struct block *b)
{
	const struct instance *inst = block_instance(b);
	const struct group *g = inst->group;

	if (g->policy->prefetch && !inst->retired)
		g->policy->prefetch(g->policy_state, evict_hash(inst, b->key));
}

void evict_born(struct partition *p, struct block *b, bool last)
{
	struct instance *inst = block_instance(b);
	const struct group *g = inst->group;
	struct skv_policy_block facts;

	blocks_count(p, inst, 1);
	if (inst->retired)
		return;
	facts = evict_facts(inst, b);
	/* An entry kept for its children still has those of an earlier life. */
	facts.freq = facts.tag = 0;
	if (p->loading && !p->learning)
		facts.tag = g->policy->tag_born ? g->policy->tag_born(last) : 0;
	else if (g->policy->born)
		g->policy->born(g->policy_state, &facts, last);
	evict_keep(b, &facts);
}

void evict_followed(const struct partition *p, struct block *b)
{
	const struct instance *inst = block_instance(b);
	const struct group *g = inst->group;
	struct skv_policy_block facts;
	struct skv_policy_place at;

	if (!p->learning || inst->retired || !g->policy->evicted)
		return;
	facts = evict_facts(inst, b);
	at = g->policy->place(g->policy_state, &facts);
	g->policy->look(g->policy_state, &facts, at); /* counts its uses */
	at = g->policy->place(g->policy_state, &facts);
	g->policy->evicted(g->policy_state, &facts, at);
}

void evict_adopt(struct block *b, bool own)
{
	const struct instance *inst = block_instance(b);
	const struct group *g = inst->group;
	struct skv_policy_block facts;

	if (!g->policy->adopt)
		return;
	facts = facts_without_hash(inst, b);
	g->policy->adopt(g->policy_state, &facts, own);
	evict_keep(b, &facts);
}
