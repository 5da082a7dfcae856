/*
 * json_requests.h - requests in JSON, as a person's program writes them: the product only reads
 * these. No state.
 */
#ifndef TESTS_API_JSON_REQUESTS_H
#define TESTS_API_JSON_REQUESTS_H

#include <skv/json_out.h>
#include <skv/v1_pb.h>

static const char *const key_forms[] = { "keys", "keys_int", "keys_hex" };
static const char *const parent_forms[] = { "parent", "parent_int", "parent_hex" };

static inline void put_key(struct skv_buf *b, const struct skv_key_input *keys, uint32_t i)
{
	switch (keys->form) {
	case SKV_KEYS_STRING:
		skv_jout_string(b, keys->strings[i]);
		break;
	case SKV_KEYS_INT:
		skv_jout_u64(b, keys->keys[i].lo);
		break;
	case SKV_KEYS_HEX:
		skv_jout_key(b, keys->keys[i]);
		break;
	}
}

static inline void put_keys(struct skv_buf *b, const struct skv_key_input *keys)
{
	skv_jout_name(b, key_forms[keys->form]);
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < keys->n; i++)
		put_key(b, keys, i);
	skv_jout_close(b, ']');
}

static inline void put_parent(struct skv_buf *b, const struct skv_key_input *parent)
{
	if (!parent)
		return;
	skv_jout_name(b, parent_forms[parent->form]);
	put_key(b, parent, 0);
}

static inline void json_match_req(struct skv_buf *out, const struct skv_match_req *req,
			    const struct skv_key_input *keys)
{
	skv_jout_begin(out);
	skv_jout_field_strings(out, "instances", req->instances, req->n_instances);
	put_keys(out, keys);
	skv_jout_close(out, '}');
}

static inline void json_lookup_req(struct skv_buf *out, const struct skv_lookup_req *req,
			     const struct skv_key_input *keys)
{
	static const char *const modes[] = { "prefix", "batch", "window", "trailing" };

	skv_jout_begin(out);
	skv_jout_field_string(out, "mode", modes[req->mode]);
	if (req->n_specs)
		skv_jout_field_strings(out, "specs", req->specs, req->n_specs);
	if (req->lease_ms != SKV_LEASE_DEFAULT)
		skv_jout_field_u64(out, "lease_ms", req->lease_ms);
	if (req->partial)
		skv_jout_field_bool(out, "partial", true);
	if (req->window)
		skv_jout_field_u64(out, "window", req->window);
	if (req->runs)
		skv_jout_field_bool(out, "runs", true);
	put_keys(out, keys);
	skv_jout_close(out, '}');
}

static inline void json_start_req(struct skv_buf *out, const struct skv_start_req *req,
			    const struct skv_key_input *keys)
{
	skv_jout_begin(out);
	if (req->request_id[0])
		skv_jout_field_string(out, "request_id", req->request_id);
	if (req->n_specs)
		skv_jout_field_strings(out, "specs", req->specs, req->n_specs);
	if (req->deadline_ms)
		skv_jout_field_u64(out, "deadline_ms", req->deadline_ms);
	if (req->independent)
		skv_jout_field_bool(out, "independent", true);
	if (req->selective)
		skv_jout_field_bool(out, "selective", true);
	if (req->n_avoid)
		skv_jout_field_strings(out, "avoid", req->avoid, req->n_avoid);
	if (req->runs)
		skv_jout_field_bool(out, "runs", true);
	put_parent(out, keys->parent);
	put_keys(out, keys);
	skv_jout_close(out, '}');
}

static inline void write_success(struct skv_buf *b, const struct skv_finish_req *req)
{
	skv_jout_name(b, "success");
	if (req->mask_kind == SKV_MASK_ALL) {
		skv_jout_bool(b, true);
		return;
	}
	skv_jout_open(b, '{');
	if (req->mask_kind == SKV_MASK_COUNT) {
		skv_jout_field_u64(b, "count", req->mask_count);
	} else {
		skv_jout_name(b, "mask");
		skv_jout_open(b, '[');
		for (uint32_t i = 0; i < req->mask_count; i++)
			skv_jout_bool(b, req->mask[i]);
		skv_jout_close(b, ']');
	}
	skv_jout_close(b, '}');
}

static inline void json_finish_req(struct skv_buf *out, const struct skv_finish_req *req)
{
	skv_buf_reserve(out, 64 + (size_t)req->n_checksums * 20);
	skv_jout_begin(out);
	write_success(out, req);
	if (req->n_checksums) {
		skv_jout_name(out, "checksums");
		skv_jout_open(out, '[');
		for (uint32_t i = 0; i < req->n_checksums; i++)
			skv_jout_hex64(out, req->checksums[i]);
		skv_jout_close(out, ']');
	}
	skv_jout_field_bool(out, "quiesced", req->quiesced);
	skv_jout_close(out, '}');
}

static inline void json_delete_req(struct skv_buf *out, const struct skv_key_input *keys)
{
	skv_jout_begin(out);
	put_keys(out, keys);
	skv_jout_close(out, '}');
}

#endif
