/*
 * registry.c - documents of the metadata store's registry, written and read; registry_write.c
 * stores them.
 *
 * Keys: "secret", "next-id", "storage/<name>", "group/<name>", "instance/<tenant>/<id>",
 * "file/<storage id>/<file>" (both 8 hex digits; written before the slab file exists: a claim) and
 * "dropped/<instance id>" (8 hex digits; a deleted instance, while the journal may refer to it). A
 * document begins with u8 version. Strings are varint length + bytes. The fields of an object that
 * the native API knows are in its protobuf: a new field is a row of api/v1/messages.c.
 * docs/internals/ON_DISK.md has the rest.
 */
#include <journal/registry.h>

#include <stdio.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/documents.h>
#include <skv/status.h>

#include <model/files.h>

#define DOC_VERSION 1u /* the first byte of each */

int doc_bad(struct skv_error *err, const char *key)
{
	return skv_fail(err, SKV_E_CORRUPT, NULL,
			"registry document '%s' is malformed, or of a newer slabkvd: use that one",
			key);
}

static void put_text(struct skv_buf *out, const char *s) { skv_put_string(out, s, strlen(s)); }

/* NULL: out of memory, or the document is too short. */
static const char *get_text(struct skv_rd *in, struct skv_arena *a)
{
	size_t n = 0;
	const char *s = skv_get_string(in, &n, SKV_MAX_NAME);

	return s ? skv_arena_strndup(a, s, n) : NULL;
}

static struct skv_rd open_document(const void *bytes, size_t n)
{
	struct skv_rd in = skv_rd_make(bytes, n);

	in.failed |= skv_get_u8(&in) != DOC_VERSION;
	return in;
}

/* Closes a document. `rc`: result of the protobuf after the rest, whose last text is `text`. */
static int close_document(const struct skv_rd *in, const char *text, int rc, const char *key,
			  struct skv_error *err)
{
	if (in->failed || (text && rc != SKV_OK && rc != SKV_E_NOMEM))
		return doc_bad(err, key);
	return text ? rc : SKV_E_NOMEM;
}

void registry_put_storage(struct skv_buf *out, const struct storage_doc *d)
{
	skv_put_u8(out, DOC_VERSION);
	skv_put_u32(out, d->id);
	skv_put_bytes(out, d->uuid, 16);
	put_text(out, d->spec.name);
	skv_document_write_storage(out, &d->spec);
}

int registry_get_storage(struct skv_arena *a, const char *key, const void *bytes, size_t n,
			 struct storage_doc *out, struct skv_error *err)
{
	struct skv_rd in = open_document(bytes, n);
	const uint32_t id = skv_get_u32(&in);
	const uint8_t *uuid = skv_get_bytes(&in, 16);
	const char *name = get_text(&in, a);
	int rc = skv_document_read_storage(a, in.p, skv_rd_left(&in), &out->spec);

	rc = close_document(&in, name, rc, key, err);
	if (rc != SKV_OK)
		return rc;
	out->id = id;
	memcpy(out->uuid, uuid, 16);
	out->spec.name = name;
	return SKV_OK;
}

void registry_put_group(struct skv_buf *out, const struct skv_group_spec *g)
{
	skv_put_u8(out, DOC_VERSION);
	put_text(out, g->name);
	skv_document_write_group(out, g);
}

int registry_get_group(struct skv_arena *a, const char *key, const void *bytes, size_t n,
		       struct skv_group_spec *out, struct skv_error *err)
{
	struct skv_rd in = open_document(bytes, n);
	const char *name = get_text(&in, a);
	int rc = skv_document_read_group(a, in.p, skv_rd_left(&in), out);

	rc = close_document(&in, name, rc, key, err);
	out->name = name;
	return rc == SKV_OK && out->share > SKV_SHARE_FIXED ? doc_bad(err, key) : rc;
}

void registry_put_instance(struct skv_buf *out, const struct skv_instance_spec *i, uint32_t id)
{
	skv_put_u8(out, DOC_VERSION);
	skv_put_u32(out, id);
	put_text(out, i->tenant);
	put_text(out, i->id);
	skv_document_write_instance(out, i);
}

int registry_get_instance(struct skv_arena *a, const char *key, const void *bytes, size_t n,
			  struct skv_instance_spec *out, uint32_t *id, struct skv_error *err)
{
	struct skv_rd in = open_document(bytes, n);
	const char *tenant, *name;
	int rc;

	*id = skv_get_u32(&in);
	tenant = get_text(&in, a);
	name = get_text(&in, a);
	rc = skv_document_read_instance(a, in.p, skv_rd_left(&in), out);
	rc = close_document(&in, tenant ? name : NULL, rc, key, err);
	out->tenant = tenant;
	out->id = name;
	for (uint32_t i = 0; rc == SKV_OK && i < out->n_specs; i++)
		rc = out->specs[i].size ? SKV_OK : doc_bad(err, key);
	return rc == SKV_OK && (!out->n_specs || out->n_specs > SKV_MAX_SPECS) ? doc_bad(err, key)
									       : rc;
}

void registry_file_key(char out[64], uint32_t storage_id, uint32_t file)
{
	snprintf(out, 64, "file/%08x/%08x", storage_id, file);
}

void registry_put_file(struct skv_buf *out, const struct volume_file *f)
{
	skv_put_u8(out, DOC_VERSION);
	skv_put_u64(out, f->length);
	skv_put_u8(out, f->asked ? 1 + f->asked_move : 0);
	skv_put_u8(out, f->state == FILE_GONE);
	skv_put_u8(out, f->lost);
}

bool registry_get_file(const void *bytes, size_t n, struct volume_file *out)
{
	struct skv_rd in = open_document(bytes, n);
	uint8_t asked, gone, lost;

	out->length = skv_get_u64(&in);
	asked = skv_get_u8(&in);
	gone = skv_get_u8(&in);
	lost = skv_get_u8(&in);
	out->asked = asked > 0;
	out->asked_move = asked == 2;
	out->state = gone ? FILE_GONE : FILE_IN_USE;
	out->lost = lost;
	return !in.failed && !skv_rd_left(&in) && asked <= 2 && gone <= 1 && lost <= 1 &&
	       out->length > 0;
}
