/*
 * sessions.c - a session of a client that spans several sessions of the core: its id contains
 * theirs.
 *
 * A write of more blocks than the core takes at once is as many sessions. No table remembers which
 * sessions belong together: the id "ID-BLOCKS.ID-BLOCKS..." lists them, so a restarted manager and
 * another owner know them as well, and the core checks each id as ever. No state.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

char *kvcm_sessions_text(struct kvcm_request *k, const struct kvcm_session *v, uint32_t n)
{
	struct skv_buf text;
	char *out;

	assert(n > 0 && n <= KVCM_MAX_PORTIONS);
	skv_buf_init(&text);
	for (uint32_t i = 0; i < n; i++) {
		/* bounds of kvcm_sessions_read */
		assert(v[i].n_blocks > 0 && v[i].n_blocks <= SKV_MAX_KEYS);
		skv_buf_printf(&text, n > 1 ? "%s%s-%u" : "%s%s", i ? "." : "", v[i].id,
			       v[i].n_blocks);
	}
	out = text.failed ? NULL
			  : skv_arena_strndup(&k->c->arena, (const char *)text.data, text.len);
	skv_buf_destroy(&text);
	return out;
}

/* Reads "ID-BLOCKS" and moves after it. Returns false for other text. */
static bool take_session(const char **at, struct kvcm_session *out)
{
	struct skv_key ignored;
	const char *p = *at;
	uint32_t n = 0;

	if (strnlen(p, SKV_SESSION_ID_HEX + 1) <= SKV_SESSION_ID_HEX ||
	    !skv_key_from_hex(p, SKV_SESSION_ID_HEX, &ignored))
		return false;
	memcpy(out->id, p, SKV_SESSION_ID_HEX);
	out->id[SKV_SESSION_ID_HEX] = '\0';
	p += SKV_SESSION_ID_HEX;
	if (*p++ != '-')
		return false;
	for (; *p >= '0' && *p <= '9' && n <= SKV_MAX_KEYS; p++)
		n = 10 * n + (uint32_t)(*p - '0');
	assert(n <= 10 * SKV_MAX_KEYS + 9); /* the loop stops at the first digit too many */
	out->n_blocks = n;
	*at = p;
	return n > 0 && n <= SKV_MAX_KEYS;
}

uint32_t kvcm_sessions_read(const char *id, struct kvcm_session v[KVCM_MAX_PORTIONS])
{
	uint32_t n = 0;

	while (n < KVCM_MAX_PORTIONS && take_session(&id, &v[n])) {
		n++;
		if (!*id)
			return n;
		if (*id++ != '.')
			return 0;
	}
	return 0;
}
