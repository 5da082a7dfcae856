/*
 * cmd_pages.c - kvblock pages: the page spaces of SGLang's and vLLM's hf3fs backends: lists and clears them; to and
 * from upstream's persistence file by pages_import.c and pages_export.c. No state; one thread.
 */
#include "pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kvb/clock.h>
#include <kvb/json_out.h>

#define PORTION 1024u

/* ---- spaces ------------------------------------------------------------------------------------ */

bool kvb_pages_space_parse(const char *text, struct kvb_pages_space *out)
{
	const char *digits = text + (*text == '-');
	size_t n = strspn(digits, "0123456789");

	if (n == 0 || n > 18 || (digits[n] != ':' && digits[n] != '\0'))
		return false;
	out->rank = strtoll(text, NULL, 10);
	out->ns = digits[n] ? digits + n + 1 : "kv";
	return true;
}

static bool same(const struct kvb_pages_space *a, const struct kvb_pages_space *b)
{
	return a->rank == b->rank && strcmp(a->ns, b->ns) == 0;
}

bool kvb_pages_wanted(const struct kvb_pages *p, const struct kvb_pages_space *s)
{
	bool wanted = p->n_spaces == 0;

	for (uint32_t i = 0; i < p->n_spaces && !wanted; i++)
		wanted = same(&p->spaces[i], s);
	return wanted;
}

/* ---- calls ------------------------------------------------------------------------------------- */

void kvb_pages_body(const struct kvb_pages *p, const struct kvb_pages_space *s, struct kvb_buf *out)
{
	kvb_buf_clear(out);
	kvb_jout_begin(out);
	kvb_jout_field_string(out, "tenant", p->tenant);
	kvb_jout_name(out, "rank");
	kvb_jout_i64(out, s->rank);
	kvb_jout_field_string(out, "namespace", s->ns);
}

int kvb_pages_call(struct kvb_pages *p, const char *path, struct kvb_buf *body, const struct kvb_json_node **answer)
{
	static const struct kvb_json_limits limits = { .depth = 16, .values = 1u << 24, .wide = true, .nul = true };
	struct kvblock_error err;
	struct kvb_json_doc doc;
	const char *text, *copy;
	int rc;

	if (body) {
		kvb_jout_close(body, '}');
		kvb_put_u8(body, 0);
	}
	if (body && body->failed) {
		fprintf(stderr, "kvblock pages: out of memory\n");
		return KVB_EXIT_USAGE;
	}
	rc = kvblock_call(p->kv, body ? "POST" : "GET", path, body ? (const char *)body->data : NULL, &text, &err);
	if (rc != KVBLOCK_OK)
		return kvb_cli_fail(p->cli, &err);
	kvb_arena_reset(&p->arena);
	copy = kvb_arena_strndup(&p->arena, text, strlen(text));
	kvblock_free(text);
	if (copy && kvb_json_parse(&doc, &p->arena, copy, strlen(copy), &limits) && doc.root->type == KVB_JSON_OBJECT) {
		*answer = doc.root;
		return KVB_EXIT_OK;
	}
	fprintf(stderr, "kvblock pages: the manager's answer is no JSON object\n");
	return KVB_EXIT_REFUSED;
}

uint64_t kvb_pages_u64(const struct kvb_json_node *object, const char *name)
{
	const struct kvb_json_node *v = kvb_json_get(object, name, strlen(name));

	return v && v->type == KVB_JSON_INTEGER && v->i > 0 ? (uint64_t)v->i : 0;
}

void kvb_pages_progress(struct kvb_pages *p, const char *what, const struct kvb_pages_space *s, uint64_t done,
			uint64_t of)
{
	uint64_t now = kvb_now_us();

	if (p->told_us == 0)
		p->told_us = now;
	if (now - p->told_us < 1000000)
		return;
	p->told_us = now;
	fprintf(stderr, "%" PRId64 ":%s: %" PRIu64 " of %" PRIu64 " %s%c", s->rank, s->ns, done, of, what,
		isatty(STDERR_FILENO) ? '\r' : '\n');
}

void kvb_pages_put_scalar(struct kvb_buf *out, const struct kvb_json_node *v)
{
	switch (v->type) {
	case KVB_JSON_STRING:
		kvb_jout_string_n(out, v->s, v->n);
		break;
	case KVB_JSON_INTEGER:
		kvb_jout_i64(out, v->i);
		break;
	case KVB_JSON_REAL:
		kvb_jout_plain(out, v->s, v->n);
		break;
	case KVB_JSON_TRUE:
	case KVB_JSON_FALSE:
		kvb_jout_bool(out, v->type == KVB_JSON_TRUE);
		break;
	default:
		kvb_jout_null(out);
	}
}

/* ---- list, clear ------------------------------------------------------------------------------- */

static const struct kvb_json_node *field(const struct kvb_json_node *o, const char *name, unsigned type)
{
	const struct kvb_json_node *v = kvb_json_get(o, name, strlen(name));

	return v && v->type == type ? v : NULL;
}

/* The answer's spaces, one after the other: NULL when there is none left. */
static const struct kvb_json_node *next_space(const struct kvb_json_node *list, const struct kvb_json_node *before)
{
	const struct kvb_json_node *end = list ? list + list->span : NULL;
	const struct kvb_json_node *v = !list ? NULL : before ? kvb_json_next(before) : kvb_json_first(list);

	return v && v < end ? v : NULL;
}

static bool read_space(const struct kvb_json_node *v, struct kvb_arena *a, struct kvb_pages_space *out,
		       const char **tenant)
{
	const struct kvb_json_node *t = field(v, "tenant", KVB_JSON_STRING), *r = field(v, "rank", KVB_JSON_INTEGER);
	const struct kvb_json_node *n = field(v, "namespace", KVB_JSON_STRING);

	if (!t || !r || !n)
		return false;
	*tenant = kvb_arena_strndup(a, t->s, t->n);
	out->rank = r->i;
	out->ns = kvb_arena_strndup(a, n->s, n->n);
	return *tenant && out->ns;
}

int kvb_pages_find(struct kvb_pages *p, struct kvb_pages_space *out, uint32_t *n, struct kvb_arena *names)
{
	const struct kvb_json_node *answer, *list, *v;
	const char *tenant;
	int rc = kvb_pages_call(p, "/v1/pages", NULL, &answer);

	*n = 0;
	if (rc != KVB_EXIT_OK)
		return rc;
	list = field(answer, "pages", KVB_JSON_ARRAY);
	for (v = next_space(list, NULL); v && *n < KVB_PAGES_SPACES_MAX; v = next_space(list, v))
		*n += read_space(v, names, &out[*n], &tenant) && strcmp(tenant, p->tenant) == 0 &&
		      kvb_pages_wanted(p, &out[*n]);
	return KVB_EXIT_OK;
}

static json_t *as_json(const struct kvb_json_node *v, const struct kvb_pages_space *s, const char *tenant)
{
	return json_pack("{ss sI ss sI sI sI}", "tenant", tenant, "rank", (json_int_t)s->rank, "namespace", s->ns,
			 "num_pages", (json_int_t)kvb_pages_u64(v, "num_pages"), "used",
			 (json_int_t)kvb_pages_u64(v, "used"), "keys", (json_int_t)kvb_pages_u64(v, "keys"));
}

static int list_spaces(struct kvb_pages *p, bool all)
{
	const struct kvb_json_node *answer, *list, *v;
	json_t *out = json_array();
	int rc = kvb_pages_call(p, "/v1/pages", NULL, &answer);

	if (rc != KVB_EXIT_OK) {
		json_decref(out);
		return rc;
	}
	if (!p->cli->json)
		printf("%-24s %8s %-24s %12s %12s %12s\n", "TENANT", "RANK", "NAMESPACE", "PAGES", "USED", "KEYS");
	list = field(answer, "pages", KVB_JSON_ARRAY);
	for (v = next_space(list, NULL); v; v = next_space(list, v)) {
		struct kvb_pages_space s;
		const char *tenant;

		if (!read_space(v, &p->arena, &s, &tenant) || (!all && strcmp(tenant, p->tenant) != 0) ||
		    !kvb_pages_wanted(p, &s))
			continue;
		if (p->cli->json)
			json_array_append_new(out, as_json(v, &s, tenant));
		else
			printf("%-24s %8" PRId64 " %-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n", tenant, s.rank,
			       s.ns, kvb_pages_u64(v, "num_pages"), kvb_pages_u64(v, "used"), kvb_pages_u64(v, "keys"));
	}
	if (p->cli->json)
		return kvb_cli_print_json(json_pack("{so}", "pages", out));
	json_decref(out);
	return KVB_EXIT_OK;
}

static int clear_spaces(struct kvb_pages *p)
{
	const struct kvb_json_node *answer;
	struct kvb_buf body = { 0 };
	json_t *out = json_array();
	int rc = KVB_EXIT_OK;

	for (uint32_t i = 0; rc == KVB_EXIT_OK && i < p->n_spaces; i++) {
		const struct kvb_pages_space *s = &p->spaces[i];

		kvb_pages_body(p, s, &body);
		rc = kvb_pages_call(p, "/v1/pages/clear", &body, &answer);
		if (rc != KVB_EXIT_OK)
			break;
		if (p->cli->json)
			json_array_append_new(out, json_pack("{sI ss sI}", "rank", (json_int_t)s->rank, "namespace", s->ns,
							     "deleted", (json_int_t)kvb_pages_u64(answer, "deleted")));
		else
			printf("%" PRId64 ":%s: %" PRIu64 " keys deleted\n", s->rank, s->ns,
			       kvb_pages_u64(answer, "deleted"));
	}
	kvb_buf_destroy(&body);
	if (p->cli->json && rc == KVB_EXIT_OK)
		return kvb_cli_print_json(json_pack("{so}", "spaces", out));
	json_decref(out);
	return rc;
}

/* ---- the command ------------------------------------------------------------------------------- */

struct wish {
	const char *what; /* list, export, import, clear */
	const char *path; /* of export and import */
	bool any_tenant;
};

static int run(struct kvb_pages *p, const struct wish *w)
{
	if (strcmp(w->what, "import") == 0)
		return kvb_pages_import(p, w->path);
	if (strcmp(w->what, "export") == 0)
		return kvb_pages_export(p, w->path);
	return strcmp(w->what, "clear") == 0 ? clear_spaces(p) : list_spaces(p, w->any_tenant);
}

static int option(struct kvb_pages *p, struct wish *w, int opt, const char *value)
{
	uint64_t n;

	switch (opt) {
	case 't':
		p->tenant = value;
		w->any_tenant = false;
		return KVB_EXIT_OK;
	case 's':
		if (p->n_spaces == KVB_PAGES_SPACES_MAX || !kvb_pages_space_parse(value, &p->spaces[p->n_spaces]))
			return kvb_cli_usage(p->cli, "--space: RANK or RANK:NAMESPACE, %u times at most", KVB_PAGES_SPACES_MAX);
		p->n_spaces++;
		return KVB_EXIT_OK;
	case 'p':
		if (!kvb_args_number(value, 1, KVBLOCK_MAX_KEYS, &n))
			return kvb_cli_usage(p->cli, "--portion: 1..%u", KVBLOCK_MAX_KEYS);
		p->portion = (uint32_t)n;
		return KVB_EXIT_OK;
	default:
		return kvb_cli_global_option(p->cli, opt, value);
	}
}

/* What is left of argv: the action, and its file. */
static int take_arguments(struct kvb_pages *p, struct wish *w, int n, char **v)
{
	bool file;

	w->what = n > 0 ? v[0] : "";
	file = strcmp(w->what, "export") == 0 || strcmp(w->what, "import") == 0;
	if (!file && strcmp(w->what, "list") != 0 && strcmp(w->what, "clear") != 0)
		return kvb_cli_usage(p->cli, "say what: list, export, import or clear");
	if (n != 1 + file)
		return kvb_cli_usage(p->cli, file ? "%s takes one file, or - " : "%s takes no arguments", w->what);
	if (strcmp(w->what, "clear") == 0 && p->n_spaces == 0)
		return kvb_cli_usage(p->cli, "clear: which? --space RANK:NAMESPACE");
	w->path = file ? v[1] : NULL;
	return KVB_EXIT_OK;
}

int kvb_cmd_pages(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "tenant", required_argument, NULL, 't' },
						 { "space", required_argument, NULL, 's' },
						 { "portion", required_argument, NULL, 'p' },
						 KVB_CLI_GLOBAL_OPTIONS };
	struct kvb_pages p = { .cli = cli, .tenant = "default", .portion = PORTION };
	struct wish w = { .any_tenant = true };
	int opt, rc = KVB_EXIT_OK;

	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1)
		rc = option(&p, &w, opt, optarg);
	if (rc == KVB_EXIT_OK)
		rc = take_arguments(&p, &w, argc - optind, argv + optind);
	if (rc == KVB_EXIT_OK)
		rc = kvb_cli_open(cli, NULL, &p.kv);
	if (rc != KVB_EXIT_OK)
		return rc;
	kvb_arena_init(&p.arena);
	rc = run(&p, &w);
	kvb_arena_destroy(&p.arena);
	kvblock_close(p.kv);
	return rc;
}
