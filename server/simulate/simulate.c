/*
 * simulate.c - `slabkvd simulate`: reads traces, simulates each policy at each capacity, prints the
 * results.
 *
 * One thread, which makes those of run.c. A signal stops them; nothing is printed then.
 */
#include <skv/simulate.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/limits.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/policy.h>

#include "options.h"
#include "report.h"
#include "textbook.h"

enum { EXIT_DONE = 0, EXIT_PROBLEM = 1, EXIT_USAGE = 2 };

#define SMALLEST 500u /* capacity that is chosen for a trace */

struct job {
	struct options o;
	struct refs *refs;
	uint32_t n_refs;
	const char *policies[MAX_LIST];
	uint32_t n_policies;
	uint64_t blocks[MAX_LIST];
	uint64_t fast[MAX_LIST];
	uint32_t n_blocks;
	struct sizing sizing;
	struct run *runs;
};

static int complain(int status, const char *what)
{
	fprintf(stderr, "slabkvd simulate: %s\n", what);
	return status;
}

static int complain_of(const struct skv_error *err)
{
	return complain(err->status == SKV_E_INVALID || err->status == SKV_E_TOO_LARGE
				? EXIT_USAGE
				: EXIT_PROBLEM,
			err->message[0] ? err->message : skv_status_text(err->status));
}

/* ---- traces ---------------------------------------------------------------------------------- */

static int read_trace(const char *path, uint64_t requests, struct skv_trace *t)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char why[256], text[600];
	int rc;

	if (!f) {
		snprintf(text, sizeof text, "%.300s: %s", path, strerror(errno));
		return complain(EXIT_USAGE, text);
	}
	rc = skv_trace_read(f, requests, t, why);
	if (f != stdin)
		fclose(f);
	if (rc == 0 && t->n)
		return EXIT_DONE;
	snprintf(text, sizeof text, "%.300s: %s", path, rc ? why : "holds no request");
	skv_trace_free(t);
	return complain(EXIT_USAGE, text);
}

static int generate(const struct options *o, struct skv_trace *t)
{
	if (skv_gen_make(&o->gen, t) != 0)
		return complain(EXIT_PROBLEM, "out of memory");
	for (; o->requests && t->n > o->requests; t->n--)
		skv_free(t->v[t->n - 1].ids);
	return EXIT_DONE;
}

static int add_trace(struct job *j, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	struct skv_trace t;
	struct skv_error err = { 0 };
	char name[128];
	int rc = path ? read_trace(path, j->o.requests, &t) : generate(&j->o, &t);

	if (rc != EXIT_DONE)
		return rc;
	if (path)
		snprintf(name, sizeof name, "%.120s",
			 strcmp(path, "-") == 0 ? "stdin"
			 : slash                ? slash + 1
						: path);
	else
		snprintf(name, sizeof name, "%s, %" PRIu32 "%s, seed %" PRIu64,
			 skv_gen_kind_name(j->o.gen.kind), j->o.gen.conversations,
			 j->o.gen.kind == SKV_GEN_MIX ? " %" : " conversations", j->o.gen.seed);
	rc = refs_make(&t, name, &j->refs[j->n_refs++], &err);
	skv_trace_free(&t);
	if (rc != SKV_OK)
		return complain_of(&err);
	return j->refs[j->n_refs - 1].n_refs ? EXIT_DONE
					     : complain(EXIT_USAGE, "the trace refers to no block");
}

static int load(struct job *j)
{
	uint32_t n = j->o.generate ? 1 : j->o.n_traces;
	int rc = EXIT_DONE;

	j->refs = skv_calloc(n, sizeof *j->refs);
	if (!j->refs)
		return complain(EXIT_PROBLEM, "out of memory");
	for (uint32_t i = 0; i < n && rc == EXIT_DONE; i++)
		rc = add_trace(j, j->o.generate ? NULL : j->o.traces[i]);
	return rc;
}

/* ---- choosing runs --------------------------------------------------------------------------- */

static int choose_policies(struct job *j)
{
	char text[256];

	for (uint32_t i = 0; i < j->o.n_policies; i++) {
		const char *name = j->o.policies[i];
		bool optimum = strcmp(name, "belady") == 0;
		const struct skv_policy_ops *p = j->o.full ? skv_policy_find(name)
							   : simulated_policy(name);

		if (optimum ? !j->o.full && !j->o.tiers : p != NULL) {
			j->policies[j->n_policies++] = optimum ? name : p->name;
			continue;
		}
		snprintf(text, sizeof text, "--policy: '%.40s' is none of %s%s%s", name,
			 skv_policy_names(), j->o.full ? "" : ", " TEXTBOOK_NAMES,
			 j->o.full || j->o.tiers ? "" : ", belady");
		return complain(EXIT_USAGE, text);
	}
	assert(j->n_policies <= MAX_LIST);
	if (j->n_policies)
		return EXIT_DONE;
	for (const struct skv_policy_ops *const *p = skv_policy_all(); *p; p++)
		if (j->o.full || strcmp((*p)->name, "ttl") != 0) /* without a clock it is fifo */
			j->policies[j->n_policies++] = (*p)->name;
	for (uint32_t i = 0; !j->o.full && textbook_policy(i); i++)
		j->policies[j->n_policies++] = textbook_policy(i)->name;
	if (!j->o.full && !j->o.tiers)
		j->policies[j->n_policies++] = "belady";
	return EXIT_DONE;
}

static void choose_blocks(struct job *j)
{
	static const uint32_t in_decade[] = { 1, 2, 5 };
	uint64_t most = 0;

	for (uint32_t i = 0; i < j->n_refs; i++)
		most = j->refs[i].n_blocks > most ? j->refs[i].n_blocks : most;
	for (uint64_t decade = 100; decade <= most && j->n_blocks < MAX_LIST - 4; decade *= 10)
		for (size_t i = 0; i < 3; i++)
			if (decade * in_decade[i] >= SMALLEST && decade * in_decade[i] < most)
				j->blocks[j->n_blocks++] = decade * in_decade[i];
	assert(j->n_blocks < MAX_LIST);
	j->blocks[j->n_blocks++] = most;
}

/* Bytes of a block of the trace, with all ranks of the model. */
static uint64_t block_bytes(const struct job *j)
{
	return j->o.sizing ? j->sizing.bytes.whole * j->o.trace_tokens : j->o.block_bytes;
}

/* Bytes of the model's ranks, or of the storage in full mode, as blocks of the trace. */
static int blocks_of_capacities(struct job *j)
{
	uint64_t one = block_bytes(j);

	for (uint32_t i = 0; i < j->o.n_capacity; i++) {
		j->fast[j->n_blocks] = j->o.fast[i] / one;
		j->blocks[j->n_blocks++] = j->o.capacity[i] / one;
		if (j->o.tiers &&
		    (j->o.fast[i] / one == 0 || j->o.fast[i] / one == j->o.capacity[i] / one))
			return complain(EXIT_USAGE, "--tiers: less than one block, or than one "
						    "block of difference");
		if (j->o.capacity[i] / one == 0)
			return complain(EXIT_USAGE, "--capacity: less than one block");
	}
	return EXIT_DONE;
}

static int choose_capacities(struct job *j)
{
	if (j->o.n_capacity)
		return blocks_of_capacities(j);
	if (!j->o.n_blocks) {
		choose_blocks(j);
		return EXIT_DONE;
	}
	memcpy(j->blocks, j->o.blocks, j->o.n_blocks * sizeof *j->blocks);
	j->n_blocks = j->o.n_blocks;
	return EXIT_DONE;
}

static int size_model(struct job *j)
{
	const struct options *o = &j->o;
	struct skv_error err = { 0 };
	char text[400];

	j->sizing = (struct sizing){ .model = o->model, .dtype = o->dtype, .tp = o->tp,
				     .block_tokens = o->block_tokens };
	if (skv_model_bytes(&o->model, o->dtype, o->tp, &j->sizing.bytes, &err) == SKV_OK) {
		uint32_t tokens =
			o->block_tokens > o->trace_tokens ? o->block_tokens : o->trace_tokens;

		if (j->sizing.bytes.rank <= SKV_MAX_SPEC_SIZE / tokens)
			return EXIT_DONE;
		skv_fail(
			&err, SKV_E_INVALID,
			o->block_tokens > o->trace_tokens ? "block-tokens" : "trace-block-tokens",
			"%u tokens of this model take more than the %llu bytes that a block of a "
			"rank may have",
			tokens, (unsigned long long)SKV_MAX_SPEC_SIZE);
	}
	snprintf(text, sizeof text, "--%s: %.250s", err.field, err.message);
	return complain(EXIT_USAGE, text);
}

static int make_runs(struct job *j)
{
	uint32_t n = j->n_refs * j->n_policies * j->n_blocks, at = 0;

	if (j->o.hits && n != 1)
		return complain(EXIT_USAGE, "--hits: of one trace, one --policy and one capacity");
	j->runs = skv_calloc(n, sizeof *j->runs);
	if (!j->runs)
		return complain(EXIT_PROBLEM, "out of memory");
	for (uint32_t t = 0; t < j->n_refs; t++)
		for (uint32_t p = 0; p < j->n_policies; p++)
			for (uint32_t b = 0; b < j->n_blocks; b++)
				j->runs[at++] = (struct run){
					.refs = &j->refs[t], .policy = j->policies[p],
					.blocks = j->blocks[b], .full = j->o.full,
					.one_by_one = j->o.one_by_one,
					.fast_blocks = j->fast[b],
					.promote_after = j->o.promote_after,
					.write_through = j->o.write_through,
					.instance = j->o.instance, .ttl_ms = j->o.ttl_ms,
					.block_bytes = j->o.block_bytes,
					.storage_unit = j->o.unit, .storage_file = j->o.file_size,
					.storage_bytes =
						j->o.full && j->o.n_capacity && !j->o.sizing
							? j->o.capacity[b] : 0,
				};
	assert(at == n);
	if (j->o.hits &&
	    !(j->runs[0].hits = skv_calloc(j->refs[0].n_requests, sizeof *j->runs[0].hits)))
		return complain(EXIT_PROBLEM, "out of memory");
	return EXIT_DONE;
}

/* ---- running --------------------------------------------------------------------------------- */

static void on_signal(int signal)
{
	(void)signal;
	atomic_store(&run_stop, true);
}

static void progress(uint64_t done, uint64_t all)
{
	int filled = all ? (int)(done * 30 / all) : 30;

	assert(filled >= 0 && filled <= 30);
	fprintf(stderr, "\r[%.*s%*s] %3.0f %%", filled, "##############################",
		30 - filled, "", all ? 100.0 * (double)done / (double)all : 100.0);
	fflush(stderr);
}

static int run_jobs(struct job *j)
{
	struct sigaction stop = { .sa_handler = on_signal };
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	bool terminal = isatty(STDERR_FILENO);
	struct skv_error err = { 0 };
	int rc;

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	rc = run_all(j->runs, j->n_refs * j->n_policies * j->n_blocks,
		     j->o.threads     ? j->o.threads
		     : processors > 0 ? (uint32_t)processors
				      : 1,
		     terminal ? progress : NULL, &err);
	if (terminal)
		fputs("\r\033[K", stderr);
	return rc == SKV_OK ? EXIT_DONE : complain_of(&err);
}

static int to_file(const char *path, int (*print)(const struct report *r, FILE *out),
		   const struct report *r)
{
	FILE *f = fopen(path, "we");
	char text[400];
	int rc = f ? print(r, f) : -1;

	if (f && fclose(f) != 0)
		rc = -1;
	if (rc == 0)
		return EXIT_DONE;
	snprintf(text, sizeof text, "%.300s: %s", path, strerror(errno));
	return complain(EXIT_PROBLEM, text);
}

static int print_hits(const struct report *r, FILE *out) { return report_hits(r->runs, out); }

static int print(const struct job *j)
{
	const struct report r = { .refs = j->refs, .n_refs = j->n_refs, .policies = j->policies,
				  .n_policies = j->n_policies,
				  .blocks = j->blocks, .n_blocks = j->n_blocks, .runs = j->runs,
				  .sizing = j->o.sizing ? &j->sizing : NULL,
				  .trace_tokens = j->o.trace_tokens,
				  .tier_bytes = j->o.tiers ? block_bytes(j) : 0 };
	int rc = EXIT_DONE, printed;

	if (j->o.hits)
		rc = to_file(j->o.hits, print_hits, &r);
	printed = j->o.csv    ? report_csv(&r, stdout)
		  : j->o.json ? report_json(&r, stdout) : report_table(&r, stdout);
	return rc != EXIT_DONE ? rc
	       : printed == 0  ? EXIT_DONE
			       : complain(EXIT_PROBLEM, "standard output cannot be written");
}

static int list_models(void)
{
	for (const struct skv_model *m = skv_models; m->name; m++) {
		if (m->kv_heads)
			printf("%-16s %3u layers, %u KV heads of %u\n", m->name, m->layers,
			       m->kv_heads, m->head_dim);
		else
			printf("%-16s %3u layers, MLA %u + %u\n", m->name, m->layers, m->mla_rank,
			       m->rope_dim);
	}
	return EXIT_DONE;
}

static int simulate(struct job *j)
{
	int rc = j->o.sizing ? size_model(j) : EXIT_DONE;

	if (rc != EXIT_DONE)
		return rc;
	if (!j->o.n_traces && !j->o.generate)
		return report_sizing(&j->sizing, stdout) == 0 ? EXIT_DONE : EXIT_PROBLEM;
	rc = choose_policies(j);
	if (rc == EXIT_DONE)
		rc = load(j);
	if (rc == EXIT_DONE)
		rc = choose_capacities(j);
	if (rc == EXIT_DONE)
		rc = make_runs(j);
	if (rc == EXIT_DONE)
		rc = run_jobs(j);
	return rc == EXIT_DONE ? print(j) : rc;
}

int skv_simulate_main(int argc, char **argv)
{
	static struct job j; /* lists are large for a stack */
	int rc = options_parse(&j.o, argc, argv);

	skv_log_level_set(SKV_LOG_ERROR);
	if (rc == OPTIONS_RUN)
		rc = j.o.list_models ? list_models() : simulate(&j);
	for (uint32_t i = 0; i < j.n_refs; i++)
		refs_free(&j.refs[i]);
	if (j.runs)
		skv_free(j.runs[0].hits);
	skv_free(j.runs);
	skv_free(j.refs);
	options_free(&j.o);
	if (fflush(stdout) != 0 && rc == EXIT_DONE)
		rc = complain(EXIT_PROBLEM, "standard output cannot be written");
	return rc;
}
