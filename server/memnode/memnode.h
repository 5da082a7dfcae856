/*
 * memnode.h - shared by the files of the memory node: its slabs, its storage, its connections.
 */
#ifndef SKV_SERVER_MEMNODE_H
#define SKV_SERVER_MEMNODE_H

#include <skv/fs_master.h>
#include <skv/lock.h>
#include <skv/memory_node.h>
#include <skv/memory_node_api.h>
#include <skv/request.h>
#include <skv/service.h>
#include <skv/storage.h>
#include <skv/tls.h>

struct ibv_mr;
struct ibv_qp;
struct rdma;
struct rdma_cm_id;

/* A slab in memory. `refs` counts users of its bytes here; the last one frees the slab. */
struct slab {
	uint32_t file;
	uint64_t length;
	uint64_t mapped; /* whole pages */
	int fd;          /* of the memfd, for clients that write */
	int read_fd;     /* the same for those that only read */
	uint8_t *base;
	struct ibv_mr *mr[SKV_MN_DEVICES]; /* rdma.c */
	struct skv_mn_keys keys;
	uint32_t refs;   /* slabs.lock */
	bool removed;    /* slabs.lock */
};

/* All slabs; the lock protects everything but what is set when it is made. */
struct slabs {
	uint64_t size;
	uint64_t page;
	unsigned huge; /* MFD_HUGE_*, 0: ordinary pages */
	struct bitmask *numa; /* libnuma's; NULL: on any node */
	const struct rdma *rdma; /* NULL: none */
	struct skv_mutex lock;
	struct slab **v; /* by number */
	size_t n, cap;
	uint64_t used;
};

struct connection;
struct memnode {
	struct skv_api api;
	char name[64];
	char numa[64];
	char listen[256];
	uint64_t epoch;
	uint8_t secret[SKV_MAC]; /* of this start: keys of passes are derived from it */
	struct slabs slabs;
	struct skv_mutex lock; /* protects the following members up to the connections */
	bool bound;            /* to the storage: */
	uint8_t uuid[16];
	char storage[SKV_MAX_NAME + 1];
	uint64_t unit;
	struct skv_storage_owner owner[SKV_STORAGE_OWNERS];
	uint32_t n_owners;
	/* data.c */
	struct skv_service *service;
	uint16_t port;
	uint32_t max_connections;
	int tcp_fd, local_fd, stop_fd;
	pthread_t acceptor;
	bool accepting;
	struct skv_mutex conn_lock; /* protects the list */
	struct skv_cond conn_gone;
	struct connection *conns; /* the newest first */
	uint32_t n_tcp, n_local;
	/* Connections ended because no hello arrived in time, or because newer ones needed the
	 * place. */
	uint64_t n_cut;
	struct rdma *rdma; /* rdma.c; NULL: none */
	uint16_t rdma_port;
	uint32_t n_qps; /* rdma.lock */
};

static inline struct memnode *memnode_of(const struct skv_api *api) { return api->ctx; }

/* ---- slabs.c --------------------------------------------------------------------------------- */

/* Finds pages and NUMA nodes for them. SKV_E_INVALID, SKV_E_NO_SPACE. */
int slabs_init(struct slabs *s, const struct skv_memory_options *o, struct skv_error *err);
void slabs_destroy(struct slabs *s);
/* Makes the slab with its superblock, all of its memory allocated. Repeating it is SKV_OK;
 * SKV_E_FOREIGN: it has another length; SKV_E_NO_SPACE. */
int slabs_create(struct slabs *s, const struct skv_superblock *sb, struct skv_error *err);
/* SKV_E_NOT_FOUND, SKV_E_FOREIGN. */
int slabs_check(struct slabs *s, uint32_t file, uint64_t length, struct skv_error *err);
/* Removes a slab. Its memory is freed when no user is left, here or in a client. A missing slab is
 * no error. */
void slabs_remove(struct slabs *s, uint32_t file);
/* The slab with a reference, or NULL. */
struct slab *slabs_use(struct slabs *s, uint32_t file);
void slabs_unuse(struct slabs *s, struct slab *b);
uint64_t slabs_free_bytes(struct slabs *s);
uint32_t slabs_count(struct slabs *s);

/* ---- data.c ---------------------------------------------------------------------------------- */

int data_bind(struct memnode *m, struct skv_error *err);
int data_start(struct memnode *m, struct skv_error *err);
void data_stop(struct memnode *m);
/* Age of the oldest write that has not ended, in ms and at least 1; 0: there is none. */
uint64_t data_writing_ms(struct memnode *m);
void data_counts(struct memnode *m, uint32_t *tcp, uint32_t *local);
/* Connections ended since the start because they had not said hello. */
uint64_t data_cut(struct memnode *m);

/* ---- wire.c: a connection's bytes; false: it is of no use any more --------------------------- */

/* Before anything else: the handshake, if this node has a certificate. */
bool wire_open(struct connection *c);
void wire_close(struct connection *c); /* and its socket */
bool wire_receive(struct connection *c, void *to, size_t n);
/* Writes a header and its payload. `pass` goes along with the first byte, unless it is -1. */
bool wire_answer(struct connection *c, const struct skv_mn_frame *f, const void *data, size_t n,
		 int pass);

/* ---- serve.c: one connection ----------------------------------------------------------------- */

struct connection {
	struct memnode *node;
	struct connection *next; /* conn_lock */
	int fd;
	gnutls_session_t tls; /* NULL: plain, always so for local ones */
	bool local;
	bool clear; /* plain where TLS is required: the client gets an error */
	uint64_t since_ms;    /* when it was accepted */
	_Atomic bool greeted; /* the hello was good: the connection has no time limit */
	bool cut;             /* conn_lock; it ends without one */
	enum role role;
	/* Boot time ms of BEGIN, 0 = not writing; and when a TCP writer must be done. */
	_Atomic uint64_t begun, until;
	uint64_t written; /* bytes since BEGIN */
	uint64_t ticket;       /* rdma.lock, as the following; 0: none */
	struct rdma_cm_id *id; /* of its queue pair */
	struct ibv_qp *qp;
};
/* Until the connection ends. Afterwards it is not writing any more. */
void connection_serve(struct connection *c);

/* ---- rdma.c ---------------------------------------------------------------------------------- */

/* `wanted`: "auto", "off" or names with commas. *out is NULL where there is none to use, which is
 * an error only for names. */
int mem_rdma_create(const char *wanted, uint64_t epoch, struct rdma **out, struct skv_error *err);
void mem_rdma_destroy(struct rdma *r); /* NULL is allowed */
const struct skv_mn_device *mem_rdma_devices(const struct rdma *r, uint32_t *n);
/* On all devices. SKV_E_NO_SPACE, with the remedy; `b` may be registered on some then. */
int mem_rdma_register(const struct rdma *r, struct slab *b, struct skv_error *err);
void mem_rdma_unregister(struct slab *b);
/* Listens, after the TCP port is bound; answers; ends, after the last connection. */
int mem_rdma_bind(struct memnode *m, struct skv_error *err);
int mem_rdma_start(struct memnode *m, struct skv_error *err);
void mem_rdma_stop(struct memnode *m);
/* Returns the ticket that the request for the connection's queue pair must bring; 0: the connection
 * has a queue pair. */
uint64_t mem_rdma_ticket(struct connection *c);
/* Destroys its queue pair, if it has one. After it none of its writes can land. */
void mem_rdma_end(struct connection *c);
uint32_t mem_rdma_count(struct memnode *m);

/* ---- ops.c ----------------------------------------------------------------------------------- */

#define MEM_OPS(X)                                                            \
	X(index, GET, "/", OPEN, 0)                                           \
	X(healthz, GET, "/healthz", OPEN, 0)                                  \
	X(readyz, GET, "/readyz", OPEN, 0)                                    \
	X(metrics, GET, "/metrics", READ, ROUTE_SCRAPE)                       \
	X(list, GET, "/fs/{dir}/files", READ, 0)

#define MEM_PROTOTYPES(name, ...)                       \
	int mem_op_##name##_run(struct skv_request *c);    \
	void mem_op_##name##_write(struct skv_request *c);
MEM_OPS(MEM_PROTOTYPES)
#undef MEM_PROTOTYPES
/* The verbs of skv/fs_master.h; which one, the route's `own` says. */
int mem_verb_run(struct skv_request *c);
void mem_verb_write(struct skv_request *c);

/* skv_request.state. */
struct mem_request {
	struct skv_fs_answer answer; /* open, probe, owners */
};
static inline struct mem_request *mem_of(struct skv_request *c) { return c->state; }
static inline enum skv_fs_verb mem_verb(const struct skv_request *c)
{
	return *(const enum skv_fs_verb *)c->route->own;
}

#endif
