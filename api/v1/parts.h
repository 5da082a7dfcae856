/*
 * parts.h - parts shared by several messages, internal to api/v1: keys, files, locations.
 */
#ifndef SKV_V1_PARTS_H
#define SKV_V1_PARTS_H

#include <skv/json_out.h>
#include <skv/v1_pb.h>

#include "json_in.h"

extern const char *const skv_key_forms[3]; /* keys, keys_int, keys_hex */
extern const char *const skv_session_states[]; /* of enum skv_session_state */

/* ---- keys.c ---------------------------------------------------------------------------------- */

/* Reads exactly one of keys, keys_int, keys_hex of `object`: 1..SKV_MAX_KEYS of them, none
 * twice. */
const struct skv_key *skv_jat_keys(struct skv_jdoc *d, const struct skv_jat *object, uint32_t *n);
/* Fails if one of these fields is present. */
void skv_jat_no_keys(struct skv_jdoc *d, const struct skv_jat *object);
/* Reads parent, parent_int or parent_hex, if one is present. */
bool skv_jat_parent(struct skv_jdoc *d, const struct skv_jat *object, struct skv_key *out);

/* ---- location.c ------------------------------------------------------------------------------ */

/* Field "files". */
void skv_jout_files(struct skv_buf *b, const struct skv_files *files);
/* Writes a location as the value of a field; null when its length is 0. */
void skv_jout_location(struct skv_buf *b, const struct skv_location *loc);
/* Writes a block in a list. `outcome` NULL: omits the outcome; `loc`, `copy` NULL: omits them, else
 * for each of the specs. */
void skv_jout_block(struct skv_buf *b, uint32_t index, const char *outcome,
		    const struct skv_location *loc, const struct skv_location *copy, uint32_t n);
/* Room for one of them, to grow the buffer once. */
#define SKV_JOUT_LOCATION ((size_t)160)

#endif
