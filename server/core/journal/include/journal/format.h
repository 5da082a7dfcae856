/* format.h - constants of the durable record format, shared by encoders and decoders. */
#ifndef SKV_CORE_JOURNAL_FORMAT_H
#define SKV_CORE_JOURNAL_FORMAT_H

#define RECORD_VERSION 1u
/* Flag in a hold's stride: its slots are at multiples of the stride, */
#define HOLD_NUMBERED (1ull << 63)
/* Or its class follows: alignment, and whether it is segmented. */
#define HOLD_GEOMETRY (1ull << 62)

/* of a START record */
enum start_flags { START_ANONYMOUS = 1, START_GRACE = 2, START_NAMES = 4, START_INDEPENDENT = 8 };

/* Of a run of a REMOVE_SLOTS, below its length - 1. */
enum remove_flags { REMOVE_SAME_SLAB = 1, REMOVE_DOWN = 2 };
#define REMOVE_COUNT_SHIFT 2u

/* Of a run of uses, below its length - 1: in the slab of the run before; used as that one. */
enum uses_flags { USES_SAME_SLAB = 1, USES_SAME = 2 };
#define USES_COUNT_SHIFT 2u
#define USES_AGE_SHIFT 9u /* ms since the use, above its frequency and tag as in a CHUNK */

/* Of an entry of a CHUNK, */
enum chunk_flags { CHUNK_NEXT_PLACE = 1, CHUNK_PARENT = 2, CHUNK_SLOTS = 4, CHUNK_ALL_SPECS = 8 };
#define CHUNK_USE_SHIFT 9u /* use of the entry, above its frequency and tag; */
/* and of one of its slots. */
enum chunk_slot_flags {
	CHUNK_SAME_SLAB = 1,
	CHUNK_NEXT_SLOT = 2,
	CHUNK_NEXT_GENERATION = 4,
	CHUNK_CHECKSUM = 8,
};

enum record_type {
	/* journal */
	RECORD_START = 1,
	RECORD_FINISH = 2,
	RECORD_END = 3,
	RECORD_REMOVE = 4,
	RECORD_HORIZON = 5,
	RECORD_DROP = 6,
	RECORD_PARTIAL = 7,
	RECORD_CLEAR = 8,
	RECORD_PIN = 9, /* also in checkpoints */
	RECORD_HORIZONS = 10, /* also in checkpoints */
	RECORD_REMOVE_SLOTS = 11,
	RECORD_MOVED = 12,
	RECORD_CHECKED = 14, /* also in checkpoints */
	RECORD_LINK = 15,    /* the first of each batch; in checkpoints: the end of the journal */
	/* checkpoint only */
	RECORD_ENDED = 17,
	RECORD_HOLD = 18, /* also in the journal: targets of moves */
	RECORD_COUNTERS = 19,
	RECORD_BIRTHS = 20,
	RECORD_LEASES = 22,
	RECORD_CHUNK = 23,
	RECORD_TYPES, /* number of types */
};

#endif
