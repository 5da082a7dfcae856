/*
 * messages.c - the table of messages.h. No state.
 */
#include "messages.h"

#include <stdlib.h>
#include <string.h>

const struct skv_secret test_secret =
	{ .bytes = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

#define ECHO(message, type, read, write_it)                                               \
	static int echo_##message(const struct skv_v1_in *in, const char *text, size_t n, \
				  struct skv_buf *out, struct skv_error *err)             \
	{                                                                                 \
		struct type m;                                                            \
		int status = read(in, text, n, &m, err);                                  \
                                                                                          \
		if (status == SKV_OK)                                                     \
			write_it;                                                         \
		return status;                                                            \
	}
#define HEX(array, count) \
	&(struct skv_key_input) { .form = SKV_KEYS_HEX, .n = (count), .keys = (array) }
#define REQUEST(message, type) \
	ECHO(message, type, skv_v1_read_##message, skv_pb_write_##message(out, &m))
#define KEYED(message, type, keys) \
	ECHO(message, type, skv_v1_read_##message, skv_pb_write_##message(out, &m, keys))
#define ANSWER(message, type) \
	ECHO(message, type, skv_pb_read_##message, skv_v1_write_##message(out, &m))

REQUEST(storage, skv_storage_spec)
REQUEST(group, skv_group_spec)
REQUEST(instance, skv_instance_spec)
ANSWER(storage_view, skv_storage_view)
ANSWER(group_view, skv_group_view)
ANSWER(instance_view, skv_instance_view)
KEYED(match_req, skv_match_req, HEX(m.keys, m.n_keys))
KEYED(lookup_req, skv_lookup_req, HEX(m.keys, m.n_keys))
KEYED(delete_req, skv_delete_req, HEX(m.keys, m.n_keys))
KEYED(pin_req, skv_pin_req, HEX(m.keys, m.n_keys))
KEYED(unpin_req, skv_unpin_req, HEX(m.keys, m.n_keys))
KEYED(report_req, skv_report_req, HEX(m.keys, m.n_keys))
KEYED(start_req, skv_start_req,
      (&(struct skv_key_input){ .form = SKV_KEYS_HEX, .n = m.n_keys, .keys = m.keys,
				.parent = m.has_parent ? HEX(&m.parent, 1) : NULL }))
REQUEST(finish_req, skv_finish_req)
REQUEST(abort_req, skv_abort_req)
ANSWER(match_res, skv_match_res)
ANSWER(lookup_res, skv_lookup_res)
ANSWER(start_res, skv_start_res)
ANSWER(finish_res, skv_finish_res)
ANSWER(delete_res, skv_delete_res)
KEYED(trim_req, skv_trim_req, NULL)
REQUEST(file_wish, skv_file_wish)
REQUEST(token, skv_token_spec)
REQUEST(tenant, skv_tenant_spec)
REQUEST(drain, skv_drain_spec)
REQUEST(home, skv_home_spec)
REQUEST(purge_req, skv_purge_req)
ANSWER(purge_res, skv_purge_res)
REQUEST(move_take, skv_move_take_req)
ANSWER(move_view, skv_move_view)
REQUEST(move_finish_req, skv_move_finish_req)
ANSWER(move_finish_res, skv_move_finish_res)
ANSWER(trim_res, skv_trim_res)
ANSWER(pin_res, skv_pin_res)
ANSWER(unpin_res, skv_unpin_res)
ANSWER(report_res, skv_report_res)
ANSWER(pins_res, skv_pins_res)
ANSWER(keys_res, skv_keys_res)

/* The odd one, JSON to JSON: its reader returns the status that it read. */
static int echo_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_buf *out,
		      struct skv_error *err)
{
	struct skv_error e;
	int status = skv_v1_read_error(in, text, n, &e);

	skv_v1_write_error(out, &e, "r-1");
	if (err)
		*err = e;
	return status;
}

#define K1 "\"00000000000000000000000000000001\""
#define K2 "\"ffffffffffffffffffffffffffffffff\""
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

/* A literal and its length; then what is written of it, where that is a text. */
#define BYTES(literal) literal, sizeof(literal) - 1
#define TEXT(literal) BYTES(literal), NULL

const struct message messages[] = {
	{ "storage", echo_storage,
	  TEXT("{" STORAGE_FIELDS "}") },
	{ "group", echo_group,
	  TEXT("{" GROUP_FIELDS "}") },
	{ "instance", echo_instance,
	  TEXT("{" INSTANCE_FIELDS "}") },
	{ "match_req", echo_match_req,
	  TEXT("{\"instances\":[\"m\",\"n\"],\"keys\":[\"a\",\"b\"]}") },
	{ "lookup_req", echo_lookup_req,
	  TEXT("{\"keys_int\":[0,1,9223372036854775807,\"18446744073709551615\"],"
	  "\"mode\":\"batch\","
	  "\"specs\":[\"tp0\"],\"lease_ms\":0,\"partial\":true,\"window\":2}") },
	{ "start_req", echo_start_req,
	  TEXT("{\"request_id\":\"r\",\"keys_hex\":[" K1 "," K2 "],\"parent\":\"p\","
							   "\"specs\":[\"tp0\","
							   "\"tp1\"],\"deadline_ms\":1000,"
							   "\"independent\":true,"
							   "\"avoid\":[\"s\",\"t\"]}") },
	{ "finish_req", echo_finish_req,
	  TEXT("{\"success\":{\"mask\":[true,false]},\"checksums\":[\"0123456789abcdef\",null],"
	  "\"quiesced\":true}") },
	{ "abort_req", echo_abort_req,
	  TEXT("{\"quiesced\":true}") },
	{ "delete_req", echo_delete_req,
	  TEXT("{\"keys_hex\":[" K1 "," K2 "]}") },
	{ "trim_req", echo_trim_req,
	  TEXT("{\"from_ms\":7,\"to_ms\":1760000000000}") },
	{ "token", echo_token,
	  TEXT("{\"role\":\"write\",\"tenant\":\"acme\",\"expires_s\":1800000000,\"keep_s\":60,"
	  "\"hash\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}") },
	{ "tenant", echo_tenant,
	  TEXT("{\"groups\":[\"a\",\"b\"],\"storages\":[\"s\"],\"own_groups\":[\"g\"],"
	  "\"own_storages\":[\"o\"],\"max_instances\":3,\"max_spaces\":2,"
	  "\"requests_per_s\":100,\"max_bytes\":9000000000,\"max_blocks\":8,\"max_sessions\":7,"
	  "\"max_pins\":6,\"blocks_per_s\":5,\"max_held_bytes\":4,\"weight\":3}") },
	{ "drain", echo_drain,
	  TEXT("{\"draining\":true}") },
	{ "home", echo_home,
	  TEXT("{\"partition\":3,\"member\":\"http://10.0.0.7:7333\"}") },
	{ "move_take", echo_move_take,
	  TEXT("{\"max\":7,\"deadline_ms\":5000,\"check\":true,"
	  "\"check_before_ms\":1760000000000}") },
	{ "move_finish_req", echo_move_finish_req,
	  TEXT("{\"slots\":3,\"moved\":[0,2],\"quiesced\":true,\"damaged\":[1]}") },
	{ "file_wish", echo_file_wish,
	  TEXT("{\"file\":3,\"draining\":true,\"forget\":true}") },
	{ "pin_req", echo_pin_req,
	  TEXT("{\"kind\":\"soft\",\"ttl_ms\":60000,\"keys_hex\":[" K1 "," K2
		  "]}") },
	{ "unpin_req", echo_unpin_req,
	  TEXT("{\"keys_hex\":[" K1 "," K2 "]}") },
	{ "report_req", echo_report_req,
	  TEXT("{\"keys_hex\":[" K1 "," K2 "],\"damaged\":[{\"key\":1,\"spec\":\"tp0\","
	  "\"generation\":9}]}") },
	{ "purge_req", echo_purge_req,
	  TEXT("{\"instances\":[\"a\",\"b\"]}") },
	{ "error", echo_error,
	  TEXT("{\"error\":{\"code\":\"no_space\",\"message\":\"no room\","
	  "\"detail\":{\"field\":\"keys\"}},\"request_id\":\"r-1\"}") },
	/* answers */
	{ "storage_view", echo_storage_view,
	  BYTES("\012\007default\022q\012\004file\022\010/data/kv\030\200\200\200\200\200\200\001"
	  " \200\200\200\200\004(\200\200\200 0\000:\013/mnt/3fs/kvB\010/mnt/3fsJ\002{}\200"
	  "\001\001\240\001_\250\001Z\200\002\200\200@\210\002\001\222\002\015http://a:1/kv"
	  "\222\002\015http://b:1/kv\032$00112233-4455-6677-8899-aabbccddeeff \001*\004none"
	  "0\0038\004@\005H\006P\007X\010\200\001\001\210\001\002\220\001\011\230\001\012"),
	  "{\"name\":\"default\",\"type\":\"file\",\"root\":\"/data/kv\",\"capacity\":43980"
	  "46511104,\"file_size\":1073741824,\"unit\":67108864,\"enabled\":false,"
	  "\"draining\":true,\"client_root\":\"/mnt/3fs/kv\",\"client_mount\":\"/mnt/3fs\","
	  "\"extra\":\"{}\",\"high_percent\":95,\"low_percent\":90,\"chunk_size\":1048576,"
	  "\"any_mount\":true,\"fs_master\":[\"http://a:1/kv\",\"http://b:1/kv\"],"
	  "\"uuid\":\"00112233-4455-6677-8899-aabbccddeeff\",\"healthy\":true,"
	  "\"problem\":\"none\",\"files\":3,\"draining_files\":1,\"bad_files\":2,"
	  "\"file_bytes\":4,\"assigned_bytes\":5,\"used_bytes\":6,\"quarantined_bytes\":7,"
	  "\"free_bytes\":8,\"available_bytes\":9,\"fs_free_bytes\":10}" },
	{ "group_view", echo_group_view,
	  BYTES("\012\001g\022q\010\377\377\377\377\377\377\377\377\377\001\022\001a\022\001b\030"
	  "\001\042\015\012\004file\020\200\200\200 \030\011\042\007\012\005hf3fs(\0030\004"
	  "8\005@\006H\007PdX\010`\377\377\377\377\377\377\377\377\377\001h\012r\002\303"
	  "\251z\006s3fifo\200\001\011\240\001c\250\001\001\260\001\031\270\001\002\302\001"
	  "\004slow\310\001\001\320\001\002\330\001\001\030\001 \002(\0030\0048\005@\006H"
	  "\007P\010X\011"),
	  "{\"name\":\"g\",\"capacity\":\"18446744073709551615\",\"storages\":[\"a\","
	  "\"b\"],\"loose_storages\":true,\"quotas\":[{\"type\":\"file\",\"capacity\":67108"
	  "864,\"reclaim\":9},{\"type\":\"hf3fs\"}],\"max_blocks\":3,\"max_instances\":4,"
	  "\"reclaim_bytes\":5,\"reclaim_blocks\":6,\"reclaim_step_bytes\":7,"
	  "\"reclaim_step_percent\":100,\"reclaim_period_ms\":8,\"max_idle_ms\":\"184467440"
	  "73709551615\",\"policy\":\"s3fifo\",\"ttl_ms\":9,\"version\":10,"
	  "\"high_percent\":99,\"low_percent\":1,\"pin_percent\":25,\"share\":\"fixed\","
	  "\"extra\":\"é\",\"tier_of\":\"slow\",\"write_through\":true,\"promote_after\":2,"
	  "\"replicate\":true,\"blocks\":1,\"used_bytes\":2,\"room_bytes\":3,"
	  "\"pinned_bytes\":4,\"soft_pinned_bytes\":5,\"leased_bytes\":6,\"open_bytes\":7,"
	  "\"evicted_blocks\":8,\"hits\":9}" },
	{ "instance_view", echo_instance_view,
	  BYTES("\012\001m\022\007default\0321\012\001g\020\200\004\032\010\012\003tp0\020\200 "
	  "\032\012\012\003tp1\020\200\300\222\002\042\007\303\251 \042x\042\012(\0010\0018"
	  "\007@\200\200\200\200\014 \001(\0020\0038\004@\005H\006P\007X\010`\011h\012"),
	  "{\"id\":\"m\",\"tenant\":\"default\",\"group\":\"g\",\"block_tokens\":512,"
	  "\"specs\":[{\"name\":\"tp0\",\"size\":4096},{\"name\":\"tp1\",\"size\":4497408}]"
	  ",\"extra\":\"é \\\"x\\\"\\n\",\"numbered\":true,\"named\":true,"
	  "\"weight\":7,\"capacity\":3221225472,\"blocks\":1,\"used_bytes\":2,"
	  "\"open_sessions\":3,\"open_bytes\":4,\"leased_bytes\":5,\"share_bytes\":6,"
	  "\"pinned_bytes\":7,\"soft_pinned_bytes\":8,\"evicted_blocks\":9,"
	  "\"hits\":10,\"unused_ms\":0}" },
	{ "match_res", echo_match_res,
	  BYTES("\012\001m\012\001n\022\002\007\000"),
	  "{\"results\":[{\"instance\":\"m\",\"matched\":7},{\"instance\":\"n\","
	  "\"matched\":0}]}" },
	{ "lookup_res", echo_lookup_res,
	  BYTES("\010\003\020\001\030\220N\042\003tp0*H\012\004file\022\007default\032$00112233-4"
	  "455-6677-8899-aabbccddeeff\042\021slab-00000000.kvs2\002\001\001: \010\200\200@"
	  "\022\003\030\200 \032\013\010\377\377\377\377\377\377\377\377\377\001\042\010"
	  "\357\315\253\211gE#\001"),
	  "{\"n_keys\":3,\"matched\":1,\"lease_ms\":10000,\"specs\":[\"tp0\"],"
	  "\"files\":[{\"type\":\"file\",\"storage\":\"default\",\"uuid\":\"00112233-4455-6"
	  "677-8899-aabbccddeeff\",\"path\":\"slab-00000000.kvs\"}],\"blocks\":[{\"index\":"
	  "1,\"locations\":[{\"file\":0,\"offset\":4096,\"length\":1048576,"
	  "\"generation\":\"18446744073709551615\",\"checksum\":\"0123456789abcdef\"}]}]}" },
	{ "start_res", echo_start_res,
	  BYTES("\012 ffffffffffffffffffffffffffffffff\030\260\352\001 \003(\0012\003tp02\003tp1:"
	  "H\012\004file\022\007default\032$00112233-4455-6677-8899-aabbccddeeff\042\021sla"
	  "b-00000000.kvsB\003\005\004\006J \010\200\200@\022\003\030\200 \032\013\010\377"
	  "\377\377\377\377\377\377\377\377\001\042\010\357\315\253\211gE#\001J\004\022\002"
	  "0\001"),
	  "{\"session\":\"ffffffffffffffffffffffffffffffff\",\"state\":\"open\","
	  "\"deadline_ms\":30000,\"n_keys\":3,\"n_write\":1,\"specs\":[\"tp0\","
	  "\"tp1\"],\"files\":[{\"type\":\"file\",\"storage\":\"default\","
	  "\"uuid\":\"00112233-4455-6677-8899-aabbccddeeff\",\"path\":\"slab-00000000.kvs\""
	  "}],\"blocks\":[{\"index\":0,\"outcome\":\"exists\"},{\"index\":1,"
	  "\"outcome\":\"write\",\"locations\":[{\"file\":0,\"offset\":4096,"
	  "\"length\":1048576,\"generation\":\"18446744073709551615\",\"checksum\":\"012345"
	  "6789abcdef\"},null]},{\"index\":2,\"outcome\":\"busy\"}]}" },
	{ "finish_res", echo_finish_res,
	  BYTES("\010\001\020\002\030\001\042\003\001\254\002"),
	  "{\"state\":\"finished\",\"committed\":2,\"failed\":1,\"deleted\":[1,"
	  "300]}" },
	{ "delete_res", echo_delete_res,
	  BYTES("\010\005\020\002\030\001"),
	  "{\"deleted\":5,\"pinned\":2,\"writing\":1}" },
	{ "move_view", echo_move_view,
	  BYTES("\012 0123456789abcdef0123456789abcdef\020\204\007\032B\012\001a\022\004file\032$"
	  "00000000-0000-0000-0000-000000000001\042\021slab-00000001.kvs\042\035\020\200  "
	  "\200@(\200 0\011:\02093d76fe148c689ba(\0010\200\200\263\301\23438\200 @\001"),
	  "{\"move\":\"0123456789abcdef0123456789abcdef\",\"deadline_ms\":900,"
	  "\"files\":[{\"storage\":\"a\",\"type\":\"file\",\"uuid\":\"00000000-0000-0000-00"
	  "00-000000000001\",\"path\":\"slab-00000001.kvs\"}],\"slots\":[{\"from_file\":0,"
	  "\"from_offset\":4096,\"to_file\":0,\"to_offset\":8192,\"length\":4096,"
	  "\"generation\":9,\"checksum\":\"93d76fe148c689ba\"}],\"checks\":true,"
	  "\"now_ms\":1760000000000,\"left_bytes\":4096,\"more\":true}" },
	{ "move_finish_res", echo_move_finish_res,
	  BYTES("\010\002\020\001\030\001"),
	  "{\"moved\":2,\"failed\":1,\"hidden\":1}" },
	{ "trim_res", echo_trim_res,
	  BYTES("\010\200\344\227\320\022\020\003"),
	  "{\"deleted\":5000000000,\"writing\":3}" },
	{ "pin_res", echo_pin_res,
	  BYTES("\010\005\020\003\032\002\001\004"),
	  "{\"n_keys\":5,\"pinned\":3,\"missing\":[1,4]}" },
	{ "unpin_res", echo_unpin_res,
	  BYTES("\010\200\344\227\320\022"),
	  "{\"unpinned\":5000000000}" },
	{ "report_res", echo_report_res,
	  BYTES("\010\001\020\002\030\003 \004"),
	  "{\"hidden\":1,\"queued\":2,\"stale\":3,\"refused\":4}" },
	{ "pins_res", echo_pins_res,
	  BYTES("\012 \000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\377\377"
	  "\377\377\377\377\377\377\377\377\377\377\377\377\377\377\022\002\002\001\032\002"
	  "\000\007 \200\200\001"),
	  "{\"pins\":[{\"key\":\"00000000000000000000000000000001\",\"kind\":\"hard\","
	  "\"ttl_ms\":0},{\"key\":\"ffffffffffffffffffffffffffffffff\",\"kind\":\"soft\","
	  "\"ttl_ms\":7}],\"next\":16384}" },
	{ "keys_res", echo_keys_res,
	  BYTES("\012 \000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\001\377\377"
	  "\377\377\377\377\377\377\377\377\377\377\377\377\377\377\020\200 "),
	  "{\"keys_hex\":[\"00000000000000000000000000000001\",\"ffffffffffffffffffffffffff"
	  "ffffff\"],\"next\":4096}" },
	{ "purge_res", echo_purge_res,
	  BYTES("\012\001a\012\001b\020\200\344\227\320\022\030\002"),
	  "{\"instances\":[\"a\",\"b\"],\"blocks\":5000000000,\"sessions\":2}" },
};
const size_t n_messages = sizeof messages / sizeof messages[0];

const struct message *message_find(const char *name)
{
	for (size_t i = 0; i < n_messages; i++)
		if (strcmp(messages[i].name, name) == 0)
			return &messages[i];
	abort();
}
