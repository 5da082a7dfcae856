/*
 * tenant_isolate.c - slabkv tenant isolate: slab files that only one tenant's processes may open.
 *
 * A directory that a Unix group owns, a storage in it, a group on that, and both the tenant's own.
 * Each step may be repeated. Stateless; one thread.
 */
#include "cli.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"

#define DIRECTORY_MODE 02770 /* slab files in it get its group */
#define OTHERS 07
#define PATH_ROOM 300 /* "/v1/storages/" and a name */

struct isolation {
	const struct skv_cli *cli;
	struct slabkv *kv;
	const char *name;
	const char *root;
	uint64_t capacity;
	bool makes; /* the directory, for: */
	gid_t gid;
	mode_t mode;
};

/* ---- arguments ------------------------------------------------------------------------------- */

static bool read_gid(const char *text, gid_t *out)
{
	const struct group *g = getgrnam(text);
	uint64_t n;

	if (!g && !skv_args_number(text, 0, UINT32_MAX - 1, &n))
		return false;
	*out = g ? g->gr_gid : (gid_t)n;
	return true;
}

static bool read_mode(const char *text, mode_t *out)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 8);

	*out = (mode_t)n | S_ISGID;
	return *text && !*end && n <= 07777 && !(n & OTHERS);
}

static bool read_word(struct isolation *i, const char *field, const char *value)
{
	if (strcmp(field, "root") == 0) {
		i->root = value;
		return *value == '/';
	}
	if (strcmp(field, "capacity") == 0)
		return skv_args_size(value, &i->capacity) && i->capacity > 0;
	if (strcmp(field, "gid") == 0)
		return i->makes = read_gid(value, &i->gid);
	return strcmp(field, "mode") == 0 && read_mode(value, &i->mode);
}

static int read_words(struct isolation *i, char **words, int n)
{
	assert(n >= 0);
	for (int k = 0; k < n; k++) {
		char *value = strchr(words[k], '=');

		if (value)
			*value++ = '\0';
		if (!value || !read_word(i, words[k], value))
			return skv_cli_usage(i->cli, "%s: root=/DIR, capacity=SIZE, gid=GROUP, or "
						     "mode=OCTAL without bits of others",
					     words[k]);
	}
	if (!i->root || !i->capacity)
		return skv_cli_usage(i->cli, "root=DIR and capacity=SIZE?");
	return SKV_EXIT_OK;
}

/* ---- the directory --------------------------------------------------------------------------- */

static bool is_empty(int fd)
{
	DIR *dir = fdopendir(dup(fd));
	const struct dirent *d;
	bool empty = dir != NULL;

	while (empty && (d = readdir(dir)) != NULL)
		empty = strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0;
	if (dir)
		closedir(dir);
	return empty;
}

/* NULL, or why not. */
static const char *give(const struct isolation *i, int fd)
{
	struct stat st;

	assert(fd >= 0);
	if (fstat(fd, &st) != 0)
		return strerror(errno);
	if (st.st_gid == i->gid && (st.st_mode & 07777) == i->mode)
		return NULL;
	if (!is_empty(fd))
		return "it has files, whose group and mode would stay as they are";
	if (fchown(fd, (uid_t)-1, i->gid) != 0 || fchmod(fd, i->mode) != 0)
		return strerror(errno);
	return NULL;
}

static int make_directory(const struct isolation *i)
{
	const char *why = NULL;
	int fd = -1;

	assert(i->makes && !(i->mode & OTHERS) && i->mode & S_ISGID);
	if (mkdir(i->root, 0700) != 0 && errno != EEXIST)
		why = strerror(errno);
	else if ((fd = open(i->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		why = strerror(errno);
	else
		why = give(i, fd);
	if (fd >= 0)
		close(fd);
	if (!why)
		return SKV_EXIT_OK;
	skv_cli_tell(i->cli, "directory", "%s: %s", i->root, why);
	return SKV_EXIT_USAGE;
}

/* ---- objects --------------------------------------------------------------------------------- */

static int put(const struct isolation *i, const char *kind, json_t *body)
{
	char path[PATH_ROOM];

	assert(*kind && *i->name);
	snprintf(path, sizeof path, "/v1/%s/%s", kind, i->name);
	return skv_cli_call(i->cli, i->kv, "PUT", path, body, NULL);
}

/* A group of that name on other storages is somebody's: a put would replace it. */
static int check_group(const struct isolation *i)
{
	json_t *doc, *g, *storages;
	bool other = false;
	size_t at;
	int rc = skv_cli_list(i->cli, i->kv, "/v1/groups", NULL, 0, &doc);

	if (rc != SKV_EXIT_OK)
		return rc;
	json_array_foreach(json_object_get(doc, "groups"), at, g) {
		const char *first;

		storages = json_object_get(g, "storages");
		if (strcmp(skv_cli_text(g, "name"), i->name) != 0)
			continue;
		first = json_string_value(json_array_get(storages, 0));
		other = json_array_size(storages) != 1 || strcmp(first, i->name) != 0;
	}
	json_decref(doc);
	if (!other)
		return SKV_EXIT_OK;
	skv_cli_tell(i->cli, "conflict", "there is a group '%s' already, on other storages",
		     i->name);
	return SKV_EXIT_REFUSED;
}

int skv_cli_isolate(const struct skv_cli *cli, struct slabkv *kv, const char *name, char **words,
		    int n, skv_cli_own_fn own)
{
	struct isolation i = { .cli = cli, .kv = kv, .name = name, .mode = DIRECTORY_MODE };
	int rc = read_words(&i, words, n);

	if (rc == SKV_EXIT_OK)
		rc = check_group(&i);
	if (rc == SKV_EXIT_OK && i.makes)
		rc = make_directory(&i);
	if (rc == SKV_EXIT_OK)
		rc = put(&i, "storages", json_pack("{s:s,s:I}", "root", i.root, "capacity",
						   (json_int_t)i.capacity));
	if (rc == SKV_EXIT_OK)
		rc = own(cli, kv, name);
	if (rc == SKV_EXIT_OK)
		rc = put(&i, "groups", json_pack("{s:[s]}", "storages", name));
	return rc;
}
