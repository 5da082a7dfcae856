/*
 * api.c - the hf3fs API for the transports: routes, portions, answers.
 *
 * The answer of each portion (skv/portions.h) is appended when the next one is sent, on whatever
 * thread the core calls back, and the last by `write`. No locks.
 */
#include "body.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include "ops_table.h"

/* ---- portions -------------------------------------------------------------------------------- */

static void begin_answer(struct hf3fs_request *k)
{
	struct skv_buf *out = &k->c->out;

	if (!k->op->list || out->len > 0)
		return;
	skv_jout_begin(out);
	if (k->op->flags & HF3FS_ECHOES) {
		skv_jout_name(out, "rank");
		skv_jout_i64(out, k->space.rank);
	}
	skv_jout_name(out, k->op->list);
	skv_jout_open(out, '[');
}

/* Appends the answer of the newest portion. False: the others have none. */
static bool tell(struct hf3fs_request *k)
{
	assert(k->part.n > 0 && k->part.n <= k->part.total - k->part.at);
	assert(k->told <= k->part.at);
	begin_answer(k);
	return !k->op->tell || k->op->tell(k);
}

static int ask_portion(void *ctx)
{
	struct hf3fs_request *k = ctx;

	return k->op->ask(k);
}

/* The last portion is appended by `write`, unless one before it has ended the answer. */
static bool take_portion(void *ctx, int *status)
{
	struct hf3fs_request *k = ctx;

	if (*status != SKV_OK || k->part.n == k->part.total - k->part.at)
		return false;
	k->over = !tell(k);
	return !k->over;
}

int hf3fs_go(struct hf3fs_request *k)
{
	assert(k->op->ask && !k->over);
	k->part.ask = ask_portion;
	k->part.take = take_portion;
	k->part.ctx = k;
	k->part.end = &k->c->done;
	return skv_portions_run(&k->part);
}

void hf3fs_untell(struct hf3fs_request *k)
{
	skv_buf_clear(&k->c->out);
	k->told = 0;
	begin_answer(k);
}

/* ---- answers --------------------------------------------------------------------------------- */

void hf3fs_answer(struct hf3fs_request *k)
{
	struct skv_buf *out = &k->c->out;
	const size_t n = k->op->none ? strlen(k->op->none) : 0;
	char *p;

	if (k->op->say)
		k->op->say(k);
	if (!k->op->list)
		return;
	assert(k->told <= k->part.total);
	begin_answer(k);
	if (k->op->rest)
		k->op->rest(k);
	p = skv_jraw_begin(out, (n + 1) * (size_t)(k->part.total - k->told) + 2);
	if (!p)
		return;
	for (; k->told < k->part.total; k->told++) {
		p = skv_jraw_bytes(p, k->op->none, n);
		*p++ = ',';
	}
	p -= k->part.total > 0; /* each element has a comma behind it */
	skv_jraw_end(out, skv_jraw_text(p, "]}"));
	k->c->type = "application/json";
}

static void write(struct skv_request *c)
{
	struct hf3fs_request *k = c->state;

	if (k->part.n > 0 && !k->over)
		tell(k);
	if (k->raised)
		c->http = hf3fs_raise(k);
	else
		hf3fs_answer(k);
	if (!k->raised && !hf3fs_has_answer(k->op))
		c->http = 204;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int head(struct skv_request *c, const struct skv_head *h)
{
	struct hf3fs_request *k = c->state;

	(void)h;
	k->c = c;
	k->op = c->route ? c->route->own : NULL;
	return SKV_OK;
}

/* Refuses: this API has no gRPC. */
static int message(struct skv_request *c, const uint8_t *p, size_t n)
{
	(void)p;
	(void)n;
	return skv_fail(&c->err, SKV_E_UNSUPPORTED, NULL, "this API has no gRPC methods");
}

/* Errors that upstream's server would not reach if the space did not exist. */
static int check_late(struct hf3fs_request *k, int rc)
{
	if (!k->detail || !k->late || k->op->flags & (HF3FS_VLLM | HF3FS_MAKES) ||
	    !hf3fs_strict(k) || hf3fs_find(k) != SKV_E_NOT_FOUND)
		return rc;
	k->detail = NULL;
	k->c->http = 0;
	return SKV_E_NOT_FOUND;
}

/* ---- the API --------------------------------------------------------------------------------- */

static const struct hf3fs_op ops[] = {
#define COLUMNS(u, r, a, t, l, n) .undone = u, .read = r, .ask = a, .tell = t, .list = l, .none = n
#define OP(op, path, role, f, ...) { .name = #op, .flags = f, COLUMNS(__VA_ARGS__) },
	SKV_HF3FS_OPS(OP)
#undef OP
#define OP(op, path, role, f, ...) { .name = #op, .flags = f, __VA_ARGS__ },
	SKV_VLLM_OPS(OP)
#undef OP
};

enum op_number {
#define NUMBER(name, ...) NUMBER_##name,
	SKV_HF3FS_OPS(NUMBER) SKV_VLLM_OPS(NUMBER)
#undef NUMBER
};

/* vLLM's /{tenant}/clear looks like /{rank}/clear. */
static void tell_clears_apart(struct hf3fs_request *k)
{
	struct route_param *p = &k->c->param[0];
	int64_t rank;

	if (k->op != &ops[NUMBER_clear] || strcmp(p->name, "rank") != 0 || hf3fs_strict(k) ||
	    space_rank(p->value, strlen(p->value), true, &rank) || !body_is_tenant(p->value))
		return;
	k->op = &ops[NUMBER_vllm_clear];
	snprintf(p->name, sizeof p->name, "tenant");
}

static int run(struct skv_request *c)
{
	struct hf3fs_request *k = c->state;
	int ready, rc;

	assert(k->part.at == 0 && k->told == 0);
	tell_clears_apart(k);
	/* before keys are read: they are hashed with the store's secret */
	ready = skv_request_check_core(c);
	rc = hf3fs_read(k);
	if (rc != SKV_OK)
		return check_late(k, rc);
	if (k->op->say && k->u.num_pages == VLLM_SCHEDULER) {
		skv_error_clear(&c->err);
		return SKV_OK;
	}
	if (k->op->flags & HF3FS_ALL)
		rc = hf3fs_ranks_find(k);
	else
		hf3fs_locate(k);
	if (rc != SKV_OK || ready != SKV_OK)
		return rc != SKV_OK ? rc : ready;
	if (k->op->flags & HF3FS_MAKES)
		return hf3fs_make_later(k);
	rc = k->part.total > 0 || k->op->flags & HF3FS_WHOLE ? hf3fs_go(k) : hf3fs_find(k);
	return rc == SKV_E_NOT_FOUND && k->op->flags & HF3FS_GRANTS ? hf3fs_make_later(k) : rc;
}

/* Which operation it is stays known: its path was told apart already. */
static void again(struct skv_request *c)
{
	struct hf3fs_request *k = c->state;

	*k = (struct hf3fs_request){ .c = c, .op = k->op };
}

#define ROUTE(op, path, role_)                                        \
	{ .name = #op,                                                \
	  .method = "POST",                                           \
	  .pattern = path,                                            \
	  .role = ROLE_##role_,                                       \
	  .flags = ROUTE_OWNED | ROUTE_HELD | ROUTE_BODY | ROUTE_RAW, \
	  .planes = SKV_PLANE_META,                                   \
	  .own = &ops[NUMBER_##op],                                   \
	  .run = run,                                                 \
	  .write = write },

/* The first that fits is taken: paths of fixed words go before these. */
static const struct skv_route routes[] = {
#define ADMIN(op, method_, path, f)    \
	{ .name = "pages_" #op,        \
	  .method = #method_,          \
	  .pattern = "/v1/pages" path, \
	  .role = ROLE_ADMIN,          \
	  .flags = ROUTE_TENANT | ROUTE_CORE | ROUTE_HELD | (f), \
	  .planes = SKV_PLANE_ALL,     \
	  .run = hf3fs_admin_##op,     \
	  .write = hf3fs_admin_##op##_write },
	SKV_HF3FS_ADMIN(ADMIN)
#undef ADMIN
#define PLAIN(op, path, role, ...) ROUTE(op, "/" path, role)
	SKV_VLLM_OPS(PLAIN)
#undef PLAIN
#define TENANT(op, path, role, ...) ROUTE(op, "/{tenant}/" path, role)
	SKV_VLLM_TENANT_OPS(TENANT)
#undef TENANT
#define PLAIN(op, path, role, ...) ROUTE(op, "/{rank}/" path, role)
	SKV_HF3FS_OPS(PLAIN)
#undef PLAIN
#define TENANT(op, path, role, ...) ROUTE(op, "/{tenant}/{rank}/" path, role)
	SKV_HF3FS_OPS(TENANT)
#undef TENANT
};

/* Ranks, with or without a tenant, and vLLM's paths. */
static bool owns(const char *path)
{
	const char *at = path;
	int64_t rank;

	if (strncmp(path, "/keys/", 6) == 0 || strncmp(path, "/rank/", 6) == 0)
		return true;
	/* A tenant's name may have more than one segment. */
	for (unsigned i = 0; at && i < 3; i++, at = strchr(at, '/')) {
		at += *at == '/';
		if (space_rank(at, strcspn(at, "/"), true, &rank))
			return true;
	}
	return false;
}

int skv_hf3fs_api_create(const struct skv_hf3fs_api_options *o, struct skv_api **out,
			 struct skv_error *err)
{
	struct pages *p = skv_calloc(1, sizeof *p);

	if (!p)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	p->wishes = skv_calloc(WISHES_MAX, sizeof *p->wishes);
	if (!p->wishes || hf3fs_ranks_create(&p->ranks) != SKV_OK) {
		skv_free(p->wishes);
		skv_free(p);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	skv_mutex_init(&p->wish_lock);
	p->o = *o;
	p->api = (struct skv_api){
		.name = "pages",
		.prefix = "/rank/",
		.routes = routes,
		.n_routes = sizeof routes / sizeof routes[0],
		.state_size = sizeof(struct hf3fs_request),
		.ctx = p,
		.owns = owns,
		.slash_redirect = true,
		.head = head,
		.again = again,
		.patience = hf3fs_patience,
		.message = message,
		.fail = hf3fs_fail,
		.expose = hf3fs_expose,
	};
	*out = &p->api;
	return SKV_OK;
}

void skv_hf3fs_api_destroy(struct skv_api *api)
{
	struct pages *p = api ? api->ctx : NULL;

	if (!p)
		return;
	skv_mutex_destroy(&p->wish_lock);
	hf3fs_watch_destroy(p->watch);
	hf3fs_ranks_destroy(p->ranks);
	skv_free(p->wishes);
	skv_free(p);
}
