/* page_files.h - who looks at the files of SGLang's and vLLM's clients, as parameters say it. */
#ifndef SKV_MAIN_PAGE_FILES_H
#define SKV_MAIN_PAGE_FILES_H

#include <skv/hf3fs_api.h>
#include <skv/params.h>
#include <skv/storage.h>

/* *looker stays NULL where no files are to be looked at; else skv_file_looker_close, after the API. SKV_E_INVALID names the
 * parameter. */
int skv_page_files_open(const struct skv_params *p, struct skv_file_looker **looker, struct skv_hf3fs_api_files *out,
			struct skv_error *err);

#endif
