/* pb_messages.c - the table of pb_messages.h. No state. */
#include "pb_messages.h"

#include <stdlib.h>
#include <string.h>

#include "messages.h"

#define HEX(array, count) \
	&(struct skv_key_input) { .form = SKV_KEYS_HEX, .n = (count), .keys = (array) }
#define PLAIN(message) skv_pb_write_##message(out, &m)
#define KEYS(message) skv_pb_write_##message(out, &m, HEX(m.keys, m.n_keys))
#define START(message)                                                                         \
	skv_pb_write_##message(out, &m, &(struct skv_key_input){                               \
		.form = SKV_KEYS_HEX, .n = m.n_keys, .keys = m.keys,                           \
		.parent = m.has_parent ? HEX(&m.parent, 1) : NULL })
#define NO_KEYS(message) skv_pb_write_##message(out, &m, NULL)

#define MESSAGE(message, type, WRITE)                                                     \
	static int echo_##message(const struct skv_v1_in *in, const char *text, size_t n, \
				  struct skv_buf *out, struct skv_error *err)             \
	{                                                                                 \
		struct type m;                                                            \
		int rc = skv_pb_read_##message(in, text, n, &m, err);                     \
                                                                                          \
		if (rc == SKV_OK)                                                         \
			WRITE(message);                                                   \
		return rc;                                                                \
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
	int rc = skv_pb_read_error(in, text, n, &e);

	skv_pb_write_error(out, &e, "r-1");
	if (err)
		*err = e;
	return rc;
}

const struct pb_message pb_messages[] = {
#define REQUEST(message, type) { #message, echo_##message },
#define KEYED REQUEST
#define ANSWER REQUEST
	SKV_V1_MESSAGES
	{ "error", echo_error },
};
const size_t n_pb_messages = sizeof pb_messages / sizeof pb_messages[0];

const struct pb_message *pb_message_find(const char *name)
{
	for (size_t i = 0; i < n_pb_messages; i++)
		if (strcmp(pb_messages[i].name, name) == 0)
			return &pb_messages[i];
	abort();
}

void pb_sample(const struct pb_message *m, struct skv_buf *out)
{
	const struct message *json = message_find(m->name);
	struct skv_error err = { .status = SKV_E_NO_SPACE, .message = "no room", .field = "keys" };
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };

	skv_arena_init(&arena);
	if (json->written)
		skv_put_bytes(out, json->sample, json->n_sample);
	else if (strcmp(m->name, "error") == 0)
		skv_pb_write_error(out, &err, "r-1");
	else if (json->echo(&in, json->sample, json->n_sample, out, NULL) != SKV_OK)
		abort();
	skv_arena_destroy(&arena);
}
