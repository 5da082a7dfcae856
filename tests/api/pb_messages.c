/* pb_messages.c - the table of pb_messages.h. No state. */
#include "pb_messages.h"

#include <stdlib.h>
#include <string.h>

#include "messages.h"

#define HEX(array, count) \
	&(struct skv_key_input) { .form = SKV_KEYS_HEX, .n = (count), .keys = (array) }
#define PLAIN(codec, out, message) (codec).write_##message(out, &m)
#define KEYS(codec, out, message) (codec).write_##message(out, &m, HEX(m.keys, m.n_keys))
#define START(codec, out, message)                                   \
	(codec).write_##message(out, &m, &(struct skv_key_input){    \
		.form = SKV_KEYS_HEX, .n = m.n_keys, .keys = m.keys, \
		.parent = m.has_parent ? HEX(&m.parent, 1) : NULL })
#define NO_KEYS(codec, out, message) (codec).write_##message(out, &m, NULL)

#define MESSAGE(message, type, WRITE)                                                        \
	static int echo_##message(const struct skv_v1_in *in, const char *text, size_t n,    \
				  struct skv_buf *out, struct skv_error *err)                \
	{                                                                                    \
		struct type m;                                                               \
		int rc = skv_v1_pb.read_##message(in, text, n, &m, err);                     \
                                                                                             \
		if (rc == SKV_OK)                                                            \
			WRITE(skv_v1_pb, out, message);                                      \
		return rc;                                                                   \
	}                                                                                    \
	static int convert_##message(const struct skv_v1_in *in, const char *text, size_t n, \
				     struct skv_buf *pb, struct skv_buf *json,               \
				     struct skv_error *err)                                  \
	{                                                                                    \
		struct type m;                                                               \
		int rc = skv_v1_json.read_##message(in, text, n, &m, err);                   \
                                                                                             \
		if (rc != SKV_OK)                                                            \
			return rc;                                                           \
		WRITE(skv_v1_pb, pb, message);                                               \
		memset(&m, 0x5a, sizeof m);                                                  \
		rc = skv_v1_pb.read_##message(in, (const char *)pb->data, pb->len, &m, err); \
		if (rc == SKV_OK)                                                            \
			WRITE(skv_v1_json, json, message);                                   \
		return rc;                                                                   \
	}

MESSAGE(storage, skv_storage_spec, PLAIN)
MESSAGE(group, skv_group_spec, PLAIN)
MESSAGE(instance, skv_instance_spec, PLAIN)
MESSAGE(storage_view, skv_storage_view, PLAIN)
MESSAGE(group_view, skv_group_view, PLAIN)
MESSAGE(instance_view, skv_instance_view, PLAIN)
MESSAGE(match_req, skv_match_req, KEYS)
MESSAGE(lookup_req, skv_lookup_req, KEYS)
MESSAGE(delete_req, skv_delete_req, KEYS)
MESSAGE(pin_req, skv_pin_req, KEYS)
MESSAGE(unpin_req, skv_unpin_req, KEYS)
MESSAGE(report_req, skv_report_req, KEYS)
MESSAGE(start_req, skv_start_req, START)
MESSAGE(finish_req, skv_finish_req, PLAIN)
MESSAGE(abort_req, skv_abort_req, PLAIN)
MESSAGE(match_res, skv_match_res, PLAIN)
MESSAGE(lookup_res, skv_lookup_res, PLAIN)
MESSAGE(start_res, skv_start_res, PLAIN)
MESSAGE(finish_res, skv_finish_res, PLAIN)
MESSAGE(delete_res, skv_delete_res, PLAIN)
MESSAGE(trim_req, skv_trim_req, NO_KEYS)
MESSAGE(file_wish, skv_file_wish, PLAIN)
MESSAGE(token, skv_token_spec, PLAIN)
MESSAGE(tenant, skv_tenant_spec, PLAIN)
MESSAGE(drain, skv_drain_spec, PLAIN)
MESSAGE(home, skv_home_spec, PLAIN)
MESSAGE(purge_req, skv_purge_req, PLAIN)
MESSAGE(purge_res, skv_purge_res, PLAIN)
MESSAGE(move_take, skv_move_take_req, PLAIN)
MESSAGE(move_view, skv_move_view, PLAIN)
MESSAGE(move_finish_req, skv_move_finish_req, PLAIN)
MESSAGE(move_finish_res, skv_move_finish_res, PLAIN)
MESSAGE(trim_res, skv_trim_res, PLAIN)
MESSAGE(pin_res, skv_pin_res, PLAIN)
MESSAGE(unpin_res, skv_unpin_res, PLAIN)
MESSAGE(report_res, skv_report_res, PLAIN)
MESSAGE(pins_res, skv_pins_res, PLAIN)
MESSAGE(keys_res, skv_keys_res, PLAIN)

/* The reader of errors returns the status that it read. */
static int echo_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_buf *out,
		      struct skv_error *err)
{
	struct skv_error e;
	int rc = skv_v1_pb.read_error(in, text, n, &e);

	skv_v1_pb.write_error(out, &e, "r-1");
	if (err)
		*err = e;
	return rc;
}

static int convert_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_buf *pb,
			 struct skv_buf *json, struct skv_error *err)
{
	struct skv_error e;
	int rc = skv_v1_json.read_error(in, text, n, &e);

	skv_v1_pb.write_error(pb, &e, "r-1");
	if (skv_v1_pb.read_error(in, (const char *)pb->data, pb->len, &e) != rc)
		return skv_fail(err, SKV_E_INTERNAL, NULL, "read another status");
	skv_v1_json.write_error(json, &e, "r-1");
	return SKV_OK;
}

const struct pb_message pb_messages[] = {
#undef KEYS
#define R(message, type) { #message, echo_##message, convert_##message },
#define W(...)
#define KEYS(...)
	SKV_V1_MESSAGES
	{ "error", echo_error, convert_error },
};
const size_t n_pb_messages = sizeof pb_messages / sizeof pb_messages[0];

void pb_sample(const struct pb_message *m, struct skv_buf *out)
{
	const char *sample = message_find(m->name)->sample;
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	struct skv_buf pb = { 0 }, json = { 0 };

	skv_arena_init(&arena);
	if (m->convert(&in, sample, strlen(sample), &pb, &json, NULL) != SKV_OK)
		abort();
	skv_put_bytes(out, pb.data, pb.len);
	skv_buf_destroy(&pb);
	skv_buf_destroy(&json);
	skv_arena_destroy(&arena);
}
