/* fault_store.h - a store that is stacked on an opened one and fails on demand. */
#ifndef SKV_TESTS_FAULT_STORE_H
#define SKV_TESTS_FAULT_STORE_H

#include <skv/store.h>

enum skv_fault_kind {
	SKV_FAULT_NONE,
	SKV_FAULT_ERROR, /* the call fails with `status` without reaching the store below */
	SKV_FAULT_DELAY,          /* sleeps delay_ms, then asks */
	SKV_FAULT_UNKNOWN_BEFORE, /* returns SKV_E_UNKNOWN_OUTCOME without asking */
	SKV_FAULT_UNKNOWN_AFTER,  /* asks, then returns SKV_E_UNKNOWN_OUTCOME */
	SKV_FAULT_CALL,           /* calls fn first: for events in the middle of a call */
};
struct skv_fault {
	enum skv_fault_kind kind;
	const char *call;   /* "append", "renew"...; NULL = every call */
	uint64_t at;        /* the n-th matching call from now on (1 = next); 0 = every one */
	uint64_t times;     /* for how many calls from then on; 0 = unlimited */
	int status;         /* for ERROR */
	uint32_t delay_ms;  /* for DELAY */
	/* For CALL: on the caller's thread, no lock held; may replace the rule. */
	void (*fn)(void *ctx, const char *call);
	void *ctx;
};
/* Wraps `below` (then owned by the new store). */
int skv_fault_store_open(struct skv_store *below, struct skv_store **out, struct skv_error *err);
/* Replaces the rule. Any thread. */
void skv_fault_store_set(struct skv_store *s, const struct skv_fault *rule);
/* Matching calls seen since the rule was set. */
uint64_t skv_fault_store_seen(const struct skv_store *s);

#endif
