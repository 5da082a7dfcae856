/*
 * model_storage.c - KVCM's StorageConfig as a storage of the core, and the entries of
 * `storage_configs`.
 *
 * The peer's root is a directory that may be anybody's; ours are directories of their own in it,
 * because a storage of the core owns its directory. No state. kvcm_storage_create and
 * kvcm_storage_change block, the rest does not.
 */
#include "model_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <skv/core.h>
#include <skv/json_out.h>
#include <skv/kvcm.h>
#include <skv/lock.h>

typedef KvcmAdmin__StorageConfig config;

static int no_such_kind(const char *field, struct skv_error *err)
{
	return skv_fail(err, SKV_E_UNSUPPORTED, field,
			"%s: this server has storages of the kinds nfs, threefs and dummy only",
			field);
}

/* Length of `path` without slashes at its end; "/" is 0. */
static size_t trimmed(const char *path)
{
	size_t n = strlen(path);

	while (n > 0 && path[n - 1] == '/')
		n--;
	return n;
}

static int join(const char *head, size_t n, const char *tail, struct skv_arena *a, const char **out,
		struct skv_error *err)
{
	size_t room = n + strlen(tail) + 2;
	char *path = skv_arena_alloc(a, room);
	int written;

	if (!path)
		return kvcm_model_nomem(err);
	written = snprintf(path, room, "%.*s/%s", (int)n, head, tail);
	assert(written > 0 && (size_t)written < room);
	*out = path;
	return SKV_OK;
}

int kvcm_mounts_check(const char *mounts, struct skv_error *err)
{
	for (const char *m = mounts; *m;) {
		size_t len = strcspn(m, ",");
		const char *equals = memchr(m, '=', len);

		if (len > 0 && (!equals || *m != '/' || equals[1] != '/'))
			return skv_fail(err, SKV_E_INVALID, "kvcm_mounts",
					"kvcm_mounts: '%.*s' is not '/theirs=/here'",
					(int)(len < 100 ? len : 100), m);
		m += len + (m[len] == ',');
	}
	return SKV_OK;
}

/* Where the clients' directory `path` is on this host: the longest
 * "client=here" that it begins with. */
static int here(const char *path, const char *mounts, struct skv_arena *a, const char **out,
		struct skv_error *err)
{
	const char *best = NULL, *rest;
	size_t best_n = 0, best_len = 0;

	for (const char *m = mounts ? mounts : ""; *m;) {
		size_t len = strcspn(m, ",");
		const char *equals = memchr(m, '=', len);
		size_t n = equals ? (size_t)(equals - m) : 0;

		while (n > 1 && m[n - 1] == '/')
			n--;
		if (n > best_n && strncmp(path, m, n) == 0 &&
		    (n == 1 || path[n] == '/' || path[n] == '\0')) {
			best = equals + 1;
			best_n = n;
			best_len = len - (size_t)(best - m);
		}
		m += len + (m[len] == ',');
	}
	*out = path;
	if (!best)
		return SKV_OK;
	while (best_len > 1 && best[best_len - 1] == '/')
		best_len--;
	assert(best_n <= strlen(path));
	rest = path + best_n; /* behind "/" nothing is skipped */
	while (*rest == '/')
		rest++;
	if (best_len == 1 && *best == '/')
		best_len = 0; /* join adds one */
	return join(best, best_len, rest, a, out, err);
}

/* The clients' directory of the storage, without slashes at its end, and the
 * mount point if it is on one. */
static int client_root(const config *m, struct skv_arena *a, const char **root, const char **mount,
		       struct skv_error *err)
{
	const KvcmAdmin__ThreeFSStorageSpec *t = m->threefs;
	const char *path, *sub, *p;

	*mount = "";
	if (m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_NFS) {
		path = m->nfs->root_path;
		if (path[0] != '/')
			return skv_fail(err, SKV_E_INVALID, "nfs.root_path",
					"nfs.root_path: an absolute path is required");
		p = skv_arena_strndup(a, path, trimmed(path));
		*root = p;
		return p ? SKV_OK : kvcm_model_nomem(err);
	}
	path = t->mountpoint;
	for (sub = t->root_dir; *sub == '/';)
		sub++;
	if (path[0] != '/')
		return skv_fail(err, SKV_E_INVALID, "threefs.mountpoint",
				"threefs.mountpoint: an absolute path is required");
	if (trimmed(sub) == 0)
		return skv_fail(err, SKV_E_INVALID, "threefs.root_dir",
				"threefs.root_dir: a directory below the mount point is required");
	*mount = skv_arena_strndup(a, path, trimmed(path));
	p = skv_arena_strndup(a, sub, trimmed(sub));
	return *mount && p ? join(*mount, strlen(*mount), p, a, root, err) : kvcm_model_nomem(err);
}

/* The oneof names one of the kinds that we have, and storage_type, if given, the same. */
static int check_kind(const config *m, struct skv_error *err)
{
	KvcmAdmin__StorageType asked = KVCM_ADMIN__STORAGE_TYPE__ST_UNSPECIFIED;

	switch (m->storage_spec_case) {
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_NFS:
		asked = KVCM_ADMIN__STORAGE_TYPE__ST_NFS;
		break;
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS:
		asked = KVCM_ADMIN__STORAGE_TYPE__ST_3FS;
		break;
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_LOCAL:
		return no_such_kind("local", err);
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_MOONCAKE:
		return no_such_kind("mooncake", err);
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_TAIR_MEM_POOL:
		return no_such_kind("tair_mem_pool", err);
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_VCNSTHREEFS:
		return no_such_kind("vcnsthreefs", err);
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_DUMMY:
		asked = KVCM_ADMIN__STORAGE_TYPE__ST_DUMMY;
		break;
	case KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_EVENT_REPORT:
		return no_such_kind("event_report", err);
	default:
		return skv_fail(err, SKV_E_INVALID, "storage_spec",
				"storage_spec: one of nfs, threefs and dummy is required");
	}
	if (m->storage_type != KVCM_ADMIN__STORAGE_TYPE__ST_UNSPECIFIED && m->storage_type != asked)
		return skv_fail(err, SKV_E_INVALID, "storage_type",
				"storage_type: it is not the kind of the storage that is given");
	return SKV_OK;
}

static uint64_t at_most(uint64_t v, uint64_t bound)
{
	return v < bound ? v : bound;
}

/* Sets the storage's paths, here and for clients. A dummy stores no bytes and has none. */
static int set_places(const config *m, const struct kvcm_model *o, const char *id,
		      struct skv_arena *a, struct skv_storage_spec *s, struct skv_error *err)
{
	const char *clients, *ours;
	char dir[2 * SKV_MAX_NAME + 2];
	int rc;

	s->type = kvcm_core_type(
		m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_NFS
			? KVCM_ADMIN__STORAGE_TYPE__ST_NFS
		: m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS
			? KVCM_ADMIN__STORAGE_TYPE__ST_3FS
			: KVCM_ADMIN__STORAGE_TYPE__ST_DUMMY);
	s->root = s->client_root = s->client_mount = "";
	if (m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_DUMMY)
		return SKV_OK;
	rc = client_root(m, a, &clients, &s->client_mount, err);
	if (rc == SKV_OK)
		rc = here(clients, o->mounts, a, &ours, err);
	if (rc != SKV_OK)
		return rc;
	rc = snprintf(dir, sizeof dir, "%s.%.64s", s->name, id);
	assert(rc > 0 && (size_t)rc < sizeof dir);
	rc = join(clients, strlen(clients), dir, a, &s->client_root, err);
	if (rc == SKV_OK)
		rc = join(ours, strlen(ours), dir, a, &s->root, err);
	if (rc == SKV_OK &&
	    (strlen(s->root) > SKV_MAX_ROOT || strlen(s->client_root) > SKV_MAX_ROOT))
		rc = skv_fail(err, SKV_E_INVALID, "storage_spec", "the path is over %u characters",
			      SKV_MAX_ROOT);
	return rc;
}

int kvcm_storage_spec(const config *m, const struct kvcm_model *o, const char *id,
		      struct skv_arena *a, struct skv_storage_spec *out, struct skv_error *err)
{
	struct skv_storage_spec s = { .name = m->global_unique_name, .enabled = true,
				      .unit = o->storage_unit };
	int rc = kvcm_model_name(m->global_unique_name, "global_unique_name", err);

	if (rc == SKV_OK)
		rc = check_kind(m, err);
	if (rc == SKV_OK)
		rc = set_places(m, o, id, a, &s, err);
	if (rc != SKV_OK)
		return rc;
	s.capacity = o->storage_capacity;
	s.file_size = o->storage_file_size ? o->storage_file_size : KVCM_MAX_FILE_SIZE;
	s.file_size = at_most(s.file_size, KVCM_MAX_FILE_SIZE);
	s.any_mount = o->any_mount &&
		      m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS;
	s.extra = kvcm_model_text(&m->base, a);
	if (!s.extra)
		return kvcm_model_nomem(err);
	*out = s;
	return SKV_OK;
}

/* ---- putting --------------------------------------------------------------------------------- */

/* Makes `path` and at most `levels` - 1 directories above it. */
static int make_directories(char *path, unsigned levels)
{
	char *slash = strrchr(path, '/');
	int error;

	if (mkdir(path, 0777) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT || levels <= 1 || slash == path)
		return errno;
	*slash = '\0';
	error = make_directories(path, levels - 1);
	*slash = '/';
	if (error != 0)
		return error;
	return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
}

/* The core makes only the storage's own directory. The root in a KVCM spec is made too, with all
 * its parents, but never a mount point of 3FS: that is missing because nothing is mounted. */
static int make_parent(const config *m, const char *root, struct skv_error *err)
{
	unsigned levels = SKV_MAX_ROOT;
	char parent[SKV_MAX_ROOT + 1];
	char *slash;
	int error;

	if (m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS) {
		levels = 0;
		for (const char *s = m->threefs->root_dir; *s; s += strcspn(s, "/")) {
			s += strspn(s, "/");
			levels += *s != '\0';
		}
	}
	assert(root[0] == '/' && strlen(root) <= SKV_MAX_ROOT);
	snprintf(parent, sizeof parent, "%s", root);
	slash = strrchr(parent, '/');
	if (slash == parent)
		return SKV_OK;
	*slash = '\0';
	error = make_directories(parent, levels);
	if (error == 0)
		return SKV_OK;
	return skv_fail(
		err, SKV_E_UNAVAILABLE, "storage_spec",
		"the storage's directory does not exist on the manager's host and "
		"cannot be made: %s",
		strerror(error));
}

/* Eight digits that are this store's for ever, and tell nothing about its secret. */
static void own_id(struct skv_cluster *cluster, char out[9])
{
	static const char text[] = "directory of storages";
	struct skv_key key =
		skv_key_from_string(skv_cluster_secret(cluster), text, sizeof text - 1);

	snprintf(out, 9, "%08" PRIx32, (uint32_t)(key.hi >> 32));
}

/* Keeps the fields that never change; the parameters may have changed. */
static void keep_fixed(struct skv_storage_spec *s, const struct skv_storage_spec *have)
{
	s->unit = have->unit;
	s->file_size = have->file_size;
	s->chunk_size = have->chunk_size;
	s->any_mount = have->any_mount;
	s->fs_master = have->fs_master;
	s->n_fs_master = have->n_fs_master;
	s->enabled = have->enabled;
	s->draining = have->draining;
	s->capacity -= have->unit ? s->capacity % have->unit : 0;
	if (s->capacity < have->capacity)
		s->capacity = have->capacity;
}

/* The storage's spec for this manager. */
static int spec_here(struct skv_cluster *cluster, const config *m, const struct kvcm_model *o,
		     struct skv_arena *a, struct skv_storage_spec *s, struct skv_error *err)
{
	char id[9];

	if (!o->id)
		own_id(cluster, id);
	return kvcm_storage_spec(m, o, o->id ? o->id : id, a, s, err);
}

int kvcm_storage_create(struct skv_cluster *cluster, const config *m, const struct kvcm_model *o,
			struct skv_error *err)
{
	struct skv_storage_spec s;
	struct skv_arena a;
	int rc;

	assert(skv_thread_locks == 0);
	skv_arena_init(&a);
	rc = spec_here(cluster, m, o, &a, &s, err);
	if (rc == SKV_OK)
		rc = skv_cluster_root_allowed(cluster, s.root, err);
	if (rc == SKV_OK && *s.root)
		rc = make_parent(m, s.root, err);
	if (rc == SKV_OK && o->owner && *s.root)
		rc = kvcm_private_mark(s.root, o->id, o->owner, err);
	if (rc == SKV_OK)
		rc = skv_cluster_storage_put(cluster, &s, SKV_PUT_NEW, NULL, err);
	if (rc == SKV_OK)
		rc = kvcm_groups_refit(cluster, err);
	skv_arena_destroy(&a);
	return rc;
}

int kvcm_storage_change(struct skv_cluster *cluster, const config *m, const struct kvcm_model *o,
			struct skv_error *err)
{
	struct skv_storage_spec s;
	struct skv_storage_view *v;
	struct skv_arena a;
	int rc;

	skv_arena_init(&a);
	rc = spec_here(cluster, m, o, &a, &s, err);
	if (rc == SKV_OK)
		rc = skv_cluster_storage(cluster, s.name, &a, &v, err);
	if (rc == SKV_OK) {
		keep_fixed(&s, &v[0].spec);
		rc = skv_cluster_storage_put(cluster, &s, SKV_PUT_THERE, NULL, err);
	}
	if (rc == SKV_OK)
		rc = kvcm_groups_refit(cluster, err);
	skv_arena_destroy(&a);
	return rc;
}

/* ---- answering ------------------------------------------------------------------------------- */

static const char *clients_root(const struct skv_storage_spec *s)
{
	return s->client_root && *s->client_root ? s->client_root : s->root;
}

/* The KVCM message for a storage that another API made. */
static config *made_up(const struct skv_storage_spec *s, struct skv_arena *a)
{
	config *m = skv_arena_alloc(a, sizeof *m);
	const char *root = clients_root(s);
	const char *mount = s->client_mount && *s->client_mount ? s->client_mount : "";
	size_t n = strlen(mount);

	if (!m)
		return NULL;
	kvcm_admin__storage_config__init(m);
	m->global_unique_name = (char *)s->name;
	m->storage_type = (KvcmAdmin__StorageType)kvcm_storage_type(s->type);
	if (m->storage_type == KVCM_ADMIN__STORAGE_TYPE__ST_3FS) {
		m->threefs = skv_arena_alloc(a, sizeof *m->threefs);
		if (!m->threefs)
			return NULL;
		kvcm_admin__three_fsstorage_spec__init(m->threefs);
		m->storage_spec_case = KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS;
		m->threefs->mountpoint = (char *)(n ? mount : root);
		m->threefs->root_dir = (char *)(n && strncmp(root, mount, n) == 0 && root[n] == '/'
							? root + n + 1
							: "");
	} else if (m->storage_type == KVCM_ADMIN__STORAGE_TYPE__ST_NFS) {
		m->nfs = skv_arena_alloc(a, sizeof *m->nfs);
		if (!m->nfs)
			return NULL;
		kvcm_admin__nfs_storage_spec__init(m->nfs);
		m->storage_spec_case = KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_NFS;
		m->nfs->root_path = (char *)root;
	} else {
		m->dummy = skv_arena_alloc(a, sizeof *m->dummy);
		if (!m->dummy)
			return NULL;
		kvcm_admin__dummy_storage_spec__init(m->dummy);
		m->storage_spec_case = KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_DUMMY;
	}
	return m;
}

config *kvcm_storage_message(const struct skv_storage_spec *s, struct skv_arena *a)
{
	config *m =
		(config *)kvcm_model_message(&kvcm_admin__storage_config__descriptor, s->extra, a);

	if (!m)
		m = made_up(s, a);
	if (m) /* the client may have left the type to the kind of spec */
		m->storage_type = (KvcmAdmin__StorageType)kvcm_storage_type(s->type);
	return m;
}

/* Clients index the members without asking: all of them are always there. */
static void put_entry(const struct skv_storage_spec *s, const config *m, struct skv_buf *out)
{
	int64_t keys = 0;

	skv_jout_open(out, '{');
	skv_jout_field_string(out, "type", strcmp(s->type, "null") == 0 ? "dummy" : s->type);
	skv_jout_field_bool(out, "is_available", s->enabled);
	skv_jout_field_string(out, "global_unique_name", s->name);
	skv_jout_name(out, "storage_spec");
	skv_jout_open(out, '{');
	if (m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS) {
		skv_jout_field_string(out, "cluster_name", m->threefs->cluster_name);
		skv_jout_field_string(out, "mountpoint", m->threefs->mountpoint);
		skv_jout_field_string(out, "root_dir", m->threefs->root_dir);
		keys = m->threefs->key_count_per_file;
	} else if (m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_NFS) {
		skv_jout_field_string(out, "root_path", m->nfs->root_path);
		keys = m->nfs->key_count_per_file;
	} else {
		assert(m->storage_spec_case == KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_DUMMY);
		skv_jout_field_string(out, "root_path", m->dummy->root_path);
		keys = m->dummy->key_count_per_file;
	}
	skv_jout_name(out, "key_count_per_file");
	skv_jout_i64(out, keys);
	skv_jout_close(out, '}');
	skv_jout_close(out, '}');
}

void kvcm_storage_configs(const KvcmAdmin__InstanceGroup *g,
			  const struct skv_storage_view *storages, uint32_t n_storages,
			  struct skv_arena *a, struct skv_buf *out)
{
	skv_jout_open(out, '[');
	for (size_t i = 0; i < g->n_storage_candidates; i++) {
		for (uint32_t k = 0; k < n_storages; k++) {
			const struct skv_storage_spec *s = &storages[k].spec;
			const config *m;

			if (strcmp(s->name, g->storage_candidates[i]) != 0)
				continue;
			m = kvcm_storage_message(s, a);
			if (m)
				put_entry(s, m, out);
		}
	}
	skv_jout_close(out, ']');
}
