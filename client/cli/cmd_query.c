/* cmd_query.c - kvblock lookup, match, delete: one call each, printed. No state. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

/* ---- lookup ---------------------------------------------------------------------------------- */

static json_t *location_json(const struct kvblock_locations *r, uint32_t key, uint32_t spec)
{
	const struct kvblock_location *l = &r->loc[(size_t)key * r->n_specs + spec];
	const struct kvblock_file *f = &r->files[l->file];
	char checksum[20] = "", generation[24];

	if (l->has_checksum)
		snprintf(checksum, sizeof checksum, "%016" PRIx64, l->checksum);
	snprintf(generation, sizeof generation, "%" PRIu64, l->generation);
	return json_pack("{ss ss ss ss sI sI ss ss}", "spec", r->specs[spec], "storage", f->storage,
			 "uuid", f->uuid, "path", f->path, "offset", (json_int_t)l->offset,
			 "length", (json_int_t)l->length, "generation", generation, "checksum",
			 checksum);
}

static int print_lookup_json(const struct kvb_cli_target *t, const struct kvblock_locations *r)
{
	json_t *blocks = json_array();

	for (uint32_t k = 0; k < r->n_keys; k++) {
		json_t *specs = json_array();

		for (uint32_t s = 0; r->hit[k] && s < r->n_specs; s++)
			json_array_append_new(specs, location_json(r, k, s));
		json_array_append_new(blocks, json_pack("{ss sb so}", "key", t->texts[k], "hit",
							(int)r->hit[k], "locations", specs));
	}
	return kvb_cli_print_json(json_pack("{sI sI so}", "matched", (json_int_t)r->matched,
					    "lease_ms", (json_int_t)r->lease_ms, "blocks", blocks));
}

static void print_lookup(const struct kvb_cli_target *t, const struct kvblock_locations *r)
{
	printf("%u of %u keys, lease %u ms\n", r->matched, r->n_keys, r->lease_ms);
	for (uint32_t k = 0; k < r->n_keys; k++) {
		if (!r->hit[k]) {
			printf("%s  -\n", t->texts[k]);
			continue;
		}
		for (uint32_t s = 0; s < r->n_specs; s++) {
			const struct kvblock_location *l = &r->loc[(size_t)k * r->n_specs + s];
			const struct kvblock_file *f = &r->files[l->file];

			printf("%s  %s  %s/%s  offset %" PRIu64 "  length %" PRIu64 "\n",
			       t->texts[k], r->specs[s], f->storage, f->path, l->offset, l->length);
		}
	}
}

static int do_lookup(struct kvb_cli *cli, const struct kvb_cli_target *t,
		     const struct kvblock_lookup_options *o)
{
	struct kvblock_keys keys = kvb_args_keys_of(&t->keys);
	const struct kvblock_locations *r;
	struct kvblock_error err;
	struct kvblock *kv;
	int rc = kvb_cli_open(cli, NULL, &kv);

	if (rc != KVB_EXIT_OK)
		return rc;
	if (kvblock_lookup(kv, t->instance, &keys, o, &r, &err) != KVBLOCK_OK) {
		rc = kvb_cli_fail(cli, &err);
	} else {
		if (cli->json)
			rc = print_lookup_json(t, r);
		else
			print_lookup(t, r);
		if (rc == KVB_EXIT_OK && r->matched < r->n_keys)
			rc = KVB_EXIT_MISS;
		kvblock_free(r);
	}
	kvblock_close(kv);
	return rc;
}

int kvb_cmd_lookup(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "batch", no_argument, NULL, 'b' },
						 { "lease", required_argument, NULL, 'l' },
						 KVB_CLI_TARGET_OPTIONS, KVB_CLI_GLOBAL_OPTIONS };
	struct kvblock_lookup_options o = { .mode = KVBLOCK_PREFIX,
					    .lease_ms = KVBLOCK_LEASE_DEFAULT };
	struct kvb_cli_target t;
	uint64_t n;
	int opt, rc = KVB_EXIT_OK;

	kvb_cli_target_init(&t);
	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 'b')
			o.mode = KVBLOCK_BATCH;
		else if (opt == 'l' && kvb_args_number(optarg, 0, 3600000, &n))
			o.lease_ms = (uint32_t)n;
		else if (opt == 'l')
			rc = kvb_cli_usage(cli, "--lease: milliseconds, 0..3600000");
		else
			rc = kvb_cli_target_option(cli, &t, opt, optarg);
	}
	if (rc == KVB_EXIT_OK)
		rc = kvb_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == KVB_EXIT_OK)
		rc = do_lookup(cli, &t, &o);
	kvb_cli_target_free(&t);
	return rc;
}

/* ---- match ----------------------------------------------------------------------------------- */

static int do_match(struct kvb_cli *cli, const struct kvb_cli_target *t,
		    const char *const *instances, uint32_t n)
{
	struct kvblock_keys keys = kvb_args_keys_of(&t->keys);
	uint32_t matched[KVB_CLI_LIST_MAX];
	struct kvblock_error err;
	struct kvblock *kv;
	json_t *doc;
	int rc = kvb_cli_open(cli, NULL, &kv);

	if (rc != KVB_EXIT_OK)
		return rc;
	if (kvblock_match(kv, instances, n, &keys, matched, &err) != KVBLOCK_OK)
		rc = kvb_cli_fail(cli, &err);
	kvblock_close(kv);
	if (rc != KVB_EXIT_OK)
		return rc;
	doc = json_array();
	rc = KVB_EXIT_MISS;
	for (uint32_t i = 0; i < n; i++) {
		if (matched[i] > 0)
			rc = KVB_EXIT_OK;
		if (!cli->json)
			printf("%s  %u of %u\n", instances[i], matched[i], keys.n);
		json_array_append_new(doc, json_pack("{ss sI}", "instance", instances[i], "matched",
						     (json_int_t)matched[i]));
	}
	if (!cli->json)
		json_decref(doc);
	else if (kvb_cli_print_json(doc) != KVB_EXIT_OK)
		rc = KVB_EXIT_USAGE;
	return rc;
}

int kvb_cmd_match(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { KVB_CLI_TARGET_OPTIONS, KVB_CLI_GLOBAL_OPTIONS };
	const char *instances[KVB_CLI_LIST_MAX] = { "default" };
	struct kvb_cli_target t;
	uint32_t n = 0;
	int opt, rc = KVB_EXIT_OK;

	kvb_cli_target_init(&t);
	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1) {
		if (opt == KVB_OPT_INSTANCE && n == KVB_CLI_LIST_MAX)
			rc = kvb_cli_usage(cli, "--instance: at most %d", KVB_CLI_LIST_MAX);
		else if (opt == KVB_OPT_INSTANCE)
			instances[n++] = optarg;
		else
			rc = kvb_cli_target_option(cli, &t, opt, optarg);
	}
	if (rc == KVB_EXIT_OK)
		rc = kvb_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == KVB_EXIT_OK)
		rc = do_match(cli, &t, instances, n ? n : 1);
	kvb_cli_target_free(&t);
	return rc;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static int delete_object(struct kvblock *kv, const char *kind, const char *name,
			 struct kvblock_error *err)
{
	if (strcmp(kind, "instance") == 0)
		return kvblock_instance_delete(kv, name, err);
	if (strcmp(kind, "group") == 0)
		return kvblock_group_delete(kv, name, err);
	return kvblock_storage_delete(kv, name, err);
}

static int do_delete(struct kvb_cli *cli, const struct kvb_cli_target *t, const char *object)
{
	struct kvblock_keys keys = kvb_args_keys_of(&t->keys);
	struct kvblock_error err;
	struct kvblock *kv;
	uint32_t deleted = 0;
	int status = KVBLOCK_OK;
	int rc = kvb_cli_open(cli, NULL, &kv);

	if (rc != KVB_EXIT_OK)
		return rc;
	for (uint32_t i = 0; object && i < t->n && status == KVBLOCK_OK; i++)
		status = delete_object(kv, object, t->texts[i], &err);
	if (!object)
		status = kvblock_delete(kv, t->instance, &keys, &deleted, &err);
	kvblock_close(kv);
	if (status != KVBLOCK_OK)
		return kvb_cli_fail(cli, &err);
	if (object)
		return KVB_EXIT_OK;
	if (cli->json)
		rc = kvb_cli_print_json(json_pack("{sI}", "deleted", (json_int_t)deleted));
	else
		printf("%u of %u deleted\n", deleted, keys.n);
	return rc != KVB_EXIT_OK || deleted > 0 ? rc : KVB_EXIT_MISS;
}

int kvb_cmd_delete(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "object", required_argument, NULL, 'b' },
						 KVB_CLI_TARGET_OPTIONS, KVB_CLI_GLOBAL_OPTIONS };
	struct kvb_cli_target t;
	const char *object = NULL;
	int opt, rc = KVB_EXIT_OK;

	kvb_cli_target_init(&t);
	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 'b')
			object = optarg;
		else
			rc = kvb_cli_target_option(cli, &t, opt, optarg);
	}
	if (rc == KVB_EXIT_OK && object && strcmp(object, "instance") != 0 &&
	    strcmp(object, "group") != 0 && strcmp(object, "storage") != 0)
		rc = kvb_cli_usage(cli, "--object: instance, group or storage");
	if (rc == KVB_EXIT_OK)
		rc = kvb_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == KVB_EXIT_OK)
		rc = do_delete(cli, &t, object);
	kvb_cli_target_free(&t);
	return rc;
}
