/*
 * etcd_url.c - parses --store etcd://... URLs.
 *
 * Stateless; any thread.
 */
#include <ctype.h>
#include <string.h>

#include "etcd_store.h"

static int refuse(struct skv_error *err, const char *what)
{
	return skv_fail(err, SKV_E_INVALID, "store",
			"%s (etcd://[user:password@]host:port[,host:port...][/prefix]"
			"[?tls=on&ca=FILE&cert=FILE&key=FILE&checkpoints=DIR])", what);
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10
					    : -1;
}

/* Decodes %XX, for passwords with '@' and '/'. False: malformed, or too long. */
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
	return true;
}

static int parse_login(const char *text, size_t n, struct etcd_url *out, struct skv_error *err)
{
	const char *colon = memchr(text, ':', n);
	const size_t user_n = colon ? (size_t)(colon - text) : n;

	if (!colon || user_n == 0)
		return refuse(err, "etcd has no password without a user: write user:password@");
	if (!decode(text, user_n, out->user, sizeof out->user) ||
	    !decode(colon + 1, n - user_n - 1, out->password, sizeof out->password))
		return refuse(err, "user or password is malformed or too long ('%' must be %25)");
	return SKV_OK;
}

static int parse_prefix(const char *text, size_t n, struct etcd_url *out, struct skv_error *err)
{
	if (n == 0)
		return SKV_OK;
	if (n > ETCD_PREFIX_MAX)
		return refuse(err, "the prefix is longer than 64 characters");
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return refuse(err, "the prefix may have only A-Z a-z 0-9 . _ -");
	memcpy(out->prefix, text, n);
	out->prefix[n] = '\0';
	return SKV_OK;
}

static int parse_tls(const char *value, size_t n, struct etcd_url *out, struct skv_error *err)
{
	out->tls.on = n == 2 && memcmp(value, "on", 2) == 0;
	return out->tls.on || (n == 3 && memcmp(value, "off", 3) == 0)
		       ? SKV_OK
		       : refuse(err, "tls is neither on nor off");
}

static int parse_option(const char *text, size_t n, struct etcd_url *out, struct skv_error *err)
{
	const char *is = memchr(text, '=', n);
	const size_t name_n = is ? (size_t)(is - text) : n;
	const char *value = is ? is + 1 : text + n;
	const size_t value_n = n - name_n - (is != NULL);
	const struct {
		const char *name;
		char *out;
		size_t size;
	} texts[] = {
		{ "ca", out->tls.ca_file, sizeof out->tls.ca_file },
		{ "cert", out->tls.cert_file, sizeof out->tls.cert_file },
		{ "key", out->tls.key_file, sizeof out->tls.key_file },
		{ "checkpoints", out->checkpoints, sizeof out->checkpoints },
	};

	if (name_n == 3 && memcmp(text, "tls", 3) == 0)
		return parse_tls(value, value_n, out, err);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (strlen(texts[i].name) != name_n || memcmp(texts[i].name, text, name_n) != 0)
			continue;
		return value_n && decode(value, value_n, texts[i].out, texts[i].size)
			       ? SKV_OK
			       : refuse(err, "the path of ca, cert, key or checkpoints is empty, "
					     "malformed or too long ('%' must be %25, '&' %26)");
	}
	return skv_fail(err, SKV_E_INVALID, "store",
			"the URL's option '%.*s' is unknown: tls, ca, cert, key and checkpoints "
			"exist",
			name_n > 40 ? 40 : (int)name_n, text);
}

static int parse_options(const char *text, struct etcd_url *out, struct skv_error *err)
{
	bool files;
	int rc = SKV_OK;

	while (rc == SKV_OK && *text) {
		const size_t n = strcspn(text, "&");

		rc = parse_option(text, n, out, err);
		text += n + (text[n] == '&');
	}
	files = *out->tls.ca_file || *out->tls.cert_file || *out->tls.key_file;
	if (rc == SKV_OK && files && !out->tls.on)
		return refuse(err, "ca, cert and key need tls=on");
	if (rc == SKV_OK && !*out->tls.cert_file != !*out->tls.key_file)
		return refuse(err, "cert and key go together");
	if (rc == SKV_OK && *out->checkpoints && *out->checkpoints != '/')
		return refuse(err, "checkpoints is not an absolute path");
	return rc;
}

int etcd_url_parse(const char *text, struct etcd_url *out, struct skv_error *err)
{
	const char *rest, *at;
	size_t authority, skip;
	int rc = SKV_OK;

	*out = (struct etcd_url){ .prefix = "slabkv" };
	if (strncmp(text, "etcd://", 7) != 0)
		return refuse(err, "the store is no etcd:// URL");
	rest = text + 7;
	authority = strcspn(rest, "/?");
	at = memrchr(rest, '@', authority);
	skip = at ? (size_t)(at + 1 - rest) : 0;
	if (at)
		rc = parse_login(rest, (size_t)(at - rest), out, err);
	if (rc == SKV_OK && (authority == skip || authority - skip >= sizeof out->endpoints))
		rc = refuse(err, "the URL has no address, or too many");
	if (rc != SKV_OK)
		return rc;
	memcpy(out->endpoints, rest + skip, authority - skip);
	rest += authority;
	if (*rest == '/') {
		const size_t n = strcspn(rest + 1, "?");

		rc = parse_prefix(rest + 1, n, out, err);
		rest += 1 + n;
	}
	return rc == SKV_OK && *rest == '?' ? parse_options(rest + 1, out, err) : rc;
}
