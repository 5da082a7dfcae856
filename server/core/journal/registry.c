/*
 * registry.c - encodes documents of the metadata store's registry; registry_write.c stores them,
 * recovery/load.c reads them.
 *
 * Keys: "secret", "next-id", "storage/<name>", "group/<name>", "instance/<tenant>/<id>",
 * "file/<storage id>/<file>" (both 8 hex digits; written before the slab file exists: a claim) and
 * "dropped/<instance id>" (8 hex digits; a deleted instance, while the journal may refer to it). A
 * document begins with u8 version. Strings are varint length + bytes. docs/ON_DISK.md has the
 * tables. Rare members are *fields* after everything else: a varint tag and a value in the tag's
 * format. New ones need no new version; defaults are not written. A document with fields is version
 * 4; one with an unknown tag is refused.
 */
#include <journal/registry.h>

#include <stdio.h>

#include <skv/bytes.h>

#include <model/files.h>
#include <journal/document.h>

void registry_put_storage(struct skv_buf *out, const struct storage_doc *d)
{
	size_t at = out->len, fields;

	skv_put_u8(out, DOC_VERSION);
	skv_put_u32(out, d->id);
	skv_put_bytes(out, d->uuid, 16);
	doc_put_text(out, d->spec.name);
	doc_put_text(out, d->spec.type);
	doc_put_text(out, d->spec.root);
	skv_put_u64(out, d->spec.capacity);
	skv_put_u64(out, d->spec.file_size);
	skv_put_u64(out, d->spec.unit);
	skv_put_u8(out, d->spec.enabled);
	doc_put_text(out, d->spec.client_root);
	doc_put_text(out, d->spec.client_mount);
	doc_put_text(out, d->spec.extra);
	fields = out->len;
	doc_put_field(out, STORAGE_HIGH_PERCENT, d->spec.high_percent);
	doc_put_field(out, STORAGE_LOW_PERCENT, d->spec.low_percent);
	doc_put_field(out, STORAGE_DRAINING, d->spec.draining ? 1 + d->spec.move : 0);
	doc_put_field(out, STORAGE_CHUNK, d->spec.chunk_size);
	doc_put_field(out, STORAGE_ANY_MOUNT, d->spec.any_mount);
	for (uint32_t i = 0; i < d->spec.n_fs_master; i++) {
		skv_put_varint(out, STORAGE_FS_MASTER);
		doc_put_text(out, d->spec.fs_master[i]);
	}
	doc_end_fields(out, at, fields);
}

void registry_put_group(struct skv_buf *out, const struct skv_group_spec *g)
{
	size_t at = out->len, fields;

	skv_put_u8(out, DOC_VERSION);
	doc_put_text(out, g->name);
	skv_put_u64(out, g->capacity);
	skv_put_varint(out, g->n_storages);
	for (uint32_t i = 0; i < g->n_storages; i++)
		doc_put_text(out, g->storages[i]);
	skv_put_u8(out, g->loose_storages);
	skv_put_varint(out, g->n_quotas);
	for (uint32_t i = 0; i < g->n_quotas; i++) {
		doc_put_text(out, g->quotas[i].type);
		skv_put_u64(out, g->quotas[i].capacity);
		skv_put_u64(out, g->quotas[i].reclaim);
	}
	skv_put_u64(out, g->max_blocks);
	skv_put_u32(out, g->max_instances);
	skv_put_u64(out, g->reclaim_bytes);
	skv_put_u64(out, g->reclaim_blocks);
	skv_put_u64(out, g->reclaim_step_bytes);
	skv_put_u32(out, g->reclaim_step_percent);
	skv_put_u32(out, g->reclaim_period_ms);
	skv_put_u64(out, g->max_idle_ms);
	skv_put_u64(out, g->version);
	doc_put_text(out, g->extra);
	fields = out->len;
	doc_put_field(out, GROUP_HIGH_PERCENT, g->high_percent);
	doc_put_field(out, GROUP_LOW_PERCENT, g->low_percent);
	doc_put_field(out, GROUP_PIN_PERCENT, g->pin_percent);
	doc_put_field(out, GROUP_SHARE, g->share);
	if (*g->policy) {
		skv_put_varint(out, GROUP_POLICY);
		doc_put_text(out, g->policy);
	}
	doc_put_field(out, GROUP_TTL_MS, g->ttl_ms);
	if (*g->tier_of) {
		skv_put_varint(out, GROUP_TIER_OF);
		doc_put_text(out, g->tier_of);
	}
	doc_put_field(out, GROUP_WRITE_THROUGH, g->write_through);
	doc_put_field(out, GROUP_PROMOTE_AFTER, g->promote_after);
	doc_put_field(out, GROUP_REPLICATE, g->replicate);
	doc_end_fields(out, at, fields);
}

void registry_put_instance(struct skv_buf *out, const struct skv_instance_spec *i, uint32_t id)
{
	size_t at = out->len, fields;

	skv_put_u8(out, i->named ? DOC_NAMED : DOC_VERSION);
	skv_put_u32(out, id);
	doc_put_text(out, i->tenant);
	doc_put_text(out, i->id);
	doc_put_text(out, i->group);
	skv_put_u32(out, i->block_tokens);
	doc_put_text(out, i->extra);
	skv_put_varint(out, i->n_specs);
	for (uint32_t s = 0; s < i->n_specs; s++) {
		doc_put_text(out, i->specs[s].name);
		skv_put_u64(out, i->specs[s].size);
	}
	skv_put_u8(out, i->numbered);
	if (i->named || i->weight || i->capacity)
		skv_put_u8(out, i->named);
	fields = out->len;
	doc_put_field(out, INSTANCE_WEIGHT, i->weight);
	doc_put_field(out, INSTANCE_CAPACITY, i->capacity);
	doc_end_fields(out, at, fields);
}

void registry_file_key(char out[64], uint32_t storage_id, uint32_t file)
{
	snprintf(out, 64, "file/%08x/%08x", storage_id, file);
}

void registry_put_file(struct skv_buf *out, const struct volume_file *f)
{
	size_t at = out->len, fields;

	skv_put_u8(out, 1);
	skv_put_u64(out, f->length);
	fields = out->len;
	doc_put_field(out, FIELD_ASKED, f->asked ? 1 + f->asked_move : 0);
	doc_put_field(out, FIELD_GONE, f->state == FILE_GONE);
	doc_put_field(out, FIELD_LOST, f->lost);
	doc_end_fields(out, at, fields);
}

bool registry_get_file(const void *bytes, size_t n, struct volume_file *out)
{
	struct skv_rd in = skv_rd_make(bytes, n);
	unsigned format = doc_version(&in, DOC_FIELDS);

	out->length = skv_get_u64(&in);
	for (uint64_t tag; (tag = doc_next_field(&in, format)) != 0;) {
		switch (tag) {
		case FIELD_ASKED: {
			uint32_t how = doc_get_small(&in, 2);

			out->asked = how > 0;
			out->asked_move = how == 2;
			break;
		}
		case FIELD_LOST: out->lost = doc_get_small(&in, 1); break;
		case FIELD_GONE:
			out->state = doc_get_small(&in, 1) ? FILE_GONE : FILE_IN_USE;
			break;
		default: in.failed = true;
		}
	}
	return format && !in.failed && out->length > 0;
}
