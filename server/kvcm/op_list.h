/*
 * op_list.h - declares the functions named by the rows of ops_table.h.
 */
#ifndef KVCM_OP_LIST_H
#define KVCM_OP_LIST_H

#include "op.h"
#include "ops_table.h"

#define RUN_PROTOTYPE(service, name, path, ...) \
	int kvcm_run_##service##_##path(struct kvcm_request *k);
KVCM_OPS(RUN_PROTOTYPE)
#undef RUN_PROTOTYPE

int kvcm_write_locations(struct kvcm_request *k);
int kvcm_write_by_backend(struct kvcm_request *k);
int kvcm_write_cache_meta(struct kvcm_request *k);
int kvcm_write_cache_meta_detail(struct kvcm_request *k);
int kvcm_write_start(struct kvcm_request *k);
int kvcm_write_finish(struct kvcm_request *k);

#define PAGE_PROTOTYPES(name, path, role, flags)           \
	int kvcm_page_##name##_run(struct skv_request *c); \
	void kvcm_page_##name##_write(struct skv_request *c);
KVCM_PAGES(PAGE_PROTOTYPES)
#undef PAGE_PROTOTYPES

#endif
