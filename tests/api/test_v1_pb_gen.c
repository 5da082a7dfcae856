/*
 * test_v1_pb_gen.c - the codec that is written by hand against the one that protobuf-c generates
 * from slabkv.proto: what ours writes theirs reads, to the same values and the same bytes again,
 * and a plain expansion of their columns gives the locations that went in.
 */
#include "messages.h"
#include "pb_messages.h"
#include "random_answers.h"

#include "slabkv.pb-c.h"

/* Unknown fields anywhere would mean that a number is wrong. */
static void assert_known(const ProtobufCMessage *m)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;

	assert_int_equal(m->n_unknown_fields, 0);
	for (unsigned i = 0; i < d->n_fields; i++) {
		const char *at = (const char *)m + d->fields[i].offset;

		if (d->fields[i].type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (d->fields[i].label == PROTOBUF_C_LABEL_REPEATED) {
			size_t n =
				*(const size_t *)((const char *)m + d->fields[i].quantifier_offset);

			for (size_t k = 0; k < n; k++)
				assert_known((*(ProtobufCMessage ***)at)[k]);
		} else if (*(ProtobufCMessage **)at) {
			assert_known(*(ProtobufCMessage **)at);
		}
	}
}

/* Unpacks our bytes with protobuf-c; packed again the message has the same bytes. */
static void *theirs(const ProtobufCMessageDescriptor *type, const struct skv_buf *ours)
{
	ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, ours->len, ours->data);
	uint8_t *again;
	size_t n;

	assert_non_null(m);
	assert_known(m);
	n = protobuf_c_message_get_packed_size(m);
	again = malloc(n + 1);
	assert_non_null(again);
	assert_int_equal(protobuf_c_message_pack(m, again), n);
	assert_int_equal(n, ours->len);
	assert_memory_equal(again, ours->data, n);
	free(again);
	return m;
}

static const ProtobufCMessageDescriptor *const types[] = {
	&slabkv__v1__lookup_request__descriptor,
	&slabkv__v1__lookup_response__descriptor,
	&slabkv__v1__start_request__descriptor,
	&slabkv__v1__start_response__descriptor,
	&slabkv__v1__delete_request__descriptor,
	&slabkv__v1__delete_response__descriptor,
	&slabkv__v1__trim_request__descriptor,
	&slabkv__v1__trim_response__descriptor,
	&slabkv__v1__pin_request__descriptor,
	&slabkv__v1__pin_response__descriptor,
	&slabkv__v1__unpin_request__descriptor,
	&slabkv__v1__unpin_response__descriptor,
	&slabkv__v1__report_request__descriptor,
	&slabkv__v1__report_response__descriptor,
	&slabkv__v1__storage_spec__descriptor,
	&slabkv__v1__group_spec__descriptor,
	&slabkv__v1__instance_spec__descriptor,
	&slabkv__v1__file_wish__descriptor,
	&slabkv__v1__token_spec__descriptor,
	&slabkv__v1__tenant_spec__descriptor,
	&slabkv__v1__drain_spec__descriptor,
	&slabkv__v1__home_spec__descriptor,
	&slabkv__v1__move_wish__descriptor,
	&slabkv__v1__move_finish__descriptor,
	&slabkv__v1__match_request__descriptor,
	&slabkv__v1__finish_request__descriptor,
	&slabkv__v1__abort_request__descriptor,
	&slabkv__v1__purge_request__descriptor,
	&slabkv__v1__storage_view__descriptor,
	&slabkv__v1__group_view__descriptor,
	&slabkv__v1__instance_view__descriptor,
	&slabkv__v1__move__descriptor,
	&slabkv__v1__move_result__descriptor,
	&slabkv__v1__match_response__descriptor,
	&slabkv__v1__finish_response__descriptor,
	&slabkv__v1__pin_list__descriptor,
	&slabkv__v1__key_list__descriptor,
	&slabkv__v1__purge_response__descriptor,
	&slabkv__v1__error__descriptor,
};

static void samples_have_their_bytes(void **state)
{
	(void)state;
	assert_int_equal(sizeof types / sizeof types[0], n_pb_messages);
	for (size_t i = 0; i < n_pb_messages; i++) {
		struct skv_buf b = { 0 };

		pb_sample(&pb_messages[i], &b);
		protobuf_c_message_free_unpacked(theirs(types[i], &b), NULL);
		skv_buf_destroy(&b);
	}
}

/* Checks one column of theirs, expanded as slabkv.proto tells, against ours. */
static void same_column(const Slabkv__V1__Column *c, const struct skv_location *loc,
			uint32_t n_specs, const uint8_t *mark, uint8_t located, uint32_t n_rows)
{
	size_t run = 0, series = 0, sum = 0;
	uint32_t in_run = 0, in_series = 0;

	for (uint32_t r = 0; r < n_rows; r++) {
		const struct skv_location *l = &loc[(size_t)r * n_specs];
		const Slabkv__V1__Run *u;
		uint64_t length;

		if (mark[r] != located)
			continue;
		assert_true(run < c->n_runs);
		u = c->runs[run];
		length = u->length ? u->length : c->length;
		assert_int_equal(u->absent, l->length == 0);
		if (l->length) {
			const Slabkv__V1__Series *s = c->generations[series];
			bool has = c->n_checksums && !u->unsummed;

			same(l->file, u->file);
			same(l->length, length);
			same(l->offset,
			     u->offset + in_run * (u->stride ? (uint64_t)u->stride : length));
			same(l->generation, s->first + in_series * (uint64_t)s->step);
			if (in_series++ == s->more) {
				in_series = 0;
				series++;
			}
			assert_int_equal(l->has_checksum, has);
			if (has)
				same(l->checksum, c->checksums[sum++]);
		}
		if (in_run++ == u->more) {
			in_run = 0;
			run++;
		}
	}
	assert_int_equal(run, c->n_runs);
	assert_int_equal(series, c->n_generations);
	assert_int_equal(sum, c->n_checksums);
}

static void lookups_are_theirs(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		Slabkv__V1__LookupResponse *m;
		struct skv_lookup_res r;
		struct trip t;
		uint32_t at = 0;

		trip_begin(&t, round);
		r = any_lookup(&t, (int)(round % 4));
		skv_pb_write_lookup_res(&t.text, &r);
		m = theirs(&slabkv__v1__lookup_response__descriptor, &t.text);
		same(m->n_keys, r.n_keys);
		same(m->matched, r.matched);
		same(m->lease_ms, r.lease_ms);
		same_names((const char *const *)m->specs, (uint32_t)m->n_specs, r.specs, r.n_specs);
		assert_int_equal(m->n_files, r.files.n);
		assert_string_equal(m->files[0]->path, r.files.v[0].path);
		for (size_t i = 0; i < m->n_hit_runs; i++)
			for (uint32_t k = 0; k < m->hit_runs[i]; k++)
				assert_int_equal(r.hit[at++], i % 2);
		assert_int_equal(m->n_columns, r.matched ? r.n_specs : 0);
		for (size_t s = 0; s < m->n_columns; s++)
			same_column(m->columns[s], r.loc + s, r.n_specs, (const uint8_t *)r.hit,
				    true, r.n_keys);
		for (size_t s = 0; s < m->n_copies; s++)
			same_column(m->copies[s], r.copy + s, r.n_specs, (const uint8_t *)r.hit,
				    true, r.n_keys);
		protobuf_c_message_free_unpacked(&m->base, NULL);
		trip_end(&t);
	}
}

static void starts_are_theirs(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		Slabkv__V1__StartResponse *m;
		struct skv_start_res r;
		struct trip t;
		uint32_t at = 0;

		trip_begin(&t, round);
		r = any_start(&t);
		skv_pb_write_start_res(&t.text, &r);
		m = theirs(&slabkv__v1__start_response__descriptor, &t.text);
		assert_string_equal(m->session, r.session);
		same(m->state, r.state);
		same(m->n_write, r.n_write);
		for (size_t i = 0; i < m->n_outcome_runs; i++)
			for (uint32_t k = 0; k < m->outcome_runs[i] / 4; k++)
				assert_int_equal(r.outcome[at++], m->outcome_runs[i] % 4);
		for (size_t s = 0; s < m->n_columns; s++)
			same_column(m->columns[s], r.loc + s, r.n_specs, r.outcome, SKV_START_WRITE,
				    r.n_keys);
		assert_string_equal(m->copy_instance, r.copy_instance ? r.copy_instance : "");
		protobuf_c_message_free_unpacked(&m->base, NULL);
		trip_end(&t);
	}
}

static void requests_are_theirs(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		Slabkv__V1__StartRequest *m;
		struct skv_start_req r = { .request_id = "id", .deadline_ms = 1,
					   .independent = round & 1,
					   .selective = round & 2 };
		struct skv_key_input keys, parent;
		struct skv_key k;
		struct trip t;

		trip_begin(&t, round);
		keys = any_keys(&t, round % 3, any_count(&t, 500));
		parent = any_keys(&t, round % 3, 1);
		keys.parent = &parent;
		skv_pb_write_start_req(&t.text, &r, &keys);
		m = theirs(&slabkv__v1__start_request__descriptor, &t.text);
		for (uint32_t i = 0; i < keys.n; i++) {
			if (round % 3 == SKV_KEYS_STRING)
				assert_string_equal(m->keys[i], keys.strings[i]);
			if (round % 3 == SKV_KEYS_INT)
				same(m->keys_int[i], keys.keys[i].lo);
			if (round % 3 == SKV_KEYS_HEX) {
				char hex[2 * 16 + 1];

				for (int b = 0; b < 16; b++)
					snprintf(hex + 2 * b, 3, "%02x",
						 m->keys_raw.data[16 * i + b]);
				assert_true(skv_key_from_hex(hex, 32, &k));
				assert_true(skv_key_equal(k, keys.keys[i]));
			}
		}
		assert_int_equal(m->parent_key_case, round % 3 == SKV_KEYS_STRING ? 9 :
						     round % 3 == SKV_KEYS_INT	  ? 8 : 7);
		assert_string_equal(m->request_id, "id");
		protobuf_c_message_free_unpacked(&m->base, NULL);
		trip_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_have_their_bytes),
		cmocka_unit_test(lookups_are_theirs),
		cmocka_unit_test(starts_are_theirs),
		cmocka_unit_test(requests_are_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
