/*
 * portions.h - a list that is longer than the core takes at once, cut into portions.
 *
 * The core gets one portion after the other, each when the previous one has been answered; no
 * consistency is guaranteed between two portions. The only loop of this kind: an API provides the
 * request and the handling of an answer. No locks: the portion in progress is touched by the thread
 * that runs it.
 */
#ifndef SKV_PORTIONS_H
#define SKV_PORTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>

/* Length of the next portion of `left` keys. */
static inline uint32_t skv_portion(uint32_t left)
{
	return left < SKV_MAX_KEYS ? left : SKV_MAX_KEYS;
}

struct skv_portions {
	/* Set by the API before skv_portions_run: */
	uint32_t total; /* length of the list; 0: one portion without elements */
	uint32_t most;  /* elements of a portion; 0: SKV_MAX_KEYS */
	/* Asks the core for the elements [at, at + n). Passes `done` where the core may answer
	 * later, and returns the core's result. */
	int (*ask)(void *ctx);
	/* After the answer: true to continue with the next portion, if there is one. *status is
	 * the result of the portion, and becomes that of the list if this was the last one. NULL:
	 * continues after SKV_OK. */
	bool (*take)(void *ctx, int *status);
	void *ctx;
	const struct skv_done *end; /* called with the result after SKV_PENDING */

	uint32_t at, n; /* the newest portion */
	struct skv_done done;
};

/* Asks for the portions from `at` on. SKV_OK, SKV_PENDING, or the result of the portion that ended
 * the list. *p stays in its place until then. */
int skv_portions_run(struct skv_portions *p);

#endif
