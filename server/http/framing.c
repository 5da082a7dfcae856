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

enum name { NAME_OTHER, LENGTH, CODING, ENCODING, HOST, AUTHORIZATION, NAMES };

struct seen {
	unsigned n[NAMES];
	const char *end; /* of the previous line: the position of its NUL */
	const char *coding, *encoding;
	bool bad_name, bad_value, cut;
};

static enum name name_of(const char *s, size_t n)
{
	static const struct {
		size_t n;
		const char *s;
	} names[NAMES] = {
		[LENGTH] = { 14, "Content-Length" }, [CODING] = { 17, "Transfer-Encoding" },
		[ENCODING] = { 16, "Content-Encoding" }, [HOST] = { 4, "Host" },
		[AUTHORIZATION] = { 13, "Authorization" },
	};

	for (enum name i = LENGTH; i < NAMES; i++)
		if (n == names[i].n && strcasecmp(s, names[i].s) == 0)
			return i;
	return NAME_OTHER;
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
	const enum name which = name_of(name, n);

	(void)kind;
	s->n[which]++;
	s->bad_name |= !is_name(name, n);
	s->bad_value |= !is_value(value ? value : "", n_value);
	s->cut |= is_cut(s->end, name);
	s->end = value ? value + n_value : name + n;
	if (which == CODING)
		s->coding = value;
	if (which == ENCODING)
		s->encoding = value;
	return MHD_YES;
}

static const char *find_fault(const struct seen *s, const char *version)
{
	const bool http11 = strcmp(version, "HTTP/1.1") == 0;

	if (s->bad_name)
		return "the name of a header field is none";
	if (s->bad_value || s->cut ||
	    (s->end && s->end[1] != '\0' && s->end[1] != '\n' && s->end[1] != '\r'))
		return "a header field has a control character or continues on a second line";
	if (s->n[LENGTH] > 1 || (s->n[LENGTH] && s->n[CODING]))
		return "the length of the body is told more than once";
	if (s->n[CODING] > 1 ||
	    (s->n[CODING] && (!http11 || !s->coding || strcasecmp(s->coding, "chunked") != 0)))
		return "the only Transfer-Encoding is chunked, in HTTP/1.1";
	if (s->n[ENCODING] > 1 || (s->n[ENCODING] && s->encoding && *s->encoding &&
				   strcasecmp(s->encoding, "identity") != 0))
		return "a body is taken as it is: no Content-Encoding";
	if (s->n[HOST] > 1 || (http11 && s->n[HOST] == 0))
		return "there must be one field Host";
	if (s->n[AUTHORIZATION] > 1)
		return "there is more than one field Authorization";
	return NULL;
}

int skv_framing_check(struct skv_httpd_request *r)
{
	struct seen s = { .end = NULL };
	const char *fault;

	if (!r->bad_line)
		MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, look, &s);
	fault = r->bad_line ? "the request's first line has a NUL in it"
			    : find_fault(&s, r->version);
	if (!fault)
		return SKV_OK;
	r->c.close = true;
	r->c.http = MHD_HTTP_BAD_REQUEST;
	return skv_fail(&r->c.err, SKV_E_INVALID, NULL, "%s", fault);
}

void *skv_framing_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	(void)cls;
	(void)mhd;
	return strncmp(uri + strlen(uri) + 1, "HTTP/", 5) == 0 ? NULL : &skv_framing_bad_line;
}
