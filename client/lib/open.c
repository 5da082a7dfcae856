/*
 * open.c - creates and releases the handle. Checks the options and owns what is made of them.
 * Contacts no manager.
 */
#include "client.h"
#include "rdma.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/mem.h>

static bool is_url(const char *url, size_t n)
{
	bool http = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;

	return n > 0 && n < 1024 && (http || !memmem(url, n, "://", 3));
}

/* Returns the URLs of the options, or of the environment. */
static uint32_t texts_of(const struct slabkv_options *o, const char *const **out)
{
	static const char *const local = SKV_DEFAULT_URL;
	static _Thread_local const char *named;

	*out = o->urls;
	if (o->n_urls)
		return o->n_urls;
	named = getenv("SLABKV_URL");
	*out = named && named[0] ? &named : &local;
	return 1;
}

static int check(const struct slabkv_options *o, struct skv_error *err)
{
	int rc = SKV_OK;

	if (o->n_urls > SKV_MAX_URLS || (o->n_urls && !o->urls))
		return skv_fail(err, SKV_E_INVALID, "urls", "at most %u managers", SKV_MAX_URLS);
	if (o->n_mounts > SKV_MAX_MOUNTS || (o->n_mounts && !o->mounts))
		return skv_fail(err, SKV_E_INVALID, "mounts", "at most %u mounts", SKV_MAX_MOUNTS);
	if (o->connect_timeout_ms < 1)
		return skv_fail(err, SKV_E_INVALID, "connect_timeout_ms", "at least 1");
	if (o->timeout_ms < 1 || o->rounds < 1)
		return skv_fail(err, SKV_E_INVALID, o->rounds ? "timeout_ms" : "rounds",
				"at least 1");
	if (o->token && (strpbrk(o->token, "\r\n") || strlen(o->token) > 4096))
		return skv_fail(err, SKV_E_INVALID, "token", "one line of at most 4096 characters");
	if (o->depth > SKV_ENGINE_DEPTH_MAX)
		return skv_fail(err, SKV_E_INVALID, "depth", "at most %u", SKV_ENGINE_DEPTH_MAX);
	for (uint32_t i = 0; i < o->n_mounts && rc == SKV_OK; i++)
		if (!o->mounts[i] || !o->mounts[i][0])
			rc = skv_fail(err, SKV_E_INVALID, "mounts", "an empty path");
	return rc == SKV_OK ? skv_options_check(o, err) : rc;
}

/* "host:port" is a common shorthand; it means HTTP. */
static char *copy_url(const char *from, size_t len)
{
	const char *scheme = memmem(from, len, "://", 3) ? "" : "http://";
	size_t n = strlen(scheme) + len + 1;
	char *url = skv_malloc(n);

	if (url)
		snprintf(url, n, "%s%.*s", scheme, (int)len, from);
	while (url && (len = strlen(url)) > 0 && url[len - 1] == '/')
		url[len - 1] = '\0';
	return url;
}

static int add_url(struct slabkv *kv, const char *url, size_t n, struct skv_error *err)
{
	if (!is_url(url, n))
		return skv_fail(err, SKV_E_INVALID, "urls",
				"a manager is named as http://host:port, or host:port");
	if (kv->n_urls == SKV_MAX_URLS)
		return skv_fail(err, SKV_E_INVALID, "urls", "at most %u managers", SKV_MAX_URLS);
	kv->urls[kv->n_urls] = copy_url(url, n);
	if (!kv->urls[kv->n_urls])
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	kv->n_urls++;
	return SKV_OK;
}

/* Each text names one manager, or several with commas between them. */
static int add_urls(struct slabkv *kv, const struct slabkv_options *o, struct skv_error *err)
{
	const char *const *texts;
	uint32_t n = texts_of(o, &texts);
	int rc = SKV_OK;

	kv->urls = skv_calloc(SKV_MAX_URLS, sizeof *kv->urls);
	if (!kv->urls)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		const char *text = texts[i] ? texts[i] : "";
		size_t len;

		do {
			len = strcspn(text, ",");
			rc = add_url(kv, text, len, err);
			text += len;
		} while (rc == SKV_OK && *text++);
	}
	return rc;
}

static int make_engine(struct slabkv *kv, const struct slabkv_options *o,
		       const struct skv_engine_ops *engine, struct skv_error *err)
{
	struct skv_hf3fs_options hf3fs;
	const struct skv_engine_options with = { .depth = o->depth ? o->depth : SKV_ENGINE_DEPTH,
						 .hf3fs = &hf3fs };
	const char *name = o->engine ? o->engine : getenv("SLABKV_ENGINE");

	skv_hf3fs_of(o, &hf3fs);
	if (engine)
		return engine->create(&with, &kv->engine, err);
	return skv_engine_make(name && name[0] ? name : NULL, &with, &kv->engine, &kv->engine_why,
			       err);
}

/* Makes the named mounts, and those of hf3fs_base_path. */
static int make_mounts(struct slabkv *kv, const struct slabkv_options *o, struct skv_error *err)
{
	const char *dirs[SKV_MAX_MOUNTS];
	char *bases = skv_strdup(o->hf3fs_base_path ? o->hf3fs_base_path : ""), *rest = bases, *one;
	uint32_t n = o->n_mounts;
	int rc = bases ? SKV_OK : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");

	for (uint32_t i = 0; i < n; i++)
		dirs[i] = o->mounts[i];
	while (rc == SKV_OK && (one = strsep(&rest, ",")) != NULL) {
		if (n == SKV_MAX_MOUNTS)
			rc = skv_fail(err, SKV_E_INVALID, "hf3fs_base_path",
				      "at most %u directories", SKV_MAX_MOUNTS);
		else if (one[0])
			dirs[n++] = one;
	}
	if (rc == SKV_OK)
		rc = skv_mounts_create(dirs, n, &kv->mounts, err);
	skv_free(bases);
	return rc;
}

/* Of several managers the right one is found here: none need forward a call (call.c: but for one
 * that this host cannot reach). */
static int make_owners(struct slabkv *kv, struct skv_error *err)
{
	kv->owners = skv_owners_create();
	if (kv->owners && skv_http_add_line(kv->http, "Slabkv-Route: direct") == SKV_OK)
		return SKV_OK;
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

static int build(struct slabkv *kv, const struct slabkv_options *o,
		 const struct skv_engine_ops *engine, struct skv_error *err)
{
	const struct skv_http_tls tls = { o->ca_file, o->cert_file, o->key_file };
	int rc = add_urls(kv, o, err);

	if (rc != SKV_OK)
		return rc;
	kv->token = o->token ? skv_strdup(o->token) : NULL;
	if (o->token && !kv->token)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	rc = skv_http_create(o->token, &tls, &kv->http, err);
	if (rc == SKV_OK && kv->n_urls > 1)
		rc = make_owners(kv, err);
	if (rc == SKV_OK)
		rc = make_engine(kv, o, engine, err);
	if (rc == SKV_OK)
		rc = skv_rdma_create(&kv->rdma, err);
	if (rc == SKV_OK)
		rc = skv_memory_create(kv->engine, kv->rdma, &kv->memory, err);
	if (rc == SKV_OK)
		rc = make_mounts(kv, o, err);
	if (rc == SKV_OK)
		rc = skv_files_create(kv->engine, kv->mounts, &kv->files, err);
	return rc;
}

/* The options of a caller that may have been built with an older form of the struct. */
static int take_options(const struct slabkv_options *from, struct slabkv_options *o,
			struct skv_error *err)
{
	slabkv_options_init(o, sizeof *o);
	if (!from)
		return SKV_OK;
	/* The first form of the struct is the smallest that exists; later forms only grow. */
	if (!SKV_HAS(from, hf3fs_write_timeout_ms))
		return skv_size_refuse(err, "slabkv_options_init");
	memcpy(o, from, from->size < sizeof *o ? from->size : sizeof *o);
	return check(o, err);
}

static void destroy(struct slabkv *kv)
{
	skv_handle_of_thread(kv);
	skv_files_destroy(kv->files);
	skv_mounts_destroy(kv->mounts);
	skv_memory_destroy(kv->memory);
	skv_rdma_destroy(kv->rdma);
	if (kv->engine)
		kv->engine->ops->destroy(kv->engine);
	skv_http_destroy(kv->http);
	if (kv->token)
		memset(kv->token, 0, strlen(kv->token));
	skv_free(kv->token);
	for (uint32_t i = 0; i < kv->n_urls; i++)
		skv_free(kv->urls[i]);
	skv_free(kv->urls);
	skv_owners_destroy(kv->owners);
	skv_mutex_destroy(&kv->async_lock);
	skv_handle_of_thread(NULL);
	skv_free(kv);
}

int skv_client_open(const struct slabkv_options *from, const struct skv_clock *clock,
		    const struct skv_engine_ops *engine, struct slabkv **out,
		    struct skv_error *err)
{
	struct slabkv_options own, *o = &own;
	struct slabkv *kv;
	int rc = take_options(from, o, err);

	if (rc != SKV_OK)
		return rc;
	kv = skv_calloc(1, sizeof *kv);
	if (!kv)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	kv->pid = getpid();
	skv_mutex_init(&kv->async_lock);
	kv->clock = clock ? clock : &skv_clock_system;
	atomic_init(&kv->users, 1);
	kv->destroy = destroy;
	kv->timeout_ms = o->timeout_ms;
	kv->io_timeout_ms = o->io_timeout_ms;
	kv->rounds = o->rounds;
	kv->connect_ms = o->connect_timeout_ms;
	kv->hedge_ms = o->hedge_ms;
	kv->async_threads = o->async_threads;
	kv->async_in_flight = o->async_in_flight;
	kv->verify = o->verify;
	kv->report = o->report;
	kv->on_call = o->on_call;
	kv->on_call_ctx = o->on_call_ctx;
	kv->on_mismatch = o->on_mismatch;
	kv->on_mismatch_ctx = o->on_mismatch_ctx;
	rc = build(kv, o, engine, err);
	if (rc == SKV_OK)
		*out = kv;
	else
		slabkv_close(kv);
	return rc;
}

int slabkv_open(const struct slabkv_options *o, struct slabkv **out, struct slabkv_error *err)
{
	struct skv_error e = { 0 };

	return skv_result_fail(err, &e, skv_client_open(o, NULL, NULL, out, &e));
}

void slabkv_close(struct slabkv *kv)
{
	if (!kv || skv_is_foreign(kv->pid, NULL))
		return;
	atomic_store(&kv->closing, true);
	while (kv->async)
		slabkv_async_close(kv->async);
	skv_handle_drop(kv);
}

const char *slabkv_engine(const struct slabkv *kv, const char **why)
{
	const char *unused;

	if (kv->engine->ops->told)
		return kv->engine->ops->told(kv->engine, why ? why : &unused);
	if (why)
		*why = kv->engine_why.message;
	return kv->engine->ops->name;
}
