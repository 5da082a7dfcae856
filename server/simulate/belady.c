/*
 * belady.c - the optimum: the block whose next use is last is evicted first, and a block whose next
 * use is later than those of all stored blocks is not stored at all. It looks ahead, so it is a
 * bound and no policy.
 */
#include "run.h"

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#define NEVER UINT32_MAX

/* A max-heap of (next use, block); entries of blocks that were evicted, or used meanwhile, stay
 * until they are on top. */
struct entry {
	uint32_t next;
	uint32_t block;
};

struct belady {
	uint32_t *next_of; /* [n_refs] position of the next reference to the same block */
	uint32_t *next;    /* [n_blocks] next use of a block that is there, 0 = it is not */
	struct entry *heap;
	uint32_t n_heap;
	uint64_t n;
};

static void push(struct belady *s, uint32_t next, uint32_t block)
{
	uint32_t i = s->n_heap++;

	for (; i && s->heap[(i - 1) / 2].next < next; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = (struct entry){ next, block };
	s->next[block] = next;
}

static void pop(struct belady *s)
{
	struct entry last;
	uint32_t i = 0;

	assert(s->n_heap > 0);
	last = s->heap[--s->n_heap];
	for (uint32_t c = 1; c < s->n_heap; c = 2 * i + 1) {
		if (c + 1 < s->n_heap && s->heap[c + 1].next > s->heap[c].next)
			c++;
		if (s->heap[c].next <= last.next)
			break;
		s->heap[i] = s->heap[c];
		i = c;
	}
	s->heap[i] = last;
}

static int prepare(struct belady *s, const struct refs *t)
{
	uint32_t *seen = skv_malloc(t->n_blocks * sizeof *seen);

	s->next_of = skv_malloc(t->n_refs * sizeof *s->next_of);
	s->next = skv_calloc(t->n_blocks, sizeof *s->next);
	s->heap = skv_malloc(t->n_refs * sizeof *s->heap);
	if (seen && s->next_of && s->next && s->heap) {
		memset(seen, 0xff, t->n_blocks * sizeof *seen);
		for (uint32_t i = t->n_refs; i-- > 0;) {
			s->next_of[i] = seen[t->ref[i]];
			seen[t->ref[i]] = i;
		}
	}
	skv_free(seen);
	return seen && s->next_of && s->next && s->heap ? SKV_OK : SKV_E_NOMEM;
}

/* Makes room for one that is used again at `next`. False: all that is there is used earlier. */
static bool make_room(struct run *r, struct belady *s, uint32_t next)
{
	while (s->next[s->heap[0].block] != s->heap[0].next)
		pop(s); /* out of date */
	if (s->heap[0].next <= next)
		return false;
	assert(s->n > 0);
	s->next[s->heap[0].block] = 0;
	pop(s);
	s->n--;
	r->counts.evicted++;
	return true;
}

static void request(struct run *r, struct belady *s, uint32_t q)
{
	const struct refs *t = r->refs;
	struct request_hits h = { 0 };
	bool leading = true;

	for (uint32_t i = t->first[q]; i < t->first[q + 1]; i++) {
		bool hit = s->next[t->ref[i]] != 0;

		leading &= hit;
		h.prefix += leading;
		h.behind += hit && !leading;
		if (hit && s->next_of[i] == NEVER) {
			assert(s->n > 0);
			s->next[t->ref[i]] = 0; /* of no use any more */
			s->n--;
		} else if (hit) {
			push(s, s->next_of[i], t->ref[i]);
		}
	}
	for (uint32_t i = t->first[q]; i < t->first[q + 1]; i++) {
		if (s->next[t->ref[i]] || s->next_of[i] == NEVER)
			continue;
		if (s->n == r->blocks && !make_room(r, s, s->next_of[i]))
			continue;
		push(s, s->next_of[i], t->ref[i]);
		s->n++;
		h.written++;
	}
	assert(s->n <= r->blocks);
	run_note(r, q, h);
}

int run_belady(struct run *r)
{
	struct belady s = { 0 };
	int rc = prepare(&s, r->refs);

	if (rc != SKV_OK)
		skv_fail(&r->err, rc, NULL, "%s: out of memory", r->refs->name);
	for (uint32_t q = 0; rc == SKV_OK && q < r->refs->n_requests; q++) {
		request(r, &s, q);
		rc = run_goes_on(r) ? SKV_OK : r->err.status;
	}
	skv_free(s.next_of);
	skv_free(s.next);
	skv_free(s.heap);
	return rc;
}
