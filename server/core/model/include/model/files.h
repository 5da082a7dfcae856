/* files.h - the slab files of a volume, and which of them drain. */
#ifndef SKV_CORE_MODEL_FILES_H
#define SKV_CORE_MODEL_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct slot;
struct volume;

/* Partitions share a slab directory: a file's number names its partition. Partition 0's are those
 * of stores from before there were several. */
#define FILE_SHIFT 24
static inline uint32_t file_first_number(uint32_t partition) { return partition << FILE_SHIFT; }
static inline bool file_is_of(uint32_t number, uint32_t partition)
{
	return number >> FILE_SHIFT == partition;
}

/* A slab file. Its number is never reused, not even after its removal: clients keep files open, and
 * a late write must not reach another file's bytes. */
enum file_state {
	FILE_IN_USE, /* or draining */
	/* Empty, not named by anything durable, and its removal can no longer be cancelled. */
	FILE_GOING,
	/* Removed from the registry and the pool. Only its name and its document may still
	 * exist. */
	FILE_GONE,
};
/* A scrub of its slots (ops/scrub.c). Wall clock times: durable, and only told and compared. */
struct file_check {
	uint64_t checked_ms; /* when the last whole pass began; 0 = there was none */
	uint64_t began_ms;   /* the current pass; 0 = none */
	uint32_t unit, slot; /* where the next portion begins */
	bool handed_out;     /* all portions of the pass are with movers, or done */
	/* Committed slots, and those without a checksum: as of the last pass, and in this one. */
	uint64_t slots, unsummed, saw_slots, saw_unsummed;
};
struct volume_file {
	uint32_t number;
	struct file_check check;
	enum file_state state;
	uint64_t length;
	uint64_t version; /* of its document */
	bool rests; /* set when created: the file existed before and may have unknown writers */
	/* Why it drains, if it does; if the storage drains, all of its files do. */
	bool drains; /* as listed to users */
	bool closed; /* to new blocks: drains or is bad; as set in the pool */
	bool asked;  /* an administrator asked for it; durable */
	bool asked_move; /* and that its blocks are moved, not evicted */
	bool shrink; /* the file exceeds the capacity; decided anew after a restart */
	bool removed; /* of one that is gone: its name was removed too */
	/* Results of file checks (bad_files.c): */
	/* Why its bytes are missing, a constant; nothing is placed in it, its blocks are misses. */
	const char *bad;
	uint64_t bad_since; /* boot time ms of the first check that was certain; 0 = none was */
	bool lost;          /* given up permanently; durable */
	/* The scan of its slots (drain.c): */
	uint32_t pass, unit, slot;
	bool picked;       /* something was picked in this pass */
	uint64_t oldest;   /* oldest use, ms */
	uint64_t again_at; /* boot time ms: nothing to do before */
	/* A drain that moves (ops/move.c), as of the last full pass and in the current one: slots
	 * that no mover can move, as they have no checksum; and those without room elsewhere. */
	uint64_t unsummed, roomless, saw_unsummed, saw_roomless;
	/* Of a drain that evicts: blocks that movers move all the same, as they have copies. */
	uint64_t replicated, saw_replicated;
	bool empty;        /* since before the snapshot after this one: */
	uint64_t snapshot;
	/* Slots being written, or pinned hard, as of the last full pass; */
	uint64_t writing, pinned;
	uint64_t saw_writing, saw_pinned; /* and in the current pass */
};
/* Returns true if the slot is in a readable file, and its bytes are not known to be damaged. */
bool slot_readable(const struct partition *p, const struct slot *s);

/* Includes gone files; NULL: unknown number, or completely removed. */
struct volume_file *file_find(const struct volume *s, uint32_t number);
/* The first file that is not gone, of this number or above; NULL: none. */
struct volume_file *file_next(const struct volume *s, uint32_t from);
/* Adds a file with number, length, version, asked and state. A known number changes nothing. */
int file_add(struct volume *s, const struct volume_file *f);
int file_add_claim(struct volume *s);
uint32_t file_next_number(const struct volume *s); /* number of the file that growth makes next */
bool file_drains(const struct volume *s, const struct volume_file *f);
/* Returns true if the file drains by moves, not by eviction. Not if it is lost, or the capacity
 * takes it too. */
bool file_moves(const struct volume *s, const struct volume_file *f);
/* Restarts the scan of the file, because its blocks leave in another way than before. */
void file_scan_again(struct volume_file *f);
/* Makes the pool's file open or closed to match; call after any change. */
void file_settle(struct volume *s, struct volume_file *f);
void files_settle(struct volume *s);
/* No slot of it is taken, and nothing durable names it: it stops draining and goes. */
void file_going(struct volume *s, struct volume_file *f);
/* Removes the file from the pool, after its document became GONE. */
void file_gone(struct volume *s, struct volume_file *f);
void file_forget(struct volume *s, struct volume_file *f);
/* Records a check's result: why its bytes are missing (a constant; NULL: they are there), and
 * whether that is certain. */
void file_found(struct volume *s, struct volume_file *f, const char *bad, bool certain,
		uint64_t now);
/* Gives the file up with everything in it, whatever holds it. */
void file_lose(struct volume *s, struct volume_file *f);
/* The volume was unhealthy: earlier findings count only from the next check on. */
void files_doubt(struct volume *s);
void files_free(struct volume *s);

#endif
