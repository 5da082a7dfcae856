/* report.c - tables, CSV and JSON of simulations. See report.h. No state. */
#include "report.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/json_out.h>

#define GB 1e9
#define NAME_WIDTH 16

static uint64_t bytes_of(const struct report *r, uint64_t per_token, uint64_t blocks)
{
	return per_token * r->trace_tokens * blocks;
}

static uint64_t tokens_saved(const struct report *r, const struct run *run)
{
	assert(run->counts.prefix_hits <= run->counts.block_hits);
	return run->counts.prefix_hits * r->trace_tokens;
}

/* Bytes written for each byte found. */
static double written_per_hit(const struct counts *c)
{
	return c->prefix_hits ? (double)c->inserted / (double)c->prefix_hits : 0;
}

/* ---- table ----------------------------------------------------------------------------------- */

static void row_begin(FILE *out, const char *name) { fprintf(out, "%-*s", NAME_WIDTH, name); }

static void capacities(const struct report *r, const char *what, FILE *out)
{
	row_begin(out, what);
	for (uint32_t b = 0; b < r->n_blocks; b++)
		fprintf(out, " %9" PRIu64, r->blocks[b]);
	fputc('\n', out);
}

/* Of the fast tier: as blocks, or as bytes. */
static void fast_capacities(const struct report *r, const char *what, bool bytes, FILE *out)
{
	row_begin(out, what);
	for (uint32_t b = 0; b < r->n_blocks; b++) {
		uint64_t blocks = report_run(r, 0, 0, b)->fast_blocks;

		if (bytes)
			fprintf(out, " %9.1f", (double)(blocks * r->tier_bytes) / GB);
		else
			fprintf(out, " %9" PRIu64, blocks);
	}
	fputc('\n', out);
}

static void gigabytes(const struct report *r, const char *what, uint64_t per_token, FILE *out)
{
	row_begin(out, what);
	for (uint32_t b = 0; b < r->n_blocks; b++)
		fprintf(out, " %9.1f", (double)bytes_of(r, per_token, r->blocks[b]) / GB);
	fputc('\n', out);
}

enum cell { PREFIX_RATE, BLOCK_RATE, PER_HIT, TOKENS, FAST_RATE, PROMOTED, WRITTEN };

static double value(const struct report *r, const struct run *run, enum cell cell)
{
	switch (cell) {
	case PREFIX_RATE:
		return report_rate(run->counts.prefix_hits, run->refs);
	case BLOCK_RATE:
		return report_rate(run->counts.block_hits, run->refs);
	case PER_HIT:
		return written_per_hit(&run->counts);
	case TOKENS:
		return (double)tokens_saved(r, run) / 1e6;
	case FAST_RATE:
		assert(run->tier.hits <= run->counts.prefix_hits);
		return report_rate(run->tier.hits, run->refs);
	case PROMOTED:
		return (double)(run->tier.promoted * r->tier_bytes) / GB;
	case WRITTEN:
		return (double)(run->tier.written * r->tier_bytes) / GB;
	}
	return 0;
}

static void rows(const struct report *r, uint32_t trace, enum cell cell, FILE *out)
{
	const bool rate = cell == PREFIX_RATE || cell == BLOCK_RATE || cell == FAST_RATE;

	for (uint32_t p = 0; p < r->n_policies; p++) {
		row_begin(out, r->policies[p]);
		for (uint32_t b = 0; b < r->n_blocks; b++)
			fprintf(out, rate ? " %9.4f" : " %9.2f",
				value(r, report_run(r, trace, p, b), cell));
		fputc('\n', out);
	}
}

static void about_trace(const struct refs *t, FILE *out)
{
	uint64_t span = t->n_requests ? t->at_ms[t->n_requests - 1] : 0;

	assert(t->n_once <= t->n_blocks && t->n_blocks <= t->n_refs);
	fprintf(out,
		"%s: %u requests over %" PRIu64
		" s, %u references to %u blocks, %.1f %% of these once; hit rate "
		"without limit %.4f\n",
		t->name, t->n_requests, span / 1000, t->n_refs, t->n_blocks,
		t->n_blocks ? 100.0 * t->n_once / t->n_blocks : 0,
		report_rate(t->n_refs - t->n_blocks, t));
}

static void about_sizing(const struct report *r, FILE *out)
{
	const struct sizing *s = r->sizing;

	fprintf(out,
		"%s, %s, TP %u: %" PRIu64
		" bytes a token on each rank, %s; a block of the trace is %u tokens,\n"
		"one of %u tokens takes %" PRIu64 " bytes on a rank\n",
		s->model.name ? s->model.name : "shape as given", s->dtype, s->tp, s->bytes.rank,
		s->bytes.ranks == 1 && s->tp > 1 ? "the same on all: stored once" : "each stored",
		r->trace_tokens, s->block_tokens, s->bytes.rank * s->block_tokens);
}

static void tiers_of(const struct report *r, uint32_t trace, FILE *out)
{
	assert(r->tier_bytes > 0 && r->runs->fast_blocks > 0);
	fputs("prefix hit rate of the fast tier alone\n", out);
	rows(r, trace, FAST_RATE, out);
	if (r->runs->promote_after) {
		fputs("GB copied up\n", out);
		rows(r, trace, PROMOTED, out);
	}
	if (r->runs->write_through) {
		fputs("GB written to the fast tier, too\n", out);
		rows(r, trace, WRITTEN, out);
	}
}

static void table_of(const struct report *r, uint32_t trace, FILE *out)
{
	about_trace(&r->refs[trace], out);
	capacities(r, "blocks", out);
	if (r->sizing) {
		gigabytes(r, "GB, one rank", r->sizing->bytes.rank, out);
		gigabytes(r, "GB, all", r->sizing->bytes.whole, out);
	}
	if (r->tier_bytes) {
		fast_capacities(r, "fast, blocks", false, out);
		fast_capacities(r, "fast, GB", true, out);
	}
	fputs("prefix hit rate\n", out);
	rows(r, trace, PREFIX_RATE, out);
	fputs("block hit rate\n", out);
	rows(r, trace, BLOCK_RATE, out);
	fputs("bytes written per byte hit\n", out);
	rows(r, trace, PER_HIT, out);
	if (r->sizing) {
		fprintf(out, "tokens not computed again, million, of %.2f\n",
			(double)r->refs[trace].input_tokens / 1e6);
		rows(r, trace, TOKENS, out);
	}
	if (r->tier_bytes)
		tiers_of(r, trace, out);
}

int report_table(const struct report *r, FILE *out)
{
	if (r->sizing)
		about_sizing(r, out);
	for (uint32_t i = 0; i < r->n_refs; i++) {
		if (i || r->sizing)
			fputc('\n', out);
		table_of(r, i, out);
	}
	return ferror(out) ? -1 : 0;
}

int report_sizing(const struct sizing *s, FILE *out)
{
	static const uint32_t tokens[] = { 1, 16, 64, 128, 256, 512 };
	bool known = false;

	fprintf(out, "%s, %s, TP %u%s\n%-14s %16s %16s\n",
		s->model.name ? s->model.name : "shape as given", s->dtype, s->tp,
		s->bytes.ranks == 1 && s->tp > 1 ? ", the same on all ranks: stored once" : "",
		"tokens", "bytes, one rank", "bytes, all");
	for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
		known |= tokens[i] == s->block_tokens;
		fprintf(out, "%-14u %16" PRIu64 " %16" PRIu64 "\n", tokens[i],
			s->bytes.rank * tokens[i], s->bytes.whole * tokens[i]);
	}
	if (!known)
		fprintf(out, "%-14u %16" PRIu64 " %16" PRIu64 "\n", s->block_tokens,
			s->bytes.rank * s->block_tokens, s->bytes.whole * s->block_tokens);
	return ferror(out) ? -1 : 0;
}

/* ---- for programs ---------------------------------------------------------------------------- */

/* A CSV field that may contain any character. */
static void quoted(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++)
		fprintf(out, *s == '"' ? "\"\"" : "%c", *s);
	fputc('"', out);
}

int report_csv(const struct report *r, FILE *out)
{
	fputs("trace,policy,blocks,bytes_rank,bytes_all,requests,references,block_hits,prefix_hits,"
	      "block_hit_rate,prefix_hit_rate,inserted,evicted,examined,tokens_saved,"
	      "written_per_hit",
	      out);
	fputs(r->tier_bytes ? ",fast_blocks,fast_hits,fast_evicted,promoted_bytes,"
			      "written_through_bytes\n" : "\n", out);
	for (uint32_t i = 0; i < r->n_refs * r->n_policies * r->n_blocks; i++) {
		const struct run *run = &r->runs[i];
		const struct counts *c = &run->counts;

		quoted(out, run->refs->name);
		fprintf(out, ",%s,%" PRIu64 ",", run->policy, run->blocks);
		if (r->sizing)
			fprintf(out, "%" PRIu64 ",%" PRIu64,
				bytes_of(r, r->sizing->bytes.rank, run->blocks),
				bytes_of(r, r->sizing->bytes.whole, run->blocks));
		else
			fputc(',', out);
		fprintf(out,
			",%u,%u,%" PRIu64 ",%" PRIu64 ",%.6f,%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64
			",%" PRIu64 ",%.4f",
			run->refs->n_requests, run->refs->n_refs, c->block_hits, c->prefix_hits,
			report_rate(c->block_hits, run->refs),
			report_rate(c->prefix_hits, run->refs), c->inserted, c->evicted,
			c->examined, tokens_saved(r, run), written_per_hit(c));
		if (r->tier_bytes)
			fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
				run->fast_blocks, run->tier.hits, run->tier.evicted,
				run->tier.promoted * r->tier_bytes,
				run->tier.written * r->tier_bytes);
		fputc('\n', out);
	}
	return ferror(out) ? -1 : 0;
}

static void field_rate(struct skv_buf *b, const char *name, double rate)
{
	char text[16];
	int n = snprintf(text, sizeof text, "%.6f", rate);

	assert(n > 0 && (size_t)n < sizeof text);
	skv_jout_name(b, name);
	skv_jout_plain(b, text, (size_t)n);
}

static void json_run(const struct report *r, const struct run *run, struct skv_buf *b)
{
	skv_jout_open(b, '{');
	skv_jout_field_string(b, "policy", run->policy);
	skv_jout_field_u64(b, "blocks", run->blocks);
	if (r->sizing) {
		skv_jout_field_u64(b, "bytes_rank",
				   bytes_of(r, r->sizing->bytes.rank, run->blocks));
		skv_jout_field_u64(b, "bytes_all",
				   bytes_of(r, r->sizing->bytes.whole, run->blocks));
	}
	skv_jout_field_u64(b, "block_hits", run->counts.block_hits);
	skv_jout_field_u64(b, "prefix_hits", run->counts.prefix_hits);
	field_rate(b, "block_hit_rate", report_rate(run->counts.block_hits, run->refs));
	field_rate(b, "prefix_hit_rate", report_rate(run->counts.prefix_hits, run->refs));
	skv_jout_field_u64(b, "inserted", run->counts.inserted);
	skv_jout_field_u64(b, "evicted", run->counts.evicted);
	skv_jout_field_u64(b, "examined", run->counts.examined);
	skv_jout_field_u64(b, "tokens_saved", tokens_saved(r, run));
	field_rate(b, "written_per_hit", written_per_hit(&run->counts));
	if (r->tier_bytes) {
		skv_jout_field_u64(b, "fast_blocks", run->fast_blocks);
		skv_jout_field_u64(b, "fast_hits", run->tier.hits);
		skv_jout_field_u64(b, "fast_evicted", run->tier.evicted);
		skv_jout_field_u64(b, "promoted_bytes", run->tier.promoted * r->tier_bytes);
		skv_jout_field_u64(b, "written_through_bytes", run->tier.written * r->tier_bytes);
	}
	skv_jout_close(b, '}');
}

static void json_trace(const struct report *r, uint32_t trace, struct skv_buf *b)
{
	const struct refs *t = &r->refs[trace];
	uint32_t n = r->n_policies * r->n_blocks;

	skv_jout_open(b, '{');
	skv_jout_field_text(b, "name", t->name);
	skv_jout_field_u64(b, "requests", t->n_requests);
	skv_jout_field_u64(b, "references", t->n_refs);
	skv_jout_field_u64(b, "blocks", t->n_blocks);
	skv_jout_field_u64(b, "blocks_used_once", t->n_once);
	skv_jout_field_u64(b, "span_ms", t->n_requests ? t->at_ms[t->n_requests - 1] : 0);
	skv_jout_name(b, "runs");
	skv_jout_open(b, '[');
	for (uint32_t i = 0; i < n; i++)
		json_run(r, &r->runs[(size_t)trace * n + i], b);
	skv_jout_close(b, ']');
	skv_jout_close(b, '}');
}

int report_json(const struct report *r, FILE *out)
{
	struct skv_buf b = { 0 };
	int rc;

	skv_jout_begin(&b);
	skv_jout_field_string(&b, "mode", r->n_refs && r->runs[0].full ? "full" : "policy");
	skv_jout_field_u64(&b, "trace_block_tokens", r->trace_tokens);
	if (r->sizing) {
		skv_jout_field_string(&b, "model",
				      r->sizing->model.name ? r->sizing->model.name : "");
		skv_jout_field_string(&b, "dtype", r->sizing->dtype);
		skv_jout_field_u64(&b, "tp", r->sizing->tp);
		skv_jout_field_u64(&b, "block_tokens", r->sizing->block_tokens);
		skv_jout_field_u64(&b, "bytes_per_token_rank", r->sizing->bytes.rank);
		skv_jout_field_u64(&b, "bytes_per_token_all", r->sizing->bytes.whole);
	}
	skv_jout_name(&b, "traces");
	skv_jout_open(&b, '[');
	for (uint32_t i = 0; i < r->n_refs; i++)
		json_trace(r, i, &b);
	skv_jout_close(&b, ']');
	skv_jout_close(&b, '}');
	rc = b.failed || fwrite(b.data, 1, b.len, out) != b.len || fputc('\n', out) == EOF ? -1 : 0;
	skv_buf_destroy(&b);
	return rc;
}

int report_hits(const struct run *run, FILE *out)
{
	const struct refs *t = run->refs;

	fputs("request,blocks,prefix_hits,hits_behind,written\n", out);
	for (uint32_t q = 0; q < t->n_requests; q++)
		fprintf(out, "%u,%u,%u,%u,%u\n", q + 1, t->first[q + 1] - t->first[q],
			run->hits[q].prefix, run->hits[q].behind, run->hits[q].written);
	return ferror(out) ? -1 : 0;
}
