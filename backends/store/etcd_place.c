/*
 * etcd_place.c - the bytes of a checkpoint: a file in the folder `checkpoints` of the URL, or
 * pieces of 1 MiB in etcd.
 *
 * Both are one sequence of bytes: slices as they were written, then an index of them. A file has
 * its final name from the beginning on; nobody opens it before etcd names it. It is removed only by
 * a name that etcd has listed (etcd_checkpoint.c), never because a folder has it.
 *
 * Any thread; one at a time for a draft or reader.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "etcd_store.h"

struct path {
	char text[ETCD_PATH_MAX + ETCD_PREFIX_MAX + 64];
};

static const char *file_path(const struct etcd_store *s, uint32_t partition, const char *name,
			     struct path *p)
{
	assert(*s->url.checkpoints && *name);
	snprintf(p->text, sizeof p->text, "%s/%s-%05u-%s.checkpoint", s->url.checkpoints,
		 s->url.prefix, partition, name);
	return p->text;
}

static int file_failed(struct skv_error *err, const char *what, const char *path)
{
	const int error = errno;

	return skv_fail(err, error == ENOSPC || error == EDQUOT ? SKV_E_STORE_FULL : SKV_E_STORE_IO,
			"store", "cannot %s the checkpoint %.180s: %s", what, path,
			strerror(error));
}

/* ---- writing --------------------------------------------------------------------------------- */

int etcd_place_create(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		      struct skv_error *err)
{
	struct path p;

	d->fd = -1;
	if (!*s->url.checkpoints)
		return SKV_OK;
	file_path(s, part->number, d->name, &p);
	d->fd = open(p.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return d->fd < 0 ? file_failed(err, "create", p.text) : SKV_OK;
}

static int write_file(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		      const uint8_t *bytes, size_t n, struct skv_error *err)
{
	struct path p;

	while (n > 0) {
		const ssize_t done = pwrite(d->fd, bytes, n, (off_t)d->length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return file_failed(err, "write",
					   file_path(s, part->number, d->name, &p));
		d->length += (uint64_t)done;
		bytes += done;
		n -= (size_t)done;
	}
	return SKV_OK;
}

/* Puts the buffer as the piece that ends at the draft's length. */
static int put_piece(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		     struct skv_error *err)
{
	const uint64_t number = (d->length - d->piece.len) / ETCD_PIECE;
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[3];
	const struct skv_etcd_compare compare[] = {
		etcd_mod_is(etcd_key(s, &k[0], "e/%05u", part->number), d->fence),
		etcd_mod_is(etcd_key(s, &k[1], "c/%05u/w/%s", part->number, d->name), d->id) };
	const struct skv_etcd_op put = etcd_put(
		etcd_key(s, &k[2], "c/%05u/p/%s/%08llx", part->number, d->name,
			 (unsigned long long)number), &d->piece);
	struct skv_etcd_txn t = { compare, 2, &put, 1, NULL, 0 };
	int rc;

	assert(d->piece.len <= ETCD_PIECE && (d->length - d->piece.len) % ETCD_PIECE == 0);
	rc = etcd_as_owner(s, part->number, &t, &a, err);
	skv_etcd_answer_free(&a);
	skv_buf_clear(&d->piece);
	return rc;
}

static int write_pieces(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
			const uint8_t *bytes, size_t n, struct skv_error *err)
{
	int rc = SKV_OK;

	if (d->length + n > ETCD_CHECKPOINT_MAX)
		return skv_fail(err, SKV_E_TOO_LARGE, "store",
				"the checkpoint of partition %u is above %u MiB, too large for "
				"etcd: add checkpoints=DIR to the etcd:// URL of each manager, a "
				"folder that all of them mount", part->number,
				ETCD_CHECKPOINT_MAX >> 20);
	while (rc == SKV_OK && n > 0) {
		const size_t room = ETCD_PIECE - d->piece.len, now = n < room ? n : room;

		skv_put_bytes(&d->piece, bytes, now);
		if (d->piece.failed)
			return etcd_no_memory(err);
		d->length += now;
		bytes += now;
		n -= now;
		if (d->piece.len == ETCD_PIECE)
			rc = put_piece(s, part, d, err);
	}
	return rc;
}

int etcd_place_write(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		     const void *bytes, size_t n, struct skv_error *err)
{
	return d->fd >= 0 ? write_file(s, part, d, bytes, n, err)
			  : write_pieces(s, part, d, bytes, n, err);
}

static int sync_folder(const char *path)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int rc = fd < 0 ? -1 : fsync(fd);

	if (fd >= 0)
		close(fd);
	return rc;
}

int etcd_place_finish(struct etcd_store *s, const struct etcd_part *part, struct etcd_draft *d,
		      struct skv_error *err)
{
	struct path p;

	if (d->fd < 0)
		return d->piece.len > 0 ? put_piece(s, part, d, err) : SKV_OK;
	if (fsync(d->fd) != 0 || sync_folder(s->url.checkpoints) != 0)
		return file_failed(err, "sync", file_path(s, part->number, d->name, &p));
	return SKV_OK;
}

int etcd_place_remove(struct etcd_store *s, uint32_t partition, const char *name, bool in_file,
		      struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k[2];
	struct path p;
	int rc;

	if (in_file && !*s->url.checkpoints)
		return skv_fail(err, SKV_E_UNSUPPORTED, "store",
				"this manager's etcd:// URL has no checkpoints=DIR to remove a "
				"file from");
	if (in_file)
		return unlink(file_path(s, partition, name, &p)) != 0 && errno != ENOENT
			       ? file_failed(err, "remove", p.text)
			       : SKV_OK;
	const struct skv_etcd_op del = {
		.kind = SKV_ETCD_DELETE, .key = etcd_key(s, &k[0], "c/%05u/p/%s/", partition, name),
		.end = etcd_key(s, &k[1], "c/%05u/p/%s0", partition, name) };

	rc = etcd_settle(s, &(struct skv_etcd_txn){ .then = &del, .n_then = 1 }, &a, NULL, err);
	skv_etcd_answer_free(&a);
	return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

int etcd_reader_open(struct etcd_reader *r, struct skv_error *err)
{
	struct path p;

	assert(r->head->name[0]);
	r->fd = -1;
	r->piece_number = UINT64_MAX;
	if (!r->head->in_file)
		return SKV_OK;
	if (!*r->s->url.checkpoints)
		return skv_fail(err, SKV_E_UNSUPPORTED, "store",
				"the checkpoint of partition %u is a file: add checkpoints=DIR to "
				"this manager's etcd:// URL, as the others have it", r->partition);
	r->fd = open(file_path(r->s, r->partition, r->head->name, &p), O_RDONLY | O_CLOEXEC);
	if (r->fd < 0 && errno == ENOENT)
		return skv_fail(err, SKV_E_CORRUPT, NULL, "the checkpoint %.200s is missing: is "
				"the folder of checkpoints mounted?", p.text);
	return r->fd < 0 ? file_failed(err, "open", p.text) : SKV_OK;
}

static int bad(const struct etcd_reader *r, uint64_t at, struct skv_error *err)
{
	return skv_fail(err, SKV_E_CORRUPT, NULL,
			"the checkpoint %s of partition %u (record %llu) ends at byte %llu",
			r->head->name, r->partition, (unsigned long long)r->head->seq,
			(unsigned long long)at);
}

static int read_file(struct etcd_reader *r, uint64_t at, size_t n, struct skv_buf *out,
		     struct skv_error *err)
{
	struct path p;

	assert(r->fd >= 0);
	if (!skv_buf_reserve(out, n))
		return etcd_no_memory(err);
	while (n > 0) {
		const ssize_t got = pread(r->fd, out->data + out->len, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return file_failed(err, "read",
					   file_path(r->s, r->partition, r->head->name, &p));
		if (got == 0)
			return bad(r, at, err);
		out->len += (size_t)got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return SKV_OK;
}

static int fetch_piece(struct etcd_reader *r, uint64_t number, struct skv_error *err)
{
	struct skv_etcd_answer a = { 0 };
	struct etcd_key k;
	struct skv_etcd_op get = etcd_range(etcd_key(r->s, &k, "c/%05u/p/%s/%08llx", r->partition,
						     r->head->name, (unsigned long long)number));
	struct skv_etcd_kv kv;
	int rc;

	assert(r->revision > 0);
	get.revision = r->revision;
	rc = etcd_read(r->s, &get, 1, &a, err);
	if (rc == SKV_OK) {
		kv = etcd_first(&a);
		skv_buf_clear(&r->piece);
		skv_put_bytes(&r->piece, kv.value.p ? kv.value.p : "", kv.value.n);
		r->piece_number = number;
		if (r->piece.failed)
			rc = etcd_no_memory(err);
		else if (kv.mod_revision == 0)
			rc = etcd_corrupt(err, get.key, "is missing");
	}
	skv_etcd_answer_free(&a);
	return rc;
}

static int read_pieces(struct etcd_reader *r, uint64_t at, size_t n, struct skv_buf *out,
		       struct skv_error *err)
{
	int rc = SKV_OK;

	while (rc == SKV_OK && n > 0) {
		const uint64_t number = at / ETCD_PIECE;
		const size_t skip = (size_t)(at % ETCD_PIECE);
		size_t now;

		if (number != r->piece_number)
			rc = fetch_piece(r, number, err);
		if (rc != SKV_OK)
			return rc;
		now = r->piece.len > skip ? r->piece.len - skip : 0;
		now = now < n ? now : n;
		if (now == 0)
			return bad(r, at, err);
		skv_put_bytes(out, r->piece.data + skip, now);
		if (out->failed)
			return etcd_no_memory(err);
		at += now;
		n -= now;
	}
	return rc;
}

int etcd_reader_read(struct etcd_reader *r, uint64_t at, size_t n, struct skv_buf *out,
		     struct skv_error *err)
{
	return r->fd >= 0 ? read_file(r, at, n, out, err) : read_pieces(r, at, n, out, err);
}

void etcd_reader_close(struct etcd_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	skv_buf_destroy(&r->piece);
}
