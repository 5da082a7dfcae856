/*
 * registry_write.c - all writes of the core to the registry, and its counters and remembered
 * secret.
 *
 * A write carries the fence of the partition that it was decided on, and each load of the partition
 * has its own fence. So a decision made before a demotion or a reload changes nothing afterwards,
 * however long it was delayed. It also carries the version that it replaces: two calls of one
 * manager do not overwrite each other.
 *
 * Stateless. Blocks on the store; no lock is held.
 */
#include <journal/registry_write.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <model/objects.h>
#include <model/partition.h>
#include <journal/registry.h>

#define ID_PORTION 256u

static int fenced(struct skv_core *c, uint64_t fence, int rc, struct skv_error *err)
{
	if (rc != SKV_E_FENCED)
		return rc;
	if (owner_lost(c, fence))
		return skv_fail(err, SKV_E_NOT_OWNER, NULL,
				"another manager has taken over: ask that one");
	return skv_fail(err, SKV_E_NOT_READY, NULL,
			"the partition was loaded again meanwhile: nothing was changed");
}

int registry_put(struct skv_core *c, uint64_t fence, const char *key, uint64_t expect,
		 const struct skv_buf *doc, uint64_t *version, struct skv_error *err)
{
	const struct skv_fence f = { .number = fence };

	if (doc->failed)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	return fenced(c, fence,
		      skv_store_put(c->store, &f, key, expect, doc->data, doc->len, version, err),
		      err);
}

int registry_del(struct skv_core *c, uint64_t fence, const char *key, uint64_t version,
		 struct skv_error *err)
{
	const struct skv_fence f = { .number = fence };

	return fenced(c, fence, skv_store_del(c->store, &f, key, version, err), err);
}

/* ---- numbers and secrets --------------------------------------------------------------------- */

/* The number in the document, 1 if there is none; *version is its version, for the write of the
 * next number. */
static int read_next_id(struct skv_core *c, uint32_t *next, uint64_t *version,
			struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(c->store, "next-id", &b, version, err);

	*next = 1;
	if (rc == SKV_OK) {
		struct skv_rd in = skv_rd_make(b.data, b.len);

		*next = skv_get_u32(&in);
	} else if (rc == SKV_E_NOT_FOUND) {
		*version = SKV_VERSION_NONE;
		skv_error_clear(err);
		rc = SKV_OK;
	}
	skv_buf_destroy(&b);
	return rc;
}

/* Takes ID_PORTION numbers at a time. Those of an ownership that ends are never used. */
static int take_ids(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	int rc;

	do {
		struct skv_buf b = { 0 };
		uint64_t version;
		uint32_t next;

		rc = read_next_id(c, &next, &version, err);
		if (rc != SKV_OK)
			return rc;
		skv_put_u32(&b, next + ID_PORTION);
		rc = registry_put(c, fence, "next-id", version, &b, NULL, err);
		skv_buf_destroy(&b);
		if (rc == SKV_OK) {
			c->ids.fence = fence;
			c->ids.next = next;
			c->ids.end = next + ID_PORTION;
		}
	} while (rc == SKV_E_CONFLICT);
	if (rc == SKV_OK)
		skv_error_clear(err);
	return rc;
}

int registry_next_id(struct skv_core *c, uint64_t fence, uint32_t *id, struct skv_error *err)
{
	int rc = SKV_OK;

	if (c->ids.fence != fence || c->ids.next == c->ids.end)
		rc = take_ids(c, fence, err);
	if (rc != SKV_OK)
		return rc;
	assert(c->ids.next < c->ids.end);
	*id = c->ids.next++;
	return SKV_OK;
}

static int make_secret(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	struct skv_secret fresh;
	struct skv_buf b = { 0 };
	int rc;

	skv_random(fresh.bytes, sizeof fresh.bytes);
	skv_put_bytes(&b, fresh.bytes, sizeof fresh.bytes);
	rc = registry_put(c, fence, REGISTRY_SECRET, SKV_VERSION_NONE, &b, NULL, err);
	skv_buf_destroy(&b);
	if (rc == SKV_E_CONFLICT) { /* an earlier attempt of unknown outcome */
		skv_error_clear(err);
		rc = SKV_OK;
	}
	return rc;
}

int registry_read_secret(struct skv_core *c, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(c->store, REGISTRY_SECRET, &b, NULL, err);

	if (rc == SKV_OK && b.len != sizeof c->secret)
		rc = skv_fail(err, SKV_E_CORRUPT, NULL, "registry document 'secret' is malformed");
	skv_mutex_lock(&c->turn_lock); /* a standby's calls may read it at the same time */
	if (rc == SKV_OK && !atomic_load(&c->has_secret)) {
		memcpy(c->secret.bytes, b.data, sizeof c->secret.bytes);
		atomic_store_explicit(&c->has_secret, true, memory_order_release);
	}
	skv_mutex_unlock(&c->turn_lock);
	skv_buf_destroy(&b);
	return rc;
}

int registry_secret(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	int rc = atomic_load(&c->has_secret) ? SKV_OK : registry_read_secret(c, err);

	if (rc != SKV_E_NOT_FOUND)
		return rc;
	skv_error_clear(err);
	rc = make_secret(c, fence, err);
	return rc == SKV_OK ? registry_read_secret(c, err) : rc;
}

/* ---- deleted instances ----------------------------------------------------------------------- */

void registry_instance_key(char out[300], const char *tenant, const char *id)
{
	/* Without escaping '/', tenant "a/b" with id "c" would equal tenant "a" with id "b/c"; '%'
	 * is in no name. */
	size_t n = (size_t)snprintf(out, 300, "instance/");

	for (; *tenant; tenant++)
		out[n++] = *tenant == '/' ? '%' : *tenant;
	snprintf(out + n, 300 - n, "/%s", id);
}

const char *registry_instance_of(const char *key, char tenant[SKV_MAX_NAME + 1])
{
	static const char prefix[] = "instance/";
	const char *name = key + sizeof prefix - 1, *slash;
	size_t n;

	if (strncmp(key, prefix, sizeof prefix - 1) != 0 || !(slash = strchr(name, '/')))
		return NULL;
	n = (size_t)(slash - name);
	if (n > SKV_MAX_NAME)
		return NULL;
	for (size_t i = 0; i < n; i++)
		tenant[i] = name[i] == '%' ? '/' : name[i];
	tenant[n] = '\0';
	return slash + 1;
}

static void dropped_key(char out[64], uint32_t id) { snprintf(out, 64, "dropped/%08x", id); }

static int gone(struct skv_error *err, int rc)
{
	if (rc != SKV_E_NOT_FOUND)
		return rc;
	skv_error_clear(err);
	return SKV_OK;
}

int registry_move_to_dropped(struct skv_core *c, uint64_t fence, const char *instance_key,
			     uint32_t id, const struct skv_buf *doc, uint64_t *version,
			     struct skv_error *err)
{
	uint64_t moved = 0;
	char key[64];
	int rc;

	dropped_key(key, id);
	rc = registry_put(c, fence, key, SKV_VERSION_NONE, doc, &moved, err);
	/* By an earlier attempt that got no further; numbers are used once. */
	if (rc == SKV_E_CONFLICT) {
		struct skv_buf ignored = { 0 };

		skv_error_clear(err);
		rc = skv_store_get(c->store, key, &ignored, &moved, err);
		skv_buf_destroy(&ignored);
	}
	if (rc == SKV_OK)
		rc = gone(err, registry_del(c, fence, instance_key, *version, err));
	if (rc == SKV_OK)
		*version = moved;
	return rc;
}

int registry_forget_dropped(struct skv_core *c, uint64_t fence, uint32_t id, uint64_t version,
			    struct skv_error *err)
{
	char key[64];

	dropped_key(key, id);
	return gone(err, registry_del(c, fence, key, version, err));
}

/* A manager died between the record and the registry. */
int registry_finish_drops(struct partition *p, struct skv_error *err)
{
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; rc == SKV_OK && i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];
		struct skv_buf doc = { 0 };
		char key[300];

		if (!inst->deleting || !inst->registered)
			continue;
		registry_instance_key(key, inst->spec.tenant, inst->spec.id);
		registry_put_instance(&doc, &inst->spec, inst->id);
		rc = registry_move_to_dropped(p->core, p->fence, key, inst->id, &doc,
					      &inst->version, err);
		skv_buf_destroy(&doc);
		inst->registered = rc != SKV_OK;
		if (rc == SKV_OK)
			partition_set_dropped(p, inst->id);
	}
	return rc;
}
