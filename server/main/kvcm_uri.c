/*
 * kvcm_uri.c - KVCM's coordination and registry URIs: where our store is.
 *
 * Managers that share a directory share a store there, and so elect one owner. Without any of the
 * URIs the store is in memory, as KVCM's is: each process is alone and keeps nothing. One thread,
 * at start.
 */
#include "kvcm_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <skv/limits.h>

#define STORE_FILE "slabkv.db"
#define PATH_ROOM 4096

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* SKV_OK with the path in `out`, "" for in memory. */
static int path_of(const char *key, const char *uri, char out[PATH_ROOM], struct skv_error *err)
{
	const char *path = uri;

	out[0] = '\0';
	if (begins(uri, "redis:") || begins(uri, "rediss:"))
		return skv_fail(
			err, SKV_E_UNSUPPORTED, key,
			"%s: this server keeps its metadata in a file and needs no Redis: name "
			"file:///DIR, a directory of a local file system that the cluster's "
			"managers share",
			key);
	if (*uri == '\0' || strcmp(uri, "memory") == 0 || begins(uri, "memory:") ||
	    strcmp(uri, "local") == 0)
		return SKV_OK;
	if (begins(uri, "file://"))
		path = uri + strlen("file://");
	else if (begins(uri, "local://"))
		path = uri + strlen("local://");
	else if (strstr(uri, "://"))
		return skv_fail(err, SKV_E_INVALID, key,
				"%s: '%.64s' is neither file:// nor memory://", key, uri);
	if ((size_t)snprintf(out, PATH_ROOM, "%.*s", (int)strcspn(path, "?"), path) >= PATH_ROOM)
		return skv_fail(err, SKV_E_INVALID, key, "%s: the path is too long", key);
	return SKV_OK;
}

static int set_store(struct skv_params *p, const char *key, const char *dir, struct skv_error *err)
{
	char path[PATH_ROOM + 16];
	size_t n = strlen(dir);

	assert(n > 0 && n < PATH_ROOM);
	while (n > 1 && dir[n - 1] == '/')
		n--;
	snprintf(path, sizeof path, "%.*s/" STORE_FILE, (int)n, dir);
	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return skv_fail(err, SKV_E_IO, key, "%s: cannot make the directory %.160s: %s", key,
				dir, strerror(errno));
	return skv_param_set(p, SKV_PARAM_store, path, SKV_FROM_FILE, key, err);
}

static bool is_directory(const char *path)
{
	struct stat st;
	size_t n = strlen(path);

	assert(n > 0);
	return path[n - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

int kvcm_uris_apply(struct skv_params *p, const struct kvcm_uris *u, struct kvcm_notes *notes,
		    struct skv_error *err)
{
	const bool newer = u->coordination && *u->coordination;
	const char *key = newer ? "kvcm.coordination.uri" : "kvcm.distributed_lock.uri";
	const char *uri = newer ? u->coordination : u->lock ? u->lock : "";
	const char *given = u->registry ? u->registry : "";
	char shared[PATH_ROOM], registry[PATH_ROOM];
	int rc = path_of(key, uri, shared, err);

	if (rc == SKV_OK)
		rc = path_of("kvcm.registry_storage.uri", given, registry, err);
	if (rc != SKV_OK)
		return rc;
	if (p->source[SKV_PARAM_store] != SKV_FROM_DEFAULT)
		return SKV_OK;
	if (*shared) {
		rc = set_store(p, key, shared, err);
		if (rc == SKV_OK && *registry)
			rc = kvcm_note(
				notes, err,
				"kvcm.registry_storage.uri: not used: all metadata lies in the "
				"directory of %s",
				key);
		return rc;
	}
	if (!*registry)
		return skv_param_set(p, SKV_PARAM_store, ":memory:", SKV_FROM_DEFAULT, key, err);
	if (is_directory(registry))
		return set_store(p, "kvcm.registry_storage.uri", registry, err);
	return skv_param_set(p, SKV_PARAM_store, registry, SKV_FROM_FILE,
			     "kvcm.registry_storage.uri", err);
}
