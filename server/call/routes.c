/*
 * routes.c - which route of which API a path means.
 *
 * The path is split at '/' before any decoding, so that %2F never becomes a separator, and each
 * parameter must be a valid name afterwards (skv_name_valid): no slash, no dot file, no control
 * character gets further than this, but to routes that look themselves (ROUTE_RAW). Constant data,
 * no state, no locks, any thread.
 */
#include <skv/api.h>

#include <stdio.h>
#include <string.h>

#include <skv/ops.h>

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

bool skv_percent_decode(const char *s, size_t n, char *out, size_t size)
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

static bool method_is(const struct skv_route *route, const char *method)
{
	return strcmp(route->method, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0;
}

/* A route that these fronts serve over HTTP; the number of its parameters, or -1 if it is not `path`. */
static int match_route(const struct skv_apis *apis, const struct skv_route *route, const char *path,
		       struct raw raw[ROUTE_PARAMS])
{
	int n = route->method && route->planes & apis->planes ? match(route->pattern, path, raw) : -1;

	for (int i = 0; i < n && route->flags & ROUTE_RAW; i++)
		if (raw[i].value_len == 0)
			return -1;
	return n;
}

static int bad_param(const char *name, struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, name,
			"%s must be 1..%u of A-Z a-z 0-9 . _ - : = @ + , and begin with a letter, digit or _", name,
			SKV_MAX_NAME);
}

int skv_route_param(struct route_param *p, const char *name, const char *value, size_t n,
		    struct skv_error *err)
{
	snprintf(p->name, sizeof p->name, "%s", name);
	if (n > SKV_MAX_NAME || !skv_name_valid(value, n))
		return bad_param(p->name, err);
	memcpy(p->value, value, n);
	p->value[n] = '\0';
	return SKV_OK;
}

static int decode_params(const struct skv_route *route, const struct raw *raw, int n, struct route_param *params,
			 struct skv_error *err)
{
	for (int i = 0; i < n; i++) {
		struct route_param *p = &params[i];

		snprintf(p->name, sizeof p->name, "%.*s", (int)raw[i].name_len, raw[i].name);
		if (!skv_percent_decode(raw[i].value, raw[i].value_len, p->value,
					sizeof p->value) ||
		    (!(route->flags & ROUTE_RAW) && !skv_name_valid(p->value, strlen(p->value))))
			return bad_param(p->name, err);
	}
	return SKV_OK;
}

/* Whose a path is that nobody has: the one that says so, else the longest prefix tells. */
static const struct skv_api *api_of_path(const struct skv_apis *apis, const char *path)
{
	const struct skv_api *best = apis->v[0];
	size_t length = 0;

	for (size_t i = 0; i < apis->n; i++) {
		size_t n = strlen(apis->v[i]->prefix);

		if (apis->v[i]->owns && apis->v[i]->owns(path))
			return apis->v[i];
		if (n > length && strncmp(path, apis->v[i]->prefix, n) == 0) {
			best = apis->v[i];
			length = n;
		}
	}
	return best;
}

int skv_route_find(const struct skv_apis *apis, const char *method, const char *path, const struct skv_api **api,
		   const struct skv_route **out, struct route_param params[ROUTE_PARAMS], struct skv_error *err)
{
	const struct skv_api *known = NULL;

	for (size_t a = 0; a < apis->n; a++) {
		for (size_t i = 0; i < apis->v[a]->n_routes; i++) {
			const struct skv_route *route = &apis->v[a]->routes[i];
			struct raw raw[ROUTE_PARAMS];
			int n = match_route(apis, route, path, raw);

			if (n < 0)
				continue;
			known = apis->v[a];
			if (!method_is(route, method))
				continue;
			*api = known;
			*out = route;
			return decode_params(route, raw, n, params, err);
		}
	}
	*api = known ? known : api_of_path(apis, path);
	if (known)
		return skv_fail(err, SKV_E_METHOD, NULL, "this path does not have that method");
	return skv_fail(err, SKV_E_NOT_FOUND, NULL, "no such path; GET / lists them");
}

bool skv_route_without_slash(const struct skv_apis *apis, const char *path, char *out, size_t size)
{
	const size_t n = strlen(path);
	const struct skv_api *api;
	const struct skv_route *route;
	struct route_param params[ROUTE_PARAMS];
	struct skv_error ignored;

	if (n < 2 || n > size || path[n - 1] != '/' || path[1] == '/' || strchr(path, '\\'))
		return false;
	memcpy(out, path, n - 1);
	out[n - 1] = '\0';
	return skv_route_find(apis, "POST", out, &api, &route, params, &ignored) != SKV_E_NOT_FOUND &&
	       api->slash_redirect;
}

bool skv_route_allow(const struct skv_apis *apis, const char *path, char *out, size_t size)
{
	struct raw raw[ROUTE_PARAMS];
	size_t len = 0;

	for (size_t a = 0; a < apis->n; a++) {
		for (size_t i = 0; i < apis->v[a]->n_routes; i++) {
			const struct skv_route *route = &apis->v[a]->routes[i];

			if (match_route(apis, route, path, raw) >= 0 && len + 32 < size)
				len += (size_t)snprintf(out + len, size - len, "%s%s, ", route->method,
							strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
		}
	}
	if (len == 0)
		return false;
	snprintf(out + len, size - len, "OPTIONS");
	return true;
}
