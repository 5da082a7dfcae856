/*
 * test_v1_blocks.c - match, lookup, start, finish, abort, delete in JSON, with random contents, all
 * forms of keys and the largest sizes: requests are read as they were written, and answers are what
 * jansson makes of them.
 */
#include "json_requests.h"
#include "trip.h"

#include <inttypes.h>
#include <jansson.h>

/* ---- keys ------------------------------------------------------------------------------------ */

/* `n` different keys of a form; also what they must be once read. */
static struct skv_key_input any_keys(struct trip *t, enum skv_key_form form, uint32_t n,
				     struct skv_key **expected)
{
	const char **strings = made(t, n, sizeof *strings);
	struct skv_key *keys = made(t, n, sizeof *keys);
	uint64_t base = any64(t);

	*expected = made(t, n, sizeof **expected);
	for (uint32_t i = 0; i < n; i++) {
		char *s = made(t, 1, 80);

		snprintf(s, 80, "%u %s", i, any_text(t, 40));
		strings[i] = s;
		/* base + i never repeats and runs over the edges */
		keys[i] = (struct skv_key){ .hi = form == SKV_KEYS_HEX ? any64(t) : 0,
					    .lo = base + i };
		(*expected)[i] = form == SKV_KEYS_STRING
					 ? skv_key_from_string(&t->secret, s, strlen(s))
					 : keys[i];
	}
	return (struct skv_key_input){ .form = form, .n = n, .strings = strings, .keys = keys };
}

static void same_keys(const struct skv_key *a, uint32_t na, const struct skv_key *b, uint32_t nb)
{
	assert_int_equal(na, nb);
	for (uint32_t i = 0; i < na; i++)
		assert_true(skv_key_equal(a[i], b[i]));
}

static uint32_t any_count(struct trip *t, uint32_t max)
{
	return below(t, 40) ? 1 + below(t, 8) : max;
}

static void test_match_req(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_match_req r = { .n_instances = 0 }, got;
		struct skv_key_input keys;
		struct skv_key *expected;
		struct trip t;

		trip_begin(&t, round);
		r.n_instances = any_count(&t, SKV_MAX_INSTANCES_PER_MATCH);
		r.instances = any_names(&t, r.n_instances);
		keys = any_keys(&t, round % 3, any_count(&t, SKV_MAX_KEYS), &expected);
		json_match_req(&t.text, &r, &keys);
		read_back(&t, skv_v1_read_match_req, &got);
		assert_string_equal(got.tenant, "default");
		same_names(r.instances, r.n_instances, got.instances, got.n_instances);
		same_keys(expected, keys.n, got.keys, got.n_keys);
		trip_end(&t);
	}
}

static void test_lookup_req(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_lookup_req r = { .n_keys = 0 }, got;
		struct skv_key_input keys;
		struct skv_key *expected;
		struct trip t;

		trip_begin(&t, round);
		r.mode = (enum skv_lookup_mode)below(&t, SKV_LOOKUP_TRAILING + 1);
		r.partial = below(&t, 2);
		r.window = below(&t, SKV_MAX_KEYS + 1);
		r.runs = below(&t, 2);
		r.n_specs = below(&t, 3) ? 0 : any_count(&t, SKV_MAX_SPECS);
		r.specs = any_names(&t, r.n_specs);
		r.lease_ms = any32(&t); /* UINT32_MAX is SKV_LEASE_DEFAULT */
		keys = any_keys(&t, round % 3, any_count(&t, SKV_MAX_KEYS), &expected);
		json_lookup_req(&t.text, &r, &keys);
		read_back(&t, skv_v1_read_lookup_req, &got);
		assert_string_equal(got.tenant, "default");
		assert_null(got.instance);
		same(r.mode, got.mode);
		same(r.partial, got.partial);
		same(r.window, got.window);
		same(r.runs, got.runs);
		same(r.lease_ms, got.lease_ms);
		same_names(r.specs, r.n_specs, got.specs, got.n_specs);
		same_keys(expected, keys.n, got.keys, got.n_keys);
		trip_end(&t);
	}
}

static void test_trim(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_trim_req got;
		uint64_t to;
		struct trip t;

		trip_begin(&t, round);
		to = round % 3 ? any32(&t) : SKV_MAX_WALL_MS;
		skv_buf_printf(&t.text, "{\"from_ms\":%" PRIu64 ",\"to_ms\":%" PRIu64 "}",
			       round * 977, to);
		read_back(&t, skv_v1_read_trim_req, &got);
		same(round * 977, got.from_ms);
		same(to, got.to_ms);
		assert_string_equal(got.tenant, "default");
		trip_end(&t);
	}
}

static void test_start_req(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_start_req r = { .n_keys = 0 }, got;
		struct skv_key_input keys, parent;
		struct skv_key *expected, *expected_parent;
		struct trip t;

		trip_begin(&t, round);
		r.request_id = below(&t, 2) ? "" : any_text(&t, SKV_MAX_REQUEST_ID);
		r.n_specs = below(&t, 3) ? 0 : any_count(&t, SKV_MAX_SPECS);
		r.specs = any_names(&t, r.n_specs);
		r.deadline_ms = any32(&t);
		r.independent = below(&t, 2);
		r.selective = below(&t, 2);
		r.runs = below(&t, 2);
		r.has_parent = below(&t, 2);
		keys = any_keys(&t, round % 3, any_count(&t, SKV_MAX_KEYS), &expected);
		parent = any_keys(&t, round % 3, 1, &expected_parent);
		keys.parent = r.has_parent ? &parent : NULL;
		json_start_req(&t.text, &r, &keys);
		read_back(&t, skv_v1_read_start_req, &got);
		assert_string_equal(got.tenant, "default");
		assert_string_equal(r.request_id, got.request_id);
		same(r.deadline_ms, got.deadline_ms);
		same(r.independent, got.independent);
		same(r.selective, got.selective);
		same(r.runs, got.runs);
		same(r.has_parent, got.has_parent);
		if (r.has_parent)
			same_keys(expected_parent, 1, &got.parent, 1);
		same_names(r.specs, r.n_specs, got.specs, got.n_specs);
		same_keys(expected, keys.n, got.keys, got.n_keys);
		trip_end(&t);
	}
}

static void test_finish_req(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_finish_req r = { .session = NULL }, got;
		uint64_t *sums;
		bool *mask;
		struct trip t;

		trip_begin(&t, round);
		r.mask_kind = (enum skv_mask_kind)(round % 3);
		r.mask_count = r.mask_kind == SKV_MASK_ALL ? 0
			       : below(&t, 30)             ? below(&t, 9)
							   : SKV_MAX_KEYS;
		r.mask = mask = made(&t, SKV_MAX_KEYS, sizeof *mask);
		for (uint32_t i = 0; i < r.mask_count; i++)
			mask[i] = below(&t, 2);
		r.n_checksums = below(&t, 100) ? below(&t, 9) : SKV_MAX_KEYS * SKV_MAX_SPECS;
		r.checksums = sums = made(&t, (size_t)r.n_checksums + 1, sizeof *sums);
		for (uint32_t i = 0; i < r.n_checksums; i++)
			sums[i] = any64(&t);
		r.quiesced = below(&t, 2);
		json_finish_req(&t.text, &r);
		read_back(&t, skv_v1_read_finish_req, &got);
		same(r.mask_kind, got.mask_kind);
		same(r.mask_count, got.mask_count);
		if (r.mask_kind == SKV_MASK_BITS)
			assert_memory_equal(r.mask, got.mask, r.mask_count * sizeof *r.mask);
		same(r.n_checksums, got.n_checksums);
		assert_memory_equal(r.checksums, got.checksums, r.n_checksums * sizeof *sums);
		same(r.quiesced, got.quiesced);
		trip_end(&t);
	}
}

/* null is no sum of zero: the core is told which are missing. */
static void test_null_checksums(void **state)
{
	struct skv_finish_req got;
	struct trip t;

	(void)state;
	trip_begin(&t, 0);
	skv_buf_printf(&t.text,
		       "{\"success\":true,\"checksums\":[null,\"0000000000000000\",null]}");
	read_back(&t, skv_v1_read_finish_req, &got);
	same(got.n_checksums, 3);
	same(got.checksums[1], 0);
	assert_non_null(got.no_checksum);
	assert_true(got.no_checksum[0] && !got.no_checksum[1] && got.no_checksum[2]);
	skv_buf_clear(&t.text);
	skv_buf_printf(&t.text, "{\"success\":true,\"checksums\":[\"0000000000000000\"]}");
	read_back(&t, skv_v1_read_finish_req, &got);
	assert_null(got.no_checksum);
	trip_end(&t);
}

static void test_abort_and_delete_req(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_abort_req aborted;
		struct skv_delete_req deleted;
		struct skv_key_input keys;
		struct skv_key *expected;
		struct trip t;

		trip_begin(&t, round);
		skv_buf_printf(&t.text, "{\"quiesced\":%s}", round & 1 ? "true" : "false");
		read_back(&t, skv_v1_read_abort_req, &aborted);
		same(round & 1, aborted.quiesced);
		assert_string_equal(aborted.tenant, "default");
		assert_int_equal(skv_v1_read_abort_req(&t.in, NULL, 0, &aborted, &t.err), SKV_OK);
		assert_false(aborted.quiesced);

		skv_buf_clear(&t.text);
		keys = any_keys(&t, round % 3, any_count(&t, SKV_MAX_KEYS), &expected);
		json_delete_req(&t.text, &keys);
		read_back(&t, skv_v1_read_delete_req, &deleted);
		assert_string_equal(deleted.tenant, "default");
		same_keys(expected, keys.n, deleted.keys, deleted.n_keys);
		trip_end(&t);
	}
}

/* The number 1, the string "1" and the hex 1 are what the documents say, and numbers are exact. */
static void test_key_forms(void **state)
{
	static const char *const texts[] = {
		"{\"keys_int\":[1]}", "{\"keys_int\":[\"1\"]}", "{\"keys_int\":[\"0001\"]}",
		"{\"keys_hex\":[\"00000000000000000000000000000001\"]}" };
	struct skv_delete_req r;
	struct trip t;

	(void)state;
	trip_begin(&t, 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(
			skv_v1_read_delete_req(&t.in, texts[i], strlen(texts[i]), &r, &t.err),
			SKV_OK);
		assert_true(r.n_keys == 1 && r.keys[0].hi == 0 && r.keys[0].lo == 1);
	}
	skv_put_bytes(&t.text, "{\"keys\":[\"1\"]}", 14);
	read_back(&t, skv_v1_read_delete_req, &r);
	assert_true(skv_key_equal(r.keys[0], skv_key_from_string(&t.secret, "1", 1)));
	skv_buf_clear(&t.text);
	skv_buf_printf(
		&t.text,
		"{\"keys_int\":[9007199254740993,9223372036854775807,\"18446744073709551615\"]}");
	read_back(&t, skv_v1_read_delete_req, &r);
	same(r.keys[0].lo, 9007199254740993u); /* not a double's 2^53 + 1 */
	same(r.keys[1].lo, INT64_MAX);
	same(r.keys[2].lo, UINT64_MAX);
	trip_end(&t);
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct skv_files any_files(struct trip *t)
{
	struct skv_files f = { .n = 1 + below(t, 5) };

	f.v = made(t, f.n, sizeof *f.v);
	for (uint32_t i = 0; i < f.n; i++) {
		f.v[i].storage = any_name(t, i);
		f.v[i].type = "file";
		any_uuid(t, f.v[i].uuid);
		snprintf(f.v[i].path, sizeof f.v[i].path, "%s%08u.kvs",
			 below(t, 2) ? "slab-" : "a/b/..x/", i);
	}
	return f;
}

static struct skv_location any_location(struct trip *t, uint32_t n_files)
{
	struct skv_location l = { .file = below(t, n_files), .generation = any64(t),
				  .has_checksum = below(t, 2) };

	l.length = below(t, 2) ? SKV_MAX_SPEC_SIZE : 1 + any32(t);
	l.length = l.length ? l.length : 1;
	l.offset = below(t, 2) ? (uint64_t)INT64_MAX - l.length : any64(t) >> 2;
	l.checksum = l.has_checksum ? any64(t) : 0;
	if (l.offset > INT64_MAX - l.length)
		l.offset = 0;
	return l;
}

/* Parses the written text with jansson; checks that no field is written twice. */
static json_t *parse(struct trip *t)
{
	json_error_t e;
	json_t *v = json_loadb(trip_text(t), t->text.len, JSON_REJECT_DUPLICATES, &e);

	if (!v)
		fail_msg("%s at %d: %.*s", e.text, e.position, (int)t->text.len, trip_text(t));
	return v;
}

static const char *text_of(const json_t *v, const char *name)
{
	const char *s = json_string_value(json_object_get(v, name));

	assert_non_null(s);
	return s;
}

static void same_number(const json_t *v, const char *name, uint64_t expected)
{
	const json_t *n = json_object_get(v, name);

	assert_true(json_is_integer(n));
	same(json_integer_value(n), expected);
}

/* A list of names as the field `name`. */
static void same_list(const json_t *v, const char *name, const char *const *names, uint32_t n)
{
	const json_t *list = json_object_get(v, name);

	assert_int_equal(json_array_size(list), n);
	for (uint32_t i = 0; i < n; i++)
		assert_string_equal(json_string_value(json_array_get(list, i)), names[i]);
}

static void same_files(const json_t *v, const struct skv_files *files)
{
	const json_t *list = json_object_get(v, "files");

	assert_int_equal(json_array_size(list), files->n);
	for (uint32_t i = 0; i < files->n; i++) {
		const json_t *f = json_array_get(list, i);

		assert_string_equal(text_of(f, "storage"), files->v[i].storage);
		assert_string_equal(text_of(f, "type"), files->v[i].type);
		assert_string_equal(text_of(f, "uuid"), files->v[i].uuid);
		assert_string_equal(text_of(f, "path"), files->v[i].path);
	}
}

static void same_location(const json_t *v, const struct skv_location *l)
{
	char text[32];

	if (l->length == 0) {
		assert_true(json_is_null(v));
		return;
	}
	same_number(v, "file", l->file);
	same_number(v, "offset", l->offset);
	same_number(v, "length", l->length);
	snprintf(text, sizeof text, "%" PRIu64, l->generation);
	assert_string_equal(text_of(v, "generation"), text);
	snprintf(text, sizeof text, "%016" PRIx64, l->checksum);
	if (l->has_checksum)
		assert_string_equal(text_of(v, "checksum"), text);
	else
		assert_null(json_object_get(v, "checksum"));
}

static void same_locations(const json_t *block, const struct skv_location *l, uint32_t n)
{
	const json_t *list = json_object_get(block, "locations");

	assert_int_equal(json_array_size(list), n);
	for (uint32_t s = 0; s < n; s++)
		same_location(json_array_get(list, s), &l[s]);
}

static void test_match_res(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_match_res r = { .n_instances = 0 };
		struct trip t;
		json_t *v;

		trip_begin(&t, round);
		r.n_instances = below(&t, SKV_MAX_INSTANCES_PER_MATCH + 1);
		r.instances = any_names(&t, r.n_instances);
		r.matched = made(&t, r.n_instances + 1, sizeof *r.matched);
		for (uint32_t i = 0; i < r.n_instances; i++)
			r.matched[i] = below(&t, SKV_MAX_KEYS + 1);
		skv_v1_write_match_res(&t.text, &r);
		v = parse(&t);
		assert_int_equal(json_array_size(json_object_get(v, "results")), r.n_instances);
		for (uint32_t i = 0; i < r.n_instances; i++) {
			const json_t *one = json_array_get(json_object_get(v, "results"), i);

			assert_string_equal(text_of(one, "instance"), r.instances[i]);
			same_number(one, "matched", r.matched[i]);
		}
		json_decref(v);
		trip_end(&t);
	}
}

static struct skv_lookup_res any_lookup(struct trip *t, uint32_t n_keys, uint32_t n_specs)
{
	struct skv_lookup_res r = { .n_keys = n_keys, .n_specs = n_specs, .lease_ms = any32(t),
				    .files = any_files(t) };
	uint32_t chance = below(t, 5);

	r.specs = any_names(t, n_specs);
	r.hit = made(t, n_keys + 1, sizeof *r.hit);
	r.loc = made(t, (size_t)n_keys * n_specs + 1, sizeof *r.loc);
	for (uint32_t i = 0; i < n_keys; i++) {
		r.hit[i] = below(t, 4) < chance;
		r.matched += r.hit[i];
		for (uint32_t s = 0; s < n_specs; s++) /* also where no hit: not to be written */
			if (s == 0 || below(t, 4)) /* a part of a block, now and then */
				r.loc[(size_t)i * n_specs + s] = any_location(t, r.files.n);
	}
	return r;
}

static void check_lookup_res(struct trip *t, const struct skv_lookup_res *r)
{
	const json_t *blocks;
	uint32_t hits = 0;
	json_t *v;

	skv_v1_write_lookup_res(&t->text, r);
	v = parse(t);
	same_number(v, "n_keys", r->n_keys);
	same_number(v, "matched", r->matched);
	same_number(v, "lease_ms", r->lease_ms);
	same_list(v, "specs", r->specs, r->n_specs);
	same_files(v, &r->files);
	blocks = json_object_get(v, "blocks");
	for (uint32_t i = 0; i < r->n_keys; i++) {
		const json_t *block = r->hit[i] ? json_array_get(blocks, hits++) : NULL;

		if (!block)
			continue;
		same_number(block, "index", i);
		same_locations(block, &r->loc[(size_t)i * r->n_specs], r->n_specs);
	}
	assert_int_equal(json_array_size(blocks), hits);
	json_decref(v);
}

static void test_lookup_res(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_lookup_res r;
		struct trip t;

		trip_begin(&t, round);
		r = any_lookup(&t, below(&t, 30), 1 + below(&t, 3));
		check_lookup_res(&t, &r);
		trip_end(&t);
	}
}

static struct skv_start_res any_start(struct trip *t, uint32_t n_keys, uint32_t n_specs)
{
	struct skv_start_res r = { .n_keys = n_keys, .n_specs = n_specs, .deadline_ms = any32(t),
				   .files = any_files(t) };

	r.specs = any_names(t, n_specs);
	r.outcome = made(t, n_keys + 1, sizeof *r.outcome);
	r.loc = made(t, (size_t)n_keys * n_specs + 1, sizeof *r.loc);
	for (uint32_t i = 0; i < n_keys; i++) {
		r.outcome[i] = (uint8_t)below(t, 3);
		r.n_write += r.outcome[i] == SKV_START_WRITE;
		for (uint32_t s = 0; r.outcome[i] == SKV_START_WRITE && s < n_specs; s++)
			if (below(t, 4))
				r.loc[(size_t)i * n_specs + s] = any_location(t, r.files.n);
	}
	if (r.n_write)
		skv_key_to_hex((struct skv_key){ rnd(t), rnd(t) }, r.session);
	return r;
}

static void check_start_res(struct trip *t, const struct skv_start_res *r)
{
	static const char *const outcomes[] = { "write", "exists", "busy" };
	static const char *const states[] = { "open", "finished", "aborted", "expired" };
	const bool open = r->state == SKV_SESSION_OPEN;
	const json_t *blocks;
	json_t *v;

	skv_v1_write_start_res(&t->text, r);
	v = parse(t);
	assert_string_equal(text_of(v, "session"), r->session);
	assert_string_equal(text_of(v, "state"), states[r->state]);
	same_number(v, "deadline_ms", r->deadline_ms);
	same_number(v, "n_keys", r->n_keys);
	same_number(v, "n_write", r->n_write);
	same_list(v, "specs", r->specs, r->n_specs);
	same_files(v, &r->files);
	blocks = json_object_get(v, "blocks");
	assert_int_equal(json_array_size(blocks), open ? r->n_keys : 0);
	for (uint32_t i = 0; open && i < r->n_keys; i++) {
		const json_t *block = json_array_get(blocks, i);

		same_number(block, "index", i);
		assert_string_equal(text_of(block, "outcome"), outcomes[r->outcome[i]]);
		if (r->outcome[i] == SKV_START_WRITE)
			same_locations(block, &r->loc[(size_t)i * r->n_specs], r->n_specs);
		else
			assert_null(json_object_get(block, "locations"));
	}
	json_decref(v);
}

static void test_start_res(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_start_res r;
		struct trip t;

		trip_begin(&t, round);
		r = any_start(&t, below(&t, 30), 1 + below(&t, 3));
		check_start_res(&t, &r);
		trip_end(&t);
	}
}

/* A repeated id whose session is over: the core gives no outcomes and no locations, NULL even. */
static void test_start_res_ended(void **state)
{
	(void)state;
	for (int s = SKV_SESSION_FINISHED; s <= SKV_SESSION_EXPIRED; s++) {
		struct skv_start_res r = { .session = "00000000000000000000000000000001",
					   .n_keys = 3, .n_write = 2,
					   .n_specs = 1, .specs = (const char *const[]){ "kv" },
					   .state = (enum skv_session_state)s };
		struct trip t;

		trip_begin(&t, 0);
		check_start_res(&t, &r);
		skv_buf_clear(&t.text);
		r.n_keys = r.n_specs = 0; /* nor how many keys it had */
		check_start_res(&t, &r);
		trip_end(&t);
	}
}

/* The largest answers that limits.h allows. */
static void test_largest(void **state)
{
	struct skv_lookup_res l;
	struct skv_start_res s;
	struct trip t;

	(void)state;
	trip_begin(&t, 4);
	l = any_lookup(&t, SKV_MAX_KEYS, 4);
	check_lookup_res(&t, &l);
	skv_buf_clear(&t.text);
	s = any_start(&t, SKV_MAX_KEYS, 4);
	check_start_res(&t, &s);
	skv_buf_clear(&t.text);
	l = any_lookup(&t, 1024, SKV_MAX_SPECS);
	check_lookup_res(&t, &l);
	trip_end(&t);
}

static void test_finish_res(void **state)
{
	static const char *const states[] = { "open", "finished", "aborted", "expired", "deleted" };

	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_finish_res f;
		uint32_t gone[40];
		const json_t *list;
		struct trip t;
		json_t *v;

		trip_begin(&t, round);
		f = (struct skv_finish_res){ (enum skv_session_state)below(&t, 5), any32(&t),
					     any32(&t), (uint32_t)below(&t, 41), gone };
		for (uint32_t i = 0; i < f.n_deleted; i++)
			gone[i] = (i ? gone[i - 1] + 1 : 0) + (uint32_t)below(&t, 300);
		skv_v1_write_finish_res(&t.text, &f);
		v = parse(&t);
		assert_string_equal(text_of(v, "state"), states[f.state]);
		same_number(v, "committed", f.committed);
		same_number(v, "failed", f.failed);
		list = json_object_get(v, "deleted");
		assert_int_equal(json_array_size(list), f.n_deleted);
		for (uint32_t i = 0; i < f.n_deleted; i++)
			same(json_integer_value(json_array_get(list, i)), gone[i]);
		json_decref(v);
		trip_end(&t);
	}
}

/* A writer appends: what the buffer held before stays, and no comma is smuggled in. */
static void test_append(void **state)
{
	struct trip t;

	(void)state;
	trip_begin(&t, 0);
	skv_put_bytes(&t.text, "x", 1);
	skv_v1_write_delete_res(&t.text, &(struct skv_delete_res){ .deleted = 3 });
	skv_v1_write_delete_res(&t.text, &(struct skv_delete_res){ .deleted = 4 });
	assert_int_equal(t.text.len, 27);
	assert_memory_equal(t.text.data, "x{\"deleted\":3}{\"deleted\":4}", 27);
	trip_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match_req),	    cmocka_unit_test(test_lookup_req),
		cmocka_unit_test(test_trim), cmocka_unit_test(test_start_req),
		cmocka_unit_test(test_finish_req),
		cmocka_unit_test(test_null_checksums),
		cmocka_unit_test(test_abort_and_delete_req), cmocka_unit_test(test_key_forms),
		cmocka_unit_test(test_match_res),	    cmocka_unit_test(test_lookup_res),
		cmocka_unit_test(test_start_res),	    cmocka_unit_test(test_start_res_ended),
		cmocka_unit_test(test_largest),	    cmocka_unit_test(test_finish_res),
		cmocka_unit_test(test_append),
	};

	return cmocka_run_group_tests_name("v1_blocks", tests, NULL, NULL);
}
