/*
 * output.c - what commands share beside their options: opening the library, errors with remedies,
 * JSON, making an instance. No state.
 */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <kvb/mem.h>

void kvb_cli_options(const struct kvb_cli *cli, struct kvblock_options *o)
{
	*o = cli->library;
	o->urls = cli->urls;
	o->n_urls = cli->n_urls;
	o->mounts = cli->mounts;
	o->n_mounts = cli->n_mounts;
	o->token = cli->token;
	o->timeout_ms = cli->timeout_ms;
	o->engine = cli->engine;
	o->codec = cli->codec;
	/* A person does not want to wait long for a manager that is not there. */
	o->rounds = 4;
}

int kvb_cli_open(const struct kvb_cli *cli, const struct kvblock_options *o, struct kvblock **out)
{
	struct kvblock_options own, with;
	struct kvblock_error err;
	const char *env = getenv("KVBLOCK_URL");

	if (!o) {
		kvb_cli_options(cli, &own);
		o = &own;
	}
	with = *o;
	if (with.n_urls == 0 && env && env[0]) {
		with.urls = &env;
		with.n_urls = 1;
	}
	if (kvblock_open(&with, out, &err) == KVBLOCK_OK)
		return KVB_EXIT_OK;
	return kvb_cli_fail(cli, &err);
}

int kvb_cli_exit_of(int status)
{
	switch (status) {
	case KVBLOCK_OK:
		return KVB_EXIT_OK;
	case KVBLOCK_E_NOT_FOUND:
		return KVB_EXIT_MISS;
	case KVBLOCK_E_NETWORK:
	case KVBLOCK_E_TIMEOUT:
	case KVBLOCK_E_NOT_READY:
	case KVBLOCK_E_NOT_OWNER:
		return KVB_EXIT_UNREACHABLE;
	case KVBLOCK_E_MISMATCH:
		return KVB_EXIT_MISMATCH;
	default:
		return KVB_EXIT_REFUSED;
	}
}

static const char *remedy(int status)
{
	switch (status) {
	case KVBLOCK_E_NETWORK:
		return "is kvblockd running? name it with --url or KVBLOCK_URL";
	case KVBLOCK_E_UNAUTHENTICATED:
		return "give a token with --token-file or KVBLOCK_TOKEN";
	case KVBLOCK_E_UNAVAILABLE:
	case KVBLOCK_E_FOREIGN:
		return "name the directory where the storage is mounted here with --mount; see "
		       "kvblock doctor";
	case KVBLOCK_E_NOT_READY:
	case KVBLOCK_E_NOT_OWNER:
		return "the manager is starting or a standby; try again, or name the others with "
		       "--url";
	default:
		return NULL;
	}
}

int kvb_cli_fail(const struct kvb_cli *cli, const struct kvblock_error *err)
{
	const char *help = remedy(err->code);

	fprintf(stderr, "kvblock %s: %s%s%s%s\n", cli->command, err->field,
		err->field[0] ? ": " : "", err->message,
		err->message[0] ? "" : kvblock_text(err->code));
	if (help)
		fprintf(stderr, "  (%s)\n", help);
	return kvb_cli_exit_of(err->code);
}

int kvb_cli_stats(const struct kvb_cli *cli, struct kvblock *kv, json_t **out)
{
	struct kvblock_error err;
	json_error_t e;
	const char *text;
	int rc = kvblock_stats(kv, &text, &err);

	if (rc != KVBLOCK_OK)
		return kvb_cli_fail(cli, &err);
	*out = json_loads(text, 0, &e);
	kvblock_free(text);
	if (json_is_object(*out))
		return KVB_EXIT_OK;
	json_decref(*out);
	fprintf(stderr, "kvblock %s: the manager's stats are no JSON object\n", cli->command);
	return KVB_EXIT_REFUSED;
}

int kvb_cli_print_json(json_t *doc)
{
	if (!doc || json_dumpf(doc, stdout, JSON_INDENT(2)) != 0) {
		fprintf(stderr, "kvblock: out of memory, or stdout cannot be written\n");
		json_decref(doc);
		return KVB_EXIT_USAGE;
	}
	putchar('\n');
	json_decref(doc);
	return KVB_EXIT_OK;
}

uint64_t kvb_cli_u64(const json_t *object, const char *name)
{
	const json_t *v = json_object_get(object, name);

	return json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v)
							       : 0;
}

const char *kvb_cli_text(const json_t *object, const char *name)
{
	const char *s = json_string_value(json_object_get(object, name));

	return s ? s : "";
}

void kvb_cli_storage_size(const json_t *storage, const char *name, char out[24])
{
	uint64_t n = kvb_cli_u64(storage, name);

	if (strcmp(kvb_cli_text(storage, "type"), "external") == 0)
		snprintf(out, 24, "%llu pages", (unsigned long long)n);
	else
		kvb_args_print_size(n, out);
}

static int same_specs(const struct kvblock_instance *want, const struct kvblock_instance *have,
		      struct kvblock_error *err)
{
	bool same = want->n_specs == have->n_specs;

	for (uint32_t i = 0; same && i < want->n_specs; i++)
		same = strcmp(want->specs[i].name, have->specs[i].name) == 0 &&
		       want->specs[i].size == have->specs[i].size;
	if (same)
		return KVBLOCK_OK;
	memset(err, 0, sizeof *err);
	err->code = KVBLOCK_E_CONFLICT;
	snprintf(err->field, sizeof err->field, "specs");
	snprintf(err->message, sizeof err->message,
		 "instance %s has blocks of another layout (spec %s of %llu bytes): use another "
		 "--instance",
		 have->id, have->specs[0].name, (unsigned long long)have->specs[0].size);
	return err->code;
}

/* On standard error: output may be a block's bytes. Nothing where it costs nothing. */
static void tell_placements(struct kvblock *kv, const char *id)
{
	const struct kvblock_instance_info *info;
	struct kvblock_error ignored;

	if (kvblock_instance_get(kv, id, &info, &ignored) != KVBLOCK_OK)
		return;
	for (uint32_t i = 0; i < info->n_placements; i++) {
		const struct kvblock_placement *p = &info->placements[i];

		if (p->wasted_bytes || p->copied_bytes)
			fprintf(stderr,
				"instance %s: spec %s on storage %s is %s: slots of %" PRIu64 " bytes, %" PRIu64
				" of them wasted, %" PRIu64 " more copied by each write\n",
				id, p->spec, p->storage, p->fit, p->slot_bytes, p->wasted_bytes, p->copied_bytes);
	}
	kvblock_free(info);
}

int kvb_cli_make_instance(struct kvblock *kv, const struct kvblock_instance *i, const char *storage,
			  struct kvblock_error *err)
{
	const struct kvblock_instance_info *have;
	const struct kvblock_group_info *group;
	const struct kvblock_group fresh = { .name = i->group,
					     .storages = &storage,
					     .n_storages = 1 };
	int rc = kvblock_instance_get(kv, i->id, &have, err);

	if (rc == KVBLOCK_OK) {
		rc = same_specs(i, &have->spec, err);
		kvblock_free(have);
		return rc;
	}
	if (rc != KVBLOCK_E_NOT_FOUND)
		return rc;
	rc = kvblock_group_get(kv, i->group, &group, err);
	if (rc == KVBLOCK_OK)
		kvblock_free(group);
	else if (rc == KVBLOCK_E_NOT_FOUND)
		rc = kvblock_group_put(kv, &fresh, err);
	if (rc == KVBLOCK_OK)
		rc = kvblock_instance_put(kv, i, err);
	if (rc == KVBLOCK_OK)
		tell_placements(kv, i->id);
	return rc;
}
