/*
 * document.h - format of the registry's documents, shared by writer (registry.c) and reader
 * (recovery/load.c).
 */
#ifndef SKV_CORE_JOURNAL_DOCUMENT_H
#define SKV_CORE_JOURNAL_DOCUMENT_H

#include <stdint.h>
#include <stddef.h>

struct skv_buf;
struct skv_error;
struct skv_rd;

#define DOC_VERSION 2u /* version written; version 1 lacks the newer fields */
#define DOC_NAMED 3u   /* an instance that keeps names, with a byte that says so */
#define DOC_FIELDS 4u  /* fields follow */

enum storage_field {
	STORAGE_HIGH_PERCENT = 1,
	STORAGE_LOW_PERCENT = 2,
	STORAGE_DRAINING = 16,
	STORAGE_CHUNK = 32,
	STORAGE_ANY_MOUNT = 33,
	STORAGE_FS_MASTER = 34, /* a string; once per fs-master */
};
enum file_field { FIELD_ASKED = 1, FIELD_GONE = 2, FIELD_LOST = 3 };
enum group_field {
	GROUP_HIGH_PERCENT = 1,
	GROUP_LOW_PERCENT = 2,
	GROUP_PIN_PERCENT = 3,
	GROUP_SHARE = 4,
	GROUP_POLICY = 5 /* a text */,
	GROUP_TTL_MS = 6,
	GROUP_TIER_OF = 7 /* a text */,
	GROUP_WRITE_THROUGH = 8,
	GROUP_PROMOTE_AFTER = 9,
	GROUP_REPLICATE = 10
};
enum instance_field { INSTANCE_WEIGHT = 1, INSTANCE_CAPACITY = 2 }; /* after the byte of version
								     * 3 */

void doc_put_text(struct skv_buf *out, const char *s);
void doc_put_field(struct skv_buf *out, unsigned tag, uint64_t value);
/* Finishes the document at `at`, whose fields begin at `fields`. */
void doc_end_fields(struct skv_buf *out, size_t at, size_t fields);
/* The tag of the next field; 0 = no more. */
uint64_t doc_next_field(struct skv_rd *in, unsigned format);
uint32_t doc_get_small(struct skv_rd *in, uint32_t max);
/* A NUL-terminated copy of a string of the document, NULL on failure. */
char *doc_get_text(struct skv_rd *in, size_t max);
/* The document's version; 0 = not a document of ours. */
unsigned doc_version(struct skv_rd *in, unsigned newest);
int doc_bad(struct skv_error *err, const char *key);

#endif
