/*
 * plan.c - merges adjacent slots into runs (see plan.h).
 *
 * A run ends where the file changes, where there is a gap (slots with padding after their bytes),
 * or at SKV_RUN_IOV buffers. Gaps are not read over: reading bytes nobody asked for costs
 * bandwidth on the storage, and writing over them is out of the question.
 */
#include "plan.h"

#include <stdlib.h>

#include <skv/check.h>

static int by_place(const void *pa, const void *pb)
{
	const struct skv_piece *a = *(struct skv_piece *const *)pa;
	const struct skv_piece *b = *(struct skv_piece *const *)pb;

	if (a->file_index != b->file_index)
		return a->file_index < b->file_index ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

/* Sorted list of the pieces that take part; those that overlap their predecessor are refused. */
static void order_pieces(struct skv_piece *pieces, uint32_t n, struct skv_plan *p)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (pieces[i].status == SKV_OK && pieces[i].done < pieces[i].length)
			p->order[p->n_order++] = &pieces[i];
	qsort(p->order, p->n_order, sizeof p->order[0], by_place);
	for (uint32_t i = 0; i < p->n_order; i++) {
		struct skv_piece *last = kept > 0 ? p->order[kept - 1] : NULL;
		struct skv_piece *piece = p->order[i];

		if (last && last->file_index == piece->file_index &&
		    piece->offset < last->offset + last->length)
			piece->status = SKV_E_CORRUPT;
		else
			p->order[kept++] = piece;
	}
	SKV_CHECK(kept <= p->n_order && p->n_order <= n);
	p->n_order = kept;
}

static bool follows(const struct skv_io_run *run, const struct skv_piece *piece)
{
	return run->file == piece->file && run->offset + run->length == piece->offset &&
	       run->n_iov < SKV_RUN_IOV;
}

int skv_plan_make(struct skv_piece *pieces, uint32_t n, struct skv_arena *a, struct skv_plan *out)
{
	struct iovec *iov = skv_arena_calloc(a, n, sizeof *iov);

	*out = (struct skv_plan){ .order = skv_arena_calloc(a, n, sizeof(struct skv_piece *)),
				  .runs = skv_arena_calloc(a, n, sizeof(struct skv_io_run)) };
	if (!iov || !out->order || !out->runs)
		return SKV_E_NOMEM;
	order_pieces(pieces, n, out);
	for (uint32_t i = 0; i < out->n_order; i++) {
		struct skv_piece *piece = out->order[i];
		struct skv_io_run *run = out->n_runs > 0 ? &out->runs[out->n_runs - 1] : NULL;

		if (!run || !follows(run, piece)) {
			run = &out->runs[out->n_runs++];
			*run = (struct skv_io_run){ .file = piece->file,
						    .offset = piece->offset,
						    .iov = &iov[i] };
		}
		piece->run = out->n_runs - 1;
		piece->run_at = run->length;
		iov[i] = (struct iovec){ piece->data, piece->length };
		run->n_iov++;
		run->length += piece->length;
		SKV_CHECK(run->n_iov <= SKV_RUN_IOV && run->length >= piece->length);
		SKV_CHECK(piece->run_at + piece->length == run->length &&
			  piece->offset == run->offset + piece->run_at);
	}
	return SKV_OK;
}

void skv_plan_settle(const struct skv_plan *plan)
{
	for (uint32_t i = 0; i < plan->n_order; i++) {
		struct skv_piece *piece = plan->order[i];
		const struct skv_io_run *run = &plan->runs[piece->run];
		bool sound = SKV_CHECK(piece->run < plan->n_runs) &&
			     SKV_CHECK(run->done <= run->length) &&
			     SKV_CHECK(piece->run_at + piece->length <= run->length);
		uint64_t moved = run->done > piece->run_at ? run->done - piece->run_at : 0;

		if (!sound) {
			piece->status = SKV_E_INTERNAL;
			continue;
		}
		piece->done = moved < piece->length ? moved : piece->length;
		piece->ended_ms = run->ended_ms;
		if (piece->done < piece->length)
			piece->status = run->status;
	}
}
