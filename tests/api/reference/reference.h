/*
 * reference.h - the codec of the native API as it was on jansson: what api/v1 must do to the letter.
 *
 * Its sources in this folder are frozen; they change only when the messages do. See skv/v1_json.h for
 * what each function does. Known to be wrong: jansson takes a raw NUL byte behind a number or word.
 */
#ifndef TESTS_API_REFERENCE_H
#define TESTS_API_REFERENCE_H

#include <skv/v1_json.h>

int ref_read_storage(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_storage_spec *out, struct skv_error *err);
int ref_read_group(const struct skv_v1_in *in, const char *text, size_t n, struct skv_group_spec *out,
	struct skv_error *err);
int ref_read_instance(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_instance_spec *out, struct skv_error *err);
void ref_write_storage(struct skv_buf *out, const struct skv_storage_spec *s);
void ref_write_group(struct skv_buf *out, const struct skv_group_spec *g);
void ref_write_instance(struct skv_buf *out, const struct skv_instance_spec *i);
void ref_write_storage_view(struct skv_buf *out, const struct skv_storage_view *v);
void ref_write_group_view(struct skv_buf *out, const struct skv_group_view *v);
void ref_write_instance_view(struct skv_buf *out, const struct skv_instance_view *v);
void ref_write_storage_list(struct skv_buf *out, const struct skv_storage_view *v, uint32_t n);
void ref_write_group_list(struct skv_buf *out, const struct skv_group_view *v, uint32_t n);
void ref_write_instance_list(struct skv_buf *out, const struct skv_instance_view *v, uint32_t n);
int ref_read_storage_view(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_storage_view *out, struct skv_error *err);
int ref_read_group_view(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_group_view *out, struct skv_error *err);
int ref_read_instance_view(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_instance_view *out, struct skv_error *err);
int ref_read_match_req(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_match_req *out, struct skv_error *err);
int ref_read_lookup_req(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_lookup_req *out, struct skv_error *err);
int ref_read_start_req(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_start_req *out, struct skv_error *err);
int ref_read_finish_req(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_finish_req *out, struct skv_error *err);
int ref_read_abort_req(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_abort_req *out, struct skv_error *err);
int ref_read_delete_req(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_delete_req *out, struct skv_error *err);
int ref_read_trim_req(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_trim_req *out, struct skv_error *err);
void ref_write_match_res(struct skv_buf *out, const struct skv_match_res *r);
void ref_write_lookup_res(struct skv_buf *out, const struct skv_lookup_res *r);
void ref_write_start_res(struct skv_buf *out, const struct skv_start_res *r);
void ref_write_finish_res(struct skv_buf *out, const struct skv_finish_res *r);
void ref_write_delete_res(struct skv_buf *out, const struct skv_delete_res *r);
void ref_write_trim_res(struct skv_buf *out, const struct skv_trim_res *r);
void ref_write_block_view(struct skv_buf *out, const struct skv_block_view *v);
void ref_write_stats(struct skv_buf *out, const struct skv_stats *s);
void ref_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id);
void ref_write_match_req(struct skv_buf *out, const struct skv_match_req *req,
	const struct skv_key_input *keys);
void ref_write_lookup_req(struct skv_buf *out, const struct skv_lookup_req *req,
	const struct skv_key_input *keys);
void ref_write_start_req(struct skv_buf *out, const struct skv_start_req *req,
	const struct skv_key_input *keys, const struct skv_key_input *parent);
void ref_write_finish_req(struct skv_buf *out, const struct skv_finish_req *req);
void ref_write_abort_req(struct skv_buf *out, const struct skv_abort_req *req);
void ref_write_file_wish(struct skv_buf *out, const struct skv_file_wish *w);
int ref_read_file_wish(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_file_wish *out, struct skv_error *err);
void ref_write_trim_req(struct skv_buf *out, const struct skv_trim_req *req);
void ref_write_delete_req(struct skv_buf *out, const struct skv_delete_req *req,
	const struct skv_key_input *keys);
int ref_read_match_res(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_match_res *out, struct skv_error *err);
int ref_read_lookup_res(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_lookup_res *out, struct skv_error *err);
int ref_read_start_res(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_start_res *out, struct skv_error *err);
int ref_read_finish_res(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_finish_res *out, struct skv_error *err);
int ref_read_delete_res(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_delete_res *out, struct skv_error *err);
int ref_read_trim_res(const struct skv_v1_in *in, const char *text, size_t n,
	struct skv_trim_res *out, struct skv_error *err);
int ref_read_pin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_req *out,
	struct skv_error *err);
int ref_read_unpin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_unpin_req *out,
	struct skv_error *err);
int ref_read_pin_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_res *out,
	struct skv_error *err);
int ref_read_unpin_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_unpin_res *out,
	struct skv_error *err);
int ref_read_pins_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pins_res *out,
	struct skv_error *err);
void ref_write_pin_req(struct skv_buf *out, const struct skv_pin_req *req, const struct skv_key_input *keys);
void ref_write_unpin_req(struct skv_buf *out, const struct skv_unpin_req *req, const struct skv_key_input *keys);
void ref_write_pin_res(struct skv_buf *out, const struct skv_pin_res *r);
void ref_write_unpin_res(struct skv_buf *out, const struct skv_unpin_res *r);
void ref_write_pins_res(struct skv_buf *out, const struct skv_pins_res *r);
int ref_read_keys_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_keys_res *out,
	struct skv_error *err);
void ref_write_keys_res(struct skv_buf *out, const struct skv_keys_res *r);
int ref_read_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_error *out);

#endif
