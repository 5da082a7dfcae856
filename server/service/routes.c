/*
 * routes.c - the route table and its matcher.
 *
 * The path is split at '/' before any decoding, so that %2F never becomes a separator, and each
 * parameter must be a valid name afterwards (kvb_name_valid): no slash, no dot file, no control
 * character gets further than this. Constant data, no state, no locks, any thread.
 */
#include <kvb/routes.h>

#include <stdio.h>
#include <string.h>

#include <kvb/ops.h>

const struct route kvb_routes[ROUTE_COUNT] = {
#define ROUTE_ROW(op, method, pattern, role, flags, grpc, target, body)                            \
	{ ROUTE_ID_##op, #op,    #method, pattern,           ROLE_##role,        flags, grpc,      \
	  target,        body,   kvb_op_##op##_run, kvb_op_##op##_write },
	KVB_ROUTES(ROUTE_ROW)
#undef ROUTE_ROW
};

/* One path parameter, still encoded. */
struct raw {
	const char *name;
	size_t name_len;
	const char *value;
	size_t value_len;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool kvb_percent_decode(const char *s, size_t n, char *out, size_t size)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '%') {
			int hi = n - i > 2 ? hex_digit(s[i + 1]) : -1;
			int lo = n - i > 2 ? hex_digit(s[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return false;
			c = (char)(hi * 16 + lo);
			i += 2;
		}
		if (c == '\0' || k + 1 >= size)
			return false;
		out[k++] = c;
	}
	if (size == 0)
		return false;
	out[k] = '\0';
	return true;
}

/* Segments must be equal, or the pattern's one is a parameter. Returns how many, or -1. */
static int match(const char *pattern, const char *path, struct raw raw[ROUTE_PARAMS])
{
	int n = 0;

	for (;;) {
		size_t want, have;

		if (*pattern != '/' || *path != '/')
			return *pattern == '\0' && *path == '\0' ? n : -1;
		want = strcspn(++pattern, "/");
		have = strcspn(++path, "/");
		if (*pattern == '{') {
			if (n == ROUTE_PARAMS)
				return -1;
			raw[n++] = (struct raw){ pattern + 1, want - 2, path, have };
		} else if (want != have || memcmp(pattern, path, want) != 0) {
			return -1;
		}
		pattern += want;
		path += have;
	}
}

static bool method_is(const struct route *route, const char *method)
{
	return strcmp(route->method, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0;
}

static int bad_param(const char *name, struct kvb_error *err)
{
	return kvb_fail(err, KVB_E_INVALID, name,
			"%s must be 1..%u of A-Z a-z 0-9 . _ - and must not begin with . or -", name,
			KVB_MAX_NAME);
}

int kvb_route_param(struct route_param *p, const char *name, const char *value, size_t n,
		    struct kvb_error *err)
{
	snprintf(p->name, sizeof p->name, "%s", name);
	if (n > KVB_MAX_NAME || !kvb_name_valid(value, n))
		return bad_param(p->name, err);
	memcpy(p->value, value, n);
	p->value[n] = '\0';
	return KVB_OK;
}

static int decode_params(const struct raw *raw, int n, struct route_param *params,
			 struct kvb_error *err)
{
	for (int i = 0; i < n; i++) {
		struct route_param *p = &params[i];

		snprintf(p->name, sizeof p->name, "%.*s", (int)raw[i].name_len, raw[i].name);
		if (!kvb_percent_decode(raw[i].value, raw[i].value_len, p->value,
					sizeof p->value) ||
		    !kvb_name_valid(p->value, strlen(p->value)))
			return bad_param(p->name, err);
	}
	return KVB_OK;
}

int kvb_route_find(const char *method, const char *path, const struct route **out,
		   struct route_param params[ROUTE_PARAMS], struct kvb_error *err)
{
	bool path_known = false;

	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		struct raw raw[ROUTE_PARAMS];
		int n = match(kvb_routes[i].pattern, path, raw);

		if (n < 0)
			continue;
		path_known = true;
		if (!method_is(&kvb_routes[i], method))
			continue;
		*out = &kvb_routes[i];
		return decode_params(raw, n, params, err);
	}
	if (path_known)
		return kvb_fail(err, KVB_E_METHOD, NULL, "this path does not have that method");
	return kvb_fail(err, KVB_E_NOT_FOUND, NULL, "no such path; GET / lists them");
}

bool kvb_route_allow(const char *path, char *out, size_t size)
{
	struct raw raw[ROUTE_PARAMS];
	size_t len = 0;

	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		const char *method = kvb_routes[i].method;

		if (match(kvb_routes[i].pattern, path, raw) >= 0 && len + 32 < size)
			len += (size_t)snprintf(out + len, size - len, "%s%s, ", method,
						strcmp(method, "GET") == 0 ? ", HEAD" : "");
	}
	if (len == 0)
		return false;
	snprintf(out + len, size - len, "OPTIONS");
	return true;
}
