/*
 * api.c - the fs-master's API for the transports: routes, bodies, failures, its root.
 *
 * Owns the path of the root, which is opened anew for each call, so that the current mount counts.
 * No locks.
 */
#include "fs_master.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/v1_codec.h>
#include <skv/v1_json.h>

static const struct skv_route routes[] = {
#define FS_ROUTE(name, method, pattern, role, flags)                              \
	{ #name, #method, pattern, ROLE_##role, flags, SKV_PLANE_ALL, NULL, NULL, \
	  fs_op_##name##_run, fs_op_##name##_write },
	FS_OPS(FS_ROUTE)
#undef FS_ROUTE
#define VERB_ROUTE(verb, text)                                                        \
	{ text, "POST", SKV_FS_PREFIX "{dir}/" text, ROLE_ADMIN, ROUTE_BLOCKS | ROUTE_BODY, \
	  SKV_PLANE_ALL, NULL, &(const enum skv_fs_verb){ SKV_FS_##verb }, fs_verb_run,      \
	  fs_verb_write },
	SKV_FS_VERBS(VERB_ROUTE)
#undef VERB_ROUTE
};

int fs_open_root(const struct skv_request *c, int *fd, struct skv_error *err)
{
	const char *root = fs_master_of(c)->root;
	char text[128];

	assert(c->route->flags & ROUTE_BLOCKS); /* on a worker: what is mounted there may hang */
	*fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0)
		return SKV_OK;
	return skv_fail(
		err, SKV_E_UNAVAILABLE, "root",
		"the root of this fs-master cannot be opened (%s): is the file system "
		"mounted at %.160s ?",
		strerror_r(errno, text, sizeof text), root);
}

static int head(struct skv_request *c, const struct skv_head *h)
{
	c->type = skv_v1_json.content_type;
	if (!c->route || !(c->route->flags & ROUTE_BODY) ||
	    skv_v1_codec_of_type(h->content_type) == &skv_v1_json)
		return SKV_OK;
	c->http = 415;
	return skv_fail(&c->err, SKV_E_UNSUPPORTED, "Content-Type", "a body is application/json");
}

static unsigned fail(struct skv_request *c)
{
	c->type = skv_v1_json.content_type;
	skv_v1_write_error(&c->out, &c->err, c->id);
	if (c->out.failed)
		c->fixed = skv_v1_json.no_memory;
	return c->http ? c->http : (unsigned)skv_status_http(c->status);
}

int skv_fs_master_create(const char *root, struct skv_api **out, struct skv_error *err)
{
	struct fs_master *m;

	if (root[0] != '/')
		return skv_fail(
			err, SKV_E_INVALID, "root",
			"an fs-master needs the directory whose subdirectories it looks after: "
			"--root /absolute/path");
	m = skv_calloc(1, sizeof *m);
	if (m)
		m->root = skv_strdup(root);
	if (!m || !m->root) {
		skv_free(m);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	m->api = (struct skv_api){ .name = "fs", .prefix = "/", .routes = routes,
				   .n_routes = sizeof routes / sizeof routes[0],
				   .state_size = sizeof(struct fs_request), .ctx = m, .head = head,
				   .fail = fail };
	*out = &m->api;
	return SKV_OK;
}

void skv_fs_master_destroy(struct skv_api *api)
{
	struct fs_master *m = api ? api->ctx : NULL;

	if (!m)
		return;
	skv_free(m->root);
	skv_free(m);
}
