/*
 * want.c - requests movers to copy or move blocks (skv_core_want), with KVCM's types.
 *
 * Movers prove what they copy by checksums. Blocks of KVCM's clients have none, because their
 * protocol does not carry any. So only blocks written by libslabkv and the native API are copied; a
 * refusal of others is logged once, with the reason.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

#include <skv/log.h>

static void log_unsummed(const struct skv_want_req *req, uint32_t n)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;

	if (n > 0 && !atomic_flag_test_and_set(&logged))
		skv_log(SKV_LOG_WARN, "kvcm",
			"blocks of instance '%s' are not copied, for they have no checksum: %u; "
			"movers verify what they copy, and KVCM's clients write without; this is "
			"told once",
			req->instance, n);
}

int kvcm_want(struct kvcm_request *k, const struct skv_want_req *req, const char *from,
	      const char *to, struct skv_want_res *res)
{
	struct skv_error *err = &k->c->err;
	int rc = skv_core_want(kvcm_core(k), req, res, &k->c->arena, err);
	const char *field = strcmp(err->field, "from") == 0 ? from
			    : strcmp(err->field, "to") == 0 ? to : NULL;

	assert(req->n_keys <= SKV_MAX_KEYS);
	if (rc == SKV_OK)
		log_unsummed(req, res->count[SKV_WANT_UNSUMMED]);
	else if (field)
		rc = skv_fail(err, rc, field, "%s: %s", field,
			      kvcm_text(k, "%s", err->message));
	return rc;
}

int kvcm_want_code(enum skv_want_outcome outcome)
{
	switch (outcome) {
	case SKV_WANT_ASKED:
	case SKV_WANT_THERE:
		return KVCM_META__ERROR_CODE__OK;
	case SKV_WANT_UNSUMMED:
		return KVCM_META__ERROR_CODE__UNSUPPORTED;
	case SKV_WANT_UNREADABLE:
		return KVCM_META__ERROR_CODE__IO_ERROR;
	case SKV_WANT_FULL:
		return KVCM_META__ERROR_CODE__REACH_MAX_ENTITY_CAPACITY;
	default:
		return KVCM_META__ERROR_CODE__INTERNAL_ERROR;
	}
}

static const char *const words[SKV_WANT_OUTCOMES] = {
	[SKV_WANT_ASKED] = "for slabkv mover to copy",
	[SKV_WANT_THERE] = "there already",
	[SKV_WANT_ABSENT] = "not stored, or not with all specs",
	[SKV_WANT_ELSEWHERE] = "not on that source",
	[SKV_WANT_BUSY] = "being written or moved",
	[SKV_WANT_UNSUMMED] = "without a checksum, as all that KVCM's clients write",
	[SKV_WANT_UNREADABLE] = "on a storage that cannot be read now",
	[SKV_WANT_FULL] = "more than may wait for slabkv mover",
};

const char *kvcm_want_word(enum skv_want_outcome outcome)
{
	assert(outcome < SKV_WANT_OUTCOMES);
	return words[outcome];
}

const char *kvcm_want_words(struct kvcm_request *k, const uint32_t count[SKV_WANT_OUTCOMES])
{
	const char *text = "";

	for (uint32_t i = 0; i < SKV_WANT_OUTCOMES; i++)
		if (count[i])
			text = kvcm_text(k, "%s%s%u %s", text, *text ? ", " : "", count[i],
					 words[i]);
	return *text ? text : "none";
}
