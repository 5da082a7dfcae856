/*
 * etcd_checkpoint.c - checkpoints of the store on etcd.
 *
 * A checkpoint gets a name, which is listed in etcd (P/c/N/w/NAME) before its first byte is written
 * and until its last one is removed. One transaction of the owner makes it the committed one
 * (P/c/N/head). All other checkpoints in the list, except the one being written, were given up or
 * replaced: the owner removes their bytes, then their names. So a crash at any point leaves no
 * unlisted bytes.
 *
 * The id of a checkpoint is the revision that listed it. Records up to a committed checkpoint are
 * removed by the keeper.
 *
 * Any thread; one call at a time for a partition.
 */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include <skv/mem.h>

#include "etcd_store.h"

/* Values of the list. */
#define IN_FILE 'f'
#define IN_PIECES 'p'
#define FILE_DEAD 'F'
#define PIECES_DEAD 'P'

void etcd_draft_free(struct etcd_draft *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	skv_buf_destroy(&d->piece);
	skv_free(d->slices);
	skv_free(d);
}

/* ---- removing leftovers ---------------------------------------------------------------------- */

/* Runs one operation of the owner on the list, while the committed checkpoint is the one with this
 * mod revision. */
static int change_list(struct etcd_store *s, uint32_t partition, uint64_t fence, uint64_t head_mod,
		       const struct skv_etcd_op *op, struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[2];
	const struct skv_etcd_compare compare[] = {
		etcd_mod_is(etcd_key(s, &k[0], "e/%05u", partition), fence),
		etcd_mod_is(etcd_key(s, &k[1], "c/%05u/head", partition), head_mod) };
	struct skv_etcd_txn t = { compare, 2, op, 1, NULL, 0 };
	int rc = etcd_as_owner(s, partition, &t, &a, err);

	skv_etcd_answer_free(&a);
	return rc;
}

/* Removes a listed checkpoint: marks it first, so that a commit of it that is still on its way
 * fails, then its bytes, then the name. */
static int remove_listed(struct etcd_store *s, uint32_t partition, uint64_t fence,
			 uint64_t head_mod, const struct skv_etcd_kv *kv, const char *name,
			 struct skv_error *err)
{
	const char kind = kv->value.n == 1 ? *(const char *)kv->value.p : '?';
	const bool in_file = kind == IN_FILE || kind == FILE_DEAD;
	const char dead = in_file ? FILE_DEAD : PIECES_DEAD;
	const struct skv_etcd_op mark = { .kind = SKV_ETCD_PUT, .key = kv->key,
					  .value = { &dead, 1 } };
	const struct skv_etcd_op del = etcd_delete(kv->key);
	int rc = SKV_OK;

	assert(fence && strlen(name) == ETCD_NAME);
	if (kind != dead)
		rc = change_list(s, partition, fence, head_mod, &mark, err);
	if (rc == SKV_OK)
		rc = etcd_place_remove(s, partition, name, in_file, err);
	return rc == SKV_OK ? change_list(s, partition, fence, head_mod, &del, err) : rc;
}

static int remove_others(struct etcd_store *s, struct etcd_part *part, uint64_t fence,
			 uint64_t head_mod, const char *committed, struct skv_etcd_result *listed,
			 struct skv_error *err)
{
	const char *mine = part->draft ? part->draft->name : "";
	char name[ETCD_NAME + 1];
	struct skv_etcd_kv kv;
	int rc = SKV_OK;

	while (rc == SKV_OK && skv_etcd_next_kv(listed, &kv)) {
		if (kv.key.n < ETCD_NAME)
			return etcd_corrupt(err, kv.key, "is no checkpoint's");
		memcpy(name, (const char *)kv.key.p + kv.key.n - ETCD_NAME, ETCD_NAME);
		name[ETCD_NAME] = '\0';
		if (strcmp(name, committed) != 0 && strcmp(name, mine) != 0)
			rc = remove_listed(s, part->number, fence, head_mod, &kv, name, err);
	}
	return rc;
}

int etcd_checkpoints_tidy(struct etcd_store *s, struct etcd_part *part, uint64_t fence,
			  struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[4];
	const struct skv_etcd_compare owner =
		etcd_mod_is(etcd_key(s, &k[0], "e/%05u", part->number), fence);
	const struct skv_etcd_op ops[] = {
		etcd_range(etcd_key(s, &k[1], "c/%05u/head", part->number)),
		etcd_range_to(etcd_key(s, &k[2], "c/%05u/w/", part->number),
			      etcd_key(s, &k[3], "c/%05u/w0", part->number), ETCD_KEYS_MAX) };
	struct skv_etcd_txn t = { &owner, 1, ops, 2, NULL, 0 };
	struct skv_etcd_result listed;
	struct etcd_head head;
	struct skv_etcd_kv kv;
	int rc = etcd_as_owner(s, part->number, &t, &a, err);

	if (rc == SKV_OK) {
		kv = etcd_first(&a);
		rc = etcd_get_head(&kv, &head, err);
	}
	if (rc == SKV_OK && skv_etcd_next_result(&a.result, &listed))
		rc = remove_others(s, part, fence, kv.mod_revision, head.name, &listed, err);
	skv_etcd_answer_free(&a);
	return rc;
}

static void give_up(struct etcd_store *s, struct etcd_part *part)
{
	assert(part->checkpointing);
	etcd_draft_free(part->draft);
	part->draft = NULL;
	skv_mutex_lock(&s->lock);
	part->untidy = true;
	etcd_keeper_wake_locked(s);
	skv_mutex_unlock(&s->lock);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Lists the draft's name; its id is the revision of that. */
static int list_draft(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		      struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[2];
	const struct skv_etcd_bytes owner = etcd_key(s, &k[0], "e/%05u", part->number),
				    name = etcd_key(s, &k[1], "c/%05u/w/%s", part->number, d->name);
	const struct skv_etcd_compare compare[] = { etcd_mod_is(owner, d->fence),
						    etcd_mod_is(name, 0) };
	const char kind = *s->url.checkpoints ? IN_FILE : IN_PIECES;
	const struct skv_etcd_op put = { .kind = SKV_ETCD_PUT, .key = name, .value = { &kind, 1 } };
	const struct skv_etcd_op why = etcd_range(name);
	const struct skv_etcd_txn t = { compare, 2, &put, 1, &why, 1 };
	struct skv_etcd_kv kv;
	int rc = etcd_settle(s, &t, &a, NULL, err);

	if (rc == SKV_OK && a.result.succeeded) {
		d->id = a.revision;
	} else if (rc == SKV_OK) {
		kv = etcd_first(&a); /* of an earlier try: the name is random */
		d->id = kv.mod_revision;
		rc = kv.mod_revision ? SKV_OK : etcd_fenced(part->number, err);
	}
	skv_etcd_answer_free(&a);
	return rc;
}

static int begin(struct etcd_store *s, struct etcd_part *part, uint64_t fence, uint64_t *id,
		 struct skv_error *err)
{
	struct etcd_draft *d;
	int rc;

	give_up(s, part);
	d = skv_calloc(1, sizeof *d);
	if (!d)
		return etcd_no_memory(err);
	d->fence = fence;
	d->fd = -1;
	etcd_new_name(d->name);
	rc = fence ? list_draft(s, part, d, err) : etcd_fenced(part->number, err);
	part->draft = d;
	if (rc == SKV_OK && etcd_checkpoints_tidy(s, part, fence, err) == SKV_E_FENCED)
		rc = SKV_E_FENCED; /* the keeper tries other failures again */
	if (rc == SKV_OK)
		rc = etcd_place_create(s, part, d, err);
	if (rc == SKV_OK)
		*id = d->id;
	else
		give_up(s, part);
	return rc;
}

int etcd_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
			  struct skv_error *err)
{
	struct etcd_store *s = self;
	struct etcd_part *part = etcd_part(s, partition);
	int rc;

	if (!part)
		return etcd_no_memory(err);
	etcd_take(s, &part->checkpointing);
	rc = begin(s, part, fence, id, err);
	etcd_give(s, &part->checkpointing);
	return rc;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Checks that the fence is the newest, and the draft the one begun last. */
static int check_draft(struct etcd_store *s, const struct etcd_part *part, uint64_t fence,
		       uint64_t id, struct skv_error *err)
{
	const struct etcd_draft *d = part->draft;
	const bool mine = d && id != 0 && d->id == id && d->fence == fence;
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[2];
	const struct skv_etcd_compare compare[] = {
		etcd_mod_is(etcd_key(s, &k[0], "e/%05u", part->number), fence),
		etcd_mod_is(etcd_key(s, &k[1], "c/%05u/w/%s", part->number,
					 mine ? d->name : ""), mine ? id : 0) };
	struct skv_etcd_txn t = { compare, 2, NULL, 0, NULL, 0 };
	int rc = etcd_as_owner(s, part->number, &t, &a, err);

	skv_etcd_answer_free(&a);
	if (rc == SKV_E_CONFLICT || (rc == SKV_OK && !mine))
		rc = skv_fail(err, SKV_E_CONFLICT, "id",
			      "checkpoint %llu is not the one begun last", (unsigned long long)id);
	return rc;
}

static int write_slice(struct etcd_store *s, const struct etcd_part *part, uint32_t number,
		       const void *bytes, size_t n, struct skv_error *err)
{
	struct etcd_draft *d = part->draft;
	const struct etcd_slice slice = { d->length, (uint32_t)n, true, skv_checksum(bytes, n) };
	void *slices = d->slices;
	int rc;

	assert(number < SKV_STORE_SLICES_MAX && n <= SKV_STORE_SLICE_MAX);
	if (skv_grow(&slices, &d->cap_slices, (size_t)number + 1, sizeof *d->slices) != SKV_OK)
		return etcd_no_memory(err);
	d->slices = slices;
	rc = etcd_place_write(s, part, d, bytes, n, err);
	if (rc != SKV_OK)
		return rc;
	while (d->n_slices <= number)
		d->slices[d->n_slices++] = (struct etcd_slice){ 0 };
	d->slices[number] = slice;
	return SKV_OK;
}

int etcd_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			  uint32_t number, const void *bytes, size_t n, struct skv_error *err)
{
	struct etcd_store *s = self;
	struct etcd_part *part = etcd_part(s, partition);
	int rc;

	if (!part)
		return etcd_no_memory(err);
	etcd_take(s, &part->checkpointing);
	rc = check_draft(s, part, fence, id, err);
	if (rc == SKV_OK) {
		rc = write_slice(s, part, number, bytes, n, err);
		if (rc != SKV_OK)
			give_up(s, part); /* bytes of unknown length may have been written */
	}
	etcd_give(s, &part->checkpointing);
	return rc;
}

int etcd_checkpoint_abort(void *self, uint32_t partition, uint64_t id)
{
	struct etcd_store *s = self;
	struct etcd_part *part = etcd_part(s, partition);

	if (!part)
		return SKV_E_NOMEM;
	etcd_take(s, &part->checkpointing);
	if (part->draft && part->draft->id == id)
		give_up(s, part);
	etcd_give(s, &part->checkpointing);
	return SKV_OK;
}

/* ---- committing ------------------------------------------------------------------------------ */

/* Total and chain at the record up to which the checkpoint goes: as the old head, the end, or the
 * record itself says. */
static int place_in_journal(struct etcd_store *s, const struct etcd_part *part,
			    struct etcd_head *head, uint64_t *old_mod, struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[3];
	const struct skv_etcd_op ops[] = {
		etcd_range(etcd_key(s, &k[0], "c/%05u/head", part->number)),
		etcd_range(etcd_key(s, &k[1], "n/%05u", part->number)),
		etcd_range(etcd_key(s, &k[2], "b/%05u/%016llx/0000", part->number,
				    (unsigned long long)head->seq)) };
	struct skv_etcd_kv was, n, record;
	struct skv_etcd_bytes ignored;
	struct etcd_batch batch;
	struct etcd_head old;
	struct etcd_end end;
	int rc = etcd_read(s, ops, 3, &a, err);

	if (rc == SKV_OK) {
		was = etcd_first(&a);
		n = etcd_first(&a);
		record = etcd_first(&a);
		*old_mod = was.mod_revision;
		rc = etcd_get_head(&was, &old, err);
	}
	if (rc == SKV_OK)
		rc = etcd_get_end(&n, &end, err);
	if (rc == SKV_OK && (head->seq < old.seq || head->seq > end.seq))
		rc = skv_fail(err, SKV_E_CONFLICT, "upto_seq",
			      "the journal does not cover %llu to %llu",
			      (unsigned long long)old.seq, (unsigned long long)head->seq);
	if (rc == SKV_OK && (head->seq == old.seq || head->seq == end.seq)) {
		head->total = head->seq == end.seq ? end.total : old.total;
		head->chain = head->seq == end.seq ? end.chain : old.chain;
	} else if (rc == SKV_OK && record.mod_revision == 0) {
		rc = etcd_corrupt(err, ops[2].key, "is missing");
	} else if (rc == SKV_OK) {
		rc = etcd_get_batch(&record, &batch, &ignored, err);
		head->total = batch.total;
		head->chain = batch.chain;
	}
	skv_etcd_answer_free(&a);
	return rc;
}

static int write_index(struct etcd_store *s, const struct etcd_part *part, struct etcd_head *head,
		       struct skv_error *err)
{
	struct etcd_draft *d = part->draft;
	struct skv_buf index = { 0 };
	int rc;

	assert(head->slices <= d->n_slices);
	head->index_at = d->length;
	for (uint32_t i = 0; i < head->slices; i++) {
		skv_put_u64(&index, d->slices[i].at);
		skv_put_u32(&index, d->slices[i].n);
		skv_put_u64(&index, d->slices[i].sum);
	}
	assert(index.failed || index.len == (size_t)head->slices * ETCD_INDEX_ENTRY);
	head->index_sum = skv_hash128(index.data ? index.data : (const uint8_t *)"", index.len);
	rc = index.failed ? etcd_no_memory(err)
			  : etcd_place_write(s, part, d, index.data, index.len, err);
	skv_buf_destroy(&index);
	return rc == SKV_OK ? etcd_place_finish(s, part, d, err) : rc;
}

static int put_head(struct etcd_store *s, const struct etcd_part *part,
		    const struct etcd_head *head, uint64_t old_mod, struct skv_error *err)
{
	const struct etcd_draft *d = part->draft;
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[3];
	const struct skv_etcd_bytes owner = etcd_key(s, &k[0], "e/%05u", part->number),
				    listed = etcd_key(s, &k[1], "c/%05u/w/%s", part->number,
						      d->name),
				    at = etcd_key(s, &k[2], "c/%05u/head", part->number);
	const struct skv_etcd_compare compare[] = { etcd_mod_is(owner, d->fence),
						    etcd_mod_is(listed, d->id),
						    etcd_mod_is(at, old_mod) };
	const struct skv_etcd_op why[] = { etcd_range(owner), etcd_range(at) };
	struct skv_buf value = { 0 };
	struct skv_etcd_op put;
	struct skv_etcd_txn t = { compare, 3, &put, 1, why, 2 };
	struct skv_etcd_kv is_owner, is_head;
	struct etcd_head is;
	bool again = false;
	int rc;

	assert(d->id && d->fence);
	etcd_put_head(&value, head);
	put = etcd_put(at, &value);
	rc = value.failed ? etcd_no_memory(err) : etcd_settle(s, &t, &a, &again, err);
	if (rc == SKV_OK && !a.result.succeeded) {
		is_owner = etcd_first(&a);
		is_head = etcd_first(&a);
		rc = etcd_get_head(&is_head, &is, err);
		if (rc == SKV_OK && strcmp(is.name, head->name) != 0) /* else an earlier try did */
			rc = is_owner.mod_revision != d->fence
				     ? (again ? etcd_taken_over : etcd_fenced)(part->number, err)
				     : skv_fail(err, SKV_E_CONFLICT, "id",
						"checkpoint %llu is not the one begun last",
						(unsigned long long)d->id);
	}
	skv_etcd_answer_free(&a);
	skv_buf_destroy(&value);
	return rc;
}

static int check_slices(const struct etcd_draft *d, uint32_t slices, struct skv_error *err)
{
	for (uint32_t i = 0; i < slices; i++)
		if (i >= d->n_slices || !d->slices[i].written)
			return skv_fail(err, SKV_E_CONFLICT, "slices", "slice %u of %u is missing",
					i, slices);
	return SKV_OK;
}

static int commit(struct etcd_store *s, struct etcd_part *part, struct etcd_head *head,
		  struct skv_error *err)
{
	uint64_t old_mod;
	int rc = check_slices(part->draft, head->slices, err);

	if (rc == SKV_OK)
		rc = place_in_journal(s, part, head, &old_mod, err);
	if (rc != SKV_OK)
		return rc; /* the draft can still be committed */
	memcpy(head->name, part->draft->name, sizeof head->name);
	head->in_file = part->draft->fd >= 0;
	head->id = part->draft->id;
	rc = write_index(s, part, head, err);
	if (rc == SKV_OK)
		rc = put_head(s, part, head, old_mod, err);
	give_up(s, part); /* the draft is written, or cannot be used any more */
	return rc;
}

int etcd_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			   uint32_t slices, uint64_t upto_seq, struct skv_error *err)
{
	struct etcd_store *s = self;
	struct etcd_part *part = etcd_part(s, partition);
	struct etcd_head head = { .slices = slices, .seq = upto_seq };
	int rc;

	if (!part)
		return etcd_no_memory(err);
	etcd_take(s, &part->checkpointing);
	rc = check_draft(s, part, fence, id, err);
	if (rc == SKV_OK)
		rc = commit(s, part, &head, err);
	etcd_give(s, &part->checkpointing);
	return rc;
}
