/*
 * change.h - a journaled change: its record, its waiters, and the operations of its kind.
 *
 * A change of state has two steps. *Prepare* happens under the lock when the request is accepted
 * and its record is queued (slots reserved, blocks marked); *apply* when the record is durable
 * (blocks visible, slots free). If the append fails, the prepare step is undone, newest first. So
 * nothing is visible, answered or reused before it is durable.
 *
 * To change something in memory, make a change of its kind, do the prepare step, write its record
 * and queue it. The journal appends the record and calls the kind's operations; it knows no kind by
 * name. A kind is a struct that begins with a struct change, and one constant table, both in the
 * file that implements it.
 *
 * The operations are called under the partition's write lock. Each change ends in exactly one of
 * three ways: apply, when the record is durable; undo, newest first, when it never will be;
 * neither, when memory no longer matches the store and the partition is discarded. Then its waiters
 * are answered, and it is destroyed.
 */
#ifndef SKV_CORE_JOURNAL_CHANGE_H
#define SKV_CORE_JOURNAL_CHANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/bytes.h>

#include <lock/lock.h>

struct change;
struct partition;
struct replay;
struct skv_arena;
struct skv_error;

/* A call that waits for a change. Lives in the request's arena. */
struct waiter {
	struct completion completion;
	struct waiter *next; /* waiters of the same change */
	/* Called under the write lock after apply or undo to fill the answer; may be NULL. `status`
	 * is the change's. Returns the status to report; SKV_PENDING = not finished yet. */
	int (*fill)(struct waiter *w, struct partition *p, const struct change *ch, int status);
	const void *req;
	void *res;
	struct skv_arena *arena;
	struct skv_error *err;
};

/* How recovery handles a record type (replay.h). */
struct record_ops {
	const char *name;
	/* Decodes the record's payload, prepares and applies it. */
	int (*replay)(struct replay *r, struct skv_rd *in, struct skv_error *err);
};

struct change_ops {
	/* The record that this kind writes; also listed by its type in core->records. */
	struct record_ops record;
	size_t size; /* of the kind's struct */
	/* The apply step; NULL: the prepare step did everything. */
	void (*apply)(struct partition *p, struct change *ch);
	/* Undoes the prepare step; NULL: it did nothing. */
	void (*undo)(struct partition *p, struct change *ch);
	/* Frees what the kind's struct owns, not the struct itself; NULL: nothing. */
	void (*destroy)(struct change *ch);
	/* Returns true if apply frees slots; then it waits until a sync covers the record. NULL:
	 * never. */
	bool (*frees_slots)(const struct change *ch);
	/* Undone as soon as the store is full; other kinds may use the store's reserve. */
	bool makes_more;
};

struct change {
	const struct change_ops *ops;
	struct change *next;
	uint64_t number;
	bool urgent;  /* may use the store's reserve */
	bool relaxed; /* may be applied before it is synced, unless that frees slots */
	/* Blocks that apply works through: after many the lock is released for a moment. */
	size_t blocks;
	struct skv_buf rec;
	/* Under the core's lock; the committer checks without it whether there are any. */
	struct waiter *_Atomic waiters;
};

/* NULL: out of memory. */
struct change *change_make(const struct change_ops *ops);
void change_destroy(struct change *ch); /* NULL is allowed */
/* Under the write lock: queues a change whose record is complete. */
void change_queue(struct partition *p, struct change *ch);
/* `w` is answered when the change has ended. */
void change_wait(struct change *ch, struct waiter *w);
/* A `frees_slots` of kinds whose changes always free slots: returns true. */
bool change_frees_slots(const struct change *ch);

#endif
