/*
 * async.c - the asynchronous queue: submit, drain, cancel, stop.
 *
 * Owns the operations from submit to drain, the worker threads and the eventfd. Everything that an
 * operation needs is allocated by its submit, so that completing never fails; `in_flight` bounds
 * queue, work and completions together.
 *
 * Lock: slabkv_async.lock, before those of memory and pools. The eventfd is written and read under
 * the lock, so that it is readable exactly while completions can be drained.
 */
#include "async.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <skv/hash.h>
#include <skv/mem.h>

void slabkv_async_options_init(struct slabkv_async_options *o, size_t size)
{
	const struct slabkv_async_options own = { .size = size,
						  .max_in_flight = SKV_ASYNC_IN_FLIGHT,
						  .threads = SKV_ASYNC_THREADS,
						  .batch = SKV_ASYNC_BATCH };

	memset(o, 0, size);
	memcpy(o, &own, size < sizeof own ? size : sizeof own);
}

void skv_async_append(struct skv_async_list *l, struct skv_async_op *op)
{
	SKV_CHECK(!l->head == !l->tail && !l->head == (l->n == 0));
	op->next = NULL;
	op->prev = l->tail;
	if (l->tail)
		l->tail->next = op;
	else
		l->head = op;
	l->tail = op;
	l->n++;
}

void skv_async_remove(struct skv_async_list *l, struct skv_async_op *op)
{
	if (!SKV_CHECK(l->n > 0 && (op->prev ? op->prev->next : l->head) == op &&
		       (op->next ? op->next->prev : l->tail) == op))
		return;
	if (op->prev)
		op->prev->next = op->next;
	else
		l->head = op->next;
	if (op->next)
		op->next->prev = op->prev;
	else
		l->tail = op->prev;
	l->n--;
}

static void unpin(struct slabkv_async *a, struct skv_async_op *op)
{
	for (uint32_t i = 0; i < op->n_bufs; i++)
		skv_memory_unpin(a->kv->memory, op->pins[i], op->bufs[i].data, op->bufs[i].size);
}

void skv_async_complete_locked(struct slabkv_async *a, struct skv_async_op *op)
{
	const uint64_t one = 1;

	SKV_CHECK(skv_mutex_held(&a->lock) && op->result <= SLABKV_DELETED);
	SKV_CHECK(a->done.n < a->in_flight);
	unpin(a, op);
	skv_async_append(&a->done, op);
	if (a->done.n == 1)
		while (write(a->fd, &one, sizeof one) < 0 && errno == EINTR)
			;
}

/* ---- open ------------------------------------------------------------------------------------ */

static int check_options(const struct slabkv_async_options *o, struct skv_error *err)
{
	if (!SKV_HAS(o, batch))
		return skv_size_refuse(err, "slabkv_async_options_init");
	if (o->max_in_flight < 1 || o->max_in_flight > 1u << 20)
		return skv_fail(err, SKV_E_INVALID, "max_in_flight", "1..1048576");
	if (o->threads < 1 || o->threads > 64)
		return skv_fail(err, SKV_E_INVALID, "threads", "1..64");
	if (o->batch < 1 || o->batch > 1024)
		return skv_fail(err, SKV_E_INVALID, "batch", "1..1024");
	return SKV_OK;
}

static int start_worker(struct slabkv_async *a, struct skv_async_worker *w, struct skv_error *err)
{
	sigset_t all, before;
	int error;

	w->async = a;
	w->ops = skv_calloc(a->batch, sizeof(struct skv_async_op *));
	w->blocks = skv_calloc(a->batch, sizeof *w->blocks);
	w->keys.room = skv_calloc(a->batch, sizeof(struct slabkv_key));
	if (!w->ops || !w->blocks || !w->keys.room)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	/* Signals are the program's: none of its handlers runs on a thread that it does not
	 * know. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&w->thread, NULL, skv_async_work, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? skv_fail(err, SKV_E_UNAVAILABLE, "threads", "no thread: %s", strerror(error))
		     : SKV_OK;
}

static void free_worker(struct skv_async_worker *w)
{
	skv_free(w->ops);
	skv_free(w->blocks);
	skv_free(w->keys.room);
}

static void release(struct slabkv_async *a)
{
	SKV_CHECK(!a->queue.head && !a->done.head && a->in_flight == 0);
	if (a->fd >= 0)
		close(a->fd);
	skv_free(a->workers);
	skv_cond_destroy(&a->work);
	skv_cond_destroy(&a->stopped);
	skv_mutex_destroy(&a->lock);
	skv_free(a);
}

static int build(struct slabkv_async *a, uint32_t threads, struct skv_error *err)
{
	int rc = SKV_OK;

	a->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (a->fd < 0)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "eventfd: %s", strerror(errno));
	a->workers = skv_calloc(threads, sizeof *a->workers);
	if (!a->workers)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	while (a->n_workers < threads) {
		rc = start_worker(a, &a->workers[a->n_workers], err);
		if (rc != SKV_OK) {
			free_worker(&a->workers[a->n_workers]);
			break;
		}
		a->n_workers++;
	}
	return rc;
}

static int open_queue(struct slabkv *kv, const struct slabkv_async_options *o,
		      struct slabkv_async **out, struct skv_error *err)
{
	struct slabkv_async_options defaults;
	struct slabkv_async *a;
	uint32_t workers = 0; /* of all queues */
	int rc;

	slabkv_async_options_init(&defaults, sizeof defaults);
	if (!o) {
		defaults.threads = kv->async_threads ? kv->async_threads : defaults.threads;
		defaults.max_in_flight =
			kv->async_in_flight ? kv->async_in_flight : defaults.max_in_flight;
		o = &defaults;
	}
	rc = check_options(o, err);
	if (rc != SKV_OK)
		return rc;
	a = skv_calloc(1, sizeof *a);
	if (!a)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	a->kv = kv;
	a->max_in_flight = o->max_in_flight;
	a->batch = o->batch;
	skv_mutex_init(&a->lock);
	skv_cond_init(&a->work);
	skv_cond_init(&a->stopped);
	rc = build(a, o->threads, err);
	if (rc != SKV_OK) {
		slabkv_async_stop(a, true);
		release(a);
		return rc;
	}
	skv_mutex_lock(&kv->async_lock);
	a->next_of_handle = kv->async;
	kv->async = a;
	for (const struct slabkv_async *i = a; i; i = i->next_of_handle)
		workers += i->n_workers;
	skv_mutex_unlock(&kv->async_lock);
	skv_engine_ready(kv->engine, workers);
	*out = a;
	return SKV_OK;
}

int slabkv_async_open(struct slabkv *kv, const struct slabkv_async_options *o,
		       struct slabkv_async **out, struct slabkv_error *err)
{
	struct skv_error e = { 0 };

	int rc = skv_enter(kv, &e);

	return skv_result_fail(err, &e, rc == SKV_OK ? open_queue(kv, o, out, &e) : rc);
}

int slabkv_async_fd(const struct slabkv_async *a) { return a->fd; }

/* ---- submit ---------------------------------------------------------------------------------- */

static const struct slabkv_op *op_at(const struct slabkv_op *ops, size_t size, uint32_t i)
{
	return SLABKV_AT(struct slabkv_op, ops, size, i);
}

static int refuse(struct skv_error *err, uint32_t i, const char *member, const char *why)
{
	return skv_fail(err, SKV_E_INVALID, member, "operation %u: %s", i, why);
}

/* `before`: the previous one in the submit, or NULL. */
static int check_op(const struct slabkv_op *op, const struct skv_async_op *before, uint32_t i,
		    struct skv_error *err)
{
	bool moves = op->kind == SLABKV_OP_PUT || op->kind == SLABKV_OP_GET;

	if ((int)op->kind < SLABKV_OP_PUT || op->kind > SLABKV_OP_DELETE)
		return refuse(err, i, "kind", "unknown");
	if (skv_model_name_check(op->instance, "instance", NULL) != SKV_OK)
		return refuse(err, i, "instance", "not an instance name");
	if (!op->key || !SKV_HAS(op->key, parent) || op->key->n != 1)
		return refuse(err, i, "key", "exactly one");
	if (moves ? op->n_bufs < 1 || op->n_bufs > SKV_MAX_SPECS || !op->bufs : op->n_bufs > 0)
		return refuse(err, i, "bufs", "one for each spec; none unless bytes move");
	if ((op->chained || op->key->parent) && op->kind != SLABKV_OP_PUT)
		return refuse(err, i, "chained", "only puts make a chain");
	if (op->chained && (op->key->parent || !before || before->kind != SLABKV_OP_PUT ||
			    skv_keys_are_text(&before->key) != skv_keys_are_text(op->key) ||
			    strcmp(before->instance, op->instance) != 0))
		return refuse(err, i, "chained", "not after a put of that instance and form");
	return SKV_OK;
}

static uint64_t hash_of(const struct slabkv_keys *key)
{
	if (key->form == SLABKV_KEYS_STRING)
		return skv_checksum(key->v.strings[0], strlen(key->v.strings[0]));
	return key->v.wide[0].lo ^ (key->v.wide[0].hi * 0x9e3779b97f4a7c15ull);
}

/* Returns a single copy of the name for neighbours with the same name. */
static const char *copy_instance(struct skv_arena *arena, const char *instance,
				 const struct skv_async_op *before)
{
	if (before && strcmp(before->instance, instance) == 0)
		return before->instance;
	return skv_arena_strndup(arena, instance, strlen(instance));
}

static bool room_for_bufs(struct skv_async_batch *b, struct skv_async_op *op, size_t n)
{
	op->n_bufs = (uint32_t)n;
	if (n == 0)
		return true;
	op->bufs = skv_arena_calloc(&b->arena, n, sizeof *op->bufs);
	op->pins = skv_arena_calloc(&b->arena, n, sizeof(struct skv_region *));
	return op->bufs && op->pins;
}

static int copy_op(struct skv_async_batch *b, uint32_t i, const struct slabkv_op *from,
		   struct skv_error *err)
{
	struct skv_async_op *op = &b->ops[i], *before = i > 0 ? op - 1 : NULL;
	int rc = check_op(from, before, i, err);

	if (rc != SKV_OK)
		return rc;
	*op = (struct skv_async_op){ .batch = b,
				     .index = i,
				     .kind = from->kind,
				     .instance = copy_instance(&b->arena, from->instance, before),
				     .tag = from->tag,
				     .result = SLABKV_CANCELLED };
	rc = skv_keys_copy(from->key, &b->arena, &op->key, err);
	if (rc == SKV_E_INVALID)
		return refuse(err, i, "key",
			      "a number, 128 bits, or a string of 1..1024 bytes, UTF-8");
	if (rc != SKV_OK || !op->instance || !room_for_bufs(b, op, from->n_bufs))
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	op->hash = hash_of(&op->key);
	if (from->chained) {
		op->after = before;
		op->key.parent = &before->key;
	}
	for (uint32_t k = 0; k < from->n_bufs; k++)
		op->bufs[k] = from->bufs[k];
	return SKV_OK;
}

static void free_batch(struct skv_async_batch *b)
{
	skv_arena_destroy(&b->arena);
	skv_free(b);
}

static struct skv_async_batch *new_batch(uint32_t n)
{
	struct skv_async_batch *b = skv_calloc(1, sizeof *b);

	if (!b)
		return NULL;
	skv_arena_init(&b->arena);
	b->n = b->left = n;
	memcpy(b->trace, skv_trace_of_thread(), sizeof b->trace);
	b->ops = skv_arena_calloc(&b->arena, n, sizeof *b->ops);
	if (b->ops)
		return b;
	free_batch(b);
	return NULL;
}

/* A whole batch as one operation. */
static int copy_many(struct skv_async_batch *b, const struct slabkv_batch *from,
		     struct skv_error *err)
{
	struct slabkv_batch *many = skv_arena_calloc(&b->arena, 1, sizeof *many);
	struct skv_async_op *op = &b->ops[0];
	int rc = many ? skv_batch_copy(from, &b->arena, many, err) : SKV_E_NOMEM;

	if (rc == SKV_OK && !room_for_bufs(b, op, (size_t)many->keys->n * many->n_bufs))
		rc = SKV_E_NOMEM;
	if (rc != SKV_OK)
		return rc == SKV_E_NOMEM ? skv_fail(err, rc, NULL, "out of memory") : rc;
	op->batch = b;
	op->kind = many->kind;
	op->instance = many->instance;
	op->many = many;
	op->tag = many->tag;
	op->result = SLABKV_CANCELLED;
	for (uint32_t k = 0; k < op->n_bufs; k++)
		op->bufs[k] = (struct slabkv_buf){ many->data[k], many->lengths[k] };
	return SKV_OK;
}

static int reserve(struct slabkv_async *a, uint32_t n, struct skv_error *err)
{
	int rc = SKV_OK;

	skv_mutex_lock(&a->lock);
	SKV_CHECK(a->in_flight <= a->max_in_flight);
	if (a->stopping)
		rc = skv_fail(err, SKV_E_UNAVAILABLE, NULL, "the queue has been stopped");
	else if (n > a->max_in_flight - a->in_flight)
		rc = skv_fail(err, SKV_E_TOO_MANY, NULL, "%u operations are in flight: drain first",
			      a->in_flight);
	else
		a->in_flight += n;
	skv_mutex_unlock(&a->lock);
	return rc;
}

static void pin(struct slabkv_async *a, struct skv_async_batch *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		for (uint32_t k = 0; k < b->ops[i].n_bufs; k++)
			b->ops[i].pins[k] = skv_memory_pin(a->kv->memory, b->ops[i].bufs[k].data,
							   b->ops[i].bufs[k].size);
}

/* Returns false if the queue has been stopped meanwhile. */
static bool enqueue(struct slabkv_async *a, struct skv_async_batch *b, uint64_t *id)
{
	bool open;

	skv_mutex_lock(&a->lock);
	SKV_CHECK(a->queue.n + a->done.n + b->n <= a->in_flight &&
		  a->in_flight <= a->max_in_flight);
	open = !a->stopping;
	if (open) {
		*id = b->id = ++a->last_id;
		for (uint32_t i = 0; i < b->n; i++)
			skv_async_append(&a->queue, &b->ops[i]);
		skv_cond_broadcast(&a->work);
	}
	skv_mutex_unlock(&a->lock);
	return open;
}

/* Takes a batch that is ready, or releases it. */
static int submit(struct slabkv_async *a, struct skv_async_batch *b, uint64_t *id,
		  struct skv_error *err)
{
	uint32_t n = b->n;
	int rc = reserve(a, n, err);

	if (rc != SKV_OK) {
		free_batch(b);
		return rc;
	}
	pin(a, b);
	if (enqueue(a, b, id))
		return SKV_OK;
	for (uint32_t i = 0; i < n; i++)
		unpin(a, &b->ops[i]);
	free_batch(b);
	skv_mutex_lock(&a->lock);
	a->in_flight -= n;
	skv_mutex_unlock(&a->lock);
	return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "the queue has been stopped");
}

static int submit_ops(struct slabkv_async *a, const struct slabkv_op *ops, size_t op_size,
		      uint32_t n, uint64_t *id, struct skv_error *err)
{
	struct skv_async_batch *b;
	int rc = SKV_OK;

	if (n < 1 || !ops || op_size < sizeof *ops)
		return skv_fail(err, SKV_E_INVALID, "ops",
				"at least one operation, op_size is sizeof(struct slabkv_op)");
	if (n > a->max_in_flight)
		return skv_fail(err, SKV_E_TOO_LARGE, "ops", "at most %u operations",
				a->max_in_flight);
	b = new_batch(n);
	if (!b)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; i < n && rc == SKV_OK; i++)
		rc = copy_op(b, i, op_at(ops, op_size, i), err);
	if (rc == SKV_OK)
		return submit(a, b, id, err);
	free_batch(b);
	return rc;
}

static int submit_many(struct slabkv_async *a, const struct slabkv_batch *from, uint64_t *id,
		       struct skv_error *err)
{
	struct skv_async_batch *b;
	int rc = skv_batch_check(from, err);

	if (rc != SKV_OK)
		return rc;
	b = new_batch(1);
	if (!b)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	rc = copy_many(b, from, err);
	if (rc == SKV_OK)
		return submit(a, b, id, err);
	free_batch(b);
	return rc;
}

int slabkv_submit(struct slabkv_async *a, const struct slabkv_op *ops, size_t op_size, uint32_t n,
		  uint64_t *batch, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	uint64_t unused;
	int rc = skv_enter(a->kv, &e);

	if (rc == SKV_OK)
		rc = submit_ops(a, ops, op_size, n, batch ? batch : &unused, &e);
	return skv_result_fail(err, &e, rc);
}

int slabkv_batch_submit(struct slabkv_async *a, const struct slabkv_batch *b, uint64_t *batch,
			struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	uint64_t unused;
	int rc = skv_enter(a->kv, &e);

	if (rc == SKV_OK)
		rc = submit_many(a, b, batch ? batch : &unused, &e);
	return skv_result_fail(err, &e, rc);
}

/* ---- drain, cancel, stop --------------------------------------------------------------------- */

uint32_t slabkv_drain(struct slabkv_async *a, struct slabkv_completion *out, size_t completion_size,
		      uint32_t max)
{
	struct skv_async_op *op;
	uint64_t value;
	uint32_t n = 0;

	if (completion_size < sizeof *out || skv_is_foreign(a->kv->pid, NULL))
		return 0;
	skv_mutex_lock(&a->lock);
	while (n < max && (op = a->done.head) != NULL) {
		struct slabkv_completion *c =
			(struct slabkv_completion *)(void *)((char *)out + completion_size * n++);
		struct skv_async_batch *b = op->batch;

		skv_async_remove(&a->done, op);
		SKV_CHECK(b->left > 0 && b->left <= b->n && op->index < b->n);
		b->left--;
		*c = (struct slabkv_completion){ .tag = op->tag,
						 .batch = b->id,
						 .index = op->index,
						 .left = b->left,
						 .kind = op->kind,
						 .result = op->result,
						 .why = op->why };
		if (b->left == 0)
			free_batch(b);
	}
	if (n > 0 && a->done.n == 0)
		while (read(a->fd, &value, sizeof value) < 0 && errno == EINTR)
			;
	SKV_CHECK(n <= a->in_flight);
	a->in_flight -= n;
	skv_mutex_unlock(&a->lock);
	return n;
}

static uint32_t cancel_locked(struct slabkv_async *a, uint64_t batch) SKV_REQUIRES(a->lock)
{
	struct skv_async_op *next;
	uint32_t n = 0;

	SKV_CHECK(skv_mutex_held(&a->lock));
	for (struct skv_async_op *op = a->queue.head; op; op = next) {
		next = op->next;
		if (batch && op->batch->id != batch)
			continue;
		skv_async_remove(&a->queue, op);
		if (op->many)
			skv_batch_tell(op->many, SLABKV_CANCELLED, SLABKV_OK);
		skv_async_complete_locked(a, op); /* the result is CANCELLED from the start */
		n++;
	}
	return n;
}

uint32_t slabkv_cancel(struct slabkv_async *a, uint64_t batch)
{
	uint32_t n;

	if (skv_is_foreign(a->kv->pid, NULL))
		return 0;
	skv_mutex_lock(&a->lock);
	n = cancel_locked(a, batch);
	skv_mutex_unlock(&a->lock);
	return n;
}

void slabkv_async_stop(struct slabkv_async *a, bool cancel)
{
	bool first;

	if (skv_is_foreign(a->kv->pid, NULL))
		return;
	skv_mutex_lock(&a->lock);
	first = !a->stopping;
	a->stopping = true;
	if (cancel)
		cancel_locked(a, 0);
	skv_cond_broadcast(&a->work);
	while (!first && !a->joined)
		skv_cond_wait(&a->stopped, &a->lock);
	skv_mutex_unlock(&a->lock);
	if (!first)
		return;
	for (uint32_t i = 0; i < a->n_workers; i++) {
		pthread_join(a->workers[i].thread, NULL);
		free_worker(&a->workers[i]);
	}
	skv_mutex_lock(&a->lock);
	SKV_CHECK(!a->queue.head && a->done.n == a->in_flight); /* all have completed */
	a->joined = true;
	skv_cond_broadcast(&a->stopped);
	skv_mutex_unlock(&a->lock);
}

void slabkv_async_close(struct slabkv_async *a)
{
	struct slabkv_completion unused[64];

	if (!a || skv_is_foreign(a->kv->pid, NULL))
		return;
	slabkv_async_stop(a, true);
	while (slabkv_drain(a, unused, sizeof unused[0], 64) > 0)
		;
	skv_mutex_lock(&a->kv->async_lock);
	for (struct slabkv_async **at = &a->kv->async; *at; at = &(*at)->next_of_handle) {
		if (*at == a) {
			*at = a->next_of_handle;
			break;
		}
	}
	skv_mutex_unlock(&a->kv->async_lock);
	release(a);
}
