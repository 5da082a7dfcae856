/* format.h - numbers of the durable record format, for those that write and read them. */
#ifndef SKV_CORE_JOURNAL_FORMAT_H
#define SKV_CORE_JOURNAL_FORMAT_H

#define RECORD_VERSION 1u
#define HOLD_NUMBERED (1ull << 63) /* in a hold's stride: its slots lie at multiples of it, */
#define HOLD_GEOMETRY (1ull << 62) /* or its class follows: alignment, and whether it is segmented */

enum start_flags { START_ANONYMOUS = 1, START_GRACE = 2, START_NAMES = 4, START_INDEPENDENT = 8 }; /* of a START */

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
	RECORD_PIN = 9, /* in checkpoints, too */
	RECORD_HORIZONS = 10, /* in checkpoints, too */
	/* checkpoint only */
	RECORD_BLOCKS = 16,
	RECORD_ENDED = 17,
	RECORD_HOLD = 18,
	RECORD_COUNTERS = 19,
	RECORD_BIRTHS = 20,
	RECORD_NAMED_BLOCKS = 21,
	RECORD_LEASES = 22,
	RECORD_TYPES, /* their end */
};

#endif
