/*
 * status.c - the meaning of etcd's answers: whether a call was executed, and the remedy.
 *
 * etcd tells its errors apart by text; gRPC's codes group them. Stateless; any thread.
 */
#include <string.h>

#include "internal.h"

enum { OK = 0, INVALID_ARGUMENT = 3, NOT_FOUND = 5, PERMISSION_DENIED = 7, FAILED_PRECONDITION = 9,
       OUT_OF_RANGE = 11, UNIMPLEMENTED = 12 };

/* The first row whose text occurs in the server's. */
static const struct meaning {
	const char *text;
	enum etcd_verdict verdict;
	int status;
	const char *remedy;
} meanings[] = {
	{ "no leader", ETCD_LEAVE, SKV_E_STORE_IO,
	  "more than half of the cluster's members must run and reach each other" },
	{ "not supported for learner", ETCD_LEAVE, SKV_E_STORE_IO,
	  "this member does not vote yet: name others in the endpoints" },
	{ "too many requests", ETCD_AGAIN, SKV_E_STORE_IO, "etcd is overloaded: see its disk" },
	{ "database space exceeded", ETCD_FINAL, SKV_E_STORE_FULL,
	  "compact and defragment every member, then lower the alarm (etcdctl alarm disarm), or "
	  "raise --quota-backend-bytes first" },
	{ "request is too large", ETCD_FINAL, SKV_E_TOO_LARGE,
	  "raise --max-request-bytes of every member" },
	{ "received message larger than max", ETCD_FINAL, SKV_E_TOO_LARGE,
	  "raise --max-request-bytes of every member" },
	{ "too many operations", ETCD_FINAL, SKV_E_TOO_LARGE,
	  "raise --max-txn-ops of every member" },
	{ "has been compacted", ETCD_FINAL, SKV_E_CONFLICT, "list again" },
	{ "corrupt", ETCD_FINAL, SKV_E_CORRUPT,
	  "its members differ: replace the wrong one, then lower the alarm" },
	{ "permission denied", ETCD_FINAL, SKV_E_FORBIDDEN,
	  "grant the user a role that may read and write these keys" },
	{ "invalid user ID or password", ETCD_FINAL, SKV_E_FORBIDDEN,
	  "user or password is wrong" },
	{ "invalid auth token", ETCD_LOGIN, SKV_E_FORBIDDEN, "the login is not valid any more" },
	{ "auth store is old", ETCD_LOGIN, SKV_E_FORBIDDEN, "the login is not valid any more" },
	{ "user name is empty", ETCD_LOGIN, SKV_E_FORBIDDEN,
	  "authentication is on: a user and a password are needed" },
};

enum etcd_verdict etcd_judge_text(const struct skv_etcd *c, int grpc, const char *text,
				  struct skv_error *err)
{
	for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
		const struct meaning *m = &meanings[i];

		if (!strstr(text, m->text))
			continue;
		skv_fail(err, m->status, "store", "%.150s (%s)", text, m->remedy);
		return m->verdict == ETCD_LOGIN && !*c->user ? ETCD_FINAL : m->verdict;
	}
	switch (grpc) {
	case INVALID_ARGUMENT:
	case NOT_FOUND:
	case FAILED_PRECONDITION:
	case OUT_OF_RANGE:
		skv_fail(err, SKV_E_INVALID, "store", "etcd refuses the call: %.150s", text);
		return ETCD_FINAL;
	case PERMISSION_DENIED:
		skv_fail(err, SKV_E_FORBIDDEN, "store", "etcd refuses the call: %.150s", text);
		return ETCD_FINAL;
	case UNIMPLEMENTED:
		skv_fail(err, SKV_E_STORE_IO, "store", "%.120s (etcd 3.4 or later is needed)",
			 text);
		return ETCD_FINAL;
	default:
		skv_fail(err, SKV_E_STORE_IO, "store", "etcd failed (gRPC status %d): %.150s", grpc,
			 text);
		return ETCD_UNKNOWN;
	}
}

enum etcd_verdict etcd_judge(const struct skv_etcd *c, const struct etcd_call *call,
			     struct skv_error *err)
{
	if (call->too_long) {
		skv_fail(err, SKV_E_TOO_LARGE, "store",
			 "the answer is longer than %zu MiB: ask for fewer keys at once",
			 SKV_ETCD_ANSWER_MAX >> 20);
		return call->writes ? ETCD_UNKNOWN : ETCD_FINAL;
	}
	if (call->lost) { /* the reason may be another call's answer, and nothing about this one */
		skv_fail(err, SKV_E_STORE_IO, "store", "the connection ended: %.160s",
			 call->message);
		return ETCD_UNKNOWN;
	}
	if (call->grpc > OK)
		return etcd_judge_text(c, call->grpc, call->message, err);
	if (call->grpc == OK && call->http == 200)
		return ETCD_FINE;
	if (call->h2_error == NGHTTP2_REFUSED_STREAM && call->http == 0) {
		skv_fail(err, SKV_E_STORE_IO, "store", "the server took no more calls");
		return ETCD_AGAIN;
	}
	if (call->http != 0 && call->http != 200)
		skv_fail(err, SKV_E_STORE_IO, "store", "not a gRPC answer: HTTP status %u (is this "
			 "etcd's client port?)", call->http);
	else
		skv_fail(err, SKV_E_STORE_IO, "store", "the call ended without a status: %s",
			 nghttp2_http2_strerror(call->h2_error));
	return ETCD_UNKNOWN;
}
