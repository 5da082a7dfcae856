/*
 * messages.c - the table of messages.h. Requests come back with their keys as keys_hex, since that
 * is what they are once read. No state.
 */
#include "messages.h"

#include <stdlib.h>
#include <string.h>

#define READ(message) skv_v1_read_##message
#define WRITE(message) skv_v1_write_##message

const struct skv_secret test_secret =
	{ .bytes = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

#define ECHO(message, type, write_it)                                                     \
	static int echo_##message(const struct skv_v1_in *in, const char *text, size_t n, \
				  struct skv_buf *out, struct skv_error *err)             \
	{                                                                                 \
		struct type m;                                                            \
		int status = READ(message)(in, text, n, &m, err);                         \
                                                                                          \
		if (status == SKV_OK)                                                     \
			write_it;                                                         \
		return status;                                                            \
	}
#define ECHO_SIMPLE(message, type) ECHO(message, type, WRITE(message)(out, &m))
#define HEX(array, count) \
	&(struct skv_key_input) { .form = SKV_KEYS_HEX, .n = (count), .keys = (array) }
#define ECHO_KEYS(message, type) ECHO(message, type, WRITE(message)(out, &m, HEX(m.keys, m.n_keys)))

ECHO_SIMPLE(storage, skv_storage_spec)
ECHO_SIMPLE(group, skv_group_spec)
ECHO_SIMPLE(instance, skv_instance_spec)
ECHO_SIMPLE(storage_view, skv_storage_view)
ECHO_SIMPLE(group_view, skv_group_view)
ECHO_SIMPLE(instance_view, skv_instance_view)
ECHO_KEYS(match_req, skv_match_req)
ECHO_KEYS(lookup_req, skv_lookup_req)
ECHO_KEYS(delete_req, skv_delete_req)
ECHO_KEYS(pin_req, skv_pin_req)
ECHO_KEYS(unpin_req, skv_unpin_req)
ECHO_KEYS(report_req, skv_report_req)
ECHO(start_req, skv_start_req,
     WRITE(start_req)(out, &m, &(struct skv_key_input){ .form = SKV_KEYS_HEX, .n = m.n_keys,
							.keys = m.keys,
						    .parent = m.has_parent ? HEX(&m.parent, 1)
							    : NULL }))
ECHO_SIMPLE(finish_req, skv_finish_req)
ECHO_SIMPLE(abort_req, skv_abort_req)
ECHO_SIMPLE(match_res, skv_match_res)
ECHO_SIMPLE(lookup_res, skv_lookup_res)
ECHO_SIMPLE(start_res, skv_start_res)
ECHO_SIMPLE(finish_res, skv_finish_res)
ECHO_SIMPLE(delete_res, skv_delete_res)
ECHO(trim_req, skv_trim_req, WRITE(trim_req)(out, &m, NULL))
ECHO_SIMPLE(file_wish, skv_file_wish)
ECHO_SIMPLE(token, skv_token_spec)
ECHO_SIMPLE(tenant, skv_tenant_spec)
ECHO_SIMPLE(drain, skv_drain_spec)
ECHO_SIMPLE(home, skv_home_spec)
ECHO_SIMPLE(purge_req, skv_purge_req)
ECHO_SIMPLE(purge_res, skv_purge_res)
ECHO_SIMPLE(move_take, skv_move_take_req)
ECHO_SIMPLE(move_view, skv_move_view)
ECHO_SIMPLE(move_finish_req, skv_move_finish_req)
ECHO_SIMPLE(move_finish_res, skv_move_finish_res)
ECHO_SIMPLE(trim_res, skv_trim_res)
ECHO_SIMPLE(pin_res, skv_pin_res)
ECHO_SIMPLE(unpin_res, skv_unpin_res)
ECHO_SIMPLE(report_res, skv_report_res)
ECHO_SIMPLE(pins_res, skv_pins_res)
ECHO_SIMPLE(keys_res, skv_keys_res)

/* The odd one: its reader returns the status that it read. */
static int echo_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_buf *out,
		      struct skv_error *err)
{
	struct skv_error e;
	int status = READ(error)(in, text, n, &e);

	WRITE(error)(out, &e, "r-1");
	if (err)
		*err = e;
	return status;
}

#define UUID "\"00112233-4455-6677-8899-aabbccddeeff\""
#define K1 "\"00000000000000000000000000000001\""
#define K2 "\"ffffffffffffffffffffffffffffffff\""
#define FILES                                                                  \
	"\"files\":[{\"type\":\"file\",\"storage\":\"default\",\"uuid\":" UUID \
	",\"path\":\"slab-00000000.kvs\"}]"
#define LOC                                                                                       \
	"{\"file\":0,\"offset\":4096,\"length\":1048576,\"generation\":\"18446744073709551615\"," \
	"\"checksum\":\"0123456789abcdef\"}"
#define STORAGE_FIELDS                                                                      \
	"\"type\":\"file\",\"root\":\"/data/kv\",\"capacity\":\"4T\",\"file_size\":\"1G\"," \
	"\"unit\":67108864,\"enabled\":false,\"draining\":true,"                            \
	"\"client_root\":\"/mnt/3fs/kv\",\"client_mount\":\"/mnt/3fs\",\"extra\":\"{}\","   \
	"\"high_percent\":95,\"low_percent\":90,\"chunk_size\":\"1M\",\"any_mount\":true,"  \
	"\"fs_master\":[\"http://a:1/kv\",\"http://b:1/kv\"]"
#define GROUP_FIELDS                                                                              \
	"\"capacity\":\"18446744073709551615\",\"storages\":[\"a\",\"b\"],"                       \
	"\"loose_storages\":true,"                                                                \
	"\"quotas\":[{\"type\":\"file\",\"capacity\":\"64M\",\"reclaim\":9},"                     \
	"{\"type\":\"hf3fs\"}],\"max_blocks\":3,"                                                 \
	"\"max_instances\":4,\"reclaim_bytes\":5,\"reclaim_blocks\":6,\"reclaim_step_bytes\":7,"  \
	"\"reclaim_step_percent\":100,"                                                           \
	"\"reclaim_period_ms\":8,\"max_idle_ms\":\"18446744073709551615\",\"policy\":\"s3fifo\"," \
	"\"ttl_ms\":9,\"version\":10,\"extra\":\"\\u00e9\","                                      \
	"\"high_percent\":99,\"low_percent\":1,\"pin_percent\":25,\"share\":\"fixed\","     \
	"\"tier_of\":\"slow\",\"write_through\":true,\"promote_after\":2,\"replicate\":true"
#define INSTANCE_FIELDS                                                                       \
	"\"group\":\"g\",\"block_tokens\":512,\"specs\":[{\"name\":\"tp0\",\"size\":\"4K\"}," \
	"{\"name\":\"tp1\",\"size\":4497408}],\"extra\":\"\\u00e9 \\\"x\\\"\\n"               \
	"\",\"numbered\":true,\"named\":true,\"weight\":7,\"capacity\":\"3G\""

const struct message messages[] = {
	{ "storage", echo_storage, "{" STORAGE_FIELDS "}" },
	{ "group", echo_group, "{" GROUP_FIELDS "}" },
	{ "instance", echo_instance, "{" INSTANCE_FIELDS "}" },
	{ "storage_view", echo_storage_view,
	  "{\"name\":\"default\"," STORAGE_FIELDS ",\"uuid\":" UUID ",\"healthy\":true,"
								    "\"problem\":\"none\","
								    "\"files\":3,"
								    "\"draining_files\":1,"
								    "\"bad_files\":2,"
								    "\"file_bytes\":4,"
								    "\"assigned_bytes\":5,"
								    "\"used_bytes\":6,"
								    "\"quarantined_bytes\":7,"
								    "\"free_bytes\":8,"
								    "\"available_bytes\":9,"
								    "\"fs_free_bytes\":10,"
								    "\"later\":{\"x\":[1]}}" },
	{ "group_view", echo_group_view,
	  "{\"name\":\"g\"," GROUP_FIELDS ",\"blocks\":1,\"used_bytes\":2,\"room_bytes\":3,"
					  "\"pinned_bytes\":4,\"soft_pinned_bytes\":5,"
					  "\"leased_bytes\":6,\"open_bytes\":7,"
					  "\"evicted_blocks\":8,\"hits\":9}" },
	{ "instance_view", echo_instance_view,
	  "{\"id\":\"m\",\"tenant\":\"default\"," INSTANCE_FIELDS ",\"blocks\":1,\"used_bytes\":2,"
	  "\"open_sessions\":3,\"open_bytes\":4,\"leased_bytes\":5,\"share_bytes\":6,"
	  "\"pinned_bytes\":7,\"soft_pinned_bytes\":8,\"evicted_blocks\":9,\"hits\":10}" },
	{ "match_req", echo_match_req, "{\"instances\":[\"m\",\"n\"],\"keys\":[\"a\",\"b\"]}" },
	{ "lookup_req", echo_lookup_req,
	  "{\"keys_int\":[0,1,9223372036854775807,\"18446744073709551615\"],\"mode\":\"batch\","
	  "\"specs\":[\"tp0\"],\"lease_ms\":0,\"partial\":true,\"window\":2}" },
	{ "start_req", echo_start_req,
	  "{\"request_id\":\"r\",\"keys_hex\":[" K1 "," K2 "],\"parent\":\"p\",\"specs\":[\"tp0\","
							   "\"tp1\"],\"deadline_ms\":1000,"
							   "\"independent\":true,"
							   "\"avoid\":[\"s\",\"t\"]}" },
	{ "finish_req", echo_finish_req,
	  "{\"success\":{\"mask\":[true,false]},\"checksums\":[\"0123456789abcdef\",null],"
	  "\"quiesced\":true}" },
	{ "abort_req", echo_abort_req, "{\"quiesced\":true}" },
	{ "delete_req", echo_delete_req, "{\"keys_hex\":[" K1 "," K2 "]}" },
	{ "match_res", echo_match_res,
	  "{\"results\":[{\"instance\":\"m\",\"matched\":7},{\"instance\":\"n\",\"matched\":0}]}" },
	{ "lookup_res", echo_lookup_res,
	  "{\"n_keys\":3,\"matched\":1,\"lease_ms\":10000,\"specs\":[\"tp0\"]," FILES
	  ",\"blocks\":[{\"index\":1,\"locations\":[" LOC "]}]}" },
	{ "start_res", echo_start_res,
	  "{\"session\":" K2 ",\"state\":\"open\",\"deadline_ms\":30000,\"n_keys\":3,\"n_write\":1,"
	  "\"specs\":[\"tp0\",\"tp1\"]," FILES ",\"blocks\":[{\"index\":0,\"outcome\":\"exists\"},"
	  "{\"index\":1,\"outcome\":\"write\",\"locations\":[" LOC ",null]},"
	  "{\"index\":2,\"outcome\":\"busy\"}]}" },
	{ "finish_res", echo_finish_res, 
	  "{\"state\":\"finished\",\"committed\":2,\"failed\":1,\"deleted\":[1,300]}" },
	{ "delete_res", echo_delete_res, "{\"deleted\":5,\"pinned\":2,\"writing\":1}" },
	{ "trim_req", echo_trim_req, "{\"from_ms\":7,\"to_ms\":1760000000000}" },
	{ "token", echo_token,
	  "{\"role\":\"write\",\"tenant\":\"acme\",\"expires_s\":1800000000,\"keep_s\":60,"
	  "\"hash\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}" },
	{ "tenant", echo_tenant,
	  "{\"groups\":[\"a\",\"b\"],\"storages\":[\"s\"],\"own_groups\":[\"g\"],"
	  "\"own_storages\":[\"o\"],\"max_instances\":3,\"max_spaces\":2,"
	  "\"requests_per_s\":100,\"max_bytes\":9000000000,\"max_blocks\":8,\"max_sessions\":7,"
	  "\"max_pins\":6,\"blocks_per_s\":5,\"max_held_bytes\":4,\"weight\":3}" },
	{ "drain", echo_drain, "{\"draining\":true}" },
	{ "home", echo_home, "{\"partition\":3,\"member\":\"http://10.0.0.7:7333\"}" },
	{ "move_take", echo_move_take,
	  "{\"max\":7,\"deadline_ms\":5000,\"check\":true,"
	  "\"check_before_ms\":1760000000000}" },
	{ "move_view", echo_move_view,
	  "{\"move\":\"0123456789abcdef0123456789abcdef\",\"deadline_ms\":900,\"files\":[{"
	  "\"storage\":\"a\",\"type\":\"file\",\"uuid\":\"00000000-0000-0000-0000-"
	  "000000000001\",\"path\":\"slab-00000001.kvs\"}],\"slots\":[{\"from_file\":0,"
	  "\"from_offset\":4096,\"to_file\":0,\"to_offset\":8192,\"length\":4096,"
	  "\"generation\":9,\"checksum\":\"93d76fe148c689ba\"}],\"checks\":true,"
	  "\"now_ms\":1760000000000,\"left_bytes\":4096,\"more\":true}" },
	{ "move_finish_req", echo_move_finish_req,
	  "{\"slots\":3,\"moved\":[0,2],\"quiesced\":true,\"damaged\":[1]}" },
	{ "move_finish_res", echo_move_finish_res, "{\"moved\":2,\"failed\":1,\"hidden\":1}" },
	{ "file_wish", echo_file_wish, "{\"file\":3,\"draining\":true,\"forget\":true}" },
	{ "trim_res", echo_trim_res, "{\"deleted\":5000000000,\"writing\":3}" },
	{ "pin_req", echo_pin_req, "{\"kind\":\"soft\",\"ttl_ms\":60000,\"keys_hex\":[" K1 "," K2
		  "]}" },
	{ "pin_res", echo_pin_res, "{\"n_keys\":5,\"pinned\":3,\"missing\":[1,4]}" },
	{ "unpin_req", echo_unpin_req, "{\"keys_hex\":[" K1 "," K2 "]}" },
	{ "unpin_res", echo_unpin_res, "{\"unpinned\":5000000000}" },
	{ "report_req", echo_report_req,
	  "{\"keys_hex\":[" K1 "," K2 "],\"damaged\":[{\"key\":1,\"spec\":\"tp0\","
	  "\"generation\":9}]}" },
	{ "report_res", echo_report_res,
	  "{\"hidden\":1,\"queued\":2,\"stale\":3,\"refused\":4}" },
	{ "pins_res", echo_pins_res,
	  "{\"pins\":[{\"key\":" K1 ",\"kind\":\"hard\",\"ttl_ms\":0},{\"key\":"
	  K2 ",\"kind\":\"soft\",\"ttl_ms\":7}],"
	  "\"next\":16384}" },
	{ "keys_res", echo_keys_res, "{\"keys_hex\":[" K1 "," K2 "],\"next\":4096}" },
	{ "purge_req", echo_purge_req, "{\"instances\":[\"a\",\"b\"]}" },
	{ "purge_res", echo_purge_res,
	  "{\"instances\":[\"a\",\"b\"],\"blocks\":5000000000,\"sessions\":2}" },
	{ "error", echo_error,
	  "{\"error\":{\"code\":\"no_space\",\"message\":\"no room\","
	  "\"detail\":{\"field\":\"keys\"}},\"request_id\":\"r-1\"}" },
};
const size_t n_messages = sizeof messages / sizeof messages[0];

const struct message *message_find(const char *name)
{
	for (size_t i = 0; i < n_messages; i++)
		if (strcmp(messages[i].name, name) == 0)
			return &messages[i];
	abort();
}
