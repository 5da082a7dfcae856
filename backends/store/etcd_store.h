/*
 * etcd_store.h - internals of the store on etcd.
 *
 * Keys, below the prefix P of the URL. N is a partition (5 digits), S a sequence number (16 hex
 * digits), K a piece (4 hex digits).
 *
 *   P/b/N/S/K        piece K of batch S of the journal
 *   P/c/N/head       the committed checkpoint
 *   P/c/N/w/NAME     a checkpoint whose bytes may exist; written before its first byte
 *   P/c/N/p/NAME/K   piece K (8 hex digits) of its bytes, unless they are in a file
 *   P/e/N            owner of the partition; its mod revision is the fence
 *   P/m/MANAGER      lease of one handle; each renewal writes it
 *   P/n/N            end of the journal: the newest acknowledged batch
 *   P/r/KEY          registry document
 *
 * A handle watches P/e to P/r: everything except the bytes of journals and checkpoints.
 *
 * Each write is a transaction that compares the fence. If it fails, the same transaction reads the
 * keys that show the reason, or that an earlier try was executed: so a transaction of unknown
 * outcome is sent again unchanged (etcd_settle).
 *
 * `lock` protects the marked members. It is never held across a call of etcd.
 */
#ifndef SKV_STORE_ETCD_STORE_H
#define SKV_STORE_ETCD_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include <skv/etcd.h>
#include <skv/hash.h>
#include <skv/lock.h>

#include "internal.h"

#define ETCD_PREFIX_MAX 64u
#define ETCD_PATH_MAX 1000u
#define ETCD_KEY 192u             /* bytes of a key, except of a registry document's */
#define ETCD_NAME 16u             /* hex digits of a manager's, checkpoint's or write's nonce */
#define ETCD_PIECE (1u << 20)     /* bytes of a piece; a request has at most 1.5 MiB */
#define ETCD_GROUP 60u            /* appends in one transaction of 128 operations */
#define ETCD_PAGE 8u              /* values of any size that fit one answer */
#define ETCD_SETTLE_MS 10000u     /* how long an unknown outcome is looked into */
#define ETCD_INDEX_ENTRY 20u      /* bytes of a slice in the index: where, length, checksum */
#define ETCD_CHECKPOINT_MAX (64u << 20) /* bytes of a checkpoint inside etcd */
#define ETCD_KEYS_MAX 4096u       /* keys read in one call, if their values are small */

/* ---- etcd_url.c ------------------------------------------------------------------------------ */

struct etcd_url {
	char endpoints[2048];
	char user[SKV_ETCD_SECRET_MAX + 1], password[SKV_ETCD_SECRET_MAX + 1];
	char prefix[ETCD_PREFIX_MAX + 1];
	char checkpoints[ETCD_PATH_MAX + 1]; /* "": inside etcd */
	struct skv_net_tls tls;
};
/* SKV_E_INVALID; the message never has the password. */
int etcd_url_parse(const char *text, struct etcd_url *out, struct skv_error *err);

/* ---- values (etcd_values.c) ------------------------------------------------------------------ */

/* P/e/N */
struct etcd_owner {
	uint64_t nonce; /* of the acquire */
	char manager[ETCD_NAME + 1];
	char owner[192];
};
/* P/m/MANAGER */
struct etcd_lease {
	uint32_t ttl_ms;
	uint64_t expires_ms; /* by the clock of boot_id */
	char boot_id[37];
};
/* P/n/N. `chain` covers all batches up to `seq`. */
struct etcd_end {
	uint64_t fence; /* of the owner that wrote it */
	uint64_t seq, total;
	struct skv_key chain;
	uint64_t before; /* mod revision of the end that it replaced */
};
/* Before the bytes of a piece of a batch. */
struct etcd_batch {
	uint32_t pieces;
	uint64_t total; /* of the journal, this batch included */
	struct skv_key chain;
};
#define ETCD_BATCH_BYTES 29u
/* P/c/N/head */
struct etcd_head {
	char name[ETCD_NAME + 1]; /* "": there is no checkpoint */
	bool in_file;
	uint64_t id;
	uint64_t index_at; /* where the index begins, and the slices end */
	uint32_t slices;
	struct skv_key index_sum;
	uint64_t seq, total; /* end of the checkpoint */
	struct skv_key chain;
};

void etcd_put_owner(struct skv_buf *b, const struct etcd_owner *o);
void etcd_put_lease(struct skv_buf *b, const struct etcd_lease *l);
void etcd_put_end(struct skv_buf *b, const struct etcd_end *e);
void etcd_put_batch(struct skv_buf *b, const struct etcd_batch *h);
void etcd_put_head(struct skv_buf *b, const struct etcd_head *h);
/* SKV_E_CORRUPT names the key. get_end and get_head of a key that does not exist: zeros. */
int etcd_get_owner(const struct skv_etcd_kv *kv, struct etcd_owner *o, struct skv_error *err);
int etcd_get_lease(const struct skv_etcd_kv *kv, struct etcd_lease *l, struct skv_error *err);
int etcd_get_end(const struct skv_etcd_kv *kv, struct etcd_end *e, struct skv_error *err);
int etcd_get_head(const struct skv_etcd_kv *kv, struct etcd_head *h, struct skv_error *err);
/* *bytes: the part of the value after the header. */
int etcd_get_batch(const struct skv_etcd_kv *kv, struct etcd_batch *h, struct skv_etcd_bytes *bytes,
		   struct skv_error *err);
/* The chain after a batch. */
struct skv_key etcd_chain(struct skv_key before, uint64_t seq, uint64_t total, const void *bytes,
			  size_t n);
/* SKV_E_CORRUPT: `key` is damaged or missing, because of `what`. */
int etcd_corrupt(struct skv_error *err, struct skv_etcd_bytes key, const char *what);
int etcd_no_memory(struct skv_error *err);
int etcd_fenced(uint32_t partition, struct skv_error *err);
/* The same, of a write that was sent more than once: SKV_E_UNKNOWN_OUTCOME. */
int etcd_taken_over(uint32_t partition, struct skv_error *err);
/* A new nonce as text. */
void etcd_new_name(char out[ETCD_NAME + 1]);

/* ---- the store ------------------------------------------------------------------------------- */

/* A checkpoint being written. */
struct etcd_draft {
	uint64_t id, fence;
	char name[ETCD_NAME + 1];
	struct etcd_slice {
		uint64_t at;
		uint32_t n;
		bool written;
		uint64_t sum;
	} *slices;
	size_t n_slices, cap_slices;
	uint64_t length; /* bytes written, including those of the buffer */
	int fd;          /* -1: inside etcd */
	struct skv_buf piece; /* inside etcd: bytes that are not put yet */
};

/* A partition as this handle knows it; never freed before the handle. */
struct etcd_part {
	struct etcd_part *next;
	uint32_t number;
	/* lock: the end as the owner left it; of `fence`, 0: not known */
	uint64_t fence, end_mod;
	struct etcd_end end;
	bool appending;
	/* lock: what followers know. Not certain: news may have been lost */
	uint64_t newest;
	bool certain;
	/* lock: who changes the draft, and the list of written checkpoints */
	bool checkpointing;
	struct etcd_draft *draft;
	/* lock: fence of the owner, 0: none; and whether old records and checkpoints may exist */
	uint64_t owned;
	bool untidy;
	bool complained; /* the keeper's own: of work that fails */
};

/* An append that waits. */
struct etcd_append;

/* A row of P/e. */
struct etcd_row {
	uint32_t partition;
	uint64_t mod;
	struct etcd_owner o;
};
/* A row of P/m. */
struct etcd_manager {
	char name[ETCD_NAME + 1];
	uint64_t mod;
	struct etcd_lease l;
	uint64_t seen_ms;    /* when this renewal was noticed */
	uint64_t read_ms;    /* end of the newest read that saw it */
	uint64_t counted_ms; /* of reads that saw it unchanged; see etcd_owner.c */
};

#define ETCD_LOG (1u << 20) /* bytes of changes of the registry, in each half */

struct etcd_store {
	struct etcd_url url;
	struct skv_etcd *client;
	const struct skv_clock *clock;
	char manager[ETCD_NAME + 1];
	char boot_id[37];
	uint64_t format_mod; /* mod revision of P/format, of which there is one in a store's life */
	_Atomic uint64_t revision; /* the newest seen */

	struct skv_mutex lock;
	struct skv_cond changed; /* broadcast when a flag below, or of a part, changes */
	struct etcd_part *parts; /* lock */

	struct { /* etcd_journal.c; lock */
		struct etcd_append *first, *last;
		bool busy;
	} group;

	struct { /* etcd_owner.c; lock */
		struct etcd_row *rows;
		size_t n_rows, cap_rows;
		struct etcd_manager *managers;
		size_t n_managers, cap_managers;
		uint64_t revision; /* at which they were read */
		uint64_t began_us; /* of the newest read; 0: rows are known to be old */
		uint64_t whole_since_ms; /* the first read after one that failed; 0: none failed */
		bool failed;             /* the newest read */
		bool looking;
		uint32_t ttl_ms; /* the longest requested lease */
		bool renewing;
		uint64_t renewals, renewed; /* begun, and ended */
		int rc;                     /* of the newest that ended */
		struct skv_error err;
	} look;

	struct { /* etcd_news.c; lock */
		struct skv_etcd_watch *watch;
		uint64_t opened; /* watches opened so far */
		uint64_t from;   /* revision at which the newest one began */
		/* Changes of the registry: revision, and what a listing has. The older half,
		 * and the newer one. */
		struct skv_buf log[2];
		uint64_t newest, turned; /* revisions at which the two end */
		uint64_t lost;           /* changes up to this revision may be missing */
	} news;

	struct { /* etcd_keeper.c */
		pthread_t thread;
		struct skv_cond wake;
		bool running, stop; /* lock */
		uint64_t compact_us, compact_revision;
	} keeper;
};

/* The partition's state, made when it is new; NULL: out of memory. */
struct etcd_part *etcd_part(struct etcd_store *s, uint32_t number);
/* Waits until *flag, guarded by the lock, is false, and sets it; and the reverse. */
void etcd_take(struct etcd_store *s, bool *flag);
void etcd_give(struct etcd_store *s, bool *flag);

/* ---- etcd_txn.c: keys and transactions ------------------------------------------------------- */

struct etcd_key {
	char text[ETCD_KEY];
};
/* "P/" and the formatted rest, into *k. */
struct skv_etcd_bytes etcd_key(const struct etcd_store *s, struct etcd_key *k, const char *format,
			       ...) __attribute__((format(printf, 3, 4)));

struct skv_etcd_compare etcd_mod_is(struct skv_etcd_bytes key, uint64_t mod);
struct skv_etcd_op etcd_range(struct skv_etcd_bytes key);
struct skv_etcd_op etcd_range_to(struct skv_etcd_bytes key, struct skv_etcd_bytes end,
				 uint64_t limit);
struct skv_etcd_op etcd_put(struct skv_etcd_bytes key, const struct skv_buf *value);
struct skv_etcd_op etcd_delete(struct skv_etcd_bytes key);

/* Runs a transaction until its outcome is known. *again (may be NULL): it was sent more than once,
 * so a failed compare may be the work of an earlier try. SKV_E_UNKNOWN_OUTCOME: not known after
 * ETCD_SETTLE_MS. */
int etcd_settle(struct etcd_store *s, const struct skv_etcd_txn *t, struct skv_etcd_answer *a,
		bool *again, struct skv_error *err);
/* Reads ranges at one revision, linearizable. What is compacted meanwhile is SKV_E_STORE_IO. */
int etcd_read(struct etcd_store *s, const struct skv_etcd_op *ops, size_t n,
	      struct skv_etcd_answer *a, struct skv_error *err);
/* The first key of the next result; zeros if there is none. */
struct skv_etcd_kv etcd_first(struct skv_etcd_answer *a);
/* Runs a transaction of the owner, whose first compare is that of the fence. SKV_E_FENCED, or
 * SKV_E_CONFLICT if another compare failed; `otherwise` must be empty. */
int etcd_as_owner(struct etcd_store *s, uint32_t partition, struct skv_etcd_txn *t,
		  struct skv_etcd_answer *a, struct skv_error *err);

/* SKV_E_CORRUPT: P/format, as it was read, is not that of the store that was opened. So nobody
 * takes a store that was deleted for a new one. */
int etcd_check_here(const struct etcd_store *s, const struct skv_etcd_kv *format,
		    struct skv_error *err);

/* ---- etcd_news.c: the watch ------------------------------------------------------------------ */

/* Notes the events that have arrived; opens the watch if there is none. Local. */
void etcd_news_poll_locked(struct etcd_store *s) SKV_REQUIRES(s->lock);
void etcd_news_close(struct etcd_store *s);
/* Adds the changes after revision *at to *found, and moves *at to the newest change. Returns false
 * if some changes are unknown. */
bool etcd_news_changes(struct etcd_store *s, const char *const *prefixes, size_t n, uint64_t *at,
		       struct skv_buf *found);

/* ---- etcd_keeper.c --------------------------------------------------------------------------- */

int etcd_keeper_start(struct etcd_store *s, struct skv_error *err);
void etcd_keeper_stop(struct etcd_store *s);
void etcd_keeper_wake_locked(struct etcd_store *s) SKV_REQUIRES(s->lock);

/* ---- the calls ------------------------------------------------------------------------------- */

int etcd_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
	     struct skv_error *err);
int etcd_registry_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		      const void *bytes, size_t n, uint64_t *version, struct skv_error *err);
int etcd_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	     struct skv_error *err);
int etcd_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx, struct skv_error *err);
int etcd_changes(void *self, const char *const *prefixes, size_t n, uint64_t *at, bool *all,
		 skv_registry_fn fn, void *ctx, struct skv_error *err);

#define ETCD_NONCE 8u /* bytes before the document in a value */

int etcd_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
		 uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err);
int etcd_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
	       struct skv_error *err);
int etcd_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err);
uint64_t etcd_renewed(void *self, uint32_t partition);
/* Before a handle is closed: removes its lease if it owns nothing. */
void etcd_leave(struct etcd_store *s);
void etcd_look_free(struct etcd_store *s);

int etcd_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		size_t n, unsigned flags, struct skv_error *err);
int etcd_sync(void *self, uint32_t partition, struct skv_error *err);

int etcd_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
			  struct skv_error *err);
int etcd_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			  uint32_t number, const void *bytes, size_t n, struct skv_error *err);
int etcd_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			   uint32_t slices, uint64_t upto_seq, struct skv_error *err);
int etcd_checkpoint_abort(void *self, uint32_t partition, uint64_t id);
void etcd_draft_free(struct etcd_draft *d);
/* Removes the bytes of each checkpoint that is neither committed nor being written. The caller has
 * taken part->checkpointing. */
int etcd_checkpoints_tidy(struct etcd_store *s, struct etcd_part *part, uint64_t fence,
			  struct skv_error *err);

/* etcd_place.c: the bytes of a checkpoint, in a file or in pieces inside etcd */
int etcd_place_create(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		      struct skv_error *err);
int etcd_place_write(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		     const void *bytes, size_t n, struct skv_error *err);
/* All that was written is durable. */
int etcd_place_finish(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		      struct skv_error *err);
int etcd_place_remove(struct etcd_store *s, uint32_t partition, const char *name, bool in_file,
		      struct skv_error *err);
struct etcd_reader {
	struct etcd_store *s;
	uint32_t partition;
	const struct etcd_head *head;
	uint64_t revision; /* at which pieces are read */
	int fd;
	uint64_t piece_number;
	struct skv_buf piece;
};
int etcd_reader_open(struct etcd_reader *r, struct skv_error *err);
/* Appends n bytes from `at` on to *out. */
int etcd_reader_read(struct etcd_reader *r, uint64_t at, size_t n, struct skv_buf *out,
		     struct skv_error *err);
void etcd_reader_close(struct etcd_reader *r);

/* etcd_load.c */
int etcd_load(void *self, uint32_t partition, uint64_t *base_seq, const struct skv_load_sink *sink,
	      struct skv_error *err);
int etcd_follow(void *self, uint32_t partition, struct skv_position *at,
		const struct skv_load_sink *sink, struct skv_error *err);
int etcd_stats(void *self, uint32_t partition, struct skv_store_stats *out, struct skv_error *err);

#endif
