/*
 * json_in.h - strict, typed reading of one JSON document, internal to api/v1.
 *
 * A `struct skv_jdoc` is the document; the first failure sticks to it, later reads return 0 or NULL
 * and change nothing, so that a message reader is a straight list of fields with one check at its
 * end. A `struct skv_jat` is a value and the place where it stands; places link upwards through the
 * caller's stack frames and are rendered ("specs[0].size") only when something is wrong there.
 *
 * No state; one thread per document.
 */
#ifndef SKV_V1_JSON_IN_H
#define SKV_V1_JSON_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <skv/json.h>
#include <skv/status.h>
#include <skv/v1_json.h>

#define SKV_JSON_DEPTH 16u /* nesting that any message may have */

/* How many JSON values a document may hold, checked before any memory is spent on them. */
#define SKV_JMAX_OBJECT 4096u
#define SKV_JMAX_KEYS (2 * SKV_MAX_KEYS)
#define SKV_JMAX_FINISH ((SKV_MAX_SPECS + 2) * SKV_MAX_KEYS)

struct skv_jdoc {
	const struct skv_v1_in *in;
	struct skv_error *err;
	int status;   /* first failure */
	const void *over; /* a message whose fields keep their values where the text has none */
};

struct skv_jat {
	const struct skv_jat *up; /* NULL: the document itself */
	const char *name;         /* field of `up`, or NULL: element `index` of it */
	size_t name_n;
	size_t index;
	const struct skv_json_node *v; /* NULL: absent */
};

/* The message for an invalid name; for SKV_MAX_NAME. */
#define SKV_NAME_RULE \
	"a name is 1 to %u of A-Z a-z 0-9 . _ - : = @ + , and begins with a letter, digit or _"
#define SKV_MODEL_NAME_RULE                                                                     \
	"a name is 1 to %u of A-Z a-z 0-9 . _ - : = @ + , in parts with a / between them that " \
	"begin with a letter, "                                                                 \
	"digit or _"

/* Parses the text, which must be one JSON object. Returns the place of that object; after a failure
 * its value is NULL and everything read from it is absent, silently. Pair with skv_jdoc_close. */
struct skv_jat skv_jdoc_open(struct skv_jdoc *d, const struct skv_v1_in *in, const char *text,
			     size_t n, size_t max_values, struct skv_error *err);
/* SKV_OK or the first failure. */
static inline int skv_jdoc_close(const struct skv_jdoc *d) { return d->status; }

/* Fails the document at a place (unless it has failed already). */
void skv_jdoc_fail(struct skv_jdoc *d, const struct skv_jat *at, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static inline bool skv_jdoc_ok(const struct skv_jdoc *d) { return d->status == SKV_OK; }

/* Zeroed memory of the arena; fails the document when there is none. */
void *skv_jdoc_alloc(struct skv_jdoc *d, size_t n, size_t size);

/* Checks that `at` is an object with no fields but `names` (NULL-terminated). */
void skv_jat_object(struct skv_jdoc *d, const struct skv_jat *at, const char *const *names);
/* A field of an object, absent (v NULL) if it is not there. A JSON null is there. */
static inline struct skv_jat skv_jat_get(const struct skv_jat *object, const char *name)
{
	size_t n = strlen(name); /* known to the compiler: names are literals */

	return (struct skv_jat){
		.up = object, .name = name, .name_n = n, .v = skv_json_get(object->v, name, n)
	};
}
/* Length of an array, which must be min..max; above that SKV_E_TOO_LARGE. */
uint32_t skv_jat_array(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min, uint32_t max);
/* The first element of an array that has one; skv_jat_next moves on to the next
 * as long as there is one. */
static inline struct skv_jat skv_jat_first(const struct skv_jat *array)
{
	return (struct skv_jat){ .up = array, .v = array->v ? skv_json_first(array->v) : NULL };
}
static inline void skv_jat_next(struct skv_jat *item)
{
	item->v = skv_json_next(item->v);
	item->index++;
}
static inline bool skv_jat_is(const struct skv_jat *at, enum skv_json_type type)
{
	return at->v && at->v->type == type;
}

/* The typed readers fail the document when the value is absent, of another type or out of range. */
bool skv_jat_bool(struct skv_jdoc *d, const struct skv_jat *at);
/* JSON integer, or decimal string for what JSON integers of 63 bits cannot hold. */
uint64_t skv_jat_u64(struct skv_jdoc *d, const struct skv_jat *at, uint64_t min, uint64_t max);
uint32_t skv_jat_u32(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min, uint32_t max);
/* A field of `object`, or, where it is absent, false and `otherwise`. */
bool skv_jat_flag(struct skv_jdoc *d, const struct skv_jat *object, const char *name);
uint32_t skv_jat_number(struct skv_jdoc *d, const struct skv_jat *object, const char *name,
			uint32_t max, uint32_t otherwise);
/* Bytes: as skv_jat_u64, or a string with suffix K, M, G or T (powers of 1024). */
uint64_t skv_jat_size(struct skv_jdoc *d, const struct skv_jat *at, uint64_t min, uint64_t max);
/* Text of min..max bytes, copied into the arena. "" after a failure, never NULL. */
const char *skv_jat_string(struct skv_jdoc *d, const struct skv_jat *at, size_t min, size_t max);
/* The same for a name (skv_name_valid). */
const char *skv_jat_name(struct skv_jdoc *d, const struct skv_jat *at);
/* Of an instance or a tenant (skv_model_name_valid). */
const char *skv_jat_model_name(struct skv_jdoc *d, const struct skv_jat *at);
/* Array of names, min..max of them, none twice; of the second of model names. */
const char *const *skv_jat_names(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min,
				 uint32_t max, uint32_t *n);
const char *const *skv_jat_model_names(struct skv_jdoc *d, const struct skv_jat *at, uint32_t min,
				       uint32_t max, uint32_t *n);
/* 32 hex digits. */
struct skv_key skv_jat_key_hex(struct skv_jdoc *d, const struct skv_jat *at);
/* 16 hex digits. */
uint64_t skv_jat_hex64(struct skv_jdoc *d, const struct skv_jat *at);
/* Index of the text in `words` (NULL-terminated). */
uint32_t skv_jat_word(struct skv_jdoc *d, const struct skv_jat *at, const char *const *words);

/* ---- scan.c: where a fault is ---------------------------------------------------------------- */

enum skv_jscan { SKV_JSCAN_END, SKV_JSCAN_DEEP, SKV_JSCAN_MANY };
/* Walks JSON text without allocating, no further than byte `n`, until deeper than SKV_JSON_DEPTH or
 * over *values values; then *values is how many it saw. `field` gets the JSON path of where it
 * stopped (cut to fit). The text need not be valid: the walk only ever goes forward. */
enum skv_jscan skv_json_scan(const char *text, size_t n, size_t *values, char field[SKV_FIELD_MAX]);

#endif
