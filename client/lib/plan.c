/*
 * plan.c - merges neighbouring slots into runs (see plan.h).
 *
 * A run ends where the file changes, where there is a gap (slots with padding after their bytes),
 * or at KVB_RUN_IOV buffers. Gaps are not read over: reading bytes nobody asked for costs
 * bandwidth on the storage, and writing over them is out of the question.
 */
#include "plan.h"

#include <stdlib.h>

static int by_place(const void *pa, const void *pb)
{
	const struct kvb_piece *a = *(struct kvb_piece *const *)pa;
	const struct kvb_piece *b = *(struct kvb_piece *const *)pb;

	if (a->file_index != b->file_index)
		return a->file_index < b->file_index ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

/* Sorted list of the pieces that take part; those that overlap their predecessor are refused. */
static void order_pieces(struct kvb_piece *pieces, uint32_t n, struct kvb_plan *p)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (pieces[i].status == KVB_OK && pieces[i].done < pieces[i].length)
			p->order[p->n_order++] = &pieces[i];
	qsort(p->order, p->n_order, sizeof p->order[0], by_place);
	for (uint32_t i = 0; i < p->n_order; i++) {
		struct kvb_piece *last = kept > 0 ? p->order[kept - 1] : NULL;
		struct kvb_piece *piece = p->order[i];

		if (last && last->file_index == piece->file_index &&
		    piece->offset < last->offset + last->length)
			piece->status = KVB_E_CORRUPT;
		else
			p->order[kept++] = piece;
	}
	p->n_order = kept;
}

static bool follows(const struct kvb_io_run *run, const struct kvb_piece *piece)
{
	return run->file == piece->file && run->offset + run->length == piece->offset &&
	       run->n_iov < KVB_RUN_IOV;
}

int kvb_plan_make(struct kvb_piece *pieces, uint32_t n, struct kvb_arena *a, struct kvb_plan *out)
{
	struct iovec *iov = kvb_arena_calloc(a, n, sizeof *iov);

	*out = (struct kvb_plan){ .order = kvb_arena_calloc(a, n, sizeof(struct kvb_piece *)),
				  .runs = kvb_arena_calloc(a, n, sizeof(struct kvb_io_run)) };
	if (!iov || !out->order || !out->runs)
		return KVB_E_NOMEM;
	order_pieces(pieces, n, out);
	for (uint32_t i = 0; i < out->n_order; i++) {
		struct kvb_piece *piece = out->order[i];
		struct kvb_io_run *run = out->n_runs > 0 ? &out->runs[out->n_runs - 1] : NULL;

		if (!run || !follows(run, piece)) {
			run = &out->runs[out->n_runs++];
			*run = (struct kvb_io_run){ .file = piece->file,
						    .offset = piece->offset,
						    .iov = &iov[i] };
		}
		piece->run = out->n_runs - 1;
		piece->run_at = run->length;
		iov[i] = (struct iovec){ piece->data, piece->length };
		run->n_iov++;
		run->length += piece->length;
	}
	return KVB_OK;
}

void kvb_plan_settle(const struct kvb_plan *plan)
{
	for (uint32_t i = 0; i < plan->n_order; i++) {
		struct kvb_piece *piece = plan->order[i];
		const struct kvb_io_run *run = &plan->runs[piece->run];
		uint64_t moved = run->done > piece->run_at ? run->done - piece->run_at : 0;

		piece->done = moved < piece->length ? moved : piece->length;
		piece->ended_ms = run->ended_ms;
		if (piece->done < piece->length)
			piece->status = run->status;
	}
}
