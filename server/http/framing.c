/*
 * framing.c - refuses ambiguous headers, so that no proxy in front can read a request differently.
 *
 * libmicrohttpd is lenient: it takes one of several lengths, ignores a transfer coding that it does
 * not know, keeps a name with a space behind it as another name, and cuts lines at a NUL. Its lines
 * lie in one buffer, each ended with NUL for CR and LF, so a line that is longer than its text
 * shows there. Runs on a thread of libmicrohttpd before any of the body is read. No state.
 */
#include "internal.h"

#include <string.h>
#include <strings.h>

/* libmicrohttpd passes it on as the state of a request whose first line has a NUL in it. */
struct skv_httpd_request skv_framing_bad_line;

struct seen {
	struct skv_httpd_request *r;
	unsigned n[HEADERS + 1];
	const char *end; /* of the previous line: the position of its NUL */
	bool bad_name, bad_value, cut;
};

static enum header name_of(const char *s, size_t n)
{
	static const struct {
		size_t n;
		const char *s;
	} names[HEADERS] = {
#define NAME(text) { sizeof(text) - 1, text }
		[HEADER_CONTENT_LENGTH] = NAME("Content-Length"),
		[HEADER_TRANSFER_ENCODING] = NAME("Transfer-Encoding"),
		[HEADER_CONTENT_ENCODING] = NAME("Content-Encoding"),
		[HEADER_HOST] = NAME("Host"),
		[HEADER_AUTHORIZATION] = NAME("Authorization"),
		[HEADER_CONTENT_TYPE] = NAME("Content-Type"),
		[HEADER_ACCEPT] = NAME("Accept"),
		[HEADER_ORIGIN] = NAME("Origin"),
		[HEADER_REQUEST_ID] = NAME("X-Request-Id"),
		[HEADER_TRACEPARENT] = NAME("traceparent"),
		[HEADER_FORWARDED] = NAME(SKV_FORWARDED),
#undef NAME
	};

	for (enum header i = 0; i < HEADERS; i++)
		if (n == names[i].n && strcasecmp(s, names[i].s) == 0)
			return i;
	return HEADER_OTHER;
}

/* Visible ASCII except separators that no name contains. */
static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f || s[i] == '(' || s[i] == ')' || s[i] == ',' ||
		    s[i] == '"')
			return false;
	return n > 0;
}

static bool is_value(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return false;
	return true;
}

/* Between two lines there are one or two bytes, for LF and CR; behind the last
 * one there is an empty line. */
static bool is_cut(const char *end, const char *next)
{
	return end && next != end + 1 && (next != end + 2 || end[1] != '\0');
}

static enum MHD_Result look(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct seen *s = ctx;
	const size_t n = strlen(name), n_value = value ? strlen(value) : 0;
	const enum header which = name_of(name, n);

	(void)kind;
	if (which != HEADER_OTHER && s->n[which] == 0)
		s->r->header[which] = value;
	s->n[which]++;
	s->bad_name |= !is_name(name, n);
	s->bad_value |= !is_value(value ? value : "", n_value);
	s->cut |= is_cut(s->end, name);
	s->end = value ? value + n_value : name + n;
	return MHD_YES;
}

static const char *find_fault(const struct seen *s, const char *version)
{
	const bool http11 = strcmp(version, "HTTP/1.1") == 0;
	const char *coding = s->r->header[HEADER_TRANSFER_ENCODING];
	const char *encoding = s->r->header[HEADER_CONTENT_ENCODING];

	if (s->bad_name)
		return "the name of a header field is none";
	if (s->bad_value || s->cut ||
	    (s->end && s->end[1] != '\0' && s->end[1] != '\n' && s->end[1] != '\r'))
		return "a header field has a control character or continues on a second line";
	if (s->n[HEADER_CONTENT_LENGTH] > 1 ||
	    (s->n[HEADER_CONTENT_LENGTH] && s->n[HEADER_TRANSFER_ENCODING]))
		return "the length of the body is told more than once";
	if (s->n[HEADER_TRANSFER_ENCODING] > 1 ||
	    (s->n[HEADER_TRANSFER_ENCODING] &&
	     (!http11 || !coding || strcasecmp(coding, "chunked") != 0)))
		return "the only Transfer-Encoding is chunked, in HTTP/1.1";
	if (s->n[HEADER_CONTENT_ENCODING] > 1 ||
	    (encoding && *encoding && strcasecmp(encoding, "identity") != 0))
		return "a body is taken as it is: no Content-Encoding";
	if (s->n[HEADER_HOST] > 1 || (http11 && s->n[HEADER_HOST] == 0))
		return "there must be one field Host";
	if (s->n[HEADER_AUTHORIZATION] > 1)
		return "there is more than one field Authorization";
	return NULL;
}

const char *skv_framing_read(struct skv_httpd_request *r)
{
	struct seen s = { .r = r };

	MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, look, &s);
	return r->bad_line ? "the request's first line has a NUL in it"
			   : find_fault(&s, r->version);
}

/* RFC 9112, 3.2.2: a target may name scheme and host, too, as it is sent to a proxy. Who was meant
 * is told by Host, which skv_guard checks. */
const char *skv_framing_path(const char *target)
{
	const size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
			      : strncasecmp(target, "https://", 8) == 0 ? 8
									: 0;
	const char *path = target + scheme + (scheme ? strcspn(target + scheme, "/") : 0);

	return *path ? path : "/";
}

void *skv_framing_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	(void)cls;
	(void)mhd;
	return strncmp(uri + strlen(uri) + 1, "HTTP/", 5) == 0 ? NULL : &skv_framing_bad_line;
}
