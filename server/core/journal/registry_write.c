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

#include <stdio.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <model/objects.h>
#include <model/partition.h>
#include <journal/registry.h>
#include <journal/registry_copy.h>

static int fenced(struct skv_core *c, uint64_t fence, int rc, struct skv_error *err)
{
	if (rc != SKV_E_FENCED)
		return rc;
	if (owner_lost(c, fence))
		return gate_fail(c, err, SKV_E_NOT_OWNER,
				 "another manager has taken over: ask that one");
	return gate_fail(c, err, SKV_E_NOT_READY,
			 "the partition was loaded again meanwhile: nothing was changed");
}

static int put_fenced(struct skv_core *c, const struct skv_fence *f, const char *key,
		      uint64_t expect, const struct skv_buf *doc, uint64_t *version,
		      struct skv_error *err)
{
	if (doc->failed)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	return fenced(c, f->number,
		      skv_store_put(c->store, f, key, expect, doc->data, doc->len, version, err),
		      err);
}

int registry_put_lost(struct skv_core *c, uint64_t fence, const char *key, uint64_t expect,
		      const struct skv_buf *doc, struct skv_error *err)
{
	const struct skv_fence f = { .number = fence, .restores = true };
	uint64_t ignored;

	return put_fenced(c, &f, key, expect, doc, &ignored, err);
}

int registry_del_lost(struct skv_core *c, uint64_t fence, const char *key, uint64_t version,
		      struct skv_error *err)
{
	const struct skv_fence f = { .number = fence, .restores = true };

	return fenced(c, fence, skv_store_del(c->store, &f, key, version, err), err);
}

/* The copy may lack what the registry has. */
static void read_again_if_unknown(struct skv_core *c, int rc)
{
	if (rc == SKV_E_UNKNOWN_OUTCOME && skv_store_may_go_back(c->store))
		owner_ask_reload(c);
}

/* The copy has it. If the partition was acquired again before that, the registry may have been
 * restored without it. */
static int still_there(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	return atomic_load(&c->fence) == fence
		       ? SKV_OK
		       : skv_fail(err, SKV_E_UNKNOWN_OUTCOME, "store",
				  "the partition was loaded again meanwhile");
}

/* The shared document is in the listing of partition 0 only, and so in that one's copy. */
static bool is_listed(const struct skv_core *c, const char *key)
{
	return c->o.partition == 0 || strcmp(key, REGISTRY_SECRET) != 0;
}

int registry_put(struct skv_core *c, uint64_t fence, const char *key, uint64_t expect,
		 const struct skv_buf *doc, uint64_t *version, struct skv_error *err)
{
	const struct skv_fence f = { .number = fence };
	uint64_t now = 0;
	int rc = put_fenced(c, &f, key, expect, doc, &now, err);

	if (rc == SKV_OK && skv_store_may_go_back(c->store)) {
		if (is_listed(c, key))
			registry_copy_put(c->registry, key, doc->data, doc->len, now);
		rc = still_there(c, fence, err);
	}
	read_again_if_unknown(c, rc);
	if (rc == SKV_OK && version)
		*version = now;
	return rc;
}

int registry_del(struct skv_core *c, uint64_t fence, const char *key, uint64_t version,
		 struct skv_error *err)
{
	const struct skv_fence f = { .number = fence };
	int rc = fenced(c, fence, skv_store_del(c->store, &f, key, version, err), err);

	if (rc == SKV_OK && skv_store_may_go_back(c->store)) {
		registry_copy_del(c->registry, key, version);
		rc = still_there(c, fence, err);
	}
	read_again_if_unknown(c, rc);
	return rc;
}

/* ---- numbers and secrets
 * -------------------------------------------------------------------------------- */

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

int registry_next_id(struct skv_core *c, uint64_t fence, uint32_t *id, struct skv_error *err)
{
	int rc;

	do {
		struct skv_buf b = { 0 };
		uint64_t version;
		uint32_t next;

		rc = read_next_id(c, &next, &version, err);
		if (rc != SKV_OK)
			return rc;
		skv_put_u32(&b, next + 1);
		rc = registry_put(c, fence, "next-id", version, &b, NULL, err);
		skv_buf_destroy(&b);
		*id = next;
	} while (rc == SKV_E_CONFLICT);
	if (rc == SKV_OK)
		skv_error_clear(err);
	return rc;
}

static int make_secret(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	const struct known_secret *have = atomic_load(&c->secret); /* the registry has lost it */
	struct skv_secret fresh;
	struct skv_buf b = { 0 };
	int rc;

	if (have)
		fresh = have->secret;
	else
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

static int know_secret(struct skv_core *c, const uint8_t *bytes)
{
	struct known_secret *have = atomic_load(&c->secret), *k;

	if (have && memcmp(have->secret.bytes, bytes, sizeof have->secret.bytes) == 0)
		return SKV_OK;
	k = skv_calloc(1, sizeof *k);
	if (!k)
		return SKV_E_NOMEM;
	memcpy(k->secret.bytes, bytes, sizeof k->secret.bytes);
	k->before = have;
	atomic_store_explicit(&c->secret, k, memory_order_release);
	return SKV_OK;
}

static int read_secret(struct skv_core *c, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(c->store, REGISTRY_SECRET, &b, NULL, err);

	if (rc == SKV_OK && b.len != sizeof(struct skv_secret))
		rc = skv_fail(err, SKV_E_CORRUPT, NULL, "registry document 'secret' is malformed");
	if (rc == SKV_OK)
		rc = know_secret(c, b.data);
	skv_buf_destroy(&b);
	return rc;
}

int registry_know_secret(struct skv_core *c, struct skv_error *err)
{
	int rc = atomic_load(&c->secret) ? SKV_OK : read_secret(c, err);

	if (rc != SKV_E_NOT_FOUND)
		return rc;
	skv_error_clear(err);
	return SKV_OK;
}

int registry_secret(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	int rc = read_secret(c, err);

	if (rc != SKV_E_NOT_FOUND)
		return rc;
	skv_error_clear(err);
	rc = make_secret(c, fence, err);
	return rc == SKV_OK ? read_secret(c, err) : rc;
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
	if (rc == SKV_E_CONFLICT) { /* by an earlier attempt that got no further; numbers are used
				     * once */
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
