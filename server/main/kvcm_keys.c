/*
 * kvcm_keys.c - applies one key of KVCM's configuration to our parameters, by the table
 * kvcm_keys.h.
 *
 * No state but the notes. One thread, at start. kvcm_config.c reads the sources.
 */
#include "kvcm_keys.h"
#include "kvcm_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

enum kind {
	KIND_SET,
	KIND_FLAG,
	KIND_PORT,
	KIND_ADMIN,
	KIND_LEASE,
	KIND_LEVEL,
	KIND_URI
};

struct row {
	const char *key;
	enum kind kind;
	enum skv_param param;
	const char *text;
};

static const struct row rows[] = {
#define ROW(key, kind, param, text) { key, KIND_##kind, SKV_PARAM_##param, text },
	KVCM_KEYS(ROW)
#undef ROW
};

#define N_ROWS (sizeof rows / sizeof rows[0])
#define OWN_PREFIX "slabkvd."

const char *kvcm_key_name(size_t i)
{
	return i < N_ROWS ? rows[i].key : NULL;
}

int kvcm_note(struct kvcm_notes *notes, struct skv_error *err, const char *fmt, ...)
{
	char text[1024];
	char **more;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < notes->n; i++)
		if (strcmp(notes->text[i], text) == 0)
			return SKV_OK;
	more = skv_realloc(notes->text, (notes->n + 1) * sizeof *more);
	if (more)
		notes->text = more;
	if (!more || !(more[notes->n] = skv_strdup(text)))
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	notes->n++;
	return SKV_OK;
}

/* Keys that begin with one of these have no effect here; kvcm_keys.h says why. */
static const char *const ignored[] = { KVCM_IGNORED };

static bool begins(const char *key, const char *with)
{
	while (*with && (*key == *with || (*key == '_' && *with == '.'))) {
		key++;
		with++;
	}
	return *with == '\0';
}

bool kvcm_key_is_ignored(const char *key)
{
	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		if (begins(key, ignored[i]))
			return true;
	return false;
}

static int keep(char **slot, const char *value, struct skv_error *err)
{
	char *copy = skv_strdup(value);

	if (!copy)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_free(*slot);
	*slot = copy;
	return SKV_OK;
}

static int set_uri(struct kvcm_reading *r, const char *key, const char *value,
		   struct skv_error *err)
{
	if (strcmp(key, "kvcm.coordination.uri") == 0)
		return keep(&r->uris.coordination, value, err);
	if (strcmp(key, "kvcm.distributed_lock.uri") == 0)
		return keep(&r->uris.lock, value, err);
	/* the rows of KIND_URI are these three */
	assert(strcmp(key, "kvcm.registry_storage.uri") == 0);
	return keep(&r->uris.registry, value, err);
}

/* 0 auto, 1 fatal, 2 error, 3 warn, 4 info, 5 debug. */
static const char *level(const char *value)
{
	static const char *const names[] = { "info", "error", "error", "warn", "info", "debug" };

	if (value[0] < '0' || value[0] > '5' || value[1] != '\0')
		return value; /* a name, or a value that will be refused as one */
	return names[value[0] - '0'];
}

/* KVCM's docs advise 600000 for a single manager; our leases are shorter, because only a dead or
 * suspended process lets them run out. */
static int set_lease(struct kvcm_reading *r, const struct row *row, const char *value,
		     enum skv_param_source source, const char *where, struct skv_error *err)
{
	const struct param *param = &skv_param_rows[row->param];
	char *end, bound[32];
	unsigned long long ms = strtoull(value, &end, 10);
	int rc;

	if (*value < '0' || *value > '9' || *end || (ms >= param->min && ms <= param->max))
		return skv_param_set(r->p, row->param, value, source, where, err);
	assert(param->min <= param->max);
	snprintf(bound, sizeof bound, "%llu",
		 (unsigned long long)(ms < param->min ? param->min : param->max));
	rc = kvcm_note(r->notes, err, "%s: %s=%s is taken as %s", where, row->key, value, bound);
	return rc == SKV_OK ? skv_param_set(r->p, row->param, bound, source, where, err) : rc;
}

/* The rows of KIND_PORT and KIND_ADMIN stand in the order of kvcm_ports. */
static int set_port(struct kvcm_reading *r, const struct row *row, const char *value,
		    enum skv_param_source source, const char *where, struct skv_error *err)
{
	uint64_t ports[SKV_KVCM_PORTS];
	char text[64] = "";
	size_t n = 0;
	int at = 0;

	for (const struct row *i = rows; i < row; i++)
		at += i->kind == KIND_PORT || i->kind == KIND_ADMIN;
	assert(at < SKV_KVCM_PORTS);
	if (!skv_kvcm_ports_read(r->p->kvcm_ports, ports))
		return skv_params_check(r->p, err);
	for (int i = 0; i < SKV_KVCM_PORTS && n < sizeof text; i++) {
		char number[24];

		snprintf(number, sizeof number, "%llu", (unsigned long long)ports[i]);
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? "," : "",
				      i == at			? value
				      : ports[i] == SKV_PORT_OFF ? "off"
								 : number);
	}
	if (n >= sizeof text || !skv_kvcm_ports_read(text, ports))
		return skv_fail(err, SKV_E_INVALID, "kvcm_ports",
				"%s: '%.64s' is no port, 0 to 65535", where, value);
	return skv_param_set(r->p, SKV_PARAM_kvcm_ports, text, source, where, err);
}

static int set_row(struct kvcm_reading *r, const struct row *row, const char *value,
		   enum skv_param_source source, const char *where, struct skv_error *err)
{
	switch (row->kind) {
	case KIND_SET:
		return skv_param_set(r->p, row->param, value, source, where, err);
	case KIND_FLAG:
		return skv_param_set(r->p, row->param,
				     strcmp(value, "true") == 0 ? "true" : "false", source, where,
				     err);
	case KIND_ADMIN:
		return set_port(r, row, strcmp(value, "0") == 0 ? "off" : value, source, where,
				err);
	case KIND_PORT:
		return set_port(r, row, value, source, where, err);
	case KIND_LEASE:
		return set_lease(r, row, value, source, where, err);
	case KIND_LEVEL:
		return skv_param_set(r->p, row->param, level(value), source, where, err);
	case KIND_URI:
		return set_uri(r, row->key, value, err);
	}
	return SKV_OK;
}

int kvcm_key_set(struct kvcm_reading *r, const char *key, const char *value,
		 enum skv_param_source source, const char *where, struct skv_error *err)
{
	char at[320];

	snprintf(at, sizeof at, "%.180s: %.120s", where, key);
	if (strncmp(key, OWN_PREFIX, strlen(OWN_PREFIX)) == 0) {
		enum skv_param i = skv_param_find(key + strlen(OWN_PREFIX));

		if (i != SKV_PARAM_COUNT && i != SKV_PARAM_config)
			return skv_param_set(r->p, i, value, source, at, err);
	}
	for (size_t i = 0; i < N_ROWS; i++)
		if (strcmp(rows[i].key, key) == 0)
			return set_row(r, &rows[i], value, source,
				       rows[i].kind == KIND_LEASE ? where : at, err);
	if (kvcm_key_is_ignored(key))
		return SKV_OK;
	return kvcm_note(r->notes, err, "%.180s: unknown key '%.120s' is ignored", where, key);
}

void kvcm_config_help(FILE *out)
{
	fputs("Usage: kv_cache_manager_bin [-c FILE] [-e KEY=VALUE]... [-d]\n\n"
	      "slabkvd under the name, with the ports and the keys of Tair KVCache Manager.\n\n"
	      "  -c, --config_file FILE      lines 'key=value'; # begins a comment\n"
	      "  -e, --env KEY=VALUE         one key; may be repeated, later ones win\n"
	      "  -l, --log_config_file FILE  accepted and not read\n"
	      "  -d, --daemon                return when it serves, go on in the background; the "
	      "log goes to\n"
	      "                              logs/kv_cache_manager.log unless slabkvd.log_file "
	      "names a file\n"
	      "  -h, --help                  this text\n"
	      "  -v, --version               the version\n\n"
	      "Keys, from -c, -e and the environment (there also with _ for .); later ones win.\n"
	      "slabkvd.NAME=VALUE sets the parameter NAME of slabkvd (slabkvd --help):\n\n",
	      out);
	for (size_t i = 0; i < N_ROWS; i++)
		fprintf(out, "  %s\n      %s\n", rows[i].key, rows[i].text);
	fputs("\nAccepted and ignored: keys that begin with\n\n", out);
	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		fprintf(out, "  %s\n", ignored[i]);
}
