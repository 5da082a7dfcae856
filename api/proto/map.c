/*
 * map.c - completes maps that were read entry by entry: missing values and duplicate keys.
 *
 * The last entry of a key wins. Keys are sorted, not compared pairwise: nobody should be able to
 * send a map that takes quadratic time. Stateless; any thread.
 */
#include "message.h"

#include <assert.h>
#include <stdlib.h>

struct entry {
	ProtobufCMessage *m;
	size_t at; /* position of the entry */
};

/* Any order that separates different keys. */
static int compare_keys(const struct entry *a, const struct entry *b,
			const ProtobufCFieldDescriptor *f)
{
	const void *of_a = skv_proto_member(a->m, f), *of_b = skv_proto_member(b->m, f);

	if (f->type == PROTOBUF_C_TYPE_STRING)
		return strcmp(*(char *const *)of_a, *(char *const *)of_b);
	return memcmp(of_a, of_b, skv_proto_value_size(f->type));
}

/* `key`: the field. Equal keys are ordered by position. */
static int compare(const void *a, const void *b, void *key)
{
	const struct entry *x = a, *y = b;
	int order = compare_keys(x, y, key);

	return order ? order : x->at < y->at ? -1 : 1;
}

/* A message that an entry omits is an empty one. */
static bool complete(struct skv_proto_in *in, const ProtobufCMessage *entry)
{
	const ProtobufCFieldDescriptor *f = &entry->descriptor->fields[1];
	ProtobufCMessage **value = skv_proto_member(entry, f);

	if (f->type == PROTOBUF_C_TYPE_MESSAGE && !*value)
		*value = skv_proto_new(in, f->descriptor);
	return in->status == SKV_OK;
}

bool skv_proto_end_map(struct skv_proto_in *in, ProtobufCMessage *m,
		       const ProtobufCFieldDescriptor *f)
{
	const ProtobufCFieldDescriptor *key =
		((const ProtobufCMessageDescriptor *)f->descriptor)->fields;
	ProtobufCMessage **all = *(ProtobufCMessage ***)skv_proto_member(m, f);
	size_t *count = skv_proto_count(m, f), n = *count, kept = 0;
	struct entry *sorted;

	assert(skv_proto_is_map(m->descriptor, f));
	for (size_t i = 0; i < n; i++)
		if (!complete(in, all[i]))
			return false;
	if (n < 2)
		return true;
	sorted = skv_proto_alloc(in, n, sizeof *sorted);
	if (!sorted)
		return false;
	for (size_t i = 0; i < n; i++)
		sorted[i] = (struct entry){ all[i], i };
	qsort_r(sorted, n, sizeof *sorted, compare, (void *)(uintptr_t)key);
	for (size_t i = 0; i + 1 < n; i++)
		if (compare_keys(&sorted[i], &sorted[i + 1], key) == 0)
			all[sorted[i].at] = NULL;
	for (size_t i = 0; i < n; i++)
		if (all[i])
			all[kept++] = all[i];
	assert(kept > 0 && kept <= n);
	*count = kept;
	return true;
}
