/*
 * redis_store.h - internals of the store on Redis (7.0 or later) or Valkey (8 or later): standalone
 * with replicas, or Cluster.
 *
 * Keys. Each partition has one hash tag, so that a script sees all of it; the registry has its own:
 *	  {PREFIX.N}:owner    hash: owner, fence, nonce, beats, ttl, boot, expires, again,
 *	                      engine (redis_engine.c), mark (redis_marks.c)
 *	  {PREFIX.N}:head     hash: last, chain, total; base, base_chain, base_total, checkpoint,
 *	                      slices; building, ids; *_op
 *	  {PREFIX.N}:journal  stream, id "SEQ-1": f (fence), c (chain), t (total), b (bytes)
 *	  {PREFIX.N}:cID      hash: slice number -> "checksum bytes chunks";
 *	  {PREFIX.N}:cID.NUMBER  hash: chunk -> bytes
 *	  {PREFIX.N}:garbage  set of checkpoint ids; {PREFIX.N}:loads  sorted set: running loads, by
 *	                      the time at which they expire
 *	  {PREFIX.registry}:values, :versions ("VERSION OP"), :keys (sorted set), :meta (format,
 *	                      changes, fPARTITION "FENCE NONCE", mPARTITION "NUMBER OP")
 *	  {PREFIX.silent.K}:nodes  hash: id of a replica that writing goes on without -> record
 *	                      (redis_silent.c)
 *
 * A *fence* is a number and a nonce: a primary that lost the newest acquire can give out the same
 * number again, never the same nonce. Each acquire also writes it to the registry, so that registry
 * writes are checked there.
 *
 * Every write is a script that may be sent again: it carries an operation number (op, nonce) and
 * gives a repetition the first answer. So a broken connection leaves no unknown outcome as long as
 * a primary is found in time.
 *
 * *Acknowledged* is what every electable replica has, at least `replicas` of them (redis_acks.c).
 *
 * The chain of a record is the XXH3-128 of the previous chain, fence, seq and bytes. A writer names
 * the chain that its record follows, so nobody appends to a foreign history, and a load verifies
 * all of it.
 */
#ifndef SKV_STORE_REDIS_STORE_H
#define SKV_STORE_REDIS_STORE_H

#include <skv/hash.h>
#include <skv/lock.h>

#include "internal.h"
#include "redis_conn.h"

#define REDIS_FORMAT "slabkv 1"
#define REDIS_NODES 64u       /* addresses that are remembered */
#define REDIS_PREFIX_MAX 64u
#define REDIS_SECRET_MAX 255u /* of a user name or password */
#define REDIS_REGISTRY UINT32_MAX /* in place of a partition's number */
#define REDIS_SILENT 16u          /* keys for silent replicas; their tags: */
#define REDIS_SILENT_TAG (REDIS_REGISTRY - REDIS_SILENT)
#define REDIS_OP 16u          /* hex digits of an operation number */
#define REDIS_ENGINE_MAX 1024u
#define REDIS_ID 40u          /* hex digits of a node's id */
#define REDIS_ABSENT 16u      /* replicas that may be absent at once */
#define REDIS_ABSENT_MAX 1024u
#define REDIS_CHUNK_BYTES ((size_t)256 << 10)

/* redis[s]://[user:password@]host[:port][,host[:port]...][/prefix]
 *	  [?replicas=N&timeout_ms=N&force=1&silent_ms=N&ca_file=PATH&cert_file=PATH&
 *	  key_file=PATH&server_name=NAME] */
struct redis_url {
	struct redis_node node[REDIS_NODES];
	uint32_t n;
	char user[REDIS_SECRET_MAX + 1];
	char password[REDIS_SECRET_MAX + 1];
	char prefix[REDIS_PREFIX_MAX + 1]; /* "slabkv" */
	uint32_t replicas;   /* replicas that must acknowledge, 1 by default. 0: the primary alone
			      * suffices */
	uint32_t timeout_ms; /* how long a call tries to reach a primary and its replicas; 3000 */
	uint32_t silent_ms;  /* after which writing goes on without a replica; 0: never */
	struct redis_tls tls;
	bool force;          /* has a replica elected as soon as a primary is missed */
};
int redis_url_parse(const char *text, struct redis_url *out, struct skv_error *err);

#include "redis_scripts.h"
enum redis_script {
#define REDIS_SCRIPT(name, text) RUN_##name,
	REDIS_SCRIPTS
#undef REDIS_SCRIPT
	RUN_N
};

enum redis_use { REDIS_OWNER, REDIS_JOURNAL, REDIS_BULK, REDIS_FOLLOW, REDIS_LOAD };

/* One connection, to the primary that has the keys of one hash tag. Appends, ownership and bulk
 * data each use their own, so that none waits for another. */
struct redis_link {
	struct skv_mutex lock; /* held during a call, on purpose */
	struct redis_store *store;
	struct redis_link *next;
	uint32_t tag; /* partition, or REDIS_REGISTRY */
	enum redis_use use;
	struct redis_conn *c; /* NULL: none */
	struct redis_node at;
	char id[REDIS_ID + 1];  /* with silent_ms: its node id, and it is known to have all. "": not
				 * looked yet */
	uint64_t used_us;       /* with silent_ms: when it was last used */
	struct redis_conn *side; /* with silent_ms, to another shard's primary; NULL: none */
	struct redis_node side_at;
	struct redis_node home; /* the primary that answered last; port 0: none */
	struct redis_node mute; /* of a cluster: it has not answered in time; until mute_us */
	uint64_t mute_us;
	struct redis_node moved; /* the node that has the keys, as named by another; port 0: none */
	uint32_t tries;          /* attempts in a row without a primary: selects the next node */
	/* Of the chain, on the JOURNAL link of the tag. */
	uint64_t chain_seq; /* the record that `chain` belongs to; UINT64_MAX = unknown */
	char chain[SKV_KEY_HEX + 1];
	bool behind; /* something was appended without waiting */
	/* Of the BULK link: under which fence, and when, it was said which processes have all. */
	struct redis_vouched {
		uint64_t fence, sum, looked_us, asked_us;
	} vouched;
};

/* A node of a cluster that writing went on without: as recorded (redis_silent.c). */
struct redis_absent {
	char id[REDIS_ID + 1];
	uint32_t key; /* the record's */
	enum { REDIS_OUT, REDIS_BACK, REDIS_IN } state;
	struct redis_node at, from; /* its address; who told this */
	char text[REDIS_ABSENT_MAX]; /* the whole record */
	uint64_t seen_us; /* since when this handle knows `text` */
	uint64_t goal, goal_us; /* an offset of its primary, and when that was it; 0: none yet */
	bool durable; /* this handle had `text` acknowledged */
};

/* What the masters of a cluster say. */
struct redis_replica {
	struct redis_node at, primary;
	char id[REDIS_ID + 1];
	uint32_t listed; /* by so many of those that answered */
};
struct redis_listing {
	struct redis_replica v[REDIS_NODES]; /* replicas, of every primary that a list names */
	uint32_t n;
	struct redis_node master[REDIS_NODES]; /* those that others reach */
	uint32_t n_masters;
	struct redis_node primary[REDIS_NODES]; /* whom anybody calls a primary */
	uint32_t n_primaries;
	struct redis_node voter[REDIS_NODES]; /* masters with slots, reached or not */
	uint32_t n_voters, answered;          /* how many of these answered */
	bool silent; /* a master that others do not reach is not asked: it may hang */
	/* With silent_ms. */
	struct redis_absent absent[REDIS_ABSENT];
	uint32_t n_absent;
	struct redis_node key_at[REDIS_SILENT]; /* who answers for a key; port 0: nobody did */
	bool unread; /* a record is malformed, or there are too many */
};

/* What this handle knows of a fence. */
struct redis_fence {
	struct redis_fence *next;
	uint32_t partition;
	uint64_t number;
	char nonce[REDIS_OP + 1];
	char least[SKV_STORE_MARK]; /* the registry's when it was taken, and by each write since */
	char mine[SKV_STORE_MARK];  /* the newest acknowledged, under whatever fence */
};

/* Another owner's lease, as first seen. */
struct redis_sighting {
	struct redis_sighting *next;
	uint32_t partition;
	uint64_t fence, beats;
	uint64_t most; /* the greatest fence that was seen */
	char nonce[REDIS_OP + 1];
	uint64_t seen_ms;
};

struct redis_store {
	struct redis_url url;
	const struct skv_clock *clock;
	uint64_t reserve_bytes;
	char boot_id[37];
	_Atomic bool cluster;
	char sha[RUN_N][41]; /* of scripts, each written once: then has_sha, and nobody writes it */
	_Atomic bool has_sha[RUN_N];

	struct skv_mutex lock; /* the rest */
	struct redis_link *links;
	struct redis_fence *fences;
	struct redis_sighting *sightings;
	struct redis_node node[REDIS_NODES]; /* of the URL, and learned */
	uint32_t n_node;
	/* redis_lists.c: the masters' lists, with previous lines of masters that did not answer. */
	struct redis_listing lists;
	uint64_t lists_us; /* when they were read; 0 = never */
	uint64_t meet_us;  /* when a replica that is back was last introduced */
	uint64_t told_us;  /* when the log last told of a primary that is not used */
	/* redis_failover.c: when it was last looked whether a primary is missed, and until when
	 * this process is the one that has a replica elected. */
	uint64_t failover_us, sender_until_us;
	bool failing_over;    /* a thread is at it */
	bool force_refused;   /* the cluster does not allow CLUSTER FAILOVER */
	uint64_t memory_us;   /* when memory was checked, and the result */
	uint64_t memory_used, memory_max;
};

/* ---- redis_link.c ---------------------------------------------------------------------------- */

/* Locked; NULL: out of memory. */
struct redis_link *redis_link_take(struct redis_store *s, uint32_t tag, enum redis_use use);
void redis_link_give(struct redis_link *l);
void redis_link_destroy(struct redis_link *l);
void redis_link_drop(struct redis_link *l); /* the connection only */
/* Another node of the cluster is tried for a while: this one takes connections, but hangs. */
void redis_link_mute(struct redis_link *l);
/* A connection to the primary, before the deadline (skv_now_us). */
int redis_link_connect(struct redis_link *l, uint64_t deadline, struct skv_error *err);
/* A connection of the caller's own, with the password said. */
struct redis_conn *redis_connect_to(const struct redis_store *s, const struct redis_node *at,
				    struct skv_error *err);
bool redis_node_parse(const char *text, size_t n, struct redis_node *out);
bool redis_node_equal(const struct redis_node *a, const struct redis_node *b);
void redis_learn(struct redis_store *s, const struct redis_node *at);
uint64_t redis_deadline(const struct redis_store *s);
int redis_no_memory(struct skv_error *err);
/* The server does not allow it: with the remedy. */
int redis_refused(const struct redis_link *l, const char *text, struct skv_error *err);
/* "{PREFIX.TAG}:name"; 160 bytes are enough. */
#define REDIS_KEY_MAX 160u
void redis_key(const struct redis_store *s, uint32_t tag, char out[REDIS_KEY_MAX], const char *fmt,
	       ...) __attribute__((format(printf, 4, 5)));
void redis_new_op(char out[REDIS_OP + 1]);

/* ---- redis_script.c -------------------------------------------------------------------------- */

/* What is sent: keys first. At most 6 of them and 12 arguments. */
struct redis_args {
	const char *v[24];
	size_t len[24];
	uint32_t n, keys;
	char text[24][24]; /* numbers */
	char key[6][REDIS_KEY_MAX];
};
void redis_arg_key(struct redis_args *a, const struct redis_store *s, uint32_t tag,
		   const char *name);
void redis_arg_text(struct redis_args *a, const char *text);
void redis_arg_bytes(struct redis_args *a, const void *bytes, size_t n);
void redis_arg_u64(struct redis_args *a, uint64_t v);

enum { REDIS_ACKNOWLEDGED = 1 }; /* return only when the replicas have it */

/* Runs a script on the primary. SKV_OK: *out (freed by the caller) is an array whose first
 * element is a word ("OK" ...). SKV_E_STORE_IO: it did not run; SKV_E_UNKNOWN_OUTCOME: it may
 * have, or not all replicas have it. */
int redis_run(struct redis_link *l, enum redis_script script, const struct redis_args *a,
	      unsigned flags, redisReply **out, struct skv_error *err);
bool redis_says(const redisReply *r, const char *word);
/* Element i: an unsigned number; 0 if it is none. */
uint64_t redis_u64(const redisReply *r, size_t i);
/* Element i as text; "" if it is none. */
const char *redis_text(const redisReply *r, size_t i);

/* ---- redis_member.c -------------------------------------------------------------------------- */

/* A line of CLUSTER NODES. */
struct redis_member {
	char id[64], of[64]; /* its own, its primary's */
	struct redis_node at;
	uint16_t bus;
	bool myself, master, replica, gone;
	bool suspect; /* the node that was asked does not reach it, or all say so */
	bool votes;   /* a master with slots */
};
/* False: it says no address. */
bool redis_member_parse(const char *text, struct redis_member *out);

/* ---- redis_lists.c --------------------------------------------------------------------------- */

bool redis_has_node(const struct redis_node *v, uint32_t n, const struct redis_node *at);

/* Asks the cluster's masters, the link's own first. *out is what they say now; what the store keeps
 * of it has previous lines, too. */
void redis_look(struct redis_link *l, struct redis_listing *out);
/* Looks again if the newest lists are old. The replicas of this link's primary. */
uint32_t redis_electable(struct redis_link *l, struct redis_node out[REDIS_NODES]);

/* ---- redis_acks.c ---------------------------------------------------------------------------- */

/* Replicas that have to have a write, and which of them have it. */
struct redis_have {
	struct redis_node at[2 * REDIS_NODES];
	bool has[2 * REDIS_NODES];
	uint64_t upto[2 * REDIS_NODES]; /* its offset when it was last heard; 0: not connected */
	uint32_t n;
	uint64_t offset; /* the primary's, now */
};

/* Waits until every electable replica has what this connection has written. */
int redis_acknowledge(struct redis_link *l, uint64_t deadline, struct skv_error *err);

/* The replicas that the primary sends to. */
uint32_t redis_replicas(struct redis_link *l, struct redis_node out[REDIS_NODES]);

/* ---- redis_records.c ------------------------------------------------------------------------- */

/* At opening: can this cluster do it, if silent_ms is set? Does it go on without a replica, which
 * those without silent_ms do not know of? */
int redis_silent_check(struct redis_link *l, struct skv_error *err);
/* Adds what this node records to the listing. */
void redis_silent_read(const struct redis_store *s, struct redis_conn *c,
		       const struct redis_node *at, struct redis_listing *l);
/* The text of a record by this link's primary: those of `h` that have all are in sync. */
void redis_record_compose(char out[REDIS_ABSENT_MAX], unsigned state, const struct redis_link *l,
			  const struct redis_node *at, const struct redis_have *h,
			  const struct redis_listing *lists);
/* Changes a record from `before` to `after` ("": there is none), acknowledged. Not for links of
 * records. */
bool redis_record_change(struct redis_link *l, const struct redis_absent *a, const char *before,
			 const char *after);
/* It is known to be `text` from now on. */
void redis_record_learn(struct redis_store *s, const struct redis_absent *a, const char *text);
/* Is the primary of this connection one that has all? SKV_E_UNSUPPORTED: no. SKV_E_STORE_IO: nobody
 * can tell. */
int redis_silent_vet(struct redis_link *l, struct skv_error *err);

/* ---- redis_silent.c: with silent_ms ---------------------------------------------------------- */

/* How many of `must` need not acknowledge. */
uint32_t redis_silent_excused(struct redis_link *l, const struct redis_node *must, uint32_t n);
/* Is a write acknowledged by those that have it? Goes on without the others if they have been
 * silent since `begun_us` for long enough, and takes back those that are not any more. */
bool redis_silent_suffices(struct redis_link *l, struct redis_have *h, uint64_t begun_us);

/* ---- redis_failover.c ------------------------------------------------------------------------ */

/* The primary that this link used last does not answer: has its best replica elected at once, if
 * the URL says so and a majority of the cluster's masters misses the primary, too. */
void redis_failover(struct redis_link *l);

/* ---- operations ------------------------------------------------------------------------------ */

/* The nonce of a fence; looked up if this handle did not acquire it.
 * SKV_E_FENCED: it is not the newest. */
int redis_nonce(struct redis_store *s, uint32_t partition, uint64_t fence, char out[REDIS_OP + 1],
		struct skv_error *err);
int redis_fenced(uint32_t partition, struct skv_error *err);
/* The mark of the registry that this handle knows by a fence ("" if it has another one), and the
 * newest of a partition that it had acknowledged. */
void redis_marks_known(struct redis_store *s, uint32_t partition, uint64_t fence,
		       char least[SKV_STORE_MARK], char mine[SKV_STORE_MARK]);
/* A write had it as its mark; and it is acknowledged. */
void redis_mark_learn(struct redis_store *s, const struct skv_fence *fence, const char *mark,
		      bool acknowledged);
/* Says beside the journal that the registry has this mark (redis_marks.c). */
int redis_note(struct redis_store *s, const struct skv_fence *fence, const char *mark,
	       struct skv_error *err);
/* For an answer that is neither OK nor a word that the caller knows. */
int redis_odd(const redisReply *r, struct skv_error *err);

int redis_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
	      struct skv_error *err);
int redis_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	      const void *bytes, size_t n, uint64_t *version, struct skv_error *err);
int redis_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	      struct skv_error *err);
int redis_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx,
	       struct skv_error *err);
int redis_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
		  uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err);
int redis_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		struct skv_error *err);
int redis_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err);
int redis_survived(void *self, uint32_t partition, bool *yes, struct skv_error *err);
int redis_vouch(void *self, uint32_t partition, uint64_t fence, struct skv_error *err);
int redis_marks(void *self, uint32_t partition, struct skv_registry_marks *out,
		struct skv_error *err);
int redis_restored(void *self, uint32_t partition, uint64_t fence, const char *past,
		   struct skv_error *err);
uint64_t redis_renewed(void *self, uint32_t partition);
int redis_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		 size_t n, unsigned flags, struct skv_error *err);
int redis_sync(void *self, uint32_t partition, struct skv_error *err);
int redis_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
			   struct skv_error *err);
int redis_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			   uint32_t number, const void *bytes, size_t n, struct skv_error *err);
int redis_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			    uint32_t slices, uint64_t upto_seq, struct skv_error *err);
int redis_checkpoint_abort(void *self, uint32_t partition, uint64_t id);
int redis_restore(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t slices,
		  uint64_t upto_seq, struct skv_error *err);
int redis_load(void *self, uint32_t partition, uint64_t *base_seq, const struct skv_load_sink *sink,
	       struct skv_error *err);
int redis_follow(void *self, uint32_t partition, struct skv_position *at,
		 const struct skv_load_sink *sink, struct skv_error *err);
int redis_stats(void *self, uint32_t partition, struct skv_store_stats *out, struct skv_error *err);
/* The chain of a record that follows `before` (hex; "" = the first). */
void redis_chain(char out[SKV_KEY_HEX + 1], const char *before, uint64_t fence, uint64_t seq,
		 const void *bytes, size_t n);

#endif
