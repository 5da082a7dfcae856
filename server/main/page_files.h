/* page_files.h - sets from the parameters which process stats the page files of SGLang's and vLLM's
 * clients. */
#ifndef SKV_MAIN_PAGE_FILES_H
#define SKV_MAIN_PAGE_FILES_H

#include <skv/hf3fs_api.h>
#include <skv/params.h>
#include <skv/storage.h>

/* *looker stays NULL if no files are to be watched; else release with skv_file_looker_close, after
 * the API. SKV_E_INVALID names the parameter. */
int skv_page_files_open(const struct skv_params *p, struct skv_file_looker **looker,
			struct skv_hf3fs_api_files *out, struct skv_error *err);

#endif
