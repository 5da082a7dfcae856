/*
 * members.h - the managers of one store that are there now.
 *
 * Each that others may share the store with renews a document (skv/nodes.h) and looks at those of
 * the others. One whose document stood still for its lease, on this manager's own clock, is not
 * counted until it moves again. That is advice, for who should own what and for people: what a
 * manager may do is said by its lease of a partition alone.
 */
#ifndef SKV_MEMBERS_H
#define SKV_MEMBERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/lock.h>
#include <skv/status.h>

struct skv_core;
struct skv_doc;
struct skv_service;

/* Of documents: "<lease in ms> up" or "<lease in ms> drained"; what follows is for later versions.
 * Their version is the counter of renewals. */
#define SKV_NODE_MEMBER "member"

/* In the service. Zeros: not started. */
struct skv_members {
	struct skv_core *core;
	uint32_t lease_ms;
	pthread_t thread;
	bool started;
	bool told; /* of the thread: that the store cannot be reached */
	struct skv_mutex lock; /* of what follows */
	struct skv_cond wake;
	bool stopping;
	struct member_sighting *seen; /* as of the last look */
	uint32_t n_seen;
	uint64_t looked_ms; /* when that was */
};

struct skv_member {
	const char *name; /* skv_owner_name */
	const char *peer; /* where managers reach it */
	const char *url;  /* for clients; "" = not published */
	bool draining;    /* it is, or was when it told last */
};

/* Renews this manager's document three times per lease, from now on. SKV_E_NOMEM. */
int skv_members_start(struct skv_members *m, struct skv_core *core, uint32_t lease_ms,
		      struct skv_error *err);
/* Removes the document. Blocks as long as a call of the store does. Nothing if it was not started,
 * or is stopped. */
void skv_members_stop(struct skv_members *m);
/* Those that are there, this one too, in `a`: all that have published where managers reach them,
 * but for those whose documents stand still, or whose process is provably gone. One without
 * such a document, of an earlier version, counts. Blocks. Any thread. */
int skv_members_list(struct skv_service *s, struct skv_arena *a, struct skv_member **out,
		     uint32_t *n, struct skv_error *err);

/* A step of the thread, for tests: looks at the documents, at `now_ms` of a clock that never goes
 * back. */
int skv_members_look(struct skv_members *m, const struct skv_doc *docs, uint32_t n,
		     uint64_t now_ms);
/* Did its document stand still for its lease when it was looked at last? */
bool skv_members_is_silent(struct skv_members *m, const char *name);

#endif
