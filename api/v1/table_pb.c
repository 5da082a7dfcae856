/*
 * table_pb.c - messages that are tables of fields (table.h) as protobuf.
 *
 * A message is walked three times. First its form is judged, with all that is inside: wire types,
 * UTF-8, numbers of 32 bits, how many fields. Then it is stored, as protobuf wants it: the last of
 * a scalar counts, elements follow each other, pieces of a part are one. Then its values are
 * judged, in the order in which JSON's are. No state; any thread.
 */
#include "table.h"

#include <skv/check.h>

#include <skv/superblock.h>
#include <skv/utf8.h>

/* How many fields an answer, or a document of the store, may have. */
#define ANSWER_FIELDS (8u * SKV_MAX_SPECS * SKV_MAX_KEYS + (4u << 20))

#define DEPTH 8u /* of our own messages, with room */
#define FAIL(d, name, ...) skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID, __VA_ARGS__)

static unsigned wire_of(const struct skv_field *f)
{
	return skv_field_numeric(f) ? PB_VARINT : PB_BYTES;
}

static uint32_t numbers_of(const struct skv_field *f) { return f->kind == SKV_KIND_KEYS ? 3 : 1; }

static const struct skv_field *field_of(const struct skv_table *t, uint32_t number)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (number - t->fields[i].number < numbers_of(&t->fields[i]) && number > 0)
			return &t->fields[i];
	return NULL;
}

/* ---- form ------------------------------------------------------------------------------------ */

/* Of a row whose form is not that of its wire type alone: keys and marks, of which
 * there may be many, and flags. */
static bool judge_special(struct skv_pbdoc *d, const struct skv_field *row,
			  const struct pb_field *f)
{
	struct skv_pbkeys keys = { 0 };

	if (row->kind == SKV_KIND_KEYS)
		skv_pb_keys_field(d, &keys, f);
	else if (row->kind == SKV_KIND_MARKS)
		skv_pb_numbers(d, f, row->name, PB_VARINT);
	else if (row->kind == SKV_KIND_KEY_LIST)
		skv_pb_wire(d, f, "keys_raw", PB_BYTES);
	else if (row->kind == SKV_KIND_ALL ||
		 (row->kind == SKV_KIND_WORD && row->width == sizeof(bool)))
		skv_pb_u64(d, f, row->name, 1);
	else
		return false;
	return true;
}

/* `fields`: how many more there may be. */
static void judge_form(struct skv_pbdoc *d, const struct skv_table *t, struct skv_rd r,
		       unsigned depth, size_t *fields)
{
	uint32_t seen[SKV_TABLE_FIELDS] = { 0 };
	struct pb_field f;

	SKV_CHECK(depth > 0);
	while (skv_pb_next(d, &r, &f)) {
		const struct skv_field *row = field_of(t, f.number);
		struct skv_pbat here = { d->at, row ? row->name : "", PB_NO_INDEX };

		if (row && judge_special(d, row, &f))
			continue;
		if ((*fields)-- == 0)
			skv_pb_fail(d, NULL, 0, SKV_E_TOO_LARGE,
				    "more than %u fields in one message", SKV_TABLE_PB_FIELDS);
		if (!row || !skv_pb_wire(d, &f, row->name, wire_of(row)))
			continue;
		if (skv_field_repeated(row))
			here.index = seen[row - t->fields]++;
		if (row->kind == SKV_KIND_NUMBER && row->width == sizeof(uint32_t))
			skv_pb_u32(d, &f, row->name, UINT32_MAX); /* reports the error itself */
		if (row->kind != SKV_KIND_MESSAGES && row->kind != SKV_KIND_PART) {
			if (f.wire == PB_BYTES && !skv_pb_utf8(f.p, f.n))
				skv_pb_fail(d, row->name, here.index, SKV_E_INVALID,
					    "is not UTF-8 without NUL");
			continue;
		}
		d->at = &here;
		judge_form(d, row->of, skv_rd_make(f.p, f.n), depth - 1, fields);
		d->at = here.up;
	}
}

/* ---- storing --------------------------------------------------------------------------------- */

static void store(struct skv_pbdoc *d, const struct skv_table *t, struct skv_rd r, void *message,
		  uint64_t *seen);

/* Room for the elements that follow in the repeated fields, after those already read. */
static void make_room(struct skv_pbdoc *d, const struct skv_field *row, struct skv_rd r,
		      void *message)
{
	const size_t size = row->kind == SKV_KIND_MESSAGES ? row->of->size : sizeof(char *);
	const uint32_t have = skv_field_count(row, message);
	uint32_t more = 0;
	char *old, *all;
	struct pb_field f;

	while (skv_pb_next(d, &r, &f))
		more += f.number == row->number;
	all = skv_pb_alloc(d, (size_t)have + more + 1, size);
	if (!all)
		return;
	memcpy(&old, (char *)message + row->at, sizeof old);
	if (have)
		memcpy(all, old, have * size);
	memcpy((char *)message + row->at, &all, sizeof all);
}

static const char *copy(struct skv_pbdoc *d, const struct pb_field *f)
{
	char *s = skv_pb_alloc(d, f->n + 1, 1);

	if (!s)
		return "";
	memcpy(s, f->p, f->n);
	return s;
}

static void store_element(struct skv_pbdoc *d, const struct skv_field *row,
			  const struct pb_field *f, void *message)
{
	const uint32_t i = skv_field_count(row, message);
	const char *text;
	uint64_t seen = 0;
	char *all;

	memcpy(&all, (char *)message + row->at, sizeof all);
	if (!SKV_CHECK(all))
		return;
	if (row->kind == SKV_KIND_MESSAGES) {
		skv_table_defaults(row->of, d->in, all + i * row->of->size);
		store(d, row->of, skv_rd_make(f->p, f->n), all + i * row->of->size, &seen);
	} else {
		text = copy(d, f);
		memcpy(all + i * sizeof text, &text, sizeof text);
	}
	skv_field_set_count(row, message, i + 1);
}

/* When all else is stored. */
static void store_keys(struct skv_pbdoc *d, const struct skv_table *t, const struct skv_field *row,
		       struct skv_rd r, void *message)
{
	const bool all = skv_table_all(t, message);
	const struct skv_key *keys = NULL;
	struct skv_rd walk = r;
	struct skv_pbkeys k = { 0 };
	struct pb_field f;
	uint32_t n = 0;

	while (skv_pb_next(d, &walk, &f))
		skv_pb_keys_fields(d, &k, &walk, &f);
	if (!all)
		keys = skv_pb_keys(d, &k, r, &n);
	else if (k.raw_len || k.n_ints || k.n_strings)
		FAIL(d, "all", "all, or keys: not both");
	SKV_CHECK(row->number == 1 && n <= SKV_MAX_KEYS && (n == 0 || !all));
	memcpy((char *)message + row->at, &keys, sizeof keys);
	skv_field_set_count(row, message, n);
}

static void store_key_list(struct skv_pbdoc *d, const struct skv_field *row,
			   const struct pb_field *f, void *message)
{
	const size_t n = f->n / 16;
	struct skv_key *keys;

	if (f->n % 16)
		FAIL(d, "keys_raw", "must be 16 bytes for each key");
	skv_pb_count(d, "keys_raw", n, row->least, row->most);
	keys = skv_pb_alloc(d, n + 1, sizeof *keys);
	for (size_t i = 0; skv_pb_ok(d) && i < n; i++)
		keys[i] = skv_pb_load_key(f->p + 16 * i);
	memcpy((char *)message + row->at, &keys, sizeof keys);
	skv_field_set_count(row, message, skv_pb_ok(d) ? (uint32_t)n : 0);
}

/* When their count is stored. */
static void store_marks(struct skv_pbdoc *d, const struct skv_field *row, struct skv_rd r,
			void *message)
{
	const uint32_t all = skv_field_count(row, message);
	struct skv_rd walk = r;
	struct pb_field f;
	uint64_t *numbers;
	size_t n = 0;
	bool *marks;

	while (skv_pb_next(d, &walk, &f))
		if (f.number == row->number)
			n += skv_pb_numbers(d, &f, row->name, PB_VARINT);
	skv_pb_count(d, row->name, all, 0, row->most); /* every number has a mark */
	skv_pb_count(d, row->name, n, 0, all);
	numbers = skv_pb_all_numbers(d, r, row->number, row->name, PB_VARINT, n);
	marks = skv_pb_ok(d) ? skv_pb_alloc(d, (size_t)all + 1, sizeof *marks) : NULL;
	for (uint32_t i = 0; skv_pb_ok(d) && i < n; i++)
		if (numbers[i] >= all)
			skv_pb_fail(d, row->name, i, SKV_E_INVALID, "must be below %u", all);
		else
			marks[numbers[i]] = true;
	memcpy((char *)message + row->at, &marks, sizeof marks);
}

static void store_field(struct skv_pbdoc *d, const struct skv_field *row, const struct pb_field *f,
			void *message, uint64_t *seen)
{
	const char *text;

	if (skv_field_repeated(row))
		store_element(d, row, f, message);
	else if (row->kind == SKV_KIND_KEY_LIST)
		store_key_list(d, row, f, message);
	else if (row->kind == SKV_KIND_PART)
		store(d, row->of, skv_rd_make(f->p, f->n), (char *)message + row->at, seen);
	else if (row->flags & SKV_FIELD_NOT)
		skv_field_set_number(row, message, !f->v);
	else if (row->kind == SKV_KIND_WORD) /* enums have 32 bits */
		skv_field_set_number(row, message, (uint32_t)f->v);
	else if (f->wire == PB_VARINT)
		skv_field_set_number(row, message, f->v);
	else if (text = copy(d, f), !skv_field_is_chars(row))
		skv_field_set_text(row, message, text);
	else /* a text that does not fit counts as "" */
		skv_field_set_text(row, message, strlen(text) < row->width ? text : "");
}

/* Stores a field. `seen` gets a bit for each received row. */
static void store(struct skv_pbdoc *d, const struct skv_table *t, struct skv_rd r, void *message,
		  uint64_t *seen)
{
	const struct skv_rd whole = r;
	uint64_t inside = 0;
	struct pb_field f;

	for (uint32_t i = 0; i < t->n; i++)
		if (skv_field_repeated(&t->fields[i]))
			make_room(d, &t->fields[i], r, message);
	while (skv_pb_ok(d) && skv_pb_next(d, &r, &f)) {
		const struct skv_field *row = field_of(t, f.number);

		if (!row || row->kind == SKV_KIND_KEYS || row->kind == SKV_KIND_MARKS)
			continue;
		SKV_CHECK(f.wire == wire_of(row));
		*seen |= UINT64_C(1) << (row - t->fields);
		store_field(d, row, &f, message, &inside);
	}
	for (uint32_t i = 0; i < t->n && skv_pb_ok(d); i++)
		if (t->fields[i].kind == SKV_KIND_KEYS)
			store_keys(d, t, &t->fields[i], whole, message);
		else if (t->fields[i].kind == SKV_KIND_MARKS)
			store_marks(d, &t->fields[i], whole, message);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void judge(struct skv_pbdoc *d, const struct skv_table *t, void *message, uint64_t seen);

static void judge_name(struct skv_pbdoc *d, enum skv_kind kind, const char *s, const char *name,
		       uint32_t index)
{
	const bool model = kind == SKV_KIND_MODEL_NAME;

	if (!(model ? skv_model_name_valid : skv_name_valid)(s, strlen(s)))
		skv_pb_fail(d, name, index, SKV_E_INVALID,
			    model ? SKV_MODEL_NAME_RULE : SKV_NAME_RULE, SKV_MAX_NAME);
}

static void judge_length(struct skv_pbdoc *d, const struct skv_field *row, const char *s)
{
	if (strlen(s) > skv_field_max(row))
		FAIL(d, row->name, "must be a string of 0 to %llu bytes, not %zu",
		     (unsigned long long)row->max, strlen(s));
}

static void judge_number(struct skv_pbdoc *d, const struct skv_field *row, uint64_t v)
{
	const unsigned long long min = row->min, max = skv_field_max(row);

	if (min > 0 && max == UINT64_MAX && v < min)
		FAIL(d, row->name, "the field is required");
	else if (min > 0 && (v < min || v > max))
		FAIL(d, row->name, "must be from %llu to %llu, not %llu", min, max,
		     (unsigned long long)v);
	else if (v > max)
		FAIL(d, row->name, "must be at most %llu, not %llu", max, (unsigned long long)v);
}

static void judge_word(struct skv_pbdoc *d, const struct skv_field *row, uint64_t v)
{
	if (v >= skv_field_words(row))
		FAIL(d, row->name, "must be at most %u", skv_field_words(row) - 1);
}

static void judge_text(struct skv_pbdoc *d, const struct skv_field *row, void *message)
{
	const char *s = skv_field_text(row, message);

	judge_length(d, row, s);
	if (!*s && row->min > 0 && !skv_field_lax(row, message))
		FAIL(d, row->name, "the field is required");
}

static void judge_elements(struct skv_pbdoc *d, const struct skv_field *row, void *message)
{
	const uint32_t n = skv_field_count(row, message);

	skv_pb_count(d, row->name, n, skv_field_lax(row, message) ? 0 : row->least, row->most);
	for (uint32_t i = 0; i < n && skv_pb_ok(d); i++) {
		struct skv_pbat here = { d->at, row->name, i };
		const char *s;

		if (row->kind == SKV_KIND_MESSAGES) {
			d->at = &here;
			judge(d, row->of, (void *)(uintptr_t)skv_field_element(row, message, i),
			      UINT64_MAX);
			if (skv_pb_ok(d) && skv_field_twice(row, message, i))
				FAIL(d, row->of->fields[0].name, "'%s' is named twice",
				     skv_field_text(&row->of->fields[0],
						    skv_field_element(row, message, i)));
			d->at = here.up;
			continue;
		}
		s = skv_field_item(row, message, i);
		if (row->kind == SKV_KIND_NAMES)
			judge_name(d, SKV_KIND_NAME, s, row->name, i);
		else if (judge_length(d, row, s), !*s && row->min > 0)
			skv_pb_fail(d, row->name, i, SKV_E_INVALID, "must not be empty");
		if (skv_pb_ok(d) && skv_field_twice(row, message, i))
			skv_pb_fail(d, row->name, i, SKV_E_INVALID, "'%s' is named twice", s);
	}
}

static void judge_part(struct skv_pbdoc *d, const struct skv_field *row, void *message, bool came)
{
	struct skv_pbat here = { d->at, row->name, PB_NO_INDEX };

	if (!came) {
		FAIL(d, row->name, "the field is required");
		return;
	}
	d->at = &here;
	judge(d, row->of, (char *)message + row->at, 0);
	d->at = here.up;
}

static void judge_field(struct skv_pbdoc *d, const struct skv_field *row, void *message, bool came)
{
	uint8_t uuid[16];

	if (!came && row->flags & SKV_FIELD_REQUIRED && row->flags & SKV_FIELD_PRESENT)
		FAIL(d, row->name, "the field is required");
	switch (row->kind) {
	case SKV_KIND_NUMBER:
		judge_number(d, row, skv_field_number(row, message));
		break;
	case SKV_KIND_WORD:
		judge_word(d, row, skv_field_number(row, message));
		break;
	case SKV_KIND_TEXT:
		judge_text(d, row, message);
		break;
	case SKV_KIND_NAME:
	case SKV_KIND_MODEL_NAME:
		if (row->text && !*skv_field_text(row, message))
			skv_field_set_text(row, message, row->text);
		judge_name(d, row->kind, skv_field_text(row, message), row->name, PB_NO_INDEX);
		break;
	case SKV_KIND_UUID:
		if (skv_uuid_from_text(skv_field_text(row, message), uuid) != SKV_OK)
			FAIL(d, row->name, "is not a UUID");
		break;
	case SKV_KIND_TEXTS:
	case SKV_KIND_NAMES:
	case SKV_KIND_MESSAGES:
		judge_elements(d, row, message);
		break;
	case SKV_KIND_PART:
		judge_part(d, row, message, came);
		break;
	default:
		break;
	}
}

/* Checks the rows. `seen`: the received rows; of an element of an array all: the rows of a part
 * report its missing fields. */
static void judge(struct skv_pbdoc *d, const struct skv_table *t, void *message, uint64_t seen)
{
	char why[SKV_MESSAGE_MAX];
	const char *wrong;

	for (unsigned turn = 0; turn < SKV_TABLE_TURNS; turn++)
		for (uint32_t i = 0; i < t->n && skv_pb_ok(d); i++) {
			const struct skv_field *row = &t->fields[i];

			if (skv_field_turn(row) != turn)
				continue;
			judge_field(d, row, message, seen >> i & 1);
			wrong = row->check && skv_pb_ok(d) ? row->check(message, why) : NULL;
			if (wrong)
				FAIL(d, wrong, "%s", why);
		}
}

int skv_table_read_pb(const struct skv_table *t, const struct skv_v1_in *in, const char *text,
		      size_t n, void *out, struct skv_error *err)
{
	struct skv_pbdoc d = skv_pb_open(in, err);
	struct skv_rd r = skv_rd_make(text, n);
	size_t fields = t->long_answer || in->stored ? ANSWER_FIELDS : SKV_TABLE_PB_FIELDS;
	uint64_t seen = 0;
	void *message;

	SKV_CHECK(skv_table_sound(t));
	judge_form(&d, t, r, DEPTH, &fields);
	message = skv_pb_alloc(&d, 1, t->size);
	if (!message)
		return d.status;
	skv_table_defaults(t, in, message);
	store(&d, t, r, message, &seen);
	if (!in->stored)
		judge(&d, t, message, seen);
	if (skv_pb_ok(&d))
		memcpy(out, message, t->size);
	return d.status;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A text as it may travel: bytes that are not UTF-8 become '?'. */
static void put_text(struct skv_buf *b, uint32_t number, const char *s)
{
	const size_t n = strlen(s), at = b->len;
	uint32_t c;

	skv_pb_put_bytes(b, number, s, n);
	if (b->failed)
		return;
	if (!SKV_CHECK(b->len >= at + n))
		return;
	for (uint8_t *p = b->data + b->len - n, *end = b->data + b->len; p < end;) {
		size_t k = skv_utf8_next((const char *)p, (size_t)(end - p), &c);

		if (k == 0)
			*p = '?';
		p += k ? k : 1;
	}
}

static void write_message(struct skv_buf *b, uint32_t number, const struct skv_table *t,
			  const void *message)
{
	size_t begin = skv_pb_put_begin(b, number, 0);

	skv_table_write_pb(t, b, message, NULL);
	skv_pb_put_end(b, begin);
}

static void write_elements(struct skv_buf *b, const struct skv_field *row, const void *message)
{
	for (uint32_t i = 0; i < skv_field_count(row, message) && !b->failed; i++)
		if (row->kind == SKV_KIND_MESSAGES)
			write_message(b, row->number, row->of, skv_field_element(row, message, i));
		else
			put_text(b, row->number, skv_field_item(row, message, i));
}

static void write_key_list(struct skv_buf *b, const struct skv_field *row, const void *message)
{
	struct skv_key_input keys = { .form = SKV_KEYS_HEX, .n = skv_field_count(row, message) };

	memcpy(&keys.keys, skv_field_in(row, message), sizeof keys.keys);
	SKV_CHECK(row->number == 1 && keys.n <= row->most);
	if (keys.n)
		skv_pb_put_keys(b, &keys); /* field 1, as in requests */
}

static void write_marks(struct skv_buf *b, const struct skv_field *row, const void *message)
{
	const uint32_t n = skv_field_count(row, message);
	const size_t before = b->len, begin = skv_pb_put_begin(b, row->number, 3 * (size_t)n),
		     empty = b->len;
	const bool *marks;

	memcpy(&marks, skv_field_in(row, message), sizeof marks);
	for (uint32_t i = 0; marks && i < n; i++)
		if (marks[i])
			skv_put_varint(b, i);
	if (b->len > empty)
		skv_pb_put_end(b, begin);
	else if (!b->failed)
		b->len = before; /* an empty packed field is left out */
}

static void write_field(struct skv_buf *b, const struct skv_field *row, const void *message,
			const struct skv_key_input *keys)
{
	const char *s;

	if (skv_field_repeated(row))
		write_elements(b, row, message);
	else if (row->kind == SKV_KIND_PART)
		write_message(b, row->number, row->of, skv_field_in(row, message));
	else if (row->kind == SKV_KIND_MARKS)
		write_marks(b, row, message);
	else if (row->kind == SKV_KIND_KEY_LIST)
		write_key_list(b, row, message);
	else if (row->flags & SKV_FIELD_NOT)
		skv_pb_put_uint(b, row->number, !skv_field_number(row, message));
	else if (row->kind == SKV_KIND_KEYS && keys->n)
		skv_pb_put_keys(b, keys);
	else if (row->kind == SKV_KIND_KEYS)
		return;
	else if (wire_of(row) == PB_VARINT)
		(row->flags & SKV_FIELD_PRESENT ? skv_pb_put_present : skv_pb_put_uint)(
			b, row->number, skv_field_told(row, message));
	else if (s = skv_field_text(row, message), *s)
		put_text(b, row->number, s);
}

void skv_table_write_pb(const struct skv_table *t, struct skv_buf *out, const void *message,
			const struct skv_key_input *keys)
{
	SKV_CHECK(skv_table_sound(t));
	for (uint32_t number = 1; number < SKV_TABLE_NUMBERS; number++) {
		const struct skv_field *row = field_of(t, number);

		if (row && row->number == number)
			write_field(out, row, message, keys);
	}
}
