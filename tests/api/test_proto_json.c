/*
 * test_proto_json.c - the rules of proto3 JSON, one by one: what is read, as what it is written,
 * what is refused and where the error says it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <kvcm/admin.pb-c.h>
#include <kvcm/debug.pb-c.h>
#include <kvcm/meta.pb-c.h>

#include "all_types.pb-c.h"
#include "proto_tools.h"

#define ALL (&skv__test__all__descriptor)

/* The JSON written of a message of the type contains `want`; NULL: the message is refused at field
 * `where`. */
struct rule {
	const ProtobufCMessageDescriptor *type;
	const char *text;
	const char *want;
	const char *where;
};

static void follow(const struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = &rules[i];
		ProtobufCMessage *m;
		struct tools t;

		tools_open(&t);
		m = tools_read_json(&t, r->type, r->text);
		if (m && r->want) {
			const char *text = tools_write_json(&t, m, NULL);

			if (!strstr(text, r->want))
				fail_msg("%s: written %s, without %s", r->text, text, r->want);
		} else if (m || r->want) {
			fail_msg("%s: %s (%s: %s)", r->text, m ? "taken" : "refused", t.err.field,
				 t.err.message);
		} else {
			assert_true(t.err.message[0]);
			if (strcmp(t.err.field, r->where) != 0)
				fail_msg("%s: refused at '%s' (%s), not '%s'", r->text, t.err.field,
					 t.err.message, r->where);
		}
		tools_close(&t);
	}
}

#define FOLLOW(rules) follow(rules, sizeof(rules) / sizeof((rules)[0]))

static void test_integers(void **state)
{
	(void)state;
	static const struct rule rules[] = {
		{ ALL, "{\"i32\":7}", "\"i32\":7,", NULL },
		{ ALL, "{\"i32\":\"7\"}", "\"i32\":7,", NULL },
		{ ALL, "{\"i32\":-2147483648}", "\"i32\":-2147483648,", NULL },
		{ ALL, "{\"i32\":2147483648}", NULL, "i32" },
		{ ALL, "{\"i32\":\"-2147483649\"}", NULL, "i32" },
		{ ALL, "{\"i32\":1.0}", "\"i32\":1,", NULL },
		{ ALL, "{\"i32\":1e3}", "\"i32\":1000,", NULL },
		{ ALL, "{\"i32\":12.500e1}", "\"i32\":125,", NULL },
		{ ALL, "{\"i32\":\"1e3\"}", "\"i32\":1000,", NULL },
		{ ALL, "{\"i32\":\"1.0\"}", "\"i32\":1,", NULL },
		{ ALL, "{\"i32\":1.5}", NULL, "i32" },
		{ ALL, "{\"i32\":1e-1}", NULL, "i32" },
		{ ALL, "{\"i32\":0e99999999999999999999}", "\"i32\":0,", NULL },
		{ ALL, "{\"i32\":\"1e99999999999999999999\"}", NULL, "i32" },
		{ ALL, "{\"i32\":\"\"}", NULL, "i32" },
		{ ALL, "{\"i32\":\" 1\"}", NULL, "i32" },
		{ ALL, "{\"i32\":\"+1\"}", NULL, "i32" },
		{ ALL, "{\"i32\":\"0x1\"}", NULL, "i32" },
		{ ALL, "{\"i32\":\"1.\"}", NULL, "i32" },
		{ ALL, "{\"i32\":true}", NULL, "i32" },
		{ ALL, "{\"i32\":{}}", NULL, "i32" },
		{ ALL, "{\"i32\":[1]}", NULL, "i32" },
		{ ALL, "{\"u32\":4294967295}", "\"u32\":4294967295,", NULL },
		{ ALL, "{\"u32\":4294967296}", NULL, "u32" },
		{ ALL, "{\"u32\":-1}", NULL, "u32" },
		{ ALL, "{\"u32\":-0}", "\"u32\":0,", NULL },
		{ ALL, "{\"f32\":4294967295,\"sf32\":-1,\"s32\":-2}", "\"s32\":-2,\"sf32\":-1,",
		  NULL },
		/* 2^53 + 1 and the ends of the range: no double on the way. */
		{ ALL, "{\"i64\":9007199254740993}", "\"i64\":\"9007199254740993\"", NULL },
		{ ALL, "{\"i64\":\"-9223372036854775808\"}", "\"i64\":\"-9223372036854775808\"",
		  NULL },
		{ ALL, "{\"i64\":9223372036854775807}", "\"i64\":\"9223372036854775807\"", NULL },
		{ ALL, "{\"i64\":9223372036854775808}", NULL, "i64" },
		{ ALL, "{\"i64\":9.223372036854775807e18}", "\"i64\":\"9223372036854775807\"",
		  NULL },
		{ ALL, "{\"i64\":9.223372036854775808e18}", NULL, "i64" },
		{ ALL, "{\"u64\":18446744073709551615}", "\"u64\":\"18446744073709551615\"", NULL },
		{ ALL, "{\"u64\":\"18446744073709551616\"}", NULL, "u64" },
		{ ALL, "{\"u64\":18446744073709551616}", NULL, "" },
		{ ALL, "{\"sf64\":-5,\"f64\":5}", "\"sf64\":\"-5\",\"u64\":\"0\",\"f64\":\"5\"",
		  NULL },
		{ ALL, "{\"many_i64\":[1,\"2\",3.0,-4]}", "\"many_i64\":[\"1\",\"2\",\"3\",\"-4\"]",
		  NULL },
		{ ALL, "{\"many_i64\":[1,\"2\",\"x\"]}", NULL, "many_i64[2]" },
		{ ALL, "{\"many_i64\":[1,null]}", NULL, "many_i64[1]" },
		{ ALL, "{\"many_i64\":1}", NULL, "many_i64" },
		{ ALL, "{\"many_i64\":{}}", NULL, "many_i64" },
	};

	FOLLOW(rules);
}

static void test_reals(void **state)
{
	(void)state;
	static const struct rule rules[] = {
		{ ALL, "{\"real64\":0.1}", "\"real64\":0.1,", NULL },
		{ ALL, "{\"real64\":\"1.5\"}", "\"real64\":1.5,", NULL },
		{ ALL, "{\"real64\":3}", "\"real64\":3,", NULL },
		{ ALL, "{\"real64\":1e300}", "\"real64\":1e+300,", NULL },
		{ ALL, "{\"real64\":0.30000000000000004}", "\"real64\":0.30000000000000004,",
		  NULL },
		{ ALL, "{\"real64\":\"NaN\"}", "\"real64\":\"NaN\"", NULL },
		{ ALL, "{\"real64\":\"Infinity\"}", "\"real64\":\"Infinity\"", NULL },
		{ ALL, "{\"real64\":\"-Infinity\"}", "\"real64\":\"-Infinity\"", NULL },
		{ ALL, "{\"real64\":\"nan\"}", NULL, "real64" },
		{ ALL, "{\"real64\":NaN}", NULL, "" },
		{ ALL, "{\"real64\":\"0x10\"}", NULL, "real64" },
		{ ALL, "{\"real64\":\"1e400\"}", NULL, "real64" },
		{ ALL, "{\"real64\":1e400}", NULL, "" },
		{ ALL, "{\"real64\":true}", NULL, "real64" },
		{ ALL, "{\"real64\":18446744073709551615}", "\"real64\":1.8446744073709552e+19",
		  NULL },
		{ ALL, "{\"real32\":0.1}", "\"real32\":0.1,", NULL },
		{ ALL, "{\"real32\":16777217}", "\"real32\":16777216,", NULL },
		{ ALL, "{\"real32\":1e39}", NULL, "real32" },
	};

	FOLLOW(rules);
}

static void test_enums(void **state)
{
	(void)state;
	static const struct rule rules[] = {
		{ ALL, "{\"color\":\"RED\"}", "\"color\":\"RED\"", NULL },
		{ ALL, "{\"color\":2}", "\"color\":\"GREEN\"", NULL },
		{ ALL, "{\"color\":\"2\"}", "\"color\":\"GREEN\"", NULL },
		{ ALL, "{\"color\":2.0}", "\"color\":\"GREEN\"", NULL },
		{ ALL, "{\"color\":-5}", "\"color\":\"MINUS\"", NULL },
		{ ALL, "{\"color\":263}", "\"color\":263", NULL }, /* open */
		{ ALL, "{\"color\":-263}", "\"color\":-263", NULL },
		/* a name that nobody knows is dropped */
		{ ALL, "{\"color\":\"red\"}", "\"color\":\"NONE\"", NULL },
		{ ALL, "{\"color\":\"\"}", "\"color\":\"NONE\"", NULL },
		{ ALL, "{\"color\":2147483648}", NULL, "color" },
		{ ALL, "{\"color\":1.5}", NULL, "color" },
		{ ALL, "{\"color\":true}", NULL, "color" },
		{ ALL, "{\"color\":[]}", NULL, "color" },
		{ ALL, "{\"many_color\":[\"RED\",\"PINK\",2,77]}",
		  "\"many_color\":[\"RED\",\"GREEN\",77]", NULL },
		{ ALL, "{\"one_color\":\"PINK\"}", "\"many_more\":[],\"text_of_text\"", NULL },
		{ &kvcm_debug__inject_fault_request__descriptor,
		  "{\"api_name\":\"GetCacheLocation\",\"fault_type\":\"INTERNAL_ERROR\","
		  "\"fault_trigger_strategy\":\"ONCE\"}",
		  "{\"api_name\":\"GetCacheLocation\",\"fault_type\":\"FT_INTERNAL_ERROR\","
		  "\"fault_trigger_strategy\":\"ONCE\",\"trigger_at_call\":0}",
		  NULL },
		{ &kvcm_admin__instance_group__descriptor,
		  "{\"quota\":{\"quota_config\":[{\"storage_type\":4,\"capacity\":16384}]},"
		  "\"cache_config\":{\"reclaim_strategy\":{\"reclaim_policy\":1},"
		  "\"data_storage_strategy\":2}}",
		  "\"quota_config\":[{\"storage_type\":\"ST_NFS\",\"capacity\":\"16384\"}]", NULL },
	};

	FOLLOW(rules);
}

static void test_names(void **state)
{
	(void)state;
	static const struct rule rules[] = {
		{ ALL, "{\"manyI64\":[1]}", "\"many_i64\":[\"1\"]", NULL },
		{ ALL, "{\"many_i64\":[1]}", "\"many_i64\":[\"1\"]", NULL },
		{ ALL, "{\"p2p1Fetch\":3,\"max0\":4}", "\"p2p_1_fetch\":3,\"max_0\":4", NULL },
		{ ALL, "{\"p2p_1_fetch\":3}", "\"p2p_1_fetch\":3", NULL },
		{ ALL, "{\"ManyI64\":[1],\"manyi64\":[1],\"many_I64\":[1],\"many_i64_\":[1],"
		  "\"many\":[1]}",
		  "\"many_i64\":[]", NULL },
		{ ALL, "{\"many_i64\":[1],\"manyI64\":[2]}", NULL, "many_i64" },
		{ ALL, "{\"i32\":1,\"i32\":2}", NULL, "" },
		{ ALL, "{\"many_i64\":null,\"manyI64\":[2]}", "\"many_i64\":[\"2\"]", NULL },
		/* Unknown at any depth; not a look at what they hold. */
		{ ALL, "{\"unknown\":{\"i32\":\"x\",\"a\":[{\"b\":null}]},\"i32\":1,\"x\":[[1]]}",
		  "\"i32\":1", NULL },
		{ ALL, "{\"more\":{\"unknown\":1,\"i32\":2}}", "\"more\":{\"i32\":2", NULL },
		{ &kvcm_meta__finish_write_cache_request__descriptor,
		  "{\"success_blocks\":{\"bool_masks\":{\"offset\":0}}}",
		  "\"success_blocks\":{\"bool_masks\":{\"values\":[]}}", NULL },
		{ &kvcm_meta__get_cache_location_request__descriptor,
		  "{\"traceId\":\"t\",\"queryType\":\"QT_BATCH_GET\",\"blockKeys\":[\"-1\"],"
		  "\"blockMask\":{\"boolMasks\":{\"values\":[true]}},\"swSize\":\"3\","
		  "\"locationSpecNames\":[\"tp0\"]}",
		  "{\"trace_id\":\"t\",\"instance_id\":\"\",\"query_type\":\"QT_BATCH_GET\","
		  "\"block_keys\":[\"-1\"],\"token_ids\":[],"
		  "\"block_mask\":{\"bool_masks\":{\"values\":[true]}},\"sw_size\":3,"
		  "\"location_spec_names\":[\"tp0\"]}",
		  NULL },
	};

	FOLLOW(rules);
}

static void test_presence(void **state)
{
	(void)state;
	static const struct rule rules[] = {
		/* Defaults are printed, submessages and oneofs only when set. */
		{ &kvcm_meta__get_cache_location_response__descriptor, "{}",
		  "{\"locations\":[],\"hints\":[],\"replication_capabilities\":0}", NULL },
		{ &kvcm_meta__cache_location__descriptor, "{}",
		  "{\"type\":\"ST_UNSPECIFIED\",\"spec_size\":0,\"location_specs\":[],\"id\":\"\","
		  "\"status\":\"\",\"create_time\":\"0\"}",
		  NULL },
		{ &kvcm_meta__heartbeat_event_params__descriptor, "{}", "{\"system_status\":{}}",
		  NULL },
		{ &kvcm_debug__clear_faults_request__descriptor, "{}", "{}", NULL },
		{ &kvcm_meta__block_mask__descriptor, "{}", "{}", NULL },
		{ &kvcm_meta__block_mask__descriptor, "{\"offset\":0}", "{\"offset\":0}", NULL },
		{ &kvcm_meta__block_mask__descriptor, "{\"offset\":\"3\"}", "{\"offset\":3}",
		  NULL },
		{ &kvcm_meta__block_mask__descriptor, "{\"offset\":null}", "{}", NULL },
		{ &kvcm_meta__block_mask__descriptor, "{\"bool_masks\":{}}",
		  "{\"bool_masks\":{\"values\":[]}}", NULL },
		{ &kvcm_meta__block_mask__descriptor, "{\"offset\":1,\"bool_masks\":{}}", NULL,
		  "bool_masks" },
		{ &kvcm_meta__block_mask__descriptor, "{\"offset\":1,\"bool_masks\":null}",
		  "{\"offset\":1}", NULL },
		{ &kvcm_meta__block_mask__descriptor,
		  "{\"bool_masks\":{\"values\":[true,\"false\",1]}}", NULL,
		  "bool_masks.values[2]" },
		{ ALL, "{\"one_text\":\"\"}", "\"one_text\":\"\"", NULL },
		{ ALL, "{\"one_yes\":false}", "\"one_yes\":false", NULL },
		{ ALL, "{\"one_more\":{}}", "\"one_more\":{\"i32\":0", NULL },
		{ ALL, "{\"one_i32\":0,\"one_text\":\"x\"}", NULL, "one_text" },
		/* null is a field that is not there. */
		{ ALL, "{\"i32\":null,\"text\":null,\"more\":null,\"many_i64\":null,"
		  "\"text_of_text\":null,\"color\":null}",
		  "\"text\":\"\",\"blob\":\"\",\"many_i32\":[]", NULL },
		{ ALL, "{\"many_more\":[{},null]}", NULL, "many_more[1]" },
		/* Wrappers are bare values. */
		{ ALL, "{\"just_i64\":\"5\",\"just_yes\":false,\"just_text\":\"\",\"just_u32\":0,"
		  "\"just_real\":\"NaN\"}",
		  "\"just_i64\":\"5\",\"just_yes\":false,\"just_text\":\"\",\"just_u32\":0,"
		  "\"just_real\":\"NaN\"", NULL },
		{ ALL, "{\"just_i64\":null}", "\"real_of_yes\":{},\"p2p_1_fetch\":0", NULL },
		{ ALL, "{\"just_i64\":{\"value\":1}}", NULL, "just_i64" },
		{ &kvcm_admin__cache_reclaim_strategy__descriptor,
		  "{\"instance_reclaim_budget_policy\":0}",
		  "\"instance_reclaim_budget_policy\":\"USAGE_PROPORTIONAL\"", NULL },
		{ &kvcm_admin__cache_reclaim_strategy__descriptor, "{}",
		  "\"delay_before_delete_ms\":0}", NULL },
	};

	FOLLOW(rules);
}

static void test_texts(void **state)
{
	(void)state;
	static const struct rule rules[] = {
		{ ALL, "{\"text\":\"a\\\"b\\\\c\\n\\u00e9\\u4e2d\\/\"}",
		  "\"text\":\"a\\\"b\\\\c\\n\xc3\xa9\xe4\xb8\xad/\"", NULL },
		{ ALL, "{\"text\":\"\\ud83d\\ude00\"}", "\"text\":\"\xf0\x9f\x98\x80\"", NULL },
		{ ALL, "{\"text\":\"\\ud83d\"}", NULL, "" },
		{ ALL, "{\"text\":\"\\u0000\"}", NULL, "" },
		{ ALL, "{\"text\":\"\xff\"}", NULL, "" },
		{ ALL, "{\"text\":\"\xc0\xaf\"}", NULL, "" },
		{ ALL, "{\"unknown\":\"\xff\"}", NULL, "" },
		{ ALL, "{\"text\":1}", NULL, "text" },
		{ ALL, "{\"text\":\"\\u0001\"}", "\"text\":\"\\u0001\"", NULL },
		{ ALL, "{\"many_text\":[\"\",\"x\"]}", "\"many_text\":[\"\",\"x\"]", NULL },
		{ ALL, "{\"blob\":\"AAECAw==\"}", "\"blob\":\"AAECAw==\"", NULL },
		{ ALL, "{\"blob\":\"AAECAw\"}", "\"blob\":\"AAECAw==\"", NULL },
		{ ALL, "{\"blob\":\"-_8\"}", "\"blob\":\"+/8=\"", NULL },
		{ ALL, "{\"blob\":\"A\"}", NULL, "blob" },
		{ ALL, "{\"blob\":\"AA=\"}", NULL, "blob" },
		{ ALL, "{\"blob\":\"A*==\"}", NULL, "blob" },
		{ ALL, "{\"text_of_text\":{\"a\":\"1\",\"b\\\"\":\"\"}}",
		  "\"text_of_text\":{\"a\":\"1\",\"b\\\"\":\"\"}", NULL },
		{ ALL, "{\"text_of_text\":{\"a\":null}}", NULL, "text_of_text[0]" },
		{ ALL, "{\"text_of_text\":{\"a\":1}}", NULL, "text_of_text[0]" },
		{ ALL, "{\"text_of_text\":[]}", NULL, "text_of_text" },
		{ ALL, "{\"all_of_text\":{\"a\":{\"i32\":1}}}",
		  "\"all_of_text\":{\"a\":{\"i32\":1,", NULL },
		{ ALL, "{\"i32_of_i64\":{\"-7\":1,\"9\":2}}", "\"i32_of_i64\":{\"-7\":1,\"9\":2}",
		  NULL },
		{ ALL, "{\"i32_of_i64\":{\"x\":1}}", NULL, "i32_of_i64[0]" },
		{ ALL, "{\"color_of_i32\":{\"1\":\"RED\",\"2\":\"PINK\"}}",
		  "\"color_of_i32\":{\"1\":\"RED\"}", NULL },
		{ ALL, "{\"real_of_yes\":{\"true\":1,\"false\":\"NaN\"}}",
		  "\"real_of_yes\":{\"true\":1,\"false\":\"NaN\"}", NULL },
	};

	FOLLOW(rules);
}

static void test_documents(void **state)
{
	(void)state;
	static const struct rule rules[] = {
		{ ALL, "", NULL, "" },
		{ ALL, "  ", NULL, "" },
		{ ALL, "null", NULL, "" },
		{ ALL, "[]", NULL, "" },
		{ ALL, "[{}]", NULL, "" },
		{ ALL, "1", NULL, "" },
		{ ALL, "\"x\"", NULL, "" },
		{ ALL, "{", NULL, "" },
		{ ALL, "{}x", NULL, "" },
		{ ALL, "{\"i32\":1,}", NULL, "" },
		{ ALL, "{'i32':1}", NULL, "" },
		{ ALL, "\xef\xbb\xbf{}", NULL, "" },
		{ ALL, " \r\n\t{ \"i32\" : 1 } ", "\"i32\":1", NULL },
		{ ALL, "{\"more\":[]}", NULL, "more" },
		{ ALL, "{\"more\":{\"more\":{\"many_more\":[{},{\"i32\":\"x\"}]}}}", NULL,
		  "more.more.many_more[1].i32" },
	};

	FOLLOW(rules);
}

/* 100 open brackets are taken, known and unknown ones, one more is not. */
static void test_depth(void **state)
{
	(void)state;
	for (unsigned depth = 99; depth <= 101; depth++) {
		for (unsigned known = 0; known < 2; known++) {
			const char *open = known ? "{\"more\":" : "{\"other\":";
			struct skv_buf text = { 0 };
			struct tools t;

			tools_open(&t);
			for (unsigned i = 1; i < depth; i++)
				skv_put_bytes(&text, open, strlen(open));
			skv_put_bytes(&text, "{", 1);
			for (unsigned i = 0; i < depth; i++)
				skv_put_bytes(&text, "}", 1);
			assert_true((tools_read(&t, &skv_proto_json, ALL, text.data, text.len) !=
				     NULL) == (depth <= SKV_PROTO_DEPTH));
			skv_buf_destroy(&text);
			tools_close(&t);
		}
	}
}

/* Objects of three bytes each do not become messages of hundreds. */
static void test_expansion(void **state)
{
	(void)state;
	struct skv_buf text = { 0 };
	struct tools t;

	tools_open(&t);
	skv_put_bytes(&text, "{\"many_more\":[{}", 16);
	for (unsigned i = 0; i < 100000; i++)
		skv_put_bytes(&text, ",{}", 3);
	skv_put_bytes(&text, "]}", 2);
	assert_null(tools_read(&t, &skv_proto_json, ALL, text.data, text.len));
	assert_int_equal(t.err.status, SKV_E_TOO_LARGE);
	assert_true(strncmp(t.err.field, "many_more[", 10) == 0);
	skv_buf_destroy(&text);
	tools_close(&t);
}

static void write_two(const void *ctx, struct skv_buf *out)
{
	skv_put_bytes(out, ctx, strlen(ctx));
}

/* Splices stand where their fields stand, without a comma too many. */
static void test_splice(void **state)
{
	(void)state;
	KvcmMeta__GetCacheMetaResponse res = KVCM_META__GET_CACHE_META_RESPONSE__INIT;
	struct skv_proto_splice last = { 4, write_two, NULL, "[3]", NULL };
	struct skv_proto_splice first = { 2, write_two, NULL, "[1,2]", &last };
	struct skv_proto_splice none = { 0 };
	struct tools t;

	tools_open(&t);
	assert_string_equal(tools_write_json(&t, &res.base, &first),
			    "{\"locations\":[1,2],\"metas\":[],\"replica_locations\":[3]}");
	assert_string_equal(tools_write_json(&t, &res.base, &none),
			    "{\"locations\":[],\"metas\":[],\"replica_locations\":[]}");
	tools_close(&t);
}

/* Texts that are no UTF-8 are repaired on the way out; behind other bytes no comma comes first. */
static void test_out(void **state)
{
	(void)state;
	KvcmDebug__RemoveFaultRequest m = KVCM_DEBUG__REMOVE_FAULT_REQUEST__INIT;
	struct skv_buf out = { 0 };
	char bad[] = "a\xff"
		     "b";

	m.api_name = bad;
	skv_put_bytes(&out, "x", 1);
	skv_proto_json.write(&m.base, NULL, &out);
	assert_int_equal(out.len, 19);
	assert_memory_equal(out.data, "x{\"api_name\":\"a?b\"}", 19);
	skv_buf_destroy(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers), cmocka_unit_test(test_reals),
		cmocka_unit_test(test_enums),    cmocka_unit_test(test_names),
		cmocka_unit_test(test_presence), cmocka_unit_test(test_texts),
		cmocka_unit_test(test_documents), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_expansion), cmocka_unit_test(test_splice),
		cmocka_unit_test(test_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
