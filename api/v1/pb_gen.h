/*
 * pb_gen.h - the cold messages of kvblock.proto go through the code that protobuf-c generates; this is
 * what stands between that and us. Internal to api/v1.
 */
#ifndef KVB_V1_PB_GEN_H
#define KVB_V1_PB_GEN_H

#include "kvblock.pb-c.h"
#include "pb.h"

/* ---- reading ------------------------------------------------------------------------------------ */

/* Parses into the arena. What protobuf-c lets pass is refused before, by the field's name: texts that
 * are not UTF-8 or hold a NUL, numbers over 32 bits, other wire types, more than KVB_PB_FIELDS fields.
 * NULL after a failure of the document. */
void *kvb_pb_unpack(struct kvb_pbdoc *d, const ProtobufCMessageDescriptor *type, const char *text,
		    size_t n);
#define KVB_PB_FIELDS 4096u

/* Checks of a text that protobuf-c made; returns it, or "" after a failure. */
const char *kvb_pb_check_name(struct kvb_pbdoc *d, const char *s, const char *name, uint32_t index);
const char *kvb_pb_check_text(struct kvb_pbdoc *d, const char *s, const char *name, size_t max);

/* ---- writing ------------------------------------------------------------------------------------ */

/* Memory of one message that is built and packed. After a failure the pieces are NULL and kvb_pb_pack
 * fails the buffer. */
struct kvb_pbmake {
	struct kvb_arena arena;
	bool failed;
};
static inline void kvb_pb_make_begin(struct kvb_pbmake *m)
{
	kvb_arena_init(&m->arena);
	m->failed = false;
}
void *kvb_pb_make(struct kvb_pbmake *m, size_t n, size_t size);
/* A text as it may travel: bytes that are not UTF-8 become '?'. Never NULL. */
char *kvb_pb_make_text(struct kvb_pbmake *m, const char *s);
/* Appends the message to `out` (NULL or a failure before: out->failed) and releases the memory. */
void kvb_pb_pack(struct kvb_pbmake *m, struct kvb_buf *out, const void *message);

/* `n` pointers to messages of `size` bytes, initialised: for repeated fields. NULL: no memory. */
void **kvb_pb_make_messages(struct kvb_pbmake *m, size_t n, size_t size, void (*init)(void *));

#endif
