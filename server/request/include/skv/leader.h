/*
 * leader.h - where the manager is that owns the partition, when it is another one: for redirects.
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

struct leader {
	struct skv_mutex lock; /* of all below; the service makes it */
	char owner[SKV_OWNER_NAME]; /* whom the rest is about; "" = nobody yet */
	char url[SKV_URL_MAX];      /* "" = not found yet */
	uint64_t since_ms;          /* when it was first seen */
	uint64_t looked_ms;
	bool looking;
	struct job job;
};

/* URL of the HTTP port ("http://10.0.0.7:7333", no slash behind it) of the manager that owns the partition, if that is
 * another one. SKV_E_NOT_READY: it is being looked up, or its place is this one's, which may be about to change hands: ask again in
 * a moment. SKV_E_NOT_FOUND: nobody else owns it, or the owner tells no address, or none but this one's (one address before
 * all managers): nobody can be sent there. `out` holds SKV_URL_MAX bytes. Any thread; never blocks: a worker reads the store, once
 * for each owner. */
int skv_service_leader_url(struct skv_service *s, char *out);

#endif
