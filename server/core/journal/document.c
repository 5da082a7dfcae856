/* document.c - format of the registry's documents. */
#include <journal/document.h>

#include <string.h>

#include <skv/bytes.h>
#include <skv/mem.h>
#include <skv/status.h>

void doc_put_text(struct skv_buf *out, const char *s) { skv_put_string(out, s, strlen(s)); }

void doc_put_field(struct skv_buf *out, unsigned tag, uint64_t value)
{
	if (!value)
		return;
	skv_put_varint(out, tag);
	skv_put_varint(out, value);
}

void doc_end_fields(struct skv_buf *out, size_t at, size_t fields)
{
	if (out->len > fields && !out->failed)
		out->data[at] = DOC_FIELDS;
}

uint64_t doc_next_field(struct skv_rd *in, unsigned format)
{
	uint64_t tag = 0;

	if (format < DOC_FIELDS || in->failed || !skv_rd_left(in))
		return 0;
	tag = skv_get_varint(in);
	in->failed |= tag == 0;
	return in->failed ? 0 : tag;
}

uint32_t doc_get_small(struct skv_rd *in, uint32_t max)
{
	uint64_t v = skv_get_varint(in);

	in->failed |= v > max;
	return in->failed ? 0 : (uint32_t)v;
}

char *doc_get_text(struct skv_rd *in, size_t max)
{
	size_t n = 0;
	const char *s = skv_get_string(in, &n, max);
	char *copy = s ? skv_malloc(n + 1) : NULL;

	if (copy) {
		memcpy(copy, s, n);
		copy[n] = '\0';
	}
	return copy;
}

unsigned doc_version(struct skv_rd *in, unsigned newest)
{
	unsigned v = skv_get_u8(in);

	return in->failed || v > newest ? 0 : v;
}

int doc_bad(struct skv_error *err, const char *key)
{
	return skv_fail(err, SKV_E_CORRUPT, NULL,
			"registry document '%s' is malformed, or of a newer slabkvd: use that one",
			key);
}
