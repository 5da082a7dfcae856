/*
 * pages.h - what the files of `kvblock pages` share: which page spaces are meant, calls, progress.
 *
 * A page space is (tenant, rank, namespace), as SGLang's and vLLM's hf3fs backends name it; in their persistence file
 * it is "rank:namespace".
 */
#ifndef KVB_CLI_PAGES_H
#define KVB_CLI_PAGES_H

#include <kvb/arena.h>
#include <kvb/bytes.h>
#include <kvb/json.h>

#include "cli.h"

#define KVB_PAGES_SPACES_MAX 256u

struct kvb_pages_space {
	int64_t rank;
	const char *ns; /* borrowed */
};

struct kvb_pages {
	struct kvb_cli *cli;
	struct kvblock *kv;
	const char *tenant;
	struct kvb_pages_space spaces[KVB_PAGES_SPACES_MAX]; /* asked for */
	uint32_t n_spaces;                                   /* 0: all */
	uint32_t portion; /* keys of one call */
	struct kvb_arena arena; /* of the newest answer */
	uint64_t told_us;       /* when progress was last told */
};

/* "0:kv", or "0", which is the same. The namespace points into `text`. */
bool kvb_pages_space_parse(const char *text, struct kvb_pages_space *out);
/* No spaces were asked for, or this is one of them. */
bool kvb_pages_wanted(const struct kvb_pages *p, const struct kvb_pages_space *s);
/* One call: `body` NULL is a GET. The answer, an object, lives until the next call. An exit code after printing why. */
int kvb_pages_call(struct kvb_pages *p, const char *path, struct kvb_buf *body, const struct kvb_json_node **answer);
/* Begins a body that names the space. */
void kvb_pages_body(const struct kvb_pages *p, const struct kvb_pages_space *s, struct kvb_buf *out);
/* An integer of an object, 0 if there is none. */
uint64_t kvb_pages_u64(const struct kvb_json_node *object, const char *name);
/* Tells once a second how far it is, on stderr. */
void kvb_pages_progress(struct kvb_pages *p, const char *what, const struct kvb_pages_space *s, uint64_t done,
			uint64_t of);
/* A scalar as it stood in some JSON text. */
void kvb_pages_put_scalar(struct kvb_buf *out, const struct kvb_json_node *v);
/* All spaces of the tenant, by the manager's list. */
int kvb_pages_find(struct kvb_pages *p, struct kvb_pages_space *out, uint32_t *n, struct kvb_arena *names);

/* pages_import.c, pages_export.c. `path` "-": stdin, stdout. Exit codes. */
int kvb_pages_import(struct kvb_pages *p, const char *path);
int kvb_pages_export(struct kvb_pages *p, const char *path);

#endif
