/*
 * json_in.h - strict, typed reading of one JSON document, the reference.
 *
 * A `struct ref_jdoc` is the document; the first failure sticks to it, later reads return 0 or NULL
 * and change nothing, so that a message reader is a straight list of fields with one check at its end.
 * A `struct ref_jat` is a value and the place where it stands; places link upwards through the
 * caller's stack frames and are rendered ("specs[0].size") only when something is wrong there.
 *
 * No state; one thread per document.
 */
#ifndef TESTS_REF_JSON_IN_H
#define TESTS_REF_JSON_IN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/status.h>
#include <skv/v1_json.h>

#include "reference.h"

#define SKV_JSON_DEPTH 16u /* nesting that any message may have */

/* How many JSON values a document may hold, checked before any memory is spent on them. */
#define SKV_JMAX_OBJECT 4096u
#define SKV_JMAX_KEYS (2 * SKV_MAX_KEYS)
#define SKV_JMAX_FINISH ((SKV_MAX_SPECS + 2) * SKV_MAX_KEYS)
#define SKV_JMAX_ANSWER (8u * SKV_MAX_SPECS * SKV_MAX_KEYS + (4u << 20))

struct ref_jdoc {
	const struct skv_v1_in *in;
	json_t *root;
	struct skv_error *err;
	int status;   /* first failure */
	bool lenient; /* an answer: unknown fields are skipped */
};

struct ref_jat {
	const struct ref_jat *up; /* NULL: the document itself */
	const char *name;         /* field of `up`, or NULL: element `index` of it */
	size_t index;
	json_t *v; /* NULL: absent */
};

enum ref_jdir { SKV_JREQUEST, SKV_JANSWER };

/* Parses the text, which must be one JSON object. Returns the place of that object; after a failure
 * its value is NULL and everything read from it is absent, silently. Pair with ref_jdoc_close. */
struct ref_jat ref_jdoc_open(struct ref_jdoc *d, const struct skv_v1_in *in, const char *text, size_t n,
			     enum ref_jdir dir, size_t max_values, struct skv_error *err);
/* Releases the document; returns SKV_OK or the first failure. What was read stays in the arena. */
int ref_jdoc_close(struct ref_jdoc *d);

/* Fails the document at a place (unless it has failed already). */
void ref_jdoc_fail(struct ref_jdoc *d, const struct ref_jat *at, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static inline bool ref_jdoc_ok(const struct ref_jdoc *d) { return d->status == SKV_OK; }

/* Zeroed memory of the arena; fails the document when there is none. */
void *ref_jdoc_alloc(struct ref_jdoc *d, size_t n, size_t size);

/* Checks that `at` is an object with no fields but `names` (NULL-terminated); answers may have more. */
void ref_jat_object(struct ref_jdoc *d, const struct ref_jat *at, const char *const *names);
/* A field of an object, absent (v NULL) if it is not there. A JSON null is there. */
struct ref_jat ref_jat_get(const struct ref_jat *object, const char *name);
/* Length of an array, which must be min..max; above that SKV_E_TOO_LARGE. */
uint32_t ref_jat_array(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min, uint32_t max);
struct ref_jat ref_jat_item(const struct ref_jat *array, size_t index);

/* The typed readers fail the document when the value is absent, of another type or out of range. */
bool ref_jat_bool(struct ref_jdoc *d, const struct ref_jat *at);
/* JSON integer, or decimal string for what JSON integers of 63 bits cannot hold. */
uint64_t ref_jat_u64(struct ref_jdoc *d, const struct ref_jat *at, uint64_t min, uint64_t max);
uint32_t ref_jat_u32(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min, uint32_t max);
/* Bytes: as ref_jat_u64, or a string with suffix K, M, G or T (powers of 1024). */
uint64_t ref_jat_size(struct ref_jdoc *d, const struct ref_jat *at, uint64_t min, uint64_t max);
/* Text of min..max bytes, copied into the arena. "" after a failure, never NULL. */
const char *ref_jat_string(struct ref_jdoc *d, const struct ref_jat *at, size_t min, size_t max);
/* The same for a name (skv_name_valid). */
const char *ref_jat_name(struct ref_jdoc *d, const struct ref_jat *at);
const char *ref_jat_model_name(struct ref_jdoc *d, const struct ref_jat *at);
const char *const *ref_jat_model_names(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min, uint32_t max, uint32_t *n);
/* Array of names, min..max of them, none twice. */
const char *const *ref_jat_names(struct ref_jdoc *d, const struct ref_jat *at, uint32_t min,
				 uint32_t max, uint32_t *n);
/* 32 hex digits. */
struct skv_key ref_jat_key_hex(struct ref_jdoc *d, const struct ref_jat *at);
/* 16 hex digits. */
uint64_t ref_jat_hex64(struct ref_jdoc *d, const struct ref_jat *at);
/* Index of the text in `words` (NULL-terminated). */
uint32_t ref_jat_word(struct ref_jdoc *d, const struct ref_jat *at, const char *const *words);

/* ---- scan.c: what jansson does not do ----------------------------------------------------------- */

enum ref_jscan { SKV_JSCAN_END, SKV_JSCAN_DEEP, SKV_JSCAN_MANY };
/* Walks JSON text without allocating, no further than byte `n`, until deeper than SKV_JSON_DEPTH or
 * over *values values; then *values is how many it saw. `field` gets the JSON path of where it stopped
 * (cut to fit). The text need not be valid: the walk only ever goes forward. */
enum ref_jscan ref_json_scan(const char *text, size_t n, size_t *values, char field[SKV_FIELD_MAX]);

#endif
