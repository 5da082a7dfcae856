/*
 * pages_api.h - the metadata service that SGLang's and vLLM's hf3fs backends ask, as an API of the fronts.
 *
 * A page space is (tenant, rank, namespace): so many pages of a file that the clients make themselves. In the core it
 * is an `external` storage, a group and an instance of one name (see space.h); a page is a block, its number the
 * offset of its slot.
 */
#ifndef KVB_PAGES_API_H
#define KVB_PAGES_API_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/api.h>

struct kvb_pages_options {
	bool strict_upstream; /* answers as upstream's own server does, its errors included */
	bool partial_get;     /* get_page_indices answers null for what is missing, not for all */
	uint32_t lease_ms;    /* of what exists and get_page_indices tell: 0..KVB_MAX_LEASE_MS */
	uint32_t reserve_ms;  /* until a reserved page must be confirmed */
	uint32_t grace_ms;    /* after that, until it may be reserved again */
	uint32_t retry_ms;    /* while nobody answers for the partition, clients are told so long to come again */
};

/* The API; lives until kvb_pages_destroy, which no front or service must outlive. KVB_E_NOMEM. */
int kvb_pages_create(const struct kvb_pages_options *o, struct kvb_api **out, struct kvb_error *err);
void kvb_pages_destroy(struct kvb_api *api); /* NULL is allowed */

#endif
