/* standin.c - the operations of the stand-in (standin.h). Everything runs under its one mutex. */
#include "standin_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/v1_json.h>

static const struct skv_secret secret = { "standin secret!" };

static struct standin_instance *instance_of(struct standin *s, const char *id)
{
	for (uint32_t i = 0; i < s->n_instances; i++)
		if (strcmp(s->instances[i].id, id) == 0)
			return &s->instances[i];
	return NULL;
}

static struct standin_block *block_of(struct standin *s, const char *instance, struct skv_key key)
{
	for (uint32_t i = 0; i < s->n_blocks; i++)
		if (s->blocks[i].state != STANDIN_FREE && skv_key_equal(s->blocks[i].key, key) &&
		    strcmp(s->blocks[i].instance, instance) == 0)
			return &s->blocks[i];
	return NULL;
}

const struct skv_location *standin_find(struct standin *s, const char *instance, uint64_t key)
{
	struct standin_block *b = block_of(s, instance, (struct skv_key){ 0, key });

	return b && b->state == STANDIN_COMMITTED ? b->loc : NULL;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void files(struct standin *s, struct exchange *x, struct skv_files *out)
{
	out->n = STANDIN_FILES;
	out->v = skv_arena_calloc(&x->arena, out->n, sizeof *out->v);
	for (uint32_t i = 0; i < out->n; i++) {
		out->v[i].storage = i > 0 && s->two_storages ? "second" : "default";
		out->v[i].type = "file";
		skv_uuid_to_text(s->uuid, out->v[i].uuid);
		skv_slab_path(i, out->v[i].path);
		if (s->bad_path)
			snprintf(out->v[i].path, sizeof out->v[i].path, "%s", s->bad_path);
	}
}

static const char **spec_names(const struct standin *s, struct exchange *x,
			       const struct standin_instance *in)
{
	const char **names = skv_arena_calloc(&x->arena, in->n_specs, sizeof *names);

	for (uint32_t i = 0; i < in->n_specs; i++)
		names[i] = i == 0 && s->bad_spec ? s->bad_spec : in->names[i];
	return names;
}

static int match(struct standin *s, struct exchange *x, const struct skv_v1_in *in)
{
	struct skv_match_req req;
	struct skv_match_res res = { 0 };
	int rc = x->codec->read_match_req(in, (char *)x->in.data, x->in.len, &req, &x->err);

	if (rc != SKV_OK)
		return rc;
	res.n_instances = req.n_instances;
	res.instances = req.instances;
	res.matched = skv_arena_calloc(&x->arena, req.n_instances, sizeof *res.matched);
	for (uint32_t i = 0; i < req.n_instances; i++) {
		if (!instance_of(s, req.instances[i]))
			return skv_fail(&x->err, SKV_E_NOT_FOUND, "instances[0]",
					"no such instance");
		for (uint32_t k = 0; k < req.n_keys; k++) {
			struct standin_block *b = block_of(s, req.instances[i], req.keys[k]);

			if (!b || b->state != STANDIN_COMMITTED)
				break;
			res.matched[i]++;
		}
	}
	x->codec->write_match_res(&x->out, &res);
	return SKV_OK;
}

static int lookup(struct standin *s, struct exchange *x, const struct skv_v1_in *in, const char *id)
{
	struct standin_instance *inst = instance_of(s, id);
	struct skv_lookup_req req;
	struct skv_lookup_res res = { 0 };
	int rc = x->codec->read_lookup_req(in, (char *)x->in.data, x->in.len, &req, &x->err);

	s->lookups++;
	if (rc != SKV_OK)
		return rc;
	if (!inst)
		return skv_fail(&x->err, SKV_E_NOT_FOUND, "instance", "no such instance");
	res.n_keys = req.n_keys;
	res.n_specs = inst->n_specs;
	res.specs = spec_names(s, x, inst);
	res.hit = skv_arena_calloc(&x->arena, req.n_keys, sizeof *res.hit);
	res.loc = skv_arena_calloc(&x->arena, (size_t)req.n_keys * res.n_specs, sizeof *res.loc);
	res.lease_ms = req.lease_ms < s->lease_ms ? req.lease_ms : s->lease_ms;
	files(s, x, &res.files);
	for (uint32_t k = 0; k < req.n_keys; k++) {
		struct standin_block *b = block_of(s, id, req.keys[k]);

		if (!b || b->state != STANDIN_COMMITTED) {
			if (req.mode == SKV_LOOKUP_PREFIX)
				break;
			continue;
		}
		res.hit[k] = true;
		res.matched++;
		for (uint32_t i = 0; i < res.n_specs; i++) {
			struct skv_location *loc = &res.loc[(size_t)k * res.n_specs + i];

			*loc = b->loc[i];
			if (s->bad_offset)
				loc->offset = s->bad_offset;
		}
	}
	x->codec->write_lookup_res(&x->out, &res);
	return SKV_OK;
}

static void place(struct standin *s, struct standin_block *b, const struct standin_instance *inst)
{
	static uint64_t generation = 1;

	for (uint32_t i = 0; i < inst->n_specs; i++) {
		uint64_t size = inst->specs[i].size;

		if (s->next_offset + size > s->file_length - STANDIN_TRAILER) {
			s->next_file++;
			s->next_offset = STANDIN_HEADER;
		}
		assert(s->next_file < STANDIN_FILES);
		b->loc[i] = (struct skv_location){ .file = s->next_file, .offset = s->next_offset,
						   .length = size, .generation = generation++ };
		if (s->bad_offset)
			b->loc[i].offset = s->bad_offset;
		s->next_offset += size + s->gap;
	}
}

static uint32_t open_session(struct standin *s, const char *request_id)
{
	uint32_t n = s->n_sessions++;
	struct standin_session *session = &s->sessions[n];

	assert(n < STANDIN_SESSIONS);
	session->open = true;
	snprintf(session->id, sizeof session->id, "%032x", n + 1);
	snprintf(session->request_id, sizeof session->request_id, "%s", request_id);
	return n;
}

/* The session of a repeated request id, else a new one. */
static uint32_t session_for(struct standin *s, const char *request_id, bool *repeated)
{
	for (uint32_t i = 0; i < s->n_sessions; i++) {
		if (request_id[0] && strcmp(s->sessions[i].request_id, request_id) == 0) {
			*repeated = true;
			return i;
		}
	}
	*repeated = false;
	return open_session(s, request_id);
}

static int start(struct standin *s, struct exchange *x, const struct skv_v1_in *in, const char *id)
{
	struct standin_instance *inst = instance_of(s, id);
	struct skv_start_req req;
	struct skv_start_res res = { .state = SKV_SESSION_OPEN, .deadline_ms = s->deadline_ms };
	bool repeated;
	uint32_t session;
	int rc = x->codec->read_start_req(in, (char *)x->in.data, x->in.len, &req, &x->err);

	s->starts++;
	if (rc != SKV_OK)
		return rc;
	if (!inst)
		return skv_fail(&x->err, SKV_E_NOT_FOUND, "instance", "no such instance");
	if (req.n_avoid && (!s->two_storages || req.n_avoid > 1))
		return skv_fail(&x->err, SKV_E_UNAVAILABLE, NULL, "no other storage");
	if (s->two_storages)
		s->next_file = req.n_avoid;
	session = session_for(s, req.request_id, &repeated);
	if (repeated && !s->sessions[session].open)
		res.state = SKV_SESSION_FINISHED;
	res.n_keys = req.n_keys;
	res.n_specs = inst->n_specs;
	res.specs = spec_names(s, x, inst);
	res.outcome = skv_arena_calloc(&x->arena, req.n_keys, 1);
	res.loc = skv_arena_calloc(&x->arena, (size_t)req.n_keys * res.n_specs, sizeof *res.loc);
	files(s, x, &res.files);
	for (uint32_t k = 0; k < req.n_keys; k++) {
		struct standin_block *b = block_of(s, id, req.keys[k]);

		if (!b) {
			assert(s->n_blocks < STANDIN_BLOCKS);
			b = &s->blocks[s->n_blocks++];
			*b = (struct standin_block){ .state = STANDIN_WRITING, .key = req.keys[k],
						     .session = session };
			snprintf(b->instance, sizeof b->instance, "%.31s", id);
			place(s, b, inst);
		}
		if (b->state == STANDIN_COMMITTED) {
			res.outcome[k] = SKV_START_EXISTS;
		} else if (b->session != session) {
			res.outcome[k] = SKV_START_BUSY;
		} else {
			res.outcome[k] = SKV_START_WRITE;
			res.n_write++;
			memcpy(&res.loc[(size_t)k * res.n_specs], b->loc,
			       res.n_specs * sizeof *b->loc);
		}
	}
	if (res.n_write)
		memcpy(res.session, s->sessions[session].id, sizeof res.session);
	x->codec->write_start_res(&x->out, &res);
	return SKV_OK;
}

static struct standin_session *session_of(struct standin *s, const char *id, uint32_t *number)
{
	for (*number = 0; *number < s->n_sessions; ++*number)
		if (strcmp(s->sessions[*number].id, id) == 0)
			return &s->sessions[*number];
	return NULL;
}

static bool succeeded(const struct skv_finish_req *req, uint32_t row)
{
	if (req->mask_kind == SKV_MASK_ALL)
		return true;
	return req->mask_kind == SKV_MASK_COUNT ? row < req->mask_count : req->mask[row];
}

static void commit(struct standin *s, const struct skv_finish_req *req, uint32_t number,
		   struct standin_session *session)
{
	uint32_t row = 0, gone = 0;

	for (uint32_t i = 0; i < s->n_blocks; i++) {
		struct standin_block *b = &s->blocks[i];
		const struct standin_instance *inst = instance_of(s, b->instance);

		if (b->state != STANDIN_WRITING || b->session != number)
			continue;
		if (gone < s->n_gone && s->gone[gone] == row) {
			b->state = STANDIN_FREE;
			session->res.deleted = s->gone;
			session->res.n_deleted = ++gone;
			row++;
			continue;
		}
		b->state = succeeded(req, row) ? STANDIN_COMMITTED : STANDIN_FREE;
		session->res.committed += b->state == STANDIN_COMMITTED;
		session->res.failed += b->state == STANDIN_FREE;
		for (uint32_t k = 0; k < inst->n_specs && req->n_checksums && !s->drop_checksums;
		     k++) {
			b->loc[k].has_checksum = true;
			b->loc[k].checksum = req->checksums[row * inst->n_specs + k];
		}
		row++;
	}
}

static int end(struct standin *s, struct exchange *x, const struct skv_v1_in *in, const char *id,
	       bool abort)
{
	static const bool none[STANDIN_BLOCKS];
	struct skv_finish_req req = { .mask_kind = SKV_MASK_BITS, .mask = none };
	struct skv_abort_req abort_req;
	struct standin_session *session;
	uint32_t number;
	int rc;

	if (abort)
		rc = x->codec->read_abort_req(in, (char *)x->in.data, x->in.len, &abort_req,
					      &x->err);
	else
		rc = x->codec->read_finish_req(in, (char *)x->in.data, x->in.len, &req, &x->err);
	s->finishes += !abort;
	s->aborts += abort;
	if (!abort)
		s->last_finish = req;
	if (rc != SKV_OK)
		return rc;
	if (abort)
		s->last_abort_quiesced = abort_req.quiesced;
	session = session_of(s, id, &number);
	if (!session)
		return skv_fail(&x->err, SKV_E_NOT_FOUND, "session", "no such session");
	if (session->open) {
		session->res.state = abort ? SKV_SESSION_ABORTED : SKV_SESSION_FINISHED;
		commit(s, &req, number, session);
		session->open = false;
	}
	x->codec->write_finish_res(&x->out, &session->res);
	return SKV_OK;
}

static int delete_blocks(struct standin *s, struct exchange *x, const struct skv_v1_in *in,
			 const char *id)
{
	struct skv_delete_req req;
	struct skv_delete_res res = { 0 };
	int rc = x->codec->read_delete_req(in, (char *)x->in.data, x->in.len, &req, &x->err);

	for (uint32_t k = 0; rc == SKV_OK && k < req.n_keys; k++) {
		struct standin_block *b = block_of(s, id, req.keys[k]);

		if (b && b->state == STANDIN_COMMITTED) {
			b->state = STANDIN_FREE;
			res.deleted++;
		}
	}
	x->codec->write_delete_res(&x->out, &res);
	return rc;
}

/* ---- objects --------------------------------------------------------------------------------- */

static int put_instance(struct standin *s, struct exchange *x, const struct skv_v1_in *in,
			const char *id)
{
	struct skv_instance_spec spec;
	struct standin_instance *inst = instance_of(s, id);
	int rc = x->codec->read_instance(in, (char *)x->in.data, x->in.len, &spec, &x->err);

	if (rc != SKV_OK)
		return rc;
	if (inst && inst->specs[0].size != spec.specs[0].size)
		return skv_fail(&x->err, SKV_E_CONFLICT, "specs[0].size", "may not change");
	if (!inst) {
		assert(s->n_instances < 8 && spec.n_specs <= 4);
		inst = &s->instances[s->n_instances++];
	}
	snprintf(inst->id, sizeof inst->id, "%.31s", id);
	snprintf(inst->group, sizeof inst->group, "%.31s", spec.group);
	inst->n_specs = spec.n_specs;
	for (uint32_t i = 0; i < spec.n_specs; i++) {
		snprintf(inst->names[i], sizeof inst->names[i], "%.15s", spec.specs[i].name);
		inst->specs[i] = (struct skv_spec){ inst->names[i], spec.specs[i].size };
	}
	skv_buf_printf(&x->out, "{}");
	return SKV_OK;
}

static int get_instance(struct standin *s, struct exchange *x, const char *id)
{
	struct standin_instance *inst = instance_of(s, id);
	struct skv_instance_view v = { 0 };

	if (!inst)
		return skv_fail(&x->err, SKV_E_NOT_FOUND, "instance", "no such instance");
	v.spec = (struct skv_instance_spec){ .tenant = "default",
					     .id = inst->id,
					     .group = inst->group,
					     .specs = inst->specs,
					     .n_specs = inst->n_specs,
					     .extra = "" };
	x->codec->write_instance_view(&x->out, &v);
	return SKV_OK;
}

static int get_storage(struct standin *s, struct exchange *x)
{
	struct skv_storage_view v = { .healthy = true, .problem = "", .files = STANDIN_FILES };

	s->storage_gets++;
	v.spec = (struct skv_storage_spec){ .name = "default",
					    .type = "file",
					    .root = s->hide_root ? "/nonexistent" : s->root,
					    .capacity = STANDIN_FILES * s->file_length,
					    .file_size = s->file_length,
					    .unit = 65536,
					    .enabled = true };
	skv_uuid_to_text(s->uuid, v.uuid);
	x->codec->write_storage_view(&x->out, &v);
	return SKV_OK;
}

/* ---- which operation ----------------------------------------------------------------------- */

/* Splits "/v1/KIND/ID[/VERB]". */
static bool split(const char *url, char kind[32], char id[128], char verb[32])
{
	verb[0] = '\0';
	return sscanf(url, "/v1/%31[^/]/%127[^/]/%31[^/]", kind, id, verb) >= 2;
}

int standin_dispatch(struct standin *s, struct exchange *x, const char *method, const char *url)
{
	const struct skv_v1_in in = { .arena = &x->arena, .secret = &secret, .tenant = "default" };
	char kind[32], id[128], verb[32];

	if (strcmp(url, "/v1/match") == 0)
		return match(s, x, &in);
	if (strcmp(url, "/readyz") == 0 || strcmp(url, "/v1/stats") == 0)
		return skv_buf_printf(&x->out, "{\"state\":\"ready\"}"), SKV_OK;
	if (!split(url, kind, id, verb))
		return skv_fail(&x->err, SKV_E_NOT_FOUND, NULL, "no such path");
	if (strcmp(verb, "lookup") == 0)
		return lookup(s, x, &in, id);
	if (strcmp(verb, "start") == 0)
		return start(s, x, &in, id);
	if (strcmp(verb, "delete") == 0)
		return delete_blocks(s, x, &in, id);
	if (strcmp(verb, "finish") == 0)
		return end(s, x, &in, id, false);
	if (strcmp(verb, "abort") == 0)
		return end(s, x, &in, id, true);
	if (strcmp(kind, "storages") == 0 && strcmp(method, "GET") == 0)
		return get_storage(s, x);
	if (strcmp(kind, "instances") == 0 && strcmp(method, "PUT") == 0)
		return put_instance(s, x, &in, id);
	if (strcmp(kind, "instances") == 0 && strcmp(method, "GET") == 0)
		return get_instance(s, x, id);
	return skv_fail(&x->err, SKV_E_NOT_FOUND, "name", "no such object");
}
