/*
 * ops.c - the operations of an fs-master: each opens the root and a storage's directory, does one
 * step, and keeps nothing.
 *
 * Which storage the directory must be is told by the request; whether it is one is the storage's to
 * judge, by the same code that a manager with a mount uses. All that touches the file system runs
 * on a worker. No state, no locks.
 */
#include "fs_master.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/json_out.h>
#include <skv/mem.h>

/* ---- for managers ---------------------------------------------------------------------------- */

static int open_storage(struct skv_request *c, const int *root, const struct skv_fs_request *q,
			struct skv_storage **out)
{
	struct skv_storage_config cfg = { .name = q->storage, .root = c->param[0].value,
					  .below = root, .unit = q->unit,
					  .may_create = q->may_create, .chunk = q->chunk,
					  .read_chunk = q->read_chunk,
					  .any_mount = q->any_mount };

	memcpy(cfg.uuid, q->uuid, sizeof cfg.uuid);
	return skv_storage_open(skv_storage_find(q->type), &cfg, out, &c->err);
}

static int probe(struct skv_storage *s, struct skv_fs_answer *out, struct skv_error *err)
{
	struct skv_storage_health h;
	int rc = skv_storage_probe(s, SKV_PROBE_WRITE, &h, err);

	if (rc == SKV_OK) {
		out->free_bytes = h.free_bytes;
		out->total_bytes = h.total_bytes;
	}
	return rc;
}

static int owners(struct skv_request *c, struct skv_storage *s)
{
	struct skv_fs_answer *out = &fs_of(c)->answer;
	int rc;

	out->owners = skv_arena_calloc(&c->arena, SKV_STORAGE_OWNERS, sizeof *out->owners);
	if (!out->owners)
		return skv_fail(&c->err, SKV_E_NOMEM, NULL, "out of memory");
	rc = skv_storage_owners(s, NULL, out->owners, &out->n_owners, &c->err);
	assert(rc != SKV_OK || out->n_owners <= SKV_STORAGE_OWNERS);
	return rc;
}

static int step(struct skv_request *c, enum skv_fs_verb verb, struct skv_storage *s,
		const struct skv_fs_request *q)
{
	switch (verb) {
	case SKV_FS_OPEN:
		fs_of(c)->answer.free_bytes = fs_of(c)->answer.total_bytes = UINT64_MAX;
		return SKV_OK;
	case SKV_FS_PROBE:
		return probe(s, &fs_of(c)->answer, &c->err);
	case SKV_FS_CREATE:
		return skv_storage_create_file(s, q->file, q->length, &c->err);
	case SKV_FS_CHECK:
		return skv_storage_check_file(s, q->file, q->length, &c->err);
	case SKV_FS_DELETE:
		return skv_storage_remove_file(s, q->file, &c->err);
	case SKV_FS_PUNCH:
		assert(q->n_ranges <= SKV_PUNCH_MAX);
		return skv_storage_punch_file(s, q->file, q->length, q->ranges, q->n_ranges,
					      &c->err);
	case SKV_FS_OWNERS:
		return owners(c, s);
	case SKV_FS_CLAIM:
		return skv_storage_claim(s, &q->owner, &c->err);
	case SKV_FS_DISOWN:
		return skv_storage_disown(s, &q->owner, &c->err);
	case SKV_FS_LOOK:
		break; /* of no storage */
	case SKV_FS_MEND:
		return skv_storage_mend_file(s, q->file, q->length, &c->err);
	case SKV_FS_LEAVE:
		return skv_storage_leave(s, &c->err);
	}
	return SKV_E_INTERNAL;
}

static int on_storage(struct skv_request *c, enum skv_fs_verb verb, const int *root,
		      const struct skv_fs_request *q)
{
	struct skv_storage *s = NULL;
	int rc = open_storage(c, root, q, &s);

	assert(verb != SKV_FS_LOOK); /* LOOK belongs to no storage */
	if (rc != SKV_OK)
		return rc;
	rc = step(c, verb, s, q);
	fs_of(c)->answer.chunk = skv_storage_chunk(s);
	skv_storage_close(s);
	return rc;
}

static enum skv_fs_verb verb_of(const struct skv_request *c)
{
	return *(const enum skv_fs_verb *)c->route->own;
}

int fs_verb_run(struct skv_request *c)
{
	const enum skv_fs_verb verb = verb_of(c);
	struct skv_fs_request q;
	int root, rc;

	assert(c->route->flags & ROUTE_BODY);
	rc = skv_fs_read_request(&c->arena, verb, c->body, c->n_body, &q, &c->err);
	if (rc != SKV_OK)
		return rc;
	rc = fs_open_root(c, &root, &c->err);
	if (rc != SKV_OK)
		return rc;
	rc = verb == SKV_FS_LOOK ? skv_file_look(root, c->param[0].value, q.path,
						 &fs_of(c)->answer.look, &c->err)
				 : on_storage(c, verb, &root, &q);
	close(root);
	return rc;
}

void fs_verb_write(struct skv_request *c)
{
	if (skv_fs_answers(verb_of(c)))
		skv_fs_write_answer(&c->out, verb_of(c), &fs_of(c)->answer);
	else
		c->fixed = "{}";
}

/* ---- for people ------------------------------------------------------------------------------ */

/* Decimal, with or without the zeros that a file's name has. */
static int file_number(struct skv_request *c, uint32_t *out)
{
	const char *text = c->param[1].value;
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (strspn(text, "0123456789") == strlen(text) && strlen(text) <= 10 && *end == '\0' &&
	    v < SKV_NO_FILE) {
		*out = (uint32_t)v;
		return SKV_OK;
	}
	return skv_fail(&c->err, SKV_E_INVALID, "file", "the number of a slab file, 0..%u",
			SKV_NO_FILE - 1);
}

static int run_stat(struct skv_request *c, uint32_t file)
{
	int root, rc = fs_open_root(c, &root, &c->err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_storage_stat(root, c->param[0].value, file, &fs_of(c)->stat, &c->err);
	close(root);
	return rc;
}

int fs_op_stat_run(struct skv_request *c) { return run_stat(c, SKV_NO_FILE); }

int fs_op_stat_file_run(struct skv_request *c)
{
	uint32_t file = 0;
	int rc = file_number(c, &file);

	return rc == SKV_OK ? run_stat(c, file) : rc;
}

static void write_stat(struct skv_request *c, bool of_file)
{
	const struct skv_storage_stat *s = &fs_of(c)->stat;
	char uuid[37];

	skv_uuid_to_text(s->superblock.uuid, uuid);
	skv_jout_begin(&c->out);
	skv_jout_field_string(&c->out, "uuid", uuid);
	if (of_file) {
		skv_jout_field_u64(&c->out, "file", s->superblock.file);
		skv_jout_field_u64(&c->out, "length", s->length);
	}
	skv_jout_field_u64(&c->out, "unit", s->superblock.unit);
	skv_jout_field_u64(&c->out, "header", s->superblock.header);
	skv_jout_field_u64(&c->out, "trailer", s->superblock.trailer);
	skv_jout_field_u64(&c->out, "created_ms", s->superblock.created_ms);
	skv_jout_field_u64(&c->out, "block_size", s->block_size);
	skv_jout_field_bool(&c->out, "is_3fs", s->is_3fs);
	skv_jout_field_u64(&c->out, "free_bytes", s->free_bytes);
	skv_jout_field_u64(&c->out, "total_bytes", s->total_bytes);
	skv_jout_close(&c->out, '}');
}
void fs_op_stat_write(struct skv_request *c) { write_stat(c, false); }
void fs_op_stat_file_write(struct skv_request *c) { write_stat(c, true); }

int fs_op_list_run(struct skv_request *c)
{
	uint32_t *files = NULL;
	size_t n = 0;
	int root, rc = fs_open_root(c, &root, &c->err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_storage_list(root, c->param[0].value, &files, &n, &c->err);
	close(root);
	if (rc != SKV_OK)
		return rc;
	fs_of(c)->files = skv_arena_alloc(&c->arena, (n + 1) * sizeof *files);
	if (fs_of(c)->files && n)
		memcpy(fs_of(c)->files, files, n * sizeof *files);
	fs_of(c)->n_files = n;
	skv_free(files);
	return fs_of(c)->files ? SKV_OK : skv_fail(&c->err, SKV_E_NOMEM, NULL, "out of memory");
}
void fs_op_list_write(struct skv_request *c)
{
	skv_jout_begin(&c->out);
	skv_jout_name(&c->out, "files");
	skv_jout_open(&c->out, '[');
	for (size_t i = 0; i < fs_of(c)->n_files; i++)
		skv_jout_u64(&c->out, fs_of(c)->files[i]);
	skv_jout_close(&c->out, ']');
	skv_jout_close(&c->out, '}');
}

/* ---- of the service -------------------------------------------------------------------------- */

int fs_op_index_run(struct skv_request *c)
{
	(void)c;
	return SKV_OK;
}
void fs_op_index_write(struct skv_request *c)
{
	c->fixed = "{\"service\":\"slabkvd fs-master\",\"version\":\"" SKV_VERSION "\"}";
}

int fs_op_healthz_run(struct skv_request *c)
{
	(void)c;
	return SKV_OK;
}
void fs_op_healthz_write(struct skv_request *c) { c->fixed = "{\"status\":\"ok\"}"; }

/* Reports ready if the root can be opened. */
int fs_op_readyz_run(struct skv_request *c)
{
	int root, rc = fs_open_root(c, &root, &c->err);

	if (rc == SKV_OK)
		close(root);
	return rc;
}
void fs_op_readyz_write(struct skv_request *c) { c->fixed = "{\"status\":\"ready\"}"; }

int fs_op_metrics_run(struct skv_request *c)
{
	(void)c;
	return SKV_OK;
}
void fs_op_metrics_write(struct skv_request *c)
{
	c->type = "text/plain; version=0.0.4; charset=utf-8";
	skv_request_expose(c);
}
