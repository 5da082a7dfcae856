/*
 * meta.h - helpers of the meta operations: a request's keys, its instance's settings, an answer's
 * locations.
 */
#ifndef KVCM_META_H
#define KVCM_META_H

#include <skv/kvcm.h>
#include <skv/portions.h>

#include "op_list.h"

/* ---- meta.c ---------------------------------------------------------------------------------- */

/* The keys that a request means. */
struct kvcm_keys {
	struct skv_key *v;
	uint32_t n;
};

/* Limit of keys of a request whose operation calls the core in portions of SKV_MAX_KEYS. */
#define KVCM_MAX_KEYS (1u << 20)
#define KVCM_MAX_PORTIONS (KVCM_MAX_KEYS / SKV_MAX_KEYS)
/* Specs of blocks in one answer: as many as those of the largest portion. */
#define KVCM_MAX_PLACES (SKV_MAX_KEYS * SKV_MAX_SPECS)

/* block_keys, or without them those of token_ids in blocks of the instance, `max` at most.
 * SKV_E_INVALID as kvcm_missing when both are empty. */
int kvcm_take_keys(struct kvcm_request *k, const char *instance, const int64_t *block_keys,
		   size_t n_block_keys, const int64_t *token_ids, size_t n_token_ids, uint32_t max,
		   struct kvcm_keys *out);

/* Keeps the keys that the mask leaves, in their order. index[i] (NULL: not wanted) is the number
 * that the i-th of them had before. */
int kvcm_take_unmasked(struct kvcm_request *k, const ProtobufCMessage *block_mask,
		       struct kvcm_keys *keys, uint32_t *index);
/* Appends n locations of a portion at `to`, and the files of the portion, which get numbers behind
 * those that are there. */
void kvcm_append_places(struct skv_files *files, struct skv_location *to,
			const struct skv_files *more, const struct skv_location *loc, size_t n);
/* Takes repeated ones out. Of each there was: once[i], which of those that are left it is, and
 * again[i], whether it was repeated; NULL: not wanted. */
int kvcm_keys_once(struct kvcm_request *k, struct kvcm_keys *keys, uint32_t *once, bool *again);
/* Checks whether an answer can hold this many blocks, each with all its specs and `more` beside
 * them. Not called for a single portion. SKV_E_TOO_LARGE, naming the field that was sent: keys, or
 * `tokens`. */
int kvcm_check_places(struct kvcm_request *k, const char *instance, uint32_t n, uint32_t more,
		      bool tokens);
/* skv_core_states, portion by portion. */
int kvcm_states(struct kvcm_request *k, const struct skv_states_req *req,
		struct skv_states_res *res);
/* The instance of the request; *out lives in the call's arena. SKV_E_NOT_FOUND. */
int kvcm_take_instance(struct kvcm_request *k, const char *instance,
		       const struct skv_instance_spec **out);
/* As it was registered. SKV_E_NOT_FOUND, SKV_E_NOMEM. */
int kvcm_take_info(struct kvcm_request *k, const char *instance,
		   const KvcmMeta__InstanceInfo **out);

/* Places of an answer's files as clients see them, for kvcm_locations.roots. NULL: no memory.
 * `to_read`: through SKV_STORAGE_LINK. The peer's SDK creates what it writes where it is missing,
 * so on a host without the mount it would read its own empty file as zeros. */
const char *kvcm_root_to_read(struct kvcm_request *k, const struct skv_file_ref *file); /* of one */
const char *const *kvcm_roots(struct kvcm_request *k, const struct skv_files *files, bool to_read);
/* Lets the answer's field be written from `l`, which stays as it is until then. */
void kvcm_splice(struct kvcm_request *k, unsigned at, struct kvcm_locations *l);

/* ---- ask.c: lookups in portions -------------------------------------------------------------- */

struct kvcm_ask {
	/* The caller's: how, PREFIX or BATCH for more keys than SKV_MAX_KEYS. */
	struct skv_lookup_req req;
	struct skv_lookup_res res; /* of all portions, once they are joined */
	struct kvcm_request *k;
	struct kvcm_keys keys;
	struct skv_portions list;
	struct skv_lookup_res *part[KVCM_MAX_PORTIONS];
	uint32_t n_parts;
	uint32_t rows; /* found so far, by a prefix; requested, by others */
};
/* Starts the lookups; after SKV_PENDING the call's done is called. `ask` must live as long as the
 * call. */
int kvcm_ask(struct kvcm_request *k, const struct kvcm_keys *keys, struct kvcm_ask *ask);
/* When that is done. */
int kvcm_ask_join(struct kvcm_ask *ask);
/* Then: what was asked for were keys from `at` on of `n`; all others are misses. */
int kvcm_ask_place(struct kvcm_ask *ask, uint32_t at, uint32_t n);
/* Nothing is leased or used by these. Counts the keys that a lookup would match: BATCH all, other
 * modes up to the first portion that does not match wholly. */
int kvcm_lengths(struct kvcm_request *k, const struct kvcm_keys *keys,
		 const struct skv_lookup_req *how, uint32_t *sum);
/* A portion with the last window, if there is any; `how`: WINDOW, of half a portion at most. */
int kvcm_find_window(struct kvcm_request *k, const struct kvcm_keys *keys,
		     const struct skv_lookup_req *how, uint32_t *begin, uint32_t *n);
/* Finds the states that HYBRID reports; `how` selects the specs. */
int kvcm_find_states(struct kvcm_request *k, const struct kvcm_keys *keys,
		     const struct skv_lookup_req *how, uint32_t *out);

/* ---- columns.c: specs as bits ---------------------------------------------------------------- */

/* Bits of the specs of a group, in order of registration. */
uint32_t kvcm_group_columns(const KvcmMeta__InstanceInfo *info,
			    const KvcmMeta__LocationSpecGroup *group);
/* Bits of the groups whose names begin with "full" or "FULL", and of all others. False unless
 * there is one of each kind. */
bool kvcm_hybrid_columns(const KvcmMeta__InstanceInfo *info, uint32_t *full, uint32_t *state);

/* ---- lease.c --------------------------------------------------------------------------------- */

/* How long what is found must stay where it is: what the instance's group promises, a second at
 * least. Remembered for a second or two. */
uint32_t kvcm_lease_ms(struct kvcm_request *k, const char *instance);
/* Returns true if the instance holds only sliding windows, whose blocks are evicted each by its own
 * use. Remembered as long. */
bool kvcm_has_windows(struct kvcm_request *k, const char *instance);

/* ---- want.c: copies and moves by movers ------------------------------------------------------ */

/* skv_core_want; what is wrong with `from` or `to` is told by KVCM's names of these fields. */
int kvcm_want(struct kvcm_request *k, const struct skv_want_req *req, const char *from,
	      const char *to, struct skv_want_res *res);
/* ErrorCode of a block. */
int kvcm_want_code(enum skv_want_outcome outcome);
const char *kvcm_want_word(enum skv_want_outcome outcome);
/* "2 for slabkv mover to copy, 1 there already"; "none". */
const char *kvcm_want_words(struct kvcm_request *k, const uint32_t count[SKV_WANT_OUTCOMES]);

/* ---- empty.c: sessions with nothing to write ------------------------------------------------- */

enum kvcm_empty { KVCM_EMPTY_NONE, KVCM_EMPTY_OPEN, KVCM_EMPTY_OVER };

/* An id that tells by itself whose it is and when it ends: nothing is remembered of it. */
void kvcm_empty_make(struct kvcm_request *k, const char *instance,
		     char out[SKV_SESSION_ID_HEX + 1]);
/* Checks whether the session is an empty one of the instance. Not NONE: open still, or over. */
enum kvcm_empty kvcm_empty_check(struct kvcm_request *k, const char *instance, const char *id);

/* ---- sessions.c: sessions of more blocks than the core takes at once ------------------------- */

/* A session of the core. */
struct kvcm_session {
	char id[SKV_SESSION_ID_HEX + 1];
	uint32_t n_blocks; /* blocks written in the session; not 0 */
};
/* The client's id of them all; of one, its own. NULL: no memory. */
char *kvcm_sessions_text(struct kvcm_request *k, const struct kvcm_session *v, uint32_t n);
/* Returns the number of sessions in such an id; 0: a single session's id, or none at all. */
uint32_t kvcm_sessions_read(const char *id, struct kvcm_session v[KVCM_MAX_PORTIONS]);

/* ---- the operations -------------------------------------------------------------------------- */

/* Registers, or finds the same there. *storage_configs (NULL: not wanted)
 * becomes the answer's text. */
int kvcm_register(struct kvcm_request *k, const KvcmMeta__RegisterInstanceRequest *req,
		  char **storage_configs);

#endif
