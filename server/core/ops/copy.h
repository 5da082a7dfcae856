/* copy.h - copies in fast tiers, made by movers. */
#ifndef SKV_CORE_OPS_COPY_H
#define SKV_CORE_OPS_COPY_H

#include <stdbool.h>
#include <stdint.h>

struct block;
struct copied;
struct copying;
struct found;
struct instance;
struct move;
struct partition;
struct picks;
struct skv_arena;
struct skv_core;
struct skv_done;
struct skv_error;
struct skv_move_finish_req;
struct skv_move_finish_res;
struct skv_move_take_res;

/* Blocks of one instance that are to be copied; NULL: none, or out of memory, but perhaps moves,
 * f->n of them. Under the write lock. In the arena. */
struct copying *copies_find(struct found *f, uint32_t deadline_ms, struct skv_arena *a);
/* For who looks for blocks: those of this instance from now on, to be copied to that volume, or
 * WISH_ANYWHERE. False: it has others. */
bool copies_begin(struct copying *k, const struct instance *inst, const struct instance *copies,
		  uint32_t to);
uint32_t copies_n(const struct copying *k); /* blocks */
bool copies_full(const struct copying *k);
/* Adds the block if its copy is WANTED; a copy of something else is STALE, and added to `stale`.
 * BUSY: its copy comes or goes, or it cannot be read now. */
enum copy_state { COPY_WANTED, COPY_THERE, COPY_BUSY, COPY_STALE };
enum copy_state copies_consider(struct partition *p, struct copying *k, const struct block *b,
				const struct instance *copies, struct picks *stale);
/* Without the lock: as skv_cluster_move_take. */
int copies_start(struct skv_core *c, struct copying *k, struct skv_move_take_res *res,
		 struct skv_error *err, const struct skv_done *done);

/* Ends the move in memory; *out, in the arena, has what is to be told to its session. Under the
 * write lock. SKV_E_NOT_FOUND: that is over. SKV_E_NOMEM: the move goes on. */
int copies_settle(struct partition *p, struct move *m, const struct skv_move_finish_req *req,
		  struct skv_arena *a, struct copied **out, struct skv_error *err);
/* Without the lock: as skv_core_move_finish. */
int copies_finish(struct skv_core *c, struct copied *k, struct skv_arena *a,
		  struct skv_move_finish_res *res, struct skv_error *err,
		  const struct skv_done *done);

/* move.c: fills in a mover's view of the move, without the deadline. */
int move_tell(struct partition *p, const struct move *m, struct skv_arena *a,
	      struct skv_move_take_res *res);

#endif
