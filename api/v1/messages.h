/*
 * messages.h - shared by the message tables: short names of field flags, and the
 * functions of skv/v1_json.h and skv/v1_pb.h for a table. Internal to messages*.c.
 */
#ifndef SKV_V1_MESSAGES_H
#define SKV_V1_MESSAGES_H

#include <skv/documents.h>
#include <skv/json_out.h>

#include "table.h"

/* Tables of messages_access.c; ends with NULL. */
extern const struct skv_table *const skv_access_tables[];
/* Messages of moves.c and of cluster.c. */
extern const struct skv_table *const skv_move_tables[];
extern const struct skv_table *const skv_cluster_tables[];

enum {
	REQUIRED = SKV_FIELD_REQUIRED,
	SIZE = SKV_FIELD_SIZE | SKV_FIELD_BYTES,
	SHORT = SKV_FIELD_SHORT,
	/* A number of an object that may be omitted. */
	OPTIONAL = SKV_FIELD_SHORT | SKV_FIELD_SIZE,
	BYTES = SKV_FIELD_SHORT | SKV_FIELD_SIZE | SKV_FIELD_BYTES, /* the same of bytes */
	PRESENT = SKV_FIELD_PRESENT,
	NOT = SKV_FIELD_NOT,
	MEND = SKV_FIELD_MEND,
	UNIQUE = SKV_FIELD_UNIQUE,
	FIRST = SKV_FIELD_FIRST,
	LAST = SKV_FIELD_LAST,
};

#define LIST(title, T, member)                                                                     \
	static const struct skv_field T##_list_rows[] = {                                          \
		SKV_LIST(struct skv_##T##_list, member, MESSAGES, 1, .of = &T##_view_table,        \
			 .most = UINT32_MAX),                                                      \
		SKV_TEXT(struct skv_##T##_list, next, 2, .flags = SHORT,                           \
			 .doc = "More follow: the `after` of the next page. Left out at the end.") \
	};                                                                                         \
	static const struct skv_table T##_list_table =                                             \
		SKV_TABLE(title, struct skv_##T##_list, T##_list_rows, .long_answer = true);

/* ---- the functions of skv/v1_json.h and skv/v1_pb.h ------------------------------------------ */

#define READ(form, m, type)                                                             \
	int skv_##form##_read_##m(const struct skv_v1_in *in, const char *text, size_t n, \
				  struct type *out, struct skv_error *err)
#define PB(m, type)                                                          \
	READ(pb, m, type)                                                    \
	{                                                                    \
		return skv_table_read_pb(&m##_table, in, text, n, out, err); \
	}                                                                    \
	void skv_pb_write_##m(struct skv_buf *out, const struct type *v)     \
	{                                                                    \
		skv_table_write_pb(&m##_table, out, v, NULL);                \
	}
#define REQUEST(m, type)                                                       \
	PB(m, type)                                                            \
	READ(v1, m, type)                                                      \
	{                                                                      \
		return skv_table_read_json(&m##_table, in, text, n, out, err); \
	}
#define ANSWER(m, type)                                                  \
	PB(m, type)                                                      \
	void skv_v1_write_##m(struct skv_buf *out, const struct type *v) \
	{                                                                \
		skv_table_write_json(&m##_table, out, v);                \
	}
#define KEYED(m, type)                                                         \
	READ(v1, m, type)                                                      \
	{                                                                      \
		return skv_table_read_json(&m##_table, in, text, n, out, err); \
	}                                                                      \
	READ(pb, m, type)                                                      \
	{                                                                      \
		return skv_table_read_pb(&m##_table, in, text, n, out, err);   \
	}                                                                      \
	void skv_pb_write_##m(struct skv_buf *out, const struct type *v,       \
			      const struct skv_key_input *keys)                \
	{                                                                      \
		skv_table_write_pb(&m##_table, out, v, keys);                  \
	}
/* The functions of skv/documents.h for a table. */
#define DOCUMENT(m, type)                                                                     \
	void skv_document_write_##m(struct skv_buf *out, const struct type *v)                \
	{                                                                                     \
		skv_table_write_pb(&m##_table, out, v, NULL);                                 \
	}                                                                                     \
	int skv_document_read_##m(struct skv_arena *a, const void *bytes, size_t n,           \
				  struct type *out)                                           \
	{                                                                                     \
		const struct skv_v1_in in = { .arena = a, .stored = true };                   \
                                                                                              \
		return skv_table_read_pb(&m##_table, &in, bytes, n, out, NULL);               \
	}

#endif
