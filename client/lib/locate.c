/*
 * locate.c - slabkv_lookup and slabkv_start: locations for programs that move the bytes themselves.
 * Converts internal answers to public results. Stateless; any thread.
 */
#include "client.h"

#include <string.h>

/* Borrowed by a public result, copied into its arena. */
struct locations {
	struct slabkv_location *loc;
	struct slabkv_file *files;
};

static int copy_locations(struct skv_arena *a, const struct skv_location *loc, size_t n_loc,
		       const struct skv_files *files, struct locations *out)
{
	out->loc = skv_arena_calloc(a, n_loc, sizeof *out->loc);
	out->files = skv_arena_calloc(a, files->n, sizeof *out->files);
	SKV_CHECK(n_loc <= (size_t)SKV_MAX_KEYS * SKV_MAX_SPECS);
	if (!out->loc || !out->files)
		return SKV_E_NOMEM;
	for (size_t i = 0; i < n_loc; i++)
		out->loc[i] = (struct slabkv_location){ .file = loc[i].file,
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
	return SKV_OK;
}

static int lookup(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		  const struct slabkv_lookup_options *o, struct slabkv_locations *out,
		  struct skv_error *err)
{
	struct skv_arena *a = skv_result_arena(out);
	struct skv_lookup_answer answer;
	const struct skv_lookup_res *res = &answer.res;
	struct locations locations;
	int rc = skv_query_lookup(kv, instance, keys, o, a, &answer, err);

	if (rc == SKV_OK)
		rc = copy_locations(a, res->loc, (size_t)res->n_keys * res->n_specs, &res->files,
				 &locations);
	if (rc != SKV_OK)
		return rc;
	*out = (struct slabkv_locations){
		.n_keys = res->n_keys,
		.matched = res->matched,
		.n_specs = res->n_specs,
		.specs = res->specs,
		.hit = res->hit,
		.loc = locations.loc,
		.loc_size = sizeof *locations.loc,
		.n_files = res->files.n,
		.files = locations.files,
		.file_size = sizeof *locations.files,
		.lease_ms = res->lease_ms,
		.valid_until_ms = answer.valid_until_ms,
	};
	return SKV_OK;
}

int slabkv_lookup(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		   const struct slabkv_lookup_options *o, const struct slabkv_locations **out,
		   struct slabkv_error *err)
{
	struct slabkv_locations *r = skv_result_new(sizeof *r);
	struct skv_error e = { 0 };
	int rc = r ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = lookup(kv, instance, keys, o, r, &e);
	if (rc == SKV_OK && skv_is_broken(kv, &e))
		rc = SKV_E_INTERNAL;

	if (rc == SKV_OK)
		*out = r;
	else
		slabkv_free(r);
	return skv_result_fail(err, &e, rc);
}

static int start(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		 const struct slabkv_put_options *o, const char *request_id,
		 struct slabkv_session *out, struct skv_error *err)
{
	struct skv_arena *a = skv_result_arena(out);
	struct skv_start_answer answer;
	const struct skv_start_res *res = &answer.res;
	struct locations locations;
	const struct skv_session_how how = { .request_id = request_id };
	int rc = skv_session_start(kv, instance, keys, o, &how, a, &answer, err);

	if (rc != SKV_OK)
		return rc;
	rc = copy_locations(a, res->loc, (size_t)res->n_keys * res->n_specs, &res->files,
			    &locations);
	if (rc != SKV_OK) {
		/* The caller never learns of the session: end it. Nothing has been written. */
		if (res->session[0])
			(void)skv_session_abort(kv, res->session, true, NULL);
		return skv_fail(err, rc, NULL, "out of memory");
	}
	*out = (struct slabkv_session){
		.n_keys = res->n_keys,
		.n_specs = res->n_specs,
		.specs = res->specs,
		.outcome = res->outcome,
		.loc = locations.loc,
		.loc_size = sizeof *locations.loc,
		.n_write = res->n_write,
		.n_files = res->files.n,
		.files = locations.files,
		.file_size = sizeof *locations.files,
		.deadline_ms = res->deadline_ms,
		.submit_until_ms = answer.submit_until_ms,
	};
	memcpy(out->id, res->session, sizeof out->id);
	return SKV_OK;
}

int slabkv_start(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		  const struct slabkv_put_options *o, const char *request_id,
		  const struct slabkv_session **out, struct slabkv_error *err)
{
	struct slabkv_session *r = skv_result_new(sizeof *r);
	struct skv_error e = { 0 };
	int rc = r ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = start(kv, instance, keys, o, request_id, r, &e);
	if (rc == SKV_OK)
		*out = r;
	else
		slabkv_free(r);
	return skv_result_fail(err, &e, rc);
}
