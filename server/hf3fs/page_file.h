/*
 * page_file.h - the file in which a page space's clients keep its pages: its path, its known state,
 * and what a check of it means.
 *
 * Pure: no file system, no core.
 */
#ifndef SKV_HF3FS_PAGE_FILE_H
#define SKV_HF3FS_PAGE_FILE_H

#include <skv/hf3fs_api.h>

#include "space.h"

/* As the clients name it: PREFIX.RANK.bin, with .NAMESPACE appended for pools other than the main
 * one; vLLM's PATH/hf3fs_vllm_data_file_RANK. */
struct page_file {
	/* Without client input; "" below an fs-master's directory. */
	char dir[SKV_FILE_PATH_MAX + 1];
	char path[SKV_FILE_PATH_MAX + 1]; /* below dir */
};
/* Returns false if the file is not watched, or impossible: a namespace with a slash in it, a path
 * that is too long. */
bool page_file_of(const struct skv_hf3fs_api_files *o, const struct space *s,
		  struct page_file *out);

/* Known state of the file with the space's pages (inode 0: nothing), as text for the store,
 * NUL-terminated. */
void page_file_put(const struct skv_file_look *known, const char *path, struct skv_buf *out);
/* Returns false for another path, or a malformed text. */
bool page_file_get(const char *text, const char *path, struct skv_file_look *known);

/* An unmounted file system shows another directory at the same path, or none. So a file counts as
 * gone only if its directory is the one it was seen in; if another file is found on another file
 * system, that must last this long. */
#define PAGE_FILE_AWAY_MS 60000u

enum page_file_news {
	PAGE_FILE_SAME,
	PAGE_FILE_LEARN,    /* the same, or the first: remember this look */
	PAGE_FILE_GONE,     /* these three: its pages are lost */
	PAGE_FILE_REPLACED,
	PAGE_FILE_SHRANK,
	PAGE_FILE_ABSENT,   /* the file is absent, which proves nothing */
	PAGE_FILE_ELSEWHERE /* another one, on another file system: wait */
};
enum page_file_news page_file_judge(const struct skv_file_look *known,
				    const struct skv_file_look *seen);
/* ELSEWHERE becomes REPLACED when it has lasted; others stay. *since: ms, when it began, 0: it has
 * not. */
enum page_file_news page_file_settle(enum page_file_news news, uint64_t *since, uint64_t now_ms);

static inline bool page_file_is_lost(enum page_file_news news)
{
	return news >= PAGE_FILE_GONE && news <= PAGE_FILE_SHRANK;
}

#endif
