/*
 * people.c - answers that only people and dashboards read: one block, and the manager's numbers.
 *
 * Written, never read back by our client. No state; any thread.
 */
#include "parts.h"

static void block_specs(struct kvb_buf *b, const struct kvb_block_view *v)
{
	kvb_jout_name(b, "specs");
	kvb_jout_open(b, '[');
	for (uint32_t i = 0; i < v->n_specs; i++) {
		kvb_jout_open(b, '{');
		kvb_jout_field_string(b, "name", v->specs[i]);
		kvb_jout_field_string(b, "state", v->state[i]);
		kvb_jout_name(b, "location");
		kvb_jout_location(b, &v->loc[i]);
		kvb_jout_close(b, '}');
	}
	kvb_jout_close(b, ']');
}

void kvb_v1_write_block_view(struct kvb_buf *out, const struct kvb_block_view *v)
{
	kvb_jout_begin(out);
	kvb_jout_name(out, "key");
	kvb_jout_key(out, v->key);
	kvb_jout_name(out, "parent");
	if (v->has_parent)
		kvb_jout_key(out, v->parent);
	else
		kvb_jout_null(out);
	kvb_jout_field_u64(out, "children", v->children);
	kvb_jout_field_u64(out, "created_ms", v->created_ms);
	kvb_jout_field_u64(out, "idle_ms", v->idle_ms);
	kvb_jout_field_u64(out, "lease_ms", v->lease_ms);
	block_specs(out, v);
	kvb_jout_files(out, &v->files);
	kvb_jout_close(out, '}');
}

void kvb_v1_write_stats(struct kvb_buf *out, const struct kvb_stats *s)
{
	kvb_jout_begin(out);
	kvb_jout_field_string(out, "version", s->version);
	kvb_jout_field_string(out, "state", s->state);
	kvb_jout_field_text(out, "owner", s->owner);
	kvb_jout_field_u64(out, "uptime_ms", s->uptime_ms);
	kvb_jout_field_u64(out, "blocks", s->blocks);
	kvb_jout_field_u64(out, "sessions", s->sessions);
	kvb_jout_field_u64(out, "journal_bytes", s->journal_bytes);
	kvb_jout_field_u64(out, "journal_limit", s->journal_limit);
	kvb_jout_field_u64(out, "evicted_blocks", s->evicted_blocks);
	kvb_jout_field_u64(out, "expired_sessions", s->expired_sessions);
	kvb_jout_storages(out, s->storages, s->n_storages);
	kvb_jout_groups(out, s->groups, s->n_groups);
	kvb_jout_instances(out, s->instances, s->n_instances);
	kvb_jout_close(out, '}');
}
