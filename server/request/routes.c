/*
 * routes.c - maps a path to a route of an API.
 *
 * The path is split at '/' before any decoding, so that %2F never becomes a separator, and each
 * parameter must be a valid name afterwards (skv_name_valid): no slash, no dot file, no control
 * character gets further than this, but to routes that look themselves (ROUTE_RAW). An
 * instance's id and a tenant may be the name of a model, with a slash (skv_model_name_valid): as
 * %2F always, and as it is where no route takes each of its parts for a segment. Constant data,
 * no state, no locks, any thread.
 */
#include <skv/api.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/ops.h>

/* A path parameter, still encoded. */
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

void skv_percent_encode(const char *s, char out[SKV_ENCODED_MAX])
{
	static const char hex[] = "0123456789ABCDEF";
	size_t k = 0;

	for (size_t i = 0; s[i] && i < SKV_MESSAGE_MAX; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c >= 0x20 && c <= 0x7e && c != '%') {
			out[k++] = (char)c;
		} else {
			out[k++] = '%';
			out[k++] = hex[c >> 4];
			out[k++] = hex[c & 15];
		}
	}
	assert(k <= 3 * SKV_MESSAGE_MAX);
	out[k] = '\0';
}

/* Parameters that are names of models. */
static bool takes_model_name(const char *name, size_t n)
{
	return (n == 2 && memcmp(name, "id", n) == 0) ||
	       (n == 6 && memcmp(name, "tenant", n) == 0) ||
	       (n == 8 && memcmp(name, "instance", n) == 0);
}

static int match_spread(const char *pattern, const char *path, size_t have,
			struct raw raw[ROUTE_PARAMS], int n);

/* Segments must be equal, or the pattern's one is a parameter. With `spread` a model's
 * name takes two segments or more: as few as fit. Returns how many parameters, of which
 * `n` are there already, or -1. */
static int match(const char *pattern, const char *path, bool spread, struct raw raw[ROUTE_PARAMS],
		 int n)
{
	for (;;) {
		size_t want, have;

		assert(n <= ROUTE_PARAMS);

		while (*pattern && *pattern != '{' && *pattern == *path) {
			pattern++;
			path++;
		}
		if (*pattern != '{')
			return *pattern == '\0' && *path == '\0' ? n : -1;
		if (n == ROUTE_PARAMS)
			return -1;
		want = strcspn(pattern, "/");
		have = strcspn(path, "/");
		raw[n] = (struct raw){ pattern + 1, want - 2, path, have };
		if (spread && takes_model_name(raw[n].name, raw[n].name_len))
			return match_spread(pattern + want, path, have, raw, n);
		n++;
		pattern += want;
		path += have;
	}
}

/* raw[n] is a model's name that begins at `path` and has more segments than the first
 * one, of `have` characters. */
static int match_spread(const char *pattern, const char *path, size_t have,
			struct raw raw[ROUTE_PARAMS], int n)
{
	while (path[have] == '/' && have < SKV_MAX_NAME) {
		int found;

		have += 1 + strcspn(path + have + 1, "/");
		found = match(pattern, path + have, false, raw, n + 1);
		if (found >= 0) {
			raw[n].value_len = have;
			return found;
		}
	}
	return -1;
}

static bool method_is(const struct skv_route *route, const char *method)
{
	return strcmp(route->method, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0;
}

/* A route that these transports serve over HTTP; the number of its parameters,
 * or -1 if it is not `path`. */
static int match_route(const struct skv_apis *apis, const struct skv_route *route, const char *path,
		       bool spread, struct raw raw[ROUTE_PARAMS])
{
	int n = route->method && route->planes & apis->planes
			? match(route->pattern, path, spread, raw, 0)
			: -1;

	for (int i = 0; i < n && route->flags & ROUTE_RAW; i++)
		if (raw[i].value_len == 0)
			return -1;
	return n;
}

static bool param_valid(const char *name, const char *value, size_t n)
{
	return takes_model_name(name, strlen(name)) ? skv_model_name_valid(value, n)
						    : skv_name_valid(value, n);
}

static int bad_param(const char *name, struct skv_error *err)
{
	return skv_fail(
		err, SKV_E_INVALID, name,
		"%s must be 1..%u of A-Z a-z 0-9 . _ - : = @ + , and begin with a "
		"letter, digit or _%s",
		name, SKV_MAX_NAME,
		takes_model_name(name, strlen(name))
			? "; parts of that form may have a / between them"
			: "");
}

int skv_route_param(struct route_param *p, const char *name, const char *value, size_t n,
		    struct skv_error *err)
{
	snprintf(p->name, sizeof p->name, "%s", name);
	if (n > SKV_MAX_NAME || !param_valid(p->name, value, n))
		return bad_param(p->name, err);
	memcpy(p->value, value, n);
	p->value[n] = '\0';
	return SKV_OK;
}

static int decode_params(const struct skv_route *route, const struct raw *raw, int n,
			 struct route_param *params, struct skv_error *err)
{
	for (int i = 0; i < n; i++) {
		struct route_param *p = &params[i];

		snprintf(p->name, sizeof p->name, "%.*s", (int)raw[i].name_len, raw[i].name);
		if (!skv_percent_decode(raw[i].value, raw[i].value_len, p->value,
					sizeof p->value) ||
		    (!(route->flags & ROUTE_RAW) &&
		     !param_valid(p->name, p->value, strlen(p->value))))
			return bad_param(p->name, err);
	}
	return SKV_OK;
}

/* The API of a path without a route: the one that claims it, else the one with the longest
 * prefix. */
static const struct skv_api *api_of_path(const struct skv_apis *apis, const char *path)
{
	const struct skv_api *best = apis->v[0];
	size_t length = 0;

	assert(apis->n > 0 && apis->n <= SKV_APIS_MAX);
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

struct found {
	const struct skv_api *api;     /* the API of the path, by any method; NULL: none */
	const struct skv_route *route; /* NULL: none by this method */
	struct raw raw[ROUTE_PARAMS];
	int n;
};

/* The first route that fits. With `spread` several may, and the one with the most fixed words wins:
 * /v1/instances/Qwen/Qwen3-32B/pins means the pins. */
static void find(const struct skv_apis *apis, const char *method, const char *path, bool spread,
		 struct found *out)
{
	size_t least = SIZE_MAX;

	*out = (struct found){ 0 };
	for (size_t a = 0; a < apis->n; a++) {
		for (size_t i = 0; i < apis->v[a]->n_routes; i++) {
			const struct skv_route *route = &apis->v[a]->routes[i];
			struct raw raw[ROUTE_PARAMS];
			int n = match_route(apis, route, path, spread, raw);
			size_t given = 0;

			for (int k = 0; spread && k < n; k++)
				given += raw[k].value_len;
			if (n < 0 || given > least || (given == least && out->route))
				continue;
			if (given < least)
				out->route = NULL;
			least = given;
			out->api = apis->v[a];
			if (!method_is(route, method))
				continue;
			out->route = route;
			out->n = n;
			memcpy(out->raw, raw, sizeof raw);
			if (!spread)
				return;
		}
	}
}

int skv_route_find(const struct skv_apis *apis, const char *method, const char *path,
		   const struct skv_api **api, const struct skv_route **out,
		   struct route_param params[ROUTE_PARAMS], struct skv_error *err)
{
	struct found f;

	find(apis, method, path, false, &f);
	if (!f.api) {
		find(apis, method, path, true, &f);
		/* more likely an unknown path than a model of that name */
		if (!f.route)
			f.api = NULL;
	}
	*api = f.api ? f.api : api_of_path(apis, path);
	if (f.route) {
		*out = f.route;
		return decode_params(f.route, f.raw, f.n, params, err);
	}
	if (f.api)
		return skv_fail(err, SKV_E_METHOD, NULL, "this path does not have that method");
	return skv_fail(err, SKV_E_NOT_FOUND, NULL, "no such path; GET / lists them");
}

int skv_route_find_again(struct skv_route_memo *memo, const struct skv_apis *apis,
			 const char *method, const char *path, const struct skv_api **api,
			 const struct skv_route **out, struct route_param params[ROUTE_PARAMS],
			 struct skv_error *err)
{
	const size_t n_method = strlen(method) + 1, n_path = strlen(path) + 1;
	int rc;

	if (memo->route && strcmp(memo->path, path) == 0 && strcmp(memo->method, method) == 0) {
		*api = memo->api;
		*out = memo->route;
		memcpy(params, memo->params, sizeof memo->params);
		return SKV_OK;
	}
	rc = skv_route_find(apis, method, path, api, out, params, err);
	if (rc != SKV_OK || n_method > sizeof memo->method || n_path > sizeof memo->path)
		return rc;
	memo->api = *api;
	memo->route = *out;
	memcpy(memo->params, params, sizeof memo->params);
	memcpy(memo->method, method, n_method);
	memcpy(memo->path, path, n_path);
	return SKV_OK;
}

int skv_route_find_grpc(const struct skv_apis *apis, const char *path, const struct skv_api **api,
			const struct skv_route **out, struct skv_error *err)
{
	*api = apis->v[0];
	for (size_t a = 0; a < apis->n; a++)
		for (size_t i = 0; i < apis->v[a]->n_routes; i++) {
			const struct skv_route *route = &apis->v[a]->routes[i];

			if (!route->grpc || !(route->planes & apis->planes) ||
			    strcmp(route->grpc, path) != 0)
				continue;
			*api = apis->v[a];
			*out = route;
			return SKV_OK;
		}
	return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "no such method; reflection lists them");
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
	return skv_route_find(apis, "POST", out, &api, &route, params, &ignored) !=
		       SKV_E_NOT_FOUND &&
	       api->slash_redirect;
}

static size_t allowed(const struct skv_apis *apis, const char *path, bool spread, char *out,
		      size_t size)
{
	struct raw raw[ROUTE_PARAMS];
	size_t len = 0;

	for (size_t a = 0; a < apis->n; a++) {
		for (size_t i = 0; i < apis->v[a]->n_routes; i++) {
			const struct skv_route *route = &apis->v[a]->routes[i];

			if (match_route(apis, route, path, spread, raw) >= 0 && len + 32 < size)
				len += (size_t)snprintf(
					out + len, size - len, "%s%s, ", route->method,
					strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
		}
	}
	assert(len < size);
	return len;
}

bool skv_route_allow(const struct skv_apis *apis, const char *path, char *out, size_t size)
{
	size_t len = allowed(apis, path, false, out, size);

	if (len == 0)
		len = allowed(apis, path, true, out, size);
	if (len == 0)
		return false;
	snprintf(out + len, size - len, "OPTIONS");
	return true;
}
