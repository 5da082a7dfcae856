/*
 * messages.c - etcd's messages in protobuf's binary form, written and read field by field.
 *
 * Field numbers are those of etcd's public rpc.proto and kv.proto (API v3), named beside each use.
 * Lengths of submessages are written as varints of five bytes, which every reader takes, so nothing
 * is encoded twice. Values that are read point into the answer. Stateless; any thread.
 */
#include <assert.h>
#include <string.h>

#include "internal.h"

#define LENGTH 5u /* bytes of a length that is filled in later */

/* ---- writing --------------------------------------------------------------------------------- */

size_t etcd_pb_begin(struct skv_buf *b, uint32_t number)
{
	static const uint8_t zeros[LENGTH];

	skv_put_varint(b, (uint64_t)number << 3 | PB_BYTES);
	skv_put_bytes(b, zeros, sizeof zeros);
	return b->len;
}

void etcd_pb_end(struct skv_buf *b, size_t at)
{
	size_t n = b->len - at;

	if (b->failed)
		return;
	assert(at >= LENGTH && n >> 7 * LENGTH == 0);
	for (size_t i = 0; i < LENGTH; i++, n >>= 7)
		b->data[at - LENGTH + i] = (uint8_t)((n & 0x7f) | (i + 1 < LENGTH ? 0x80 : 0));
}

void etcd_pb_bytes(struct skv_buf *b, uint32_t number, struct skv_etcd_bytes v)
{
	if (v.n > 0)
		pb_put_bytes(b, number, v.p, v.n);
}

void etcd_pb_number(struct skv_buf *b, uint32_t number, uint64_t v)
{
	if (v > 0)
		pb_put_number(b, number, v);
}

static void put_range(struct skv_buf *b, const struct skv_etcd_op *op)
{
	etcd_pb_bytes(b, 1, op->key);
	etcd_pb_bytes(b, 2, op->end);
	etcd_pb_number(b, 3, op->limit);
	etcd_pb_number(b, 4, op->revision);
	etcd_pb_number(b, 7, op->serializable);
	etcd_pb_number(b, 8, op->keys_only);
	etcd_pb_number(b, 9, op->count_only);
}

static void put_compare(struct skv_buf *b, const struct skv_etcd_compare *t)
{
	static const uint32_t field[] = {
		[SKV_ETCD_VERSION] = 4, [SKV_ETCD_CREATE] = 5, [SKV_ETCD_MOD] = 6,
		[SKV_ETCD_VALUE] = 7
	};

	etcd_pb_number(b, 1, t->relation);
	etcd_pb_number(b, 2, t->target);
	etcd_pb_bytes(b, 3, t->key);
	/* of a oneof: written even if it is 0 or empty */
	if (t->target == SKV_ETCD_VALUE)
		pb_put_bytes(b, field[t->target], t->value.n ? t->value.p : "", t->value.n);
	else
		pb_put_number(b, field[t->target], t->number);
	etcd_pb_bytes(b, 64, t->end);
}

/* RequestOp: the same numbers as ResponseOp. */
static const uint32_t op_field[] = {
	[SKV_ETCD_RANGE] = 1, [SKV_ETCD_PUT] = 2, [SKV_ETCD_DELETE] = 3, [SKV_ETCD_TXN] = 4
};

static bool put_ops(struct skv_buf *b, uint32_t number, const struct skv_etcd_op *op, size_t n,
		    unsigned depth, bool *writes)
{
	for (size_t i = 0; i < n; i++) {
		const size_t outer = etcd_pb_begin(b, number);
		const size_t inner = etcd_pb_begin(b, op_field[op[i].kind]);

		if (!etcd_put_op(b, &op[i], depth, writes))
			return false;
		etcd_pb_end(b, inner);
		etcd_pb_end(b, outer);
	}
	return true;
}

static bool put_txn(struct skv_buf *b, const struct skv_etcd_txn *t, unsigned depth, bool *writes)
{
	if (depth >= SKV_ETCD_DEPTH)
		return false;
	for (size_t i = 0; i < t->n_compare; i++) {
		const size_t at = etcd_pb_begin(b, 1);

		put_compare(b, &t->compare[i]);
		etcd_pb_end(b, at);
	}
	return put_ops(b, 2, t->then, t->n_then, depth + 1, writes) &&
	       put_ops(b, 3, t->otherwise, t->n_otherwise, depth + 1, writes);
}

bool etcd_put_op(struct skv_buf *b, const struct skv_etcd_op *op, unsigned depth, bool *writes)
{
	*writes |= op->kind == SKV_ETCD_PUT || op->kind == SKV_ETCD_DELETE;
	switch (op->kind) {
	case SKV_ETCD_RANGE:
		put_range(b, op);
		return true;
	case SKV_ETCD_PUT:
		etcd_pb_bytes(b, 1, op->key);
		etcd_pb_bytes(b, 2, op->value);
		return true;
	case SKV_ETCD_DELETE:
		etcd_pb_bytes(b, 1, op->key);
		etcd_pb_bytes(b, 2, op->end);
		return true;
	case SKV_ETCD_TXN:
		assert(op->txn);
		return put_txn(b, op->txn, depth, writes);
	}
	assert(!"a kind of operation");
	return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

void etcd_get_text(const struct pb_field *f, char *out, size_t size)
{
	const size_t n = f->n < size ? f->n : size - 1;

	assert(size > 0);
	if (n > 0)
		memcpy(out, f->p, n);
	out[n] = '\0';
}

bool etcd_get_header(const uint8_t *p, size_t n, struct etcd_header *out)
{
	struct skv_rd r = skv_rd_make(p, n);
	struct pb_field f;

	*out = (struct etcd_header){ 0 };
	while (pb_next(&r, &f)) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == 1)
			out->cluster_id = f.v;
		else if (f.number == 2)
			out->member_id = f.v;
		else if (f.number == 3)
			out->revision = f.v;
		else if (f.number == 4)
			out->raft_term = f.v;
	}
	return !r.failed;
}

bool etcd_find_header(struct skv_rd message, struct etcd_header *out)
{
	struct pb_field f;

	while (pb_next(&message, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			return etcd_get_header(f.p, f.n, out);
	return false;
}

bool etcd_get_kv(const uint8_t *p, size_t n, struct skv_etcd_kv *out)
{
	struct skv_rd r = skv_rd_make(p, n);
	struct pb_field f;

	*out = (struct skv_etcd_kv){ .key = { "", 0 }, .value = { "", 0 } };
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES)
			out->key = (struct skv_etcd_bytes){ f.p, f.n };
		else if (f.number == 5 && f.wire == PB_BYTES)
			out->value = (struct skv_etcd_bytes){ f.p, f.n };
		else if (f.number == 2 && f.wire == PB_VARINT)
			out->create_revision = f.v;
		else if (f.number == 3 && f.wire == PB_VARINT)
			out->mod_revision = f.v;
		else if (f.number == 4 && f.wire == PB_VARINT)
			out->version = f.v;
	}
	return !r.failed && out->key.n > 0;
}

static const uint32_t list_field[] = { [SKV_ETCD_RANGE] = 2, [SKV_ETCD_TXN] = 3 };

/* ResponseOp: one member of its oneof. */
static bool get_response_op(const uint8_t *p, size_t n, unsigned depth, struct skv_etcd_result *out)
{
	struct skv_rd r = skv_rd_make(p, n);
	struct pb_field f;

	if (!pb_next(&r, &f) || f.wire != PB_BYTES)
		return false;
	for (unsigned kind = SKV_ETCD_RANGE; kind <= SKV_ETCD_TXN; kind++)
		if (f.number == op_field[kind])
			return etcd_get_result(kind, skv_rd_make(f.p, f.n), depth, out);
	return false;
}

static bool check_element(enum skv_etcd_kind kind, const struct pb_field *f, unsigned depth)
{
	struct skv_etcd_result ignored;
	struct skv_etcd_kv kv;

	if (kind == SKV_ETCD_RANGE)
		return etcd_get_kv(f->p, f->n, &kv);
	return depth < SKV_ETCD_DEPTH && get_response_op(f->p, f->n, depth + 1, &ignored);
}

bool etcd_get_result(enum skv_etcd_kind kind, struct skv_rd message, unsigned depth,
		     struct skv_etcd_result *out)
{
	const bool lists = kind == SKV_ETCD_RANGE || kind == SKV_ETCD_TXN;
	struct pb_field f;

	*out = (struct skv_etcd_result){ .kind = kind, .at = message };
	while (pb_next(&message, &f)) {
		if (f.wire == PB_BYTES && lists && f.number == list_field[kind]) {
			if (!check_element(kind, &f, depth))
				return false;
		} else if (f.wire != PB_VARINT) {
			continue;
		} else if (kind == SKV_ETCD_RANGE && f.number == 3) {
			out->more = f.v != 0;
		} else if (kind == SKV_ETCD_RANGE && f.number == 4) {
			out->count = f.v;
		} else if (kind == SKV_ETCD_DELETE && f.number == 2) {
			out->count = f.v;
		} else if (kind == SKV_ETCD_TXN && f.number == 2) {
			out->succeeded = f.v != 0;
		}
	}
	return !message.failed;
}

static bool next_element(struct skv_etcd_result *r, enum skv_etcd_kind kind, struct pb_field *f)
{
	if (r->kind != kind)
		return false;
	while (pb_next(&r->at, f))
		if (f->number == list_field[kind] && f->wire == PB_BYTES)
			return true;
	return false;
}

bool skv_etcd_next_kv(struct skv_etcd_result *r, struct skv_etcd_kv *out)
{
	struct pb_field f;

	return next_element(r, SKV_ETCD_RANGE, &f) && etcd_get_kv(f.p, f.n, out);
}

bool skv_etcd_next_result(struct skv_etcd_result *r, struct skv_etcd_result *out)
{
	struct pb_field f;

	return next_element(r, SKV_ETCD_TXN, &f) && get_response_op(f.p, f.n, 1, out);
}
