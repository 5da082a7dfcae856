/*
 * cmd_pages.c - slabkv pages: lists and clears the page spaces of SGLang's and vLLM's hf3fs
 * backends; pages_import.c and pages_export.c convert from and to upstream's persistence file.
 * Stateless; one thread.
 */
#include "pages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/json_out.h>

#define PORTION 1024u
_Static_assert(PORTION <= SLABKV_MAX_KEYS, "as --portion");

/* ---- spaces ---------------------------------------------------------------------------------- */

bool skv_pages_space_parse(const char *text, struct skv_pages_space *out)
{
	const char *digits = text + (*text == '-');
	size_t n = strspn(digits, "0123456789");

	if (n == 0 || n > 18 || (digits[n] != ':' && digits[n] != '\0'))
		return false;
	out->rank = strtoll(text, NULL, 10);
	assert(llabs(out->rank) < 1000000000000000000); /* 18 digits fit */
	out->ns = digits[n] ? digits + n + 1 : "kv";
	return true;
}

static bool same(const struct skv_pages_space *a, const struct skv_pages_space *b)
{
	return a->rank == b->rank && strcmp(a->ns, b->ns) == 0;
}

bool skv_pages_wanted(const struct skv_pages *p, const struct skv_pages_space *s)
{
	bool wanted = p->n_spaces == 0;

	assert(p->n_spaces <= SKV_PAGES_SPACES_MAX);
	for (uint32_t i = 0; i < p->n_spaces && !wanted; i++)
		wanted = same(&p->spaces[i], s);
	return wanted;
}

/* ---- calls ----------------------------------------------------------------------------------- */

void skv_pages_body(const struct skv_pages *p, const struct skv_pages_space *s, struct skv_buf *out)
{
	skv_buf_clear(out);
	skv_jout_begin(out);
	skv_jout_field_string(out, "tenant", p->tenant);
	skv_jout_name(out, "rank");
	skv_jout_i64(out, s->rank);
	skv_jout_field_string(out, "namespace", s->ns);
}

int skv_pages_call(struct skv_pages *p, const char *path, struct skv_buf *body,
		   const struct skv_json_node **answer)
{
	static const struct skv_json_limits limits = { .depth = 16, .values = 1u << 24,
						       .wide = true, .nul = true };
	struct slabkv_error err;
	struct skv_json_doc doc;
	const char *text, *copy;
	int rc;

	assert(!body || body->failed || body->data[0] == '{'); /* initialised by skv_pages_body */
	if (body) {
		skv_jout_close(body, '}');
		skv_put_u8(body, 0);
	}
	if (body && body->failed) {
		skv_cli_tell(p->cli, "out_of_memory", "out of memory");
		return SKV_EXIT_USAGE;
	}
	rc = slabkv_call(p->kv, body ? "POST" : "GET", path, body ? (const char *)body->data : NULL,
			 &text, &err);
	if (rc != SLABKV_OK)
		return skv_cli_fail(p->cli, &err);
	skv_arena_reset(&p->arena);
	copy = skv_arena_strndup(&p->arena, text, strlen(text));
	slabkv_free(text);
	if (copy && skv_json_parse(&doc, &p->arena, copy, strlen(copy), &limits) &&
	    doc.root->type == SKV_JSON_OBJECT) {
		*answer = doc.root;
		return SKV_EXIT_OK;
	}
	skv_cli_tell(p->cli, "internal", "the manager's answer is no JSON object");
	return SKV_EXIT_REFUSED;
}

uint64_t skv_pages_u64(const struct skv_json_node *object, const char *name)
{
	const struct skv_json_node *v = skv_json_get(object, name, strlen(name));

	return v && v->type == SKV_JSON_INTEGER && v->i > 0 ? (uint64_t)v->i : 0;
}

void skv_pages_progress(struct skv_pages *p, const char *what, const struct skv_pages_space *s,
			uint64_t done, uint64_t of)
{
	uint64_t now = skv_now_us();

	if (p->told_us == 0)
		p->told_us = now;
	if (now - p->told_us < 1000000)
		return;
	p->told_us = now;
	fprintf(stderr, "%" PRId64 ":%s: %" PRIu64 " of %" PRIu64 " %s%c", s->rank, s->ns, done, of,
		what, isatty(STDERR_FILENO) ? '\r' : '\n');
}

void skv_pages_put_scalar(struct skv_buf *out, const struct skv_json_node *v)
{
	switch (v->type) {
	case SKV_JSON_STRING:
		skv_jout_string_n(out, v->s, v->n);
		break;
	case SKV_JSON_INTEGER:
		skv_jout_i64(out, v->i);
		break;
	case SKV_JSON_REAL:
		skv_jout_plain(out, v->s, v->n);
		break;
	case SKV_JSON_TRUE:
	case SKV_JSON_FALSE:
		skv_jout_bool(out, v->type == SKV_JSON_TRUE);
		break;
	default:
		skv_jout_null(out);
	}
}

/* ---- list, clear ----------------------------------------------------------------------------- */

static const struct skv_json_node *field(const struct skv_json_node *o, const char *name,
					 unsigned type)
{
	const struct skv_json_node *v = skv_json_get(o, name, strlen(name));

	return v && v->type == type ? v : NULL;
}

/* Iterates over the spaces of the answer: NULL at the end. */
static const struct skv_json_node *next_space(const struct skv_json_node *list,
					      const struct skv_json_node *before)
{
	const struct skv_json_node *end = list ? list + list->span : NULL;
	const struct skv_json_node *v = !list    ? NULL
					: before ? skv_json_next(before)
						 : skv_json_first(list);

	return v && v < end ? v : NULL;
}

static bool read_space(const struct skv_json_node *v, struct skv_arena *a,
		       struct skv_pages_space *out, const char **tenant)
{
	const struct skv_json_node *t = field(v, "tenant", SKV_JSON_STRING),
				   *r = field(v, "rank", SKV_JSON_INTEGER);
	const struct skv_json_node *n = field(v, "namespace", SKV_JSON_STRING);

	if (!t || !r || !n)
		return false;
	*tenant = skv_arena_strndup(a, t->s, t->n);
	out->rank = r->i;
	out->ns = skv_arena_strndup(a, n->s, n->n);
	return *tenant && out->ns;
}

int skv_pages_find(struct skv_pages *p, struct skv_pages_space *out, uint32_t *n,
		   struct skv_arena *names)
{
	const struct skv_json_node *answer, *list, *v;
	const char *tenant;
	int rc = skv_pages_call(p, "/v1/pages", NULL, &answer);

	*n = 0;
	if (rc != SKV_EXIT_OK)
		return rc;
	list = field(answer, "pages", SKV_JSON_ARRAY);
	for (v = next_space(list, NULL); v && *n < SKV_PAGES_SPACES_MAX; v = next_space(list, v))
		*n += read_space(v, names, &out[*n], &tenant) && strcmp(tenant, p->tenant) == 0 &&
		      skv_pages_wanted(p, &out[*n]);
	return SKV_EXIT_OK;
}

/* How the manager sees the space's file; "-": it does not look. */
static const char *file_state(const struct skv_json_node *v, char out[16])
{
	const struct skv_json_node *file = field(v, "file", SKV_JSON_OBJECT);
	const struct skv_json_node *state = file ? field(file, "state", SKV_JSON_STRING) : NULL;

	snprintf(out, 16, "%.*s", state ? (int)state->n : 1, state ? state->s : "-");
	return out;
}

static json_t *as_json(const struct skv_json_node *v, const struct skv_pages_space *s,
		       const char *tenant)
{
	const struct skv_json_node *file = field(v, "file", SKV_JSON_OBJECT);
	const struct skv_json_node *path = file ? field(file, "path", SKV_JSON_STRING) : NULL;
	json_t *out = json_pack(
		"{ss sI ss sI sI sI}", "tenant", tenant, "rank", (json_int_t)s->rank, "namespace",
		s->ns, "num_pages", (json_int_t)skv_pages_u64(v, "num_pages"), "used",
		(json_int_t)skv_pages_u64(v, "used"), "keys", (json_int_t)skv_pages_u64(v, "keys"));
	char state[16];

	if (path)
		json_object_set_new(out, "file",
				    json_pack("{ss% ss sI}", "path", path->s, path->n, "state",
					      file_state(v, state), "drops",
					      (json_int_t)skv_pages_u64(file, "drops")));
	return out;
}

static int list_spaces(struct skv_pages *p, bool all)
{
	const struct skv_json_node *answer, *list, *v;
	json_t *out = json_array();
	int rc = skv_pages_call(p, "/v1/pages", NULL, &answer);

	if (rc != SKV_EXIT_OK) {
		json_decref(out);
		return rc;
	}
	if (!p->cli->json)
		printf("%-24s %8s %-24s %12s %12s %12s %s\n", "TENANT", "RANK", "NAMESPACE",
		       "PAGES", "USED", "KEYS", "FILE");
	list = field(answer, "pages", SKV_JSON_ARRAY);
	for (v = next_space(list, NULL); v; v = next_space(list, v)) {
		struct skv_pages_space s;
		const char *tenant;
		char state[16];

		if (!read_space(v, &p->arena, &s, &tenant) ||
		    (!all && strcmp(tenant, p->tenant) != 0) || !skv_pages_wanted(p, &s))
			continue;
		if (p->cli->json)
			json_array_append_new(out, as_json(v, &s, tenant));
		else
			printf("%-24s %8" PRId64 " %-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64
			       " %s\n",
			       tenant, s.rank, s.ns, skv_pages_u64(v, "num_pages"),
			       skv_pages_u64(v, "used"), skv_pages_u64(v, "keys"),
			       file_state(v, state));
	}
	if (p->cli->json)
		return skv_cli_print_json(json_pack("{so}", "pages", out));
	json_decref(out);
	return SKV_EXIT_OK;
}

static int confirm_clear(const struct skv_pages *p)
{
	char names[512] = "";

	for (size_t i = 0, n = 0; i < p->n_spaces && n < sizeof names; i++)
		n += (size_t)snprintf(names + n, sizeof names - n, "%s%" PRId64 ":%s",
				      i ? ", " : "", p->spaces[i].rank, p->spaces[i].ns);
	return skv_cli_confirm(p->cli, "deletes all keys of the page space%s %s",
			       p->n_spaces == 1 ? "" : "s", names);
}

static int clear_spaces(struct skv_pages *p)
{
	const struct skv_json_node *answer;
	struct skv_buf body = { 0 };
	json_t *out = json_array();
	int rc = confirm_clear(p);

	assert(p->n_spaces > 0); /* none would mean all of them elsewhere */
	for (uint32_t i = 0; rc == SKV_EXIT_OK && i < p->n_spaces; i++) {
		const struct skv_pages_space *s = &p->spaces[i];

		skv_pages_body(p, s, &body);
		rc = skv_pages_call(p, "/v1/pages/clear", &body, &answer);
		if (rc != SKV_EXIT_OK)
			break;
		if (p->cli->json)
			json_array_append_new(
				out, json_pack("{sI ss sI}", "rank", (json_int_t)s->rank,
					       "namespace", s->ns, "deleted",
					       (json_int_t)skv_pages_u64(answer, "deleted")));
		else
			printf("%" PRId64 ":%s: %" PRIu64 " keys deleted\n", s->rank, s->ns,
			       skv_pages_u64(answer, "deleted"));
	}
	skv_buf_destroy(&body);
	if (p->cli->json && rc == SKV_EXIT_OK)
		return skv_cli_print_json(json_pack("{so}", "spaces", out));
	json_decref(out);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

struct wish {
	const char *what; /* list, export, import, clear */
	const char *path; /* of export and import */
	bool any_tenant;
};

static int run(struct skv_pages *p, const struct wish *w)
{
	if (strcmp(w->what, "import") == 0)
		return skv_pages_import(p, w->path);
	if (strcmp(w->what, "export") == 0)
		return skv_pages_export(p, w->path);
	return strcmp(w->what, "clear") == 0 ? clear_spaces(p) : list_spaces(p, w->any_tenant);
}

static bool take_space(const char *text, void *pages)
{
	struct skv_pages *p = pages;

	return p->n_spaces < SKV_PAGES_SPACES_MAX &&
	       skv_pages_space_parse(text, &p->spaces[p->n_spaces++]);
}

/* The remaining arguments: the action and its file. */
static int take_arguments(struct skv_pages *p, struct wish *w, int n, char **v)
{
	bool file;

	static const char *const actions[] = { "list", "export", "import", "clear", NULL };

	w->what = n > 0 ? v[0] : "";
	file = strcmp(w->what, "export") == 0 || strcmp(w->what, "import") == 0;
	if (!file && strcmp(w->what, "list") != 0 && strcmp(w->what, "clear") != 0)
		return n > 0 ? skv_cli_unknown(p->cli, "action", v[0], actions)
			     : skv_cli_usage(p->cli, "say what: list, export, import or clear");
	if (n != 1 + file)
		return skv_cli_usage(p->cli,
				     file ? "%s takes one file, or - " : "%s takes no arguments",
				     w->what);
	if (strcmp(w->what, "clear") == 0 && p->n_spaces == 0)
		return skv_cli_usage(p->cli, "clear: which? --space RANK:NAMESPACE");
	w->path = file ? v[1] : NULL;
	return SKV_EXIT_OK;
}

int skv_cmd_pages(struct skv_cli *cli, int argc, char **argv)
{
	struct skv_pages p = { .cli = cli, .portion = PORTION };
	const struct skv_cli_option options[] = {
		{ "tenant", SKV_CLI_TEXT, &p.tenant, 0, 0, NULL, NULL },
		{ "space", SKV_CLI_PARSED, &p, 0, 0, "RANK or RANK:NAMESPACE, 256 times at most",
		  take_space },
		{ "portion", SKV_CLI_NUMBER, &p.portion, 1, SLABKV_MAX_KEYS, "1..16384", NULL },
		SKV_CLI_OPTIONS_END
	};
	struct wish w = { .what = "" };
	int rc = skv_cli_parse(cli, argc, argv, options, NULL);

	_Static_assert(SKV_PAGES_SPACES_MAX == 256, "as --space says");
	w.any_tenant = !p.tenant;
	p.tenant = p.tenant ? p.tenant : "default";
	if (rc == SKV_EXIT_OK)
		rc = take_arguments(&p, &w, argc - optind, argv + optind);
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &p.kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	skv_arena_init(&p.arena);
	rc = run(&p, &w);
	skv_arena_destroy(&p.arena);
	slabkv_close(p.kv);
	return rc;
}
