/*
 * mask.c - BlockMask: which blocks of a request are meant, as an offset or as bits.
 *
 * The services' BlockMasks are different types of the same layout. Stateless; any thread.
 */
#include <skv/kvcm.h>

#include <assert.h>

#include <kvcm/admin.pb-c.h>
#include <kvcm/meta.pb-c.h>

_Static_assert(sizeof(KvcmMeta__BlockMask) == sizeof(KvcmAdmin__BlockMask) &&
		       offsetof(KvcmMeta__BlockMask, offset) ==
			       offsetof(KvcmAdmin__BlockMask, offset) &&
		       offsetof(KvcmMeta__BlockMask, info_case) ==
			       offsetof(KvcmAdmin__BlockMask, info_case) &&
		       offsetof(KvcmMeta__BoolMasksType, values) ==
			       offsetof(KvcmAdmin__BoolMasksType, values) &&
		       offsetof(KvcmMeta__BoolMasksType, n_values) ==
			       offsetof(KvcmAdmin__BoolMasksType, n_values),
	       "masks of all services are read as those of meta");

struct kvcm_mask kvcm_mask_of(const ProtobufCMessage *block_mask)
{
	const KvcmMeta__BlockMask *m = (const KvcmMeta__BlockMask *)(const void *)block_mask;
	struct kvcm_mask mask = { .kind = KVCM_MASK_UNSET };

	if (!m)
		return mask;
	assert(block_mask->descriptor == &kvcm_meta__block_mask__descriptor ||
	       block_mask->descriptor == &kvcm_admin__block_mask__descriptor);
	if (m->info_case == KVCM_META__BLOCK_MASK__INFO_OFFSET) {
		mask.kind = KVCM_MASK_OFFSET;
		mask.offset = m->offset;
	} else if (m->info_case == KVCM_META__BLOCK_MASK__INFO_BOOL_MASKS) {
		mask.kind = KVCM_MASK_BITS;
		mask.n = m->bool_masks->n_values;
		mask.bits = m->bool_masks->values;
	}
	return mask;
}

int kvcm_mask_check(const struct kvcm_mask *mask, size_t n, bool exact, struct skv_error *err)
{
	if (mask->kind == KVCM_MASK_OFFSET && mask->offset < 0)
		return skv_fail(err, SKV_E_INVALID, "block_mask.offset",
				"must not be negative, is %d", mask->offset);
	if (exact && mask->kind == KVCM_MASK_OFFSET && (size_t)mask->offset > n)
		return skv_fail(err, SKV_E_INVALID, "block_mask.offset",
				"is %d, there are %zu keys", mask->offset, n);
	if (exact && mask->kind == KVCM_MASK_BITS && mask->n != n)
		return skv_fail(err, SKV_E_INVALID, "block_mask.bool_masks",
				"has %zu values, there are %zu keys", mask->n, n);
	return SKV_OK;
}

int kvcm_mask_finish(const struct kvcm_mask *mask, struct skv_arena *a, struct skv_finish_req *req,
		     struct skv_error *err)
{
	bool *bits;

	if (mask->kind == KVCM_MASK_OFFSET) {
		if (mask->offset < 0)
			return skv_fail(err, SKV_E_INVALID, "success_blocks.offset",
					"must not be negative, is %d", mask->offset);
		req->mask_kind = SKV_MASK_COUNT;
		req->mask_count = (uint32_t)mask->offset;
		return SKV_OK;
	}
	assert(mask->kind != KVCM_MASK_UNSET || mask->n == 0);
	if (mask->n > UINT32_MAX)
		return skv_fail(err, SKV_E_TOO_LARGE, "success_blocks.bool_masks", "has %zu values",
				mask->n);
	bits = skv_arena_alloc(a, mask->n);
	if (!bits)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (size_t i = 0; i < mask->n; i++)
		bits[i] = mask->bits[i] != 0;
	req->mask_kind = SKV_MASK_BITS;
	req->mask_count = (uint32_t)mask->n;
	req->mask = bits;
	return SKV_OK;
}

void *kvcm_mask_answer(const uint8_t *outcome, uint32_t n, struct skv_arena *a)
{
	KvcmMeta__BlockMask *m = skv_proto_make(&kvcm_meta__block_mask__descriptor, a);
	uint32_t first = 0, last = n; /* the first written one; after it, the first that is not */

	if (!m)
		return NULL;
	while (first < n && outcome[first] != SKV_START_WRITE)
		first++;
	for (last = first; last < n && outcome[last] == SKV_START_WRITE;)
		last++;
	assert(first <= last && last <= n);
	if (last == n) {
		m->info_case = KVCM_META__BLOCK_MASK__INFO_OFFSET;
		m->offset = (int32_t)first;
		return m;
	}
	m->info_case = KVCM_META__BLOCK_MASK__INFO_BOOL_MASKS;
	m->bool_masks = skv_proto_make(&kvcm_meta__bool_masks_type__descriptor, a);
	if (!m->bool_masks)
		return NULL;
	m->bool_masks->values = skv_arena_alloc(a, n * sizeof *m->bool_masks->values);
	if (!m->bool_masks->values)
		return NULL;
	m->bool_masks->n_values = n;
	for (uint32_t i = 0; i < n; i++)
		m->bool_masks->values[i] = outcome[i] != SKV_START_WRITE;
	return m;
}
