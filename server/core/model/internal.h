/*
 * internal.h - what the files of the core share: the state of a partition and who may touch it.
 *
 * core->lock (reader-writer) protects core->part and everything reachable from it. Lookups hold it
 * for reading and write only the atomic marks of a block; everything else holds it for writing. It
 * is never held across I/O: durable effects go through the committer (commit.c), files through the
 * devices' threads (device.c), checkpoints are copied out under it in small pieces (checkpoint.c).
 *
 * Lock order: core->lock, then commit.lock. admin_turn is taken before either, never inside.
 *
 * A change of state has two halves. The *early* half happens under the lock when the request is
 * accepted and its journal record is queued (slots taken, blocks marked); the *late* half when the
 * record is durable (blocks visible, slots free). If the append fails, the early half is undone,
 * newest first. So nothing is visible, answered or reused before it is durable.
 */
#ifndef SKV_CORE_INTERNAL_H
#define SKV_CORE_INTERNAL_H

#include "state.h"
#include "change.h"
#include "geometry.h"

/* ---- lock.c ----------------------------------------------------------------------------------------- */

void core_lock(struct skv_core *c);
/* Releases the write lock, then calls what became complete under it. */
void core_unlock(struct skv_core *c);
/* Under the write lock: w->done is called with the status after the unlock. */
void core_complete(struct skv_core *c, struct completion *w, int status);

/* Who may change the part, and who may look into it. Before the core has it, and when it has it no longer, it is the
 * thread's that loads it or takes it down. What is called for each block and slot of a call leaves it to its callers. */
#define ASSERT_EXCLUSIVE(p) assert((p)->core->part != (p) || skv_rwlock_write_held(&(p)->core->lock))
#define ASSERT_SHARED(p) assert((p)->core->part != (p) || skv_rwlock_held(&(p)->core->lock))

/* What one tick looks at, of objects that may be very many: places from..to-1. */
struct portion {
	size_t from, to;
};

/* ---- gate.c ----------------------------------------------------------------------------------------- */

/* Common gate of all block calls: state and ownership. */
int core_gate(const struct skv_core *c, struct skv_error *err);
bool owner_valid(const struct skv_core *c);
/* The store says that this fence is not the newest. True: it was ours until now, so another manager has taken over. False:
 * it was of a part that this manager has given up itself. */
bool owner_lost(struct skv_core *c, uint64_t fence);
/* Has the partition loaded again: what is in memory is not the truth any more. */
void owner_ask_reload(struct skv_core *c);

/* ---- turn.c ----------------------------------------------------------------------------------------- */

/* Sleeps until ms have passed or somebody wakes all, or not at all if *wake (may be NULL). False = stop. */
bool core_wait(struct skv_core *c, uint32_t ms, const bool *wake);
/* The same within a call that waits for others: in manual mode it does what their threads would (core_events). */
bool core_pause(struct skv_core *c, uint32_t ms);
/* Administrators one by one. `try`: false if it is not free. */
void turn_take(struct skv_core *c);
bool turn_try(struct skv_core *c);
void turn_leave(struct skv_core *c);
/* Has the checkpointer write a checkpoint soon. */
void checkpoint_ask(struct skv_core *c);

/* ---- table.c: entries -------------------------------------------------------------------------- */

static inline struct chunk *block_chunk(const struct block *b)
{
	return (struct chunk *)((uintptr_t)b & ~(uintptr_t)(CHUNK_BYTES - 1));
}

static inline struct block *chunk_place(const struct chunk *c, uint32_t place)
{
	return (struct block *)((char *)c + CHUNK_HEAD + (size_t)c->stride * place);
}

static inline struct instance *block_instance(const struct block *b) { return block_chunk(b)->inst; }

static inline uint32_t block_id(const struct block *b)
{
	const struct chunk *c = block_chunk(b);

	return c->number << CHUNK_SHIFT | (uint32_t)((uintptr_t)b - (uintptr_t)c - CHUNK_HEAD) / c->stride;
}

/* Is any spec of the mask at `spec` or above? For loops over a mask: a mask of 32 cannot be shifted by 32. */
static inline bool specs_left(uint32_t mask, uint32_t spec) { return spec < SKV_MAX_SPECS && mask >> spec; }

static inline struct block *block_get(const struct partition *p, uint32_t id)
{
	const uint32_t no = id >> CHUNK_SHIFT;

	assert(no > 0 && no < p->n_chunk);
	return (struct block *)((char *)p->chunk[no] + CHUNK_HEAD + (size_t)p->chunk_stride[no] * (id & (CHUNK_PLACES - 1)));
}
/* A fresh, indexed entry without slots, or NULL (out of memory). Room in the eviction queues is
 * reserved, so that queueing it later cannot fail. */
struct block *block_make(struct partition *p, struct instance *inst, struct skv_key key);
/* Frees the entry, and upward its parents, where nothing needs them any more. */
void block_maybe_free(struct partition *p, struct block *b);
void block_set_parent(struct partition *p, struct block *b, struct block *parent);
/* After any change of slot states: keeps the parent's count of live children. */
void block_update_live(struct partition *p, struct block *b);
void snapshot_touch_chunk(struct partition *p, uint32_t chunk);
/* Before any change of an entry that a checkpoint stores: copies its chunk out if one is running. */
static inline void block_touch(struct partition *p, const struct block *b)
{
	if (p->snap.active)
		snapshot_touch_chunk(p, block_chunk(b)->number);
}
bool block_has_committed(const struct instance *inst, const struct block *b);
bool block_has_writing(const struct instance *inst, const struct block *b);
/* Calls fn for each entry in use. */
void block_each(const struct partition *p, const struct instance *only,
		void (*fn)(void *ctx, struct partition *p, struct block *b), void *ctx);
void table_drop(struct partition *p, struct instance *inst); /* all chunks of the instance are spare */
void table_drop_chunk(struct partition *p, struct instance *inst); /* its newest chunk is spare */
void table_destroy(struct partition *p);
/* End of its lease (boot time ms), 0 or in the past if none runs. */
uint64_t block_lease(const struct partition *p, const struct instance *inst, const struct block *b);
/* The same, but of what lookups gave to it alone: not what is reckoned with after a recovery. */
uint64_t block_own_lease(const struct partition *p, const struct block *b);
/* The least generation of its slots, 0 if it has none. */
uint64_t block_generation(const struct instance *inst, const struct block *b);

/* ---- names.c ---------------------------------------------------------------------------------------- */

/* For a chunk of so many places. */
int names_make(uint32_t places, struct name ***out);
void names_drop(struct chunk *c);
/* In place of the one that it has; nothing in an instance that is not `named`. SKV_E_NOMEM: it has none. */
int block_set_name(struct block *b, struct skv_bytes name);
void block_drop_name(struct block *b);
struct skv_bytes block_name(const struct block *b);

/* ---- era.c: when a block was made ------------------------------------------------------------------- */

/* Generations from `generation` on are given out from `wall_ms` on. Forgets detail when short of memory. */
void era_note(struct partition *p, uint64_t generation, uint64_t wall_ms);
/* What was loaded lies in the past; from here on pairs have the time that era_look tells. */
void era_begin(struct partition *p);
/* Looks at the wall clock, by which times are told from here on. Returns the time for a pair that is noted now. */
uint64_t era_look(struct partition *p);
/* Of pair i, by the wall clock. */
uint64_t era_told(const struct partition *p, size_t i);
/* The least generation that was given out later than this, as far as anybody knows. */
uint64_t era_after(const struct partition *p, uint64_t wall_ms);
/* About when this generation was given out; 0 if nobody knows. */
uint64_t era_of(const struct partition *p, uint64_t generation);
/* The same of many that are near each other: *at, 0 at first, is where the one before was found. */
uint64_t era_next(const struct partition *p, uint64_t generation, size_t *at);

/* ---- index.c ------------------------------------------------------------------------------------ */

struct block *index_find(const struct partition *p, const struct instance *inst, struct skv_key key);
/* For a batch: the hash once, then the cell into the cache, some keys later the entry, then the answer. */
uint64_t index_hash(const struct partition *p, struct skv_key key);
void index_prefetch(const struct instance *inst, uint64_t hash);
/* The first entry that the hash fits; NULL: there is none, and so none of the key. */
struct block *index_fetch_entry(const struct partition *p, const struct instance *inst, uint64_t hash);
struct block *index_find_hashed(const struct partition *p, const struct instance *inst, uint64_t hash, struct skv_key key);
int index_insert(struct partition *p, struct instance *inst, const struct block *b);
void index_remove(struct partition *p, struct instance *inst, const struct block *b);
void index_destroy(struct instance *inst);

/* ---- space.c: slots ------------------------------------------------------------------------------ */

int space_class(struct partition *p, struct instance *inst, uint32_t spec, uint32_t space, uint32_t *class_id);
/* All changes of a slot's state: asserts that this one is legal. Counts nothing. COMMITTED to ABSENT: what was cleared, and
 * replays, which see a removal only when it is durable. */
static inline void slot_set_state(struct slot *s, enum slot_state to)
{
#define CHANGE(from, to) (1u << ((from) * 4 + (to)))
	const uint32_t legal = CHANGE(SLOT_ABSENT, SLOT_WRITING) | CHANGE(SLOT_WRITING, SLOT_COMMITTED) |
			       CHANGE(SLOT_WRITING, SLOT_ABSENT) | CHANGE(SLOT_COMMITTED, SLOT_REMOVING) |
			       CHANGE(SLOT_COMMITTED, SLOT_ABSENT) | CHANGE(SLOT_REMOVING, SLOT_COMMITTED) |
			       CHANGE(SLOT_REMOVING, SLOT_ABSENT);

	assert(legal & CHANGE(s->state, to));
	s->state = to;
#undef CHANGE
}
/* Marks a slot ABSENT and frees it, or holds it until hold_until. Counts bytes. */
void slot_release(struct partition *p, struct block *b, uint32_t spec, uint64_t hold_until);
/* Bytes that this space can hand out now without eviction, for one spec. */
bool space_usable(const struct space *s);
bool space_takes(const struct space *s);    /* usable, and new blocks may go there */
bool space_has_room(const struct space *s); /* the capacity allows another file */
bool space_can_grow(const struct partition *p, const struct space *s);
void space_ask_growth(struct partition *p, struct space *s);
/* The storage of an instance whose clients name slots by their offsets: of one spec, on one counted storage. -1: it is
 * no such instance. */
int space_of_places(const struct partition *p, const struct instance *inst);
/* Table of files of one answer: what its locations refer to. */
struct file_table {
	struct skv_arena *arena;
	struct skv_files *files;
	uint32_t *seen; /* space << 24 | file, per entry */
	uint32_t cap;
	/* The slab that the last location was in: the next one mostly is, too. */
	bool any;
	uint32_t space, handle;
	uint32_t file; /* entry of its file */
	struct skv_slab_info slab;
};
/* Fills a location from a slot, and adds its file. */
int location_fill(struct file_table *t, const struct partition *p, const struct instance *inst,
		  const struct block *b, uint32_t spec, struct skv_location *out);

/* ---- queue.c ------------------------------------------------------------------------------------- */

/* Queues the block where eviction may find it, or nowhere; call whenever it may have become evictable. */
void evict_consider(struct partition *p, struct block *b);
/* The same for one that was committed just now, after the block below it (NULL: none). While that, its only child, stands
 * in the same queues, it is held back: the child goes first anyway, so most inner blocks never stand in a queue. */
void evict_consider_above(struct partition *p, struct block *b, const struct block *child);
/* Nothing hangs below it any more: to a policy that goes for leaves it is one now. */
void evict_leaf(struct partition *p, struct block *b);
bool evict_held_back(const struct block *b);
bool evict_stands_for(const struct block *child, const struct block *b);
/* As it stands at `now`, which is the time of a whole search: a lease that ends during it runs for all of it, or the
 * block would be a candidate that may not be taken. */
void evict_consider_at(struct partition *p, struct block *b, uint64_t lease, uint64_t now);
/* Out of all queues: it is written, removed, or gone. */
void evict_forget(struct block *b);
/* The same for one that stays: what it stood for stands itself. */
void evict_withhold(struct partition *p, struct block *b);
/* What its policy may know of it. */
struct skv_policy_block evict_facts(const struct instance *inst, const struct block *b);
/* It is committed soon: fetches into the cache what its policy looks at then. */
void evict_expect(const struct block *b);
/* It came to be; `how`: SKV_BORN_*. */
void evict_born(struct partition *p, struct block *b, uint32_t how);
/* It was there before its policy: after a restart, or (`own` is false) when the policy has changed. */
void evict_adopt(struct block *b, bool own);
/* What the policy made of it. */
void evict_keep(struct block *b, const struct skv_policy_block *facts);
/* Does a candidate's key tell whether it has live children, if the policy cares? */
bool evict_inner_as(const struct instance *inst, const struct block *b, uint64_t key);
/* The key of one that is pinned soft. */
uint64_t evict_soft_key(const struct block *b);
/* The key of one that a lookup named whose lease keeps nothing but slots, and whose instance has no other leases: end of
 * lease, leaves first. 0: it is none. */
uint64_t evict_held_key(const struct block *b, uint64_t lease, uint64_t now);
static inline uint64_t evict_held_until(uint64_t key) { return key >> 1; }
/* The first of all in this heap of the set's members: the queue that it is in, NULL if there is none; its key and id. */
struct evict_queue *evict_set_top(const struct evict_set *set, uint32_t which, uint64_t *key, uint32_t *id);
/* Room for all entries of the instance in the queue of this class; before slots of the class are taken. */
int evict_reserve(struct partition *p, struct instance *inst, uint32_t space, uint32_t class_id);
/* The same in all its queues, before there are more entries. */
int evict_reserve_all(struct instance *inst, uint64_t entries);
/* Heaps for so many queues of a policy in all the group has. */
int evict_widen(struct partition *p, const struct group *g, uint32_t n_queues);
/* When the next lease on blocks in this space ends, by what their queues know; UINT64_MAX = none runs. */
uint64_t evict_next_lease(const struct partition *p, uint32_t space);
void evict_forget_space(struct instance *inst, uint32_t space); /* no block of it has slots there any more */
void evict_destroy_queues(struct instance *inst);
/* The sets of the group (NULL = of all) in this space, which have no members any more. */
void evict_free_sets(struct partition *p, uint32_t space, const struct group *g);
/* Evictions do not look into its queues, or do again; or never will. */
void evict_hide(struct instance *inst, bool hidden);
void evict_hide_for_good(struct instance *inst);

/* ---- policy.c ------------------------------------------------------------------------------------- */

/* Is there such a policy, and can it do what the group asks of it? SKV_E_INVALID. */
int policy_check(const struct skv_group_spec *g, struct skv_error *err);
/* The policy that the group's spec names; another one than before queues its blocks again, in portions. SKV_E_NOMEM
 * changes nothing. */
int policy_set(struct partition *p, struct group *g);
void policy_unset(struct group *g);
/* A portion of that. True when there is more to do at once. */
bool policy_go_on(struct partition *p, struct portion groups);

/* ---- evict.c ------------------------------------------------------------------------------------- */

/* For whom something is evicted. */
struct evict_for {
	const struct instance *whose; /* its start asks for it; NULL = nobody's: ahead of need */
	uint64_t bytes; /* that the start brings: they count for it already */
	bool soft; /* also what is pinned soft, when nothing else is left */
	bool over; /* evict_steal only: nothing but of instances that have more than their part */
};
/* Queues the removal of blocks so that `slots` of (space, class) become free; returns how many slots
 * are on their way because of this call (it bounds the blocks of one call: fewer is no end). */
uint64_t evict_slots(struct partition *p, uint32_t space, uint32_t class_id, uint64_t slots, const struct evict_for *w);
/* Same for a group, by bytes; on storages of this type only (NULL = any). */
uint64_t evict_group_bytes(struct partition *p, struct group *g, const char *type, uint64_t bytes, const struct evict_for *w);
/* Same of one instance; of a storage, whoever's. */
uint64_t evict_instance_bytes(struct partition *p, struct instance *inst, uint64_t bytes, bool soft);
uint64_t evict_space_bytes(struct partition *p, uint32_t space, uint64_t bytes);
/* What the background owes the group's lines (reclaim.c). True: there is more to do at once. */
bool reclaim_group(struct partition *p, struct group *g);
/* The same for the watermarks of a storage. */
bool reclaim_space(struct partition *p, uint32_t space);
/* Same for a group, by blocks. */
uint64_t evict_group_blocks(struct partition *p, struct group *g, uint64_t blocks);
/* At most so many blocks of the group that were not used since then (a time as marks have it), nor any that hang below
 * them. True: there may be more. */
bool evict_idle(struct partition *p, struct group *g, uint64_t since, uint64_t blocks);
/* The same for blocks whose generation is below this one, of a policy that goes by birth. */
bool evict_older(struct partition *p, struct group *g, uint64_t generation, uint64_t blocks);
/* Bytes of the group on storages of a type, those on their way out not counted (*removing gets them; may be NULL). */
uint64_t group_type_bytes(const struct partition *p, const struct group *g, const char *type, uint64_t *removing);
/* Keeps a little free in every class that somebody used lately, so that starts rarely wait, and so that a start
 * just after a recovery finds slots that no lease horizon covers. True when there is more to do at once. */
bool evict_ahead(struct partition *p, struct portion spaces, struct portion groups);
bool block_evictable(const struct partition *p, const struct instance *inst, const struct block *b, uint64_t now);

/* One more that was evicted, of this instance. */
void evict_count(struct partition *p, struct instance *inst);

/* ---- share.c ------------------------------------------------------------------------------------------------ */

/* Before a search for victims: rooms of groups that have parts, for the two below. */
void shares_refresh(struct partition *p, uint32_t space);
/* What the instance has for its part, in 1/SHARE_PART: above it, it has more. 0 in a group without parts. What is on its
 * way out does not count, what is asked for does. */
#define SHARE_PART (1u << 20)
uint64_t share_ratio(const struct instance *inst, const struct evict_for *w);
/* May its blocks be evicted for that? */
bool share_allows(const struct evict_for *w, const struct instance *inst);

/* ---- steer.c: where evicted blocks lie ----------------------------------------------------------------- */

/* Empties slabs of other classes for `class_id`. True when something is on its way. */
bool evict_steal(struct partition *p, uint32_t space, uint32_t class_id, const struct evict_for *w);
/* The same where leases run in every window: its slots come free when they end. One window at a time: true while that is
 * waited for. */
bool evict_steal_leased(struct partition *p, uint32_t space, uint32_t class_id, const struct evict_for *w);
/* A block was evicted for slots of the class. */
void steer_note(struct partition *p, uint32_t space, uint32_t class_id, const struct block *b);
/* After evictions for slots of the class: perhaps others should give it space. */
void steer(struct partition *p, uint32_t space, uint32_t class_id, const struct evict_for *w);
/* The block was picked: so are those without which its slots of the class do not come free. Returns how many come free. */
uint64_t steer_segments(struct partition *p, struct picks *k, uint32_t space, uint32_t class_id, const struct block *b,
			const struct evict_for *w);
uint64_t block_idle_ms(const struct partition *p, const struct block *b);
/* The mean of some blocks of the slab. */
uint64_t slab_idle_ms(const struct partition *p, const struct skv_pool *pool, uint32_t slab);

/* ---- pin.c ---------------------------------------------------------------------------------------------- */

enum skv_pin_kind pin_kind(const struct block *b);
/* A slot of a pinned block was released: with the last one that was committed the pin goes. */
void pin_of_slot_gone(struct block *b);
struct pin pin_get(const struct block *b); /* kind SKV_PIN_NONE: it has none */
/* Room for n more. SKV_E_NOMEM changes nothing. */
int pins_reserve(struct pins *pins, uint32_t n);
/* Room is reserved. */
void pin_set(struct partition *p, struct block *b, struct pin to);
/* Has it anything to be pinned, or had, if its removal is undone? */
bool pin_keeps_bytes(const struct instance *inst, const struct block *b);
/* Bytes of blocks that are pinned hard, or (`hard` false) soft. */
uint64_t pinned_bytes(const struct instance *inst, bool hard);
void pins_destroy(struct instance *inst);
/* ops/pin.c: ends those whose time is over, a portion of them at a time. True when there is more to do at once. */
bool pins_expire(struct partition *p, struct portion instances);

/* ---- remove.c ------------------------------------------------------------------------------------- */

int remove_mark(struct partition *p, struct picks *k, struct block *b);
/* Blocks with a committed slot; those of a ghost are nobody else's. */
void blocks_count(struct partition *p, struct instance *inst, int64_t by);
int remove_queue(struct partition *p, struct picks *k, struct change **out);
void remove_cancel(struct partition *p, struct picks *k);
/* They are gone: what a record of them does when it is durable. */
void removals_apply(struct partition *p, const struct removal *v, size_t n);

/* ---- clear.c -------------------------------------------------------------------------------------- */

/* Queues the record of a CLEAR or a DROP of the instance, which becomes a ghost. SKV_E_NOMEM changes nothing. */
int clear_queue(struct partition *p, struct instance *inst, bool drop, struct change **out);
/* How many its instance had. `ch`: of clear_queue. */
uint64_t clear_blocks(const struct change *ch);
/* Sweeps about so many blocks of cleared ghosts: of the group's (NULL = all), of those that had slots in the space.
 * Returns how many. */
#define ANY_SPACE UINT32_MAX
uint32_t ghosts_sweep(struct partition *p, const struct group *g, uint32_t space, uint32_t blocks);
/* Are there any that are not swept yet, or whose record is on its way? */
bool ghosts_left(const struct partition *p, const struct group *g, uint32_t space);
/* A portion. True when there is more to do at once. */
bool ghosts_go_on(struct partition *p);
/* Those that are swept, for ghosts_free, which needs no lock. */
struct instance *ghosts_take_swept(struct partition *p);
void ghosts_free(struct instance *ghosts);
/* Sweeps all whose record is durable, with others' calls in between. No lock. */
void ghosts_finish(struct skv_core *c);

/* ---- trim.c --------------------------------------------------------------------------------------- */

/* A portion of each trim that waits for no record. True when there is more to do at once. */
bool trim_go_on(struct partition *p);
/* Those that wait for no record fail; the others with their records. */
void trim_fail_all(struct partition *p, int status, const char *text);

/* ---- session.c ------------------------------------------------------------------------------------ */

struct session *session_find(const struct partition *p, struct skv_key id);
struct session *session_by_request(const struct partition *p, struct skv_key request);
uint32_t *session_due_place(void *ctx, uint32_t number); /* of part->deadlines */
int session_add(struct partition *p, struct session *s); /* takes ownership on success */
void session_destroy(struct partition *p, struct session *s); /* forgets it altogether */
/* Ends it: releases the lists, keeps id and outcome until forget_at (longer while a change still
 * names it: one that was queued before its instance was dropped). */
void session_end(struct partition *p, struct session *s, enum skv_session_state state);
/* Looks at it again at `at`, an open one. */
void session_set_due(struct partition *p, struct session *s, uint64_t at);
/* Does a change still name it? */
bool session_is_named(const struct session *s);
void session_forget_due(struct partition *p, uint64_t now);
/* How the block of its i-th write is born: SKV_BORN_*. */
uint32_t session_birth(const struct session *s, uint32_t i);
/* When the writers of what it does not commit are through. */
uint64_t session_grace_end(const struct partition *p, const struct session *s);
/* The i-th write is committed or given up, apart from the others; with the last one an anonymous session ends, and is
 * destroyed. */
void session_settle(struct partition *p, struct session *s, uint32_t i, bool success, uint64_t use);
/* The i-th written block's slots of this session are given up; free when hold_until has passed. */
void session_release(struct partition *p, struct session *s, uint32_t i, uint64_t hold_until);
struct session *session_make(uint32_t n_keys, uint32_t n_write);
void session_free(struct session *s);
void session_id_text(struct skv_key id, char out[SKV_SESSION_ID_HEX + 1]);
struct skv_key tenant_hash(const char *tenant);
bool session_id_parse(const char *hex, struct skv_key *out);

/* ---- start.c, finish.c ------------------------------------------------------------------------------- */

struct plan;

/* The answer of a session as it is now; of a start that has nothing to write. SKV_E_NOMEM. */
int start_fill(struct waiter *w, struct partition *p, const struct session *s);
int start_fill_none(const struct partition *p, struct waiter *w, const struct plan *plan);
/* Serves the lines of waiting starts as far as space goes. */
void start_serve_waiters(struct partition *p);
void start_fail_line(struct partition *p, struct group *g, int status, const char *text);
void start_fail_waiters(struct partition *p, int status, const char *text);
/* One slot handed to a session's block. */
struct grant {
	uint32_t space;
	uint32_t slab;
	uint32_t index;
};
/* v[spec][i] belongs to the i-th written block that takes this spec. */
struct grants {
	struct grant *v[SKV_MAX_SPECS];
	uint32_t n[SKV_MAX_SPECS];
};
void grants_free(struct partition *p, struct grants *g); /* the slots, not the arrays */
/* Makes the session's entries and gives them their slots, and names[i] to the block of keys[i] (NULL = none). On
 * SKV_E_NOMEM all slots granted are free again and nothing is linked. Used by start and by replay.
 * `have`: the entries of all keys, NULL = to be looked for. */
int start_link(struct partition *p, struct session *s, struct grants *g, const struct skv_bytes *names,
	       struct block *const *have);
/* SKV_E_CONFLICT: keys[*at] is the same as keys[*first]. SKV_E_NOMEM. */
int keys_duplicate(const struct skv_key *keys, uint32_t n, uint32_t *at, uint32_t *first);
/* The reverse, for a start that never became durable: slots are free at once. */
void start_unlink(struct partition *p, struct session *s);
/* Ends it: what was written becomes visible, or is given up; these slots are free when hold_until has passed. `sums`: as
 * record_finish. Used by finish and by replay. */
void session_finish(struct partition *p, struct session *s, const uint8_t *success, const uint64_t *sums,
		    uint64_t hold_until);
void commit_slot(struct partition *p, struct block *b, uint32_t spec, const uint64_t *sum);
/* The use of a block now: grows with each call. */
uint64_t use_now(struct partition *p, uint64_t now);
/* A use without a lease; one that runs goes on. */
void block_use(struct block *b, uint64_t use);

/* ---- end.c: sessions that end without a finish ------------------------------------------------------------ */

/* NULL: out of memory. */
struct change *session_queue_end(struct partition *p, struct session *s, enum skv_session_state state, bool quiesced);
void session_expire_due(struct partition *p, uint64_t now);
/* Aborted, or expired: everything that it writes is given up. Used by end and by replay. */
void session_abandon(struct partition *p, struct session *s, enum skv_session_state state, uint64_t hold_until);

/* ---- settle.c --------------------------------------------------------------------------------------- */

/* So many writes, which are marked as SETTLING, are committed or given up. */
struct settle {
	struct change change;
	struct settled *v;
	uint32_t n;
	uint32_t committed; /* once it is applied */
	uint32_t given_up;
};
/* NULL: out of memory. */
struct settle *settle_make(void);
/* Writes its record. SKV_E_NOMEM. */
int settle_record(struct settle *s);
/* It is not queued after all: the marks go, and it is destroyed. NULL is fine. */
void settle_drop(struct partition *p, struct settle *s);

/* ---- revoke.c --------------------------------------------------------------------------------------- */

/* The change (to be queued) that gives up what sessions of the instance are writing of these keys; *out NULL: nothing
 * is written, or (*behind) that is decided by a change on its way, and has to be asked again after it. */
int revoke_make(struct partition *p, struct instance *inst, const struct skv_key *keys, uint32_t n, struct settle **out,
		struct change **behind);
/* Of a write that is not settled: is a record on its way that settles it? */
bool revoke_is_settling(struct partition *p, const struct session_write *w);
void revoke_unmark(struct partition *p, const struct session_write *w);

/* ---- search.c, lookup.c ----------------------------------------------------------------------------- */

/* What cannot be read now: spaces as a whole, and files of others. */
struct unread {
	const struct partition *p;
	uint32_t *gone; /* [n_gone] spaces; in the arena of the call */
	uint32_t n_gone;
	bool any; /* else all can be: no slot needs a look */
};
/* Does the slot lie in a file that can be read? */
bool slot_readable(const struct partition *p, const struct slot *s);
bool slot_unread(const struct unread *u, const struct slot *s);

/* Is the spec committed, and where it can be read? */
static inline bool spec_there(const struct block *b, uint32_t spec, const struct unread *u)
{
	return b->slot[spec].state == SLOT_COMMITTED && !(u->any && slot_unread(u, &b->slot[spec]));
}

/* What one lookup found. */
struct search {
	struct instance *inst;
	uint32_t mask;      /* specs asked for */
	struct unread gone; /* what cannot be read, or shall not be */
	struct block **hit; /* of the first n_seen keys; NULL = miss */
	uint32_t n_seen;
	uint32_t matched;
	uint64_t lease_until; /* lookup.c */
	bool denied;          /* by the cap on leases; */
	uint32_t hidden;      /* so many hits became misses for that */
	size_t era;           /* of the hit before (era_next) */
};
/* Under the read lock. SKV_E_NOT_FOUND (instance), SKV_E_INVALID, SKV_E_NOMEM. */
int search_run(struct partition *p, const struct skv_lookup_req *req, struct skv_arena *a, struct search *s,
	       struct skv_error *err);
/* Looks an instance up; fails with SKV_E_NOT_FOUND naming `field`. */
struct instance *instance_find(const struct partition *p, const char *tenant, const char *id);
int instance_need(const struct partition *p, const char *tenant, const char *id, const char *field,
		  struct instance **out, struct skv_error *err);
int specs_resolve(const struct instance *inst, const char *const *names, uint32_t n, uint32_t *mask,
		  struct skv_error *err);
/* Names of the specs in `mask`, in the instance's order, copied into the arena. */
int specs_names(const struct instance *inst, uint32_t mask, struct skv_arena *a, const char *const **names,
		uint32_t *n);
/* Tells names apart before their bytes are compared; `more` may be "". */
uint32_t name_hash(const char *name, const char *more);
struct group *group_find(const struct partition *p, const char *name);
int space_find(const struct partition *p, const char *name); /* index or -1 */

/* ---- room.c ------------------------------------------------------------------------------------------- */

enum { TRY_WAIT = 2, TRY_WAIT_QUOTA }; /* not now: slots are on their way, or room in the group's quota */

/* What one try finds out. */
struct plan {
	struct instance *inst;
	uint32_t specs;                      /* asked for, of any key */
	uint32_t n_keys;
	struct block **have;                 /* [n_keys] entries, NULL = none */
	uint8_t *outcome;                    /* [n_keys] */
	uint32_t *missing;                   /* [n_keys] specs to write */
	uint32_t n_write;
	uint32_t need[SKV_MAX_SPECS];        /* slots per spec */
	uint64_t bytes;
	uint64_t since; /* when the start came (boot time ms) */
	bool keeps;     /* what exists already is not evicted for the rest */
	bool hasty;     /* takes what there is, rather than wait for leases and grace times to end */
	struct grants grants;
};

/* plan.c: fills what the request asks of plan->inst and what is left to write. SKV_E_INVALID, SKV_E_TOO_LARGE,
 * SKV_E_TOO_MANY, SKV_E_NOMEM. */
int plan_make(const struct partition *p, const struct skv_start_req *req, struct skv_arena *a, struct plan *plan,
	      struct skv_error *err);
/* Leaves the first n writes; the others have no room. `whole`: n or none, and none where a key is BUSY. */
void plan_cut(struct plan *plan, uint64_t n, bool whole);
/* n_write, need and bytes by the outcomes. */
void plan_count(struct plan *plan);
/* What open sessions may hold: SKV_OK, SKV_E_TOO_LARGE, SKV_E_TOO_MANY. */
int room_limits(const struct partition *p, const struct plan *plan, struct skv_error *err);
/* The group's quota, the instance's part of it, and how many blocks one instance holds: SKV_OK, TRY_WAIT_QUOTA (eviction within
 * the group is on its way), SKV_E_QUOTA. */
int room_quota(struct partition *p, const struct plan *plan, struct skv_error *err);
/* Takes the plan's slots, all in one storage. SKV_OK, TRY_WAIT, SKV_E_NO_SPACE, SKV_E_UNAVAILABLE,
 * SKV_E_NOMEM. */
int room_take(struct partition *p, struct plan *plan, struct skv_arena *a, struct skv_error *err);
/* The slots that the request names, of those that are free; the other keys have no room. As room_take. */
int room_take_places(struct partition *p, const struct skv_start_req *req, struct plan *plan, struct skv_arena *a,
		     struct skv_error *err);
/* For plans of one spec. How many of its blocks the bounds of open sessions and blocks allow: */
uint64_t room_bound(const struct partition *p, const struct plan *plan);
/* how many could be taken at once, without any eviction. */
uint64_t room_now(struct partition *p, const struct plan *plan);

/* ---- files.c: slab files of a space ------------------------------------------------------------------- */

/* Gone ones included; NULL: no such number was given, or nothing of it is left. */
struct space_file *file_find(const struct space *s, uint32_t number);
/* The first one that is there (not gone) of this number or above, NULL: none. */
struct space_file *file_next(const struct space *s, uint32_t from);
/* A new one with number, length, version, asked and state. One that is known already is no error: nothing changes. */
int file_add(struct space *s, const struct space_file *f);
int file_add_claim(struct space *s);
uint32_t file_next_number(const struct space *s); /* that growth makes */
bool file_drains(const struct space *s, const struct space_file *f);
/* The pool follows what is wanted of the file; again, whenever that has changed. */
void file_settle(struct space *s, struct space_file *f);
void files_settle(struct space *s);
/* No slot of it is taken, and nothing durable names it: it drains no more, it goes. */
void file_going(struct space *s, struct space_file *f);
/* Its document tells so: the pool forgets it. */
void file_gone(struct space *s, struct space_file *f);
void file_forget(struct space *s, struct space_file *f);
/* A look has found that its bytes are not there (NULL: that they are), and whether that is for certain. A constant. */
void file_found(struct space *s, struct space_file *f, const char *bad, bool certain, uint64_t now);
/* Given up: what is in it goes, whatever holds it. */
void file_lose(struct space *s, struct space_file *f);
/* The space was not well: what was found before counts from the next look on. */
void files_doubt(struct space *s);
void files_free(struct space *s);

/* ---- drain.c: files that go ---------------------------------------------------------------------------- */

/* A portion of what draining files still hold is on its way out, and files are chosen for a capacity that is less than
 * what was made. True when there is more to do at once. */
bool drains_go_on(struct partition *p, struct portion spaces);
/* What a file waits for, for people; "" = nothing. */
const char *drain_waits_for(const struct space *s, const struct space_file *f, const struct skv_file_info *info);

/* ---- share.c: parts of a group ------------------------------------------------------------------------- */

static inline uint64_t percent_of(uint64_t bytes, uint32_t percent)
{
	return bytes / 100 * percent + bytes % 100 * percent / 100;
}
uint64_t spec_block_bytes(const struct skv_instance_spec *i); /* all specs */
void group_join(struct group *g, struct instance *inst);
void group_leave(struct instance *inst);
/* Takes weight and capacity of `to`. */
void share_change(struct instance *inst, const struct skv_instance_spec *to);
/* Bytes that the group may have: its capacity, or what its storages have, if that is less. */
uint64_t group_room(const struct partition *p, const struct group *g);
/* Of all its storages, whatever its own capacity. */
uint64_t group_storages_room(const struct partition *p, const struct group *g);
/* The instance's part of these bytes: of its group's room, or of what is left of it. All of it in a group that has no
 * parts. */
uint64_t share_of(const struct instance *inst, uint64_t room);

/* ---- record.c: durable records ---------------------------------------------------------------------- */

void record_start(struct skv_buf *out, const struct partition *p, const struct session *s);
/* `sums`: [n_write * specs of the session], or NULL. */
void record_finish(struct skv_buf *out, const struct session *s, const uint8_t *success, const uint64_t *sums,
		   uint64_t hold_until, uint64_t now);
void record_end(struct skv_buf *out, const struct session *s, enum skv_session_state state, uint64_t hold_until,
		uint64_t now);
/* As many of the n removals as belong to the first one's instance; returns how many. */
size_t record_remove(struct skv_buf *out, const struct partition *p, const struct removal *r, size_t n,
		     uint64_t now);
/* Of the reign; `clean`: an orderly shutdown follows. */
void record_horizon(struct skv_buf *out, const struct partition *p, bool clean);
void record_horizons(struct skv_buf *out, const struct horizon *v, size_t n, uint64_t now);
void record_clear(struct skv_buf *out, const struct instance *inst, bool drop, uint64_t now);
void record_settle(struct skv_buf *out, const struct settled *v, uint32_t n);
void record_pin(struct skv_buf *out, const struct instance *inst, const struct repin *v, uint32_t n, uint64_t now);
/* All pins of the instance, for a checkpoint. */
void record_pins(struct skv_buf *out, const struct partition *p, const struct instance *inst, uint64_t now);
/* Pieces of a checkpoint. */
void record_chunk(struct skv_buf *out, const struct partition *p, const struct chunk *c);
/* Ends of the leases on its blocks. */
void record_leases(struct skv_buf *out, const struct partition *p, const struct chunk *c, uint64_t now);
/* Its slots that are leased, as holds. */
void record_chunk_leases(struct skv_buf *out, const struct partition *p, const struct chunk *c, uint64_t now);
void record_ended(struct skv_buf *out, const struct session *s, uint64_t now);
void record_hold(struct skv_buf *out, const struct space *space, struct skv_run run, uint64_t left_ms);
void record_counters(struct skv_buf *out, const struct partition *p);
void record_eras(struct skv_buf *out, const struct partition *p);
/* Length in bytes of the record at the begin of n bytes, 0 if there is none. */
size_t record_length(const void *bytes, size_t n);
/* How the slots of an instance's spec lie in the storage's files. */
struct geometry space_geometry(const struct space *sp, const struct skv_instance_spec *i, uint32_t spec);
/* What slots whose instance is not known (holds) begin at multiples of, where there are no chunks. */
uint64_t stride_align(uint64_t stride, bool numbered);
/* Does a slot of the spec fit into the storage's slab files, with what its alignment may cost? */
bool space_fits(const struct space *sp, const struct skv_instance_spec *i, uint32_t spec);
/* The class of each spec of the instance in a space, NULL: it has had no slot there. */
static inline uint32_t *instance_classes(const struct instance *inst, uint32_t space)
{
	uint32_t *row = row_find(inst->classes, (1 + inst->spec.n_specs) * sizeof *row, inst->n_classes, space);

	return row ? row + 1 : NULL;
}
/* The class of a spec in a space where it has had a slot. */
static inline uint32_t class_of(const struct instance *inst, uint32_t space, uint32_t spec)
{
	return instance_classes(inst, space)[spec];
}
/* What the group has there, NULL: nothing ever. */
struct group_space *group_in(const struct group *g, uint32_t space);
/* Bytes of a slot that is given (or, negative, released): counted for instance, group and space. */
void used_add(struct partition *p, struct instance *inst, uint32_t space, int64_t bytes);
/* The same of those on their way out, which stay used. */
void removing_add(struct partition *p, struct instance *inst, uint32_t space, int64_t bytes);

/* The kinds of changes, and other records. */
extern const struct change_ops start_ops, finish_ops, end_ops, settle_ops, horizon_ops, pin_ops, remove_ops, clear_ops, drop_ops;
extern const struct record_ops blocks_record, named_blocks_record, ended_record, hold_record, reign_record, leases_record,
	counters_record, eras_record;
/* start_replay.c */
int replay_start(struct replay *r, struct skv_rd *in, struct skv_error *err);

/* ---- commit.c ---------------------------------------------------------------------------------------- */

int commit_init(struct skv_core *c); /* SKV_E_NOMEM */
void commit_destroy(struct skv_core *c);
int commit_start_thread(struct skv_core *c);
void commit_stop_thread(struct skv_core *c);
/* One round: appends what is queued, applies it, begins a wanted snapshot. True if it did anything. */
bool commit_round(struct skv_core *c);
/* Under the write lock: fails everything queued; in-flight work is failed by its round. */
void commit_drain(struct skv_core *c, int status);
/* Waits until no round runs. No lock held. */
void commit_wait_idle(struct skv_core *c);
/* Has the committer begin a snapshot (threads), or begins it here (manual). */
void commit_ask_snapshot(struct skv_core *c);
uint64_t commit_appended(struct skv_core *c);
/* Nothing is queued, on its way, or waits for a sync. */
bool commit_is_done(struct skv_core *c);
/* Until a round is over, so many ms at most. */
void commit_wait_round(struct skv_core *c, uint32_t ms);
/* Until the change of this number is durable; false: it is not going to be. Manual mode does the rounds. */
bool commit_wait_appended(struct skv_core *c, uint64_t number);
/* Under the write lock: the late half, then its waiters. */
void commit_apply(struct skv_core *c, struct change *ch);
/* Completes those who wait for it; `fill`: with what it has come to. */
void commit_complete(struct skv_core *c, struct change *ch, int status, bool fill);
/* Under the write lock: what is in memory is no longer the truth: everybody is refused until it is loaded again. `batch`
 * (may be NULL) and all that is queued fail. */
void commit_stop_part(struct skv_core *c, struct change *batch, int status);

/* ---- sync.c ------------------------------------------------------------------------------------------ */

#define SYNC_BEHIND_MS 50u /* what was appended without a sync gets one after this */

int sync_start_thread(struct skv_core *c);
void sync_stop_thread(struct skv_core *c);
/* Something was appended without a sync; or with one, which covers all before it. */
void sync_is_behind(struct skv_core *c);
void sync_covers_all(struct skv_core *c);
/* Its late half waits for a sync. */
void sync_defer(struct skv_core *c, struct change *ch);
/* `hurry`: somebody waits for slots. */
bool sync_is_due(const struct skv_core *c, bool hurry);
/* Has the thread sync (manual: does it here). */
bool sync_ask(struct skv_core *c);
/* Syncs here. False: it has failed, and the part is stopped. */
bool sync_now(struct skv_core *c);
/* Takes in what the thread has done, if it has: true, unless it has failed. */
bool sync_collect(struct skv_core *c);
/* Late halves that a sync covers: a portion of them, in between others have the lock; or all. No lock held. */
void sync_apply(struct skv_core *c, bool all);
/* Under the write lock, when no round runs: what waited for a sync is forgotten with the part. */
void sync_forget(struct skv_core *c, int status);

/* ---- checkpoint.c, recover.c, owner.c, device.c, admin.c, tick.c ------------------------------------- */

void snapshot_abort(struct partition *p);
/* Under the write lock, by the committer between two batches. */
void snapshot_begin(struct partition *p, uint64_t barrier);
void snapshot_end(struct partition *p);
/* Writes one checkpoint of the current part. `clean`: the last one of an orderly shutdown. */
int checkpoint_run(struct skv_core *c, bool clean, struct skv_error *err);

struct partition *part_make(struct skv_core *c);
void part_destroy(struct partition *p);
/* Loads registry, checkpoint and journal into a new part. No lock: nobody else sees it yet. */
int part_load(struct skv_core *c, uint64_t fence, struct partition **out, struct skv_error *err);
/* Durably: so much of what this reign tells may be lost with the power. Before it tells anything. */
int part_put_behind(struct partition *p, struct skv_error *err);
/* Verifies everything; each problem goes to say(). */
uint64_t part_check(struct partition *p, void (*say)(void *ctx, const char *text), void *ctx);

/* Ownership: acquire, renew, give up; acquire anew, when the partition is to be loaded again. Called again and again by the
 * keeper; returns ms to wait. */
uint32_t owner_step(struct skv_core *c);
/* The part is owned but not loaded: load it and go READY. Called by the ticker. False = try later. */
bool owner_load(struct skv_core *c);
/* Forgets the part: everything waiting fails with `status`. */
void owner_drop(struct skv_core *c, int status, enum skv_core_state next);

int device_make(struct skv_core *c, const struct skv_storage_spec *s, uint32_t id, const uint8_t uuid[16],
		struct device **out);
/* Takes what may change besides capacity and enabled. Under the write lock, or before anybody knows the device. */
int device_describe(struct device *d, const struct skv_storage_spec *s);
bool device_same_masters(const struct device *d, const struct skv_storage_spec *s);
int device_start(struct device *d);
void device_ask(struct device *d); /* its thread takes a step at once */
void device_destroy(struct device *d); /* stops its thread first */
/* One step of its thread: open, probe, check files; what files are to be made or removed is its second thread's. */
void device_step(struct device *d);
/* Opens the root for the first time, so that a bad one is refused at once. */
int device_open(struct device *d, bool may_create, struct skv_error *err);
/* The opened storage, kept open until unuse; NULL: it is not. By the second thread. */
struct skv_storage *device_use(struct device *d);
void device_unuse(struct device *d);
/* Makes the file that the space grows by. By the second thread. */
void device_grow(struct device *d);
bool device_grows(struct device *d);
/* device_hand.c: has the second thread make a file, and remove those that go, unless it is at work. By the first one. */
void hand_ask(struct device *d, bool grow, bool drain);
/* Waits until it is out of the file system. */
void hand_join(struct device *d);
bool device_healthy(const struct device *d);
/* May what lies there be looked up? Also when no fs-master answers, which says nothing of the clients' mounts. */
bool device_readable(const struct device *d);
/* Looks whether the files of the space are there and ours (fsck). */
int device_check_files(struct device *d, const struct space *s, struct skv_error *err);
/* Around a call into its file system. */
void device_enter(struct device *d);
void device_leave(struct device *d);
/* bad_files.c: by its thread, the marker being well: one file in turn and one of the bad ones, or (`all`) all of them. A file
 * that is not well is told to the part; what is returned is about the storage as a whole. */
int device_look_at_files(struct device *d, bool all, struct skv_error *err);
/* Its files were not looked at, or in vain. */
void device_doubt_files(struct device *d);
/* By its second thread: the file system's part of it. Once the file is gone it stays SKV_OK. */
int device_remove_file(struct device *d, uint32_t file, struct skv_error *err);
/* Its space; NULL: the part has none, or there is no part. */
struct space *device_space(const struct partition *p, const struct device *d);
/* Of storages that another manager has deleted: they end, once they are out of their file systems. */
void devices_sweep(struct skv_core *c);
struct device *device_find(const struct skv_core *c, uint32_t id);
int device_add(struct skv_core *c, struct device *d); /* under the write lock */
/* Its thread ends once it is out of the file system; has it? */
void device_ask_stop(struct device *d);
bool device_stopped(const struct device *d);
/* A call into its file system has not come back for long. */
bool device_hangs(const struct device *d);
/* Under the write lock: the core and its part forget the device and its (empty) space. */
void device_remove(struct skv_core *c, struct device *d);
/* Ends its thread, removes its files as long as this fence is the newest, destroys it. */
void device_retire(struct device *d, uint64_t fence, const struct space_file *files, size_t n);

/* ---- remove_files.c ------------------------------------------------------------------------------------ */

/* By the device's second thread, its file system being well: files that nobody needs any more go. */
void remove_files(struct device *d);
/* Is there a file whose removal has a step to take? */
bool files_to_remove(const struct space *s);

/* ---- claim.c: owner files ------------------------------------------------------------------------------ */

/* The reign has an incarnation; before its part is loaded. */
int claims_begin(struct skv_core *c, struct skv_error *err);
/* Is the state to be taken for one that went back in time? */
bool claims_roll_back(struct skv_core *c);
/* Has a look at some directory found that another copy of the store goes on there? */
bool claims_refused(struct skv_core *c);
/* Claims the directory in this reign, or looks again. SKV_E_FOREIGN: another copy goes on there. By the device's thread, or
 * whoever makes one. */
int claim_look(struct device *d, struct skv_error *err);
/* The newest look is too long ago: nothing may be granted. */
bool claim_overdue(const struct device *d);
/* The storage goes, and so does its owner file. */
void claim_give_back(struct device *d);
/* fsck: does the store know all who went on there? */
int claim_check(struct device *d, struct skv_error *err);

/* Registry documents (registry.c), used by recovery and administration. */
struct storage_doc {
	struct skv_storage_spec spec;
	uint32_t id;
	uint8_t uuid[16];
};
int registry_load(struct partition *p, struct skv_error *err);
void registry_put_storage(struct skv_buf *out, const struct storage_doc *d);
void registry_put_group(struct skv_buf *out, const struct skv_group_spec *g);
void registry_put_instance(struct skv_buf *out, const struct skv_instance_spec *i, uint32_t id);
/* registry_write.c. `fence`: of the part that the write was decided on. SKV_E_NOT_OWNER, SKV_E_NOT_READY: that part is not
 * the newest any more, and nothing was changed; SKV_E_CONFLICT, SKV_E_NOT_FOUND: another version is there, or none. */
int registry_put(struct skv_core *c, uint64_t fence, const char *key, uint64_t expect, const struct skv_buf *doc,
		 uint64_t *version, struct skv_error *err);
int registry_del(struct skv_core *c, uint64_t fence, const char *key, uint64_t version, struct skv_error *err);
int registry_next_id(struct skv_core *c, uint64_t fence, uint32_t *id, struct skv_error *err);
int registry_secret(struct skv_core *c, uint64_t fence, struct skv_error *err);
void registry_file_key(char out[64], uint32_t storage_id, uint32_t file);
void registry_put_file(struct skv_buf *out, const struct space_file *f);
/* False: malformed, or from a newer version. Fills length, asked, state. */
bool registry_get_file(const void *bytes, size_t n, struct space_file *out);
void registry_instance_key(char out[300], const char *tenant, const char *id);
/* The second half of an instance's deletion, after its record; may be repeated. `doc`: its document, of *version; gets the
 * new one's. */
int registry_move_to_dropped(struct skv_core *c, uint64_t fence, const char *instance_key, uint32_t id,
			     const struct skv_buf *doc, uint64_t *version, struct skv_error *err);
/* The same for all instances of a part that was just loaded and is nobody else's yet. */
int registry_finish_drops(struct partition *p, struct skv_error *err);
int registry_forget_dropped(struct skv_core *c, uint64_t fence, uint32_t id, uint64_t version, struct skv_error *err);
/* Adds to the part; strings are copied. */
int part_add_space(struct partition *p, struct device *d, const struct skv_storage_spec *s, uint64_t version);
int part_add_group(struct partition *p, const struct skv_group_spec *g, uint64_t version);
int part_add_instance(struct partition *p, const struct skv_instance_spec *i, uint32_t id);
int part_add_instance_to(struct partition *p, const struct skv_instance_spec *i, uint32_t id, struct group *g);
struct space *space_by_id(struct partition *p, uint32_t storage_id);
/* The slots of a `counted` storage: its only file is as long as the capacity says. */
int part_count_slots(struct space *s);
/* No start waits in its line any more. */
void part_remove_group(struct partition *p, const char *name);
struct instance *instance_by_id(const struct partition *p, uint32_t id); /* dropped ones too */
/* Its registration has moved to "dropped/...": only replay of older records may still need it. */
void part_set_dropped(struct partition *p, uint32_t id);
void part_remove_instance(struct partition *p, struct instance *inst);
/* An empty one of the same registration, in no list; NULL = out of memory. */
struct instance *instance_again(const struct instance *inst);
void instance_free(struct instance *inst); /* NULL is allowed */
void group_free(struct group *g);
void group_spec_free(struct skv_group_spec *g);
int group_spec_copy(struct skv_group_spec *out, const struct skv_group_spec *g);

/* Whatever time has made due. Returns ms to wait until the next one. */
uint32_t tick_once(struct skv_core *c);
/* ---- horizon.c: how late leases may end, for recovery ------------------------------------------------- */

#define HORIZON_AHEAD_MS 20000u /* no horizon is farther beyond the longest lease */

/* Under the write lock: a lease of `ms` is asked for that ends after the instance's horizon. Queues a longer one, or
 * finds one on its way; `again`: for one that was too late when it was durable. */
int horizon_extend(struct partition *p, struct instance *inst, uint64_t now, uint32_t ms, bool again, struct change **out);
/* Records of those that run, for a checkpoint or a reign; `exact`: what this reign has given is told otherwise. */
void horizons_put(struct skv_buf *out, struct partition *p, bool exact);
/* Extends ahead of need those of instances that were asked for leases lately. */
void horizons_keep(struct partition *p, uint64_t now);

/* ---- leases.c: how much is leased ----------------------------------------------------------------------- */

/* What one lookup adds: ends are in the milliseconds of uses, as marks have them. */
struct lease_tally {
	uint64_t now;          /* window of the present */
	uint64_t to, from;     /* windows */
	uint64_t added, moved; /* blocks, into `to`; of `moved` those since `from` was set */
	uint64_t moved_from;
};
/* Of a window: 2^shift ms. */
uint32_t lease_shift(uint32_t longest_ms);
/* Is a lease with this end counted? */
bool lease_counts(const struct partition *p, uint64_t end, uint64_t now);
void lease_moves(struct instance *inst, struct lease_tally *t, uint64_t from, uint64_t to);
/* The end of a block's lease moves; `before` 0 or in the past: it had none. */
static inline void lease_note(const struct partition *p, struct instance *inst, struct lease_tally *t, uint64_t before, uint64_t end)
{
	const uint64_t from = before >> p->lease_shift, to = end >> p->lease_shift;

	if (from != to && to >= t->now)
		lease_moves(inst, t, from, to);
}
struct lease_tally lease_tally_begin(const struct partition *p, struct instance *inst, uint64_t now);
void lease_tally_end(struct instance *inst, const struct lease_tally *t);
/* Bytes of the instance that are leased: at least, and with what ended within the last window or two. */
uint64_t leased_bytes(const struct partition *p, struct instance *inst, uint64_t now);
/* Before anybody else uses `to`. */
void leases_copy(struct instance *to, const struct instance *from);

#endif
