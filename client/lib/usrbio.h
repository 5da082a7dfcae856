/*
 * usrbio.h - definitions shared by the files of the engine "usrbio". The engine moves block bytes
 * over 3FS's native interface: shared memory between this process and the FUSE daemon of this
 * machine, which does the network, the retries and the replicas.
 *
 * usrbio.c is the engine (files, the choice of the way), usrbio_conn.c what stands as long as one
 * daemon lives (rings, buffers, mapped memory: a *connection to the daemon*), usrbio_memory.c
 * buffers and memory that the daemon knows, usrbio_ring.c one ring, usrbio_pump.c one call from its
 * first request to its last.
 *
 * There is no way to cancel a request. A request that a caller gives up is *orphaned*: its buffer
 * and its place in the ring stay taken until its completion arrives. A request in the caller's own
 * memory is never given up: a read would land in whatever the caller keeps there by then, a write
 * would take it. It is waited for until it is back, or the daemon's process has ended. When the
 * daemon is restarted, everything that was made with it is worth nothing; calls then say `again`,
 * and files are opened anew on a new connection.
 *
 * Locks, in this order: skv_usrbio.lock, conn.lock, ring.lock, pool.lock. None is held while bytes
 * are copied or the daemon is waited for.
 */
#ifndef SKV_CLIENT_USRBIO_H
#define SKV_CLIENT_USRBIO_H

#include <stdatomic.h>

#include <skv/lock.h>

#include <slabkv.h>

#include "engine.h"
#include "memory.h"
#include "usrbio_lib.h"

#define SKV_USRBIO_UNIT (64u << 10)    /* buffers are allocated in multiples of it */
#define SKV_USRBIO_DIRECT \
	(1u << 20) /* so many bytes side by side in mapped memory go without a copy */
#define SKV_USRBIO_BATCH 32u           /* reads in one submission */
#define SKV_USRBIO_RINGS 16u           /* of each direction, at most */
#define SKV_USRBIO_MAPPED 64u          /* pools and regions registered with the daemon */
#define SKV_USRBIO_PROBE_MS 500u      /* no completion for so long: is the daemon still the same? */
#define SKV_USRBIO_REBUILD_MS 1000u    /* between tries to build a connection */

enum skv_usrbio_way { SKV_USRBIO_READ, SKV_USRBIO_WRITE };

/* ---- usrbio_memory.c ------------------------------------------------------------------------- */

/* Memory registered with the daemon: a symbolic link below the mount leads to its name. */
struct skv_usrbio_memory {
	struct skv_hf3fs_iov iov;
	char link[512];
};

/* Tells the daemon of `length` bytes at `base`, the begin of the mapping of `shm` ("/name"). */
int skv_usrbio_publish(const struct skv_usrbio_lib *lib, const char *mount_point, const char *shm,
		       void *base, size_t length, struct skv_usrbio_memory *out,
		       struct skv_error *err);
void skv_usrbio_withdraw(struct skv_usrbio_memory *m);
/* The name in /dev/shm of the shared memory that is mapped at `base`, from its start, with at least
 * `length` bytes. False: not shared memory, or its name has been removed. */
bool skv_usrbio_shm_of(const void *base, size_t length, char shm[SKV_SHM_NAME]);
/* SKV_E_NO_SPACE with a sentence that has both numbers, when /dev/shm has less than these settings
 * need; `rings`: bytes of all rings. */
int skv_usrbio_room(const struct skv_hf3fs_options *o, uint64_t rings, struct skv_error *err);

/* Buffers of ours, of any length, in one piece of shared memory. */
struct skv_usrbio_pool {
	/* The memory; its name is removed as soon as the daemon has it. */
	struct slabkv_pool *pages;
	struct skv_usrbio_memory memory;
	uint32_t n_units;
	struct skv_mutex lock; /* protects the following members */
	struct skv_cond freed;
	uint64_t *used; /* a bit for each unit */
	uint32_t next;  /* where the search begins */
	uint32_t n_used;
};

/* `name`: of the shared memory; unique in this process. */
int skv_usrbio_pool_make(const struct skv_usrbio_lib *lib, const char *mount_point,
			 const char *name, uint64_t bytes, int numa, struct skv_usrbio_pool *out,
			 struct skv_error *err);
void skv_usrbio_pool_close(struct skv_usrbio_pool *p);
/* Returns NULL without enough free space now. */
uint8_t *skv_usrbio_pool_take(struct skv_usrbio_pool *p, uint64_t bytes);
void skv_usrbio_pool_give(struct skv_usrbio_pool *p, const uint8_t *data, uint64_t bytes);
/* Until something is released, at most `ms`. */
void skv_usrbio_pool_wait(struct skv_usrbio_pool *p, uint32_t ms);

/* ---- usrbio_ring.c --------------------------------------------------------------------------- */

struct skv_usrbio_call;

/* A request, and its place in the ring. */
struct skv_usrbio_io {
	struct skv_usrbio_call *call; /* ring.lock; NULL: orphaned */
	bool flying;                  /* ring.lock: with the daemon */
	bool own;                     /* `data` is the caller's memory, not a buffer of the pool */
	bool overdue; /* ring.lock: in the caller's memory, and past its time: said so */
	uint32_t run;
	uint64_t at; /* in the run */
	uint64_t length;
	uint8_t *data;
	const struct skv_hf3fs_iov *iov;
	uint64_t sent_ms;
	int64_t result;
	struct skv_usrbio_io *next; /* next free entry, or next landed one of the call */
	struct skv_usrbio_io *before, *after; /* the call's, in the order of the runs */
};

struct skv_usrbio_ring {
	struct skv_usrbio_conn *conn;
	enum skv_usrbio_way way;
	struct skv_hf3fs_ior ior;
	uint32_t entries;
	struct skv_usrbio_io *ios; /* [entries] */
	/* Protects the following members; preparing requests happens under it. */
	struct skv_mutex lock;
	struct skv_usrbio_io *free;
	uint32_t flying;
	uint32_t orphaned;
	bool reaping;                    /* a thread waits for completions on behalf of all */
	struct skv_usrbio_call *waiting; /* waiting calls */
};

int skv_usrbio_ring_make(struct skv_usrbio_conn *g, enum skv_usrbio_way way,
			 const struct skv_hf3fs_options *o, struct skv_usrbio_ring *out,
			 struct skv_error *err);
void skv_usrbio_ring_close(struct skv_usrbio_ring *r);

/* A place for a request; NULL when all are taken. Either sent, or given back. */
struct skv_usrbio_io *skv_usrbio_ring_take(struct skv_usrbio_ring *r);
void skv_usrbio_ring_give(struct skv_usrbio_ring *r, struct skv_usrbio_io *io);
/* Gives io the caller's own memory. False: a request that is under way uses some of these bytes,
 * and two reads of one batch must not overlap. */
bool skv_usrbio_ring_claim(struct skv_usrbio_ring *r, struct skv_usrbio_io *io, uint8_t *data,
			   uint64_t length);
/* Prepares and submits `n` requests of the call, unless the deadline has passed: looked at right
 * before. How many are flying then (the first ones); *error: an errno (0: none) why not all of them
 * are, ETIME for the deadline. */
uint32_t skv_usrbio_ring_send(struct skv_usrbio_ring *r, struct skv_usrbio_call *c,
			      struct skv_usrbio_io *const *ios, uint32_t n, int *error);
/* The call's requests that have landed, or NULL when there are none after about `ms`. */
struct skv_usrbio_io *skv_usrbio_ring_wait(struct skv_usrbio_ring *r, struct skv_usrbio_call *c,
					   uint32_t ms);
/* Whether it is an in-flight request of the call that has not been reported as overdue. */
bool skv_usrbio_ring_overdue(struct skv_usrbio_ring *r, const struct skv_usrbio_call *c,
			     struct skv_usrbio_io *io);
/* Returns true for a request of the call that is in flight. */
bool skv_usrbio_ring_mine(struct skv_usrbio_ring *r, const struct skv_usrbio_call *c,
			  const struct skv_usrbio_io *io);
/* Orphans it. False: it has landed meanwhile. */
bool skv_usrbio_ring_abandon(struct skv_usrbio_ring *r, const struct skv_usrbio_call *c,
			     struct skv_usrbio_io *io);
/* Takes landed completions without waiting: orphaned requests return their buffers and places. */
void skv_usrbio_ring_poll(struct skv_usrbio_ring *r);

/* ---- usrbio_pump.c --------------------------------------------------------------------------- */

enum skv_usrbio_kind {
	SKV_USRBIO_PLAIN,  /* not on 3FS: for the fallback engine */
	SKV_USRBIO_MOUNT,  /* on 3FS, but through the mount, past the page cache */
	SKV_USRBIO_NATIVE,
};

struct skv_usrbio_file {
	struct skv_engine_file base;
	enum skv_usrbio_kind kind;
	struct skv_engine_file *plain;    /* PLAIN */
	struct skv_usrbio_conn *conn; /* NATIVE; counted */
	int registered; /* NATIVE: the number under which the library knows the file */
	uint64_t chunk;                   /* NATIVE: bytes of one, a power of two */
};

/* A call of read or write, on its caller's thread. */
struct skv_usrbio_call {
	struct skv_usrbio_ring *ring;
	const struct skv_hf3fs_options *o;
	struct skv_io_run *runs;
	uint32_t n;
	const struct skv_io_call *by;
	uint64_t most; /* bytes of a request */
	uint32_t run; /* where the next request is cut: run, position in it, buffer, bytes of it */
	uint64_t at;
	int iov;
	size_t skip;
	struct skv_usrbio_io *ready[SKV_USRBIO_BATCH]; /* cut, not sent */
	uint32_t n_ready;
	uint32_t pending;  /* flying */
	struct skv_usrbio_io *first, *last; /* cut and not settled */
	uint32_t arrived;                   /* runs before it have arrived */
	bool working;                       /* the caller has more work to do meanwhile */
	uint64_t buffered; /* bytes of buffers of ours, ready or flying */
	struct skv_usrbio_io *landed; /* ring.lock */
	struct skv_usrbio_call *next; /* ring.lock: of the waiting ones */
	struct skv_cond wake;
};

/* Moves all runs. Their files belong to this connection. */
void skv_usrbio_pump(struct skv_usrbio_conn *g, enum skv_usrbio_way way, struct skv_io_run *runs,
		     uint32_t n, const struct skv_io_call *by);

/* ---- usrbio_conn.c ------------------------------------------------------------------------- */

struct skv_usrbio_conn {
	const struct skv_usrbio_lib *lib;
	const struct skv_hf3fs_options *o; /* the engine's */
	char mount_point[256];
	char daemon[256];    /* target of `submit-ios`: changes with each start of the daemon */
	atomic_uint refs;    /* the engine's, and one for each file */
	atomic_bool lost;    /* worth nothing any more */
	atomic_bool gone;    /* the daemon's process ended: it no longer uses our memory */
	atomic_uint turn;    /* ring of the next call */
	_Atomic uint64_t orphaned[2]; /* bytes of the pools */
	uint32_t n_rings;    /* of each direction */
	struct skv_usrbio_ring rings[2][SKV_USRBIO_RINGS];
	struct skv_usrbio_pool pools[2];
	struct skv_mutex lock;      /* protects the following members */
	uint32_t users; /* of rings and memory: the engine, and each call. 0: they are gone */
	atomic_uint n_mapped;
	struct skv_usrbio_memory *mapped[SKV_USRBIO_MAPPED];
};

/* Rings and buffers on the 3FS at `mount_point`. SKV_E_UNAVAILABLE (rings refused, no daemon),
 * SKV_E_NO_SPACE (/dev/shm), SKV_E_NOMEM; each with the remedy. One reference, one user. */
int skv_usrbio_conn_make(const struct skv_usrbio_lib *lib, const struct skv_hf3fs_options *o,
			 const char *mount_point, struct skv_usrbio_conn **out,
			 struct skv_error *err);
void skv_usrbio_conn_ref(struct skv_usrbio_conn *g);
void skv_usrbio_conn_unref(struct skv_usrbio_conn *g);
/* Rings and memory stay until skv_usrbio_conn_leave. False: it is lost, nothing of them
 * may be touched. A connection that is lost gives them up with the last user, whatever
 * files still refer to it: /dev/shm may not have room for two. The engine leaves once,
 * when it drops the connection. */
bool skv_usrbio_conn_enter(struct skv_usrbio_conn *g);
void skv_usrbio_conn_leave(struct skv_usrbio_conn *g);
/* Looks whether the daemon is still the one that this was made with; else it is lost, and gone if
 * its process has ended, too. `fd`: a file of this connection. */
void skv_usrbio_conn_check(struct skv_usrbio_conn *g, int fd);
/* After requests of this ring were orphaned: where too little is left to work with, it is lost. */
void skv_usrbio_conn_orphaned(struct skv_usrbio_conn *g, struct skv_usrbio_ring *r);
/* Memory that calls may use without a copy. Errors are only reported. */
int skv_usrbio_conn_map(struct skv_usrbio_conn *g, void *base, size_t length,
			struct skv_error *err);
void skv_usrbio_conn_unmap(struct skv_usrbio_conn *g, const void *base);
/* Returns the mapped memory that holds the bytes at `data`, and in *n how many of `length` it
 * holds; NULL: the bytes are not mapped. Valid as long as the caller keeps the memory
 * registered. */
const struct skv_hf3fs_iov *skv_usrbio_conn_find(struct skv_usrbio_conn *g, const void *data,
						 uint64_t length, uint64_t *n);
/* Bytes of shared memory of all rings of these settings. */
uint64_t skv_usrbio_conn_rings(const struct skv_usrbio_lib *lib, const struct skv_hf3fs_options *o);

#endif
