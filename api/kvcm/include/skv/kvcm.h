/*
 * kvcm.h - what a server of KVCM's API needs besides the messages: keys, masks, locations.
 */
#ifndef SKV_KVCM_H
#define SKV_KVCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/ops.h>
#include <skv/proto_codec.h>
#include <skv/status.h>

/* ---- keys ------------------------------------------------------------------------------------ */

/* Keys of the n / block_size whole blocks of `tokens` into keys[]; a partial block at the end has
 * none. Each key covers all tokens up to its block's end. block_size > 0. */
void kvcm_token_keys(const int64_t *tokens, size_t n, uint32_t block_size, int64_t *keys);

static inline struct skv_key kvcm_core_key(int64_t key)
{
	return (struct skv_key){ .hi = 0, .lo = (uint64_t)key };
}

/* ---- masks ----------------------------------------------------------------------------------- */

enum kvcm_mask_kind { KVCM_MASK_UNSET, KVCM_MASK_OFFSET, KVCM_MASK_BITS };

struct kvcm_mask {
	enum kvcm_mask_kind kind;
	int32_t offset;                 /* OFFSET */
	size_t n;                       /* BITS */
	const protobuf_c_boolean *bits; /* BITS: of the message */
};

/* A BlockMask of the meta or admin service; NULL is an unset one. */
struct kvcm_mask kvcm_mask_of(const ProtobufCMessage *block_mask);

/* For a query or removal of n keys. A negative offset is refused, and with `exact` also an offset
 * over n or a number of bits other than n. Otherwise missing bits mask nothing, an offset over n
 * masks everything. */
int kvcm_mask_check(const struct kvcm_mask *mask, size_t n, bool exact, struct skv_error *err);

/* Returns true if key i is masked out. For a checked mask. */
static inline bool kvcm_mask_skips(const struct kvcm_mask *mask, size_t i)
{
	if (mask->kind == KVCM_MASK_BITS)
		return i < mask->n && mask->bits[i];
	return mask->kind == KVCM_MASK_OFFSET && i < (size_t)mask->offset;
}

/* success_blocks of a finish, in the core's terms (mask_kind, mask_count, mask; allocated in the
 * arena). The core checks that the number of blocks matches the session. Unset means no bits. */
int kvcm_mask_finish(const struct kvcm_mask *mask, struct skv_arena *a, struct skv_finish_req *req,
		     struct skv_error *err);

/* The mask of a started write: a KvcmMeta__BlockMask of the arena that masks all blocks whose
 * outcome[i] is not SKV_START_WRITE. As an offset if the blocks to write are the end of the request
 * (0: all, n: none), else as bits. NULL if out of memory. */
void *kvcm_mask_answer(const uint8_t *outcome, uint32_t n, struct skv_arena *a);

/* ---- storages and locations ------------------------------------------------------------------ */

/* The StorageType of a core type (ST_UNSPECIFIED if none) and its URI scheme (never NULL). */
int kvcm_storage_type(const char *core_type);
const char *kvcm_scheme(const char *core_type);
/* The core type of a StorageType; NULL if there is none. */
const char *kvcm_core_type(int storage_type);

enum kvcm_status { KVCM_NOT_FOUND, KVCM_NEW, KVCM_WRITING, KVCM_SERVING, KVCM_DELETING };
const char *kvcm_status_name(enum kvcm_status status); /* "CLS_SERVING" */

#define KVCM_LOCATION_ID 8
/* The id of a location, of a-z and 0-9, from the generation of its first slot. Not
 * NUL-terminated. */
void kvcm_location_id(uint64_t generation, char out[KVCM_LOCATION_ID]);

/* A bit for each of specs[] that is in want[]; all if n_want is 0. Unknown names are ignored. */
#define KVCM_ALL_COLUMNS UINT32_MAX
uint32_t kvcm_columns(const char *const *want, size_t n_want, const char *const *specs,
		      uint32_t n_specs);

/* ---- locations ------------------------------------------------------------------------------- */

/* How a row without a location is written: names with empty URIs, or an empty CacheLocation. */
enum kvcm_miss { KVCM_MISS_PLACEHOLDER, KVCM_MISS_EMPTY };

/* CacheLocations of a result of the core, written straight from its arrays. As a splice:
 * (struct skv_proto_splice){ 2, kvcm_locations_json, kvcm_locations_binary, &locations, NULL }
 * A URI is <scheme>://<storage><root>/<file>?blkid=<offset / length>&size=<length>: offsets are
 * multiples of the length. Elements of length 0 are absent; a row without elements is a miss. */
struct kvcm_locations {
	uint32_t field; /* number of the field, for the binary form */
	bool vectors;   /* each in its own CacheLocationVector, empty for a miss */
	enum kvcm_miss miss;

	const struct skv_files *files;
	/* [files->n]: directory of the file's storage as clients see it; NULL: "". */
	const char *const *roots;

	uint32_t n_specs;
	const char *const *specs;
	const struct skv_location *loc; /* [rows * n_specs] */
	uint32_t columns;               /* bit for each spec written; KVCM_ALL_COLUMNS */
	const uint32_t *row_columns;    /* [rows]: instead of `columns`; NULL */

	uint32_t n;           /* of locations to write */
	const uint32_t *rows; /* [n]: their rows; NULL: 0 to n - 1 */
	const bool *hit;      /* [rows]: false is a miss; NULL: all are hits */

	enum kvcm_status status;     /* of all hits, unless row_status */
	const uint8_t *row_status;   /* [rows] enum kvcm_status; NULL */
	uint64_t created_ms;         /* wall time of all hits, unless row_created_ms */
	const uint64_t *row_created_ms; /* [rows]; NULL */
};

/* Appends the URI of a location (length > 0) in file `f` of a storage whose directory is `root` on
 * clients. */
void kvcm_uri(const struct skv_file_ref *f, const char *root, const struct skv_location *loc,
	      struct skv_buf *out);

/* `locations`: a struct kvcm_locations. */
void kvcm_locations_json(const void *locations, struct skv_buf *out);
void kvcm_locations_binary(const void *locations, struct skv_buf *out);

#endif
