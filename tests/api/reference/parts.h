/*
 * parts.h - pieces that several messages share, the reference: keys, files, locations, and the
 * fields of objects.
 */
#ifndef TESTS_REF_PARTS_H
#define TESTS_REF_PARTS_H

#include "json_in.h"
#include "json_out.h"

/* ---- keys.c ------------------------------------------------------------------------------------- */

/* Reads exactly one of keys, keys_int, keys_hex of `object`: 1..SKV_MAX_KEYS of them, none twice. */
const struct skv_key *ref_jat_keys(struct ref_jdoc *d, const struct ref_jat *object, uint32_t *n);
/* Reads parent, parent_int or parent_hex, if one is there. */
bool ref_jat_parent(struct ref_jdoc *d, const struct ref_jat *object, struct skv_key *out);
void ref_jout_keys(struct skv_buf *b, const struct skv_key_input *keys);
void ref_jout_parent(struct skv_buf *b, const struct skv_key_input *parent);

/* ---- location.c --------------------------------------------------------------------------------- */

/* Field "files". */
void ref_jout_files(struct skv_buf *b, const struct skv_files *files);
void ref_jat_files(struct ref_jdoc *d, const struct ref_jat *object, struct skv_files *out);
/* One location as a value; null when its length is 0. */
void ref_jout_location(struct skv_buf *b, const struct skv_location *loc);
/* Field "locations": `n` columns. */
void ref_jout_locations(struct skv_buf *b, const struct skv_location *loc, uint32_t n);
/* Reads field "locations" of `object` into loc[n]. Its file numbers must be below `n_files`. */
void ref_jat_locations(struct ref_jdoc *d, const struct ref_jat *object, uint32_t n_files,
		       struct skv_location *loc, uint32_t n);

/* ---- objects.c ---------------------------------------------------------------------------------- */

/* The fields of a PUT body, between braces that the caller writes. */
void ref_jout_storage_fields(struct skv_buf *b, const struct skv_storage_spec *s);
void ref_jout_group_fields(struct skv_buf *b, const struct skv_group_spec *g);
void ref_jout_instance_fields(struct skv_buf *b, const struct skv_instance_spec *i);
void ref_jat_storage(struct ref_jdoc *d, const struct ref_jat *at, struct skv_storage_spec *out);
void ref_jat_group(struct ref_jdoc *d, const struct ref_jat *at, struct skv_group_spec *out);
void ref_jat_instance(struct ref_jdoc *d, const struct ref_jat *at, struct skv_instance_spec *out);

/* ---- views.c ------------------------------------------------------------------------------------ */

/* Fields "storages", "groups", "instances": arrays of views. */
void ref_jout_storages(struct skv_buf *b, const struct skv_storage_view *v, uint32_t n);
void ref_jout_groups(struct skv_buf *b, const struct skv_group_view *v, uint32_t n);
void ref_jout_instances(struct skv_buf *b, const struct skv_instance_view *v, uint32_t n);

#endif
