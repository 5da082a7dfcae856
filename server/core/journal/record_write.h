/*
 * record_write.h - shared by encoders of records.
 */
#ifndef SKV_CORE_JOURNAL_RECORD_WRITE_H
#define SKV_CORE_JOURNAL_RECORD_WRITE_H

#include <stddef.h>
#include <stdint.h>

struct skv_buf;
struct volume;

/* Begins a record; returns the position that record_seal needs. */
size_t record_begin(struct skv_buf *out, uint8_t type);
void record_seal(struct skv_buf *out, size_t at);
void record_put_place(struct skv_buf *out, const struct volume *volume, uint32_t slab);

#endif
