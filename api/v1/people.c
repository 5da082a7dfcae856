/*
 * people.c - answers that only people and dashboards read: one block, and the manager's numbers.
 *
 * Written, never read back by our client. No state; any thread.
 */
#include "parts.h"

static void block_specs(struct skv_buf *b, const struct skv_block_view *v)
{
	skv_jout_name(b, "specs");
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < v->n_specs; i++) {
		skv_jout_open(b, '{');
		skv_jout_field_string(b, "name", v->specs[i]);
		skv_jout_field_string(b, "state", v->state[i]);
		skv_jout_name(b, "location");
		skv_jout_location(b, &v->loc[i]);
		skv_jout_close(b, '}');
	}
	skv_jout_close(b, ']');
}

void skv_v1_write_block_view(struct skv_buf *out, const struct skv_block_view *v)
{
	skv_jout_begin(out);
	skv_jout_name(out, "key");
	skv_jout_key(out, v->key);
	skv_jout_name(out, "parent");
	if (v->has_parent)
		skv_jout_key(out, v->parent);
	else
		skv_jout_null(out);
	skv_jout_field_u64(out, "children", v->children);
	skv_jout_field_u64(out, "created_ms", v->created_ms);
	skv_jout_field_u64(out, "idle_ms", v->idle_ms);
	skv_jout_field_u64(out, "lease_ms", v->lease_ms);
	block_specs(out, v);
	skv_jout_files(out, &v->files);
	skv_jout_close(out, '}');
}

void skv_v1_write_stats(struct skv_buf *out, const struct skv_stats *s)
{
	skv_jout_begin(out);
	skv_jout_field_string(out, "version", s->version);
	skv_jout_field_string(out, "state", s->state);
	skv_jout_field_text(out, "owner", s->owner);
	skv_jout_field_u64(out, "uptime_ms", s->uptime_ms);
	skv_jout_field_u64(out, "blocks", s->blocks);
	skv_jout_field_u64(out, "sessions", s->sessions);
	skv_jout_field_u64(out, "journal_bytes", s->journal_bytes);
	skv_jout_field_u64(out, "journal_limit", s->journal_limit);
	skv_jout_field_u64(out, "evicted_blocks", s->evicted_blocks);
	skv_jout_field_u64(out, "expired_sessions", s->expired_sessions);
	skv_jout_storages(out, s->storages, s->n_storages);
	skv_jout_groups(out, s->groups, s->n_groups);
	skv_jout_instances(out, s->instances, s->n_instances);
	skv_jout_close(out, '}');
}
