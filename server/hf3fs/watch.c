/*
 * watch.c - watches the clients' page files, and drops the keys of a space whose file is gone,
 * replaced or truncated.
 *
 * Uses its own thread, because a stat may hang like its file system; only an initialize waits for
 * it, at most WAIT_MS, and not if one hangs already. Each round checks the files of all spaces in
 * turn, and requested ones in between. Each file's known state is a document in the store, so that
 * it survives restarts and changes of owner. Keys are dropped before that state changes: after a
 * crash in between they are dropped again.
 *
 * Owns the thread and, for each space, the last result. The lock is held for copies only.
 */
#include "hf3fs.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/hash.h>
#include <skv/log.h>
#include <skv/mem.h>

#include "page_file.h"

#define WAIT_MS 1000u
#define ASKED_MAX 256u
#define BUCKETS 4096u
#define DOCS "pages-file/"

/* Of a space. */
struct watched {
	struct watched *next; /* in its bucket */
	char name[SKV_MAX_NAME + 1]; /* space_name */
	enum hf3fs_file_state state;
	uint64_t drops;           /* since this process looks */
	uint64_t elsewhere_since; /* ms; 0: not. This and the next two belong to the thread */
	bool told;                /* logged: its file is not visible */
	uint64_t round;           /* round of its last check */
};

/* A space to be checked now. */
struct asked {
	char tenant[SKV_MAX_NAME + 1];
	char id[SKV_MAX_NAME + 1];
};

struct hf3fs_watch {
	_Atomic uintptr_t owner; /* skv_thread of the thread, set when it begins */
	/* Protects the following members, except those that only the thread uses. */
	struct skv_mutex lock;
	struct skv_cond wake, done;
	pthread_t thread;
	bool stop, ended;
	bool joined; /* main's */
	struct asked asked[ASKED_MAX];
	uint32_t n_asked;
	uint64_t put, answered; /* of these, ever */
	uint64_t began; /* ms, start of the running stat; 0: none */
	struct watched *bucket[BUCKETS]; /* written by the thread only */
	struct asked taken[ASKED_MAX];   /* these the thread's own */
	uint64_t round;
	struct skv_cluster *cluster;
};

#define ASSERT_WATCH_THREAD(w) assert((w)->owner == skv_thread())

static uint64_t now_ms(void) { return skv_now_ms(&skv_clock_system); }

static void count(struct pages *p, enum hf3fs_counter which)
{
	atomic_fetch_add_explicit(&p->counters[which], 1, memory_order_relaxed);
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct watched **bucket_of(struct hf3fs_watch *w, const char *name)
{
	return &w->bucket[skv_hash128(name, strlen(name)).lo % BUCKETS];
}

static struct watched *find(struct hf3fs_watch *w, const char *name)
{
	struct watched *of;

	assert(w->owner == skv_thread() || skv_mutex_held(&w->lock));
	of = *bucket_of(w, name);
	while (of && strcmp(of->name, name) != 0)
		of = of->next;
	return of;
}

static struct watched *find_or_add(struct hf3fs_watch *w, const char *name)
{
	struct watched *of, **at = bucket_of(w, name);

	ASSERT_WATCH_THREAD(w);
	of = find(w, name);
	if (of)
		return of;
	of = skv_calloc(1, sizeof *of);
	if (!of)
		return NULL;
	of->state = HF3FS_FILE_NONE;
	snprintf(of->name, sizeof of->name, "%s", name);
	skv_mutex_lock(&w->lock);
	of->next = *at;
	*at = of;
	skv_mutex_unlock(&w->lock);
	return of;
}

/* Forgets the spaces not checked in this round, or all. */
static void forget(struct hf3fs_watch *w, bool all)
{
	assert(all || w->owner == skv_thread());
	skv_mutex_lock(&w->lock);
	for (size_t i = 0; i < BUCKETS; i++) {
		struct watched **at = &w->bucket[i];

		while (*at) {
			struct watched *of = *at;

			if (!all && of->round == w->round) {
				at = &of->next;
				continue;
			}
			*at = of->next;
			skv_free(of);
		}
	}
	skv_mutex_unlock(&w->lock);
}

static void set_state(struct hf3fs_watch *w, struct watched *of, enum hf3fs_file_state state,
		      bool dropped)
{
	ASSERT_WATCH_THREAD(w);
	skv_mutex_lock(&w->lock);
	of->state = state;
	of->drops += dropped;
	skv_mutex_unlock(&w->lock);
}

bool hf3fs_watch_view(struct pages *p, const struct space *s, struct pages_file_view *out)
{
	struct page_file f;
	char name[SKV_MAX_NAME + 1];
	const struct watched *found;

	if (!p->watch || !page_file_of(&p->o.files, s, &f))
		return false;
	space_name(s, name);
	snprintf(out->path, sizeof out->path, "%s%s%s", f.dir,
		 *f.dir && f.dir[strlen(f.dir) - 1] != '/' ? "/" : "", f.path);
	skv_mutex_lock(&p->watch->lock);
	found = find(p->watch, name);
	out->state = found ? found->state : HF3FS_FILE_NONE;
	out->drops = found ? found->drops : 0;
	skv_mutex_unlock(&p->watch->lock);
	return true;
}

/* ---- one space ------------------------------------------------------------------------------- */

/* Checks some spaces. */
struct round {
	struct pages *p;
	struct hf3fs_watch *w;
	struct skv_arena a;
	struct skv_doc *docs; /* [n_docs] of a full one, in order of their names */
	uint32_t n_docs;
	bool *used;           /* [n_docs] */
	bool silent;          /* no answer for any file */
};

struct waiting {
	struct skv_mutex lock;
	struct skv_cond cond;
	bool done;
	int rc;
};

static void on_cleared(void *ctx, int status)
{
	struct waiting *w = ctx;

	skv_mutex_lock(&w->lock);
	assert(!w->done && status != SKV_PENDING);
	w->done = true;
	w->rc = status;
	skv_cond_signal(&w->cond);
	skv_mutex_unlock(&w->lock);
}

static int clear(struct round *r, const struct space *s, uint64_t *keys, struct skv_error *err)
{
	struct waiting w = { .rc = SKV_OK };
	const struct skv_done done = { on_cleared, &w };
	const struct skv_clear_req req = { s->tenant, s->id };
	struct skv_clear_res res = { 0 };
	int rc;

	skv_mutex_init(&w.lock);
	skv_cond_init(&w.cond);
	rc = skv_cluster_clear(r->w->cluster, &req, &res, &r->a, err, &done);
	skv_mutex_lock(&w.lock);
	while (rc == SKV_PENDING && !w.done)
		skv_cond_wait(&w.cond, &w.lock);
	skv_mutex_unlock(&w.lock);
	skv_cond_destroy(&w.cond);
	skv_mutex_destroy(&w.lock);
	*keys = res.deleted;
	return rc == SKV_PENDING ? w.rc : rc;
}

static struct skv_doc *doc_of(struct round *r, const char *name)
{
	uint32_t low = 0, high = r->n_docs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int order = strcmp(r->docs[mid].name + sizeof DOCS - 1, name);

		if (order == 0) {
			r->used[mid] = true;
			return &r->docs[mid];
		}
		*(order < 0 ? &low : &high) = order < 0 ? mid + 1 : mid;
	}
	return NULL;
}

/* `seen` with inode 0: forgets its state. The keys were dropped durably before this by the owner of
 * the space, which need not own the first partition; if it is not the owner any more, another one
 * drops them once more. */
static int learn(struct round *r, const char *name, const struct page_file *f,
		 const struct skv_file_look *seen, struct skv_error *err)
{
	char doc[SKV_MAX_NAME + sizeof DOCS];
	struct skv_buf text = { 0 };
	int rc;

	assert(*name && strlen(name) <= SKV_MAX_NAME);
	snprintf(doc, sizeof doc, DOCS "%s", name);
	if (!seen->inode) {
		rc = skv_cluster_doc_retire(r->w->cluster, doc, err);
		return rc == SKV_E_NOT_FOUND ? SKV_OK : rc;
	}
	page_file_put(seen, f->path, &text);
	rc = text.failed ? SKV_E_NOMEM
			 : skv_cluster_doc_publish(r->w->cluster, doc, (const char *)text.data,
						   err);
	skv_buf_destroy(&text);
	return rc;
}

/* Drops the keys of a file whose pages are lost. */
static int drop(struct round *r, const struct space *s, struct watched *of,
		enum page_file_news news, const struct page_file *f, struct skv_error *err)
{
	const char *why = news == PAGE_FILE_GONE     ? "is gone"
			  : news == PAGE_FILE_SHRANK ? "is shorter than it was"
						     : "is another one than it was";
	uint64_t keys;
	int rc = clear(r, s, &keys, err);

	if (rc != SKV_OK)
		return rc;
	skv_log(SKV_LOG_WARN, "pages", "%s: its file %s %s: keys dropped: %" PRIu64,
		of->name, f->path, why, keys);
	count(r->p, news == PAGE_FILE_GONE     ? HF3FS_file_gone
		    : news == PAGE_FILE_SHRANK ? HF3FS_file_shrank
					       : HF3FS_file_replaced);
	return SKV_OK;
}

static int act(struct round *r, const struct space *s, struct watched *of,
	       const struct page_file *f, const struct skv_doc *doc,
	       const struct skv_file_look *seen, struct skv_error *err)
{
	struct skv_file_look known = { .inode = 0 };
	enum page_file_news news;
	int rc = SKV_OK;

	if (doc)
		/* of another path: unknown for this one */
		page_file_get(doc->text, f->path, &known);
	news = page_file_settle(page_file_judge(&known, seen), &of->elsewhere_since, now_ms());
	if (page_file_is_lost(news))
		rc = drop(r, s, of, news, f, err);
	if (rc == SKV_OK && (page_file_is_lost(news) || news == PAGE_FILE_LEARN))
		rc = learn(r, of->name, f, seen, err);
	if (rc == SKV_OK)
		set_state(r->w, of,
			  news == PAGE_FILE_ELSEWHERE ? HF3FS_FILE_UNSEEN
			  : seen->inode               ? HF3FS_FILE_THERE
						      : HF3FS_FILE_NONE,
			  page_file_is_lost(news));
	return rc;
}

static void tell_unseen(struct watched *of, const struct page_file *f, const struct skv_error *err)
{
	if (!of->told)
		skv_log(SKV_LOG_WARN, "pages",
			"%s: its file %s cannot be checked, its keys stay: %s", of->name, f->path,
			err->message);
	of->told = true;
}

static int look(struct round *r, const struct page_file *f, struct skv_file_look *seen,
		struct skv_error *err)
{
	const struct skv_hf3fs_api_files *o = &r->p->o.files;
	int rc;

	if (r->silent)
		return skv_fail(err, SKV_E_NETWORK, NULL, "no fs-master answers");
	skv_mutex_lock(&r->w->lock);
	r->w->began = now_ms();
	skv_mutex_unlock(&r->w->lock);
	assert(skv_thread_locks == 0);
	rc = o->look(o->ctx, f->dir, f->path, seen, err);
	skv_mutex_lock(&r->w->lock);
	r->w->began = 0;
	skv_mutex_unlock(&r->w->lock);
	r->silent = rc == SKV_E_NETWORK;
	return rc;
}

/* `doc` NULL: its file's state is unknown. */
static void look_at(struct round *r, const struct space *s, struct watched *of,
		    const struct page_file *f, const struct skv_doc *doc)
{
	struct skv_file_look seen = { .inode = 0 };
	struct skv_error err = { 0 };
	int rc = look(r, f, &seen, &err);

	of->round = r->w->round;
	count(r->p, rc == SKV_OK ? HF3FS_file_looks : HF3FS_file_unseen);
	if (rc != SKV_OK) {
		set_state(r->w, of, HF3FS_FILE_UNSEEN, false);
		tell_unseen(of, f, &err);
		return;
	}
	if (of->told)
		skv_log(SKV_LOG_INFO, "pages", "%s: its file can be checked again", of->name);
	of->told = false;
	rc = act(r, s, of, f, doc, &seen, &err);
	if (rc != SKV_OK && rc != SKV_E_NOT_OWNER && rc != SKV_E_NOT_READY && rc != SKV_E_NOT_FOUND)
		skv_log(SKV_LOG_WARN, "pages",
			"%s: what is known of its file cannot be stored now: %s", of->name,
			err.message[0] ? err.message : skv_status_text(rc));
}

/* ---- requested checks ------------------------------------------------------------------------ */

static void look_at_asked(struct round *r, const struct asked *q)
{
	char name[SKV_MAX_NAME + 1], doc_name[SKV_MAX_NAME + sizeof DOCS];
	struct skv_instance_view *v;
	struct skv_error err;
	struct skv_doc doc;
	struct page_file f;
	struct watched *of;
	struct space s;
	int rc;

	if (skv_cluster_instance(r->w->cluster, q->tenant, q->id, &r->a, &v, &err) != SKV_OK ||
	    !space_of(&v[0].spec, &r->a, &s) || !page_file_of(&r->p->o.files, &s, &f))
		return;
	space_name(&s, name);
	snprintf(doc_name, sizeof doc_name, DOCS "%s", name);
	of = find_or_add(r->w, name);
	rc = of ? skv_cluster_doc_get(r->w->cluster, doc_name, &r->a, &doc, &err) : SKV_E_NOMEM;
	if (rc == SKV_OK || rc == SKV_E_NOT_FOUND)
		look_at(r, &s, of, &f, rc == SKV_OK ? &doc : NULL);
}

/* Returns false if the thread must end. */
static bool serve_asked(struct pages *p)
{
	struct hf3fs_watch *w = p->watch;
	struct round r = { .p = p, .w = w };
	uint64_t put;
	uint32_t n;
	bool stop;

	skv_mutex_lock(&w->lock);
	n = w->n_asked;
	put = w->put;
	stop = w->stop;
	assert(n <= ASKED_MAX && w->answered <= put);
	memcpy(w->taken, w->asked, n * sizeof *w->asked);
	w->n_asked = 0;
	skv_mutex_unlock(&w->lock);
	if (n == 0 || stop)
		return !stop;
	skv_arena_init(&r.a);
	for (uint32_t i = 0; i < n && skv_cluster_may_begin(w->cluster); i++)
		look_at_asked(&r, &w->taken[i]);
	skv_arena_destroy(&r.a);
	skv_mutex_lock(&w->lock);
	w->answered = put;
	skv_cond_broadcast(&w->done);
	skv_mutex_unlock(&w->lock);
	return true;
}

void hf3fs_watch_look(struct pages *p, const struct space *s)
{
	struct hf3fs_watch *w = p->watch;
	uint64_t now = now_ms(), end = now + WAIT_MS, turn;
	struct page_file f;

	if (!w || !page_file_of(&p->o.files, s, &f))
		return;
	assert(w->owner != skv_thread());
	skv_mutex_lock(&w->lock);
	if (w->n_asked < ASKED_MAX) {
		struct asked *q = &w->asked[w->n_asked++];

		snprintf(q->tenant, sizeof q->tenant, "%s", s->tenant);
		snprintf(q->id, sizeof q->id, "%s", s->id);
		turn = ++w->put;
		skv_cond_signal(&w->wake);
		if (w->began && now - w->began >= WAIT_MS) /* the round hangs */
			end = now;
		while (w->answered < turn && !w->stop && now < end) {
			skv_cond_wait_ms(&w->done, &w->lock, end - now);
			now = now_ms();
		}
	}
	skv_mutex_unlock(&w->lock);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Checks a space. The space may have been checked in this round already, so the state at the
 * round's start may be outdated. */
static void look_in_turn(struct round *r, const struct space *s)
{
	const struct skv_doc *doc;
	char name[SKV_MAX_NAME + 1];
	struct page_file f;
	struct watched *of;

	if (!page_file_of(&r->p->o.files, s, &f))
		return;
	space_name(s, name);
	doc = doc_of(r, name);
	of = find_or_add(r->w, name);
	if (of && of->round != r->w->round)
		look_at(r, s, of, &f, doc);
}

static void look_at_all(struct round *r)
{
	struct skv_instance_view *v;
	struct skv_error err;
	struct space s;
	uint32_t n;
	struct skv_cluster *cluster = r->w->cluster;

	if (skv_cluster_doc_list(cluster, DOCS, &r->a, &r->docs, &r->n_docs, &err) != SKV_OK ||
	    skv_cluster_every_instance(cluster, NULL, &r->a, &v, &n, &err) != SKV_OK)
		return;
	r->used = skv_arena_calloc(&r->a, r->n_docs + (size_t)1, sizeof *r->used);
	if (!r->used)
		return;
	for (uint32_t i = 0; i < n; i++) {
		if (!serve_asked(r->p))
			return;
		if (space_of(&v[i].spec, &r->a, &s))
			look_in_turn(r, &s);
	}
	/* of spaces that are gone, or without a file; others' are not known here */
	for (uint32_t i = 0; i < r->n_docs && skv_cluster_may_answer(r->w->cluster) == SKV_OK; i++)
		if (!r->used[i])
			skv_cluster_doc_delete(r->w->cluster, r->docs[i].name, &err);
	forget(r->w, false);
}

static void look_round(struct pages *p)
{
	struct round r = { .p = p, .w = p->watch };

	if (!skv_cluster_may_begin(r.w->cluster))
		return;
	r.w->round++;
	skv_arena_init(&r.a);
	look_at_all(&r);
	skv_arena_destroy(&r.a);
}

static void *watch_thread(void *arg)
{
	struct pages *p = arg;
	struct hf3fs_watch *w = p->watch;
	uint64_t due = 0;

	w->owner = skv_thread();
	while (serve_asked(p)) {
		if (now_ms() >= due) {
			look_round(p);
			due = now_ms() + p->o.files.look_ms;
		}
		skv_mutex_lock(&w->lock);
		if (!w->stop && w->n_asked == 0 && now_ms() < due)
			skv_cond_wait_ms(&w->wake, &w->lock, due - now_ms());
		skv_mutex_unlock(&w->lock);
	}
	skv_mutex_lock(&w->lock);
	w->ended = true;
	skv_cond_broadcast(&w->done);
	skv_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void destroy(struct hf3fs_watch *w)
{
	forget(w, true);
	skv_cond_destroy(&w->done);
	skv_cond_destroy(&w->wake);
	skv_mutex_destroy(&w->lock);
	skv_free(w);
}

int skv_hf3fs_api_start(struct skv_api *api, struct skv_cluster *cluster, struct skv_error *err)
{
	struct pages *p = api->ctx;
	struct hf3fs_watch *w;

	if (!*p->o.files.prefix && !*p->o.files.vllm_path)
		return SKV_OK;
	w = skv_calloc(1, sizeof *w);
	if (!w)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_mutex_init(&w->lock);
	skv_cond_init(&w->wake);
	skv_cond_init(&w->done);
	w->cluster = cluster;
	p->watch = w;
	if (pthread_create(&w->thread, NULL, watch_thread, p) == 0)
		return SKV_OK;
	p->watch = NULL;
	destroy(w);
	return skv_fail(err, SKV_E_NOMEM, NULL, "no thread to watch page files");
}

bool skv_hf3fs_api_quiet(struct skv_api *api, uint32_t timeout_ms)
{
	struct pages *p = api ? api->ctx : NULL;
	struct hf3fs_watch *w = p ? p->watch : NULL;
	uint64_t now = now_ms(), end = now + timeout_ms;
	bool ended;

	if (!w)
		return true;
	skv_mutex_lock(&w->lock);
	w->stop = true;
	skv_cond_signal(&w->wake);
	skv_cond_broadcast(&w->done);
	for (; !w->ended && now < end; now = now_ms())
		skv_cond_wait_ms(&w->done, &w->lock, end - now);
	ended = w->ended;
	skv_mutex_unlock(&w->lock);
	if (!ended)
		return false;
	if (!w->joined)
		pthread_join(w->thread, NULL);
	w->joined = true;
	return true;
}

void hf3fs_watch_destroy(struct hf3fs_watch *w)
{
	if (!w)
		return;
	assert(w->joined);
	destroy(w);
}
