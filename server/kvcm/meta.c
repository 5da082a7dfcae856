/*
 * meta.c - helpers of the meta operations: keys, the instance, locations. Stateless.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

#include <skv/key_set.h>
#include <skv/superblock.h>

int kvcm_take_instance(struct kvcm_request *k, const char *instance,
		       const struct skv_instance_spec **out)
{
	struct skv_instance_view *v;
	int rc = skv_cluster_instance(kvcm_cluster(k), k->c->caller.tenant, instance, &k->c->arena,
				      &v, &k->c->err);

	if (rc == SKV_OK)
		*out = &v[0].spec;
	return rc;
}

int kvcm_take_info(struct kvcm_request *k, const char *instance, const KvcmMeta__InstanceInfo **out)
{
	const struct skv_instance_spec *spec;
	int rc = kvcm_take_instance(k, instance, &spec);

	if (rc != SKV_OK)
		return rc;
	*out = kvcm_instance_message(spec, &k->c->arena);
	return *out ? SKV_OK : kvcm_nomem(k);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Keys of whole blocks; a partial last block has none. */
static int from_tokens(struct kvcm_request *k, const char *instance, const int64_t *tokens,
		       size_t n, const int64_t **keys, size_t *n_keys)
{
	const struct skv_instance_spec *spec;
	int rc = kvcm_take_instance(k, instance, &spec);
	int64_t *made;

	if (rc != SKV_OK)
		return rc;
	/* the number of tokens per block is unknown */
	if (spec->block_tokens == 0)
		return kvcm_missing(k, "block_keys");
	*n_keys = n / spec->block_tokens;
	made = skv_arena_calloc(&k->c->arena, *n_keys + 1, sizeof *made);
	if (!made)
		return kvcm_nomem(k);
	kvcm_token_keys(tokens, n, spec->block_tokens, made);
	*keys = made;
	return SKV_OK;
}

int kvcm_take_keys(struct kvcm_request *k, const char *instance, const int64_t *block_keys,
		   size_t n_block_keys, const int64_t *token_ids, size_t n_token_ids, uint32_t max,
		   struct kvcm_keys *out)
{
	/* the field that the client has sent */
	const char *field = n_block_keys > 0 ? "block_keys" : "token_ids";
	const int64_t *keys = block_keys;
	size_t n = n_block_keys;
	int rc = SKV_OK;

	if (n == 0 && n_token_ids == 0)
		return kvcm_missing(k, "block_keys");
	if (n == 0)
		rc = from_tokens(k, instance, token_ids, n_token_ids, &keys, &n);
	if (rc != SKV_OK)
		return rc;
	if (n > max)
		return skv_fail(&k->c->err, SKV_E_TOO_LARGE, field,
				"%s: %zu blocks, %u at most in a request", field, n, max);
	out->v = skv_arena_alloc(&k->c->arena, (n + 1) * sizeof *out->v);
	if (!out->v)
		return kvcm_nomem(k);
	for (size_t i = 0; i < n; i++)
		out->v[i] = kvcm_core_key(keys[i]);
	assert(n <= KVCM_MAX_KEYS);
	out->n = (uint32_t)n;
	return SKV_OK;
}

int kvcm_take_unmasked(struct kvcm_request *k, const ProtobufCMessage *block_mask,
		       struct kvcm_keys *keys, uint32_t *index)
{
	struct kvcm_mask mask = kvcm_mask_of(block_mask);
	uint32_t n = 0;

	if (kvcm_mask_check(&mask, keys->n, false, &k->c->err) != SKV_OK)
		return kvcm_missing(k, "block_mask");
	for (uint32_t i = 0; i < keys->n; i++) {
		if (kvcm_mask_skips(&mask, i))
			continue;
		assert(n <= i); /* taken keys move to the front */
		if (index)
			index[n] = i;
		keys->v[n++] = keys->v[i];
	}
	keys->n = n;
	return SKV_OK;
}

int kvcm_keys_once(struct kvcm_request *k, struct kvcm_keys *keys, uint32_t *once, bool *again)
{
	uint32_t n = 0;
	uint32_t *cells = skv_arena_calloc(&k->c->arena, skv_key_set_cells(keys->n), sizeof *cells);
	struct skv_key_set set;

	if (!cells)
		return kvcm_nomem(k);
	skv_key_set_init(&set, cells, keys->n);
	for (uint32_t i = 0; i < keys->n; i++) {
		uint32_t *at = skv_key_set_find(&set, keys->v, keys->v[i]);

		if (again)
			again[i] = *at != 0;
		if (!*at) {
			keys->v[n++] = keys->v[i];
			*at = n;
		}
		if (once)
			once[i] = *at - 1;
	}
	assert(n <= keys->n);
	keys->n = n;
	return SKV_OK;
}

int kvcm_check_places(struct kvcm_request *k, const char *instance, uint32_t n, uint32_t more,
		      bool tokens)
{
	const char *field = tokens ? "token_ids" : "block_keys";
	const struct skv_instance_spec *spec;
	int rc;

	if (n <= SKV_MAX_KEYS)
		return SKV_OK;
	rc = kvcm_take_instance(k, instance, &spec);
	if (rc == SKV_OK && (uint64_t)n * (spec->n_specs + more) > KVCM_MAX_PLACES)
		return skv_fail(&k->c->err, SKV_E_TOO_LARGE, field,
				"%s: %u blocks of %u specs, %u at most in an answer", field, n,
				spec->n_specs, KVCM_MAX_PLACES / (spec->n_specs + more));
	return rc;
}

void kvcm_append_places(struct skv_files *files, struct skv_location *to,
			const struct skv_files *more, const struct skv_location *loc, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		to[i] = loc[i];
		to[i].file += files->n;
	}
	if (more->n)
		memcpy(files->v + files->n, more->v, more->n * sizeof *more->v);
	files->n += more->n;
}

/* ---- states ---------------------------------------------------------------------------------- */

static bool room_for_states(struct kvcm_request *k, const struct skv_states_req *req,
			    struct skv_states_res *all)
{
	const size_t n = (size_t)req->n_keys * all->n_specs;
	struct skv_arena *a = &k->c->arena;

	all->n_keys = 0;
	all->state = skv_arena_alloc(a, n + 1);
	all->loc = skv_arena_alloc(a, (n + 1) * sizeof *all->loc);
	all->created_ms = skv_arena_alloc(a, (req->n_keys + 1u) * sizeof *all->created_ms);
	if (req->want_parents)
		all->parent = skv_arena_alloc(a, (req->n_keys + 1u) * sizeof *all->parent);
	all->files = (struct skv_files){ 0 };
	return all->state && all->loc && all->created_ms && (all->parent || !req->want_parents);
}

/* Appends a part's states. The part's files get numbers after the existing ones. */
static bool append_states(struct kvcm_request *k, struct skv_states_res *all,
			  const struct skv_states_res *part)
{
	const size_t at = (size_t)all->n_keys * all->n_specs,
		     n = (size_t)part->n_keys * all->n_specs;
	struct skv_file_ref *files =
		skv_arena_alloc(&k->c->arena, (all->files.n + part->files.n + 1u) * sizeof *files);

	assert(part->n_specs == all->n_specs);
	if (!files)
		return false;
	if (all->files.n)
		memcpy(files, all->files.v, all->files.n * sizeof *files);
	all->files.v = files;
	kvcm_append_places(&all->files, all->loc + at, &part->files, part->loc, n);
	memcpy(all->state + at, part->state, n);
	memcpy(all->created_ms + all->n_keys, part->created_ms,
	       part->n_keys * sizeof *all->created_ms);
	if (part->parent)
		memcpy(all->parent + all->n_keys, part->parent, part->n_keys * sizeof *all->parent);
	all->n_keys += part->n_keys;
	return true;
}

int kvcm_states(struct kvcm_request *k, const struct skv_states_req *req,
		struct skv_states_res *res)
{
	struct skv_states_req part_req = *req;
	struct skv_states_res part;
	int rc = SKV_OK;

	if (req->n_keys <= SKV_MAX_KEYS)
		return skv_core_states(kvcm_core(k), req, res, &k->c->arena, &k->c->err);
	for (uint32_t at = 0; rc == SKV_OK && at < req->n_keys; at += part_req.n_keys) {
		part_req.keys = req->keys + at;
		part_req.n_keys = skv_portion(req->n_keys - at);
		rc = skv_core_states(kvcm_core(k), &part_req, &part, &k->c->arena, &k->c->err);
		if (rc == SKV_OK && at == 0) {
			*res = part;
			rc = room_for_states(k, req, res) ? SKV_OK : kvcm_nomem(k);
		}
		assert(rc != SKV_OK || part.n_keys == part_req.n_keys);
		if (rc == SKV_OK && part.n_specs != res->n_specs)
			rc = skv_fail(&k->c->err, SKV_E_CONFLICT, NULL,
				      "the instance was registered again meanwhile");
		if (rc == SKV_OK && !append_states(k, res, &part))
			rc = kvcm_nomem(k);
	}
	return rc;
}

/* ---- locations ------------------------------------------------------------------------------- */

static int without_slashes(const char *root)
{
	size_t n = strlen(root);

	while (n > 0 && root[n - 1] == '/')
		n--;
	return (int)n;
}

const char *kvcm_root_to_read(struct kvcm_request *k, const struct skv_file_ref *file)
{
	const char *root = file->client_root ? file->client_root : "";

	return strcmp(file->type, "file") == 0
		       ? kvcm_text(k, "%.*s/" SKV_STORAGE_LINK, without_slashes(root), root)
		       : root;
}

const char *const *kvcm_roots(struct kvcm_request *k, const struct skv_files *files, bool to_read)
{
	const char **roots = skv_arena_alloc(&k->c->arena, (files->n + 1) * sizeof *roots);

	for (uint32_t i = 0; roots && i < files->n; i++) {
		const char *root = files->v[i].client_root ? files->v[i].client_root : "";

		roots[i] = to_read ? kvcm_root_to_read(k, &files->v[i]) : root;
	}
	return roots;
}

void kvcm_splice(struct kvcm_request *k, unsigned at, struct kvcm_locations *l)
{
	assert(at < sizeof k->splice / sizeof k->splice[0] && l->field != 0);
	k->splice[at] = (struct skv_proto_splice){ l->field, kvcm_locations_json,
						   kvcm_locations_binary, l, NULL };
}
