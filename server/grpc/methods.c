/*
 * methods.c - maps paths to methods: operations of the APIs, and the transport's own.
 *
 * Constant after init, no locks.
 */
#include "internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

static int by_path(const void *a, const void *b)
{
	const struct grpc_method *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void add_api(struct skv_grpc *g, const struct skv_api *api)
{
	for (size_t i = 0; i < api->n_routes; i++)
		if (api->routes[i].grpc && api->routes[i].planes & g->o.apis.planes)
			g->methods[g->n_methods++] =
				(struct grpc_method){ .path = api->routes[i].grpc, .api = api,
						      .route = &api->routes[i] };
}

int skv_grpc_methods_init(struct skv_grpc *g, struct skv_error *err)
{
	const struct skv_apis *apis = &g->o.apis;
	size_t n = 3;

	for (size_t a = 0; a < apis->n; a++)
		n += apis->v[a]->n_routes;
	g->methods = skv_calloc(n, sizeof *g->methods);
	if (!g->methods)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (size_t a = 0; a < apis->n; a++)
		add_api(g, apis->v[a]);
	g->methods[g->n_methods++] = skv_grpc_health_methods[0];
	g->methods[g->n_methods++] = skv_grpc_health_methods[1];
	g->methods[g->n_methods++] = skv_grpc_reflect_method;
	assert(g->n_methods <= n);
	qsort(g->methods, g->n_methods, sizeof *g->methods, by_path);
	return SKV_OK;
}

const struct grpc_method *skv_grpc_method_find(const struct skv_grpc *g, const char *path)
{
	const struct grpc_method wanted = { .path = path };

	return path ? bsearch(&wanted, g->methods, g->n_methods, sizeof wanted, by_path) : NULL;
}
