/*
 * wheel.c - a timer wheel: 256 slots of 8 ms; a later timer stays in its slot for another round.
 *
 * Calls have deadlines and connections idle times, nearly all of them cleared before they are due,
 * so setting and clearing must cost nothing; a heap would pay for an order that is not needed. One
 * thread.
 */
#include "wheel.h"

#include <assert.h>
#include <stddef.h>

static void link_before(struct timer *head, struct timer *t)
{
	assert(!t->next && head->prev->next == head);
	t->prev = head->prev;
	t->next = head;
	head->prev->next = t;
	head->prev = t;
}

static void unlink_timer(struct timer *t)
{
	assert(t->prev->next == t && t->next->prev == t);
	t->prev->next = t->next;
	t->next->prev = t->prev;
	t->prev = t->next = NULL;
}

static void place(struct wheel *w, struct timer *t)
{
	uint64_t tick = (t->at_ms + WHEEL_MS - 1) / WHEEL_MS;

	if (tick <= w->done)
		tick = w->done + 1;
	link_before(&w->slot[tick % WHEEL_SLOTS], t);
}

void skv_wheel_init(struct wheel *w, uint64_t now_ms)
{
	for (size_t i = 0; i < WHEEL_SLOTS; i++)
		w->slot[i].prev = w->slot[i].next = &w->slot[i];
	w->done = now_ms / WHEEL_MS;
	w->n = 0;
}

void skv_wheel_set(struct wheel *w, struct timer *t, uint64_t at_ms)
{
	skv_wheel_clear(w, t);
	t->at_ms = at_ms;
	place(w, t);
	w->n++;
}

void skv_wheel_clear(struct wheel *w, struct timer *t)
{
	if (!t->next)
		return;
	assert(w->n > 0);
	unlink_timer(t);
	w->n--;
}

void skv_wheel_run(struct wheel *w, uint64_t now_ms)
{
	uint64_t now = now_ms / WHEEL_MS;
	uint64_t first = w->done + 1;

	if (now >= first + WHEEL_SLOTS)
		first = now - WHEEL_SLOTS + 1; /* a whole round: each slot once */
	w->done = now > w->done ? now : w->done;
	for (uint64_t tick = first; tick <= now; tick++) {
		struct timer *slot = &w->slot[tick % WHEEL_SLOTS];
		struct timer due = { .prev = &due, .next = &due };

		/* Detached first: a fired timer may set and clear others of this slot. */
		while (slot->next != slot) {
			struct timer *t = slot->next;

			unlink_timer(t);
			link_before(&due, t);
		}
		while (due.next != &due) {
			struct timer *t = due.next;

			unlink_timer(t);
			if (t->at_ms > now_ms) {
				place(w, t);
				continue;
			}
			assert(w->n > 0);
			w->n--;
			t->fire(t, now_ms);
		}
	}
}

int skv_wheel_wait(const struct wheel *w, uint64_t now_ms)
{
	if (w->n == 0)
		return -1;
	for (uint64_t tick = w->done + 1; tick <= w->done + WHEEL_SLOTS; tick++) {
		const struct timer *slot = &w->slot[tick % WHEEL_SLOTS];

		if (slot->next != slot)
			return tick * WHEEL_MS > now_ms ? (int)(tick * WHEEL_MS - now_ms) : 0;
	}
	return WHEEL_SLOTS * WHEEL_MS;
}
