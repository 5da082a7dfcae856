/*
 * roots.c - checks by the option storage_roots whether a storage may use a directory.
 *
 * Symbolic links are resolved on both sides, so neither a link nor `..` leads out. The directory
 * need not exist yet: the existing part of its path decides. No state; takes no lock, since a dead
 * mount may block the call.
 */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <lock/core.h>
#include <lock/one.h>

/* Is `text` a path in which no step is "." or ".."? */
static bool goes_down(const char *text)
{
	for (size_t n; *text; text += n) {
		text += strspn(text, "/");
		n = strcspn(text, "/");
		if ((n == 1 && text[0] == '.') || (n == 2 && strncmp(text, "..", 2) == 0))
			return false;
	}
	return true;
}

/* Resolves the real path of the existing part of `path`, and appends the rest unchanged. */
static bool resolve(const char *path, char out[PATH_MAX])
{
	char head[PATH_MAX], real[PATH_MAX];
	size_t n = strlen(path);
	struct stat st;
	int length;

	if (*path != '/' || n >= sizeof head || !goes_down(path))
		return false;
	memcpy(head, path, n + 1);
	while (!realpath(head, real)) {
		if (n == 0 || lstat(head, &st) == 0)
			return false; /* a link that leads nowhere yet, or no right to look */
		while (n > 0 && head[--n] != '/')
			;
		head[n] = '\0';
		if (n == 0)
			memcpy(head, "/", 2);
	}
	length = snprintf(out, PATH_MAX, "%s%s", strcmp(real, "/") == 0 ? "" : real, path + n);
	return length > 0 && length < PATH_MAX;
}

static bool is_below(const char *path, const char *top)
{
	const size_t n = strlen(top);

	assert(*path == '/' && *top == '/');
	return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0' || n == 1);
}

int one_root_allowed(const struct skv_core *c, const char *root, struct skv_error *err)
{
	const char *roots = c->o.storage_roots ? c->o.storage_roots : "";
	char one[PATH_MAX], top[PATH_MAX], real[PATH_MAX];
	bool known;

	if (!*roots || !*root)
		return SKV_OK;
	known = resolve(root, real);
	for (size_t n; known && *roots; roots += n) {
		roots += strspn(roots, ", ");
		n = strcspn(roots, ", ");
		if (n == 0 || n >= sizeof one)
			continue;
		memcpy(one, roots, n);
		one[n] = '\0';
		if (realpath(one, top) && is_below(real, top))
			return SKV_OK;
	}
	return skv_fail(err, SKV_E_FORBIDDEN, "root",
			"storages lie below the directories of storage_roots only, after symbolic "
			"links: ask who runs the manager");
}
