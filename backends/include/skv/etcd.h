/*
 * etcd.h - a client of etcd (3.4 or later): keys with revisions, transactions, watches.
 *
 * One client has one connection at a time (gRPC over HTTP/2, with TLS if wanted), which all threads
 * share, and a thread that serves it. The client connects to the first endpoint that answers, and
 * fails over to the next one when a connection breaks, times out, or its server has lost its
 * leader.
 *
 * Results of every call:
 *   SKV_OK                 etcd has executed the call; the answer is complete.
 *   SKV_E_STORE_IO         nothing was changed: no server could be asked in time, or etcd certainly
 *                          did not execute the call. For reads also: no answer in time.
 *   SKV_E_UNKNOWN_OUTCOME  a write was sent and its answer did not come: it may have been executed,
 *                          and may yet be. Read back before relying on either.
 *   SKV_E_STORE_FULL       etcd's database has reached its quota. The write that reaches it may
 *                          have been executed, all later ones are not: read back.
 *   SKV_E_TOO_LARGE        nothing was changed: over a limit of etcd (1.5 MiB a request, 128
 *                          operations a transaction, unless configured), or of this client.
 *   SKV_E_FORBIDDEN        nothing was changed: user, password or role do not allow it.
 *   SKV_E_INVALID          nothing was changed: etcd does not accept the call.
 *   SKV_E_CONFLICT         a read or watch from a revision that was compacted: list again.
 *   SKV_E_CORRUPT          the cluster went back in time: a linearizable answer was older than an
 *                          earlier one of this client, so acknowledged writes are lost. Every
 *                          later call of this client says the same: open another one.
 *   SKV_E_FOREIGN          the endpoint belongs to another cluster than the first that answered.
 *   SKV_E_TOO_MANY         SKV_ETCD_CALLS are in flight already.
 *   SKV_E_NOMEM
 * Messages name the remedy. Reads are repeated on other endpoints until the deadline; writes only
 * if they certainly were not executed. No call lasts longer than its deadline, whatever the servers
 * do.
 *
 * Memory is bounded: requests are encoded by their callers, at most SKV_ETCD_CALLS of them; an
 * answer has at most SKV_ETCD_ANSWER_MAX bytes; a watch stops reading at SKV_ETCD_WATCH_BYTES.
 *
 * Threads: any, concurrently, unless a function says otherwise. No lock of the caller may be held
 * during a call.
 */
#ifndef SKV_ETCD_H
#define SKV_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/net.h>
#include <skv/status.h>

#define SKV_ETCD_PORT 2379u
#define SKV_ETCD_ENDPOINTS 16u
#define SKV_ETCD_SECRET_MAX 255u
#define SKV_ETCD_CALLS 1024u
#define SKV_ETCD_ANSWER_MAX ((size_t)64 << 20)
#define SKV_ETCD_WATCH_BYTES ((size_t)1 << 20) /* beyond it the server has to wait */
#define SKV_ETCD_DEPTH 4u                      /* transactions within transactions */

struct skv_etcd_options {
	const char *endpoints;     /* "host:port,host:port", at most SKV_ETCD_ENDPOINTS */
	struct skv_net_tls tls;    /* TLS 1.2 or 1.3; a client's certificate if files are named */
	const char *user;          /* NULL: none. With a user the client logs in by itself */
	const char *password;      /* NULL: none */
	uint32_t timeout_ms;       /* deadline of a call, from its beginning; 0: 3000 */
	/* Silence while calls wait, after which the server is pinged; as long again, and the
	 * connection is given up. 0: 1000. */
	uint32_t silent_ms;
	/* The same while only watches wait; at least 5000, because etcd counts more frequent pings
	 * as abuse. 0: 10000. */
	uint32_t watch_silent_ms;
};

struct skv_etcd;

/* Starts a client; texts are copied. It connects with the first call, so a cluster that is not up
 * is no error here. SKV_E_INVALID: `err` names the option. */
int skv_etcd_open(const struct skv_etcd_options *o, struct skv_etcd **out, struct skv_error *err);
/* No call may be in flight, and no watch open. NULL is allowed. */
void skv_etcd_close(struct skv_etcd *c);

/* ---- calls ----------------------------------------------------------------------------------- */

/* Borrowed bytes, until the call they belong to returns. */
struct skv_etcd_bytes {
	const void *p;
	size_t n;
};
/* Bytes of a C string. */
struct skv_etcd_bytes skv_etcd_text(const char *s);

enum skv_etcd_kind { SKV_ETCD_RANGE, SKV_ETCD_PUT, SKV_ETCD_DELETE, SKV_ETCD_TXN };

struct skv_etcd_txn;

/* An operation: a call of its own, or a part of a transaction. */
struct skv_etcd_op {
	enum skv_etcd_kind kind;
	struct skv_etcd_bytes key;
	/* RANGE, DELETE: [key, end). Empty: the key alone. See skv_etcd_prefix_end. */
	struct skv_etcd_bytes end;
	struct skv_etcd_bytes value; /* PUT */
	uint64_t limit;              /* RANGE: keys at most; 0: all */
	uint64_t revision;           /* RANGE: as of that revision; 0: now */
	/* RANGE: answered by the endpoint alone, perhaps as of some time ago. False:
	 * linearizable. */
	bool serializable;
	bool keys_only;              /* RANGE: without values */
	bool count_only;             /* RANGE: without keys */
	const struct skv_etcd_txn *txn; /* TXN */
};

enum skv_etcd_target { SKV_ETCD_VERSION, SKV_ETCD_CREATE, SKV_ETCD_MOD, SKV_ETCD_VALUE };
enum skv_etcd_relation { SKV_ETCD_EQUAL, SKV_ETCD_GREATER, SKV_ETCD_LESS, SKV_ETCD_NOT_EQUAL };

/* `target` of the key (of every key in [key, end) unless `end` is empty) is EQUAL to, GREATER
 * than `number` or, of SKV_ETCD_VALUE, `value`. The numbers of a key that does not exist are 0;
 * its value compares as false. */
struct skv_etcd_compare {
	enum skv_etcd_target target;
	enum skv_etcd_relation relation;
	struct skv_etcd_bytes key, end;
	uint64_t number;
	struct skv_etcd_bytes value;
};

/* If all compares are true, `then` is executed, else `otherwise`: atomically. A key is written once
 * at most, transactions within it included. */
struct skv_etcd_txn {
	const struct skv_etcd_compare *compare;
	size_t n_compare;
	const struct skv_etcd_op *then;
	size_t n_then;
	const struct skv_etcd_op *otherwise;
	size_t n_otherwise;
};

struct skv_etcd_kv {
	struct skv_etcd_bytes key, value; /* point into the answer */
	uint64_t create_revision, mod_revision;
	uint64_t version; /* writes since it was created */
};

/* The result of one operation; borrows from its answer. */
struct skv_etcd_result {
	enum skv_etcd_kind kind;
	uint64_t count;    /* RANGE: keys in the range, even beyond the limit; DELETE: deleted */
	bool more;         /* RANGE: the limit omitted some keys */
	bool succeeded;    /* TXN: `then` was executed */
	struct skv_rd at;  /* rest that the functions below have not read yet */
};

/* Zero-initialise; usable again and again, one thread at a time; release with
 * skv_etcd_answer_free. */
struct skv_etcd_answer {
	struct skv_buf bytes;
	uint64_t revision; /* of the cluster, when the call was executed */
	struct skv_etcd_result result;
};
void skv_etcd_answer_free(struct skv_etcd_answer *a);

/* Runs one operation. `a` may be NULL; it is valid only after SKV_OK. */
int skv_etcd_run(struct skv_etcd *c, const struct skv_etcd_op *op, struct skv_etcd_answer *a,
		 struct skv_error *err);
/* The same with a deadline of its own, in ms. */
int skv_etcd_run_within(struct skv_etcd *c, uint32_t timeout_ms, const struct skv_etcd_op *op,
			struct skv_etcd_answer *a, struct skv_error *err);
/* The next key of a RANGE in order of keys; false: no more. */
bool skv_etcd_next_kv(struct skv_etcd_result *r, struct skv_etcd_kv *out);
/* The result of the next operation that a TXN executed; false: no more. */
bool skv_etcd_next_result(struct skv_etcd_result *r, struct skv_etcd_result *out);

/* The end of the range of all keys that begin with `prefix`, into `out`, which has prefix.n + 1
 * bytes. */
struct skv_etcd_bytes skv_etcd_prefix_end(struct skv_etcd_bytes prefix, uint8_t *out);

/* ---- compaction ------------------------------------------------------------------------------ */

/* Forgets what keys were before `revision`. Space is reused after it, and given back to the file
 * system by etcd's defragmentation. SKV_E_CONFLICT: it was compacted already. */
int skv_etcd_compact(struct skv_etcd *c, uint64_t revision, struct skv_error *err);

/* ---- watches --------------------------------------------------------------------------------- */

/* Each event of a range of keys, once, in order of revisions, and in order of the transaction
 * within one. A watch lives through broken connections: it is resumed on another endpoint behind
 * the last event that arrived. */
struct skv_etcd_watch;

struct skv_etcd_event {
	bool deleted;          /* kv has the key and the revision of its deletion only */
	struct skv_etcd_kv kv; /* borrowed until the next call on this watch */
};

/* Watches [key, end), or the key alone if `end` is empty, from revision `from` on; 0: from now on,
 * whenever that is. Usually: list, then watch from the list's revision + 1. Returns at once. */
int skv_etcd_watch_open(struct skv_etcd *c, struct skv_etcd_bytes key, struct skv_etcd_bytes end,
			uint64_t from, struct skv_etcd_watch **out, struct skv_error *err);
/* Returns the next event, waiting at most `timeout_ms`; one thread at a time. SKV_E_TIMEOUT: no
 * event arrived. SKV_E_CONFLICT: etcd has compacted the following events: list again, and open a
 * new watch. SKV_E_FORBIDDEN: as above. After these the watch has ended. */
int skv_etcd_watch_next(struct skv_etcd_watch *w, uint32_t timeout_ms, struct skv_etcd_event *e,
			struct skv_error *err);
void skv_etcd_watch_close(struct skv_etcd_watch *w); /* NULL is allowed */

#endif
