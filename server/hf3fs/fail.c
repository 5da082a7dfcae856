/*
 * fail.c - answers of failed calls: the one place that decides them.
 *
 * SGLang's clients disable their cache on any error, so a well-formed call never gets one: if pages
 * are short the answer is as for an empty space, also if a call has waited in vain for a manager or
 * the store to be ready. In upstream mode, every input for which upstream's server raises is 500.
 */
#include "hf3fs.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>

#define MAKE_MS 10000u    /* how long an initialize waits */

int hf3fs_nomem(struct hf3fs_request *k)
{
	return skv_fail(&k->c->err, SKV_E_NOMEM, NULL, "out of memory");
}

int hf3fs_refuse(struct hf3fs_request *k, unsigned http, bool raises, const char *fmt, ...)
{
	char text[SKV_MESSAGE_MAX];
	va_list ap;

	assert(http >= 400 && http < 500);
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	k->detail = skv_arena_strndup(&k->c->arena, text, strlen(text));
	if (!k->detail)
		return hf3fs_nomem(k);
	k->c->http = raises && hf3fs_strict(k) ? 500 : http;
	return skv_fail(&k->c->err, SKV_E_INVALID, NULL, "%s", text);
}

/* ---- calls that wait ------------------------------------------------------------------------- */

/* A client that can be sent to the owner has nothing to wait for. */
uint32_t hf3fs_patience(struct skv_request *c)
{
	const struct hf3fs_request *k = c->state;
	const struct pages *p = c->api->ctx;
	char url[SKV_URL_MAX];

	if (!k->op) /* an administrator's */
		return c->s->o.hold_ms;
	if (skv_request_owner_url(c, url) == SKV_OK)
		return 0;
	if (k->op->flags & HF3FS_MAKES)
		return MAKE_MS;
	return skv_pause_is_hopeless(c) ? 0 : p->o.retry_ms;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static unsigned detail(struct skv_request *c, unsigned http, const char *text)
{
	c->type = "application/json";
	skv_put_bytes(&c->out, "{\"detail\":", 10);
	skv_jout_text(&c->out, text);
	skv_put_u8(&c->out, '}');
	return http;
}

/* Like Starlette when a handler raises; uvicorn then closes the connection. */
unsigned hf3fs_raise(struct hf3fs_request *k)
{
	struct skv_request *c = k->c;

	skv_buf_clear(&c->out);
	c->type = "text/plain; charset=utf-8";
	c->fixed = "Internal Server Error";
	c->close = true;
	c->failed = true;
	return 500;
}

static unsigned later(struct skv_request *c)
{
	c->retry_after = 1;
	return detail(c, 503, c->err.message);
}

/* Redirects to the owner, same path, if the client is to go there by itself. False: it is not. */
static bool elsewhere(struct skv_request *c, unsigned *http)
{
	char url[SKV_URL_MAX], *to;
	size_t n;
	int rc = skv_request_owner_url(c, url);

	if (rc == SKV_E_NOT_READY)
		*http = later(c);
	if (rc != SKV_OK)
		return rc == SKV_E_NOT_READY;
	n = strlen(url) + strlen(c->path) + 1;
	to = skv_arena_alloc(&c->arena, n);
	if (!to)
		return false;
	snprintf(to, n, "%s%s", url, c->path);
	c->location = to;
	*http = 307;
	return true;
}

/* The operation was not run, or does not exist. */
static unsigned refused_outside(struct skv_request *c)
{
	switch (c->status) {
	case SKV_E_NOT_FOUND:
		return detail(c, 404, "Not Found");
	case SKV_E_METHOD:
		return detail(c, 405, "Method Not Allowed");
	case SKV_E_NOT_READY:
	case SKV_E_TOO_MANY: /* clients of this API retry a 503, and disable their cache on a 429 */
		return later(c);
	default:
		return detail(c, c->http ? c->http : (unsigned)skv_status_http(c->status),
			      c->err.message);
	}
}

/* ---- nothing --------------------------------------------------------------------------------- */

static unsigned nothing(struct hf3fs_request *k)
{
	if (k->op->flags & HF3FS_MAKES)
		hf3fs_wish_add(k);
	hf3fs_untell(k);
	hf3fs_answer(k);
	return hf3fs_has_answer(k->op) ? 200 : 204;
}

/* Answer for: no page, and none available. */
static unsigned full(struct hf3fs_request *k)
{
	hf3fs_count(k, HF3FS_refused_full, k->part.total);
	return hf3fs_strict(k) && !(k->op->flags & HF3FS_VLLM) ? hf3fs_raise(k) : nothing(k);
}

/* As vLLM's handlers answer: keys of unknown ranks are not the client's fault. */
static unsigned unknown_rank(struct hf3fs_request *k)
{
	bool confirm = k->op->undone == HF3FS_dropped_confirm;
	char text[128];

	if (!hf3fs_strict(k) || !(k->op->flags & HF3FS_RANKED) ||
	    (confirm && k->u.confirm.n_released == 0))
		return nothing(k);
	snprintf(text, sizeof text, confirm ? "%s: %lld" : "%s: Rank %lld not initialized",
		 k->op->trouble, (long long)k->space.rank);
	return detail(k->c, 500, text);
}

static unsigned unknown_space(struct hf3fs_request *k)
{
	char text[SKV_MESSAGE_MAX];

	hf3fs_count(k, HF3FS_unknown_space, 1);
	if (k->op->flags & HF3FS_VLLM)
		return unknown_rank(k);
	if (!hf3fs_strict(k))
		return nothing(k);
	snprintf(text, sizeof text,
		 "Rank %lld namespace '%.*s' not initialized. Please call /%lld/initialize first.",
		 (long long)k->space.rank, (int)(k->space.n_ns < 200 ? k->space.n_ns : 200),
		 k->space.ns, (long long)k->space.rank);
	return detail(k->c, 404, text);
}

/* As pydantic words it. */
static unsigned refused_rank(struct hf3fs_request *k)
{
	struct skv_buf *out = &k->c->out;

	k->c->type = "application/json";
	skv_buf_printf(
		out,
		"{\"detail\":[{\"type\":\"int_parsing\",\"loc\":[\"path\",\"rank\"],\"msg\":"
		"\"Input should be a valid integer, unable to parse string as an "
		"integer\",\"input\":");
	skv_jout_text(out, k->bad_rank);
	skv_buf_printf(out, "}]}");
	return 422;
}

static unsigned malformed(struct hf3fs_request *k)
{
	char text[SKV_MESSAGE_MAX + 64];

	assert(k->c->http >= 400 && k->c->http <= 500);
	hf3fs_count(k, HF3FS_malformed, 1);
	if (k->c->http == 500 && k->caught) {
		snprintf(text, sizeof text, "%s: %s", k->op->trouble, k->detail);
		return detail(k->c, 500, text);
	}
	if (k->c->http == 500)
		return hf3fs_raise(k);
	return hf3fs_strict(k) && k->bad_rank ? refused_rank(k)
					      : detail(k->c, k->c->http, k->detail);
}

static unsigned answer(struct skv_request *c)
{
	struct hf3fs_request *k = c->state;
	unsigned http;

	if (c->route && !c->route->own)
		return hf3fs_admin_fail(c);
	if (!k || !k->op || !c->dispatched)
		return refused_outside(c);
	if (k->detail)
		return malformed(k);
	switch (c->status) {
	case SKV_E_FORBIDDEN:
		return detail(c, 403, c->err.message);
	case SKV_E_NOT_FOUND:
		return unknown_space(k);
	case SKV_E_NO_SPACE:
	case SKV_E_QUOTA:
		return full(k);
	case SKV_E_NOMEM: /* even the number of keys may be unknown */
		return later(c);
	case SKV_E_NOT_READY:
	case SKV_E_NOT_OWNER:
	case SKV_E_FENCED:
	case SKV_E_UNKNOWN_OUTCOME:
		if (elsewhere(c, &http))
			return http;
		if (skv_cluster_state_get(c->s->cluster) == SKV_CORE_STOPPED ||
		    skv_service_ends(c->s) ||
		    (c->wait.since_ms ? !skv_pause_was_vain(c) : hf3fs_patience(c) > 0))
			return later(c);
		skv_pause_give_up(c);
		break;
	case SKV_E_STORE_IO:
	case SKV_E_STORE_FULL:
		skv_pause_give_up(c);
		break;
	default:
		break;
	}
	hf3fs_count(k, k->op->undone, 1);
	return nothing(k);
}

unsigned hf3fs_fail(struct skv_request *c)
{
	unsigned http;

	assert(c->status != SKV_OK && c->status != SKV_PENDING);
	http = answer(c);
	if (!c->out.failed)
		return http;
	skv_buf_clear(&c->out);
	c->type = "application/json";
	c->fixed = "{\"detail\":\"out of memory\"}";
	c->retry_after = 1;
	return 503;
}
