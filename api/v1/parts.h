/*
 * parts.h - pieces that several messages share, internal to api/v1: keys, files, locations, and the
 * fields of objects.
 */
#ifndef KVB_V1_PARTS_H
#define KVB_V1_PARTS_H

#include <kvb/json_out.h>

#include "json_in.h"

/* ---- keys.c ------------------------------------------------------------------------------------- */

/* Reads exactly one of keys, keys_int, keys_hex of `object`: 1..KVB_MAX_KEYS of them, none twice. */
const struct kvb_key *kvb_jat_keys(struct kvb_jdoc *d, const struct kvb_jat *object, uint32_t *n);
/* Reads parent, parent_int or parent_hex, if one is there. */
bool kvb_jat_parent(struct kvb_jdoc *d, const struct kvb_jat *object, struct kvb_key *out);
void kvb_jout_keys(struct kvb_buf *b, const struct kvb_key_input *keys);
void kvb_jout_parent(struct kvb_buf *b, const struct kvb_key_input *parent);

/* ---- location.c --------------------------------------------------------------------------------- */

/* Field "files". */
void kvb_jout_files(struct kvb_buf *b, const struct kvb_files *files);
void kvb_jat_files(struct kvb_jdoc *d, const struct kvb_jat *object, struct kvb_files *out);
/* One location as the value of a field; null when its length is 0. */
void kvb_jout_location(struct kvb_buf *b, const struct kvb_location *loc);
/* Most bytes of one location, and of what stands round a column of them. */
#define KVB_JRAW_LOCATION ((size_t)192)
/* Field "locations", not the first of its object: `n` columns. `p` has room for them and 64 bytes more,
 * with what the caller writes besides. */
char *kvb_jraw_locations(char *p, const struct kvb_location *loc, uint32_t n);
/* Reads field "locations" of `object` into loc[n]. Its file numbers must be below `n_files`. */
void kvb_jat_locations(struct kvb_jdoc *d, const struct kvb_jat *object, uint32_t n_files,
		       struct kvb_location *loc, uint32_t n);

/* ---- objects.c ---------------------------------------------------------------------------------- */

/* The fields of a PUT body, between braces that the caller writes. */
void kvb_jout_storage_fields(struct kvb_buf *b, const struct kvb_storage_spec *s);
void kvb_jout_group_fields(struct kvb_buf *b, const struct kvb_group_spec *g);
void kvb_jout_instance_fields(struct kvb_buf *b, const struct kvb_instance_spec *i);
void kvb_jat_storage(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_storage_spec *out);
void kvb_jat_group(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_group_spec *out);
void kvb_jat_instance(struct kvb_jdoc *d, const struct kvb_jat *at, struct kvb_instance_spec *out);

/* ---- views.c ------------------------------------------------------------------------------------ */

/* Fields "storages", "groups", "instances": arrays of views. */
void kvb_jout_storages(struct kvb_buf *b, const struct kvb_storage_view *v, uint32_t n);
void kvb_jout_groups(struct kvb_buf *b, const struct kvb_group_view *v, uint32_t n);
void kvb_jout_instances(struct kvb_buf *b, const struct kvb_instance_view *v, uint32_t n);

#endif
