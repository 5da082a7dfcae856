/*
 * redis_url.c - parses --store redis://... and rediss://... URLs.
 *
 * Stateless; any thread.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "redis_store.h"

#define DEFAULT_PORT 6379u

static int refuse(struct skv_error *err, const char *what)
{
	return skv_fail(
		err, SKV_E_INVALID, "store",
		"%s (redis://[user:password@]host:port[,host:port...][/prefix][?replicas=N&"
		"timeout_ms=N&force=1&silent_ms=N], or rediss:// for TLS, with "
		"ca_file=PATH&cert_file=PATH&key_file=PATH&server_name=NAME too)",
		what);
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10
					    : -1;
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
	if (after < end &&
	    (*after != ':' || !parse_number(port, (size_t)(end - port), 65535, &number) ||
	     number == 0))
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
			return refuse(err, "too many addresses");
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

/* An option's text, between '=' and '&'. */
struct value {
	const char *text;
	size_t n;
};

static int parse_replicas(struct value v, struct redis_url *out, struct skv_error *err)
{
	uint64_t n;

	if (!parse_number(v.text, v.n, REDIS_NODES, &n))
		return refuse(err, "replicas is not a number from 0 to 64");
	out->replicas = (uint32_t)n;
	return SKV_OK;
}

static int parse_timeout(struct value v, struct redis_url *out, struct skv_error *err)
{
	uint64_t n;

	if (!parse_number(v.text, v.n, 600000, &n) || n < 10)
		return refuse(err, "timeout_ms is not a number from 10 to 600000");
	out->timeout_ms = (uint32_t)n;
	return SKV_OK;
}

static int parse_force(struct value v, struct redis_url *out, struct skv_error *err)
{
	uint64_t n;

	if (!parse_number(v.text, v.n, 1, &n))
		return refuse(err, "force is not 0 or 1");
	out->force = n;
	return SKV_OK;
}

static int parse_silent(struct value v, struct redis_url *out, struct skv_error *err)
{
	uint64_t n;

	if (!parse_number(v.text, v.n, 300000, &n) || (n > 0 && n < 1000))
		return refuse(err, "silent_ms is not 0 or a number from 1000 to 300000");
	out->silent_ms = (uint32_t)n;
	return SKV_OK;
}

static int parse_tls_text(struct value v, char *out, size_t size, struct skv_error *err)
{
	if (v.n == 0 || !decode(v.text, v.n, out, size))
		return refuse(err, "a file or server_name is empty, malformed or too long "
				   "('%' must be %25, '&' %26)");
	return SKV_OK;
}

static int parse_ca(struct value v, struct redis_url *out, struct skv_error *err)
{
	return parse_tls_text(v, out->tls.ca_file, sizeof out->tls.ca_file, err);
}

static int parse_cert(struct value v, struct redis_url *out, struct skv_error *err)
{
	return parse_tls_text(v, out->tls.cert_file, sizeof out->tls.cert_file, err);
}

static int parse_key(struct value v, struct redis_url *out, struct skv_error *err)
{
	return parse_tls_text(v, out->tls.key_file, sizeof out->tls.key_file, err);
}

static int parse_name(struct value v, struct redis_url *out, struct skv_error *err)
{
	return parse_tls_text(v, out->tls.server_name, sizeof out->tls.server_name, err);
}

static const struct option {
	const char *name;
	int (*parse)(struct value v, struct redis_url *out, struct skv_error *err);
	bool tls; /* of rediss:// only */
} known[] = {
	{ "replicas", parse_replicas, false },
	{ "timeout_ms", parse_timeout, false },
	{ "force", parse_force, false },
	{ "silent_ms", parse_silent, false },
	{ "ca_file", parse_ca, true },
	{ "cert_file", parse_cert, true },
	{ "key_file", parse_key, true },
	{ "server_name", parse_name, true },
};

static int parse_option(const char *text, size_t n, struct redis_url *out, struct skv_error *err)
{
	const char *is = memchr(text, '=', n);
	const size_t name_n = is ? (size_t)(is - text) : n;
	const struct value v = { is ? is + 1 : "", is ? n - name_n - 1 : 0 };

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		const struct option *o = &known[i];

		if (strlen(o->name) == name_n && memcmp(o->name, text, name_n) == 0)
			return o->tls && !out->tls.on
				       ? refuse(err, "files and server_name are for rediss://")
				       : o->parse(v, out, err);
	}
	return refuse(err, "the only options are replicas, timeout_ms, force and silent_ms, and of "
			   "rediss:// ca_file, cert_file, key_file and server_name");
}

static int parse_options(const char *text, struct redis_url *out, struct skv_error *err)
{
	int rc = SKV_OK;

	while (rc == SKV_OK && *text) {
		size_t n = strcspn(text, "&");

		rc = parse_option(text, n, out, err);
		text += n + (text[n] == '&');
	}
	if (rc == SKV_OK && !*out->tls.cert_file != !*out->tls.key_file)
		rc = refuse(err, "cert_file and key_file go together");
	if (rc == SKV_OK && out->silent_ms * 2 > out->timeout_ms)
		rc = refuse(err, "silent_ms is more than half of timeout_ms: calls would end "
				 "before they may go on");
	return rc;
}

static int parse_prefix(const char *text, size_t n, struct redis_url *out, struct skv_error *err)
{
	if (n == 0)
		return SKV_OK;
	if (n > REDIS_PREFIX_MAX)
		return refuse(err, "the prefix is longer than 64 characters");
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return refuse(err, "the prefix may hold only A-Z a-z 0-9 . _ -");
	memcpy(out->prefix, text, n);
	out->prefix[n] = '\0';
	return SKV_OK;
}

int redis_url_parse(const char *text, struct redis_url *out, struct skv_error *err)
{
	const bool tls = strncmp(text, "rediss://", 9) == 0;
	const char *rest, *slash, *at;
	size_t authority, path;
	int rc;

	*out = (struct redis_url){ .prefix = "slabkv", .replicas = 1, .timeout_ms = 3000 };
	out->tls.on = tls;
	if (!tls && strncmp(text, "redis://", 8) != 0)
		return refuse(err, "a store is a file or redis://... (with TLS rediss://...)");
	rest = text + (tls ? 9 : 8);
	authority = strcspn(rest, "/?");
	at = memrchr(rest, '@', authority);
	rc = at ? parse_login(rest, (size_t)(at - rest), out, err) : SKV_OK;
	if (rc == SKV_OK)
		rc = parse_nodes(at ? at + 1 : rest, authority - (at ? (size_t)(at + 1 - rest) : 0),
				 out, err);
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
