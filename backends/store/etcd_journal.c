/*
 * etcd_journal.c - appends to journals in etcd.
 *
 * An append is one transaction: it compares the fence and the end of the journal, and puts the
 * bytes and the new end. Appends of any partitions that come while a transaction is under way go
 * together into the next one, sent by one of their threads; so more partitions do not mean more
 * transactions. An append of a lost partition fails the transaction for all: each of the others is
 * sent again.
 *
 * A batch above ETCD_PIECE has several pieces. All but the last are put before, each under the
 * fence; only the last one moves the end, and pieces above the end do not count.
 *
 * Any thread; one append of a partition at a time.
 */
#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include "etcd_store.h"

struct etcd_append {
	struct etcd_append *next;
	struct etcd_part *part;
	uint64_t fence;
	uint64_t end_mod; /* of the end before it */
	struct etcd_end end;
	struct skv_buf last; /* value of the last piece */
	uint32_t pieces;
	int rc;
	bool done; /* lock */
	struct skv_error err;
};

/* ---- one transaction ------------------------------------------------------------------------- */

/* The part of a transaction that belongs to one append. */
struct place {
	struct etcd_key e, n, b;
	struct skv_buf end;
};

static void plan(const struct etcd_store *s, struct etcd_append *a, struct place *p,
		 struct skv_etcd_compare compare[2], struct skv_etcd_op then[2],
		 struct skv_etcd_op otherwise[2])
{
	const uint32_t number = a->part->number;
	const struct skv_etcd_bytes e = etcd_key(s, &p->e, "e/%05u", number),
				    n = etcd_key(s, &p->n, "n/%05u", number),
				    b = etcd_key(s, &p->b, "b/%05u/%016llx/%04x", number,
						 (unsigned long long)a->end.seq, a->pieces - 1);

	assert(a->fence && a->pieces > 0);
	etcd_put_end(&p->end, &a->end);
	compare[0] = etcd_mod_is(e, a->fence);
	compare[1] = etcd_mod_is(n, a->end_mod);
	then[0] = etcd_put(b, &a->last);
	then[1] = etcd_put(n, &p->end);
	otherwise[0] = etcd_range(e);
	otherwise[0].keys_only = true;
	otherwise[1] = etcd_range(n);
}

/* The transaction was refused. Which of its appends are to blame? One of them may have been
 * executed by an earlier try (`again`); what the next owner has appended since may hide that. True:
 * it is not to blame, and may be sent again. */
static bool judge(struct etcd_append *a, struct skv_etcd_answer *answer, bool again)
{
	const struct skv_etcd_kv e = etcd_first(answer), n = etcd_first(answer);
	struct etcd_end is;

	a->rc = etcd_get_end(&n, &is, &a->err);
	if (a->rc != SKV_OK)
		return false;
	if (is.fence == a->fence && is.seq == a->end.seq &&
	    skv_key_equal(is.chain, a->end.chain) && is.before == a->end_mod) {
		a->end_mod = n.mod_revision;
		return false;
	}
	if (e.mod_revision != a->fence) {
		a->rc = (again && n.mod_revision != a->end_mod ? etcd_taken_over : etcd_fenced)(
			a->part->number, &a->err);
		return false;
	}
	if (n.mod_revision == a->end_mod)
		return true;
	a->rc = skv_fail(&a->err, SKV_E_CONFLICT, "seq", "the newest record is %llu, not the one "
			 "before %llu", (unsigned long long)is.seq, (unsigned long long)a->end.seq);
	return false;
}

static void fail_all(struct etcd_append **v, size_t n, int rc, const struct skv_error *err)
{
	for (size_t i = 0; i < n; i++) {
		v[i]->rc = rc;
		v[i]->err = *err;
	}
}

/* Sends these appends in one transaction. Returns how many are to be sent again; they are moved to
 * the front of v. */
static size_t send_group(struct etcd_store *s, struct etcd_append **v, size_t n)
{
	struct skv_etcd_compare compare[2 * ETCD_GROUP];
	struct skv_etcd_op then[2 * ETCD_GROUP], otherwise[2 * ETCD_GROUP];
	const struct skv_etcd_txn t = { compare, 2 * n, then, 2 * n, otherwise, 2 * n };
	struct place *places = skv_calloc(n, sizeof *places);
	struct skv_error err = { 0 };
	struct skv_etcd_answer answer = { 0 };
	bool again = false;
	size_t left = 0;
	int rc = SKV_OK;

	assert(n > 0 && n <= ETCD_GROUP);
	for (size_t i = 0; places && i < n; i++) {
		plan(s, v[i], &places[i], &compare[2 * i], &then[2 * i], &otherwise[2 * i]);
		if (places[i].end.failed)
			rc = etcd_no_memory(&err);
	}
	if (!places)
		rc = etcd_no_memory(&err);
	if (rc == SKV_OK)
		rc = etcd_settle(s, &t, &answer, &again, &err);
	if (rc != SKV_OK)
		fail_all(v, n, rc, &err);
	for (size_t i = 0; rc == SKV_OK && i < n; i++) {
		if (answer.result.succeeded) {
			v[i]->rc = SKV_OK;
			v[i]->end_mod = answer.revision;
		} else if (judge(v[i], &answer, again)) {
			v[left++] = v[i];
		}
	}
	for (size_t i = 0; places && i < n; i++)
		skv_buf_destroy(&places[i].end);
	skv_free(places);
	skv_etcd_answer_free(&answer);
	return left;
}

static void send_all(struct etcd_store *s, struct etcd_append **v, size_t n)
{
	struct etcd_append *again[ETCD_GROUP], *one;
	size_t left;

	memcpy(again, v, n * sizeof *v);
	left = send_group(s, again, n);
	for (size_t i = 0; i < left; i++) {
		one = again[i];
		/* The compares hold, and yet etcd refuses the append. */
		if (send_group(s, &one, 1) > 0)
			one->rc = skv_fail(&one->err, SKV_E_STORE_IO, "store",
					   "etcd refuses an append for no reason");
	}
}

/* ---- the group ------------------------------------------------------------------------------- */

static size_t take_group_locked(struct etcd_store *s, struct etcd_append **v) SKV_REQUIRES(s->lock)
{
	size_t n = 0, bytes = 0;

	assert(skv_mutex_held(&s->lock));
	while (s->group.first && n < ETCD_GROUP &&
	       (n == 0 || bytes + s->group.first->last.len <= ETCD_PIECE)) {
		v[n] = s->group.first;
		bytes += v[n]->last.len;
		s->group.first = v[n++]->next;
	}
	if (!s->group.first)
		s->group.last = NULL;
	return n;
}

/* Waits until `a` was sent: by another thread, or by this one with others. */
static void send_with_others(struct etcd_store *s, struct etcd_append *a)
{
	struct etcd_append *v[ETCD_GROUP];
	size_t n;

	skv_mutex_lock(&s->lock);
	if (s->group.last)
		s->group.last->next = a;
	else
		s->group.first = a;
	s->group.last = a;
	while (!a->done) {
		if (s->group.busy) {
			skv_cond_wait(&s->changed, &s->lock);
			continue;
		}
		n = take_group_locked(s, v);
		assert(n > 0);
		s->group.busy = true;
		skv_mutex_unlock(&s->lock);
		send_all(s, v, n);
		skv_mutex_lock(&s->lock);
		for (size_t i = 0; i < n; i++)
			v[i]->done = true;
		s->group.busy = false;
		skv_cond_broadcast(&s->changed);
	}
	skv_mutex_unlock(&s->lock);
}

/* ---- one append ------------------------------------------------------------------------------ */

/* Learns where the journal ends, and whether the fence is the newest. */
static int read_end(struct etcd_store *s, struct etcd_part *part, uint64_t fence,
		    struct skv_error *err)
{
	struct etcd_key k[2];
	const struct skv_etcd_op ops[] = { etcd_range(etcd_key(s, &k[0], "e/%05u", part->number)),
					   etcd_range(etcd_key(s, &k[1], "n/%05u", part->number)) };
	struct skv_etcd_answer a = { 0 };
	struct skv_etcd_kv e, n;
	struct etcd_end end;
	int rc = etcd_read(s, ops, 2, &a, err);

	if (rc == SKV_OK) {
		e = etcd_first(&a);
		n = etcd_first(&a);
		if (e.mod_revision != fence)
			rc = etcd_fenced(part->number, err);
		else if (n.mod_revision == 0)
			rc = etcd_corrupt(err, ops[1].key, "is missing");
		else
			rc = etcd_get_end(&n, &end, err);
	}
	if (rc == SKV_OK) {
		skv_mutex_lock(&s->lock);
		part->fence = fence;
		part->end = end;
		part->end_mod = n.mod_revision;
		skv_mutex_unlock(&s->lock);
	}
	skv_etcd_answer_free(&a);
	return rc;
}

static bool put_piece(struct skv_buf *b, const struct etcd_batch *h, const void *bytes, size_t n)
{
	skv_buf_clear(b);
	if (skv_buf_reserve(b, ETCD_BATCH_BYTES + n)) {
		etcd_put_batch(b, h);
		skv_put_bytes(b, bytes, n);
	}
	return !b->failed;
}

/* Puts all pieces but the last, each as the owner and behind the end. */
static int put_pieces(struct etcd_store *s, struct etcd_append *a, const struct etcd_batch *h,
		      const uint8_t *bytes, struct skv_error *err)
{
	struct skv_etcd_answer answer = { 0 };
	struct etcd_key k[3];
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i + 1 < h->pieces; i++) {
		const uint32_t number = a->part->number;
		const struct skv_etcd_compare compare[] = {
			etcd_mod_is(etcd_key(s, &k[0], "e/%05u", number), a->fence),
			etcd_mod_is(etcd_key(s, &k[1], "n/%05u", number), a->end_mod) };
		struct skv_etcd_op put;
		struct skv_etcd_txn t = { compare, 2, &put, 1, NULL, 0 };

		if (!put_piece(&a->last, h, bytes + (size_t)i * ETCD_PIECE, ETCD_PIECE))
			rc = etcd_no_memory(err);
		put = etcd_put(etcd_key(s, &k[2], "b/%05u/%016llx/%04x", number,
					(unsigned long long)a->end.seq, i), &a->last);
		if (rc == SKV_OK)
			rc = etcd_as_owner(s, number, &t, &answer, err);
	}
	skv_etcd_answer_free(&answer);
	return rc;
}

static int send(struct etcd_store *s, struct etcd_append *a, const uint8_t *bytes, size_t n,
		struct skv_error *err)
{
	struct etcd_batch h = { .total = a->end.total, .chain = a->end.chain };
	size_t skip;
	int rc;

	h.pieces = a->pieces = n ? (uint32_t)((n + ETCD_PIECE - 1) / ETCD_PIECE) : 1;
	skip = (size_t)(h.pieces - 1) * ETCD_PIECE;
	rc = put_pieces(s, a, &h, bytes, err);
	if (rc == SKV_OK && !put_piece(&a->last, &h, bytes + skip, n - skip))
		rc = etcd_no_memory(err);
	if (rc == SKV_OK) {
		send_with_others(s, a);
		rc = a->rc;
		if (rc != SKV_OK && err)
			*err = a->err;
	}
	return rc;
}

static int append_next(struct etcd_store *s, struct etcd_part *part, uint64_t fence, uint64_t seq,
		       const void *bytes, size_t n, struct skv_error *err)
{
	struct etcd_append a = { .part = part, .fence = fence };
	int rc = SKV_OK;

	if (part->fence != fence || part->end.seq + 1 != seq)
		rc = read_end(s, part, fence, err);
	if (rc == SKV_OK && part->end.seq + 1 != seq)
		rc = skv_fail(err, SKV_E_CONFLICT, "seq", "the newest record is %llu, not the one "
			      "before %llu", (unsigned long long)part->end.seq,
			      (unsigned long long)seq);
	if (rc != SKV_OK)
		return rc;
	a.end_mod = part->end_mod;
	a.end = (struct etcd_end){ .fence = fence, .seq = seq, .total = part->end.total + n,
				   .before = part->end_mod };
	a.end.chain = etcd_chain(part->end.chain, seq, a.end.total, bytes, n);
	rc = send(s, &a, bytes, n, err);
	skv_mutex_lock(&s->lock);
	part->fence = rc == SKV_OK ? fence : 0; /* else it is read again */
	part->end = a.end;
	part->end_mod = a.end_mod;
	skv_mutex_unlock(&s->lock);
	skv_buf_destroy(&a.last);
	return rc;
}

int etcd_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		size_t n, unsigned flags, struct skv_error *err)
{
	struct etcd_store *s = self;
	struct etcd_part *part = etcd_part(s, partition);
	int rc;

	(void)flags; /* an executed transaction is durable, and etcd keeps no space for anybody */
	if (!part)
		return etcd_no_memory(err);
	if (fence == 0)
		return etcd_fenced(partition, err);
	etcd_take(s, &part->appending);
	rc = append_next(s, part, fence, seq, bytes, n, err);
	etcd_give(s, &part->appending);
	return rc;
}

int etcd_sync(void *self, uint32_t partition, struct skv_error *err)
{
	(void)self;
	(void)partition;
	(void)err;
	return SKV_OK;
}
