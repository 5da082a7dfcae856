/*
 * internal.h - the gRPC server's objects: the transport, its event threads, a
 * connection, a call on it.
 *
 * A connection and its streams belong to one thread (struct grpc_loop) and are touched by it alone.
 * The one exception is a call that waits: until its completion has come through the thread's inbox,
 * its struct skv_request belongs to the core or a worker.
 */
#ifndef SKV_GRPC_INTERNAL_H
#define SKV_GRPC_INTERNAL_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include <skv/bytes.h>
#include <skv/request.h>
#include <skv/grpc.h>
#include <skv/lock.h>
#include <skv/peers.h>
#include <skv/service.h>

#include "io.h"
#include "wheel.h"

#define HEADER_LIST_MAX (16u * 1024)   /* announced; a call over it is refused */
#define HEADER_LIST_CUT (64u * 1024)   /* over it the stream is reset unread */
#define STREAM_WINDOW (1u << 20)       /* bytes of one request on their way */
#define CONNECTION_WINDOW (4u << 20)   /* the same of all requests of a connection */
#define READ_BYTES (64u * 1024)
#define OUT_BYTES (256u * 1024)        /* frames made ahead of the socket */
#define KEEP_BYTES (64u * 1024)        /* buffers up to this are kept for the next call */
#define OWN_MESSAGE_MAX (16u * 1024)   /* a question to health or reflection */
#define OWN_BYTES (256u * 1024) /* unread answers of health and reflection on a connection */
#define SLOW_BYTES_PER_MS 64u          /* each so many bytes moved buy a call 1 ms more */
#define CONTROL_BURST 2000u            /* control frames at once */
#define CONTROL_PER_S 500u             /* control frames for longer */
#define WATCH_MS 200u                  /* how often a change of health is looked for */
#define PREFIX 5                       /* bytes before each gRPC message */
#define LOOPS_MAX 256

enum grpc_code {
	GRPC_OK = 0, GRPC_CANCELLED = 1, GRPC_UNKNOWN = 2, GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4, GRPC_NOT_FOUND = 5, GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12, GRPC_INTERNAL = 13, GRPC_UNAVAILABLE = 14,
};

struct grpc_loop;
struct grpc_conn;
struct grpc_stream;

/* A method. Either an operation of an API, or a handler of its own that sees each message and
 * answers with skv_grpc_send and skv_grpc_end. */
struct grpc_method {
	const char *path;              /* "/slabkv.v1.SlabKV/Lookup" */
	const struct skv_api *api;     /* of the route */
	const struct skv_route *route; /* NULL: the functions */
	void (*message)(struct grpc_stream *st, const uint8_t *p, size_t n);
	void (*half_closed)(struct grpc_stream *st); /* the client sends no more; may be NULL */
	/* Called when the stream is over, however it ended; may be NULL. */
	void (*closed)(struct grpc_stream *st);
};

struct skv_grpc {
	struct skv_port_options o; /* strings owned */
	struct skv_service *s;
	struct skv_bound bound; /* fd -1 once closed */
	struct skv_peers peers; /* the connected peers */
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	struct grpc_method *methods;
	uint32_t n_methods;
	struct grpc_loop *loops;
	uint32_t n_loops;
	uint32_t next_loop; /* loop 0 only: the loop that gets the next connection */
	atomic_bool draining;
	atomic_bool stopping;
};

/* An accepted socket and whose it is: it has entered g->peers. */
struct grpc_socket {
	int fd;
	uint8_t address[SKV_ADDRESS_BYTES];
};

struct grpc_loop {
	struct skv_grpc *g;
	pthread_t thread;
	int epoll;
	int wake; /* eventfd */
	struct skv_mutex lock;
	struct grpc_stream *completed; /* protected by lock, newest first */
	struct grpc_socket *sockets;   /* protected by lock: accepted, not taken over yet */
	size_t n_sockets, cap_sockets; /* protected by lock */

	/* The thread's own. */
	struct wheel wheel;
	struct grpc_conn *conns;
	struct grpc_stream *watchers; /* of health, see health.c */
	struct grpc_stream *spare;    /* streams for the next calls, linked by `next` */
	uint32_t n_spare;
	struct timer watch_timer;
	struct timer accept_timer; /* loop 0: descriptors ran out */
	uint64_t now_ms;           /* of this round */
	/* skv_thread of the thread; of who destroys the loop, once that has ended. */
	uintptr_t owner;
	bool drained;              /* has sent GOAWAY */
	uint8_t *input;            /* READ_BYTES */
};

/* Asserts the thread that alone touches the loop's connections and streams. */
#define ASSERT_LOOP_THREAD(l) assert((l)->owner == skv_thread())

struct grpc_conn {
	struct grpc_loop *loop;
	struct grpc_conn *prev, *next;
	struct grpc_io *io;
	struct skv_tls_peer *peer; /* NULL: not looked at yet */
	nghttp2_session *h2;
	struct grpc_stream *streams;
	uint32_t n_streams;
	struct skv_buf out; /* frames; those from out_at on are still to be written */
	size_t out_at;
	struct timer timer;
	uint64_t since_ms;  /* idle, or waiting for the socket, since */
	uint64_t moved;     /* bytes written since then */
	struct skv_pace pace; /* of the client, while the socket is full */
	uint8_t address[SKV_ADDRESS_BYTES]; /* as skv_hold_address tells it */
	uint64_t control_ms; /* of the bucket */
	uint32_t control;    /* control frames that are still allowed */
	size_t own_bytes;    /* in `wire` of its streams */
	unsigned events;     /* epoll's */
	bool broken;         /* to be closed at the end of the round */
	bool leaving;        /* GOAWAY was sent */
	bool in_nghttp2;     /* callbacks of nghttp2 may be running */
};

struct grpc_stream {
	struct skv_request c;
	struct grpc_loop *loop;
	struct grpc_conn *conn; /* NULL: the client has disconnected */
	struct grpc_stream *prev, *next;
	struct grpc_stream *completed_next;
	int32_t id;
	const struct grpc_method *method;
	struct timer timer;
	uint64_t deadline_ms; /* 0: none */
	uint64_t since_ms;    /* start of the client's turn */
	struct skv_pace pace; /* of its message, or of its taking the answer */

	/* Header. */
	uint32_t head_bytes;
	/* in the call's arena */
	const char *path, *authorization, *route_wish;
	uint16_t http;    /* not a gRPC request: answer this HTTP status */
	uint8_t problem;  /* enum grpc_code found in the header, GRPC_OK = none */
	const char *problem_text;
	bool is_post, is_grpc;
	bool has_head; /* the header is complete */

	/* Messages. */
	uint8_t prefix[PREFIX];
	uint8_t n_prefix;
	uint32_t want;      /* bytes of the message being received */
	struct skv_buf body;
	bool got_message;
	bool ended_in;      /* the client sends no more */

	/* Answer. */
	uint8_t head[PREFIX];
	uint8_t head_at;    /* PREFIX = all sent */
	const uint8_t *data;
	size_t n_data, data_at;
	struct skv_buf wire; /* framed messages of a method with its own handler */
	bool begun;         /* response headers are submitted */
	bool deferred;      /* nothing to send now */
	bool answered;      /* the status is known, nothing more will be sent */
	uint8_t code;       /* enum grpc_code */
	/* NULL: none; see reply.c */
	const char *trailer_message, *trailer_code, *trailer_field;
	char text[SKV_ENCODED_MAX]; /* of trailer_message */
	char field[SKV_FIELD_MAX];

	bool pending; /* with the core or a worker */

	/* health.c */
	struct grpc_stream *watch_prev, *watch_next;
	bool watching;
	bool watch_known;
	int watch_last;
};

/* ---- loop.c: event threads ------------------------------------------------------------------- */

int skv_grpc_loops_start(struct skv_grpc *g, struct skv_error *err);
void skv_grpc_loops_stop(struct skv_grpc *g);
void skv_grpc_loop_wake(struct grpc_loop *l);
/* Called once by the core or a worker: the stream's thread goes on with it. */
void skv_grpc_completed(void *ctx, int status);

/* The connection of a socket is over, closed by whoever calls. */
void skv_grpc_socket_left(struct skv_grpc *g, const uint8_t address[SKV_ADDRESS_BYTES]);

/* ---- conn.c: HTTP/2 -------------------------------------------------------------------------- */

int skv_grpc_h2_init(struct skv_grpc *g, struct skv_error *err);
/* Takes over an accepted socket. */
void skv_grpc_conn_open(struct grpc_loop *l, const struct grpc_socket *s);
void skv_grpc_conn_close(struct grpc_conn *c);
/* Handles epoll's events. May close the connection. */
void skv_grpc_conn_event(struct grpc_conn *c, unsigned events);
/* Writes pending output. May close the connection: never call it in a callback of nghttp2. */
void skv_grpc_conn_flush(struct grpc_conn *c);
void skv_grpc_conn_leave(struct grpc_conn *c);

/* ---- stream.c: one call ---------------------------------------------------------------------- */

struct grpc_stream *skv_grpc_stream_begin(struct grpc_conn *c, int32_t id);
/* The client or we have closed it; it is released when nothing of it waits any more. */
void skv_grpc_stream_closed(struct grpc_stream *st);
void skv_grpc_stream_free(struct grpc_stream *st);
/* Something is over: what the client may take its time for begins now. */
void skv_grpc_client_turn(struct grpc_stream *st);
/* Takes a header field; false: the list is far too long. */
bool skv_grpc_stream_header(struct grpc_stream *st, const uint8_t *name, size_t n_name,
			    const uint8_t *value, size_t n_value);
void skv_grpc_stream_head(struct grpc_stream *st);
void skv_grpc_stream_data(struct grpc_stream *st, const uint8_t *p, size_t n);
void skv_grpc_stream_half_closed(struct grpc_stream *st);
/* The core or a worker is done with it. */
void skv_grpc_stream_done(struct grpc_stream *st);
/* Every WATCH_MS while there are watchers. */
void skv_grpc_health_look(struct grpc_loop *l);

/* ---- head.c ---------------------------------------------------------------------------------- */

/* "100m" -> milliseconds, rounded up; false: not a grpc-timeout. */
bool skv_grpc_timeout(const char *s, size_t n, uint64_t *ms);

/* ---- reply.c: answers ------------------------------------------------------------------------ */

/* Ends the call with a status that the transport decided. */
void skv_grpc_fail(struct grpc_stream *st, enum grpc_code code, int status, const char *message);
/* Ends the call with c.status: the answer, or the error. */
void skv_grpc_reply(struct grpc_stream *st);
/* Sends another message of a method with its own handler; copied. */
void skv_grpc_send(struct grpc_stream *st, const void *p, size_t n);
/* The end of such a call. */
void skv_grpc_end(struct grpc_stream *st);
/* Not gRPC at all: an HTTP status without a body. */
void skv_grpc_not_grpc(struct grpc_stream *st, unsigned http);

/* ---- methods.c ------------------------------------------------------------------------------- */

int skv_grpc_methods_init(struct skv_grpc *g, struct skv_error *err);
const struct grpc_method *skv_grpc_method_find(const struct skv_grpc *g, const char *path);

/* ---- health.c, reflect.c --------------------------------------------------------------------- */

extern const struct grpc_method skv_grpc_health_methods[2];
extern const struct grpc_method skv_grpc_reflect_method;
/* The services that are named in the descriptors: for health and reflection. */
bool skv_grpc_service_known(const struct skv_apis *apis, const char *name, size_t n);
/* The FileDescriptorSet of health and reflection, made at build time. */
const uint8_t *skv_grpc_protoset(size_t *n);

#endif
