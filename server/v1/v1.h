/*
 * v1.h - shared by the files of the native API: its rows, and its part of a call.
 */
#ifndef SKV_V1_SERVER_H
#define SKV_V1_SERVER_H

#include <skv/request.h>
#include <skv/v1_api.h>
#include <skv/ops.h>
#include <skv/v1_codec.h>
#include <skv/v1_operations.h>

enum route_id {
#define ROUTE_ENUM(name, ...) ROUTE_ID_##name,
	SKV_OPERATIONS(ROUTE_ENUM, ROUTE_ENUM)
#undef ROUTE_ENUM
	ROUTE_COUNT
};

extern const struct skv_route skv_routes[ROUTE_COUNT];

/* What a row has besides: where its gRPC message keeps what HTTP has in path and body. */
struct v1_row {
	unsigned char target; /* field of its request message that is param[0]; 0: none */
	unsigned char body;   /* field of it that the codec reads; 0: the whole message */
};

/* skv_request.state. */
struct v1_request {
	const struct skv_v1_codec *body_codec; /* of the body; NULL: a content type
						  that nobody reads */
	const struct skv_v1_codec *codec;      /* of the answer */
	const char *key_text;   /* block_find: one of these two, percent-encoded
				   text or decimal digits */
	const char *key_number;
	const char *unused_s; /* instance_delete: its conditions, NULL = not told */
	const char *with_blocks;
	const char *cursor; /* pins, keys: decimal digits, NULL = not told */
	const char *max;
	union {
		struct {
			struct skv_storage_view *v;
			uint32_t n;
		} storages;
		struct {
			struct skv_file_view *v;
			uint32_t n;
		} files;
		struct {
			struct skv_group_view *v;
			uint32_t n;
		} groups;
		struct {
			struct skv_instance_view *v;
			uint32_t n;
		} instances;
		struct {
			struct skv_token_view *v;
			uint32_t n;
		} tokens;
		struct skv_cluster_view cluster;
		struct {
			struct skv_tenant_view *v;
			uint32_t n;
		} tenants;
		struct {
			struct skv_match_req req;
			struct skv_match_res res;
		} match;
		struct {
			struct skv_move_take_req take;
			struct skv_move_take_res taken;
			struct skv_move_finish_req finish;
			struct skv_move_finish_res finished;
		} move;
		struct {
			struct skv_finish_req req;
			struct skv_abort_req abort;
			struct skv_finish_res res;
		} finish;
#define CALL_STATE(name, ...)                                                                      \
	struct {                                                                                   \
		struct skv_##name##_req req;                                                       \
		struct skv_##name##_res res;                                                       \
	} name;
		SKV_OPERATIONS(SKV_NOTHING, CALL_STATE)
#undef CALL_STATE
		struct skv_pins_res pins;
		struct skv_keys_res keys;
		struct skv_block_view block;
		struct skv_stats stats;
		struct skv_told told;
		struct skv_purge_res purge;
	} u;
};

static inline struct v1_request *v1_of(struct skv_request *c) { return c->state; }

/* What the decoders need to know; the core must have been ready. */
struct skv_v1_in skv_v1_input(struct skv_request *c);

/* The FileDescriptorSet of slabkv.proto, made at build time. */
const uint8_t *skv_v1_protoset(size_t *n);

/* ---- message.c ------------------------------------------------------------------------------- */

/* Finds name and body of the operation in the message p[0..n), which stays
 * valid until it is complete. */
int skv_v1_message(struct skv_request *c, const uint8_t *p, size_t n);

/* The functions of the rows. */
#define ROUTE_PROTOTYPES(name, ...)                                                                \
	int skv_op_##name##_run(struct skv_request *c);                                            \
	void skv_op_##name##_write(struct skv_request *c);
SKV_OPERATIONS(ROUTE_PROTOTYPES, ROUTE_PROTOTYPES)
#undef ROUTE_PROTOTYPES

#endif
