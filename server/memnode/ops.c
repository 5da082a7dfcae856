/*
 * ops.c - the operations of a memory node for managers: the verbs of skv/fs_master.h on its slabs.
 *
 * The path names the node, so that a call that reaches another node is detected. The first storage
 * that opens a node has it until it leaves, or the node ends; the owner files of other storages are
 * records here, as forgetful as the slabs.
 */
#include "memnode.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/json_out.h>
#include <skv/superblock.h>

/* ---- the storage ----------------------------------------------------------------------------- */

static int check_name(struct skv_request *c)
{
	const struct memnode *m = memnode_of(c->api);

	if (strcmp(c->param[0].value, m->name) == 0)
		return SKV_OK;
	return skv_fail(&c->err, SKV_E_FOREIGN, "fs_master",
			"this memory node is '%s', not '%.64s': check the storage's URL", m->name,
			c->param[0].value);
}

static int check_unit(const struct memnode *m, const struct skv_fs_request *q,
		      struct skv_error *err)
{
	if (q->unit % m->slabs.page == 0 || m->slabs.huge == 0)
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, "unit",
			"the unit (%" PRIu64 ") is no multiple of the node's huge pages (%" PRIu64
			"): choose a greater one",
			q->unit, m->slabs.page);
}

/* Checks that the node is this storage's. `may_bind`: binds a node without a storage. */
static int enter_locked(struct memnode *m, const struct skv_fs_request *q, bool may_bind,
			struct skv_error *err) SKV_REQUIRES(m->lock)
{
	assert(skv_mutex_held(&m->lock));
	if (m->bound && memcmp(m->uuid, q->uuid, 16) != 0)
		return skv_fail(err, SKV_E_FOREIGN, "fs_master",
				"memory node '%s' has the blocks of another storage ('%s', perhaps "
				"of another store): start a node for each storage",
				m->name, m->storage);
	if (!m->bound && !may_bind)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				"memory node '%s' was started anew, and has nothing of before",
				m->name);
	if (m->bound)
		return SKV_OK;
	m->bound = true;
	memcpy(m->uuid, q->uuid, 16);
	m->unit = q->unit;
	snprintf(m->storage, sizeof m->storage, "%s", q->storage);
	return SKV_OK;
}

static int enter(struct skv_request *c, const struct skv_fs_request *q)
{
	struct memnode *m = memnode_of(c->api);
	int rc;

	if (strcmp(q->type, "memory") != 0)
		return skv_fail(&c->err, SKV_E_INVALID, "type",
				"a memory node has storages of type memory only");
	rc = check_unit(m, q, &c->err);
	if (rc != SKV_OK)
		return rc;
	skv_mutex_lock(&m->lock);
	rc = enter_locked(m, q, mem_verb(c) == SKV_FS_OPEN, &c->err);
	skv_mutex_unlock(&m->lock);
	return rc;
}

static int leave(struct memnode *m, struct skv_error *err)
{
	if (slabs_count(&m->slabs) > 0 || m->n_owners > 0)
		return skv_fail(err, SKV_E_IN_USE, NULL, "it has slabs or owners still");
	m->bound = false;
	return SKV_OK;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static struct skv_storage_owner *owner_locked(struct memnode *m, uint64_t incarnation)
	SKV_REQUIRES(m->lock)
{
	assert(m->n_owners <= SKV_STORAGE_OWNERS);
	for (uint32_t i = 0; i < m->n_owners; i++)
		if (m->owner[i].incarnation == incarnation)
			return &m->owner[i];
	return NULL;
}

static int claim_locked(struct memnode *m, const struct skv_storage_owner *o, struct skv_error *err)
	SKV_REQUIRES(m->lock)
{
	struct skv_storage_owner *have = owner_locked(m, o->incarnation);

	if (have)
		return memcmp(have->nonce, o->nonce, sizeof have->nonce) == 0
			       ? SKV_OK
			       : skv_fail(err, SKV_E_CONFLICT, NULL,
					  "another owner has taken this incarnation");
	if (m->n_owners == SKV_STORAGE_OWNERS)
		return skv_fail(err, SKV_E_TOO_MANY, NULL, "%u owners at most", SKV_STORAGE_OWNERS);
	have = &m->owner[m->n_owners++];
	*have = *o;
	have->horizon = (struct skv_storage_horizon){ 0 }; /* a node that forgets proves nothing */
	return SKV_OK;
}

static int disown_locked(struct memnode *m, const struct skv_storage_owner *o) SKV_REQUIRES(m->lock)
{
	struct skv_storage_owner *have = owner_locked(m, o->incarnation);

	if (have && memcmp(have->nonce, o->nonce, sizeof have->nonce) == 0)
		*have = m->owner[--m->n_owners];
	return SKV_OK;
}

static int list_locked(struct memnode *m, struct skv_request *c) SKV_REQUIRES(m->lock)
{
	struct skv_fs_answer *out = &mem_of(c)->answer;

	out->owners = skv_arena_alloc(&c->arena, sizeof m->owner);
	if (!out->owners)
		return skv_fail(&c->err, SKV_E_NOMEM, NULL, "out of memory");
	memcpy(out->owners, m->owner, sizeof m->owner);
	out->n_owners = m->n_owners;
	return SKV_OK;
}

static int of_owners(struct skv_request *c, const struct skv_fs_request *q)
{
	struct memnode *m = memnode_of(c->api);
	int rc;

	skv_mutex_lock(&m->lock);
	switch (mem_verb(c)) {
	case SKV_FS_CLAIM:
		rc = claim_locked(m, &q->owner, &c->err);
		break;
	case SKV_FS_DISOWN:
		rc = disown_locked(m, &q->owner);
		break;
	case SKV_FS_OWNERS:
		rc = list_locked(m, c);
		break;
	default:
		assert(mem_verb(c) == SKV_FS_LEAVE);
		rc = leave(m, &c->err);
	}
	skv_mutex_unlock(&m->lock);
	return rc;
}

/* ---- slabs ----------------------------------------------------------------------------------- */

static int create(struct skv_request *c, const struct skv_fs_request *q)
{
	struct skv_superblock sb = { .file = q->file, .length = q->length, .unit = q->unit,
				     .header = SKV_SUPERBLOCK_SIZE,
				     .trailer = SKV_SUPERBLOCK_SIZE,
				     .created_ms = skv_wall_ms(&skv_clock_system) };

	if (q->length % q->unit)
		return skv_fail(&c->err, SKV_E_INVALID, "length", "not whole units");
	memcpy(sb.uuid, q->uuid, 16);
	return slabs_create(&memnode_of(c->api)->slabs, &sb, &c->err);
}

static void measure(struct memnode *m, struct skv_fs_answer *out)
{
	out->total_bytes = m->slabs.size;
	out->free_bytes = slabs_free_bytes(&m->slabs);
	out->epoch = m->epoch;
	out->writing_ms = data_writing_ms(m);
	assert(out->epoch != 0 && out->free_bytes <= out->total_bytes);
}

static int step(struct skv_request *c, const struct skv_fs_request *q)
{
	struct memnode *m = memnode_of(c->api);

	switch (mem_verb(c)) {
	case SKV_FS_OPEN:
	case SKV_FS_PROBE:
		measure(m, &mem_of(c)->answer);
		return SKV_OK;
	case SKV_FS_CREATE:
		return create(c, q);
	case SKV_FS_CHECK:
		return slabs_check(&m->slabs, q->file, q->length, &c->err);
	case SKV_FS_DELETE:
		slabs_remove(&m->slabs, q->file);
		return SKV_OK;
	case SKV_FS_PUNCH:
	case SKV_FS_MEND:
	case SKV_FS_LOOK:
		return SKV_E_INTERNAL; /* mem_verb_run refuses them */
	case SKV_FS_OWNERS:
	case SKV_FS_CLAIM:
	case SKV_FS_DISOWN:
	case SKV_FS_LEAVE:
		break;
	}
	return of_owners(c, q);
}

int mem_verb_run(struct skv_request *c)
{
	const enum skv_fs_verb verb = mem_verb(c);
	struct skv_fs_request q;
	int rc = check_name(c);

	assert(c->route->flags & ROUTE_BODY);
	if (verb == SKV_FS_PUNCH || verb == SKV_FS_MEND || verb == SKV_FS_LOOK)
		return skv_fail(&c->err, SKV_E_NOT_FOUND, NULL, "a memory node has no files");
	if (rc == SKV_OK)
		rc = skv_fs_read_request(&c->arena, verb, c->body, c->n_body, &q, &c->err);
	if (rc == SKV_OK)
		rc = enter(c, &q);
	return rc == SKV_OK ? step(c, &q) : rc;
}

void mem_verb_write(struct skv_request *c)
{
	if (skv_fs_answers(mem_verb(c)))
		skv_fs_write_answer(&c->out, mem_verb(c), &mem_of(c)->answer);
	else
		c->fixed = "{}";
}

/* ---- for people and clients ------------------------------------------------------------------ */

static int nothing_to_do(struct skv_request *c)
{
	assert(!(c->route->flags & ROUTE_BODY));
	return SKV_OK;
}

int mem_op_index_run(struct skv_request *c) { return nothing_to_do(c); }
void mem_op_index_write(struct skv_request *c)
{
	struct memnode *m = memnode_of(c->api);
	struct skv_memory_node n = { .service = "slabkvd memory-node", .version = SKV_VERSION,
				     .name = m->name, .epoch = m->epoch, .port = m->port,
				     .total_bytes = m->slabs.size,
				     .free_bytes = slabs_free_bytes(&m->slabs),
				     .page_bytes = m->slabs.page,
				     .slabs = slabs_count(&m->slabs),
				     .writing_ms = data_writing_ms(m) };
	char uuid[37] = "";

	skv_mutex_lock(&m->lock);
	if (m->bound)
		skv_uuid_to_text(m->uuid, uuid);
	skv_mutex_unlock(&m->lock);
	n.storage = uuid;
	data_counts(m, &n.tcp, &n.local);
	n.rdma_port = m->rdma_port;
	n.queue_pairs = mem_rdma_count(m);
	n.devices = mem_rdma_devices(m->rdma, &n.n_devices);
	skv_mn_write_about(&c->out, &n);
}

int mem_op_healthz_run(struct skv_request *c) { return nothing_to_do(c); }
void mem_op_healthz_write(struct skv_request *c) { c->fixed = "{\"status\":\"ok\"}"; }

int mem_op_readyz_run(struct skv_request *c) { return nothing_to_do(c); }
void mem_op_readyz_write(struct skv_request *c) { c->fixed = "{\"status\":\"ready\"}"; }

int mem_op_metrics_run(struct skv_request *c) { return nothing_to_do(c); }
void mem_op_metrics_write(struct skv_request *c)
{
	c->type = "text/plain; version=0.0.4; charset=utf-8";
	skv_request_expose(c);
}

int mem_op_list_run(struct skv_request *c) { return check_name(c); }
void mem_op_list_write(struct skv_request *c)
{
	struct slabs *s = &memnode_of(c->api)->slabs;

	skv_jout_begin(&c->out);
	skv_jout_name(&c->out, "files");
	skv_jout_open(&c->out, '[');
	skv_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n; i++)
		skv_jout_u64(&c->out, s->v[i]->file);
	skv_mutex_unlock(&s->lock);
	skv_jout_close(&c->out, ']');
	skv_jout_close(&c->out, '}');
}
