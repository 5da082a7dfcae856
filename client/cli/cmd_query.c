/* cmd_query.c - slabkv lookup, match, delete: one call each, and its result. Stateless. */
#include "cli.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- lookup ---------------------------------------------------------------------------------- */

static json_t *location_json(const struct slabkv_locations *r, uint32_t key, uint32_t spec)
{
	const struct slabkv_location *l = SLABKV_AT(struct slabkv_location, r->loc, r->loc_size,
						    (size_t)key * r->n_specs + spec);
	const struct slabkv_file *f =
		SLABKV_AT(struct slabkv_file, r->files, r->file_size, l->file);
	char checksum[20] = "", generation[24];

	if (l->has_checksum)
		snprintf(checksum, sizeof checksum, "%016" PRIx64, l->checksum);
	snprintf(generation, sizeof generation, "%" PRIu64, l->generation);
	return json_pack("{ss ss ss ss sI sI ss ss}", "spec", r->specs[spec], "storage", f->storage,
			 "uuid", f->uuid, "path", f->path, "offset", (json_int_t)l->offset,
			 "length", (json_int_t)l->length, "generation", generation, "checksum",
			 checksum);
}

static int print_lookup_json(const struct skv_cli_target *t, const struct slabkv_locations *r)
{
	json_t *blocks = json_array();

	for (uint32_t k = 0; k < r->n_keys; k++) {
		json_t *specs = json_array();

		for (uint32_t s = 0; r->hit[k] && s < r->n_specs; s++)
			json_array_append_new(specs, location_json(r, k, s));
		json_array_append_new(blocks, json_pack("{ss sb so}", "key", t->texts[k], "hit",
							(int)r->hit[k], "locations", specs));
	}
	return skv_cli_print_json(json_pack("{sI sI so}", "matched", (json_int_t)r->matched,
					    "lease_ms", (json_int_t)r->lease_ms, "blocks", blocks));
}

static void print_lookup(const struct skv_cli_target *t, const struct slabkv_locations *r)
{
	printf("%u of %u keys, lease %u ms\n", r->matched, r->n_keys, r->lease_ms);
	for (uint32_t k = 0; k < r->n_keys; k++) {
		if (!r->hit[k]) {
			printf("%s  -\n", t->texts[k]);
			continue;
		}
		for (uint32_t s = 0; s < r->n_specs; s++) {
			const struct slabkv_location *l =
				SLABKV_AT(struct slabkv_location, r->loc, r->loc_size,
					  (size_t)k * r->n_specs + s);
			const struct slabkv_file *f =
				SLABKV_AT(struct slabkv_file, r->files, r->file_size, l->file);

			printf("%s  %s  %s/%s  offset %" PRIu64 "  length %" PRIu64 "\n",
			       t->texts[k], r->specs[s], f->storage, f->path, l->offset, l->length);
		}
	}
}

static int do_lookup(struct skv_cli *cli, const struct skv_cli_target *t,
		     const struct slabkv_lookup_options *o)
{
	struct slabkv_keys keys = skv_args_keys_of(&t->keys);
	const struct slabkv_locations *r;
	struct slabkv_error err;
	struct slabkv *kv;
	int rc = skv_cli_open(cli, NULL, &kv);

	assert((o->window > 0) == (o->mode == SLABKV_WINDOW));
	if (rc != SKV_EXIT_OK)
		return rc;
	if (slabkv_lookup(kv, t->instance, &keys, o, &r, &err) != SLABKV_OK) {
		rc = skv_cli_fail(cli, &err);
	} else {
		if (cli->json)
			rc = print_lookup_json(t, r);
		else
			print_lookup(t, r);
		if (rc == SKV_EXIT_OK && r->matched < (o->window ? o->window : r->n_keys))
			rc = SKV_EXIT_MISS;
		slabkv_free(r);
	}
	slabkv_close(kv);
	return rc;
}

int skv_cmd_lookup(struct skv_cli *cli, int argc, char **argv)
{
	struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
					   .mode = SLABKV_PREFIX,
					    .lease_ms = SLABKV_LEASE_DEFAULT };
	bool batch = false, trailing = false;
	const struct skv_cli_option options[] = {
		{ "batch", SKV_CLI_FLAG, &batch, 0, 0, NULL, NULL },
		{ "trailing", SKV_CLI_FLAG, &trailing, 0, 0, NULL, NULL },
		{ "window", SKV_CLI_NUMBER, &o.window, 1, SLABKV_MAX_KEYS,
		  "a number of keys, 1..16384", NULL },
		{ "lease", SKV_CLI_NUMBER, &o.lease_ms, 0, 3600000, "milliseconds, 0..3600000",
		  NULL },
		SKV_CLI_OPTIONS_END
	};
	struct skv_cli_target t;
	int rc;

	skv_cli_target_init(&t);
	rc = skv_cli_parse(cli, argc, argv, options, &t);
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_target_keys(cli, &t, argc, argv, optind);
	o.mode = o.window   ? SLABKV_WINDOW
		 : trailing ? SLABKV_TRAILING
		 : batch    ? SLABKV_BATCH
			    : SLABKV_PREFIX;
	if (rc == SKV_EXIT_OK)
		rc = do_lookup(cli, &t, &o);
	skv_cli_target_free(&t);
	return rc;
}

/* ---- match ----------------------------------------------------------------------------------- */

static int do_match(struct skv_cli *cli, const struct skv_cli_target *t,
		    const char *const *instances, uint32_t n)
{
	struct slabkv_keys keys = skv_args_keys_of(&t->keys);
	uint32_t matched[SKV_CLI_LIST_MAX];
	struct slabkv_error err;
	struct slabkv *kv;
	json_t *doc;
	int rc = skv_cli_open(cli, NULL, &kv);

	assert(n >= 1 && n <= SKV_CLI_LIST_MAX); /* the room in `matched` */
	if (rc != SKV_EXIT_OK)
		return rc;
	if (slabkv_match(kv, instances, n, &keys, matched, &err) != SLABKV_OK)
		rc = skv_cli_fail(cli, &err);
	slabkv_close(kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	doc = json_array();
	rc = SKV_EXIT_MISS;
	for (uint32_t i = 0; i < n; i++) {
		if (matched[i] > 0)
			rc = SKV_EXIT_OK;
		if (!cli->json)
			printf("%s  %u of %u\n", instances[i], matched[i], keys.n);
		json_array_append_new(doc, json_pack("{ss sI}", "instance", instances[i], "matched",
						     (json_int_t)matched[i]));
	}
	if (!cli->json)
		json_decref(doc);
	else if (skv_cli_print_json(doc) != SKV_EXIT_OK)
		rc = SKV_EXIT_USAGE;
	return rc;
}

int skv_cmd_match(struct skv_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { SKV_CLI_TARGET_OPTIONS, SKV_CLI_GLOBAL_OPTIONS };
	const char *instances[SKV_CLI_LIST_MAX] = { "default" };
	struct skv_cli_target t;
	uint32_t n = 0;
	int opt, rc = SKV_EXIT_OK;

	skv_cli_target_init(&t);
	while (rc == SKV_EXIT_OK &&
	       (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1) {
		if (opt == SKV_OPT_INSTANCE && n == SKV_CLI_LIST_MAX)
			rc = skv_cli_usage(cli, "--instance: at most %d", SKV_CLI_LIST_MAX);
		else if (opt == SKV_OPT_INSTANCE)
			instances[n++] = optarg;
		else
			rc = skv_cli_target_option(cli, &t, opt, optarg);
	}
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == SKV_EXIT_OK)
		rc = do_match(cli, &t, instances, n ? n : 1);
	skv_cli_target_free(&t);
	return rc;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static const char *const kinds[] = { [SLABKV_STORAGE] = "storage", [SLABKV_GROUP] = "group",
				     [SLABKV_INSTANCE] = "instance" };
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Describes an object and what a delete removes with it. SLABKV_E_NOT_FOUND. */
static int describe(struct slabkv *kv, enum slabkv_object kind, const char *name, char out[160],
		    struct slabkv_error *err)
{
	const char *text = NULL;
	json_t *doc;
	int rc = slabkv_object_get(kv, kind, name, &text, err);

	if (rc != SLABKV_OK)
		return rc;
	doc = json_loads(text, 0, NULL);
	slabkv_free(text);
	if (kind == SLABKV_INSTANCE)
		snprintf(out, 160, "instance %.100s with its %" PRIu64 " blocks", name,
			 skv_cli_u64(doc, "blocks"));
	else if (kind == SLABKV_STORAGE)
		snprintf(out, 160, "storage %.100s with its %" PRIu64 " slab files", name,
			 skv_cli_u64(doc, "files"));
	else
		snprintf(out, 160, "group %.100s", name);
	json_decref(doc);
	return rc;
}

/* Checks and lists all of them before the first one is deleted. */
static int confirm_delete(const struct skv_cli *cli, struct slabkv *kv, enum slabkv_object kind,
			  const struct skv_cli_target *t)
{
	char all[800] = "", one[160];
	struct slabkv_error err;
	size_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		if (describe(kv, kind, t->texts[i], one, &err) != SLABKV_OK)
			return skv_cli_fail(cli, &err);
		if (n < sizeof all)
			n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", one);
	}
	return skv_cli_confirm(cli, "deletes %s", all);
}

/* `object` KINDS: keys. */
static int do_delete(struct skv_cli *cli, const struct skv_cli_target *t, unsigned object)
{
	const bool objects = object < KINDS;
	struct slabkv_keys keys = skv_args_keys_of(&t->keys);
	struct slabkv_error err;
	struct slabkv *kv;
	uint32_t deleted = 0;
	int status = SLABKV_OK;
	int rc = skv_cli_open(cli, NULL, &kv);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (objects)
		rc = confirm_delete(cli, kv, object, t);
	if (rc != SKV_EXIT_OK) {
		slabkv_close(kv);
		return rc;
	}
	for (uint32_t i = 0; objects && i < t->n && status == SLABKV_OK; i++)
		status = slabkv_object_delete(kv, object, t->texts[i], &err);
	if (!objects)
		status = slabkv_delete(kv, t->instance, &keys, &deleted, &err);
	slabkv_close(kv);
	if (status != SLABKV_OK)
		return skv_cli_fail(cli, &err);
	if (objects)
		return SKV_EXIT_OK;
	if (cli->json)
		rc = skv_cli_print_json(json_pack("{sI}", "deleted", (json_int_t)deleted));
	else
		printf("%u of %u deleted\n", deleted, keys.n);
	return rc != SKV_EXIT_OK || deleted > 0 ? rc : SKV_EXIT_MISS;
}

int skv_cmd_delete(struct skv_cli *cli, int argc, char **argv)
{
	const char *word = NULL;
	const struct skv_cli_option options[] = {
		{ "object", SKV_CLI_TEXT, &word, 0, 0, NULL, NULL }, SKV_CLI_OPTIONS_END
	};
	struct skv_cli_target t;
	unsigned object;
	int rc;

	skv_cli_target_init(&t);
	rc = skv_cli_parse(cli, argc, argv, options, &t);
	for (object = 0; word && object < KINDS && strcmp(kinds[object], word) != 0;)
		object++;
	if (rc == SKV_EXIT_OK && word && object == KINDS)
		rc = skv_cli_usage(cli, "--object: instance, group or storage");
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == SKV_EXIT_OK)
		rc = do_delete(cli, &t, word ? object : KINDS);
	skv_cli_target_free(&t);
	return rc;
}
