/*
 * files.h - the slab files of a volume: which there are, and which of them drain.
 */
#ifndef SKV_CORE_MODEL_FILES_H
#define SKV_CORE_MODEL_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct slot;
struct volume;

/* A slab file. Its number is never given again, not even to the next one when it has gone: clients keep files open, and
 * what a late one writes must not reach another's bytes. */
enum file_state {
	FILE_IN_USE, /* or draining */
	FILE_GOING,  /* nothing is in it, nothing durable names it, and nobody may want it back any more */
	FILE_GONE,   /* by the registry, too; no file of the pool. Only its name and its document may be there yet */
};
struct volume_file {
	uint32_t number;
	enum file_state state;
	uint64_t length;
	uint64_t version; /* of its document */
	bool rests;       /* while it is made: it was there before, and has writers that nobody knows */
	/* Why it drains, if it does; if the storage does, all of its files do. */
	bool drains; /* as it is listed */
	bool closed; /* to new blocks: it drains, or is bad; as the pool has it */
	bool asked;  /* an administrator wants it; durable */
	bool shrink; /* the capacity has no room for it; found anew after a restart */
	bool removed; /* of one that is gone: its name, too */
	/* What the looks at it found (bad_files.c): */
	const char *bad;    /* its bytes are not there: why, a constant; nothing is placed in it, its blocks are misses */
	uint64_t bad_since; /* boot time ms of the first look that was certain of it; 0 = none was */
	bool lost;          /* given up for good; durable */
	/* The walk through its slots (drain.c): */
	uint32_t pass, unit, slot;
	bool picked;       /* something in this pass */
	uint64_t oldest;   /* use, ms */
	uint64_t again_at; /* boot time ms: there is nothing to do before */
	bool empty;        /* since before the snapshot after this one: */
	uint64_t snapshot;
	uint64_t writing, pinned;         /* slots of blocks that are being written, or pinned hard, when it last came through; */
	uint64_t saw_writing, saw_pinned; /* and in the pass that goes on */
};
/* Does the slot lie in a file that can be read? */
bool slot_readable(const struct partition *p, const struct slot *s);

/* Gone ones included; NULL: no such number was given, or nothing of it is left. */
struct volume_file *file_find(const struct volume *s, uint32_t number);
/* The first one that is there (not gone) of this number or above, NULL: none. */
struct volume_file *file_next(const struct volume *s, uint32_t from);
/* A new one with number, length, version, asked and state. One that is known already is no error: nothing changes. */
int file_add(struct volume *s, const struct volume_file *f);
int file_add_claim(struct volume *s);
uint32_t file_next_number(const struct volume *s); /* that growth makes */
bool file_drains(const struct volume *s, const struct volume_file *f);
/* The pool follows what is wanted of the file; again, whenever that has changed. */
void file_settle(struct volume *s, struct volume_file *f);
void files_settle(struct volume *s);
/* No slot of it is taken, and nothing durable names it: it drains no more, it goes. */
void file_going(struct volume *s, struct volume_file *f);
/* Its document tells so: the pool forgets it. */
void file_gone(struct volume *s, struct volume_file *f);
void file_forget(struct volume *s, struct volume_file *f);
/* A look has found that its bytes are not there (NULL: that they are), and whether that is for certain. A constant. */
void file_found(struct volume *s, struct volume_file *f, const char *bad, bool certain, uint64_t now);
/* Given up: what is in it goes, whatever holds it. */
void file_lose(struct volume *s, struct volume_file *f);
/* The volume was not well: what was found before counts from the next look on. */
void files_doubt(struct volume *s);
void files_free(struct volume *s);

#endif
