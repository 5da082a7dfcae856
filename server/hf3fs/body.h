/*
 * body.h - helpers to read a request (body.c).
 *
 * Errors: SKV_E_INVALID, k->detail says why.
 */
#ifndef SKV_HF3FS_BODY_H
#define SKV_HF3FS_BODY_H

#include "hf3fs.h"

/* Limits of each JSON text of these APIs, answers included. Keys may hold \u0000. */
extern const struct skv_json_limits body_limits;

/* Iterates over a list. In upstream mode also over the characters of a string and the names of an
 * object, as Python does. */
struct items {
	const struct skv_json_node *v;
	uint32_t left;
	unsigned type;
	struct skv_json_node letter; /* the newest, of a string */
};

bool items_open(struct items *it, const struct skv_json_node *v, bool strict);
/* Call until `left` is 0. The result is valid until the next call. */
const struct skv_json_node *items_next(struct items *it);

/* Returns true if the first segment of a path may be a tenant. */
bool body_is_tenant(const char *s);
/* Reads the rank in the path. */
int body_rank(struct hf3fs_request *k, int64_t *out);
/* *body NULL: no body. */
int body_object(struct hf3fs_request *k, const struct skv_json_node **body);
/* Allocates a list that the core takes in portions: bounded by the nodes that a text may have. */
void *body_array(struct hf3fs_request *k, uint32_t n, size_t size);
/* Reads the list in the field `name`; if `optional` it may be missing. */
int body_list(struct hf3fs_request *k, const struct skv_json_node *body, const char *name,
	      bool optional, struct items *it);
/* The same for keys: sets k->part.total and allocates k->keys. */
int body_keys(struct hf3fs_request *k, const struct skv_json_node *body, const char *name,
	      bool optional, struct items *it);
/* Reads all of the list as keys. */
int body_read_keys(struct hf3fs_request *k, struct items *it);
int body_bad_key(struct hf3fs_request *k, const char *list, uint32_t i);
/* Reads both elements of a pair. */
bool body_pair(struct hf3fs_request *k, const struct skv_json_node *v, struct skv_json_node out[2]);
/* An impossible page is UINT64_MAX. False: not a number. */
bool body_page(struct hf3fs_request *k, const struct skv_json_node *v, uint64_t *out);
/* Reads `written`, pairs of keys and pages, and pages_to_release. */
int body_confirm(struct hf3fs_request *k, const struct skv_json_node *body, const char *written);

/* vllm_body.c: reads a call of vLLM's; its space is the rank's. */
int vllm_read(struct hf3fs_request *k, const char *tenant);

#endif
