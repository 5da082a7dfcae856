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

extern const struct skv_route skv_routes[SKV_OP_COUNT];

/* The extra fields of a row: the places in its gRPC message of the values that HTTP has in path and
 * body. */
struct v1_row {
	unsigned char target; /* field of its request message that is param[0]; 0: none */
	unsigned char body;   /* field of it that the codec reads; 0: the whole message */
	const char *request, *answer; /* schemas, or media types; NULL: none */
};

/* skv_request.state. */
struct v1_request {
	/* Of the body; NULL: an unsupported content type. */
	const struct skv_v1_codec *body_codec;
	const struct skv_v1_codec *codec;      /* of the answer */
	/* block_find: one of these two, percent-encoded text or decimal digits. */
	const char *key_text;
	const char *key_number;
	const char *unused_s; /* instance_delete: its conditions, NULL = not given */
	const char *with_blocks;
	const char *limit;   /* of a page, percent-encoded text; NULL = not given */
	const char *after;
	const char *cursor; /* pins, keys: decimal digits, NULL = not given */
	const char *max;
	const char *only;    /* kinds of put; NULL = not given, as in the next field */
	const char *version; /* group_put: the version that the group must have */
	const void *answer;  /* of a TABLE: its struct */
	union {
		struct skv_storage_list storages;
		struct skv_file_list files;
		struct skv_group_list groups;
		struct skv_instance_list instances;
		struct skv_token_list tokens;
		struct skv_tenant_list tenants;
		struct skv_cluster_view cluster;
		struct {
			struct skv_match_req req;
			struct skv_match_res res;
			uint8_t *of;       /* of each instance, where it is: match.c */
			uint32_t *matched; /* in `res` */
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
		SKV_OPERATIONS(SKV_NOTHING, SKV_NOTHING, CALL_STATE)
#undef CALL_STATE
		struct skv_pins_res pins;
		struct skv_keys_res keys;
		struct skv_block_view block;
		struct skv_stats stats;
		struct skv_purge_res purge;
	} u;
};

static inline struct v1_request *v1_of(struct skv_request *c) { return c->state; }

/* Returns the decoders' input; the core must have been ready. */
struct skv_v1_in skv_v1_input(struct skv_request *c);

/* The FileDescriptorSet of slabkv.proto, made at build time. */
const uint8_t *skv_v1_protoset(size_t *n);

/* ---- message.c ------------------------------------------------------------------------------- */

/* Finds name and body of the operation in the message p[0..n), which stays
 * valid until it is complete. */
int skv_v1_message(struct skv_request *c, const uint8_t *p, size_t n);

/* The functions of the rows. */
#define ROUTE_RUN(name, ...) int skv_op_##name##_run(struct skv_request *c);
#define ROUTE_PROTOTYPES(name, ...)                                                                \
	ROUTE_RUN(name)                                                                            \
	void skv_op_##name##_write(struct skv_request *c);
SKV_OPERATIONS(ROUTE_PROTOTYPES, ROUTE_RUN, ROUTE_PROTOTYPES)
#undef ROUTE_PROTOTYPES
#undef ROUTE_RUN
/* op_pins.c: a number of the query. SKV_E_INVALID with that field. */
int skv_v1_number(struct skv_request *r, const char *field, const char *text, uint64_t *out);
/* Which page of a list: of a PAGED route. SKV_E_INVALID ("limit", "after"), SKV_E_NOMEM. */
int skv_v1_page(struct skv_request *r, struct skv_page *out);

/* match.c: u.match.req is decoded. Status as of an operation's run. */
int v1_match(struct skv_request *r);

#endif
