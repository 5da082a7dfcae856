/*
 * pages.h - shared by the files of `slabkv pages`: selected page spaces, calls, progress.
 *
 * A page space is (tenant, rank, namespace), as SGLang's and vLLM's hf3fs backends name it; in
 * their persistence file it is "rank:namespace".
 */
#ifndef SKV_CLI_PAGES_H
#define SKV_CLI_PAGES_H

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/json.h>

#include "cli.h"

#define SKV_PAGES_SPACES_MAX 256u

struct skv_pages_space {
	int64_t rank;
	const char *ns; /* borrowed */
};

struct skv_pages {
	struct skv_cli *cli;
	struct slabkv *kv;
	const char *tenant;
	struct skv_pages_space spaces[SKV_PAGES_SPACES_MAX]; /* the requested spaces */
	uint32_t n_spaces;                                   /* 0: all */
	uint32_t portion; /* keys of one call */
	struct skv_arena arena; /* of the newest answer */
	uint64_t told_us;       /* time of the last progress report */
};

/* "0:kv", or "0", which is the same. The namespace points into `text`. */
bool skv_pages_space_parse(const char *text, struct skv_pages_space *out);
/* No spaces were asked for, or this is one of them. */
bool skv_pages_wanted(const struct skv_pages *p, const struct skv_pages_space *s);
/* Makes a call; `body` NULL means GET. The answer, an object, lives until the next call. Returns 0,
 * or an exit code after printing the reason. */
int skv_pages_call(struct skv_pages *p, const char *path, struct skv_buf *body,
		   const struct skv_json_node **answer);
/* Begins a body that names the space. */
void skv_pages_body(const struct skv_pages *p, const struct skv_pages_space *s,
		    struct skv_buf *out);
/* Returns an integer of an object, or 0 if there is none. */
uint64_t skv_pages_u64(const struct skv_json_node *object, const char *name);
/* Prints its progress on stderr once a second. */
void skv_pages_progress(struct skv_pages *p, const char *what, const struct skv_pages_space *s,
			uint64_t done, uint64_t of);
/* Writes a scalar as it was in some JSON text. */
void skv_pages_put_scalar(struct skv_buf *out, const struct skv_json_node *v);
/* All spaces of the tenant, by the manager's list. */
int skv_pages_find(struct skv_pages *p, struct skv_pages_space *out, uint32_t *n,
		   struct skv_arena *names);

/* pages_import.c, pages_export.c. `path` "-": stdin, stdout. Exit codes. */
int skv_pages_import(struct skv_pages *p, const char *path);
int skv_pages_export(struct skv_pages *p, const char *path);

#endif
