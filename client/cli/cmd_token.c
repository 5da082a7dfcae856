/*
 * cmd_token.c - slabkv token: makes tokens, and adds, lists, replaces and revokes those in the
 * store.
 *
 * A token's text is made here from 256 random bits and printed once; only its SHA-256 goes to the
 * manager. Stateless; one thread.
 */
#include "cli.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <skv/hash.h>
#include <skv/mem.h>

#define RANDOM_BYTES 32u
#define TEXT_ROOM (sizeof "skv_" + 2 * RANDOM_BYTES)
#define HEX_ROOM (2 * SKV_SHA256 + 1)
#define DAY 86400u

struct token_options {
	const char *role;
	const char *tenant;
	const char *name;
	uint64_t expires_s; /* 0 = never */
	uint64_t keep_s;
};

static void to_hex(const uint8_t *p, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", p[i]);
}

static void hash_text(const char *text, size_t n, char out[HEX_ROOM])
{
	uint8_t sum[SKV_SHA256];

	assert(n > 0);
	skv_sha256(text, n, sum);
	to_hex(sum, sizeof sum, out);
}

static void make_text(char text[TEXT_ROOM], char hash[HEX_ROOM])
{
	uint8_t bytes[RANDOM_BYTES];

	skv_random(bytes, sizeof bytes);
	memcpy(text, "skv_", 4);
	to_hex(bytes, sizeof bytes, text + 4);
	assert(strlen(text) == TEXT_ROOM - 1);
	hash_text(text, strlen(text), hash);
}

/* ---- times ----------------------------------------------------------------------------------- */

/* A duration from now, or a date in UTC. */
static bool parse_expiry(const char *text, uint64_t *s)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%d", &tm);
	uint64_t left;
	time_t t;

	if (skv_args_duration(text, &left)) {
		*s = (uint64_t)time(NULL) + left;
		return true;
	}
	if (!end || *end)
		return false;
	t = timegm(&tm);
	*s = (uint64_t)t;
	return t > time(NULL);
}

static void print_day(uint64_t s, char out[16])
{
	const time_t t = (time_t)s;
	struct tm tm;

	if (!s || !gmtime_r(&t, &tm) || strftime(out, 16, "%Y-%m-%d", &tm) == 0)
		snprintf(out, 16, "-");
}

/* ---- actions --------------------------------------------------------------------------------- */

/* For a tokens_file: the text to keep, and the line to add. */
static int make_line(const struct skv_cli *cli, const struct token_options *o)
{
	char text[TEXT_ROOM], hash[HEX_ROOM], line[512], day[16], expires[32] = "";

	make_text(text, hash);
	print_day(o->expires_s, day);
	if (o->expires_s)
		snprintf(expires, sizeof expires, " expires=%s", day);
	snprintf(line, sizeof line, "%s %s sha256:%s%s%s%s", o->role, o->tenant, hash,
		 o->name ? " name=" : "", o->name ? o->name : "", expires);
	if (cli->json)
		return skv_cli_print_json(json_pack("{ssss}", "token", text, "line", line));
	printf("%s\n", text);
	fprintf(stderr, "The line for the tokens_file:\n%s\n", line);
	return SKV_EXIT_OK;
}

/* Prints the token, which nothing else knows, after the manager has its hash. */
static int put(const struct skv_cli *cli, struct slabkv *kv, const struct token_options *o)
{
	char path[300], text[TEXT_ROOM], hash[HEX_ROOM];
	json_t *view;
	int rc;

	assert(o->name && o->role && o->tenant);
	make_text(text, hash);
	snprintf(path, sizeof path, "/v1/tokens/%s", o->name);
	rc = skv_cli_call(cli, kv, "PUT", path,
			  json_pack("{sssssssIsI}", "role", o->role, "tenant", o->tenant, "hash",
				    hash, "expires_s", (json_int_t)o->expires_s, "keep_s",
				    (json_int_t)o->keep_s),
			  &view);
	if (rc != SKV_EXIT_OK)
		return rc;
	if (cli->json) {
		json_object_set_new(view, "token", json_string(text));
		return skv_cli_print_json(view);
	}
	json_decref(view);
	printf("%s\n", text);
	fprintf(stderr, "This is the only time that the token is shown.\n");
	return SKV_EXIT_OK;
}

static int list(const struct skv_cli *cli, struct slabkv *kv, char **words, int n, json_t **out)
{
	int rc = skv_cli_list(cli, kv, "/v1/tokens", words, n, out);
	char made[16], ends[16];
	const json_t *t;
	size_t i;

	if (rc != SKV_EXIT_OK || cli->json)
		return rc;
	printf("%-24s %-6s %-6s %-20s %-11s %s\n", "NAME", "ROLE", "OF", "TENANT", "CREATED",
	       "EXPIRES");
	json_array_foreach(json_object_get(*out, "tokens"), i, t) {
		print_day(skv_cli_u64(t, "created_s"), made);
		print_day(skv_cli_u64(t, "expires_s"), ends);
		printf("%-24s %-6s %-6s %-20s %-11s %s%s%s\n", skv_cli_text(t, "name"),
		       skv_cli_text(t, "role"), skv_cli_text(t, "source"),
		       skv_cli_text(t, "tenant"), made, ends,
		       json_is_true(json_object_get(t, "expired")) ? " (expired)" : "",
		       json_is_true(json_object_get(t, "clear")) ? " (in clear text)" : "");
	}
	return rc;
}

/* The same role, tenant and time of life, another text. */
static int rotate(const struct skv_cli *cli, struct slabkv *kv, struct token_options *o)
{
	const struct skv_cli quiet = { .command = cli->command, .json = true };
	const json_t *t, *found = NULL;
	json_t *doc;
	size_t i;
	int rc = list(&quiet, kv, NULL, 0, &doc);

	if (rc != SKV_EXIT_OK)
		return rc;
	json_array_foreach(json_object_get(doc, "tokens"), i, t)
		if (!found && strcmp(skv_cli_text(t, "name"), o->name) == 0)
			found = t;
	if (!found) {
		skv_cli_tell(cli, "not_found", "there is no token '%s'", o->name);
		rc = SKV_EXIT_MISS;
	} else {
		const uint64_t created = skv_cli_u64(found, "created_s");
		const uint64_t expires = skv_cli_u64(found, "expires_s");

		o->role = skv_cli_text(found, "role");
		o->tenant = skv_cli_text(found, "tenant");
		if (!o->expires_s && expires && created && expires > created)
			o->expires_s = (uint64_t)time(NULL) + expires - created;
		rc = put(cli, kv, o);
	}
	json_decref(doc);
	return rc;
}

static int revoke(const struct skv_cli *cli, struct slabkv *kv, const char *name)
{
	char path[300];
	int rc = skv_cli_confirm(cli, "refuses whoever shows the token '%s'", name);

	snprintf(path, sizeof path, "/v1/tokens/%s", name);
	return rc == SKV_EXIT_OK ? skv_cli_call(cli, kv, "DELETE", path, NULL, NULL) : rc;
}

/* Prints a line of a tokens file, with a hash in place of the token. */
static void print_hashed(const char *line)
{
	const char *p = line + strspn(line, " \t");
	char hash[HEX_ROOM];
	size_t n;

	for (int word = 0; word < 2 && *p && *p != '#'; word++) {
		p += strcspn(p, " \t\r\n");
		p += strspn(p, " \t");
	}
	n = strcspn(p, " \t\r\n");
	if (line[strspn(line, " \t")] == '#' || n == 0 || strncmp(p, "sha256:", 7) == 0 ||
	    strncmp(p, "cert:", 5) == 0) {
		fputs(line, stdout);
		return;
	}
	hash_text(p, n, hash);
	printf("%.*ssha256:%s%s", (int)(p - line), line, hash, p + n);
}

static int hash_file(const struct skv_cli *cli, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!f)
		return skv_cli_usage(cli, "cannot read %s", path);
	while (getline(&line, &size, f) >= 0)
		print_hashed(line);
	free(line); /* getline's own */
	fclose(f);
	return SKV_EXIT_OK;
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool take_role(const char *text, void *to)
{
	*(const char **)to = text;
	return strcmp(text, "read") == 0 || strcmp(text, "write") == 0 ||
	       strcmp(text, "admin") == 0;
}

static bool take_expiry(const char *text, void *to) { return parse_expiry(text, to); }

/* Calls a manager with `action`; `name` is of a token, NULL for a list: the page that the arguments
 * select. */
static int ask(struct skv_cli *cli, const char *action, struct token_options *o, char **words,
	       int n)
{
	struct slabkv *kv;
	json_t *doc = NULL;
	int rc = skv_cli_open(cli, NULL, &kv);

	assert(o->name || strcmp(action, "list") == 0);
	if (rc != SKV_EXIT_OK)
		return rc;
	if (!o->name) {
		rc = list(cli, kv, words, n, &doc);
		if (rc == SKV_EXIT_OK && cli->json)
			rc = skv_cli_print_json(json_incref(doc));
		json_decref(doc);
	} else if (strcmp(action, "add") == 0) {
		rc = put(cli, kv, o);
	} else if (strcmp(action, "rotate") == 0) {
		rc = rotate(cli, kv, o);
	} else {
		rc = revoke(cli, kv, o->name);
	}
	slabkv_close(kv);
	return rc;
}

static int run(struct skv_cli *cli, struct token_options *o, int n, char **words)
{
	static const char *const actions[] = { "add", "list", "rotate", "revoke", "new", "hash",
					       NULL };
	const char *action = n ? words[0] : "";
	const bool one = strcmp(action, "list") != 0 && strcmp(action, "new") != 0;

	if (n == 0)
		return skv_cli_usage(cli, "add, list, rotate, revoke, new or hash?");
	for (size_t i = 0; !actions[i] || strcmp(action, actions[i]) != 0; i++)
		if (!actions[i])
			return skv_cli_unknown(cli, "action", action, actions);
	if (one ? n != 2 : n != 1 && strcmp(action, "list") != 0)
		return skv_cli_usage(cli, one ? "%s: of which one?" : "%s takes no arguments",
				     action);
	if ((strcmp(action, "add") == 0 || strcmp(action, "new") == 0) && !o->role)
		return skv_cli_usage(cli, "%s needs --role", action);
	if (strcmp(action, "hash") == 0)
		return hash_file(cli, words[1]);
	if (strcmp(action, "new") == 0)
		return make_line(cli, o);
	o->name = one ? words[1] : NULL;
	return ask(cli, action, o, words + 1, n - 1);
}

int skv_cmd_token(struct skv_cli *cli, int argc, char **argv)
{
	struct token_options o = { .tenant = "default" };
	const struct skv_cli_option options[] = {
		{ "role", SKV_CLI_PARSED, &o.role, 0, 0, "read, write or admin", take_role },
		{ "tenant", SKV_CLI_TEXT, &o.tenant, 0, 0, NULL, NULL },
		{ "name", SKV_CLI_TEXT, &o.name, 0, 0, NULL, NULL },
		{ "expires", SKV_CLI_PARSED, &o.expires_s, 0, 0, "like 90d, 12h or 2027-01-31",
		  take_expiry },
		{ "keep", SKV_CLI_TIME, &o.keep_s, 0, 0, "like 24h or 7d", NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc = skv_cli_parse(cli, argc, argv, options, NULL);

	return rc == SKV_EXIT_OK ? run(cli, &o, argc - optind, argv + optind) : rc;
}
