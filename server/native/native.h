/*
 * native.h - what the files of the native API share: its rows, and its part of a call.
 */
#ifndef KVB_NATIVE_H
#define KVB_NATIVE_H

#include <kvb/call.h>
#include <kvb/native_api.h>
#include <kvb/ops.h>
#include <kvb/v1_codec.h>

#include "routes_table.h"

enum route_id {
#define ROUTE_ENUM(name, ...) ROUTE_ID_##name,
	KVB_ROUTES(ROUTE_ENUM)
#undef ROUTE_ENUM
	ROUTE_COUNT
};

extern const struct kvb_route kvb_routes[ROUTE_COUNT];

/* What a row has besides: where its gRPC message keeps what HTTP has in path and body. */
struct native_row {
	unsigned char target; /* field of its request message that is param[0]; 0: none */
	unsigned char body;   /* field of it that the codec reads; 0: the whole message */
};

/* kvb_call.state. */
struct native_call {
	const struct kvb_v1_codec *body_codec; /* of the body; NULL: a content type that nobody reads */
	const struct kvb_v1_codec *codec;      /* of the answer */
	const char *key_text;   /* block_find: one of these two, percent-encoded text or decimal digits */
	const char *key_number;
	const char *cursor; /* pins: decimal digits, NULL = not told */
	const char *max;
	union {
		struct {
			struct kvb_storage_view *v;
			uint32_t n;
		} storages;
		struct {
			struct kvb_file_view *v;
			uint32_t n;
		} files;
		struct {
			struct kvb_group_view *v;
			uint32_t n;
		} groups;
		struct {
			struct kvb_instance_view *v;
			uint32_t n;
		} instances;
		struct {
			struct kvb_match_req req;
			struct kvb_match_res res;
		} match;
		struct {
			struct kvb_lookup_req req;
			struct kvb_lookup_res res;
		} lookup;
		struct {
			struct kvb_start_req req;
			struct kvb_start_res res;
		} start;
		struct {
			struct kvb_finish_req req;
			struct kvb_abort_req abort;
			struct kvb_finish_res res;
		} finish;
		struct {
			struct kvb_delete_req req;
			struct kvb_delete_res res;
		} del;
		struct {
			struct kvb_trim_req req;
			struct kvb_trim_res res;
		} trim;
		struct {
			struct kvb_pin_req req;
			struct kvb_pin_res res;
		} pin;
		struct {
			struct kvb_unpin_req req;
			struct kvb_unpin_res res;
		} unpin;
		struct kvb_pins_res pins;
		struct kvb_block_view block;
		struct kvb_stats stats;
	} u;
};

static inline struct native_call *native_of(struct kvb_call *c) { return c->state; }

/* What the decoders need to know; the core must have been ready. */
struct kvb_v1_in kvb_native_input(struct kvb_call *c);

/* The FileDescriptorSet of kvblock.proto, made at build time. */
const uint8_t *kvb_native_protoset(size_t *n);

/* ---- message.c ------------------------------------------------------------------------------- */

/* Finds name and body of the operation in the message p[0..n), which stays valid until it is complete. */
int kvb_native_message(struct kvb_call *c, const uint8_t *p, size_t n);

/* The functions of the rows. */
#define ROUTE_PROTOTYPES(name, ...)                                                                \
	int kvb_op_##name##_run(struct kvb_call *c);                                            \
	void kvb_op_##name##_write(struct kvb_call *c);
KVB_ROUTES(ROUTE_PROTOTYPES)
#undef ROUTE_PROTOTYPES

#endif
