/*
 * messages_access.c - messages about access rights, as tables (table.h): tokens, tenants.
 *
 * Constant data, no state; any thread.
 */
#include "messages.h"

#include <stdio.h>

/* ---- tokens ---------------------------------------------------------------------------------- */

static const char *const token_roles[] = { "read", "write", "admin", NULL };
static const char *const token_sources[] = { "file", "store", NULL };

static const char *check_token(const void *message, char text[SKV_MESSAGE_MAX])
{
	const struct skv_token_spec *s = message;
	struct skv_key half;

	if (strlen(s->hash) != 2 * SKV_KEY_HEX || !skv_key_from_hex(s->hash, SKV_KEY_HEX, &half) ||
	    !skv_key_from_hex(s->hash + SKV_KEY_HEX, SKV_KEY_HEX, &half)) {
		snprintf(text, SKV_MESSAGE_MAX, "must be the 64 hex digits of a SHA-256");
		return "hash";
	}
	for (size_t i = 0; token_roles[i]; i++)
		if (strcmp(s->role, token_roles[i]) == 0)
			return NULL;
	snprintf(text, SKV_MESSAGE_MAX, "must be read, write or admin");
	return "role";
}

#define T struct skv_token_spec
static const struct skv_field token_rows[] = {
	SKV_TEXT(T, role, 1, .min = 1, .max = 16, .flags = REQUIRED, .texts = token_roles),
	SKV_ROW(T, tenant, "tenant", MODEL_NAME, 2, .text = "default"),
	SKV_NUMBER(T, expires_s, 4, .max = 253402300799u,
		   .doc = "Seconds since 1970; 0 = never."),
	SKV_NUMBER(T, keep_s, 5, .max = 366 * 86400u,
		   .doc = "The token of this name before stays accepted so many seconds."),
	SKV_TEXT(T, hash, 3, .min = 64, .max = 64, .flags = REQUIRED | LAST, .check = check_token,
		   .doc = "SHA-256 of the token's text, 64 hex digits: the manager never sees "
			  "the text before it is used."),
};
#undef T
static const struct skv_table token_table =
	SKV_TABLE("TokenSpec", struct skv_token_spec, token_rows, .strict = true,
		  .doc = "A bearer token in the store.");

#define T struct skv_token_view
static const struct skv_field token_view_rows[] = {
	SKV_CHARS(T, name, 1),
	SKV_TEXT(T, source, 2, .texts = token_sources,
		   .doc = "file: of the tokens_file; store: added by this API."),
	SKV_TEXT(T, role, 3, .texts = token_roles),
	SKV_CHARS(T, tenant, 4),
	SKV_NUMBER(T, created_s, 5, .doc = "Seconds since 1970; 0 = not known."),
	SKV_NUMBER(T, expires_s, 6, .doc = "0 = never."),
	SKV_BOOL(T, expired, 7),
	SKV_BOOL(T, clear, 8,
		   .doc = "The tokens_file has its text: 'slabkv token hash' makes hashes of it."),
};
#undef T
static const struct skv_table token_view_table =
	SKV_TABLE("TokenView", struct skv_token_view, token_view_rows);

/* ---- tenants --------------------------------------------------------------------------------- */

#define T struct skv_tenant_spec
static const struct skv_field tenant_rows[] = {
	SKV_LIST(T, groups, NAMES, 1, .most = SKV_JMAX_OBJECT, .flags = SHORT,
		   .doc = "It may register instances in these."),
	SKV_LIST(T, storages, NAMES, 2, .most = SKV_JMAX_OBJECT, .flags = SHORT,
		   .doc = "Groups that its administrators make may name these."),
	SKV_LIST(T, own_groups, NAMES, 3, .most = SKV_JMAX_OBJECT, .flags = SHORT,
		   .doc = "As groups, and its administrators change and delete these. Each has one "
			  "owner; groups that its administrators make are added."),
	SKV_LIST(T, own_storages, NAMES, 4, .most = SKV_JMAX_OBJECT, .flags = SHORT,
		   .doc = "As storages, and its administrators drain files of these. Each has one "
			  "owner."),
	SKV_NUMBER(T, max_instances, 5, .flags = OPTIONAL,
		   .doc = "Without page spaces, in what one manager owns; beyond it over_quota. "
			  "0 = 1000, of tenant default any number."),
	SKV_NUMBER(T, max_spaces, 6, .flags = OPTIONAL,
		   .doc = "Page spaces of the hf3fs APIs; the same."),
	SKV_NUMBER(T, requests_per_s, 7, .max = 1000000u, .flags = OPTIONAL,
		   .doc = "Of all its callers, to one manager, a second's at once; beyond that "
			  "calls are too_many. 0 = any number."),
	SKV_NUMBER(T, max_bytes, 8, .flags = OPTIONAL,
		   .doc = "Of its blocks in all storages; beyond it its own blocks are evicted, "
			  "and what finds none that may go is over_quota. 0 = any number."),
	SKV_NUMBER(T, max_blocks, 9, .flags = OPTIONAL,
		   .doc = "The same of blocks, with those being written."),
	SKV_NUMBER(T, max_sessions, 10, .flags = OPTIONAL,
		   .doc = "Open write sessions; beyond it a start is too_many. 0 = any number."),
	SKV_NUMBER(T, max_pins, 11, .flags = OPTIONAL,
		   .doc = "Pinned blocks; beyond it a pin is over_quota. 0 = any number."),
	SKV_NUMBER(T, blocks_per_s, 12, .max = 1000000000u, .flags = OPTIONAL,
		   .doc = "Blocks that its calls match, look up, start and pin, at one manager, a "
			  "second's at once; beyond that calls are too_many. 0 = any number."),
	SKV_NUMBER(T, max_held_bytes, 13, .flags = OPTIONAL,
		   .doc = "Of bodies and answers of its large calls at a time, at one manager; "
			  "beyond it they are too_many. One call may always hold body_max. 0 = "
			  "half of body_total_max."),
	SKV_NUMBER(T, weight, 14, .max = SKV_MAX_WEIGHT, .flags = OPTIONAL,
		   .doc = "Tenants with blocks in a storage share it by these. 0 = 1."),
};
#undef T
static const struct skv_table tenant_table =
	SKV_TABLE("TenantSpec", struct skv_tenant_spec, tenant_rows, .strict = true,
		  .doc = "What a tenant may. A group or storage that tenants name is theirs: "
			 "others neither use nor see it. One that none names is everybody's.");

#define T struct skv_tenant_view
#define USE(member, number) SKV_ROW(T, use.member, #member, NUMBER, number)
static const struct skv_field tenant_view_rows[] = {
	SKV_CHARS(T, name, 1),
	SKV_PART(T, spec, 2, tenant_table),
	USE(bytes, 3),
	USE(blocks, 4),
	USE(sessions, 5),
	USE(pins, 6),
	USE(instances, 7),
	USE(spaces, 8),
	USE(held_bytes, 9),
};
#undef USE
#undef T
static const struct skv_table tenant_view_table =
	SKV_TABLE("TenantView", struct skv_tenant_view, tenant_view_rows);

/* ---- lists, functions ------------------------------------------------------------------------ */

LIST("TokenList", token, tokens)
LIST("TenantList", tenant, tenants)

REQUEST(token, skv_token_spec)
REQUEST(tenant, skv_tenant_spec)

void skv_document_write_tenant(struct skv_buf *out, const struct skv_tenant_spec *v)
{
	skv_table_write_json(&tenant_table, out, v);
	skv_put_u8(out, '\0');
}

int skv_document_read_tenant(struct skv_arena *a, const char *text, struct skv_tenant_spec *out,
			     struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };

	return skv_table_read_json(&tenant_table, &in, text, strlen(text), out, err);
}

const struct skv_table *const skv_access_tables[] = {
	&token_table, &token_view_table, &token_list_table, &tenant_table, &tenant_view_table,
	&tenant_list_table, NULL,
};
