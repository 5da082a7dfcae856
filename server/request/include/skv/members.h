/*
 * members.h - the present managers of a store.
 *
 * Each manager that may share the store renews a document (skv/nodes.h) and reads the documents of
 * the others. A manager whose document stood still for its lease, on this manager's own clock, is
 * not counted until the document moves again. The list is advice, for the assignment of partitions
 * and for people: only the lease of a partition permits a manager to act.
 */
#ifndef SKV_MEMBERS_H
#define SKV_MEMBERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/core.h>
#include <skv/leader.h>
#include <skv/lock.h>
#include <skv/status.h>

struct skv_cluster;
struct skv_doc;
struct skv_service;

/* Of documents: "<lease in ms> up <partitions> <peer>", or "drained" in place of "up"; further
 * words are for later versions. The partitions, as bits in hexadecimal, are other managers'
 * partitions that this manager follows and could own at once; peer is its address for managers. The
 * version is the counter of renewals. */
#define SKV_NODE_MEMBER "member"

/* An administrator may move a partition to a member permanently: document "home/<number>" of the
 * store, which holds the member's peer address, whichever process has it. */
#define SKV_HOME "home/"

/* peer[i]: of the member that partition i was moved to; "" = to none. */
struct skv_homes {
	char peer[SKV_MAX_PARTITIONS][SKV_URL_MAX];
};

/* In the service. Zeros: not started. */
struct skv_members {
	struct skv_cluster *cluster;
	const char *peer; /* where managers reach this one; the service's */
	uint32_t lease_ms;
	pthread_t thread;
	bool started;
	bool told; /* of the thread: that the store cannot be reached */
	struct skv_mutex lock; /* protects the following members */
	struct skv_cond wake;
	bool stopping;
	bool leaving; /* the published document says that this manager is drained */
	struct member_sighting *seen; /* as of the last look */
	uint32_t n_seen;
	struct skv_homes homes; /* the same */
	uint64_t looked_ms; /* when that was */
};

struct skv_member {
	const char *name; /* skv_owner_name */
	const char *peer; /* where managers reach it */
	const char *url;  /* for clients; "" = not published */
	bool draining;    /* the manager is draining, or was when it last published */
};

/* Renews this manager's document three times per lease, from now on; `peer` outlives it.
 * SKV_E_NOMEM. */
int skv_members_start(struct skv_members *m, struct skv_cluster *cluster, const char *peer,
		      uint32_t lease_ms, struct skv_error *err);
/* Removes the document. Blocks as long as a call of the store does. Nothing if it was not started,
 * or is stopped. */
void skv_members_stop(struct skv_members *m);
/* Lists the present members, including this one, in `a`: all that have published an address for
 * managers, except those whose documents stand still, or whose process is provably gone. A member
 * of an earlier version, without such a document, counts. Blocks. Any thread. */
int skv_members_list(struct skv_service *s, struct skv_arena *a, struct skv_member **out,
		     uint32_t *n, struct skv_error *err);

/* The published state of a present member, as of the last look. */
struct skv_member_seen {
	char id[SKV_OWNER_NAME]; /* of the process: skv_node_process */
	uint64_t since_ms; /* when its newest document was seen first, skv_now_ms */
	uint32_t takes;    /* partitions */
	bool draining;
	char peer[SKV_URL_MAX]; /* "" = of an earlier version */
};
/* Lists the members whose documents do not stand still and whose process is not provably gone;
 * `*out` is the caller's, to be freed (skv_free). Never blocks on the store; any thread.
 * SKV_E_NOMEM, then *out is NULL. */
int skv_members_seen(struct skv_members *m, struct skv_member_seen **out, uint32_t *n);
/* Which of v[0..n) partition `number` was moved to, as of the last look; UINT32_MAX: none, or none
 * that is there and not drained, or several have that address. */
uint32_t skv_members_home(struct skv_members *m, uint32_t number, const struct skv_member_seen *v,
			  uint32_t n);
/* Of the store, now. Blocks. */
int skv_homes_read(struct skv_cluster *cluster, struct skv_homes *out, struct skv_error *err);
/* `peer` "": none from now on. Of the owner of partition 0. Blocks. */
int skv_home_put(struct skv_cluster *cluster, uint32_t number, const char *peer,
		 struct skv_error *err);
/* This manager is about to end: its document says so from now on, as if it were drained. */
void skv_members_leave(struct skv_members *m);

/* A step of the thread, for tests: looks at the documents, at `now_ms` of a clock that never goes
 * back. */
int skv_members_look(struct skv_members *m, const struct skv_doc *docs, uint32_t n,
		     const struct skv_homes *homes, uint64_t now_ms);

#endif
