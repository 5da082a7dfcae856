/* replay_report.c - progress and final table of `slabkv replay`. Stateless. */
#include "replay.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <skv/clock.h>

static double ratio(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static double per_second(uint64_t n, uint64_t us) { return us ? (double)n * 1e6 / (double)us : 0; }

void skv_replay_progress(const struct skv_replay *r)
{
	size_t done = atomic_load(&r->done);
	uint64_t us = skv_now_us() - r->begin_us;
	int filled = r->trace.n ? (int)(done * 30 / r->trace.n) : 30;

	assert(filled >= 0 && filled <= 30);
	fprintf(stderr, "\r[%.*s%*s] %zu of %zu requests  %.0f MB/s ", filled,
		"##############################", 30 - filled, "", done, r->trace.n,
		per_second(atomic_load(&r->bytes), us) / 1e6);
	fflush(stderr);
}

/* Bytes that live blocks and open sessions take, over all storages; and those of this instance. */
static void space(struct skv_replay *r, uint64_t *storages, uint64_t *instance)
{
	json_t *stats = NULL;
	const json_t *o;
	size_t i;

	*storages = *instance = 0;
	if (skv_cli_stats(r->cli, r->kv, &stats) != SKV_EXIT_OK)
		return;
	json_array_foreach(json_object_get(stats, "storages"), i, o)
		*storages += skv_cli_u64(o, "used_bytes");
	json_array_foreach(json_object_get(stats, "instances"), i, o)
		if (strcmp(skv_cli_text(o, "id"), r->instance) == 0)
			*instance += skv_cli_u64(o, "used_bytes");
	json_decref(stats);
}

static json_t *latency_json(const struct skv_histogram *h)
{
	return json_pack("{sI sI sI sI}", "calls", (json_int_t)h->count, "p50_us",
			 (json_int_t)skv_histogram_quantile(h, 0.5), "p99_us",
			 (json_int_t)skv_histogram_quantile(h, 0.99), "max_us", (json_int_t)h->max);
}

static int report_json(struct skv_replay *r, uint64_t storages, uint64_t instance)
{
	const struct skv_replay_counts *c = &r->sum;
	json_t *doc = json_pack(
		"{ss sI sI si sI sI sI sI sI sI sI sI sI sI sI sI sI}", "instance", r->instance,
		"block_bytes", (json_int_t)r->block_bytes, "specs", (json_int_t)r->n_specs,
		"clients", (int)r->n_clients, "requests", (json_int_t)c->requests, "blocks",
		(json_int_t)c->blocks, "prefix_hits", (json_int_t)c->prefix_hits, "block_hits",
		(json_int_t)(c->prefix_hits + c->exists), "verified", (json_int_t)c->verified,
		"read_misses", (json_int_t)c->read_misses, "read_errors",
		(json_int_t)c->read_errors, "mismatches", (json_int_t)c->mismatches, "written",
		(json_int_t)c->written, "busy", (json_int_t)c->busy, "not_admitted",
		(json_int_t)c->not_admitted, "failed",
		(json_int_t)c->failed, "ios", (json_int_t)c->ios);
	json_t *more = json_pack(
		"{sf sf sI sI sI sf sI sI so so so}", "block_hit_rate",
		ratio(c->prefix_hits + c->exists, c->blocks), "prefix_hit_rate",
		ratio(c->prefix_hits, c->blocks), "bytes_written", (json_int_t)c->bytes_written,
		"bytes_verified", (json_int_t)c->bytes_read, "wall_us", (json_int_t)r->wall_us,
		"mb_per_s", per_second(c->bytes_written + c->bytes_read, r->wall_us) / 1e6,
		"storage_used_bytes", (json_int_t)storages, "instance_used_bytes",
		(json_int_t)instance, "lookup", latency_json(&r->lookup), "start",
		latency_json(&r->start), "finish", latency_json(&r->finish));

	if (doc && more)
		json_object_update(doc, more);
	if (doc && r->error.code)
		json_object_set_new(doc, "error", json_string(r->error.message));
	json_decref(more);
	return skv_cli_print_json(doc);
}

static void latency_line(const char *name, const struct skv_histogram *h)
{
	printf("%-24s p50 %" PRIu64 " us, p99 %" PRIu64 " us (%" PRIu64 " calls)\n", name,
	       skv_histogram_quantile(h, 0.5), skv_histogram_quantile(h, 0.99), h->count);
}

static void report_table(const struct skv_replay *r, uint64_t storages, uint64_t instance)
{
	const struct skv_replay_counts *c = &r->sum;
	char all[24], mine[24];

	assert(c->prefix_hits <= c->blocks && c->prefix_hits + c->exists <= c->blocks);
	skv_args_print_size(storages, all);
	skv_args_print_size(instance, mine);
	printf("%-24s %" PRIu64 "\n", "requests", c->requests);
	printf("%-24s %" PRIu64 " of %" PRIu64 " bytes in %u part(s)\n", "blocks", c->blocks,
	       r->block_bytes, r->n_specs);
	printf("%-24s block %.4f, prefix %.4f\n", "hit rate",
	       ratio(c->prefix_hits + c->exists, c->blocks), ratio(c->prefix_hits, c->blocks));
	printf("%-24s %.3f GB (%" PRIu64 " blocks)\n", "written", (double)c->bytes_written / 1e9,
	       c->written);
	printf("%-24s %.3f GB (%" PRIu64 " blocks)\n", "read and verified",
	       (double)c->bytes_read / 1e9, c->verified);
	printf("%-24s %" PRIu64 "\n", "mismatches", c->mismatches);
	printf("%-24s %" PRIu64 " busy, %" PRIu64 " not admitted, %" PRIu64 " failed, %" PRIu64
	       " gone before read, %" PRIu64 " read errors\n",
	       "not done", c->busy, c->not_admitted, c->failed, c->read_misses, c->read_errors);
	printf("%-24s %.1f MB/s over %.1f s, %.1f blocks per I/O\n", "throughput",
	       per_second(c->bytes_written + c->bytes_read, r->wall_us) / 1e6,
	       (double)r->wall_us / 1e6, ratio(c->written + c->verified, c->ios));
	latency_line("lookup", &r->lookup);
	latency_line("start", &r->start);
	latency_line("finish", &r->finish);
	printf("%-24s %s in all storages, %s of this instance\n", "space in use", all, mine);
}

int skv_replay_write_hits(struct skv_replay *r)
{
	FILE *f = r->hits_file;

	assert(r->running == 0); /* no thread changes r->hits any more */
	fputs("request,blocks,prefix_hits,hits_behind,written\n", f);
	for (size_t i = 0; i < r->trace.n; i++)
		if (r->hits[i].done)
			fprintf(f, "%zu,%u,%u,%u,%u\n", i + 1, r->trace.v[i].n_ids,
				r->hits[i].prefix, r->hits[i].behind, r->hits[i].written);
	if (fflush(f) != 0 || ferror(f))
		return skv_cli_usage(r->cli, "%s: %s", r->hits_path, strerror(errno));
	return SKV_EXIT_OK;
}

int skv_replay_report(struct skv_replay *r)
{
	uint64_t storages, instance;

	assert(r->sum.requests == atomic_load(&r->done));
	assert(r->sum.bytes_read == r->sum.verified * r->block_bytes);
	space(r, &storages, &instance);
	if (r->cli->json)
		return report_json(r, storages, instance);
	report_table(r, storages, instance);
	return SKV_EXIT_OK;
}
