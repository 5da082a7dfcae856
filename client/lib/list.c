/* list.c - slabkv_list: the keys of an instance's blocks, page by page. Stateless; any thread. */
#include "client.h"
#include "paths.h"

#include <inttypes.h>
#include <stdio.h>

#define AT_A_TIME 4096u

static int read_keys(struct slabkv_key_list *out, const struct skv_answer *answer,
		     struct skv_error *err)
{
	struct skv_v1_in in = { .arena = skv_result_arena(out) };
	struct skv_keys_res res = { 0 };
	struct slabkv_key *v;
	int rc = answer->codec->read_keys_res(&in, (const char *)answer->body.data,
					      answer->body.len, &res, err);

	if (rc != SKV_OK)
		return rc;
	v = skv_arena_calloc(in.arena, res.n + 1, sizeof *v);
	if (!v)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < res.n; i++)
		v[i] = (struct slabkv_key){ res.key[i].hi, res.key[i].lo };
	*out = (struct slabkv_key_list){ .n = res.n, .keys = v, .next = res.next };
	return SKV_OK;
}

int slabkv_list(struct slabkv *kv, const char *instance, uint64_t cursor,
		const struct slabkv_key_list **out, struct slabkv_error *err)
{
	struct slabkv_key_list *list = skv_result_new(sizeof *list);
	struct skv_answer answer = { 0 };
	struct skv_error e = { 0 };
	char path[SKV_PATH_MAX];
	struct skv_call c = { .op = "keys", .method = "GET", .path = path };
	int rc = list ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = skv_model_name_check(instance, "instance", &e);

	if (rc == SKV_OK) {
		snprintf(path, sizeof path, SKV_PATH_KEYS,
			 skv_path_name(instance, (char[SKV_PATH_NAME]){ 0 }), cursor, AT_A_TIME);
		c.codec = kv->codec;
		rc = skv_call_do(kv, &c, &answer, &e);
	}
	if (rc == SKV_OK)
		rc = read_keys(list, &answer, &e);
	skv_buf_destroy(&answer.body);
	if (rc == SKV_OK)
		*out = list;
	else
		slabkv_free(list);
	return skv_result_fail(err, &e, rc);
}
