/*
 * body.h - how the parts of a request are read (body.c), for all who read one.
 *
 * What is wrong is refused: SKV_E_INVALID, k->detail says why.
 */
#ifndef SKV_HF3FS_BODY_H
#define SKV_HF3FS_BODY_H

#include "hf3fs.h"

/* The elements of a list, one after the other. In the mode of upstream also the characters of a string and the names
 * of an object, as Python has it. */
struct items {
	const struct skv_json_node *v;
	uint32_t left;
	unsigned type;
	struct skv_json_node letter; /* the newest, of a string */
};

bool items_open(struct items *it, const struct skv_json_node *v, bool strict);
/* Until `left` is 0. Valid until the next call. */
const struct skv_json_node *items_next(struct items *it);

/* May the first segment of a path be a tenant? */
bool body_is_tenant(const char *s);
/* The one in the path. */
int body_rank(struct hf3fs_request *k, int64_t *out);
/* *body NULL: there is none. */
int body_object(struct hf3fs_request *k, const struct skv_json_node **body);
/* Memory for a list that the core takes a part of each time: bounded by the nodes that a text may have. */
void *body_array(struct hf3fs_request *k, uint32_t n, size_t size);
/* The list in the field `name`. Without one it is empty, where `optional`. */
int body_list(struct hf3fs_request *k, const struct skv_json_node *body, const char *name, bool optional, struct items *it);
/* The same of keys: sets k->total and makes room for k->keys. */
int body_keys(struct hf3fs_request *k, const struct skv_json_node *body, const char *name, bool optional, struct items *it);
int body_bad_key(struct hf3fs_request *k, const char *list, uint32_t i);
/* Both elements of what should be a pair. */
bool body_pair(struct hf3fs_request *k, const struct skv_json_node *v, struct skv_json_node out[2]);
/* A page that cannot be is UINT64_MAX. False: it is no number. */
bool body_page(struct hf3fs_request *k, const struct skv_json_node *v, uint64_t *out);
/* Pairs of keys and pages in the field `written`, and pages_to_release. */
int body_confirm(struct hf3fs_request *k, const struct skv_json_node *body, const char *written);

/* vllm_body.c: what a call of vLLM's says; its space is the rank's. */
int vllm_read(struct hf3fs_request *k, const char *tenant);

#endif
