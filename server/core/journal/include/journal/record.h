/*
 * record.h - encoders of durable records: the journal's and the checkpoint's (ON_DISK.md).
 */
#ifndef SKV_CORE_JOURNAL_RECORD_H
#define SKV_CORE_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/hash.h>
#include <skv/ops.h>
#include <skv/pool.h>

#include <model/pin.h>

struct chunk;
struct instance;
struct journal_end;
struct move_slot;
struct partition;
struct removal;
struct session;
struct skv_buf;
struct volume;
struct volume_file;

/* A write, committed or given up. */
struct ended {
	struct session *session;
	uint32_t write;
	bool success;
};

/* An instance's lease horizon: the latest end of its leases. */
struct horizon {
	struct instance *inst;
	uint64_t until; /* boot time ms */
};

/* A block whose pin is set or (SKV_PIN_NONE) removed, with its previous pin for the undo. */
struct repin {
	struct skv_key key;
	struct pin from, to;
};

void record_start(struct skv_buf *out, const struct partition *p, const struct session *s);
/* `sums`: [n_write * specs of the session], or NULL. */
void record_finish(struct skv_buf *out, const struct session *s, const uint8_t *success,
		   const uint64_t *sums, uint64_t hold_until, uint64_t now);
void record_end(struct skv_buf *out, const struct session *s, enum skv_session_state state,
		uint64_t hold_until, uint64_t now);
/* Writes the leading removals that belong to one instance, as many as there are of n; returns how
 * many. */
size_t record_remove(struct skv_buf *out, const struct partition *p, const struct removal *r,
		     size_t n, uint64_t now);
/* Progress of the file's scrub; nothing where there was none. */
void record_checked(struct skv_buf *out, const struct partition *p, const struct volume *v,
		    const struct volume_file *f);
/* Writes the leading slots, of n, that belong to one instance; returns their number. The old slots
 * may be leased for leased_ms after the record. */
size_t record_moved(struct skv_buf *out, const struct partition *p, const struct move_slot *v,
		    size_t n, uint64_t leased_ms);
/* Horizon of the current ownership; `clean`: an orderly shutdown follows. */
void record_horizon(struct skv_buf *out, const struct partition *p, bool clean);
void record_horizons(struct skv_buf *out, const struct horizon *v, size_t n, uint64_t now);
void record_clear(struct skv_buf *out, const struct instance *inst, bool drop, uint64_t now);
void record_partial(struct skv_buf *out, const struct ended *v, uint32_t n);
void record_pin(struct skv_buf *out, const struct instance *inst, const struct repin *v, uint32_t n,
		uint64_t now);
/* All pins of the instance, for a checkpoint. */
void record_pins(struct skv_buf *out, const struct partition *p, const struct instance *inst,
		 uint64_t now);
/* Pieces of a checkpoint. */
void record_chunk(struct skv_buf *out, const struct partition *p, const struct chunk *c);
/* Lease ends of its blocks. */
void record_leases(struct skv_buf *out, const struct partition *p, const struct chunk *c,
		   uint64_t now);
/* Appends the chunk's leased slots, as holds. */
void record_chunk_leases(struct skv_buf *out, const struct partition *p, const struct chunk *c,
			 uint64_t now);
void record_ended(struct skv_buf *out, const struct session *s, uint64_t now);
void record_hold(struct skv_buf *out, const struct volume *volume, struct skv_run run,
		 uint64_t left_ms);
/* The counters, and the clock of uses. */
void record_counters(struct skv_buf *out, const struct partition *p);
/* The same, and how the blocks of these entries were used. Entries that
 * have none by now are left out. */
void record_uses(struct skv_buf *out, const struct partition *p, const uint32_t *ids, uint32_t n);
void record_births(struct skv_buf *out, const struct partition *p);
/* Length in bytes of the record at the start of n bytes, 0 if there is none. */
size_t record_length(const void *bytes, size_t n);

#define HORIZON_AHEAD_MS 20000u /* how far a horizon may lie beyond the longest lease */

/* A batch begins with it: `number` is the batch's, the chain that of the end before it. */
void record_link(struct skv_buf *out, const struct partition *p, uint64_t number);
/* The link that a batch begins with. False: it has none. */
bool record_read_link(const void *bytes, size_t n, struct journal_end *out);

#endif
