/*
 * change.h - a journaled change: what the journal knows of it, and the operations that its kind brings along.
 *
 * A change of state has two steps. *Prepare* happens under the lock when the request is accepted and its record is
 * queued (slots taken, blocks marked); *apply* when the record is durable (blocks visible, slots free). If the append
 * fails, the prepare step is undone, newest first. So nothing is visible, answered or reused before it is durable.
 *
 * Who changes something in memory makes a change of its kind, does the prepare step, writes its record and queues it. The
 * journal appends the record and calls the kind's operations: it knows no kind by name. A kind is a struct that begins
 * with a struct change, and one constant table, both in the file that owns it.
 *
 * The operations are called under the partition's write lock. Each change ends in exactly one of three ways: apply, when
 * the record is durable; undo, newest first, when it will never be; neither, when what is in memory is not the truth any
 * more and the partition goes. Then its waiters are answered, and it is destroyed.
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

/* Someone who waits for a change. Lives in the request's arena. */
struct waiter {
	struct completion completion;
	struct waiter *next; /* of the same change */
	/* Called under the write lock after the change was applied, or undone, to fill the answer; may be
	 * NULL. `status` is the change's. Returns the status to report; SKV_PENDING = nothing yet, it goes on. */
	int (*fill)(struct waiter *w, struct partition *p, const struct change *ch, int status);
	const void *req;
	void *res;
	struct skv_arena *arena;
	struct skv_error *err;
};

/* What the loader knows of a record type (replay.h). */
struct record_ops {
	const char *name;
	/* Decodes the record's payload, and does both halves. */
	int (*replay)(struct replay *r, struct skv_rd *in, struct skv_error *err);
};

struct change_ops {
	struct record_ops record; /* that its kind writes; listed by its type in the core's table of records */
	size_t size; /* of the kind's struct */
	/* The apply step; NULL: all of it was done early. */
	void (*apply)(struct partition *p, struct change *ch);
	/* Takes the prepare step back; NULL: nothing was done early. */
	void (*undo)(struct partition *p, struct change *ch);
	/* Frees what the kind's struct holds, but not the struct; NULL: nothing. */
	void (*destroy)(struct change *ch);
	/* Does apply make slots free? Then it waits until a sync covers the record. NULL: never. */
	bool (*frees_slots)(const struct change *ch);
	/* It is undone as soon as the store is full; others go on with the store's reserve. */
	bool makes_more;
};

struct change {
	const struct change_ops *ops;
	struct change *next;
	uint64_t number;
	bool urgent;  /* may use the store's reserve */
	bool relaxed; /* need not be synced before its apply step, unless that frees slots */
	size_t blocks; /* that the apply step goes through: others have the lock in between of many */
	struct skv_buf rec;
	struct waiter *_Atomic waiters; /* under the core's lock; the committer asks without it whether there are any */
};

/* NULL: out of memory. */
struct change *change_make(const struct change_ops *ops);
void change_destroy(struct change *ch); /* NULL is allowed */
/* Under the write lock: queues a change whose record is complete. */
void change_queue(struct partition *p, struct change *ch);
/* `w` is answered when the change has ended. */
void change_wait(struct change *ch, struct waiter *w);
/* For frees_slots: always. */
bool change_frees_slots(const struct change *ch);

#endif
