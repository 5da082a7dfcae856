/* pb_messages.c - the table of pb_messages.h. No state. */
#include "pb_messages.h"

#include <stdlib.h>
#include <string.h>

#include "messages.h"

#define HEX(array, count) &(struct kvb_key_input){ .form = KVB_KEYS_HEX, .n = (count), .keys = (array) }
#define PLAIN(codec, out, message) (codec).write_##message(out, &m)
#define KEYS(codec, out, message) (codec).write_##message(out, &m, HEX(m.keys, m.n_keys))
#define START(codec, out, message)                                                                   \
	(codec).write_##message(out, &m, HEX(m.keys, m.n_keys), m.has_parent ? HEX(&m.parent, 1) : NULL)

#define MESSAGE(message, type, WRITE)                                                                \
	static int echo_##message(const struct kvb_v1_in *in, const char *text, size_t n,            \
				  struct kvb_buf *out, struct kvb_error *err)                        \
	{                                                                                            \
		struct type m;                                                                       \
		int rc = kvb_v1_pb.read_##message(in, text, n, &m, err);                             \
                                                                                                     \
		if (rc == KVB_OK)                                                                    \
			WRITE(kvb_v1_pb, out, message);                                              \
		return rc;                                                                           \
	}                                                                                            \
	static int convert_##message(const struct kvb_v1_in *in, const char *text, size_t n,         \
				     struct kvb_buf *pb, struct kvb_buf *json, struct kvb_error *err) \
	{                                                                                            \
		struct type m;                                                                       \
		int rc = kvb_v1_json.read_##message(in, text, n, &m, err);                           \
                                                                                                     \
		if (rc != KVB_OK)                                                                    \
			return rc;                                                                   \
		WRITE(kvb_v1_pb, pb, message);                                                       \
		memset(&m, 0x5a, sizeof m);                                                          \
		rc = kvb_v1_pb.read_##message(in, (const char *)pb->data, pb->len, &m, err);         \
		if (rc == KVB_OK)                                                                    \
			WRITE(kvb_v1_json, json, message);                                           \
		return rc;                                                                           \
	}

MESSAGE(storage, kvb_storage_spec, PLAIN)
MESSAGE(group, kvb_group_spec, PLAIN)
MESSAGE(instance, kvb_instance_spec, PLAIN)
MESSAGE(storage_view, kvb_storage_view, PLAIN)
MESSAGE(group_view, kvb_group_view, PLAIN)
MESSAGE(instance_view, kvb_instance_view, PLAIN)
MESSAGE(match_req, kvb_match_req, KEYS)
MESSAGE(lookup_req, kvb_lookup_req, KEYS)
MESSAGE(delete_req, kvb_delete_req, KEYS)
MESSAGE(pin_req, kvb_pin_req, KEYS)
MESSAGE(unpin_req, kvb_unpin_req, KEYS)
MESSAGE(start_req, kvb_start_req, START)
MESSAGE(finish_req, kvb_finish_req, PLAIN)
MESSAGE(abort_req, kvb_abort_req, PLAIN)
MESSAGE(match_res, kvb_match_res, PLAIN)
MESSAGE(lookup_res, kvb_lookup_res, PLAIN)
MESSAGE(start_res, kvb_start_res, PLAIN)
MESSAGE(finish_res, kvb_finish_res, PLAIN)
MESSAGE(delete_res, kvb_delete_res, PLAIN)
MESSAGE(trim_req, kvb_trim_req, PLAIN)
MESSAGE(file_wish, kvb_file_wish, PLAIN)
MESSAGE(trim_res, kvb_trim_res, PLAIN)
MESSAGE(pin_res, kvb_pin_res, PLAIN)
MESSAGE(unpin_res, kvb_unpin_res, PLAIN)
MESSAGE(pins_res, kvb_pins_res, PLAIN)

/* The reader of errors returns the status that it read. */
static int echo_error(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_buf *out,
		      struct kvb_error *err)
{
	struct kvb_error e;
	int rc = kvb_v1_pb.read_error(in, text, n, &e);

	kvb_v1_pb.write_error(out, &e, "r-1");
	if (err)
		*err = e;
	return rc;
}

static int convert_error(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_buf *pb,
			 struct kvb_buf *json, struct kvb_error *err)
{
	struct kvb_error e;
	int rc = kvb_v1_json.read_error(in, text, n, &e);

	kvb_v1_pb.write_error(pb, &e, "r-1");
	if (kvb_v1_pb.read_error(in, (const char *)pb->data, pb->len, &e) != rc)
		return kvb_fail(err, KVB_E_INTERNAL, NULL, "read another status");
	kvb_v1_json.write_error(json, &e, "r-1");
	return KVB_OK;
}

const struct pb_message pb_messages[] = {
#define ROW(message, type) { #message, echo_##message, convert_##message },
	KVB_V1_READS(ROW)
	{ "error", echo_error, convert_error },
};
const size_t n_pb_messages = sizeof pb_messages / sizeof pb_messages[0];

void pb_sample(const struct pb_message *m, struct kvb_buf *out)
{
	const char *sample = message_find(m->name)->sample;
	struct kvb_arena arena;
	struct kvb_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	struct kvb_buf pb = { 0 }, json = { 0 };

	kvb_arena_init(&arena);
	if (m->convert(&in, sample, strlen(sample), &pb, &json, NULL) != KVB_OK)
		abort();
	kvb_put_bytes(out, pb.data, pb.len);
	kvb_buf_destroy(&pb);
	kvb_buf_destroy(&json);
	kvb_arena_destroy(&arena);
}
