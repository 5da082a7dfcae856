/*
 * page_files.c - chooses who stats the clients' page files: parameters pages_file_prefix,
 * pages_vllm_path and pages_fs_master.
 *
 * Stateless.
 */
#include "page_files.h"

#include <string.h>

#include <skv/limits.h>
#include <skv/mem.h>

#define LOOK_MS 1000u /* between two checks of a page file */

static int look(void *ctx, const char *dir, const char *path, struct skv_file_look *out,
		struct skv_error *err)
{
	return skv_file_looker_look(ctx, dir, path, out, err);
}

/* On a local mount an absolute path, else one below the directory of the fs-masters' URLs. */
static int check_path(const char *name, const char *path, bool remote, struct skv_error *err)
{
	if (!*path || (*path == '/') != remote)
		return SKV_OK;
	return skv_fail(
		err, SKV_E_INVALID, name,
		remote ? "%s: '%.64s' begins with a slash; with pages_fs_master it is a path below "
			 "the directory of its URLs"
		       : "%s: '%.64s' is not an absolute path",
		name, path);
}

/* Splits `text` in place. */
static int split(char *text, const char *urls[SKV_MAX_FS_MASTERS], uint32_t *n,
		 struct skv_error *err)
{
	char *rest = NULL;

	for (char *at = strtok_r(text, ", ", &rest); at; at = strtok_r(NULL, ", ", &rest)) {
		if (*n == SKV_MAX_FS_MASTERS)
			return skv_fail(err, SKV_E_INVALID, "pages_fs_master",
					"pages_fs_master: %u URLs at most", SKV_MAX_FS_MASTERS);
		urls[(*n)++] = at;
	}
	return SKV_OK;
}

int skv_page_files_open(const struct skv_params *p, struct skv_file_looker **looker,
			struct skv_hf3fs_api_files *out, struct skv_error *err)
{
	const bool remote = *p->pages_fs_master != '\0';
	const char *urls[SKV_MAX_FS_MASTERS];
	char *text;
	uint32_t n = 0;
	int rc = check_path("pages_file_prefix", p->pages_file_prefix, remote, err);

	*out = (struct skv_hf3fs_api_files){ .prefix = p->pages_file_prefix,
					     .vllm_path = p->pages_vllm_path,
					 .look_ms = LOOK_MS, .look = look };
	if (rc == SKV_OK)
		rc = check_path("pages_vllm_path", p->pages_vllm_path, remote, err);
	if (rc != SKV_OK || (!*p->pages_file_prefix && !*p->pages_vllm_path))
		return rc;
	text = skv_strdup(p->pages_fs_master);
	rc = text ? split(text, urls, &n, err) : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = skv_file_looker_open(urls, n, p->fs_master_token_file, looker, err);
	skv_free(text);
	out->ctx = *looker;
	return rc;
}
