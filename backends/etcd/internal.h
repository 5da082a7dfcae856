/*
 * internal.h - the etcd client's objects: a client, its connection, a call.
 *
 * A call belongs to the client's thread while it is RUNNING, and to its caller otherwise. A caller
 * whose deadline passes leaves it to the thread (`abandoned`). Members that the lock protects are
 * marked; all others of a client and its connection belong to the thread. The lock is never held
 * across I/O.
 */
#ifndef SKV_ETCD_INTERNAL_H
#define SKV_ETCD_INTERNAL_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include <skv/etcd.h>
#include <skv/lock.h>
#include <skv/pb.h>

#define ETCD_PREFIX 5u               /* bytes before each gRPC message */
#define ETCD_NEVER UINT64_MAX
#define ETCD_TOKEN_MAX 4096u         /* bytes of a token; JSON web tokens are long */
#define ETCD_MESSAGE_MAX 200u        /* of a server's error texts */

/* A method of etcd's services. */
struct etcd_method {
	const char *path;
	bool writes; /* repeated only if it certainly was not executed */
	bool login;  /* sent without a token */
	bool local;  /* of one member, whether it has a leader or not */
};
extern const struct etcd_method etcd_login_method;

enum etcd_state { ETCD_QUEUED, ETCD_RUNNING, ETCD_DONE };

struct etcd_call {
	struct etcd_call *prev, *next; /* in the queue (lock), or running (thread) */
	const struct etcd_method *method;
	bool writes;
	struct skv_etcd_watch *watch; /* lock: NULL once it is closed */
	bool is_watch;

	enum etcd_state state; /* lock */
	bool abandoned;        /* lock: no caller waits for the call any more */
	bool sent;             /* lock: the whole request was handed to the connection */
	size_t withheld;       /* watch: bytes that its server may not send again yet */
	struct skv_cond done;

	uint64_t not_before_us; /* waits in the queue until then */
	uint32_t tries;         /* tries that ended without a final answer */
	uint32_t token;         /* number of the token that it was sent with */
	int32_t stream;
	struct skv_buf out;     /* framed request */
	size_t out_at;
	struct skv_buf in;      /* framed answer, or a watch's unfinished message */
	bool too_long;          /* the answer is over SKV_ETCD_ANSWER_MAX */

	unsigned http;          /* status of the answer, 0: no answer */
	int grpc;               /* -1: no answer */
	uint32_t h2_error;      /* reason of the stream's end */
	bool lost; /* the connection ended before the answer: `message` gives the reason */
	char message[ETCD_MESSAGE_MAX];

	struct skv_error err;   /* the result, or why the last try failed (lock) */
};

struct etcd_conn {
	int fd; /* -1: not connected */
	struct skv_net_session *tls;
	nghttp2_session *h2;
	struct skv_buf out; /* frames; bytes from out_at on are still to be written */
	size_t out_at;
	bool wants_write;   /* the socket is full */
	bool draining;      /* no new calls: the server leaves, or has no leader */
	bool heard;         /* the server has begun to speak HTTP/2: before it nothing is sent */
	bool readable;
	bool may_ping;      /* a call was answered since the last ping: no abuse */
	uint64_t heard_us, pinged_us;
	uint64_t waits_us;  /* an answer is due since; 0: none is */
	char why[SKV_MESSAGE_MAX]; /* reason why the connection is broken; "": none */
};

struct skv_etcd {
	struct skv_net_node node[SKV_ETCD_ENDPOINTS];
	uint32_t n_node;
	struct skv_net_tls tls;
	char user[SKV_ETCD_SECRET_MAX + 1], password[SKV_ETCD_SECRET_MAX + 1];
	uint32_t timeout_ms, silent_ms, watch_silent_ms;

	struct skv_mutex lock;
	struct etcd_call *queue, *queue_last; /* lock */
	uint32_t n_calls;                     /* lock: that exist */
	bool attention;  /* lock: a running call was abandoned, or its watch wants something */
	bool stopping;   /* lock */
	uint64_t revision, cluster_id; /* lock: newest linearizable one; of the first answer */
	uint64_t lost_from, lost_to; /* lock: revisions between which etcd went back; 0: never */
	/* Lock: the reason why there is no connection; "": connected. */
	char trouble[SKV_MESSAGE_MAX];

	pthread_t thread;
	int wake; /* eventfd */
	uintptr_t owner; /* skv_thread of the thread */
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	struct etcd_conn conn;
	struct etcd_call *running;
	uint32_t at;              /* the endpoint in use, or tried next */
	uint32_t failures;        /* connections in turn that led to no answer */
	uint64_t connect_us;      /* not before */
	uint8_t *input;
	char token[ETCD_TOKEN_MAX + 1]; /* "": none */
	uint32_t token_number;    /* grows with each login */
	bool logged_in;
	struct etcd_call *login;  /* in flight */
	uint64_t login_us;        /* the next login not before: the last was refused, */
	struct skv_error login_err; /* because of this */
};

#define ASSERT_ETCD_THREAD(c) assert((c)->owner == skv_thread())

/* ---- etcd.c: clients, calls and their callers ------------------------------------------------ */

/* A call with an empty message, which etcd_call_run or the thread ends. NULL: SKV_E_NOMEM or
 * SKV_E_TOO_MANY. */
struct etcd_call *etcd_call_new(struct skv_etcd *c, const struct etcd_method *m,
				struct skv_error *err);
/* Runs it and waits. On SKV_OK its answer's message is in *message, which borrows from *bytes. The
 * call is gone. */
int etcd_call_run(struct skv_etcd *c, struct etcd_call *call, uint32_t timeout_ms,
		  struct skv_buf *bytes, struct skv_rd *message, struct skv_error *err);
void etcd_call_free_locked(struct skv_etcd *c, struct etcd_call *call) SKV_REQUIRES(c->lock);
void etcd_queue_locked(struct skv_etcd *c, struct etcd_call *call) SKV_REQUIRES(c->lock);
void etcd_unqueue_locked(struct skv_etcd *c, struct etcd_call *call) SKV_REQUIRES(c->lock);
void etcd_wake(struct skv_etcd *c);
/* gRPC's prefix of the one message of a request: not compressed, and the length. */
void etcd_set_prefix(struct skv_buf *b);
/* Checks a linearizable answer against those before it; `least`: the client's revision when the
 * call began. A client whose cluster went back refuses every later answer: newer writes may have
 * passed the lost revision, but the lost writes do not come back. */
int etcd_check_history(struct skv_etcd *c, uint64_t cluster_id, uint64_t revision, uint64_t least,
		       struct skv_error *err);

/* ---- loop.c: the client's thread ------------------------------------------------------------- */

void *etcd_loop(void *client);
/* The stream of a running call is over. */
void etcd_call_ended(struct skv_etcd *c, struct etcd_call *call);

/* ---- conn.c: one connection ------------------------------------------------------------------ */

int etcd_h2_init(struct skv_etcd *c);
/* Connects to node[at] and begins HTTP/2. False: conn.why says why not. */
bool etcd_connect(struct skv_etcd *c);
void etcd_disconnect(struct skv_etcd *c);
/* Submits a call that has none yet as a stream. */
void etcd_submit(struct skv_etcd *c, struct etcd_call *call);
/* Read, and write, as many bytes as the socket accepts. */
void etcd_receive(struct skv_etcd *c);
void etcd_send(struct skv_etcd *c);
void etcd_broken(struct skv_etcd *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- status.c: the meaning of an answer's status --------------------------------------------- */

enum etcd_verdict {
	ETCD_FINE,
	ETCD_FINAL,   /* refused, nothing was changed: again would be the same */
	ETCD_AGAIN,   /* not executed: it may be sent again */
	ETCD_LEAVE,   /* not executed, and this endpoint executes nothing now */
	ETCD_LOGIN,   /* not executed: the token is not valid any more */
	ETCD_UNKNOWN, /* the call may have been executed */
};
enum etcd_verdict etcd_judge(const struct skv_etcd *c, const struct etcd_call *call,
			     struct skv_error *err);
/* The same of a text alone, as the watch's cancel_reason. */
enum etcd_verdict etcd_judge_text(const struct skv_etcd *c, int grpc, const char *text,
				  struct skv_error *err);

/* ---- messages.c ------------------------------------------------------------------------------ */

struct etcd_header {
	uint64_t cluster_id, member_id, revision, raft_term;
};
/* A submessage of unknown length: its place for etcd_pb_end. */
size_t etcd_pb_begin(struct skv_buf *b, uint32_t number);
void etcd_pb_end(struct skv_buf *b, size_t at);
/* Nothing if it has its default, like protobuf. */
void etcd_pb_bytes(struct skv_buf *b, uint32_t number, struct skv_etcd_bytes v);
void etcd_pb_number(struct skv_buf *b, uint32_t number, uint64_t v);
/* The message of an operation. False: transactions too deep. */
bool etcd_put_op(struct skv_buf *b, const struct skv_etcd_op *op, unsigned depth, bool *writes);
bool etcd_get_header(const uint8_t *p, size_t n, struct etcd_header *out);
/* Field 1 of an answer; false: it has none, or is malformed. */
bool etcd_find_header(struct skv_rd message, struct etcd_header *out);
/* Checks all of it, so that reading it on cannot fail. */
bool etcd_get_result(enum skv_etcd_kind kind, struct skv_rd message, unsigned depth,
		     struct skv_etcd_result *out);
bool etcd_get_kv(const uint8_t *p, size_t n, struct skv_etcd_kv *out);
/* Copies as much of a text as fits. */
void etcd_get_text(const struct pb_field *f, char *out, size_t size);

/* ---- calls.c --------------------------------------------------------------------------------- */

/* A call of at most one message, which `put` (may be NULL) writes from `ctx`. */
struct etcd_exchange {
	const struct etcd_method *method;
	void (*put)(struct skv_buf *b, const void *ctx);
	const void *ctx;
	/* Reads the fields of the answer; may be NULL. */
	void (*get)(void *out, const struct pb_field *f);
	void *out;
	struct etcd_header header;
};
int etcd_exchange(struct skv_etcd *c, uint32_t timeout_ms, struct etcd_exchange *x,
		  struct skv_error *err);

/* ---- watch.c --------------------------------------------------------------------------------- */

/* Takes the whole messages out of call->in. False: one is malformed, or memory ran out. */
bool etcd_watch_take(struct skv_etcd *c, struct etcd_call *call);
/* Bytes that its server may send again; the rest is held back until the watch's reader catches up.
 *  */
size_t etcd_watch_credit(struct skv_etcd *c, struct etcd_call *call, size_t n);
/* Makes its request anew, from behind the last event that arrived. */
void etcd_watch_restart_locked(struct etcd_call *call);
/* Ends it with call->err. */
void etcd_watch_end_locked(struct etcd_call *call);
/* Called when the reader has caught up: the server may send more. */
void etcd_watch_attend(struct skv_etcd *c, struct etcd_call *call);

#endif
