/*
 * redis_url.c - what --store redis://... says.
 *
 * No state; any thread.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "redis_store.h"

#define SCHEME "redis://"
#define DEFAULT_PORT 6379u

static int refuse(struct skv_error *err, const char *what)
{
	return skv_fail(err, SKV_E_INVALID, "store",
			"%s (redis://[user:password@]host:port[,host:port...][/prefix][?replicas=N&timeout_ms=N])", what);
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10 : -1;
}

/* %XX, for passwords with '@' and '/'. False: malformed, or too long. */
static bool decode(const char *text, size_t n, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (c == '%') {
			if (i + 2 >= n || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0)
				return false;
			c = (char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
			i += 2;
		}
		if (!c || len + 1 >= size)
			return false;
		out[len++] = c;
	}
	out[len] = '\0';
	assert(len < size);
	return true;
}

static bool parse_number(const char *text, size_t n, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		v = v * 10 + (uint64_t)(text[i] - '0');
		if (v > max)
			return false;
	}
	*out = v;
	return true;
}

/* host, host:port or [v6]:port. */
bool redis_node_parse(const char *text, size_t n, struct redis_node *out)
{
	const char *host = text, *end = text + n, *after, *port;
	size_t host_n;
	uint64_t number = DEFAULT_PORT;

	if (n > 0 && *text == '[') {
		host++;
		after = memchr(text, ']', n);
		if (!after)
			return false;
		host_n = (size_t)(after - host);
		after++;
	} else {
		after = memchr(text, ':', n);
		after = after ? after : end;
		host_n = (size_t)(after - host);
	}
	if (host_n == 0 || host_n > REDIS_HOST_MAX)
		return false;
	port = after + 1;
	if (after < end && (*after != ':' || !parse_number(port, (size_t)(end - port), 65535, &number) || number == 0))
		return false;
	memcpy(out->host, host, host_n);
	out->host[host_n] = '\0';
	out->port = (uint16_t)number;
	return true;
}

static int parse_nodes(const char *text, size_t n, struct redis_url *out, struct skv_error *err)
{
	const char *end = text + n;

	while (text <= end) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		const char *stop = comma ? comma : end;

		if (out->n == REDIS_NODES)
			return refuse(err, "more addresses than are remembered");
		if (!redis_node_parse(text, (size_t)(stop - text), &out->node[out->n]))
			return refuse(err, "an address is not host:port");
		out->n++;
		text = stop + 1;
	}
	return SKV_OK;
}

static int parse_login(const char *text, size_t n, struct redis_url *out, struct skv_error *err)
{
	const char *colon = memchr(text, ':', n);
	size_t user_n = colon ? (size_t)(colon - text) : n;

	if (!decode(text, user_n, out->user, sizeof out->user) ||
	    (colon && !decode(colon + 1, n - user_n - 1, out->password, sizeof out->password)))
		return refuse(err, "user or password is malformed or too long ('%' must be %25)");
	return SKV_OK;
}

static int parse_options(const char *text, struct redis_url *out, struct skv_error *err)
{
	while (*text) {
		size_t n = strcspn(text, "&");
		const char *is = memchr(text, '=', n);
		size_t name_n = is ? (size_t)(is - text) : n, value_n = is ? n - name_n - 1 : 0;
		uint64_t v;

		if (name_n == 8 && memcmp(text, "replicas", 8) == 0) {
			if (!is || !parse_number(is + 1, value_n, REDIS_NODES, &v))
				return refuse(err, "replicas is not a number from 0 to 64");
			out->replicas = (uint32_t)v;
		} else if (name_n == 10 && memcmp(text, "timeout_ms", 10) == 0) {
			if (!is || !parse_number(is + 1, value_n, 600000, &v) || v < 10)
				return refuse(err, "timeout_ms is not a number from 10 to 600000");
			out->timeout_ms = (uint32_t)v;
		} else {
			return refuse(err, "there are no options but replicas and timeout_ms");
		}
		text += n + (text[n] == '&');
	}
	return SKV_OK;
}

static int parse_prefix(const char *text, size_t n, struct redis_url *out, struct skv_error *err)
{
	if (n == 0)
		return SKV_OK;
	if (n > REDIS_PREFIX_MAX)
		return refuse(err, "the prefix is longer than 64 characters");
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return refuse(err, "the prefix is of A-Z a-z 0-9 . _ -");
	memcpy(out->prefix, text, n);
	out->prefix[n] = '\0';
	return SKV_OK;
}

int redis_url_parse(const char *text, struct redis_url *out, struct skv_error *err)
{
	const char *rest = text + strlen(SCHEME), *slash, *at;
	size_t authority, path;
	int rc;

	*out = (struct redis_url){ .prefix = "slabkv", .replicas = 1, .timeout_ms = 3000 };
	if (strncmp(text, SCHEME, strlen(SCHEME)) != 0)
		return refuse(err, "the store is not redis://...");
	authority = strcspn(rest, "/?");
	at = memrchr(rest, '@', authority);
	rc = at ? parse_login(rest, (size_t)(at - rest), out, err) : SKV_OK;
	if (rc == SKV_OK)
		rc = parse_nodes(at ? at + 1 : rest, authority - (at ? (size_t)(at + 1 - rest) : 0), out, err);
	slash = rest + authority;
	if (rc == SKV_OK && *slash == '/') {
		slash++;
		path = strcspn(slash, "?");
		rc = parse_prefix(slash, path, out, err);
		slash += path;
	}
	if (rc == SKV_OK && *slash == '?')
		rc = parse_options(slash + 1, out, err);
	return rc;
}
