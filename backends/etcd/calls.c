/*
 * calls.c - etcd's calls that have one answer: operations and compaction.
 *
 * Each encodes its request, runs it and decodes the answer on its caller's thread.
 */
#include <string.h>

#include "internal.h"

static const struct etcd_method op_method[] = {
	[SKV_ETCD_RANGE] = { .path = "/etcdserverpb.KV/Range" },
	[SKV_ETCD_PUT] = { .path = "/etcdserverpb.KV/Put" },
	[SKV_ETCD_DELETE] = { .path = "/etcdserverpb.KV/DeleteRange" },
	[SKV_ETCD_TXN] = { .path = "/etcdserverpb.KV/Txn" },
};

static int malformed(bool writes, struct skv_error *err)
{
	return skv_fail(err, writes ? SKV_E_UNKNOWN_OUTCOME : SKV_E_STORE_IO, "store",
			"etcd's answer is malformed");
}

static uint64_t read_revision(struct skv_etcd *c)
{
	uint64_t revision;

	skv_mutex_lock(&c->lock);
	revision = c->revision;
	skv_mutex_unlock(&c->lock);
	return revision;
}

static int run_op(struct skv_etcd *c, uint32_t timeout_ms, const struct skv_etcd_op *op,
		  struct skv_etcd_answer *a, struct skv_error *err)
{
	struct etcd_call *call = etcd_call_new(c, &op_method[op->kind], err);
	const uint64_t least = op->serializable ? 0 : read_revision(c);
	struct etcd_header header;
	struct skv_rd message;
	bool writes;
	int rc;

	if (!call)
		return err ? err->status : SKV_E_NOMEM;
	if (!etcd_put_op(&call->out, op, 0, &call->writes)) {
		skv_mutex_lock(&c->lock);
		etcd_call_free_locked(c, call);
		skv_mutex_unlock(&c->lock);
		return skv_fail(err, SKV_E_TOO_LARGE, "store",
				"transactions within more than %u transactions", SKV_ETCD_DEPTH);
	}
	writes = call->writes;
	rc = etcd_call_run(c, call, timeout_ms, &a->bytes, &message, err);
	if (rc != SKV_OK)
		return rc;
	if (!etcd_find_header(message, &header) ||
	    !etcd_get_result(op->kind, message, 0, &a->result))
		return malformed(writes, err);
	a->revision = header.revision;
	return etcd_check_history(c, header.cluster_id, header.revision, least, err);
}

int skv_etcd_run_within(struct skv_etcd *c, uint32_t timeout_ms, const struct skv_etcd_op *op,
			struct skv_etcd_answer *a, struct skv_error *err)
{
	struct skv_etcd_answer mine = { 0 };
	struct skv_error why = { 0 };
	int rc;

	assert(timeout_ms > 0 && op->kind <= SKV_ETCD_TXN);
	rc = run_op(c, timeout_ms, op, a ? a : &mine, &why);
	if (rc != SKV_OK && err)
		*err = why;
	skv_etcd_answer_free(&mine);
	return rc;
}

int skv_etcd_run(struct skv_etcd *c, const struct skv_etcd_op *op, struct skv_etcd_answer *a,
		 struct skv_error *err)
{
	return skv_etcd_run_within(c, c->timeout_ms, op, a, err);
}

/* ---- compaction ------------------------------------------------------------------------------ */

int etcd_exchange(struct skv_etcd *c, uint32_t timeout_ms, struct etcd_exchange *x,
		  struct skv_error *err)
{
	struct skv_error why = { 0 };
	struct etcd_call *call = etcd_call_new(c, x->method, &why);
	struct skv_buf bytes = { 0 };
	struct skv_rd message;
	struct pb_field f;
	int rc = why.status;

	if (call) {
		if (x->put)
			x->put(&call->out, x->ctx);
		rc = etcd_call_run(c, call, timeout_ms, &bytes, &message, &why);
	}
	if (rc != SKV_OK) {
		if (err)
			*err = why;
		return rc;
	}
	etcd_find_header(message, &x->header); /* a defragmentation's answer has none */
	while (pb_next(&message, &f))
		if (x->get)
			x->get(x->out, &f);
	if (message.failed)
		rc = malformed(x->method->writes, err);
	else if (x->header.cluster_id)
		rc = etcd_check_history(c, x->header.cluster_id, 0, 0, err);
	skv_buf_destroy(&bytes);
	return rc;
}

static void put_revision(struct skv_buf *b, const void *revision)
{
	etcd_pb_number(b, 1, *(const uint64_t *)revision);
	etcd_pb_number(b, 2, 1); /* physical: space is free when the call returns */
}

int skv_etcd_compact(struct skv_etcd *c, uint64_t revision, struct skv_error *err)
{
	static const struct etcd_method m = { .path = "/etcdserverpb.KV/Compact", .writes = true };
	struct etcd_exchange x = { .method = &m, .put = put_revision, .ctx = &revision };

	return etcd_exchange(c, c->timeout_ms, &x, err);
}
