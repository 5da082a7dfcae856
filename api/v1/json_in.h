/*
 * json_in.h - strict, typed reading of one JSON document, internal to api/v1.
 *
 * A `struct kvb_jdoc` is the document; the first failure sticks to it, later reads return 0 or NULL
 * and change nothing, so that a message reader is a straight list of fields with one check at its end.
 * A `struct kvb_jat` is a value and the place where it stands; places link upwards through the
 * caller's stack frames and are rendered ("specs[0].size") only when something is wrong there.
 *
 * No state; one thread per document.
 */
#ifndef KVB_V1_JSON_IN_H
#define KVB_V1_JSON_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <kvb/json.h>
#include <kvb/status.h>
#include <kvb/v1_json.h>

#define KVB_JSON_DEPTH 16u /* nesting that any message may have */

/* How many JSON values a document may hold, checked before any memory is spent on them. */
#define KVB_JMAX_OBJECT 4096u
#define KVB_JMAX_KEYS (2 * KVB_MAX_KEYS)
#define KVB_JMAX_FINISH ((KVB_MAX_SPECS + 2) * KVB_MAX_KEYS)
#define KVB_JMAX_ANSWER (8u * KVB_MAX_SPECS * KVB_MAX_KEYS + (4u << 20))

struct kvb_jdoc {
	const struct kvb_v1_in *in;
	struct kvb_error *err;
	int status;   /* first failure */
	bool lenient; /* an answer: unknown fields are skipped */
};

struct kvb_jat {
	const struct kvb_jat *up; /* NULL: the document itself */
	const char *name;         /* field of `up`, or NULL: element `index` of it */
	size_t name_n;
	size_t index;
	const struct kvb_json_node *v; /* NULL: absent */
};

enum kvb_jdir { KVB_JREQUEST, KVB_JANSWER };

/* Parses the text, which must be one JSON object. Returns the place of that object; after a failure
 * its value is NULL and everything read from it is absent, silently. Pair with kvb_jdoc_close. */
struct kvb_jat kvb_jdoc_open(struct kvb_jdoc *d, const struct kvb_v1_in *in, const char *text, size_t n,
			     enum kvb_jdir dir, size_t max_values, struct kvb_error *err);
/* KVB_OK or the first failure. */
static inline int kvb_jdoc_close(const struct kvb_jdoc *d) { return d->status; }

/* Fails the document at a place (unless it has failed already). */
void kvb_jdoc_fail(struct kvb_jdoc *d, const struct kvb_jat *at, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static inline bool kvb_jdoc_ok(const struct kvb_jdoc *d) { return d->status == KVB_OK; }

/* Zeroed memory of the arena; fails the document when there is none. */
void *kvb_jdoc_alloc(struct kvb_jdoc *d, size_t n, size_t size);

/* Checks that `at` is an object with no fields but `names` (NULL-terminated); answers may have more. */
void kvb_jat_object(struct kvb_jdoc *d, const struct kvb_jat *at, const char *const *names);
/* A field of an object, absent (v NULL) if it is not there. A JSON null is there. */
static inline struct kvb_jat kvb_jat_get(const struct kvb_jat *object, const char *name)
{
	size_t n = strlen(name); /* known to the compiler: names are literals */

	return (struct kvb_jat){
		.up = object, .name = name, .name_n = n, .v = kvb_json_get(object->v, name, n)
	};
}
/* Length of an array, which must be min..max; above that KVB_E_TOO_LARGE. */
uint32_t kvb_jat_array(struct kvb_jdoc *d, const struct kvb_jat *at, uint32_t min, uint32_t max);
/* The first element of an array that has one; kvb_jat_next moves on to the next as long as there is one. */
static inline struct kvb_jat kvb_jat_first(const struct kvb_jat *array)
{
	return (struct kvb_jat){ .up = array, .v = array->v ? kvb_json_first(array->v) : NULL };
}
static inline void kvb_jat_next(struct kvb_jat *item)
{
	item->v = kvb_json_next(item->v);
	item->index++;
}
static inline bool kvb_jat_is(const struct kvb_jat *at, enum kvb_json_type type)
{
	return at->v && at->v->type == type;
}

/* The typed readers fail the document when the value is absent, of another type or out of range. */
bool kvb_jat_bool(struct kvb_jdoc *d, const struct kvb_jat *at);
/* JSON integer, or decimal string for what JSON integers of 63 bits cannot hold. */
uint64_t kvb_jat_u64(struct kvb_jdoc *d, const struct kvb_jat *at, uint64_t min, uint64_t max);
uint32_t kvb_jat_u32(struct kvb_jdoc *d, const struct kvb_jat *at, uint32_t min, uint32_t max);
/* Bytes: as kvb_jat_u64, or a string with suffix K, M, G or T (powers of 1024). */
uint64_t kvb_jat_size(struct kvb_jdoc *d, const struct kvb_jat *at, uint64_t min, uint64_t max);
/* Text of min..max bytes, copied into the arena. "" after a failure, never NULL. */
const char *kvb_jat_string(struct kvb_jdoc *d, const struct kvb_jat *at, size_t min, size_t max);
/* The same for a name (kvb_name_valid). */
const char *kvb_jat_name(struct kvb_jdoc *d, const struct kvb_jat *at);
/* Array of names, min..max of them, none twice. */
const char *const *kvb_jat_names(struct kvb_jdoc *d, const struct kvb_jat *at, uint32_t min,
				 uint32_t max, uint32_t *n);
/* 32 hex digits. */
struct kvb_key kvb_jat_key_hex(struct kvb_jdoc *d, const struct kvb_jat *at);
/* 16 hex digits. */
uint64_t kvb_jat_hex64(struct kvb_jdoc *d, const struct kvb_jat *at);
/* Index of the text in `words` (NULL-terminated). */
uint32_t kvb_jat_word(struct kvb_jdoc *d, const struct kvb_jat *at, const char *const *words);

/* ---- scan.c: where a fault is --------------------------------------------------------------------- */

enum kvb_jscan { KVB_JSCAN_END, KVB_JSCAN_DEEP, KVB_JSCAN_MANY };
/* Walks JSON text without allocating, no further than byte `n`, until deeper than KVB_JSON_DEPTH or
 * over *values values; then *values is how many it saw. `field` gets the JSON path of where it stopped
 * (cut to fit). The text need not be valid: the walk only ever goes forward. */
enum kvb_jscan kvb_json_scan(const char *text, size_t n, size_t *values, char field[KVB_FIELD_MAX]);

#endif
