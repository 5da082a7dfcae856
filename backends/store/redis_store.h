/*
 * redis_store.h - inside of the store on Redis (7.0 on) or Valkey (8 on): standalone with replicas, or Cluster.
 *
 * Keys. Each partition has one hash tag, so that a script sees all of it; the registry has one of its own:
 *   {PREFIX.N}:owner    hash: owner, fence, nonce, beats, ttl, boot, expires, again
 *   {PREFIX.N}:head     hash: last, chain, total; base, base_chain, base_total, checkpoint, slices; building, ids; *_op
 *   {PREFIX.N}:journal  stream, id "SEQ-1": f (fence), c (chain), t (total), b (bytes)
 *   {PREFIX.N}:cID      hash: slice number -> "checksum bytes chunks"; {PREFIX.N}:cID.NUMBER  hash: chunk -> bytes
 *   {PREFIX.N}:garbage  set of checkpoint ids; {PREFIX.N}:loads  sorted set: loads that run, by the time they are forgotten
 *   {PREFIX.registry}:values, :versions ("VERSION OP"), :keys (sorted set), :meta (format, changes, fPARTITION "FENCE NONCE")
 *
 * A *fence* is a number and a nonce: a primary that lost the newest acquire can give the same number again, never the same
 * nonce. Each acquire writes it beside the registry, too, so that registry writes are checked where they happen.
 *
 * Every write is a script that may be sent again: it carries an operation number (op, nonce) and answers a repetition as it
 * did the first time. So a connection that breaks leaves no unknown outcome as long as a primary can be found in time.
 *
 * *Acknowledged* is what every electable replica has, at least `replicas` of them (redis_acks.c).
 *
 * The chain of a record is the XXH3-128 of the one before, fence, seq and bytes. A writer tells which chain its record
 * follows, so nobody appends to a history that is not its own, and a load verifies all of it.
 */
#ifndef SKV_STORE_REDIS_STORE_H
#define SKV_STORE_REDIS_STORE_H

#include <hiredis/hiredis.h>

#include <skv/hash.h>
#include <skv/lock.h>

#include "internal.h"

#define REDIS_FORMAT "slabkv 1"
#define REDIS_NODES 64u       /* addresses that are remembered */
#define REDIS_HOST_MAX 255u
#define REDIS_PREFIX_MAX 64u
#define REDIS_SECRET_MAX 255u /* of a user name or password */
#define REDIS_REGISTRY UINT32_MAX /* in place of a partition's number */
#define REDIS_OP 16u          /* hex digits of an operation number */
#define REDIS_CHUNK_BYTES ((size_t)256 << 10)

struct redis_node {
	char host[REDIS_HOST_MAX + 1];
	uint16_t port;
};

/* redis://[user:password@]host[:port][,host[:port]...][/prefix][?replicas=N&timeout_ms=N] */
struct redis_url {
	struct redis_node node[REDIS_NODES];
	uint32_t n;
	char user[REDIS_SECRET_MAX + 1];
	char password[REDIS_SECRET_MAX + 1];
	char prefix[REDIS_PREFIX_MAX + 1]; /* "slabkv" */
	uint32_t replicas;   /* at least so many acknowledge; 1. 0: the primary alone may */
	uint32_t timeout_ms; /* a call looks for a primary and its replicas so long; 3000 */
};
int redis_url_parse(const char *text, struct redis_url *out, struct skv_error *err);

#include "redis_scripts.h"
enum redis_script {
#define REDIS_SCRIPT(name, text) RUN_##name,
	REDIS_SCRIPTS
#undef REDIS_SCRIPT
	RUN_N
};

enum redis_use { REDIS_OWNER, REDIS_JOURNAL, REDIS_BULK };

/* One connection, to the primary that has the keys of one hash tag. Appends, ownership and bulk have each their own, so none
 * waits for another. */
struct redis_link {
	struct skv_mutex lock; /* held across a call: that is what it is for */
	struct redis_store *store;
	struct redis_link *next;
	uint32_t tag; /* partition, or REDIS_REGISTRY */
	enum redis_use use;
	redisContext *c; /* NULL: none */
	struct redis_node at;
	struct redis_node moved; /* where a node said that the keys are; port 0: none did */
	uint32_t tries;          /* in a row that found no primary: which node is next */
	/* Of the chain, on the JOURNAL link of the tag. */
	uint64_t chain_seq; /* the record that `chain` is of; UINT64_MAX = not known */
	char chain[SKV_KEY_HEX + 1];
	bool behind; /* something was appended that nobody waited for */
};

/* What this handle knows of a fence. */
struct redis_fence {
	struct redis_fence *next;
	uint32_t partition;
	uint64_t number;
	char nonce[REDIS_OP + 1];
};

/* Somebody's lease, as it was first seen. */
struct redis_sighting {
	struct redis_sighting *next;
	uint32_t partition;
	uint64_t fence, beats;
	char nonce[REDIS_OP + 1];
	uint64_t seen_ms;
};

struct redis_store {
	struct redis_url url;
	const struct skv_clock *clock;
	uint64_t reserve_bytes;
	char boot_id[37];
	_Atomic bool cluster;

	struct skv_mutex lock; /* the rest */
	char sha[RUN_N][41]; /* of scripts; "" = not known yet */
	struct redis_link *links;
	struct redis_fence *fences;
	struct redis_sighting *sightings;
	struct redis_node node[REDIS_NODES]; /* of the URL, and learned */
	uint32_t n_node;
	/* redis_acks.c: replicas that voting masters list, and of which primary. */
	struct redis_replica {
		struct redis_node at, primary;
	} replica[REDIS_NODES];
	uint32_t n_replica;
	uint64_t replicas_us; /* when they were looked at; 0 = never */
	uint64_t memory_us;   /* the same of the memory, and what was found */
	uint64_t memory_used, memory_max;
};

/* ---- redis_link.c ------------------------------------------------------------------------------ */

/* Locked; NULL: out of memory. */
struct redis_link *redis_link_take(struct redis_store *s, uint32_t tag, enum redis_use use);
void redis_link_give(struct redis_link *l);
void redis_link_destroy(struct redis_link *l);
void redis_link_drop(struct redis_link *l); /* the connection only */
/* A connection to the primary, before the deadline (skv_now_us). */
int redis_link_connect(struct redis_link *l, uint64_t deadline, struct skv_error *err);
/* A plain connection, with the password said. */
redisContext *redis_connect_to(const struct redis_store *s, const struct redis_node *at, struct skv_error *err);
bool redis_node_parse(const char *text, size_t n, struct redis_node *out);
bool redis_node_equal(const struct redis_node *a, const struct redis_node *b);
void redis_learn(struct redis_store *s, const struct redis_node *at);
uint64_t redis_deadline(const struct redis_store *s);
int redis_no_memory(struct skv_error *err);
/* "{PREFIX.TAG}:name"; 160 bytes are enough. */
#define REDIS_KEY_MAX 160u
void redis_key(const struct redis_store *s, uint32_t tag, char out[REDIS_KEY_MAX], const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void redis_new_op(char out[REDIS_OP + 1]);

/* ---- redis_script.c ---------------------------------------------------------------------------- */

/* What is sent: keys first. At most 6 of them and 12 arguments. */
struct redis_args {
	const char *v[24];
	size_t len[24];
	uint32_t n, keys;
	char text[24][24]; /* numbers */
	char key[6][REDIS_KEY_MAX];
};
void redis_arg_key(struct redis_args *a, const struct redis_store *s, uint32_t tag, const char *name);
void redis_arg_text(struct redis_args *a, const char *text);
void redis_arg_bytes(struct redis_args *a, const void *bytes, size_t n);
void redis_arg_u64(struct redis_args *a, uint64_t v);

enum { REDIS_ACKNOWLEDGED = 1 }; /* return only when the replicas have it */

/* Runs a script on the primary. SKV_OK: *out (freed by the caller) is an array whose first element is a word ("OK" ...).
 * SKV_E_STORE_IO: it did not run; SKV_E_UNKNOWN_OUTCOME: it may have, or not all replicas have it. */
int redis_run(struct redis_link *l, enum redis_script script, const struct redis_args *a, unsigned flags,
	      redisReply **out, struct skv_error *err);
bool redis_says(const redisReply *r, const char *word);
/* Element i: an unsigned number; 0 if it is none. */
uint64_t redis_u64(const redisReply *r, size_t i);
/* Element i as text; "" if it is none. */
const char *redis_text(const redisReply *r, size_t i);

/* ---- redis_acks.c ------------------------------------------------------------------------------ */

/* Until every electable replica has what was written on this connection before. */
int redis_acknowledge(struct redis_link *l, uint64_t deadline, struct skv_error *err);

/* ---- operations -------------------------------------------------------------------------------- */

/* The nonce of a fence; looked up if this handle did not acquire it. SKV_E_FENCED: it is not the newest. */
int redis_nonce(struct redis_store *s, uint32_t partition, uint64_t fence, char out[REDIS_OP + 1], struct skv_error *err);
int redis_fenced(uint32_t partition, struct skv_error *err);
/* After a script that said neither OK nor anything that its caller knows. */
int redis_odd(const redisReply *r, struct skv_error *err);

int redis_get(void *self, const char *key, struct skv_buf *value, uint64_t *version, struct skv_error *err);
int redis_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect, const void *bytes, size_t n,
	      uint64_t *version, struct skv_error *err);
int redis_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect, struct skv_error *err);
int redis_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx, struct skv_error *err);
int redis_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms, uint64_t *fence, char *holder,
		  size_t holder_size, struct skv_error *err);
int redis_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms, struct skv_error *err);
int redis_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err);
int redis_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes, size_t n,
		 unsigned flags, struct skv_error *err);
int redis_sync(void *self, struct skv_error *err);
int redis_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id, struct skv_error *err);
int redis_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t number,
			   const void *bytes, size_t n, struct skv_error *err);
int redis_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t slices,
			    uint64_t upto_seq, struct skv_error *err);
int redis_checkpoint_abort(void *self, uint32_t partition, uint64_t id);
int redis_load(void *self, uint32_t partition, uint64_t *base_seq, const struct skv_load_sink *sink,
	       struct skv_error *err);
int redis_stats(void *self, uint32_t partition, struct skv_store_stats *out, struct skv_error *err);
/* Of a record that follows `before` (hex; "" = it is the first). */
void redis_chain(char out[SKV_KEY_HEX + 1], const char *before, uint64_t fence, uint64_t seq, const void *bytes, size_t n);

#endif
