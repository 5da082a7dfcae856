/* list.c - slabkv_list: the keys of an instance's blocks, page by page. Stateless; any thread. */
#include "client.h"

#include <inttypes.h>

#define AT_A_TIME 4096u

static int read_keys(struct slabkv_key_list *out, const struct skv_exchange *x,
		     struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = skv_result_arena(out) };
	struct skv_keys_res res = { 0 };
	struct slabkv_key *v;
	int rc = skv_pb_read_keys_res(&in, SKV_ANSWER(*x), &res, err);

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
	struct skv_exchange x = { 0 };
	struct skv_error e = { 0 };
	int rc = list ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = skv_model_name_check(instance, "instance", &e);
	if (rc == SKV_OK) {
		skv_exchange_begin(&x, "keys", "GET",
				   "/v1/instances/%s/keys?cursor=%" PRIu64 "&max=%u",
				   SKV_SEGMENT(instance), cursor, AT_A_TIME);
		rc = skv_exchange_do(kv, &x, &e);
	}
	if (rc == SKV_OK)
		rc = read_keys(list, &x, &e);
	skv_exchange_end(&x);
	if (rc == SKV_OK)
		*out = list;
	else
		slabkv_free(list);
	return skv_result_fail(err, &e, rc);
}
