/*
 * space.c - names of page spaces. No state.
 */
#include "space.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/hf3fs_api.h>
#include <skv/json.h>
#include <skv/json_out.h>

#define PAGES "pages:"
/* PAGES tenant ':' rank ':' namespace, the rank having 20 bytes at most. */
#define TENANT_MAX 40u
#define NS_MAX (SKV_MAX_NAME - 6 - TENANT_MAX - 1 - 20 - 1)

bool space_rank(const char *s, size_t n, bool sign, int64_t *out)
{
	bool minus = sign && n > 0 && *s == '-';
	int64_t v = 0;
	size_t digits = 0;

	if (sign && n > 0 && (*s == '-' || *s == '+')) {
		s++;
		n--;
	}
	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		digits += v != 0 || s[i] != '0';
		if (digits > 18)
			return false;
		v = 10 * v + (s[i] - '0');
	}
	*out = minus ? -v : v;
	return true;
}

static bool is_plain(char c)
{
	return (unsigned char)((c | 0x20) - 'a') < 26 || (unsigned char)(c - '0') < 10 ||
	       c == '.' || c == '_' || c == '-';
}

/* At most `max` bytes, which are 34 at least. */
static char *put_part(char *p, const char *s, size_t n, size_t max)
{
	static const char hex[] = "0123456789ABCDEF";
	char *begin = p, *end = p + max;

	assert(max >= 2 + SKV_KEY_HEX);
	for (size_t i = 0; i < n; i++) {
		if ((size_t)(end - p) < (is_plain(s[i]) ? 1u : 3u)) {
			char digits[SKV_KEY_HEX + 1];

			skv_key_to_hex(skv_hash128(s, n), digits);
			memcpy(begin, "=h", 2);
			memcpy(begin + 2, digits, SKV_KEY_HEX);
			return begin + 2 + SKV_KEY_HEX;
		}
		if (is_plain(s[i])) {
			*p++ = s[i];
		} else {
			*p++ = '=';
			*p++ = hex[(unsigned char)s[i] >> 4];
			*p++ = hex[(unsigned char)s[i] & 15];
		}
	}
	return p;
}

void space_init(struct space *s, const char *tenant, int64_t rank, const char *ns, size_t n_ns)
{
	int n = snprintf(s->id, sizeof s->id, "%s%" PRId64 ":", rank < 0 ? "_" : "", rank);

	assert(rank >= -HF3FS_RANK_MAX && rank <= HF3FS_RANK_MAX);
	assert(n > 0 && (size_t)n + NS_MAX < sizeof s->id);
	s->tenant = tenant;
	s->rank = rank;
	s->ns = ns;
	s->n_ns = n_ns;
	*put_part(s->id + n, ns, n_ns, NS_MAX) = '\0';
}

void space_name(const struct space *s, char out[SKV_MAX_NAME + 1])
{
	size_t n = strlen(s->id) + 1;
	char *p = out + sizeof PAGES - 1;

	memcpy(out, PAGES, sizeof PAGES - 1);
	p = put_part(p, s->tenant, strlen(s->tenant), TENANT_MAX);
	*p++ = ':';
	assert((size_t)(p - out) + n <= SKV_MAX_NAME + 1);
	memcpy(p, s->id, n);
}

/* ---- families -------------------------------------------------------------------------------- */

#define VLLM_END ":" SPACE_NS_VLLM

/* PAGES part VLLM_END. False: no space has such a long one. */
static bool put_family(const char *part, size_t n, char out[SKV_MAX_NAME + 1])
{
	if (n > TENANT_MAX)
		return false;
	snprintf(out, SKV_MAX_NAME + 1, PAGES "%.*s" VLLM_END, (int)n, part);
	return true;
}

void space_family(const char *tenant, char out[SKV_MAX_NAME + 1])
{
	char part[TENANT_MAX];
	const char *end = put_part(part, tenant, strlen(tenant), sizeof part);
	const bool fits = put_family(part, (size_t)(end - part), out);

	assert(fits && end > part);
}

/* An instance's id: a rank, and vLLM's namespace. */
static bool is_vllm_id(const char *id)
{
	const size_t n = strcspn(id, ":");
	int64_t rank;

	return strcmp(id + n, VLLM_END) == 0 &&
	       space_rank(id + (*id == '_'), n - (*id == '_'), true, &rank);
}

bool skv_hf3fs_family(const char *tenant, const char *name, char out[SKV_MAX_NAME + 1])
{
	const char *part;
	size_t n;

	if (tenant && is_vllm_id(name)) {
		space_family(tenant, out);
		return true;
	}
	if (tenant || strncmp(name, PAGES, sizeof PAGES - 1) != 0)
		return false;
	part = name + sizeof PAGES - 1;
	n = strcspn(part, ":");
	return part[n] == ':' && is_vllm_id(part + n + 1) && put_family(part, n, out);
}

bool space_is_main(const struct space *s)
{
	return s->n_ns == sizeof SPACE_NS_DEFAULT - 1 &&
	       memcmp(s->ns, SPACE_NS_DEFAULT, s->n_ns) == 0;
}

void space_extra(const struct space *s, struct skv_buf *out)
{
	skv_jout_begin(out);
	skv_jout_name(out, "pages");
	skv_jout_open(out, '{');
	skv_jout_name(out, "rank");
	skv_jout_i64(out, s->rank);
	skv_jout_name(out, "namespace");
	skv_jout_string_n(out, s->ns, s->n_ns);
	skv_jout_close(out, '}');
	skv_jout_close(out, '}');
	skv_put_u8(out, 0);
}

bool space_of(const struct skv_instance_spec *i, struct skv_arena *a, struct space *out)
{
	const struct skv_json_limits limits = { .depth = 2, .values = 8, .nul = true };
	const struct skv_json_node *pages, *rank, *ns;
	struct skv_json_doc doc;
	char *text;

	if (strncmp(i->extra, "{\"pages\":", 9) != 0)
		return false;
	text = skv_arena_strndup(a, i->extra, strlen(i->extra));
	if (!text || !skv_json_parse(&doc, a, text, strlen(text), &limits))
		return false;
	pages = skv_json_get(doc.root, "pages", 5);
	rank = skv_json_get(pages, "rank", 4);
	ns = skv_json_get(pages, "namespace", 9);
	if (!rank || rank->type != SKV_JSON_INTEGER || !ns || ns->type != SKV_JSON_STRING)
		return false;
	/* `extra` is not under our control */
	if (rank->i < -HF3FS_RANK_MAX || rank->i > HF3FS_RANK_MAX)
		return false;
	space_init(out, i->tenant, rank->i, ns->s, ns->n);
	return strcmp(out->id, i->id) == 0;
}
