/*
 * locate.c - kvblock_lookup and kvblock_start: locations for programs that move the bytes
 * themselves. Turns the inner answers into public results. No state; any thread.
 */
#include "client.h"

#include <string.h>

/* Borrowed by a public result, copied into its arena. */
struct places {
	struct kvblock_location *loc;
	struct kvblock_file *files;
};

static int copy_places(struct kvb_arena *a, const struct kvb_location *loc, size_t n_loc,
		       const struct kvb_files *files, struct places *out)
{
	out->loc = kvb_arena_calloc(a, n_loc, sizeof *out->loc);
	out->files = kvb_arena_calloc(a, files->n, sizeof *out->files);
	if (!out->loc || !out->files)
		return KVB_E_NOMEM;
	for (size_t i = 0; i < n_loc; i++)
		out->loc[i] = (struct kvblock_location){ .file = loc[i].file,
							 .has_checksum = loc[i].has_checksum,
							 .offset = loc[i].offset,
							 .length = loc[i].length,
							 .generation = loc[i].generation,
							 .checksum = loc[i].checksum };
	for (uint32_t i = 0; i < files->n; i++) {
		out->files[i].storage = files->v[i].storage;
		out->files[i].type = files->v[i].type;
		memcpy(out->files[i].uuid, files->v[i].uuid, sizeof out->files[i].uuid);
		memcpy(out->files[i].path, files->v[i].path, sizeof out->files[i].path);
	}
	return KVB_OK;
}

static int lookup(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		  const struct kvblock_lookup_options *o, struct kvblock_locations *out,
		  struct kvb_error *err)
{
	struct kvb_arena *a = kvb_result_arena(out);
	struct kvb_lookup_answer answer;
	const struct kvb_lookup_res *res = &answer.res;
	struct places places;
	int rc = kvb_query_lookup(kv, instance, keys, o, a, &answer, err);

	if (rc == KVB_OK)
		rc = copy_places(a, res->loc, (size_t)res->n_keys * res->n_specs, &res->files,
				 &places);
	if (rc != KVB_OK)
		return rc;
	*out = (struct kvblock_locations){
		.n_keys = res->n_keys,
		.matched = res->matched,
		.n_specs = res->n_specs,
		.specs = res->specs,
		.hit = res->hit,
		.loc = places.loc,
		.n_files = res->files.n,
		.files = places.files,
		.lease_ms = res->lease_ms,
		.valid_until_ms = answer.valid_until_ms,
	};
	return KVB_OK;
}

int kvblock_lookup(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		   const struct kvblock_lookup_options *o, const struct kvblock_locations **out,
		   struct kvblock_error *err)
{
	struct kvblock_locations *r = kvb_result_new(sizeof *r);
	struct kvb_error e = { 0 };
	int rc = r ? lookup(kv, instance, keys, o, r, &e) : KVB_E_NOMEM;

	if (rc == KVB_OK)
		*out = r;
	else
		kvblock_free(r);
	return kvb_result_fail(err, &e, rc);
}

static int start(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		 const struct kvblock_put_options *o, const char *request_id,
		 struct kvblock_session *out, struct kvb_error *err)
{
	struct kvb_arena *a = kvb_result_arena(out);
	struct kvb_start_answer answer;
	const struct kvb_start_res *res = &answer.res;
	struct places places;
	int rc = kvb_session_start(kv, instance, keys, o, request_id, a, &answer, err);

	if (rc != KVB_OK)
		return rc;
	rc = copy_places(a, res->loc, (size_t)res->n_keys * res->n_specs, &res->files, &places);
	if (rc != KVB_OK) {
		/* The caller never learns of the session: end it. Nothing has been written. */
		if (res->session[0])
			(void)kvb_session_abort(kv, res->session, true, NULL);
		return kvb_fail(err, rc, NULL, "out of memory");
	}
	*out = (struct kvblock_session){
		.n_keys = res->n_keys,
		.n_specs = res->n_specs,
		.specs = res->specs,
		.outcome = res->outcome,
		.loc = places.loc,
		.n_write = res->n_write,
		.n_files = res->files.n,
		.files = places.files,
		.deadline_ms = res->deadline_ms,
		.submit_until_ms = answer.submit_until_ms,
	};
	memcpy(out->id, res->session, sizeof out->id);
	return KVB_OK;
}

int kvblock_start(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		  const struct kvblock_put_options *o, const char *request_id,
		  const struct kvblock_session **out, struct kvblock_error *err)
{
	struct kvblock_session *r = kvb_result_new(sizeof *r);
	struct kvb_error e = { 0 };
	int rc = r ? start(kv, instance, keys, o, request_id, r, &e) : KVB_E_NOMEM;

	if (rc == KVB_OK)
		*out = r;
	else
		kvblock_free(r);
	return kvb_result_fail(err, &e, rc);
}
