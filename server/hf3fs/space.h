/*
 * space.h - names of page spaces: the one place that makes them.
 *
 * Storage and group: pages:<tenant>:<rank>:<namespace>; instance of that tenant:
 * <rank>:<namespace>. Characters outside [A-Za-z0-9._-] are written =XX, a part that would be too
 * long =h and the hash of its bytes, and a negative rank has a _ in front. vLLM's spaces have
 * namespace "vllm".
 */
#ifndef SKV_HF3FS_SPACE_H
#define SKV_HF3FS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/limits.h>
#include <skv/ops.h>

struct space {
	const char *tenant;
	int64_t rank;
	const char *ns; /* n_ns bytes, any */
	size_t n_ns;
	char id[SKV_MAX_NAME + 1]; /* of the instance */
};

#define SPACE_NS_DEFAULT "kv"
#define SPACE_NS_VLLM "vllm"
#define SPACE_NS_MAX 1024u
#define HF3FS_RANK_MAX 999999999999999999 /* 18 digits */

/* A rank in a path or a file: 1..18 digits, leading zeros ignored; with `sign` optionally + or
 * -. */
bool space_rank(const char *s, size_t n, bool sign, int64_t *out);
/* Fills id. The strings are borrowed; the rank has 18 digits at most. */
void space_init(struct space *s, const char *tenant, int64_t rank, const char *ns, size_t n_ns);
/* Of its storage and group. */
void space_name(const struct space *s, char out[SKV_MAX_NAME + 1]);
/* Of a tenant's vLLM spaces: a key exists when all have it, so they must be in one partition. */
void space_family(const char *tenant, char out[SKV_MAX_NAME + 1]);
/* SGLang's pages of full-attention layers, of which a prompt uses those up to the first miss. The
 * other pools (windows, states) may have only the last pages of a prompt. */
bool space_is_main(const struct space *s);
/* Appends the `extra` of the space's instance, NUL-terminated:
 * {"pages":{"rank":0,"namespace":"kv"}}. */
void space_extra(const struct space *s, struct skv_buf *out);
/* The space of an instance; its strings are allocated in `a`. False: it is not a space's. */
bool space_of(const struct skv_instance_spec *i, struct skv_arena *a, struct space *out);

#endif
