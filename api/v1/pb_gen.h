/*
 * pb_gen.h - the cold messages of slabkv.proto go through the code that protobuf-c generates; this is
 * what stands between that and us. Internal to api/v1.
 */
#ifndef SKV_V1_PB_GEN_H
#define SKV_V1_PB_GEN_H

#include "slabkv.pb-c.h"
#include "pb.h"

/* ---- reading ------------------------------------------------------------------------------------ */

/* Parses into the arena. What protobuf-c lets pass is refused before, by the field's name: texts that
 * are not UTF-8 or hold a NUL, numbers over 32 bits, other wire types, more than SKV_PB_FIELDS fields.
 * NULL after a failure of the document. */
void *skv_pb_unpack(struct skv_pbdoc *d, const ProtobufCMessageDescriptor *type, const char *text,
		    size_t n);
#define SKV_PB_FIELDS 4096u

/* Checks of a text that protobuf-c made; returns it, or "" after a failure. */
const char *skv_pb_check_name(struct skv_pbdoc *d, const char *s, const char *name, uint32_t index);
const char *skv_pb_check_model_name(struct skv_pbdoc *d, const char *s, const char *name, uint32_t index);
const char *skv_pb_check_text(struct skv_pbdoc *d, const char *s, const char *name, size_t max);

/* ---- writing ------------------------------------------------------------------------------------ */

/* Memory of one message that is built and packed. After a failure the pieces are NULL and skv_pb_pack
 * fails the buffer. */
struct skv_pbmake {
	struct skv_arena arena;
	bool failed;
};
static inline void skv_pb_make_begin(struct skv_pbmake *m)
{
	skv_arena_init(&m->arena);
	m->failed = false;
}
void *skv_pb_make(struct skv_pbmake *m, size_t n, size_t size);
/* A text as it may travel: bytes that are not UTF-8 become '?'. Never NULL. */
char *skv_pb_make_text(struct skv_pbmake *m, const char *s);
/* Appends the message to `out` (NULL or a failure before: out->failed) and releases the memory. */
void skv_pb_pack(struct skv_pbmake *m, struct skv_buf *out, const void *message);

/* `n` pointers to messages of `size` bytes, initialised: for repeated fields. NULL: no memory. */
void **skv_pb_make_messages(struct skv_pbmake *m, size_t n, size_t size, void (*init)(void *));

#endif
