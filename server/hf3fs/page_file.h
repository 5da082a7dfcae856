/*
 * page_file.h - the file that a page space's clients keep its pages in: where it lies, what is known of it, what a look means.
 *
 * Pure: no file system, no core.
 */
#ifndef SKV_HF3FS_PAGE_FILE_H
#define SKV_HF3FS_PAGE_FILE_H

#include <skv/hf3fs_api.h>

#include "space.h"

/* As the clients make it: PREFIX.RANK.bin, other pools than the main one .NAMESPACE behind it; of vLLM's
 * PATH/hf3fs_vllm_data_file_RANK. */
struct page_file {
	char dir[SKV_FILE_PATH_MAX + 1];  /* in which nothing is that a client has said; "" below an fs-master's directory */
	char path[SKV_FILE_PATH_MAX + 1]; /* below dir */
};
/* False: it is not to be looked at, or cannot have one: a namespace with a slash in it, a path that is too long. */
bool page_file_of(const struct skv_hf3fs_api_files *o, const struct space *s, struct page_file *out);

/* What is known of the file that has the space's pages (inode 0: nothing), as text for the store, NUL-terminated. */
void page_file_put(const struct skv_file_look *known, const char *path, struct skv_buf *out);
/* False: it is of another path, or no such text. */
bool page_file_get(const char *text, const char *path, struct skv_file_look *known);

/* A file system that is away shows another directory at the same path, or none. So a file counts as gone only where the
 * directory is the one that it was seen in; and where another file is found on another file system, that must last for so long. */
#define PAGE_FILE_AWAY_MS 60000u

enum page_file_news {
	PAGE_FILE_SAME,
	PAGE_FILE_LEARN,    /* the same, or the first one: what was seen is what is known now */
	PAGE_FILE_GONE,     /* these three: its pages are lost */
	PAGE_FILE_REPLACED,
	PAGE_FILE_SHRANK,
	PAGE_FILE_ABSENT,   /* it is not there, and nothing follows from that */
	PAGE_FILE_ELSEWHERE /* another one, on another file system: what the time says */
};
enum page_file_news page_file_judge(const struct skv_file_look *known, const struct skv_file_look *seen);
/* ELSEWHERE becomes REPLACED when it has lasted; the rest stays as it is. *since: ms, when it was first so, 0: it is not. */
enum page_file_news page_file_settle(enum page_file_news news, uint64_t *since, uint64_t now_ms);
static inline bool page_file_is_lost(enum page_file_news news) { return news >= PAGE_FILE_GONE && news <= PAGE_FILE_SHRANK; }

#endif
