/*
 * refs.h - a trace prepared for simulation: blocks numbered 0, 1, 2... in the order of their first
 * reference. Read-only once made; any thread.
 */
#ifndef SKV_SIMULATE_REFS_H
#define SKV_SIMULATE_REFS_H

#include <skv/status.h>
#include <skv/trace.h>

#define NO_BLOCK UINT32_MAX

struct refs {
	char name[128];
	uint32_t n_requests;
	uint32_t n_refs;
	uint32_t n_blocks;
	uint32_t n_once;    /* blocks that are referred to once */
	uint32_t *first; /* [n_requests + 1]: request r is ref[first[r]] .. ref[first[r + 1] - 1] */
	uint32_t *ref;      /* [n_refs] blocks */
	uint64_t *at_ms;    /* [n_requests] since the first, never less than the one before */
	uint64_t *id;       /* [n_blocks] as the trace has it */
	uint32_t *parent;   /* [n_blocks] the block before it in every chain, or NO_BLOCK */
	uint64_t input_tokens;
};

/* SKV_E_INVALID names line and element: an id that follows another id than it did before is no
 * chain. SKV_E_TOO_LARGE (2^31 references), SKV_E_NOMEM. `name` is cut. Release with
 * refs_free, also after a failure. */
int refs_make(const struct skv_trace *t, const char *name, struct refs *out, struct skv_error *err);
void refs_free(struct refs *r);

#endif
