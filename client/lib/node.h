/*
 * node.h - the memory node of a storage: its address, connections, and engine.
 *
 * An engine of its own for the files of one storage ("memory"): on the node's host it copies from
 * and to mapped slabs, elsewhere it speaks TCP (skv/memory_node.h), a connection for each call that
 * is running, with a queue pair beside it that moves the bytes where there is RDMA (rdma.h). A
 * restarted node counts as another node: this handle of it fails permanently, and its files are
 * opened again. Reference-counted, since open files outlive their mount. Any thread.
 */
#ifndef SKV_CLIENT_NODE_H
#define SKV_CLIENT_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/clock.h>
#include <skv/lock.h>
#include <skv/memory_node.h>

#include "engine.h"

struct skv_http;
struct skv_rdma;
struct skv_qp;

/* A connection after its HELLO. */
struct skv_node_conn {
	int fd;
	struct skv_http_pipe *tls; /* has fd; NULL: plain */
	struct skv_qp *qp; /* NULL: bytes go over TCP */
	struct skv_node_conn *next; /* of idle ones: skv_node.lock */
};

struct skv_node {
	struct skv_engine engine; /* first: engines are found by it */
	char *token;              /* "" = none */
	char name[64];
	char host[256];
	uint16_t port;
	uint64_t epoch;
	bool local;               /* the node's slabs are mapped */
	bool tls;                 /* the URL is https: bytes use TLS, except local ones and RDMA */
	struct skv_http *http;    /* the handle's */
	uint16_t rdma_port;       /* 0: bytes go over TCP */
	struct skv_rdma *rdma;    /* the handle's */
	atomic_bool dead;         /* the node was restarted, or belongs to another storage */
	struct skv_mutex lock;    /* protects the following members */
	struct skv_node_conn *idle;
	char device[64];  /* device of the last queue pair */
	char no_rdma[320]; /* why there was none; "": there was */
	uint64_t again_ms; /* when to try again */
	uint32_t refs;
};

/* How to get there. Borrowed. */
struct skv_node_at {
	const char *url; /* "http://host:port/NAME" */
	const char *token; /* NULL: none */
	struct skv_http *http; /* the node's token and certificates are those of the handle */
	struct skv_rdma *rdma; /* NULL: no RDMA */
};

/* Asks the node who it is, and connects: locally if it runs on this host, else by RDMA if both have
 * it, else over TCP; SLABKV_MEMORY_TRANSPORT=local|rdma|tcp in the environment leaves one way only.
 * SKV_E_UNAVAILABLE, SKV_E_FOREIGN (another storage's, or another name), SKV_E_UNAUTHENTICATED,
 * SKV_E_NOMEM, SKV_E_UNSUPPORTED (no RDMA, and nothing else allowed); the message names the
 * remedy. */
int skv_node_open(const struct skv_node_at *at, const uint8_t uuid[16], struct skv_node **out,
		  struct skv_error *err);
void skv_node_keep(struct skv_node *n);
void skv_node_release(struct skv_node *n);
/* Which way bytes go, for people. `out` has SKV_NODE_TEXT bytes. */
#define SKV_NODE_TEXT 720
void skv_node_describe(struct skv_node *n, char out[SKV_NODE_TEXT]);

/* ---- node.c, for node_io.c ------------------------------------------------------------------- */

/* An idle connection, or a new one. */
int skv_node_take(struct skv_node *n, struct skv_node_conn **out, struct skv_error *err);
/* Gives it back; `good` false: closes it. */
void skv_node_give(struct skv_node *n, struct skv_node_conn *c, bool good);
/* Returns true if the other end is still connected. */
bool skv_node_conn_lives(const struct skv_node_conn *c);
/* Sends or receives everything. While nothing moves, `by` may work; false: the other end is gone,
 * or by->at_ms has passed (*late). `by` NULL: some seconds. */
bool skv_node_send(struct skv_node_conn *c, struct iovec *iov, int n_iov,
		   const struct skv_io_call *by, bool *late);
bool skv_node_receive(struct skv_node_conn *c, struct iovec *iov, int n_iov,
		      const struct skv_io_call *by, bool *late);
/* Sends a frame and receives its answer's header. */
bool skv_node_ask(struct skv_node_conn *c, const struct skv_mn_frame *q, const void *payload,
		  struct skv_mn_frame *answer, const struct skv_io_call *by, bool *late);
/* The sentence after an answer that is no success becomes the error. */
int skv_node_refused(struct skv_node_conn *c, const struct skv_mn_frame *answer,
		     struct skv_error *err);

extern const struct skv_engine_ops skv_engine_memory; /* node_io.c; made by skv_node_open only */

#endif
