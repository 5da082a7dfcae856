/*
 * test_v1_bad.c - bad input: every wrong document gets the right status and the name of the field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#include "messages.h"

struct bad {
	const char *message;
	const char *text;
	int status;
	const char *field;
};

#define H1 "00000000000000000000000000000001"
#define I SKV_E_INVALID

#define ZEROS63 "000000000000000000000000000000000000000000000000000000000000000"
#define ZEROS ZEROS63 "0"

static const struct bad documents[] = {
	/* not JSON at all; the field is where it stopped being so */
	{ "delete_req", "", I, "" },
	{ "delete_req", "   ", I, "" },
	{ "delete_req", "nonsense", I, "" },
	{ "delete_req", "[]", I, "" },
	{ "delete_req", "[{\"keys\":[\"a\"]}]", I, "" },
	{ "delete_req", "\"keys\"", I, "" },
	{ "delete_req", "7", I, "" },
	{ "delete_req", "null", I, "" },
	{ "delete_req", "{", I, "" },
	{ "delete_req", "{\"keys\":[\"a\"]", I, "keys" },
	{ "delete_req", "{\"keys\":[\"a\",", I, "keys[1]" },
	{ "delete_req", "{\"keys\":[\"a\"]} x", I, "" },
	{ "delete_req", "{\"keys\":[\"a\"]}{}", I, "" },
	{ "delete_req", "{'keys':['a']}", I, "" },
	{ "delete_req", "{\"keys\":[\"a\",]}", I, "keys" },
	{ "delete_req", "{\"keys\":[\"a\" \"b\"]}", I, "keys[0]" },
	{ "delete_req", "{\"keys_int\":[01]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[+1]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[NaN]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys\":[\"a\xff\"]}", I, "keys[0]" },
	{ "delete_req", "{\"keys\":[\"ok\",\"\xc0\xaf\"]}", I, "keys[1]" },
	{ "delete_req", "{\"keys\":[\"\xed\xa0\x80\"]}", I, "keys[0]" },
	{ "delete_req", "{\"keys\":[\"\\ud800\"]}", I, "keys[0]" },
	{ "delete_req", "{\"keys\":[\"a\\u0000b\"]}", I, "keys[0]" },
	{ "delete_req", "{\"keys\":[\"a\nb\"]}", I, "keys[0]" },
	{ "delete_req", "{\"keys\":[\"a\"],\"keys\":[\"b\"]}", I, "keys" },
	{ "instance",
	  "{\"specs\":[{\"name\":\"a\",\"size\":1},{\"name\":\"b\",\"size\":1,\"size\":2}]}", I,
	  "specs[1].size" },
	{ "delete_req",
	  "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":"
	  "{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}}}}}}}}",
	  I, "a" },
	{ "delete_req", "{\"keys\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}", I,
	  "keys[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]" },

	/* keys */
	{ "delete_req", "{}", I, "keys" },
	{ "delete_req", "{\"keys\":null}", I, "keys" },
	{ "delete_req", "{\"keys\":\"a\"}", I, "keys" },
	{ "delete_req", "{\"keys\":{}}", I, "keys" },
	{ "delete_req", "{\"keys\":[]}", I, "keys" },
	{ "delete_req", "{\"keys\":[\"a\",\"\"]}", I, "keys[1]" },
	{ "delete_req", "{\"keys\":[1]}", I, "keys[0]" },
	{ "delete_req", "{\"keys\":[null]}", I, "keys[0]" },
	{ "delete_req", "{\"keys\":[[\"a\"]]}", I, "keys[0]" },
	{ "delete_req", "{\"keys\":[\"a\",\"b\",\"c\",\"b\"]}", I, "keys[3]" },
	{ "delete_req", "{\"keys\":[\"a\"],\"keys_int\":[1]}", I, "keys_int" },
	{ "delete_req", "{\"keys_hex\":[\"" H1 "\"],\"keys_int\":[1]}", I, "keys_hex" },
	{ "delete_req", "{\"keys\":[\"a\"],\"keys_hex\":null}", I, "keys_hex" },
	{ "delete_req", "{\"keys\":[\"a\"],\"Keys\":[\"a\"]}", I, "Keys" },
	{ "delete_req", "{\"keys_int\":[-1]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[1,2,1]}", I, "keys_int[2]" },
	{ "delete_req", "{\"keys_int\":[1,\"1\"]}", I, "keys_int[1]" },
	{ "delete_req", "{\"keys_int\":[1.0]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[1e3]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[1e999]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[true]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[7,9223372036854775808]}", I, "keys_int[1]" },
	{ "delete_req", "{\"keys_int\":[-9223372036854775809]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[\"18446744073709551616\"]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[\"99999999999999999999\"]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[\"\"]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[\" 1\"]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[\"0x10\"]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[\"1K\"]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_int\":[\"-1\"]}", I, "keys_int[0]" },
	{ "delete_req", "{\"keys_hex\":[\"" H1 "0\"]}", I, "keys_hex[0]" },
	{ "delete_req", "{\"keys_hex\":[\"" H1 "\",\"0000000000000000000000000000001\"]}", I,
	  "keys_hex[1]" },
	{ "delete_req", "{\"keys_hex\":[\"0000000000000000000000000000000g\"]}", I, "keys_hex[0]" },
	{ "delete_req", "{\"keys_hex\":[\"0x000000000000000000000000000001\"]}", I, "keys_hex[0]" },
	{ "delete_req", "{\"keys_hex\":[\"\"]}", I, "keys_hex[0]" },
	{ "delete_req", "{\"keys_hex\":[1]}", I, "keys_hex[0]" },
	{ "delete_req", "{\"keys_hex\":[\"abcdefabcdefabcdefabcdefabcdefab\","
	  "\"ABCDEFABCDEFABCDEFABCDEFABCDEFAB\"]}",
	  I, "keys_hex[1]" },

	/* match */
	{ "match_req", "{\"keys\":[\"a\"]}", I, "instances" },
	{ "match_req", "{\"instances\":[],\"keys\":[\"a\"]}", I, "instances" },
	{ "match_req", "{\"instances\":\"m\",\"keys\":[\"a\"]}", I, "instances" },
	{ "match_req", "{\"instances\":[\"m\",\"m\"],\"keys\":[\"a\"]}", I, "instances[1]" },
	{ "match_req", "{\"instances\":[\"../m\"],\"keys\":[\"a\"]}", I, "instances[0]" },
	{ "match_req", "{\"instances\":[\"m\"],\"keys\":[\"a\"],\"lease_ms\":1}", I, "lease_ms" },
	{ "match_req", "{\"instances\":[\"m\"]}", I, "keys" },

	/* lookup */
	{ "lookup_req", "{\"keys\":[\"a\"],\"mode\":\"all\"}", I, "mode" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"mode\":\"hybrid\"}", I, "mode" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"mode\":1}", I, "mode" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"mode\":null}", I, "mode" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"partial\":1}", I, "partial" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"mode\":\"window\",\"window\":16385}", I, "window" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"window\":-1}", I, "window" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"runs\":1}", I, "runs" },
	{ "start_req", "{\"keys\":[\"a\"],\"runs\":\"true\"}", I, "runs" },
	{ "trim_req", "{}", I, "to_ms" },
	{ "trim_req", "{\"from_ms\":1}", I, "to_ms" },
	{ "trim_req", "{\"to_ms\":9007199254740992}", I, "to_ms" },
	{ "trim_req", "{\"to_ms\":-1}", I, "to_ms" },
	{ "trim_req", "{\"to_ms\":1,\"keys\":[]}", I, "keys" },
	{ "pin_req", "{}", I, "keys" },
	{ "pin_req", "{\"keys\":[]}", I, "keys" },
	{ "pin_req", "{\"keys\":[\"a\",\"a\"]}", I, "keys[1]" },
	{ "pin_req", "{\"keys\":[\"a\"],\"kind\":\"iron\"}", I, "kind" },
	{ "pin_req", "{\"keys\":[\"a\"],\"kind\":1}", I, "kind" },
	{ "pin_req", "{\"keys\":[\"a\"],\"ttl_ms\":-1}", I, "ttl_ms" },
	{ "pin_req", "{\"keys\":[\"a\"],\"ttl_ms\":2592000001}", I, "ttl_ms" },
	{ "pin_req", "{\"keys\":[\"a\"],\"soft\":true}", I, "soft" },
	{ "unpin_req", "{}", I, "keys" },
	{ "unpin_req", "{\"all\":false}", I, "all" },
	{ "unpin_req", "{\"all\":1}", I, "all" },
	{ "unpin_req", "{\"all\":true,\"keys\":[\"a\"]}", I, "keys" },
	{ "report_req", "{\"keys\":[\"a\"]}", I, "damaged" },
	{ "report_req", "{\"keys\":[\"a\"],\"damaged\":[]}", I, "damaged" },
	{ "report_req", "{\"keys\":[\"a\"],\"damaged\":[{\"key\":0}]}", I,
	  "damaged[0].generation" },
	{ "report_req", "{\"keys\":[\"a\"],\"damaged\":[{\"generation\":1}]}", I,
	  "damaged[0].key" },
	{ "report_req", "{\"damaged\":[{\"key\":0,\"generation\":1}]}", I, "keys" },
	{ "report_req", "{\"keys\":[\"a\"],\"damaged\":[{\"key\":0,\"generation\":-1}]}", I,
	  "damaged[0].generation" },
	{ "move_finish_req", "{\"slots\":3,\"moved\":[],\"damaged\":[3]}", I, "damaged[0]" },
	{ "group", "{\"storages\":[\"s\"],\"share\":\"all\"}", I, "share" },
	{ "group", "{\"storages\":[\"s\"],\"share\":1}", I, "share" },
	{ "group", "{\"storages\":[\"s\"],\"pin_percent\":101}", I, "pin_percent" },
	{ "group", "{\"storages\":[\"s\"],\"high_percent\":101}", I, "high_percent" },
	{ "storage", "{\"root\":\"/r\",\"capacity\":1,\"low_percent\":-1}", I, "low_percent" },
	{ "instance", "{\"specs\":[{\"name\":\"a\",\"size\":1}],\"weight\":1001}", I, "weight" },
	{ "instance", "{\"specs\":[{\"name\":\"a\",\"size\":1}],\"capacity\":\"x\"}", I,
	  "capacity" },
	{ "drain", "{}", I, "draining" },
	{ "drain", "{\"draining\":1}", I, "draining" },
	{ "home", "{\"partition\":0}", I, "member" },
	{ "home", "{\"member\":\"\"}", I, "partition" },
	{ "home", "{\"partition\":-1,\"member\":\"\"}", I, "partition" },
	{ "home", "{\"partition\":0,\"member\":\"\",\"for\":1}", I, "for" },
	{ "move_take", "{\"max\":129}", I, "max" },
	{ "move_take", "{\"more\":1}", I, "more" },
	{ "move_finish_req", "{}", I, "slots" },
	{ "move_finish_req", "{\"slots\":3}", I, "moved" },
	{ "move_finish_req", "{\"slots\":129,\"moved\":[]}", I, "slots" },
	{ "move_finish_req", "{\"slots\":3,\"moved\":[3]}", I, "moved[0]" },
	{ "token", "{}", I, "role" },
	{ "token", "{\"role\":\"read\"}", I, "hash" },
	{ "token", "{\"role\":\"root\",\"hash\":\"" ZEROS "\"}", I, "role" },
	{ "token", "{\"role\":\"read\",\"hash\":\"g" ZEROS63 "\"}", I, "hash" },
	{ "token", "{\"role\":\"read\",\"hash\":\"" ZEROS63 "\"}", I, "hash" },
	{ "token", "{\"role\":\"read\",\"hash\":\"" ZEROS "\",\"tenant\":\"/\"}", I, "tenant" },
	{ "token", "{\"role\":\"read\",\"hash\":\"" ZEROS "\",\"text\":\"x\"}", I, "text" },
	{ "file_wish", "{}", I, "file" },
	{ "file_wish", "{\"file\":3}", I, "draining" },
	{ "file_wish", "{\"file\":-1,\"draining\":true}", I, "file" },
	{ "file_wish", "{\"file\":4294967296,\"draining\":true}", I, "file" },
	{ "file_wish", "{\"file\":3,\"draining\":1}", I, "draining" },
	{ "file_wish", "{\"file\":3,\"draining\":true,\"now\":true}", I, "now" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"specs\":[]}", I, "specs" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"specs\":[\"s\",\"s\"]}", I, "specs[1]" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"specs\":[\"\"]}", I, "specs[0]" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"lease_ms\":-1}", I, "lease_ms" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"lease_ms\":4294967295}", I, "lease_ms" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"lease_ms\":0.5}", I, "lease_ms" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"lease_ms\":\"10s\"}", I, "lease_ms" },
	{ "lookup_req", "{\"keys\":[\"a\"],\"instance\":\"m\"}", I, "instance" },

	/* start */
	{ "start_req", "{\"keys\":[\"a\"],\"request_id\":\"\"}", I, "request_id" },
	{ "start_req", "{\"keys\":[\"a\"],\"request_id\":7}", I, "request_id" },
	{ "start_req", "{\"keys\":[\"a\"],\"parent\":1}", I, "parent" },
	{ "start_req", "{\"keys\":[\"a\"],\"parent\":null}", I, "parent" },
	{ "start_req", "{\"keys\":[\"a\"],\"parent\":\"\"}", I, "parent" },
	{ "start_req", "{\"keys\":[\"a\"],\"parent\":[\"b\"]}", I, "parent" },
	{ "start_req", "{\"keys\":[\"a\"],\"parent_int\":-1}", I, "parent_int" },
	{ "start_req", "{\"keys\":[\"a\"],\"parent_hex\":\"12\"}", I, "parent_hex" },
	{ "start_req", "{\"keys\":[\"a\"],\"parent\":\"b\",\"parent_hex\":\"" H1 "\"}", I,
	  "parent_hex" },
	{ "start_req", "{\"keys\":[\"a\"],\"deadline_ms\":4294967296}", I, "deadline_ms" },
	{ "start_req", "{\"keys\":[\"a\"],\"deadline_ms\":[]}", I, "deadline_ms" },
	{ "start_req", "{\"keys\":[\"a\"],\"independent\":1}", I, "independent" },
	{ "start_req", "{\"keys\":[\"a\"],\"independent\":null}", I, "independent" },
	{ "start_req", "{\"keys\":[\"a\"],\"specs\":[1]}", I, "specs[0]" },
	{ "start_req", "{\"keys\":[\"a\"],\"avoid\":\"s\"}", I, "avoid" },
	{ "start_req", "{\"keys\":[\"a\"],\"avoid\":[]}", I, "avoid" },
	{ "start_req", "{\"keys\":[\"a\"],\"avoid\":[\"s\",\"/\"]}", I, "avoid[1]" },

	/* finish, abort */
	{ "finish_req", "{}", I, "success" },
	{ "finish_req", "{\"success\":null}", I, "success" },
	{ "finish_req", "{\"success\":false}", I, "success" },
	{ "finish_req", "{\"success\":\"true\"}", I, "success" },
	{ "finish_req", "{\"success\":1}", I, "success" },
	{ "finish_req", "{\"success\":{}}", I, "success" },
	{ "finish_req", "{\"success\":{\"count\":1,\"mask\":[]}}", I, "success" },
	{ "finish_req", "{\"success\":{\"count\":-1}}", I, "success.count" },
	{ "finish_req", "{\"success\":{\"count\":16385}}", I, "success.count" },
	{ "finish_req", "{\"success\":{\"mask\":1}}", I, "success.mask" },
	{ "finish_req", "{\"success\":{\"mask\":[true,0]}}", I, "success.mask[1]" },
	{ "finish_req", "{\"success\":{\"mask\":[null]}}", I, "success.mask[0]" },
	{ "finish_req", "{\"success\":{\"bits\":1}}", I, "success.bits" },
	{ "finish_req", "{\"success\":true,\"checksums\":\"0123456789abcdef\"}", I, "checksums" },
	{ "finish_req", "{\"success\":true,\"checksums\":[\"0123456789abcde\"]}", I,
	  "checksums[0]" },
	{ "finish_req", "{\"success\":true,\"checksums\":[null,\"0123456789abcdefg\"]}", I,
	  "checksums[1]" },
	{ "finish_req", "{\"success\":true,\"checksums\":[\"0123456789abcdeg\"]}", I,
	  "checksums[0]" },
	{ "finish_req", "{\"success\":true,\"checksums\":[12]}", I, "checksums[0]" },
	{ "finish_req", "{\"success\":true,\"quiesced\":1}", I, "quiesced" },
	{ "finish_req", "{\"success\":true,\"session\":\"x\"}", I, "session" },
	{ "abort_req", "{\"quiesced\":\"yes\"}", I, "quiesced" },
	{ "abort_req", "{\"force\":true}", I, "force" },
	{ "abort_req", "[]", I, "" },

	/* objects */
	{ "storage", "{}", I, "root" },
	{ "storage", "{\"root\":\"/a\"}", I, "capacity" },
	{ "storage", "{\"root\":\"a/b\",\"capacity\":1}", I, "root" },
	{ "storage", "{\"root\":\"\",\"capacity\":1}", I, "root" },
	{ "storage", "{\"root\":7,\"capacity\":1}", I, "root" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":0}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":-1}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1.5}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":\"K\"}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":\"1.5G\"}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":\"1P\"}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":\"1GB\"}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":\"16777216T\"}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":\"1M\",\"unit\":\"3K\"}", I, "unit" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":\"100K\",\"unit\":\"64K\"}", I, "capacity" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"file_size\":true}", I, "file_size" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"enabled\":1}", I, "enabled" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"draining\":1}", I, "draining" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"type\":\"a/b\"}", I, "type" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"name\":\"x\"}", I, "name" },
	{ "storage", "{\"type\":\"null\",\"root\":\"x\",\"capacity\":1}", I, "root" },
	{ "group", "{}", I, "storages" },
	{ "group", "{\"storages\":[]}", I, "storages" },
	{ "group", "{\"storages\":[\"..\"]}", I, "storages[0]" },
	{ "group", "{\"storages\":[\"a\",\"b/c\"]}", I, "storages[1]" },
	{ "group", "{\"storages\":[\"a\",\"a\"]}", I, "storages[1]" },
	{ "group", "{\"storages\":[\"a\"],\"capacity\":\"x\"}", I, "capacity" },
	{ "group", "{\"loose_storages\":true}", I, "storages" },
	{ "group", "{\"storages\":[\"a\"],\"loose_storages\":1}", I, "loose_storages" },
	{ "group", "{\"storages\":[\"a\"],\"quotas\":{}}", I, "quotas" },
	{ "group", "{\"storages\":[\"a\"],\"quotas\":[1]}", I, "quotas[0]" },
	{ "group", "{\"storages\":[\"a\"],\"quotas\":[{}]}", I, "quotas[0].type" },
	{ "group", "{\"storages\":[\"a\"],\"quotas\":[{\"type\":\"file\",\"capacity\":-1}]}", I,
	  "quotas[0].capacity" },
	{ "group", "{\"storages\":[\"a\"],\"quotas\":[{\"type\":\"file\",\"bytes\":1}]}", I,
	  "quotas[0].bytes" },
	{ "group", "{\"storages\":[\"a\"],\"max_blocks\":1.5}", I, "max_blocks" },
	{ "group", "{\"storages\":[\"a\"],\"max_instances\":4294967296}", I, "max_instances" },
	{ "group", "{\"storages\":[\"a\"],\"reclaim_step_percent\":101}", I,
	  "reclaim_step_percent" },
	{ "group", "{\"storages\":[\"a\"],\"reclaim_period_ms\":-5}", I, "reclaim_period_ms" },
	{ "group", "{\"storages\":[\"a\"],\"max_idle_ms\":\"soon\"}", I, "max_idle_ms" },
	{ "group", "{\"storages\":[\"a\"],\"policy\":1}", I, "policy" },
	{ "group", "{\"storages\":[\"a\"],\"ttl_ms\":-1}", I, "ttl_ms" },
	{ "group", "{\"storages\":[\"a\"],\"version\":null}", I, "version" },
	{ "group", "{\"storages\":[\"a\"],\"extra\":7}", I, "extra" },
	{ "group", "{\"storages\":[\"a\"],\"max_keys\":7}", I, "max_keys" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"client_root\":7}", I, "client_root" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"client_mount\":[]}", I, "client_mount" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"chunk_size\":-1}", I, "chunk_size" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"any_mount\":1}", I, "any_mount" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"fs_master\":\"http://a/b\"}", I,
	  "fs_master" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"fs_master\":[\"\"]}", I, "fs_master[0]" },
	{ "storage", "{\"capacity\":1,\"fs_master\":[]}", I, "root" },
	{ "storage", "{\"root\":\"/a\",\"capacity\":1,\"extra\":{}}", I, "extra" },
	{ "instance", "{\"specs\":[{\"name\":\"a\",\"size\":1}],\"numbered\":1}", I, "numbered" },
	{ "instance", "{\"specs\":[{\"name\":\"a\",\"size\":1}],\"named\":1}", I, "named" },
	{ "instance", "{}", I, "specs" },
	{ "instance", "{\"specs\":[]}", I, "specs" },
	{ "instance", "{\"specs\":{}}", I, "specs" },
	{ "instance", "{\"specs\":[1]}", I, "specs[0]" },
	{ "instance", "{\"specs\":[{}]}", I, "specs[0].name" },
	{ "instance", "{\"specs\":[{\"name\":\"kv\"}]}", I, "specs[0].size" },
	{ "instance", "{\"specs\":[{\"name\":\"kv\",\"size\":0}]}", I, "specs[0].size" },
	{ "instance", "{\"specs\":[{\"name\":\"kv\",\"size\":\"5G\"}]}", I, "specs[0].size" },
	{ "instance", "{\"specs\":[{\"name\":\"kv\",\"size\":99999999999999999999}]}", I,
	  "specs[0].size" },
	{ "instance", "{\"specs\":[{\"name\":\"-kv\",\"size\":1}]}", I, "specs[0].name" },
	{ "instance", "{\"specs\":[{\"name\":\"k v\",\"size\":1}]}", I, "specs[0].name" },
	{ "instance", "{\"specs\":[{\"name\":\"kv\",\"size\":1,\"kind\":1}]}", I, "specs[0].kind" },
	{ "instance", "{\"specs\":[{\"name\":\"a\",\"size\":1},{\"name\":\"a\",\"size\":2}]}", I,
	  "specs[1].name" },
	{ "instance", "{\"specs\":[{\"name\":\"a\",\"size\":1}],\"group\":\"a/b\"}", I, "group" },
	{ "instance", "{\"specs\":[{\"name\":\"a\",\"size\":1}],\"block_tokens\":-5}", I,
	  "block_tokens" },
	{ "instance", "{\"specs\":[{\"name\":\"a\",\"size\":1}],\"extra\":{}}", I, "extra" },

	/* answers: a client must not follow what is not sound */
	{ "purge_req", "{\"prefix\":3}", I, "prefix" },
	{ "purge_req", "{\"instances\":[\"a\",\"a\"]}", I, "instances[1]" },
	{ "error", "<html>502 Bad Gateway</html>", SKV_E_NETWORK, "" },
	{ "error", "{}", SKV_E_NETWORK, "" },
	{ "error", "{\"error\":\"no\"}", SKV_E_NETWORK, "" },
	{ "error", "{\"error\":{\"code\":\"no_space\",\"message\":\"x\"}}", SKV_E_NETWORK, "" },
	{ "error", "{\"error\":{\"code\":\"ok\",\"message\":\"x\",\"detail\":{}}}",
	  SKV_E_INTERNAL, "" },
	{ "error", "{\"error\":{\"code\":\"from_the_future\",\"message\":\"x\",\"detail\":{}}}",
	  SKV_E_INTERNAL, "" },
};

/* Reads `text` as `m` and expects this failure. The output must stay untouched. */
static void expect(const struct message *m, const char *text, size_t n, int status,
		   const char *field)
{
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
	struct skv_error err;
	struct skv_buf out;
	int got;

	skv_arena_init(&arena);
	skv_buf_init(&out);
	skv_error_clear(&err);
	got = m->echo(&in, text, n, &out, &err);
	if (got != status || err.status != status || strcmp(err.field, field) != 0)
		fail_msg("%s %.200s\n  wanted %s at '%s', got %s at '%s': %s", m->name, text,
			 skv_status_name(status), field, skv_status_name(got), err.field,
			 err.message);
	assert_true(err.message[0] != '\0');
	got = m->echo(&in, text, n, &out, NULL); /* nobody wants to know why */
	skv_buf_destroy(&out);
	skv_arena_destroy(&arena);
	assert_int_equal(got, status);
}

static void test_documents(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
		const struct bad *b = &documents[i];
		char *exact = malloc(strlen(b->text) + 1); /* no byte more: ASan sees an overrun */

		assert_non_null(exact);
		memcpy(exact, b->text, strlen(b->text) + 1);
		expect(message_find(b->message), exact, strlen(b->text), b->status, b->field);
		free(exact);
	}
}

/* Every sample of a request, with a field that nobody knows. An error, which is an answer, may have
 * more. */
static void test_unknown_field(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_messages && !messages[i].written; i++) {
		const struct message *m = &messages[i];
		char text[4096];
		int n = snprintf(text, sizeof text, "{\"zz\":[{\"x\":null}],%s", m->sample + 1);

		assert_true(n > 0 && (size_t)n < sizeof text);
		if (strcmp(m->name, "error") == 0)
			expect(m, text, (size_t)n, SKV_E_NO_SPACE, "keys");
		else
			expect(m, text, (size_t)n, SKV_E_INVALID, "zz");
	}
}

/* `head`, then `n` copies of a numbered item with commas, then `tail`. */
static struct skv_buf many(const char *head, const char *format, unsigned n, const char *tail)
{
	struct skv_buf b;

	skv_buf_init(&b);
	skv_put_bytes(&b, head, strlen(head));
	for (unsigned i = 0; i < n; i++) {
		char item[64];
		int len = snprintf(item, sizeof item, format, i);

		if (i)
			skv_put_u8(&b, ',');
		skv_put_bytes(&b, item, (size_t)len);
	}
	skv_put_bytes(&b, tail, strlen(tail));
	assert_false(b.failed);
	return b;
}

static void expect_many(const char *message, const char *head, const char *format, unsigned n,
			const char *tail, int status, const char *field)
{
	struct skv_buf b = many(head, format, n, tail);

	expect(message_find(message), (const char *)b.data, b.len, status, field);
	skv_buf_destroy(&b);
}

static void test_too_many(void **state)
{
	const int large = SKV_E_TOO_LARGE;

	(void)state;
	expect_many("delete_req", "{\"keys_int\":[", "%u", SKV_MAX_KEYS + 1, "]}", large,
		    "keys_int");
	expect_many("lookup_req", "{\"keys\":[", "\"k%u\"", SKV_MAX_KEYS + 1, "]}", large, "keys");
	expect_many("match_req", "{\"instances\":[\"m\"],\"keys_hex\":[", "\"%032x\"",
		    SKV_MAX_KEYS + 1, "]}", large, "keys_hex");
	expect_many("match_req", "{\"keys\":[\"a\"],\"instances\":[", "\"m%u\"",
		    SKV_MAX_INSTANCES_PER_MATCH + 1, "]}", large, "instances");
	expect_many("start_req", "{\"keys\":[\"a\"],\"specs\":[", "\"s%u\"", SKV_MAX_SPECS + 1,
		    "]}", large, "specs");
	expect_many("instance", "{\"specs\":[", "{\"name\":\"s%u\",\"size\":1}", SKV_MAX_SPECS + 1,
		    "]}", large, "specs");
	expect_many("finish_req", "{\"success\":{\"mask\":[", "true", SKV_MAX_KEYS + 1, "]}}",
		    large, "success.mask");
	expect_many("finish_req", "{\"success\":true,\"checksums\":[", "null",
		    SKV_MAX_KEYS * SKV_MAX_SPECS + 1, "]}", large, "checksums");
	/* Refused before a tree is built of them. */
	expect_many("delete_req", "{\"keys_int\":[", "%u", 10000000, "]}", large, "keys_int");
	expect_many("delete_req", "{\"x\":[", "[]", 1000000, "]}", large, "x[16383]");
	expect_many("group", "{\"storages\":[", "\"s%u\"", 100000, "]}", large, "storages");
	expect_many("abort_req", "{\"x\":", "{\"y\":1}", 100000, "}", large, "x");
}

/* Ten million keys cost one pass over the text, not a gigabyte. */
static void test_ten_million_keys_cost_nothing(void **state)
{
	struct skv_buf b = many("{\"keys_int\":[", "%u", 10000000, "]}");

	(void)state;
	skv_mem_fail_at(1000000); /* only counts */
	expect(message_find("delete_req"), (const char *)b.data, b.len, SKV_E_TOO_LARGE,
	       "keys_int");
	assert_true(skv_mem_count() < 10);
	skv_mem_fail_at(0);
	skv_buf_destroy(&b);
}

static void test_long_texts(void **state)
{
	(void)state;
	expect_many("delete_req", "{\"keys\":[\"", "aaaaaaaaaaaaaaa", 65, "\"]}", SKV_E_INVALID,
		    "keys[0]");
	expect_many("start_req", "{\"keys\":[\"a\"],\"request_id\":\"", "bbbbbbb", 17, "\"}",
		    SKV_E_INVALID, "request_id");
	expect_many("instance", "{\"specs\":[{\"name\":\"", "ccccccc", 17, "\",\"size\":1}]}",
		    SKV_E_INVALID, "specs[0].name");
	expect_many("instance", "{\"specs\":[{\"name\":\"a\",\"size\":1}],\"extra\":\"", "ddddddd",
		    2049, "\"}", SKV_E_INVALID, "extra");
	expect_many("storage", "{\"capacity\":1,\"root\":\"/", "eeeeeee", 129, "\"}", SKV_E_INVALID,
		    "root");
}

/* A field name of any length is cut, wherever it is reported from. */
static void test_long_field_name(void **state)
{
	struct skv_buf b = many("{\"", "nnnnnnn", 200, "\":1}");
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .tenant = "default" };
	struct skv_error err;
	struct skv_abort_req r;

	(void)state;
	skv_arena_init(&arena);
	assert_int_equal(skv_v1_read_abort_req(&in, (char *)b.data, b.len, &r, &err),
			 SKV_E_INVALID);
	assert_int_equal(strlen(err.field), SKV_FIELD_MAX - 1);
	b.data[b.len - 2] = '!'; /* now it is the parser that complains */
	assert_int_equal(skv_v1_read_abort_req(&in, (char *)b.data, b.len, &r, &err),
			 SKV_E_INVALID);
	assert_int_equal(strlen(err.field), SKV_FIELD_MAX - 1);
	skv_arena_destroy(&arena);
	skv_buf_destroy(&b);
}

/* A manager without the store's secret (or a client) cannot hash and must not guess. */
static void test_no_secret(void **state)
{
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .tenant = "default" };
	struct skv_error err;
	struct skv_delete_req r;
	static const char text[] = "{\"keys\":[\"a\"]}";

	(void)state;
	skv_arena_init(&arena);
	assert_int_equal(skv_v1_read_delete_req(&in, text, strlen(text), &r, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "keys[0]");
	skv_arena_destroy(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents),
		cmocka_unit_test(test_unknown_field),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_ten_million_keys_cost_nothing),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_long_field_name),
		cmocka_unit_test(test_no_secret),
	};

	return cmocka_run_group_tests_name("v1_bad", tests, NULL, NULL);
}
