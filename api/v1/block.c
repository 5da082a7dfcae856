/*
 * block.c - the view of one block, in JSON and in protobuf: written, never read back by our client.
 *
 * No state; any thread.
 */
#include "parts.h"
#include "pb.h"

#include <skv/check.h>

/* ---- JSON ------------------------------------------------------------------------------------ */

static void block_specs(struct skv_buf *b, const struct skv_block_view *v)
{
	skv_jout_name(b, "specs");
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < v->n_specs; i++) {
		skv_jout_open(b, '{');
		skv_jout_field_string(b, "name", v->specs[i]);
		skv_jout_field_string(b, "state", v->state[i]);
		skv_jout_name(b, "location");
		skv_jout_location(b, &v->loc[i]);
		skv_jout_close(b, '}');
	}
	skv_jout_close(b, ']');
}

void skv_v1_write_block_view(struct skv_buf *out, const struct skv_block_view *v)
{
	skv_jout_begin(out);
	skv_jout_name(out, "key");
	skv_jout_key(out, v->key);
	skv_jout_name(out, "parent");
	if (v->has_parent)
		skv_jout_key(out, v->parent);
	else
		skv_jout_null(out);
	skv_jout_field_u64(out, "children", v->children);
	skv_jout_field_u64(out, "created_ms", v->created_ms);
	skv_jout_field_u64(out, "idle_ms", v->idle_ms);
	skv_jout_field_u64(out, "lease_ms", v->lease_ms);
	block_specs(out, v);
	skv_jout_files(out, &v->files);
	skv_jout_close(out, '}');
}

/* ---- protobuf -------------------------------------------------------------------------------- */

enum {
	BLOCK_KEY = 1,
	BLOCK_PARENT = 2,
	BLOCK_CHILDREN = 3,
	BLOCK_CREATED = 4,
	BLOCK_IDLE = 5,
	BLOCK_LEASE = 6,
	BLOCK_SPECS = 7,
	BLOCK_FILES = 8,
};
enum { SPEC_NAME = 1, SPEC_STATE = 2, SPEC_LOCATION = 3 };
enum {
	LOCATION_FILE = 1,
	LOCATION_OFFSET = 2,
	LOCATION_LENGTH = 3,
	LOCATION_GENERATION = 4,
	LOCATION_CHECKSUM = 5
};

static void put_location(struct skv_buf *b, const struct skv_location *loc)
{
	size_t begin = skv_pb_put_begin(b, SPEC_LOCATION, 0);

	SKV_CHECK(loc->length > 0);
	skv_pb_put_uint(b, LOCATION_FILE, loc->file);
	skv_pb_put_uint(b, LOCATION_OFFSET, loc->offset);
	skv_pb_put_uint(b, LOCATION_LENGTH, loc->length);
	skv_pb_put_uint(b, LOCATION_GENERATION, loc->generation);
	if (loc->has_checksum) {
		skv_put_varint(b, LOCATION_CHECKSUM << 3 | PB_FIXED64);
		skv_put_u64(b, loc->checksum);
	}
	skv_pb_put_end(b, begin);
}

void skv_pb_write_block_view(struct skv_buf *out, const struct skv_block_view *v)
{
	skv_pb_put_key(out, BLOCK_KEY, v->key);
	if (v->has_parent)
		skv_pb_put_key(out, BLOCK_PARENT, v->parent);
	skv_pb_put_uint(out, BLOCK_CHILDREN, v->children);
	skv_pb_put_uint(out, BLOCK_CREATED, v->created_ms);
	skv_pb_put_uint(out, BLOCK_IDLE, v->idle_ms);
	skv_pb_put_uint(out, BLOCK_LEASE, v->lease_ms);
	for (uint32_t i = 0; i < v->n_specs; i++) {
		size_t begin = skv_pb_put_begin(out, BLOCK_SPECS, 0);

		skv_pb_put_text(out, SPEC_NAME, v->specs[i]);
		skv_pb_put_text(out, SPEC_STATE, v->state[i]);
		if (v->loc[i].length)
			put_location(out, &v->loc[i]);
		skv_pb_put_end(out, begin);
	}
	skv_pb_put_files(out, BLOCK_FILES, &v->files);
}
