/*
 * calls.c - etcd's calls that have one answer: operations, compaction, maintenance, members.
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

/* ---- maintenance ----------------------------------------------------------------------------- */

/* Runs a request of at most one message, which `put` (may be NULL) writes from `ctx`, and hands its
 * answer to `get`. */
struct exchange {
	const struct etcd_method *method;
	void (*put)(struct skv_buf *b, const void *ctx);
	const void *ctx;
	void (*get)(void *out, const struct pb_field *f); /* each field; may be NULL */
	void *out;
	struct etcd_header header;
};

static int exchange(struct skv_etcd *c, uint32_t timeout_ms, struct exchange *x,
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
	struct exchange x = { .method = &m, .put = put_revision, .ctx = &revision };

	return exchange(c, c->timeout_ms, &x, err);
}

static void get_status(void *ctx, const struct pb_field *f)
{
	struct skv_etcd_status *out = ctx;

	if (f->number == 2 && f->wire == PB_BYTES)
		etcd_get_text(f, out->version, sizeof out->version);
	if (f->wire != PB_VARINT)
		return;
	switch (f->number) {
	case 3: out->db_bytes = f->v; break;
	case 4: out->leader = f->v; break;
	case 5: out->raft_index = f->v; break;
	case 6: out->raft_term = f->v; break;
	case 7: out->raft_applied = f->v; break;
	case 9: out->db_bytes_used = f->v; break;
	}
}

int skv_etcd_status_get(struct skv_etcd *c, struct skv_etcd_status *out, struct skv_error *err)
{
	static const struct etcd_method m = { .path = "/etcdserverpb.Maintenance/Status",
					      .local = true };
	struct skv_etcd_status got = { 0 };
	struct exchange x = { .method = &m, .get = get_status, .out = &got };
	int rc = exchange(c, c->timeout_ms, &x, err);

	got.cluster_id = x.header.cluster_id;
	got.member_id = x.header.member_id;
	if (rc == SKV_OK)
		*out = got;
	return rc;
}

struct alarms {
	uint64_t member[64], alarm[64];
	size_t n;
};

/* AlarmMember: member 1, alarm 2. */
static void get_alarm(void *ctx, const struct pb_field *f)
{
	struct skv_rd r = skv_rd_make(f->p, f->n);
	struct alarms *all = ctx;
	struct pb_field inner;

	if (f->number != 2 || f->wire != PB_BYTES || all->n == 64)
		return;
	while (pb_next(&r, &inner)) {
		if (inner.number == 1 && inner.wire == PB_VARINT)
			all->member[all->n] = inner.v;
		else if (inner.number == 2 && inner.wire == PB_VARINT)
			all->alarm[all->n] = inner.v;
	}
	all->n++;
}

/* AlarmRequest: action 1 (2 = lower), member 2, alarm 3. */
static void put_disarm(struct skv_buf *b, const void *alarms)
{
	const struct alarms *one = alarms;

	etcd_pb_number(b, 1, 2);
	etcd_pb_number(b, 2, one->member[0]);
	etcd_pb_number(b, 3, one->alarm[0]);
}

int skv_etcd_alarms(struct skv_etcd *c, unsigned disarm, unsigned *raised, struct skv_error *err)
{
	static const struct etcd_method get = { .path = "/etcdserverpb.Maintenance/Alarm" };
	static const struct etcd_method set = { .path = "/etcdserverpb.Maintenance/Alarm",
						.writes = true };
	struct alarms all = { .n = 0 };
	struct exchange list = { .method = &get, .get = get_alarm, .out = &all };
	int rc = exchange(c, c->timeout_ms, &list, err);
	unsigned left = 0;

	for (size_t i = 0; rc == SKV_OK && i < all.n; i++) {
		const struct alarms one = { { all.member[i] }, { all.alarm[i] }, 1 };
		struct exchange x = { .method = &set, .put = put_disarm, .ctx = &one };
		const unsigned bit = all.alarm[i] < 32 ? 1u << all.alarm[i] : 0;

		if (disarm & bit)
			rc = exchange(c, c->timeout_ms, &x, err);
		else
			left |= bit;
	}
	if (rc == SKV_OK)
		*raised = left;
	return rc;
}

int skv_etcd_defragment(struct skv_etcd *c, uint32_t timeout_ms, struct skv_error *err)
{
	static const struct etcd_method m = { .path = "/etcdserverpb.Maintenance/Defragment",
					      .writes = true, .local = true };
	struct exchange x = { .method = &m };

	return exchange(c, timeout_ms, &x, err);
}

/* ---- members --------------------------------------------------------------------------------- */

struct members {
	struct skv_etcd_member *out;
	size_t room, n;
};

static void get_member(void *ctx, const struct pb_field *f)
{
	struct members *all = ctx;
	struct skv_rd r = skv_rd_make(f->p, f->n);
	struct skv_etcd_member *m;
	struct pb_field inner;

	if (f->number != 2 || f->wire != PB_BYTES)
		return;
	if (all->n++ >= all->room)
		return;
	m = &all->out[all->n - 1];
	*m = (struct skv_etcd_member){ 0 };
	while (pb_next(&r, &inner)) {
		if (inner.number == 1 && inner.wire == PB_VARINT)
			m->id = inner.v;
		else if (inner.number == 2 && inner.wire == PB_BYTES)
			etcd_get_text(&inner, m->name, sizeof m->name);
		else if (inner.number == 4 && inner.wire == PB_BYTES && !*m->client_url)
			etcd_get_text(&inner, m->client_url, sizeof m->client_url);
		else if (inner.number == 5 && inner.wire == PB_VARINT)
			m->learner = inner.v != 0;
	}
}

static void put_linearizable(struct skv_buf *b, const void *ctx)
{
	(void)ctx;
	etcd_pb_number(b, 1, 1); /* from 3.5 on */
}

int skv_etcd_members(struct skv_etcd *c, struct skv_etcd_member *out, size_t room, size_t *n,
		     struct skv_error *err)
{
	static const struct etcd_method m = { .path = "/etcdserverpb.Cluster/MemberList" };
	struct members all = { out, room, 0 };
	struct exchange x = { .method = &m, .put = put_linearizable, .get = get_member,
			      .out = &all };
	int rc = exchange(c, c->timeout_ms, &x, err);

	if (rc == SKV_OK)
		*n = all.n;
	return rc;
}
