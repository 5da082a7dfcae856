/*
 * session.c - write sessions, from start to finish, and the memory of ended ones.
 *
 * Sessions are found by id and by the hash of (tenant, instance, request id). An ended session
 * keeps its id and outcome until deadline + REMEMBER_MS (bounded in number), so that repeated calls
 * get the same answer. Under the write lock, finds under the read lock.
 */
#include <model/session.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/mark.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/volume.h>
#include <model/table.h>
#include <model/tenant.h>

static size_t bucket(struct skv_key k)
{
	return (size_t)(k.lo ^ k.hi >> 17) & (SESSION_BUCKETS - 1);
}

struct session *session_find(const struct partition *p, struct skv_key id)
{
	struct session *s = p->session_by_id[bucket(id)];

	ASSERT_SHARED(p);
	while (s && !skv_key_equal(s->id, id))
		s = s->id_next;
	return s;
}

struct session *session_by_request(const struct partition *p, struct skv_key request)
{
	struct session *s = p->session_by_request[bucket(request)];

	ASSERT_SHARED(p);
	while (s && !skv_key_equal(s->request, request))
		s = s->request_next;
	return s;
}

struct skv_key tenant_hash(const char *tenant) { return skv_hash128(tenant, strlen(tenant)); }

struct skv_key session_new_id(uint32_t partition)
{
	struct skv_key id;

	assert(partition < SKV_MAX_PARTITIONS);
	skv_random(&id, sizeof id);
	id.hi = (id.hi & UINT64_MAX >> 8) | (uint64_t)partition << 56;
	return id;
}

uint32_t skv_session_partition(const char *id)
{
	struct skv_key k;

	return session_id_parse(id, &k) ? (uint32_t)(k.hi >> 56) : UINT32_MAX;
}

bool session_id_parse(const char *hex, struct skv_key *out)
{
	return skv_key_from_hex(hex, strlen(hex), out);
}

void session_id_text(struct skv_key id, char out[SKV_SESSION_ID_HEX + 1])
{
	skv_key_to_hex(id, out);
}

struct session *session_make(uint32_t n_keys, uint32_t n_write)
{
	struct session *s = skv_calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->n_keys = n_keys;
	s->n_write = n_write;
	s->outcome = skv_calloc(n_keys, 1);
	s->keys = skv_calloc(n_keys, sizeof *s->keys);
	s->write = skv_calloc(n_write, sizeof *s->write);
	if (!s->outcome || !s->keys || !s->write) {
		session_free(s);
		return NULL;
	}
	return s;
}

static void free_lists(struct session *s)
{
	skv_free(s->outcome);
	skv_free(s->keys);
	skv_free(s->write);
	s->outcome = NULL;
	s->keys = NULL;
	s->write = NULL;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	free_lists(s);
	skv_free(s);
}

static int reserve_number(struct partition *p, uint32_t *number)
{
	void *v = p->session, *f = p->session_free;
	int rc;

	ASSERT_EXCLUSIVE(p);
	rc = skv_grow(&v, &p->cap_session, p->n_session + 1, sizeof *p->session);
	p->session = v;
	if (rc == SKV_OK)
		rc = skv_grow(&f, &p->cap_session_free, p->n_session + 1, sizeof *p->session_free);
	p->session_free = f;
	if (rc == SKV_OK)
		rc = skv_heaps_reserve(&p->deadlines, p->n_session + 1);
	if (rc != SKV_OK)
		return rc;
	if (p->n_session_free)
		*number = p->session_free[--p->n_session_free];
	else
		*number = (uint32_t)p->n_session++;
	return SKV_OK;
}

uint32_t *session_due_place(void *ctx, uint32_t number)
{
	const struct partition *p = ctx;

	return &p->session[number]->due;
}

void session_set_due(struct partition *p, struct session *s, uint64_t at)
{
	assert(s->state == SKV_SESSION_OPEN);
	session_drop_due(p, s);
	skv_heap_push(&p->deadlines, 0, at, s->number);
}

void session_drop_due(struct partition *p, struct session *s)
{
	if (s->due)
		skv_heap_remove(&p->deadlines, s->number);
}

struct session *session_first_due(struct partition *p, uint64_t now)
{
	uint64_t at;
	uint32_t number;

	return skv_heap_top(&p->deadlines, 0, &at, &number) && at <= now ? p->session[number]
									  : NULL;
}

/* Stores the session's number in its slots, so that a slot being written leads to its writer. */
static void sign_slots(struct partition *p, const struct session *s)
{
	for (uint32_t i = 0; i < s->n_write; i++) {
		struct slot *slots =
			s->write[i].specs ? block_get(p, s->write[i].block)->slot : NULL;

		for (uint32_t spec = 0; specs_left(s->write[i].specs, spec); spec++)
			if (s->write[i].specs >> spec & 1)
				slots[spec].checksum = s->number + 1;
	}
}

int session_add(struct partition *p, struct session *s)
{
	struct session **by_id = &p->session_by_id[bucket(s->id)];
	struct session **by_request = &p->session_by_request[bucket(s->request)];
	int rc = reserve_number(p, &s->number);

	ASSERT_EXCLUSIVE(p);
	if (rc != SKV_OK)
		return rc;
	p->session[s->number] = s;
	s->id_next = *by_id;
	*by_id = s;
	if (s->request.hi || s->request.lo) {
		s->request_next = *by_request;
		*by_request = s;
	}
	if (s->state != SKV_SESSION_OPEN)
		return SKV_OK;
	p->open_sessions++;
	s->inst->open_sessions++;
	s->inst->tenant->open_sessions++;
	s->open_next = s->inst->open;
	if (s->open_next)
		s->open_next->open_before = s;
	s->inst->open = s;
	s->inst->open_bytes += s->bytes;
	s->inst->group->open_blocks += s->n_left;
	s->inst->tenant->open_blocks += s->n_left;
	tenant_touch(s->inst->tenant);
	sign_slots(p, s);
	session_set_due(p, s, s->deadline_at);
	return SKV_OK;
}

static void unchain(struct session **head, struct session *s, bool by_id)
{
	while (*head && *head != s)
		head = by_id ? &(*head)->id_next : &(*head)->request_next;
	if (*head)
		*head = by_id ? s->id_next : s->request_next;
}

static void leave_open(struct partition *p, struct session *s)
{
	ASSERT_EXCLUSIVE(p);
	session_drop_due(p, s);
	p->open_sessions--;
	s->inst->open_sessions--;
	s->inst->tenant->open_sessions--;
	*(s->open_before ? &s->open_before->open_next : &s->inst->open) = s->open_next;
	if (s->open_next)
		s->open_next->open_before = s->open_before;
	s->inst->open_bytes -= s->bytes;
	s->inst->group->open_blocks -= s->n_left;
	s->inst->tenant->open_blocks -= s->n_left;
	tenant_touch(s->inst->tenant);
	s->inst = NULL;
}

void session_destroy(struct partition *p, struct session *s)
{
	ASSERT_EXCLUSIVE(p);
	if (s->inst)
		leave_open(p, s);
	unchain(&p->session_by_id[bucket(s->id)], s, true);
	if (s->request.hi || s->request.lo)
		unchain(&p->session_by_request[bucket(s->request)], s, false);
	p->session[s->number] = NULL;
	p->session_free[p->n_session_free++] = s->number;
	session_free(s);
}

bool session_is_named(const struct session *s) { return s->pending || s->ending; }

static void forget_oldest(struct partition *p)
{
	struct session *s = p->ended_head;

	p->ended_head = s->queue_next;
	if (!p->ended_head)
		p->ended_tail = NULL;
	p->ended_sessions--;
	session_destroy(p, s);
}

/* Keeps which writes were deleted, in the place of the outcomes, and frees everything else. */
static void free_all_but_deleted(struct session *s)
{
	uint8_t *kept = s->outcome;

	for (uint32_t i = 0; i < s->n_write && s->n_deleted; i++)
		kept[i] = s->write[i].specs == 0;
	s->outcome = NULL;
	free_lists(s);
	if (s->n_deleted && s->n_deleted < s->n_write)
		s->outcome = kept;
	else
		skv_free(kept);
}

bool session_deleted(const struct session *s, uint32_t i)
{
	assert(i < s->n_write && !s->anonymous);
	if (s->state == SKV_SESSION_OPEN)
		return s->write[i].specs == 0;
	return s->n_deleted == s->n_write || (s->n_deleted && s->outcome[i]);
}

void session_end(struct partition *p, struct session *s, enum skv_session_state state)
{
	ASSERT_EXCLUSIVE(p);
	if (s->inst)
		leave_open(p, s);
	s->state = state;
	if (s->anonymous && !session_is_named(s)) {
		session_destroy(p, s);
		return;
	}
	s->forget_at = s->deadline_at + REMEMBER_MS;
	s->queue_next = NULL;
	if (s->write) /* else it is loaded: only what is kept */
		free_all_but_deleted(s);
	if (p->ended_tail)
		p->ended_tail->queue_next = s;
	else
		p->ended_head = s;
	p->ended_tail = s;
	if (++p->ended_sessions > p->core->o.max_remembered && !session_is_named(p->ended_head))
		forget_oldest(p);
}

void sessions_free(struct partition *p)
{
	for (size_t i = 0; i < p->n_session; i++)
		session_free(p->session[i]);
	skv_free(p->session);
	skv_free(p->session_free);
	skv_heaps_destroy(&p->deadlines);
}

void session_forget_due(struct partition *p, uint64_t now)
{
	ASSERT_EXCLUSIVE(p);
	while (p->ended_head && p->ended_head->forget_at <= now && !session_is_named(p->ended_head))
		forget_oldest(p);
}

void session_release(struct partition *p, struct session *s, uint32_t i, uint64_t hold_until)
{
	struct block *b;

	ASSERT_EXCLUSIVE(p);
	if (!s->write[i].specs)
		return;
	b = block_get(p, s->write[i].block);
	if (p->lossy && s->generation < p->loaded_generation &&
	    hold_until < block_instance(b)->loaded_lease)
		/* the session's commit may have been lost, and a reader may know of it */
		hold_until = block_instance(b)->loaded_lease;
	for (uint32_t spec = 0; specs_left(s->write[i].specs, spec); spec++)
		if (s->write[i].specs >> spec & 1)
			slot_release(p, b, spec, hold_until);
	block_update_live(p, b);
	evict_consider(p, b); /* other specs of the block may be committed */
	block_maybe_free(p, b);
}

uint64_t session_grace_end(const struct partition *p, const struct session *s)
{
	uint32_t grace = p->core->o.grace_ms;

	ASSERT_SHARED(p);
	return s->deadline_at + (s->grace_ms > grace ? s->grace_ms : grace);
}

bool session_is_last(const struct session *s, uint32_t i)
{
	return i + 1 == s->n_write && !s->independent;
}

void session_partial(struct partition *p, struct session *s, uint32_t i, bool success, uint64_t use)
{
	struct session_write *w = &s->write[i];
	struct block *b = block_get(p, w->block);

	ASSERT_EXCLUSIVE(p);
	assert(s->anonymous || !success); /* others end single writes only by a delete */
	if (success) {
		bool born = !block_has_committed(s->inst, b);

		for (uint32_t spec = 0; specs_left(w->specs, spec); spec++)
			if (w->specs >> spec & 1)
				commit_slot(p, b, spec, NULL);
		block_use(b, use);
		if (born)
			evict_born(p, b, session_is_last(s, i));
		block_update_live(p, b);
		evict_consider(p, b);
	} else {
		session_release(p, s, i, session_grace_end(p, s));
	}
	for (uint32_t spec = 0; specs_left(w->specs, spec); spec++) {
		uint64_t bytes = w->specs >> spec & 1 ? s->inst->spec.specs[spec].size : 0;

		s->bytes -= bytes;
		s->inst->open_bytes -= bytes;
	}
	w->specs = 0;
	s->n_deleted += !s->anonymous;
	s->inst->group->open_blocks--;
	s->inst->tenant->open_blocks--;
	tenant_touch(s->inst->tenant);
	if (--s->n_left == 0 && s->anonymous)
		session_end(p, s, SKV_SESSION_FINISHED);
}
