/*
 * start_line.c - starts that wait for room: they join and leave the queue of their group, and end
 * without slots when that cannot be served, or what they are to write is deleted.
 *
 * No state of its own. Under the write lock.
 */
#include "start_line.h"

#include <assert.h>
#include <string.h>

#include <skv/key_set.h>
#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/objects.h>
#include <model/partition.h>
#include <ops/start.h>

void start_join_line(struct partition *p, struct group *g, struct start_op *op)
{
	ASSERT_EXCLUSIVE(p);
	op->next = NULL;
	if (g->wait_tail)
		g->wait_tail->next = op;
	else
		g->wait_head = op;
	g->wait_tail = op;
	p->n_waiting++;
	COUNT(p->core, start_waits, 1);
}

struct start_op *start_leave_line(struct partition *p, struct group *g, struct start_op *before)
{
	struct start_op **at = before ? &before->next : &g->wait_head, *op = *at;

	assert(op && p->n_waiting > 0);
	*at = op->next;
	if (g->wait_tail == op)
		g->wait_tail = before;
	p->n_waiting--;
	return op;
}

void start_fail_line(struct partition *p, struct group *g, int status, const char *text)
{
	ASSERT_EXCLUSIVE(p);
	while (g->wait_head) {
		struct start_op *op = start_leave_line(p, g, NULL);

		core_complete(p->core, &op->w.completion,
			      skv_fail(op->w.err, status, NULL, "%s", text));
	}
}

void start_fail_waiters(struct partition *p, int status, const char *text)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < p->n_group; i++)
		start_fail_line(p, p->group[i], status, text);
}

/* ---- deleted while they wait ----------------------------------------------------------------- */

/* The keys that are deleted. */
struct doomed {
	const struct waiting_of *of;
	struct skv_key_set set;
	uint32_t *cells; /* NULL: all */
};

static int make_doomed(const struct waiting_of *of, struct doomed *out)
{
	*out = (struct doomed){ .of = of };
	if (!of->n_keys)
		return SKV_OK;
	out->cells = skv_calloc(skv_key_set_cells(of->n_keys), sizeof *out->cells);
	if (!out->cells)
		return SKV_E_NOMEM;
	skv_key_set_init(&out->set, out->cells, of->n_keys);
	for (uint32_t i = 0; i < of->n_keys; i++)
		*skv_key_set_find(&out->set, of->keys, of->keys[i]) = i + 1;
	return SKV_OK;
}

static bool is_doomed(const struct partition *p, const struct doomed *d, const struct start_op *op)
{
	const struct skv_start_req *req = op->w.req;
	const uint64_t began = skv_wall_ms(p->core->clock) - skv_now_ms(p->core->clock) + op->since;

	if (strcmp(req->tenant, d->of->tenant) != 0 || strcmp(req->instance, d->of->instance) != 0)
		return false;
	for (uint32_t i = 0; d->cells && i < req->n_keys; i++)
		if (*skv_key_set_find(&d->set, d->of->keys, req->keys[i]))
			return true;
	return !d->cells && began >= d->of->from_ms && began <= d->of->to_ms;
}

static void end_in_line(struct partition *p, struct group *g, const struct doomed *d)
{
	struct start_op *before = NULL, *op;

	ASSERT_EXCLUSIVE(p);
	while ((op = before ? before->next : g->wait_head) != NULL) {
		if (!is_doomed(p, d, op)) {
			before = op;
			continue;
		}
		start_leave_line(p, g, before);
		core_complete(p->core, &op->w.completion,
			      skv_fail(op->w.err, SKV_E_SESSION_ENDED, NULL,
				       "its blocks were deleted while it waited for room"));
	}
}

int start_end_waiting(struct partition *p, const struct waiting_of *of)
{
	struct doomed d;
	int rc;

	ASSERT_EXCLUSIVE(p);
	if (!p->n_waiting)
		return SKV_OK;
	rc = make_doomed(of, &d);
	for (size_t i = 0; rc == SKV_OK && i < p->n_group; i++)
		end_in_line(p, p->group[i], &d);
	skv_free(d.cells);
	return rc;
}
