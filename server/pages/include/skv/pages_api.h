/*
 * pages_api.h - the metadata service that SGLang's and vLLM's hf3fs backends ask, as an API of the fronts.
 *
 * A page space is (tenant, rank, namespace): so many pages of a file that the clients make themselves. In the core it
 * is an `external` storage, a group and an instance of one name (see space.h); a page is a block, its number the
 * offset of its slot.
 */
#ifndef SKV_PAGES_API_H
#define SKV_PAGES_API_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/api.h>

struct skv_pages_options {
	bool strict_upstream; /* answers as upstream's own server does, its errors included */
	bool partial_get;     /* get_page_indices answers null for what is missing, not for all */
	uint32_t lease_ms;    /* of what exists and get_page_indices tell: 0..SKV_MAX_LEASE_MS */
	uint32_t reserve_ms;  /* until a reserved page must be confirmed */
	uint32_t grace_ms;    /* after that, until it may be reserved again */
	bool relaxed;         /* reserve and confirm are answered before a sync: struct skv_start_req */
	uint32_t retry_ms;    /* while nobody answers for the partition, clients are told so long to come again */
};

/* The API; lives until skv_pages_destroy, which no front or service must outlive. SKV_E_NOMEM. */
int skv_pages_create(const struct skv_pages_options *o, struct skv_api **out, struct skv_error *err);
void skv_pages_destroy(struct skv_api *api); /* NULL is allowed */

#endif
