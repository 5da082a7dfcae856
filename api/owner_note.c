/* owner_note.c - the header Slabkv-Owner, written and read. No state; any thread. */
#include <skv/owner_note.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/check.h>

void skv_owner_note_write(const struct skv_owner_note *n, char out[SKV_NOTE_MAX])
{
	SKV_CHECK(n->partition < SKV_NOTE_PARTITIONS && (n->epoch == 0) == (n->url[0] != '\0'));
	snprintf(out, SKV_NOTE_MAX, "%" PRIu32 " %" PRIu64 "%s%s", n->partition, n->epoch,
		 n->url[0] ? " " : "", n->url);
}

/* Reads decimal digits, at most `most`; moves *text after them. */
static bool read_number(const char **text, uint64_t most, uint64_t *out)
{
	const char *s = *text;

	for (*out = 0; *s >= '0' && *s <= '9'; s++) {
		const unsigned digit = (unsigned)(*s - '0');

		if (*out > (most - digit) / 10)
			return false;
		*out = *out * 10 + digit;
	}
	if (s == *text)
		return false;
	*text = s;
	return true;
}

/* Only scheme, host and port: nothing that a request could be turned into another one by. */
static bool is_url(const char *s)
{
	static const char host[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789.-_:[]";
	const size_t scheme = strncmp(s, "https://", 8) == 0  ? 8
			      : strncmp(s, "http://", 7) == 0 ? 7
							      : 0;
	const size_t n = strlen(s);

	return scheme > 0 && n > scheme && n < SKV_NOTE_URL &&
	       strspn(s + scheme, host) == n - scheme;
}

bool skv_owner_note_read(const char *text, struct skv_owner_note *out)
{
	uint64_t partition;

	if (!read_number(&text, SKV_NOTE_PARTITIONS - 1, &partition) || *text++ != ' ' ||
	    !read_number(&text, UINT64_MAX, &out->epoch))
		return false;
	out->partition = (uint32_t)partition;
	out->url[0] = '\0';
	if (out->epoch)
		return *text == '\0' || *text == ' ';
	if (*text++ != ' ' || !is_url(text))
		return false;
	memcpy(out->url, text, strlen(text) + 1);
	return true;
}
