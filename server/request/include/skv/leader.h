/*
 * leader.h - addresses of another manager that owns a partition: for redirects, and for forwarded
 * calls (skv/forward.h).
 */
#ifndef SKV_LEADER_H
#define SKV_LEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/core.h>
#include <skv/lock.h>
#include <skv/workers.h>

struct skv_service;

#define SKV_URL_MAX 300 /* bytes, NUL included */

#define SKV_PEER_TOKEN 40

struct leader_of {
	char owner[SKV_OWNER_NAME]; /* the owner that the rest describes; "" = none yet */
	char url[SKV_URL_MAX];      /* for clients; "" = not found yet */
	char peer[SKV_URL_MAX];     /* for managers; the same */
	char token[SKV_PEER_TOKEN]; /* token that managers show; "" = not looked for, or none */
	uint64_t since_ms;          /* when it was first seen */
	uint64_t looked_ms;
	bool looking;
	struct job job;
	struct skv_service *service; /* set with the service, permanently */
};

struct leader {
	struct skv_mutex lock; /* of all below; the service makes it */
	struct leader_of of[SKV_MAX_PARTITIONS];
};

/* URL of the HTTP port ("http://10.0.0.7:7333", without a trailing slash) of the manager that
 * owns a partition, if that is another one. SKV_E_NOT_READY: it is being looked up, or the
 * URL is this manager's own, which may be about to change: retry soon. SKV_E_NOT_FOUND: no
 * other owner, or it publishes no URL, or just ours (one address for all managers): there is
 * nowhere to redirect to. `out` has SKV_URL_MAX bytes. Any thread; never blocks: a worker reads
 * the store, once per owner. */
int skv_service_owner_url(struct skv_service *s, uint32_t partition, char *out);
/* The same for a manager that sends a call on: what it publishes for managers, which it does
 * whether clients may be redirected or not. `owner` is its name then. */
int skv_service_peer(struct skv_service *s, uint32_t partition, char out[SKV_URL_MAX],
		     char owner[SKV_OWNER_NAME]);
/* The same, with the token that managers show there ("" if it has none), for a thread that may
 * wait: it reads the store itself, so no worker is needed. */
int skv_service_peer_wait(struct skv_service *s, uint32_t partition, char out[SKV_URL_MAX],
			  char token[SKV_PEER_TOKEN], char owner[SKV_OWNER_NAME]);

#endif
