/*
 * watch.c - watches: a stream of etcd's messages for each, a queue between the client's thread and
 * the reader, and the revision from which a broken stream resumes.
 *
 * Messages wait unread in the queue, at most about SKV_ETCD_WATCH_BYTES of them: beyond it the
 * server gets no more flow control credit. Etcd may split a transaction's events over messages
 * (`fragment`); a stream that breaks in between is resumed at that revision, and the events that
 * have arrived already are skipped. The queue and the place are protected by the client's lock.
 */
#include <string.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "internal.h"

static const struct etcd_method watch_method = { .path = "/etcdserverpb.Watch/Watch" };

/* A message as received. */
struct note {
	struct note *next;
	uint32_t skip;     /* events at its beginning that have arrived before */
	size_t n;
	uint8_t bytes[];
};

struct skv_etcd_watch {
	struct skv_etcd *c;
	struct etcd_call *call;
	struct skv_buf key, end;

	/* lock */
	struct note *first, *last;
	size_t queued;       /* bytes of them */
	uint64_t next;       /* revision from which the stream resumes; 0: the newest */
	uint64_t n_next;     /* events of it that have arrived */
	uint64_t n_skip;     /* number of these that a resumed stream sends again */
	bool ended;          /* with call->err */
	struct skv_cond more;

	/* the reader's own */
	struct note *now;    /* being read */
	struct skv_rd rest;  /* of it */
};

/* Fields of a WatchResponse. */
struct response {
	struct etcd_header header;
	bool created, canceled, fragment;
	uint64_t compacted;
	char reason[ETCD_MESSAGE_MAX];
	uint32_t events, n_last; /* all; of the last revision */
	uint64_t last;           /* the last revision */
};

/* ---- messages -------------------------------------------------------------------------------- */

/* Event: type 1 (0 put, 1 delete), kv 2. */
static bool get_event(const struct pb_field *f, struct skv_etcd_event *out)
{
	struct skv_rd r = skv_rd_make(f->p, f->n);
	struct pb_field inner;
	bool found = false;

	*out = (struct skv_etcd_event){ 0 };
	while (pb_next(&r, &inner)) {
		if (inner.number == 1 && inner.wire == PB_VARINT)
			out->deleted = inner.v == 1;
		else if (inner.number == 2 && inner.wire == PB_BYTES)
			found = etcd_get_kv(inner.p, inner.n, &out->kv);
	}
	return found && !r.failed;
}

static bool is_event(const struct pb_field *f) { return f->number == 11 && f->wire == PB_BYTES; }

static bool get_response(struct skv_rd r, struct response *out)
{
	struct skv_etcd_event e;
	struct pb_field f;

	*out = (struct response){ 0 };
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_BYTES) {
			if (!etcd_get_header(f.p, f.n, &out->header))
				return false;
		} else if (f.number == 6 && f.wire == PB_BYTES) {
			etcd_get_text(&f, out->reason, sizeof out->reason);
		} else if (is_event(&f)) {
			if (!get_event(&f, &e) || e.kv.mod_revision < out->last)
				return false;
			out->n_last = e.kv.mod_revision == out->last ? out->n_last + 1 : 1;
			out->last = e.kv.mod_revision;
			out->events++;
		} else if (f.wire == PB_VARINT) {
			out->created |= f.number == 3 && f.v;
			out->canceled |= f.number == 4 && f.v;
			out->fragment |= f.number == 7 && f.v;
			out->compacted = f.number == 5 ? f.v : out->compacted;
		}
	}
	return !r.failed;
}

/* WatchRequest: create 1 (key 1, range_end 2, start_revision 3, progress_notify 4, fragment 8). A
 * progress request (3) is never sent: before 3.4.25 its answer overtakes events. */
static void put_create(struct skv_etcd_watch *w)
{
	struct skv_buf *b = &w->call->out;
	size_t at;

	skv_buf_clear(b);
	skv_put_bytes(b, (const uint8_t[ETCD_PREFIX]){ 0 }, ETCD_PREFIX);
	at = etcd_pb_begin(b, 1);
	etcd_pb_bytes(b, 1, (struct skv_etcd_bytes){ w->key.data, w->key.len });
	etcd_pb_bytes(b, 2, (struct skv_etcd_bytes){ w->end.data, w->end.len });
	etcd_pb_number(b, 3, w->next);
	etcd_pb_number(b, 4, 1);
	etcd_pb_number(b, 8, 1);
	etcd_pb_end(b, at);
	etcd_set_prefix(b);
	w->n_skip = w->n_next;
}

void etcd_watch_restart_locked(struct etcd_call *call)
{
	assert(call->watch && call->stream == 0);
	put_create(call->watch);
	call->withheld = 0;
}

void etcd_watch_end_locked(struct etcd_call *call)
{
	assert(call->watch);
	call->watch->ended = true;
	skv_cond_signal(&call->watch->more);
}

/* ---- the client's thread --------------------------------------------------------------------- */

static bool queue_note(struct skv_etcd_watch *w, const uint8_t *p, size_t n, uint32_t skip)
{
	struct note *note = skv_malloc(sizeof *note + n);

	if (!note)
		return false; /* the stream breaks, and is resumed */
	*note = (struct note){ .skip = skip, .n = n };
	memcpy(note->bytes, p, n);
	if (w->last)
		w->last->next = note;
	else
		w->first = note;
	w->last = note;
	w->queued += n;
	skv_cond_signal(&w->more);
	return true;
}

/* etcd has ended the watch: finally, or so that it may be tried again. The stream's status says so,
 * as for every call. */
static bool take_cancel(struct etcd_call *call, const struct response *r)
{
	const char *text = r->reason;

	if (r->compacted > 0)
		text = "mvcc: required revision has been compacted";
	call->http = 200;
	call->grpc = 14;
	memcpy(call->message, text, strlen(text) + 1);
	return false;
}

/* Moves the position after this message's events. */
static void move_place(struct skv_etcd_watch *w, const struct response *r, uint32_t skip)
{
	if (r->events == 0) { /* progress */
		w->next = r->header.revision + 1 > w->next ? r->header.revision + 1 : w->next;
	} else if (!r->fragment) {
		w->next = r->last + 1;
		w->n_next = 0;
	} else {
		w->n_next = r->last == w->next ? w->n_next + r->n_last - skip : r->n_last;
		w->next = r->last;
	}
}

/* Returns false if the stream must end. */
static bool take_response(struct skv_etcd_watch *w, const uint8_t *p, size_t n)
{
	struct response r;
	uint32_t skip;

	if (!get_response(skv_rd_make(p, n), &r))
		return false;
	if (r.canceled || r.compacted > 0)
		return take_cancel(w->call, &r);
	if (w->c->cluster_id && r.header.cluster_id != w->c->cluster_id) {
		w->c->conn.draining = true; /* another cluster's: calls report it */
		return false;
	}
	if (r.created && w->next == 0)
		w->next = r.header.revision + 1;
	if (r.created)
		return true;
	if (r.events > 0 && r.last < w->next)
		return false;
	skip = (uint32_t)(w->n_skip < r.events ? w->n_skip : r.events);
	if (!queue_note(w, p, n, skip))
		return false;
	w->n_skip -= skip;
	move_place(w, &r, skip);
	return true;
}

bool etcd_watch_take(struct skv_etcd *c, struct etcd_call *call)
{
	struct skv_buf *in = &call->in;
	struct skv_etcd_watch *w;
	size_t at = 0;
	bool well = true;

	ASSERT_ETCD_THREAD(c);
	if (in->failed)
		return false; /* without memory; it may have no bytes at all */
	skv_mutex_lock(&c->lock);
	w = call->watch;
	while (w && well && in->len - at >= ETCD_PREFIX) {
		const uint8_t *p = in->data + at;
		const size_t n = (size_t)p[1] << 24 | p[2] << 16 | p[3] << 8 | p[4];

		if (p[0] != 0 || n > SKV_ETCD_ANSWER_MAX)
			well = false;
		if (!well || in->len - at - ETCD_PREFIX < n)
			break;
		well = take_response(w, p + ETCD_PREFIX, n);
		at += ETCD_PREFIX + n;
		call->tries = 0;
	}
	skv_mutex_unlock(&c->lock);
	in->len -= at;
	memmove(in->data, in->data + at, in->len);
	return well;
}

size_t etcd_watch_credit(struct skv_etcd *c, struct etcd_call *call, size_t n)
{
	bool full;

	skv_mutex_lock(&c->lock);
	full = call->watch && call->watch->queued >= SKV_ETCD_WATCH_BYTES;
	skv_mutex_unlock(&c->lock);
	call->withheld += n;
	if (full)
		return 0;
	n = call->withheld;
	call->withheld = 0;
	return n;
}

void etcd_watch_attend(struct skv_etcd *c, struct etcd_call *call)
{
	const size_t n = etcd_watch_credit(c, call, 0);

	if (n > 0 && call->stream > 0)
		nghttp2_session_consume_stream(c->conn.h2, call->stream, n);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void destroy_locked(struct skv_etcd_watch *w)
{
	struct note *next;

	for (struct note *n = w->first; n; n = next) {
		next = n->next;
		skv_free(n);
	}
	skv_free(w->now);
	skv_cond_destroy(&w->more);
	skv_buf_destroy(&w->key);
	skv_buf_destroy(&w->end);
	skv_free(w);
}

int skv_etcd_watch_open(struct skv_etcd *c, struct skv_etcd_bytes key, struct skv_etcd_bytes end,
			uint64_t from, struct skv_etcd_watch **out, struct skv_error *err)
{
	struct skv_etcd_watch *w = skv_calloc(1, sizeof *w);
	struct etcd_call *call = w ? etcd_call_new(c, &watch_method, err) : NULL;

	if (!call) {
		skv_free(w);
		return w && err ? err->status : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	*w = (struct skv_etcd_watch){ .c = c, .call = call, .next = from };
	call->watch = w;
	call->is_watch = true;
	skv_cond_init(&w->more);
	skv_put_bytes(&w->key, key.p, key.n);
	skv_put_bytes(&w->end, end.p, end.n);
	put_create(w);
	skv_mutex_lock(&c->lock);
	if (w->key.failed || w->end.failed || call->out.failed) {
		etcd_call_free_locked(c, call);
		destroy_locked(w);
		skv_mutex_unlock(&c->lock);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	etcd_queue_locked(c, call);
	etcd_wake(c);
	skv_mutex_unlock(&c->lock);
	*out = w;
	return SKV_OK;
}

static void ask_attention_locked(struct skv_etcd *c) SKV_REQUIRES(c->lock)
{
	assert(skv_mutex_held(&c->lock));
	c->attention = true;
	etcd_wake(c);
}

/* Makes the next message the one being read; false: no message arrived in time, or the watch has
 * ended. */
static bool next_note(struct skv_etcd_watch *w, uint64_t end_us)
{
	struct skv_etcd *c = w->c;
	uint64_t now;
	bool was_full;

	skv_mutex_lock(&c->lock);
	while (!w->first && !w->ended && (now = skv_now_us()) < end_us)
		skv_cond_wait_ms(&w->more, &c->lock, (end_us - now + 999) / 1000);
	w->now = w->first;
	if (w->now) {
		was_full = w->queued >= SKV_ETCD_WATCH_BYTES;
		w->first = w->now->next;
		w->last = w->first ? w->last : NULL;
		w->queued -= w->now->n;
		if (was_full && w->queued < SKV_ETCD_WATCH_BYTES)
			ask_attention_locked(c);
	}
	skv_mutex_unlock(&c->lock);
	if (w->now)
		w->rest = skv_rd_make(w->now->bytes, w->now->n);
	return w->now != NULL;
}

/* The next event of the message being read; false: it has no more. */
static bool next_event(struct skv_etcd_watch *w, struct skv_etcd_event *e)
{
	struct pb_field f;

	while (w->now && pb_next(&w->rest, &f)) {
		if (!is_event(&f))
			continue;
		if (w->now->skip > 0)
			w->now->skip--;
		else if (get_event(&f, e))
			return true;
	}
	skv_free(w->now);
	w->now = NULL;
	return false;
}

int skv_etcd_watch_next(struct skv_etcd_watch *w, uint32_t timeout_ms, struct skv_etcd_event *e,
			struct skv_error *err)
{
	const uint64_t end = skv_now_us() + (uint64_t)timeout_ms * 1000;
	int rc;

	do
		if (next_event(w, e))
			return SKV_OK;
	while (next_note(w, end));
	skv_mutex_lock(&w->c->lock);
	rc = w->ended ? w->call->err.status : SKV_E_TIMEOUT;
	if (w->ended && err)
		*err = w->call->err;
	else if (!w->ended)
		skv_fail(err, SKV_E_TIMEOUT, NULL, "no event within %u ms", timeout_ms);
	skv_mutex_unlock(&w->c->lock);
	return rc;
}

void skv_etcd_watch_close(struct skv_etcd_watch *w)
{
	struct skv_etcd *c = w ? w->c : NULL;

	if (!w)
		return;
	skv_mutex_lock(&c->lock);
	w->call->watch = NULL;
	if (w->call->state == ETCD_QUEUED)
		etcd_unqueue_locked(c, w->call);
	if (w->call->state == ETCD_RUNNING) {
		w->call->abandoned = true;
		ask_attention_locked(c);
	} else {
		etcd_call_free_locked(c, w->call);
	}
	destroy_locked(w);
	skv_mutex_unlock(&c->lock);
}
