/*
 * role.h - a role without a core: one API on one HTTP port, until SIGTERM or SIGINT.
 */
#ifndef SKV_ROLE_H
#define SKV_ROLE_H

#include <stddef.h>

#include "main.h"

struct skv_api;
struct skv_httpd;
struct skv_service;

struct skv_role {
	/* The API, which `destroy` ends; SKV_E_INVALID names the parameter. */
	int (*create)(const struct skv_params *p, struct skv_api **out, struct skv_error *err);
	void (*destroy)(struct skv_api *api); /* NULL is allowed */
	/* Binds the role's own ports beside HTTP, before anything is served. NULL: none. */
	int (*bind)(struct skv_api *api, struct skv_service *s, struct skv_error *err);
	int (*start)(struct skv_api *api, struct skv_error *err);
	/* Logs the APIs served at `url`. */
	void (*announce)(const struct skv_params *p, const struct skv_api *api, const char *url);
	size_t body_max;   /* bytes of a request's body, at most */
	const char *hangs; /* logged when calls do not end: where they hang */
};

/* Serves until SIGTERM or SIGINT; returns the exit status. Calls that do not end in time are
 * abandoned at exit. */
int skv_role_serve(const struct skv_role *role, const struct skv_params *p);

#endif
