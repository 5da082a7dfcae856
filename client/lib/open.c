/*
 * open.c - makes and releases the handle. Checks the options; owns what they become. Contacts
 * nobody.
 */
#include "client.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <kvb/mem.h>

void kvblock_options_init(struct kvblock_options *o)
{
	*o = (struct kvblock_options){
		.size = sizeof *o,
		.timeout_ms = 10000,
		.rounds = 12,
		.verify = true,
		.checksum = true,
	};
	kvb_hf3fs_init(&o->hf3fs);
}

static int check_url(const char *url, struct kvb_error *err)
{
	if (url && (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) &&
	    strlen(url) < 1024)
		return KVB_OK;
	return kvb_fail(err, KVB_E_INVALID, "urls", "a manager is named as http://host:port");
}

static int check(const struct kvblock_options *o, struct kvb_error *err)
{
	int rc = KVB_OK;

	if (o->n_urls > KVB_MAX_URLS || (o->n_urls && !o->urls))
		return kvb_fail(err, KVB_E_INVALID, "urls", "at most %u managers", KVB_MAX_URLS);
	if (o->n_mounts > KVB_MAX_MOUNTS || (o->n_mounts && !o->mounts))
		return kvb_fail(err, KVB_E_INVALID, "mounts", "at most %u mounts", KVB_MAX_MOUNTS);
	if (o->timeout_ms < 1 || o->rounds < 1)
		return kvb_fail(err, KVB_E_INVALID, o->rounds ? "timeout_ms" : "rounds",
				"at least 1");
	if (o->token && (strpbrk(o->token, "\r\n") || strlen(o->token) > 4096))
		return kvb_fail(err, KVB_E_INVALID, "token", "one line of at most 4096 characters");
	if (o->depth > KVB_ENGINE_DEPTH_MAX)
		return kvb_fail(err, KVB_E_INVALID, "depth", "at most %u", KVB_ENGINE_DEPTH_MAX);
	for (uint32_t i = 0; i < o->n_urls && rc == KVB_OK; i++)
		rc = check_url(o->urls[i], err);
	for (uint32_t i = 0; i < o->n_mounts && rc == KVB_OK; i++)
		if (!o->mounts[i] || !o->mounts[i][0])
			rc = kvb_fail(err, KVB_E_INVALID, "mounts", "an empty path");
	return rc == KVB_OK ? kvb_options_check(o, err) : rc;
}

static int copy_urls(struct kvblock *kv, const struct kvblock_options *o)
{
	static const char *const local = KVB_DEFAULT_URL;
	const char *const *from = o->n_urls ? o->urls : &local;
	uint32_t n = o->n_urls ? o->n_urls : 1;

	kv->urls = kvb_calloc(n, sizeof *kv->urls);
	if (!kv->urls)
		return KVB_E_NOMEM;
	for (; kv->n_urls < n; kv->n_urls++) {
		char *url = kvb_strdup(from[kv->n_urls]);
		size_t len = url ? strlen(url) : 0;

		if (!url)
			return KVB_E_NOMEM;
		while (len > 0 && url[len - 1] == '/')
			url[--len] = '\0';
		kv->urls[kv->n_urls] = url;
	}
	return KVB_OK;
}

static int make_engine(struct kvblock *kv, const struct kvblock_options *o,
		       const struct kvb_engine_ops *engine, struct kvb_error *err)
{
	const struct kvb_engine_options with = { .depth = o->depth ? o->depth : KVB_ENGINE_DEPTH, .hf3fs = &o->hf3fs };
	const char *name = o->engine ? o->engine : getenv("KVBLOCK_ENGINE");

	if (engine)
		return engine->create(&with, &kv->engine, err);
	return kvb_engine_make(name && name[0] ? name : NULL, &with, &kv->engine, &kv->engine_why,
			       err);
}

/* The named mounts, and those of hf3fs_base_path. */
static int make_mounts(struct kvblock *kv, const struct kvblock_options *o, struct kvb_error *err)
{
	const char *dirs[KVB_MAX_MOUNTS];
	char *bases = kvb_strdup(o->hf3fs.base_path ? o->hf3fs.base_path : ""), *rest = bases, *one;
	uint32_t n = o->n_mounts;
	int rc = bases ? KVB_OK : kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");

	for (uint32_t i = 0; i < n; i++)
		dirs[i] = o->mounts[i];
	while (rc == KVB_OK && (one = strsep(&rest, ",")) != NULL) {
		if (n == KVB_MAX_MOUNTS)
			rc = kvb_fail(err, KVB_E_INVALID, "hf3fs_base_path", "at most %u directories", KVB_MAX_MOUNTS);
		else if (one[0])
			dirs[n++] = one;
	}
	if (rc == KVB_OK)
		rc = kvb_mounts_create(dirs, n, &kv->mounts, err);
	kvb_free(bases);
	return rc;
}

static int build(struct kvblock *kv, const struct kvblock_options *o,
		 const struct kvb_engine_ops *engine, struct kvb_error *err)
{
	int rc = copy_urls(kv, o);

	if (rc != KVB_OK)
		return kvb_fail(err, rc, NULL, "out of memory");
	rc = kvb_http_create(o->token, &kv->http, err);
	if (rc == KVB_OK)
		rc = make_engine(kv, o, engine, err);
	if (rc == KVB_OK)
		rc = kvb_memory_create(kv->engine, &kv->memory, err);
	if (rc == KVB_OK)
		rc = make_mounts(kv, o, err);
	if (rc == KVB_OK)
		rc = kvb_files_create(kv->engine, kv->mounts, &kv->files, err);
	return rc;
}

/* NULL: there is none of that name. */
static const struct kvb_v1_codec *codec_of(const struct kvblock_options *o)
{
	return o->codec ? kvb_v1_codec_named(o->codec) : &kvb_v1_pb;
}

/* The options of a caller that may have been built with an older form of the struct. */
static int take_options(const struct kvblock_options *from, struct kvblock_options *o, struct kvb_error *err)
{
	/* The first form of the struct is the smallest that exists; later forms only grow. */
	if (!from || from->size < offsetof(struct kvblock_options, codec))
		return kvb_fail(err, KVB_E_INVALID, "size", "options must come from kvblock_options_init");
	kvblock_options_init(o);
	memcpy(o, from, from->size < sizeof *o ? from->size : sizeof *o);
	return check(o, err);
}

int kvb_client_open(const struct kvblock_options *from, const struct kvb_clock *clock,
		    const struct kvb_engine_ops *engine, struct kvblock **out,
		    struct kvb_error *err)
{
	const struct kvb_v1_codec *codec;
	struct kvblock_options own, *o = &own;
	struct kvblock *kv;
	int rc = take_options(from, o, err);

	if (rc != KVB_OK)
		return rc;
	codec = codec_of(o);
	if (!codec)
		return kvb_fail(err, KVB_E_INVALID, "codec", "json or protobuf");
	kv = kvb_calloc(1, sizeof *kv);
	if (!kv)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	kv->codec = codec;
	kvb_mutex_init(&kv->async_lock);
	kv->clock = clock ? clock : &kvb_clock_system;
	kv->timeout_ms = o->timeout_ms;
	kv->rounds = o->rounds;
	kv->async_threads = o->async_threads;
	kv->async_in_flight = o->async_in_flight;
	kv->verify = o->verify;
	kv->checksum = o->checksum;
	kv->on_call = o->on_call;
	kv->on_call_ctx = o->on_call_ctx;
	kv->on_mismatch = o->on_mismatch;
	kv->on_mismatch_ctx = o->on_mismatch_ctx;
	rc = build(kv, o, engine, err);
	if (rc == KVB_OK)
		*out = kv;
	else
		kvblock_close(kv);
	return rc;
}

int kvblock_open(const struct kvblock_options *o, struct kvblock **out, struct kvblock_error *err)
{
	struct kvb_error e = { 0 };

	return kvb_result_fail(err, &e, kvb_client_open(o, NULL, NULL, out, &e));
}

void kvblock_close(struct kvblock *kv)
{
	if (!kv)
		return;
	atomic_store(&kv->closing, true);
	while (kv->async)
		kvblock_async_close(kv->async);
	kvb_files_destroy(kv->files);
	kvb_mounts_destroy(kv->mounts);
	kvb_memory_destroy(kv->memory);
	if (kv->engine)
		kv->engine->ops->destroy(kv->engine);
	kvb_http_destroy(kv->http);
	for (uint32_t i = 0; i < kv->n_urls; i++)
		kvb_free(kv->urls[i]);
	kvb_free(kv->urls);
	kvb_mutex_destroy(&kv->async_lock);
	kvb_free(kv);
}

const char *kvblock_engine(const struct kvblock *kv, const char **why)
{
	const char *unused;

	if (kv->engine->ops->told)
		return kv->engine->ops->told(kv->engine, why ? why : &unused);
	if (why)
		*why = kv->engine_why.message;
	return kv->engine->ops->name;
}
