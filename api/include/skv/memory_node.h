/*
 * memory_node.h - the data protocol between clients and memory nodes, and the description of a node
 * (GET /).
 *
 * A connection, TCP or local, carries frames: a header of SKV_MN_HEADER bytes, little-endian, and
 * the payload that the header announces. The client must send HELLO within 10 s, or earlier if too
 * many connections wait; otherwise the node closes the connection. One call at a time uses a
 * connection:
 *
 *	HELLO  payload "name\0token\0"   answer: the storage's uuid; over TCP only
 *	LOCAL                            over TCP; answer: a pass to the local socket
 *	OPEN   file, flag WRITE          answer: length, superblock; local: the slab's descriptor
 *	READ   file, offset, length      answer: length, then the bytes
 *	BEGIN  extra: ms left to write   answer
 *	WRITE  file, offset, length, then the bytes: no answer
 *	END                              answer over TCP only: length, the bytes since BEGIN
 *
 * A writer checks its deadline after the answer to BEGIN, and writes nothing if it has passed. From
 * BEGIN to END, or to the end of the connection, the node counts it as writing; a manager reuses
 * the slot of a failed writer only when no writer is left that began before the failed writer's
 * deadline. On a local connection bytes are copied in the mapped slab between BEGIN and END; WRITE
 * and READ are of TCP. An invalid frame ends the connection.
 *
 * No token crosses the local socket, since any process of the host may listen under its name. The
 * pass of a TCP connection (struct skv_mn_pass) has a ticket, for one use within 10 s, and its key,
 * which only the node can derive from the ticket. Both ends prove that they know the key, the node
 * first (skv_mn_prove):
 *
 *	LOCAL  ticket, client's nonce    answer: the node's nonce, the node's proof
 *	PROVE  the client's proof        answer; then the connection has the role of the TCP one
 *
 * Where the node's URL is https, the TCP connection is TLS from its first byte, without ALPN.
 *
 * RDMA, where GET / names a port for it: a TCP connection may have one queue pair (RC) beside it,
 * and then reads and writes the slabs itself; BEGIN and END stay frames of the TCP connection.
 *
 *	RDMA                             answer: the port of rdma_cm, a ticket, for one connection
 *	OPEN   file, flag RDMA           after the superblock: address, and an rkey for each device
 *
 * The connection request carries the ticket as private data (struct skv_mn_rdma). The node answers
 * with the number of the device, which selects the valid rkey. The queue pair of a client of role
 * read cannot write. The node destroys it when the TCP connection ends, and only then counts a
 * writer as ended.
 *
 * Why slots are safe: docs/operate/MEMORY.md.
 */
#ifndef SKV_MEMORY_NODE_H
#define SKV_MEMORY_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/hash.h>
#include <skv/limits.h>
#include <skv/status.h>

#define SKV_MN_MAGIC 0x4d764b53u /* "SKvM" */
#define SKV_MN_VERSION 1u        /* in the field `file` of HELLO */
#define SKV_MN_HEADER 32u
#define SKV_MN_HELLO_MAX 1024u  /* bytes of its payload */
#define SKV_MN_TEXT_MAX 320u    /* of the sentence after a status that is not SKV_OK */
#define SKV_MN_FLAG_WRITE 1u    /* of OPEN */
#define SKV_MN_FLAG_RDMA 2u     /* of OPEN */
#define SKV_MN_DEVICES 8u       /* RDMA devices of a node, at most */
#define SKV_MN_READS 64u        /* READs that a client has on the way at a time, at most */

enum skv_mn_op {
	SKV_MN_HELLO = 1,
	SKV_MN_OPEN,
	SKV_MN_READ,
	SKV_MN_BEGIN,
	SKV_MN_WRITE,
	SKV_MN_END,
	SKV_MN_RDMA, /* in the answer, `file` is the port and `offset` the ticket */
	SKV_MN_LOCAL,
	SKV_MN_PROVE,
};

/* Requests and answers. Of an answer with another status than SKV_OK, `extra` is the length of the
 * sentence that follows it. */
struct skv_mn_frame {
	uint8_t op; /* enum skv_mn_op; an answer repeats its request's */
	uint8_t flags;
	int16_t status;  /* of answers */
	uint32_t file;
	uint32_t extra;  /* bytes of the payload; BEGIN: milliseconds */
	uint64_t offset; /* HELLO: the epoch, 0 in a request: any */
	uint64_t length;
};

void skv_mn_encode(const struct skv_mn_frame *f, uint8_t out[SKV_MN_HEADER]);
/* Returns false if this is no frame of this protocol. */
bool skv_mn_decode(const uint8_t in[SKV_MN_HEADER], struct skv_mn_frame *out);

/* Private data of a connection of rdma_cm, both ways. */
#define SKV_MN_RDMA_MAGIC 0x52764b53u /* "SKvR" */
#define SKV_MN_RDMA_BYTES 24u
struct skv_mn_rdma {
	uint16_t device; /* the node's answer: which of its devices */
	uint64_t epoch;
	uint64_t ticket; /* 0 in the answer */
};
void skv_mn_rdma_encode(const struct skv_mn_rdma *r, uint8_t out[SKV_MN_RDMA_BYTES]);
/* Returns false if this is not of this protocol, or of another version of it. */
bool skv_mn_rdma_decode(const uint8_t *in, size_t n, struct skv_mn_rdma *out);

/* After the superblock in the answer to OPEN with flag RDMA. */
struct skv_mn_keys {
	uint64_t address; /* of the slab's first byte, for RDMA; of no other slab of this epoch */
	uint32_t n;
	uint32_t rkey[SKV_MN_DEVICES]; /* by device */
};
#define SKV_MN_KEYS_BYTES(n) (8u + 4u * (n))
void skv_mn_keys_encode(const struct skv_mn_keys *k, uint8_t *out);
bool skv_mn_keys_decode(const uint8_t *in, size_t n, struct skv_mn_keys *out);

/* Name of the node's local socket in Linux's abstract name space, without its leading NUL: it
 * disappears with the process, and the epoch in it keeps any other process's apart. */
#define SKV_MN_LOCAL_MAX 100u
void skv_mn_local_name(const char *node, uint64_t epoch, char out[SKV_MN_LOCAL_MAX]);

/* Everything a client needs to use the node's local socket, as sent: no padding. */
#define SKV_MN_PLACE 16u
#define SKV_MN_TICKET 32u
#define SKV_MN_NONCE 32u
struct skv_mn_pass {
	uint8_t place[SKV_MN_PLACE];   /* where the name of the socket is the node's */
	uint8_t ticket[SKV_MN_TICKET]; /* no secret */
	uint8_t key[SKV_MAC];
};
/* This process's host and network name space, in which names of local sockets are unique. False:
 * /proc does not tell. */
bool skv_mn_place(uint8_t out[SKV_MN_PLACE]);
/* The proof of the node, or of the client, that it knows the key: for these two nonces only, the
 * client's first. */
void skv_mn_prove(const uint8_t key[SKV_MAC], bool node, const uint8_t nonces[2 * SKV_MN_NONCE],
		  uint8_t out[SKV_MAC]);

struct skv_mn_device {
	char name[64];
	char gid[40]; /* of its first port, as an IPv6 address */
};

/* GET / */
struct skv_memory_node {
	const char *service, *version; /* not read */
	const char *name;
	uint64_t epoch;        /* random, of this start of the node; never 0 */
	uint32_t port;         /* of the data protocol, at the address of the HTTP port */
	const char *storage;   /* uuid as text; "" = none yet */
	uint64_t total_bytes;
	uint64_t free_bytes;
	uint64_t page_bytes;
	uint32_t slabs;
	uint32_t tcp, local;   /* connections */
	uint32_t queue_pairs;  /* of TCP connections that move their bytes by RDMA */
	uint32_t rdma_port;    /* of rdma_cm; 0: no RDMA */
	const struct skv_mn_device *devices;
	uint32_t n_devices;
	uint64_t writing_ms;   /* age of the oldest write that has not ended; 0 = none */
};
void skv_mn_write_about(struct skv_buf *out, const struct skv_memory_node *n);
/* Texts are allocated in `a`. SKV_E_INVALID: not a memory node. */
int skv_mn_read_about(struct skv_arena *a, const char *text, size_t n, struct skv_memory_node *out,
		      struct skv_error *err);

#endif
