/*
 * etcd_load.c - delivers a partition's checkpoint and the records after it, to a load or to a
 * follower.
 *
 * Everything is read at one revision of etcd. The chained checksum is followed from the checkpoint,
 * or from where a follower stands, to the acknowledged end: a missing or different piece below the
 * end is SKV_E_CORRUPT, and pieces above it do not count.
 *
 * A follower asks etcd only if the watch has seen a newer end, or if events may have been lost.
 *
 * Any thread; no lock is held while a sink runs.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etcd_store.h"

#define PAGE_BYTES (2u << 20) /* of records in an answer, about */

/* Journal records being read. */
struct records {
	struct etcd_store *s;
	uint32_t partition;
	uint64_t revision;
	uint64_t seq, total; /* of the newest delivered */
	struct skv_key chain;
	struct etcd_end end;
	uint64_t limit;         /* keys in an answer */
	struct skv_buf batch;   /* pieces of the next one */
	uint32_t pieces;        /* in it */
	const struct skv_load_sink *sink;
};

static struct skv_etcd_bytes batch_key(const struct records *r, struct etcd_key *k, uint64_t seq,
				       uint32_t piece)
{
	return etcd_key(r->s, k, "b/%05u/%016llx/%04x", r->partition, (unsigned long long)seq,
			piece);
}

static int missing(const struct records *r, struct skv_error *err)
{
	struct etcd_key k;

	return etcd_corrupt(err, batch_key(r, &k, r->seq + 1, r->pieces),
			    "is missing: it is a part of the journal");
}

static int deliver_batch(struct records *r, const struct etcd_batch *h, struct skv_etcd_bytes bytes,
			 struct skv_error *err)
{
	const uint64_t seq = r->seq + 1, total = r->total + bytes.n;
	const struct skv_key chain = etcd_chain(r->chain, seq, total, bytes.p, bytes.n);
	struct etcd_key k;
	int rc;

	if (h->total != total || !skv_key_equal(h->chain, chain))
		return etcd_corrupt(err, batch_key(r, &k, seq, 0),
				    "is damaged: its checksum does not follow from the batch "
				    "before it");
	rc = r->sink->record(r->sink->ctx, seq, bytes.p, bytes.n);
	if (rc == SKV_OK) {
		r->seq = seq;
		r->total = total;
		r->chain = chain;
		r->pieces = 0;
	}
	return rc;
}

/* Takes a key of the journal. Pieces of an unfinished batch may lie behind those of the batch that
 * was written in its place. */
static int take_piece(struct records *r, const struct skv_etcd_kv *kv, struct skv_error *err)
{
	unsigned long long seq;
	unsigned piece;
	char tail[24] = "";
	struct etcd_batch h;
	struct skv_etcd_bytes bytes;
	int rc;

	if (kv->key.n < 21)
		return etcd_corrupt(err, kv->key, "is no batch's");
	memcpy(tail, (const char *)kv->key.p + kv->key.n - 21, 21);
	if (sscanf(tail, "%16llx/%4x", &seq, &piece) != 2)
		return etcd_corrupt(err, kv->key, "is no batch's");
	if (seq == r->seq && piece > 0)
		return SKV_OK;
	if (seq != r->seq + 1 || piece != r->pieces)
		return missing(r, err);
	rc = etcd_get_batch(kv, &h, &bytes, err);
	if (rc != SKV_OK)
		return rc;
	r->pieces++;
	if (h.pieces == 1)
		return deliver_batch(r, &h, bytes, err);
	if (piece == 0)
		skv_buf_clear(&r->batch);
	skv_put_bytes(&r->batch, bytes.p, bytes.n);
	if (r->batch.failed)
		return etcd_no_memory(err);
	if (r->pieces < h.pieces)
		return SKV_OK;
	return deliver_batch(r, &h, (struct skv_etcd_bytes){ r->batch.data, r->batch.len }, err);
}

static int take_page(struct records *r, struct skv_etcd_result *page, struct skv_error *err)
{
	struct skv_etcd_kv kv;
	int rc = SKV_OK;

	while (rc == SKV_OK && r->seq < r->end.seq && skv_etcd_next_kv(page, &kv))
		rc = take_piece(r, &kv, err);
	return rc;
}

/* Reads and delivers the next page. */
static int next_page(struct records *r, struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key from, to;
	struct skv_etcd_op op = etcd_range_to(batch_key(r, &from, r->seq + 1, r->pieces),
					      batch_key(r, &to, r->end.seq + 1, 0), r->limit);
	const uint64_t seq = r->seq;
	const uint32_t pieces = r->pieces;
	struct skv_etcd_result page;
	int rc;

	assert(r->seq < r->end.seq && r->limit > 0);
	op.revision = r->revision;
	rc = etcd_read(r->s, &op, 1, &a, err);
	if (rc == SKV_E_TOO_LARGE && r->limit > ETCD_PAGE) {
		r->limit = ETCD_PAGE;
		rc = SKV_OK;
	} else if (rc == SKV_OK && skv_etcd_next_result(&a.result, &page)) {
		rc = take_page(r, &page, err);
		if (rc == SKV_OK && r->seq == seq && r->pieces == pieces)
			rc = missing(r, err);
	}
	skv_etcd_answer_free(&a);
	return rc;
}

/* As many keys in an answer as make PAGE_BYTES, by the average record. */
static uint64_t choose_limit(const struct records *r)
{
	const uint64_t n = r->end.seq - r->seq, bytes = r->end.total - r->total;
	const uint64_t each = n ? bytes / n + ETCD_BATCH_BYTES : PAGE_BYTES;
	const uint64_t fit = PAGE_BYTES / (each ? each : 1);

	return fit < ETCD_PAGE ? ETCD_PAGE : fit < ETCD_KEYS_MAX ? fit : ETCD_KEYS_MAX;
}

static int check_end(const struct records *r, struct skv_error *err)
{
	struct etcd_key k;

	if (r->seq == r->end.seq && r->total == r->end.total &&
	    skv_key_equal(r->chain, r->end.chain))
		return SKV_OK;
	return etcd_corrupt(err, etcd_key(r->s, &k, "n/%05u", r->partition),
			    "names another end than the journal has");
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

static int deliver_slice(struct etcd_reader *r, uint32_t number, struct skv_rd *index,
			 struct skv_buf *bytes, const struct skv_load_sink *sink,
			 struct skv_error *err)
{
	const uint64_t at = skv_get_u64(index);
	const uint32_t n = skv_get_u32(index);
	const uint64_t sum = skv_get_u64(index);
	int rc;

	skv_buf_clear(bytes);
	rc = etcd_reader_read(r, at, n, bytes, err);
	if (rc == SKV_OK && skv_checksum(bytes->data ? bytes->data : (const uint8_t *)"", n) != sum)
		rc = skv_fail(err, SKV_E_CORRUPT, NULL,
			      "slice %u of the checkpoint %s of partition %u (record %llu) is "
			      "damaged, at byte %llu", number, r->head->name, r->partition,
			      (unsigned long long)r->head->seq, (unsigned long long)at);
	return rc == SKV_OK ? sink->slice(sink->ctx, number, bytes->data ? (void *)bytes->data
									 : (void *)"", n)
			    : rc;
}

static int deliver_slices(struct etcd_reader *r, const struct skv_load_sink *sink,
			  struct skv_error *err)
{
	struct skv_buf index = { 0 }, bytes = { 0 };
	const size_t n = (size_t)r->head->slices * ETCD_INDEX_ENTRY;
	int rc = etcd_reader_read(r, r->head->index_at, n, &index, err);
	struct skv_rd rd = skv_rd_make(index.data, index.len);

	if (rc == SKV_OK &&
	    !skv_key_equal(skv_hash128(index.data ? index.data : (const uint8_t *)"", n),
			   r->head->index_sum))
		rc = skv_fail(err, SKV_E_CORRUPT, NULL,
			      "the index of the checkpoint %s of partition %u (record %llu) is "
			      "damaged, at byte %llu", r->head->name, r->partition,
			      (unsigned long long)r->head->seq,
			      (unsigned long long)r->head->index_at);
	for (uint32_t i = 0; rc == SKV_OK && i < r->head->slices; i++)
		rc = deliver_slice(r, i, &rd, &bytes, sink, err);
	skv_buf_destroy(&index);
	skv_buf_destroy(&bytes);
	return rc;
}

/* ---- load ------------------------------------------------------------------------------------ */

/* Reads where the partition's checkpoint and journal end, and at which revision. */
static int read_place(struct records *r, struct etcd_head *head, struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[3];
	struct skv_etcd_op ops[] = {
		etcd_range(etcd_key(r->s, &k[0], "c/%05u/head", r->partition)),
		etcd_range(etcd_key(r->s, &k[1], "n/%05u", r->partition)),
		etcd_range(etcd_key(r->s, &k[2], "e/%05u", r->partition)) };
	struct skv_etcd_kv h, n, e;
	int rc = etcd_read(r->s, ops, 3, &a, err);

	if (rc == SKV_OK) {
		h = etcd_first(&a);
		n = etcd_first(&a);
		e = etcd_first(&a);
		r->revision = a.revision;
		rc = etcd_get_head(&h, head, err);
	}
	if (rc == SKV_OK)
		rc = etcd_get_end(&n, &r->end, err);
	if (rc == SKV_OK && n.mod_revision == 0 && (h.mod_revision || e.mod_revision))
		rc = etcd_corrupt(err, ops[1].key, "is missing: it is the end of a journal");
	if (rc == SKV_OK && r->end.seq < head->seq)
		rc = etcd_corrupt(err, ops[1].key, "ends before the checkpoint");
	skv_etcd_answer_free(&a);
	return rc;
}

/* Returns true if another checkpoint has replaced this one, whose file is gone. */
static bool was_replaced(const struct records *r, const struct etcd_head *head)
{
	struct records now = { .s = r->s, .partition = r->partition };
	struct skv_error ignored;
	struct etcd_head newest;

	assert(head->in_file && r->revision > 0);
	return read_place(&now, &newest, &ignored) == SKV_OK &&
	       strcmp(newest.name, head->name) != 0;
}

/* *again: its owner has replaced it since the head was read, and nothing was delivered so far. */
static int deliver_checkpoint(struct records *r, const struct etcd_head *head, bool *again,
			      struct skv_error *err)
{
	struct etcd_reader reader = { .s = r->s, .partition = r->partition, .head = head,
				      .revision = r->revision };
	int rc;

	*again = false;
	if (head->name[0] == '\0')
		return SKV_OK;
	rc = etcd_reader_open(&reader, err);
	if (rc == SKV_E_CORRUPT)
		*again = was_replaced(r, head);
	if (rc == SKV_OK)
		rc = deliver_slices(&reader, r->sink, err);
	etcd_reader_close(&reader);
	return rc;
}

/* A load checks the folder, not the opening of the store: its mount may hang, and then only the
 * partition's own thread waits. */
static int check_folder(const char *path, struct skv_error *err)
{
	if (*path && access(path, R_OK | W_OK | X_OK) != 0)
		return skv_fail(err, SKV_E_IO, "store",
				"checkpoints: the folder %.200s cannot be used: %s", path,
				strerror(errno));
	return SKV_OK;
}

static int load_all(struct records *r, uint64_t *base_seq, struct skv_error *err)
{
	struct etcd_head head;
	bool again;
	int rc = check_folder(r->s->url.checkpoints, err);

	if (rc != SKV_OK)
		return rc;
	do {
		rc = read_place(r, &head, err);
		if (rc != SKV_OK)
			return rc;
		r->seq = *base_seq = head.seq;
		r->total = head.total;
		r->chain = head.chain;
		r->limit = choose_limit(r);
		rc = deliver_checkpoint(r, &head, &again, err);
	} while (again);
	while (rc == SKV_OK && r->seq < r->end.seq)
		rc = next_page(r, err);
	return rc == SKV_OK ? check_end(r, err) : rc;
}

int etcd_load(void *self, uint32_t partition, uint64_t *base_seq, const struct skv_load_sink *sink,
	      struct skv_error *err)
{
	struct records r = { .s = self, .partition = partition, .sink = sink };
	int rc = load_all(&r, base_seq, err);

	skv_buf_destroy(&r.batch);
	return rc;
}

int etcd_stats(void *self, uint32_t partition, struct skv_store_stats *out, struct skv_error *err)
{
	struct records r = { .s = self, .partition = partition };
	struct etcd_head head;
	int rc = read_place(&r, &head, err);

	if (rc == SKV_OK)
		*out = (struct skv_store_stats){ r.end.total - head.total, r.end.seq, UINT64_MAX };
	return rc;
}

/* ---- following ------------------------------------------------------------------------------- */

static void set_position(struct skv_position *at, const struct records *r)
{
	assert(!at->known || at->seq <= r->seq);
	at->known = true;
	at->seq = r->seq;
	at->total = r->total;
	memcpy(at->mark, &r->chain, sizeof r->chain);
}

static int gone(const struct skv_position *at, const char *why, struct skv_error *err)
{
	return skv_fail(err, SKV_E_CONFLICT, "seq", "what follows record %llu is gone: %s",
			(unsigned long long)at->seq, why);
}

/* Returns true if there may be new records. *opened: the watch that proves it. */
static bool has_news(struct etcd_store *s, const struct etcd_part *part,
		     const struct skv_position *at, uint64_t *opened)
{
	bool yes;

	skv_mutex_lock(&s->lock);
	etcd_news_poll_locked(s);
	*opened = s->news.opened;
	yes = at->fresh || !part->certain || !at->known || part->newest > at->seq;
	skv_mutex_unlock(&s->lock);
	return yes;
}

static void note_read(struct etcd_store *s, struct etcd_part *part, uint64_t newest,
		      uint64_t opened)
{
	skv_mutex_lock(&s->lock);
	if (newest > part->newest)
		part->newest = newest;
	part->certain = s->news.watch && s->news.opened == opened;
	skv_mutex_unlock(&s->lock);
}

static int follow_on(struct records *r, struct skv_position *at, struct skv_error *err)
{
	struct etcd_head head;
	int rc = read_place(r, &head, err);

	if (rc != SKV_OK)
		return rc;
	assert(at->known);
	memcpy(&r->chain, at->mark, sizeof r->chain);
	r->seq = at->seq;
	r->total = at->total;
	if (head.seq > at->seq)
		return gone(at, "a checkpoint has replaced it", err);
	if (r->end.seq < at->seq ||
	    (r->end.seq == at->seq && !skv_key_equal(r->chain, r->end.chain)))
		return gone(at, "the store has another history", err);
	at->newest = r->end.seq;
	at->base = head.seq;
	r->limit = choose_limit(r);
	if (r->seq < r->end.seq)
		rc = next_page(r, err);
	while (rc == SKV_OK && r->pieces > 0) /* a batch is delivered whole */
		rc = next_page(r, err);
	set_position(at, r);
	return rc;
}

static int follow_from_nowhere(struct records *r, struct skv_position *at, struct skv_error *err)
{
	uint64_t base = 0;
	int rc = load_all(r, &base, err);

	if (rc == SKV_OK) {
		set_position(at, r);
		at->newest = r->end.seq;
		at->base = base;
	}
	return rc;
}

int etcd_follow(void *self, uint32_t partition, struct skv_position *at,
		const struct skv_load_sink *sink, struct skv_error *err)
{
	struct etcd_store *s = self;
	struct etcd_part *part = etcd_part(s, partition);
	struct records r = { .s = s, .partition = partition, .sink = sink };
	uint64_t opened;
	int rc;

	if (!part)
		return etcd_no_memory(err);
	if (!has_news(s, part, at, &opened)) {
		at->newest = at->seq;
		return SKV_OK;
	}
	rc = at->known ? follow_on(&r, at, err) : follow_from_nowhere(&r, at, err);
	if (rc == SKV_OK)
		note_read(s, part, r.end.seq, opened);
	skv_buf_destroy(&r.batch);
	return rc;
}
