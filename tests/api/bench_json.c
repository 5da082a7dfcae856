/*
 * bench_json.c - CPU time per hot message.
 *
 * usage: bench_json [keys [rounds]]. The best of five runs, in nanoseconds of this thread's CPU
 * time. The message is read into an arena that is reset each time and written into a buffer that is
 * kept, as a connection does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "json_requests.h"
#include "messages.h"

static uint32_t n_keys = 512, rounds = 400;
static struct skv_arena arena, made; /* of a read; of the messages */
static struct skv_v1_in in = { .arena = &arena, .secret = &test_secret, .tenant = "default" };
static struct skv_buf text[4], out;
static struct skv_lookup_res lookup;
static struct skv_start_res start;
static struct skv_finish_res finish = { .state = SKV_SESSION_FINISHED, .committed = 512 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *zeroed(size_t n, size_t size)
{
	void *p = skv_arena_calloc(&made, n, size);

	if (!p)
		exit(1);
	return p;
}

static void make_messages(void)
{
	static const char *const specs[] = { "tp0" }, *const instances[] = { "m" };
	struct skv_key *keys = zeroed(n_keys, sizeof *keys);
	struct skv_key_input input = { .form = SKV_KEYS_HEX, .n = n_keys, .keys = keys };
	struct skv_files files = { zeroed(8, sizeof *files.v), 8 };
	struct skv_finish_req done = { .mask_kind = SKV_MASK_ALL, .n_checksums = n_keys };
	uint64_t *sums = zeroed(n_keys, sizeof *sums);

	for (uint32_t i = 0; i < files.n; i++) {
		files.v[i] = (struct skv_file_ref){
			.storage = "default", .type = "file",
			.uuid = "00112233-4455-6677-8899-aabbccddeeff",
		};
		snprintf(files.v[i].path, sizeof files.v[i].path, "slab-%08u.kvs", i);
	}
	lookup = (struct skv_lookup_res){ .n_keys = n_keys, .matched = n_keys, .n_specs = 1,
					  .specs = specs,
					  .hit = zeroed(n_keys, sizeof(bool)), .lease_ms = 10000,
					  .loc = zeroed(n_keys, sizeof *lookup.loc),
					  .files = files };
	start = (struct skv_start_res){ .session = "00112233445566778899aabbccddeeff",
					.n_keys = n_keys, .n_write = n_keys, .n_specs = 1,
					.specs = specs,
					.outcome = zeroed(n_keys, 1), .loc = lookup.loc,
					.files = files };
	for (uint32_t i = 0; i < n_keys; i++) {
		keys[i] = skv_hash128(&i, sizeof i);
		sums[i] = keys[i].lo;
		lookup.hit[i] = true;
		lookup.loc[i] = (struct skv_location){ i % 8,      (uint64_t)i * 4497408,
						       4497408,    1000000 + i,
						       keys[i].hi, true };
	}
	done.checksums = sums;
	json_lookup_req(&text[0], &(struct skv_lookup_req){ .lease_ms = SKV_LEASE_DEFAULT },
				&input);
	json_match_req(&text[1],
			       &(struct skv_match_req){ .instances = instances, .n_instances = 1 },
			       &input);
	json_start_req(&text[2], &(struct skv_start_req){ .request_id = "r-1" }, &input);
	json_finish_req(&text[3], &done);
}

static void must(int status)
{
	if (status == SKV_OK)
		return;
	fprintf(stderr, "a message of the benchmark is refused\n");
	exit(1);
}

#define READ_STEP(message, type, i)                                                            \
	static void read_##message(void)                                                       \
	{                                                                                      \
		struct type m;                                                                 \
		must(skv_v1_read_##message(&in, (char *)text[i].data, text[i].len, &m, NULL)); \
	}
#define WRITE_STEP(message, value) \
	static void write_##message(void) { skv_v1_write_##message(&out, &(value)); }

READ_STEP(lookup_req, skv_lookup_req, 0)
READ_STEP(match_req, skv_match_req, 1)
READ_STEP(start_req, skv_start_req, 2)
READ_STEP(finish_req, skv_finish_req, 3)
WRITE_STEP(lookup_res, lookup)
WRITE_STEP(start_res, start)
WRITE_STEP(finish_res, finish)

static double best(void (*step)(void))
{
	double least = 1e18;

	for (int run = 0; run < 5; run++) {
		double t = now();

		for (uint32_t i = 0; i < rounds; i++) {
			step();
			skv_arena_reset(&arena);
			skv_buf_clear(&out);
		}
		t = (now() - t) / rounds;
		least = t < least ? t : least;
	}
	return least;
}

#define ROW(name) { #name, name }

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*step)(void);
	} rows[] = { ROW(read_lookup_req),  ROW(write_lookup_res), ROW(read_match_req),
		     ROW(read_start_req),   ROW(write_start_res),  ROW(read_finish_req),
		     ROW(write_finish_res) };

	if (argc > 1)
		n_keys = (uint32_t)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		rounds = (uint32_t)strtoul(argv[2], NULL, 10);
	if (n_keys == 0 || n_keys > SKV_MAX_KEYS || rounds == 0)
		return 2;
	make_messages();
	printf("%u keys, ns per message\n", n_keys);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		printf("%-25s %12.0f\n", rows[i].name, best(rows[i].step));
	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
		skv_buf_destroy(&text[i]);
	skv_buf_destroy(&out);
	skv_arena_destroy(&arena);
	skv_arena_destroy(&made);
	return 0;
}
