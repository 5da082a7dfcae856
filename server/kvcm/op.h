/*
 * op.h - an operation of KVCM's API: its row, and the environment of its functions.
 *
 * A call: the body becomes a message (api.c) -> checks in the peer's order (op.c) -> run -> perhaps
 * the core calls back -> write -> the answer with its header (api.c). An operation has one row in
 * ops_table.h and one or two functions; it never sees bytes, wires or headers.
 */
#ifndef KVCM_OP_H
#define KVCM_OP_H

#include <stdatomic.h>

#include <skv/request.h>
#include <skv/core.h>
#include <skv/kvcm_api.h>
#include <skv/ops.h>
#include <skv/proto_codec.h>

#include <kvcm/admin.pb-c.h>
#include <kvcm/debug.pb-c.h>
#include <kvcm/meta.pb-c.h>

#include "faults.h"
#include "model.h"

struct kvcm_request;

/* LEADER: only the owner of the partition answers. INSTANCE: of an instance, which
 * must be there before anything else counts. FAULTS: fails when a fault is ordered for
 * it. WORKER: it may block. TENANT: of role ADMIN, for administrators of any tenant: only its own
 * instances. */
enum { KVCM_LEADER = 1, KVCM_INSTANCE = 2, KVCM_FAULTS = 4, KVCM_WORKER = 8,
       KVCM_TENANT = 16 };

struct kvcm_op {
	const char *name; /* "GetCacheLocation": in messages, metrics, faults */
	const ProtobufCMessageDescriptor *request, *response;
	unsigned flags;
	/* Checks k->req and does the work: SKV_OK, SKV_PENDING (the core calls k->c->done), or an
	 * error with k->c->err filled. */
	int (*run)(struct kvcm_request *k);
	/* After success: fills k->res. SKV_OK or an error as above. NULL: run has done it. */
	int (*write)(struct kvcm_request *k);
	const char *done;   /* message of success; NULL: k->message */
	const char *failed; /* prefix of the error's text: "Failed to trim cache : "; NULL: none */
};

/* skv_request.state. */
struct kvcm_request {
	struct skv_request *c;
	const struct kvcm_op *op;
	const void *req;     /* message of op->request */
	void *res;           /* message of op->response; its header is filled at the end */
	const char *trace_id;
	int code;            /* ErrorCode to answer instead of the error's own; 0: none */
	const char *message; /* to answer instead of the row's; NULL: none */
	bool unread;         /* the body is not a message */
	struct skv_proto_notes *notes; /* of a JSON body, for operations on workers; NULL: none */
	void *own;           /* of the operation, between run and write */
	/* Fields of res that are written from elsewhere; field 0: unused. */
	struct skv_proto_splice splice[2];
};

#define KVCM_CAMPAIGN_DELAY_MS 10000u
#define KVCM_LEASES 1024

struct kvcm {
	struct skv_api api;
	struct kvcm_model model;
	const KvcmAdmin__NodeEndpoint *own;
	struct kvcm_faults faults;
	uint32_t transfer_ms;
	bool check_writes;
	/* How long this manager leaves the lead to others after leaderDemote. */
	atomic_uint campaign_delay_ms;
	atomic_uint_fast64_t leases[KVCM_LEASES]; /* lease.c */
};

/* The health that checkHealth and /api/healthy report. Healthy: a leader that can work, or a
 * follower that waits for its turn or is just getting it. */
struct kvcm_health {
	bool leads; /* the node serves: clients may come */
	bool healthy;
};
struct kvcm_health kvcm_health(struct skv_service *s);

struct kvcm *kvcm_of(const struct kvcm_request *k);
struct skv_core *kvcm_core(const struct kvcm_request *k);
struct skv_cluster *kvcm_cluster(const struct kvcm_request *k);

/* ---- answers of an operation ----------------------------------------------------------------- */

/* A required field is not there, or cannot be: the peer's message for it. */
int kvcm_missing(struct kvcm_request *k, const char *field);
int kvcm_nomem(struct kvcm_request *k);
/* The error that is in k->c->err, but with another ErrorCode. Returns rc. */
int kvcm_with_code(struct kvcm_request *k, int rc, int code);
/* Formats in the call's arena; "" without memory. */
char *kvcm_text(struct kvcm_request *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* ErrorCode of a status. */
int kvcm_code(int status);

/* Returns the text of a core error for clients (words.c): never NULL. */
const char *kvcm_words(const struct kvcm_request *k, int status);

/* ---- the machine (op.c), for api.c ----------------------------------------------------------- */

/* Checks in the peer's order, then runs. */
int kvcm_op_run(struct kvcm_request *k);
/* The text field `name` of the request, "" if it has none. */
const char *kvcm_field(const struct kvcm_request *k, const char *name);
/* Return the code and message of the answer's header, for the result `status` of the call. */
int kvcm_answer_code(const struct kvcm_request *k, int status);
const char *kvcm_answer_message(struct kvcm_request *k, int status);
/* Fills the header of k->res. False: no memory. */
bool kvcm_put_header(struct kvcm_request *k, int code, const char *message);

#endif
