/* random_answers.h - answers and keys with random contents of all shapes, for round trips. */
#ifndef TESTS_API_RANDOM_ANSWERS_H
#define TESTS_API_RANDOM_ANSWERS_H

#include "trip.h"

static inline struct skv_files any_files(struct trip *t, uint32_t n)
{
	struct skv_files f = { .v = made(t, n ? n : 1, sizeof *f.v), .n = n };

	for (uint32_t i = 0; i < n; i++) {
		f.v[i].storage = any_name(t, i);
		f.v[i].type = "file";
		any_uuid(t, f.v[i].uuid);
		snprintf(f.v[i].path, sizeof f.v[i].path, "slab-%08x.kvs", i);
	}
	return f;
}

/* Locations of all shapes: runs with several strides, lengths that change, generations of all
 * kinds, checksums here and there. `absent`: some are not there. */
static inline struct skv_location *any_locations(struct trip *t, uint32_t n, uint32_t n_specs,
					  uint32_t n_files, bool absent)
{
	struct skv_location *loc = made(t, (size_t)n * n_specs + 1, sizeof *loc);
	uint32_t wild = below(t, 4); /* 0: all in one run */
	int sums = (int)below(t, 3);

	for (uint32_t s = 0; s < n_specs; s++) {
		struct skv_location at = { .file = below(t, n_files), .offset = rnd(t) >> 24,
					   .length = 1 + (rnd(t) >> 44), .generation = any64(t) };
		int64_t stride = (int64_t)at.length, step = 1;

		for (uint32_t i = 0; i < n; i++) {
			struct skv_location *l = &loc[(size_t)i * n_specs + s];

			if (wild && below(t, 2 + 8 * wild) == 0)
				stride = (int64_t)(rnd(t) >> 50) - 8192;
			if (wild && below(t, 2 + 8 * wild) == 0)
				at.file = below(t, n_files);
			if (wild == 3 && below(t, 8) == 0)
				at.length = 1 + (any64(t) >> 2);
			if (wild && below(t, 2 + 8 * wild) == 0)
				step = (int64_t)(any64(t) >> below(t, 60));
			if ((int64_t)at.offset + stride < 0 || at.offset + at.length > INT64_MAX)
				at.offset = rnd(t) >> 30;
			if (at.offset + at.length > INT64_MAX)
				at.length = 7;
			*l = at;
			l->has_checksum = sums == 1 || (sums == 2 && below(t, 3));
			if (l->has_checksum)
				l->checksum = any64(t);
			if (absent && below(t, 5) == 0)
				*l = (struct skv_location){ 0 };
			at.offset += (uint64_t)stride;
			at.generation += (uint64_t)step;
		}
	}
	return loc;
}

static inline uint32_t any_count(struct trip *t, uint32_t max)
{
	return below(t, 30) ? 1 + below(t, 40) : max;
}

/* `hits`: 0 all, 1 half of them anywhere, 2 a prefix, 3 none. */
static inline struct skv_lookup_res any_lookup(struct trip *t, int hits)
{
	struct skv_lookup_res r = { .lease_ms = any32(t) };

	r.n_keys = any_count(t, below(t, 4) ? 2000 : SKV_MAX_KEYS);
	r.n_specs = below(t, 20) ? 1 + below(t, 3) : r.n_keys > 2000 ? 1 : SKV_MAX_SPECS;
	r.specs = any_names(t, r.n_specs);
	r.files = any_files(t, 1 + below(t, 5));
	r.hit = made(t, r.n_keys, sizeof *r.hit);
	r.loc = any_locations(t, r.n_keys, r.n_specs, r.files.n, false);
	if (below(t, 2))
		r.copy = any_locations(t, r.n_keys, r.n_specs, r.files.n, true);
	for (uint32_t i = 0; i < r.n_keys; i++) {
		r.hit[i] = hits == 0 || (hits == 1 && below(t, 2)) ||
			   (hits == 2 && i < r.n_keys / 2);
		r.matched += r.hit[i];
	}
	return r;
}

static inline struct skv_start_res any_start(struct trip *t)
{
	struct skv_start_res r = { .deadline_ms = any32(t) };

	r.state = below(t, 5) ? SKV_SESSION_OPEN : (enum skv_session_state)below(t, 4);
	r.n_keys = any_count(t, below(t, 4) ? 2000 : SKV_MAX_KEYS);
	r.n_specs = below(t, 20) ? 1 + below(t, 3) : r.n_keys > 2000 ? 1 : SKV_MAX_SPECS;
	r.specs = any_names(t, r.n_specs);
	r.files = any_files(t, 1 + below(t, 5));
	r.outcome = made(t, r.n_keys, sizeof *r.outcome);
	r.loc = any_locations(t, r.n_keys, r.n_specs, r.files.n, true);
	if (r.state == SKV_SESSION_OPEN && below(t, 2))
		r.copy_instance = "Org/model@fast";
	for (uint32_t i = 0; i < r.n_keys; i++) {
		r.outcome[i] = (uint8_t)(below(t, 2) ? 0 : below(t, 4));
		r.n_write += r.outcome[i] == SKV_START_WRITE;
	}
	if (r.n_write)
		snprintf(r.session, sizeof r.session, "%016llx%016llx", (unsigned long long)rnd(t),
			 (unsigned long long)rnd(t));
	return r;
}

static inline struct skv_key_input any_keys(struct trip *t, enum skv_key_form form, uint32_t n)
{
	const char **strings = made(t, n, sizeof *strings);
	struct skv_key *keys = made(t, n, sizeof *keys);
	uint64_t base = any64(t);

	for (uint32_t i = 0; i < n; i++) {
		char *s = made(t, 1, 80);

		snprintf(s, 80, "%u %s", i, any_text(t, 40));
		strings[i] = s;
		keys[i] = (struct skv_key){ .hi = form == SKV_KEYS_HEX ? any64(t) : 0,
					    .lo = base + i };
	}
	return (struct skv_key_input){ .form = form, .n = n, .strings = strings, .keys = keys };
}

#endif
