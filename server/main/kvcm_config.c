/*
 * kvcm_config.c - reads KVCM's keys from its file, command line and environment.
 *
 * Sources are read in order of precedence. kvcm_keys.c knows the keys. One thread, at start.
 */
#include "kvcm_internal.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/mem.h>

#define PROGRAM "kv_cache_manager_bin"
#define BOOTSTRAP_HINT "is not read: use kvcm.startup_config or the admin service"

bool kvcm_config_is_asked(const char *argv0)
{
	const char *slash = argv0 ? strrchr(argv0, '/') : NULL;

	return argv0 && strcmp(slash ? slash + 1 : argv0, PROGRAM) == 0;
}

void kvcm_command_destroy(struct kvcm_command *c)
{
	for (size_t i = 0; i < c->notes.n; i++)
		skv_free(c->notes.text[i]);
	skv_free(c->notes.text);
	memset(c, 0, sizeof *c);
}

/* "key = value"; changes `text`. */
static int set_pair(struct kvcm_reading *r, char *text, enum skv_param_source source,
		    const char *where, struct skv_error *err)
{
	char *equals = strchr(text, '=');

	if (!equals)
		return skv_fail(err, SKV_E_INVALID, NULL, "%s: expected 'key=value', not '%.64s'",
				where, text);
	*equals = '\0';
	return kvcm_key_set(r, skv_param_trim(text), skv_param_trim(equals + 1), source, where,
			    err);
}

static int read_file(struct kvcm_reading *r, const char *path, struct skv_error *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	unsigned number = 0;
	int rc = SKV_OK;

	if (!f)
		return skv_fail(err, SKV_E_IO, NULL, "-c: cannot read %.200s: %s", path,
				strerror(errno));
	while (rc == SKV_OK && getline(&line, &size, f) >= 0) {
		char where[200];
		char *text;

		snprintf(where, sizeof where, "%.160s:%u", path, ++number);
		line[strcspn(line, "#")] = '\0';
		text = skv_param_trim(line);
		if (*text)
			rc = set_pair(r, text, SKV_FROM_FILE, where, err);
	}
	if (rc == SKV_OK && ferror(f))
		rc = skv_fail(err, SKV_E_IO, NULL, "-c: cannot read %.200s: %s", path,
			      strerror(errno));
	free(line); /* getline's own */
	fclose(f);
	return rc;
}

/* ---- command line ---------------------------------------------------------------------------- */

struct arguments {
	const char *file;
	const char *log_file;
	const char **env;
	size_t n_env;
};

static int read_args(struct kvcm_command *c, struct arguments *a, int argc, char *const *argv,
		     struct skv_error *err)
{
	static const struct option longs[] = {
		{ "config_file", required_argument, NULL, 'c' },
		{ "log_config_file", required_argument, NULL, 'l' },
		{ "env", required_argument, NULL, 'e' },
		{ "daemon", no_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	optind = 0; /* from the beginning, in case getopt was used before */
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:c:l:e:dhv", longs, NULL)) >= 0) {
		switch (option) {
		case 'c':
			a->file = optarg;
			break;
		case 'l':
			a->log_file = optarg;
			break;
		case 'e':
			assert(a->n_env < (size_t)argc);
			a->env[a->n_env++] = optarg;
			break;
		case 'd':
			c->daemon = true;
			break;
		case 'h':
			c->action = SKV_ACTION_HELP;
			break;
		case 'v':
			c->action = SKV_ACTION_VERSION;
			break;
		default:
			return skv_fail(err, SKV_E_INVALID, NULL, "argument '%.64s': %s; see -h",
					argv[optind - 1],
					option == ':' ? "a value is missing"
						      : "there is no such option");
		}
	}
	if (optind < argc)
		return skv_fail(err, SKV_E_INVALID, NULL,
				"argument '%.64s' is not an option; see -h", argv[optind]);
	return SKV_OK;
}

static int apply_args(struct kvcm_reading *r, const struct arguments *a, struct skv_error *err)
{
	int rc = SKV_OK;

	if (a->log_file)
		rc = kvcm_note(r->notes, err,
			       "-l %.200s: not read; kvcm.logger.log_level, slabkvd.log_file and "
			       "slabkvd.log_format say how and where is logged",
			       a->log_file);
	if (rc == SKV_OK && a->file)
		rc = read_file(r, a->file, err);
	for (size_t i = 0; rc == SKV_OK && i < a->n_env; i++) {
		char *pair = skv_strdup(a->env[i]);

		rc = pair ? set_pair(r, pair, SKV_FROM_ARGUMENT, "-e", err)
			  : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		skv_free(pair);
	}
	return rc;
}

/* ---- environment ----------------------------------------------------------------------------- */

/* `name`[0..n) is the key, or the key with underscores for dots. */
static bool is_named(const char *key, const char *name, size_t n)
{
	if (strlen(key) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (name[i] != key[i] && !(name[i] == '_' && key[i] == '.'))
			return false;
	return true;
}

static int read_variable(struct kvcm_reading *r, const char *variable, struct skv_error *err)
{
	const size_t n = strcspn(variable, "=");
	char where[160];

	snprintf(where, sizeof where, "environment %.*s", (int)(n < 120 ? n : 120), variable);
	if (strncmp(variable, "KVCM_L1P5_STORAGE=", 18) == 0 ||
	    strncmp(variable, "KVCM_L2P_STORAGE=", 17) == 0 ||
	    strncmp(variable, "KVCM_PACE_STORAGE=", 18) == 0 ||
	    strncmp(variable, "KVCM_INSTANCE_GROUP=", 20) == 0)
		return kvcm_note(r->notes, err, "%s " BOOTSTRAP_HINT, where);
	if ((strncmp(variable, "kvcm.", 5) != 0 && strncmp(variable, "kvcm_", 5) != 0) ||
	    variable[n] != '=' || variable[n + 1] == '\0')
		return SKV_OK;
	for (size_t i = 0; kvcm_key_name(i); i++)
		if (is_named(kvcm_key_name(i), variable, n))
			return kvcm_key_set(r, kvcm_key_name(i), variable + n + 1,
					    SKV_FROM_ENVIRONMENT, "environment", err);
	return kvcm_key_is_ignored(variable)
		       ? SKV_OK
		       : kvcm_note(r->notes, err, "%s: no such key; it is ignored", where);
}

/* ---- all sources ----------------------------------------------------------------------------- */

static int set_default(struct skv_params *p, enum skv_param i, const char *text,
		       struct skv_error *err)
{
	return skv_params_is_given(p, i) ? SKV_OK
			      : skv_param_set(p, i, text, SKV_FROM_DEFAULT, "default", err);
}

/* Defaults of KVCM that differ from ours: ports of its own, which may collide on a host with
 * several managers, and no limits on clients, whose connectors do not expect any. */
static int set_bounds(struct skv_params *p, struct skv_error *err)
{
	static const struct {
		enum skv_param param;
		const char *value;
	} values[] = {
		{ SKV_PARAM_compat, "kvcm" },
		{ SKV_PARAM_kvcm_open, "true" },
		{ SKV_PARAM_http_port, "0" },
		{ SKV_PARAM_grpc_port, "off" },
		/* a group may consist of blocks being written */
		{ SKV_PARAM_open_percent, "100" },
		/* KVCM's own limit of write_timeout_seconds */
		{ SKV_PARAM_session_max_ms, "1800000" },
		/* delay_before_delete_ms is used as given */
		{ SKV_PARAM_lease_max_ms, "600000" },
		/* Python clients keep a connection and reuse it */
		{ SKV_PARAM_idle_timeout_s, "600" },
		/* clients get the error, and find the leader themselves */
		{ SKV_PARAM_forward, "false" },
	};
	int rc = SKV_OK;

	for (size_t i = 0; rc == SKV_OK && i < sizeof values / sizeof values[0]; i++)
		rc = set_default(p, values[i].param, values[i].value, err);
	return rc;
}

static int set_defaults(struct skv_params *p, const struct kvcm_command *c, struct skv_error *err)
{
	int rc = set_bounds(p, err);
	const bool open = p->kvcm_open || *p->kvcm_admin_tokens || *p->tokens_file;

	if (rc == SKV_OK)
		rc = set_default(p, SKV_PARAM_kvcm_listen, open ? "0.0.0.0" : "127.0.0.1", err);
	if (rc == SKV_OK && c->daemon)
		rc = set_default(p, SKV_PARAM_log_file, "logs/kv_cache_manager.log", err);
	return rc;
}

static int read_all(struct kvcm_reading *r, const struct kvcm_command *c, const struct arguments *a,
		    char *const *envp, struct skv_error *err)
{
	int rc = apply_args(r, a, err);

	for (; rc == SKV_OK && envp && *envp; envp++)
		rc = read_variable(r, *envp, err);
	if (rc == SKV_OK)
		rc = kvcm_uris_apply(r->p, &r->uris, r->notes, err);
	if (rc == SKV_OK)
		rc = set_defaults(r->p, c, err);
	return rc == SKV_OK ? skv_params_check(r->p, err) : rc;
}

int kvcm_config_load(struct skv_params *p, struct kvcm_command *c, int argc, char *const *argv,
		     char *const *envp, struct skv_error *err)
{
	struct kvcm_reading r = { .p = p, .notes = &c->notes };
	struct arguments a = { 0 };
	char *own[] = { PROGRAM, NULL };
	int rc;

	memset(c, 0, sizeof *c);
	c->action = SKV_ACTION_RUN;
	skv_log_setup(STDERR_FILENO, skv_params_want_json(1, own, envp), SKV_LOG_INFO);
	rc = skv_params_load(p, 1, own, envp, err); /* defaults and SLABKV_NAME */
	if (rc != SKV_OK)
		return rc;
	a.env = skv_calloc((size_t)argc + 1, sizeof *a.env);
	rc = a.env ? read_args(c, &a, argc, argv, err)
		   : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	/* Help must work even if the file is broken. */
	if (rc == SKV_OK && c->action == SKV_ACTION_RUN)
		rc = read_all(&r, c, &a, envp, err);
	skv_free(a.env);
	skv_free(r.uris.coordination);
	skv_free(r.uris.lock);
	skv_free(r.uris.registry);
	if (rc != SKV_OK) {
		/* as far as it was read */
		skv_log_setup(STDERR_FILENO, strcmp(p->log_format, "json") == 0, SKV_LOG_INFO);
		skv_params_destroy(p);
		kvcm_command_destroy(c);
	}
	return rc;
}
