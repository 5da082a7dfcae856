/*
 * params_read.c - reads parameters from the file, the environment and the command line.
 *
 * Sources are read in order of precedence: defaults, file, environment, command line; later ones
 * overwrite. The file's name may come from the environment or the command line, so those are
 * searched for it first. One thread, at start. It knows no parameter by name but `config`.
 */
#include "params_internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#define ENV_PREFIX "SLABKV_"

/* Row whose name is s[0..n), '-' counting as '_'; SKV_PARAM_COUNT if none. `upper`: NAME in
 * capitals. */
static enum skv_param find_row(const char *s, size_t n, bool upper)
{
	for (size_t i = 0; i < SKV_PARAM_COUNT; i++) {
		const char *name = skv_param_rows[i].name;
		size_t k = 0;

		for (; k < n && name[k]; k++) {
			int c = upper ? toupper((unsigned char)name[k]) : name[k];

			if (s[k] != c && !(s[k] == '-' && name[k] == '_' && !upper))
				break;
		}
		if (k == n && name[k] == '\0')
			return (enum skv_param)i;
	}
	return SKV_PARAM_COUNT;
}

enum skv_param skv_param_find(const char *name)
{
	return find_row(name, strlen(name), false);
}

char *skv_param_trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return s;
}

/* The receiver of errors, so that reading continues; fn NULL: the first error ends it. */
struct listener {
	void (*fn)(void *ctx, const struct skv_error *err);
	void *ctx;
	unsigned n;
};

static int told(struct listener *l, int rc, const struct skv_error *err)
{
	if (rc == SKV_OK || rc == SKV_E_NOMEM || !l->fn)
		return rc;
	l->fn(l->ctx, err);
	l->n++;
	return SKV_OK;
}

static int read_line(struct skv_params *p, char *line, unsigned number, const char *where,
		     struct skv_error *err)
{
	char *text = skv_param_trim(line);
	char *equals;
	enum skv_param i;

	if (*text == '\0' || *text == '#')
		return SKV_OK;
	equals = strchr(text, '=');
	if (!equals)
		return skv_fail(err, SKV_E_INVALID, NULL, "%s: expected 'name = value'", where);
	*equals = '\0';
	text = skv_param_trim(text);
	i = find_row(text, strlen(text), false);
	if (i == SKV_PARAM_COUNT)
		return skv_fail(err, SKV_E_INVALID, NULL,
				"%s: there is no parameter '%.64s'; --help lists them", where,
				text);
	if (i == SKV_PARAM_config)
		return skv_fail(err, SKV_E_INVALID, "config", "%s: a file cannot name another file",
				where);
	assert(i < SKV_PARAM_COUNT);
	p->line[i] = number;
	return skv_param_set(p, i, skv_param_trim(equals + 1), SKV_FROM_FILE, where, err);
}

static int read_file(struct skv_params *p, const char *path, struct listener *l,
		     struct skv_error *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	unsigned number = 0;
	int rc = SKV_OK;

	if (!f)
		return skv_fail(err, SKV_E_IO, "config", "cannot read the parameter file %s: %s",
				path, strerror(errno));
	while (rc == SKV_OK && getline(&line, &size, f) >= 0) {
		char where[200];

		snprintf(where, sizeof where, "%.160s:%u", path, ++number);
		rc = told(l, read_line(p, line, number, where, err), err);
	}
	if (rc == SKV_OK && ferror(f))
		rc = skv_fail(err, SKV_E_IO, "config", "cannot read the parameter file %s: %s",
			      path, strerror(errno));
	free(line); /* getline's own */
	fclose(f);
	return rc;
}

/* Read by the library and the command line (slabkv(1)); a manager started in the same shell ignores
 * them. */
static const char *const client_names[] = { "URL", "TOKEN", "ENGINE", "LIBRARY" };

static bool is_client_env(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof client_names / sizeof client_names[0]; i++)
		if (strlen(client_names[i]) == n && memcmp(client_names[i], name, n) == 0)
			return true;
	return false;
}

/* Set by Kubernetes for a service whose name begins with slabkv: SLABKV_SERVICE_HOST, SLABKV_PORT,
 * SLABKV_X_SERVICE_PORT_HTTP=7333, SLABKV_X_PORT_7333_TCP_ADDR=10.0.0.1,
 * SLABKV_HTTP_PORT=tcp://10.0.0.1:7333 and so on. */
static bool is_kubernetes_env(const char *name, const char *value)
{
	const char *port = strstr(name, "PORT");

	return strncmp(value, "tcp://", 6) == 0 || strncmp(value, "udp://", 6) == 0 ||
	       strncmp(value, "sctp://", 7) == 0 || strstr(name, "SERVICE_HOST") ||
	       strstr(name, "SERVICE_PORT") ||
	       (port && port[4] == '_' && isdigit((unsigned char)port[5]));
}

/* only: SKV_PARAM_COUNT = all rows; else just that one, without error messages. */
static int read_env(struct skv_params *p, char *const *envp, enum skv_param only,
		    struct listener *l, struct skv_error *err)
{
	int rc = SKV_OK;

	for (; rc == SKV_OK && envp && *envp; envp++) {
		const char *name = *envp + strlen(ENV_PREFIX);
		const char *equals = strchr(*envp, '=');
		char where[160];
		enum skv_param i;

		if (strncmp(*envp, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 || !equals ||
		    equals < name || is_client_env(name, (size_t)(equals - name)) ||
		    is_kubernetes_env(name, equals + 1))
			continue;
		snprintf(where, sizeof where, "environment %.*s", (int)(equals - *envp), *envp);
		i = find_row(name, (size_t)(equals - name), true);
		if (only != SKV_PARAM_COUNT && i != only)
			continue;
		if (i != SKV_PARAM_COUNT)
			rc = skv_param_set(p, i, equals + 1, SKV_FROM_ENVIRONMENT, where, err);
		else
			rc = skv_fail(err, SKV_E_INVALID, NULL,
				      "%s: there is no such parameter; --help lists them", where);
		rc = told(l, rc, err);
	}
	return rc;
}

static bool is_action(const char *arg, enum skv_action *out)
{
	static const struct {
		const char *arg;
		enum skv_action action;
	} actions[] = {
		{ "--help", SKV_ACTION_HELP },	     { "-h", SKV_ACTION_HELP },
		{ "--version", SKV_ACTION_VERSION }, { "-V", SKV_ACTION_VERSION },
		{ "--dump-config", SKV_ACTION_DUMP }, { "--man", SKV_ACTION_MAN },
	};

	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
		if (strcmp(arg, actions[i].arg) == 0) {
			*out = actions[i].action;
			return true;
		}
	}
	return false;
}

/* Reads an argument, and its value if that is the next. `only` as in read_env. */
static int read_arg(struct skv_params *p, int argc, char *const *argv, int *k, enum skv_param only,
		    struct skv_error *err)
{
	const char *arg = argv[*k];
	const char *value;
	size_t n;
	enum skv_param i;

	if (is_action(arg, &p->action))
		return SKV_OK;
	if (strncmp(arg, "--", 2) != 0)
		return skv_fail(err, SKV_E_INVALID, NULL,
				"argument '%.64s' is not an option; see --help", arg);
	n = strcspn(arg + 2, "=");
	i = find_row(arg + 2, n, false);
	if (i == SKV_PARAM_COUNT)
		return skv_fail(err, SKV_E_INVALID, NULL,
				"argument --%.*s: there is no such parameter; --help lists them",
				(int)(n < 64 ? n : 64), arg + 2);
	if (arg[2 + n] == '=')
		value = arg + 2 + n + 1;
	else if (skv_param_rows[i].type == PARAM_FLAG)
		value = "true";
	else if (*k + 1 < argc)
		value = argv[++*k];
	else
		return skv_fail(err, SKV_E_INVALID, skv_param_rows[i].name,
				"argument --%s: a value is missing", skv_param_rows[i].name);
	return only == SKV_PARAM_COUNT || only == i
		       ? skv_param_set(p, i, value, SKV_FROM_ARGUMENT, "command line", err)
		       : SKV_OK;
}

static int read_args(struct skv_params *p, int argc, char *const *argv, enum skv_param only,
		     struct listener *l, struct skv_error *err)
{
	int rc = SKV_OK;

	for (int k = 1; rc == SKV_OK && k < argc; k++)
		rc = told(l, read_arg(p, argc, argv, &k, only, err), err);
	return rc;
}

/* ---- values that depend on each other -------------------------------------------------------- */

/* The first of each pair is at most the second. */
static const enum skv_param ordered[][2] = {
	{ SKV_PARAM_lease_default_ms, SKV_PARAM_lease_max_ms },
	{ SKV_PARAM_session_default_ms, SKV_PARAM_session_max_ms },
	{ SKV_PARAM_body_max, SKV_PARAM_body_total_max },
};

static int check_order(const struct skv_params *p, const enum skv_param pair[2],
		       struct skv_error *err)
{
	const struct param *low = &skv_param_rows[pair[0]], *high = &skv_param_rows[pair[1]];

	if (*(const uint64_t *)((const char *)p + low->offset) <=
	    *(const uint64_t *)((const char *)p + high->offset))
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, low->name, "%s is above %s: lower it, or raise %s",
			low->name, high->name, high->name);
}

/* Checks the advertised URL. The URL is sent in the header Location, with a path appended. */
static int check_advertise(const struct skv_params *p, struct skv_error *err)
{
	const char *s = p->advertise;
	const char *host = strstr(s, "://") ? strstr(s, "://") + 3 : s;

	if (!strpbrk(host, "/?#@ ") &&
	    (host == s || (strchr(host, ':') && (strncmp(s, "http://", 7) == 0 ||
						 strncmp(s, "https://", 8) == 0))))
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, "advertise",
			"advertise: '%.64s' is neither a host, host:port nor http://host:port", s);
}

static int check_certificate(const struct skv_params *p, struct skv_error *err)
{
	if (!*p->tls_cert_file == !*p->tls_key_file)
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, "tls_key_file",
			"tls_cert_file and tls_key_file go together: %s is missing",
			*p->tls_cert_file ? "tls_key_file" : "tls_cert_file");
}

static int check_client_ca(const struct skv_params *p, struct skv_error *err)
{
	if (!*p->tls_client_ca_file || (*p->tls_cert_file && *p->tokens_file))
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, "tls_client_ca_file",
			"tls_client_ca_file needs tls_cert_file, and tokens_file, which "
			"gives certificates their roles");
}

static int check_adopt(const struct skv_params *p, struct skv_error *err)
{
	if (!p->adopt || p->source[SKV_PARAM_adopt] == SKV_FROM_ARGUMENT)
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, "adopt",
			"adopt is for one start: give it as an argument, not in a file or the "
			"environment");
}

static int check_kvcm_ports(const struct skv_params *p, struct skv_error *err)
{
	uint64_t ports[SKV_KVCM_PORTS];

	return skv_kvcm_ports_read(p->kvcm_ports, ports)
		       ? SKV_OK
		       : skv_fail(err, SKV_E_INVALID, "kvcm_ports",
				  "kvcm_ports: '%.64s' is not four ports, like 6381,6382,off,0",
				  p->kvcm_ports);
}

static int check_all(const struct skv_params *p, struct listener *l, struct skv_error *err)
{
	static int (*const checks[])(const struct skv_params *p, struct skv_error *err) = {
		check_advertise, check_certificate, check_client_ca, check_adopt, check_kvcm_ports,
	};
	int rc = SKV_OK;

	for (size_t i = 0; rc == SKV_OK && i < sizeof ordered / sizeof ordered[0]; i++)
		rc = told(l, check_order(p, ordered[i], err), err);
	for (size_t i = 0; rc == SKV_OK && i < sizeof checks / sizeof checks[0]; i++)
		rc = told(l, checks[i](p, err), err);
	return rc;
}

int skv_params_check(const struct skv_params *p, struct skv_error *err)
{
	return check_all(p, &(struct listener){ .fn = NULL }, err);
}

/* ---- all sources ----------------------------------------------------------------------------- */

static void tell_nobody(void *ctx, const struct skv_error *err)
{
	(void)ctx;
	(void)err;
}

static int load(struct skv_params *p, int argc, char *const *argv, char *const *envp,
		struct listener *l, struct skv_error *err)
{
	/* Of sources that are read twice. */
	struct listener silent = { .fn = l->fn ? tell_nobody : NULL };
	int rc = SKV_OK;

	memset(p, 0, sizeof *p);
	for (size_t i = 0; rc == SKV_OK && i < SKV_PARAM_COUNT; i++)
		rc = skv_param_set(p, (enum skv_param)i, skv_param_rows[i].initial,
				   SKV_FROM_DEFAULT,
				   "default", err);
	if (rc == SKV_OK)
		rc = read_env(p, envp, SKV_PARAM_config, &silent, err);
	if (rc == SKV_OK)
		rc = read_args(p, argc, argv, SKV_PARAM_config, &silent, err);
	/* Help must be available even with an invalid file. */
	if (rc == SKV_OK && *p->config &&
	    (p->action == SKV_ACTION_RUN || p->action == SKV_ACTION_DUMP))
		rc = told(l, read_file(p, p->config, l, err), err);
	if (rc == SKV_OK)
		rc = read_env(p, envp, SKV_PARAM_COUNT, l, err);
	if (rc == SKV_OK)
		rc = read_args(p, argc, argv, SKV_PARAM_COUNT, l, err);
	return rc == SKV_OK ? check_all(p, l, err) : rc;
}

bool skv_params_want_json(int argc, char *const *argv, char *const *envp)
{
	struct skv_params p;
	struct listener l = { .fn = tell_nobody };
	struct skv_error err = { 0 };
	bool json;

	load(&p, argc, argv, envp, &l, &err);
	json = p.log_format && strcmp(p.log_format, "json") == 0;
	skv_params_destroy(&p);
	return json;
}

int skv_params_load(struct skv_params *p, int argc, char *const *argv, char *const *envp,
		    struct skv_error *err)
{
	int rc = load(p, argc, argv, envp, &(struct listener){ .fn = NULL }, err);

	if (rc != SKV_OK)
		skv_params_destroy(p);
	return rc;
}

int skv_params_load_telling(struct skv_params *p, int argc, char *const *argv, char *const *envp,
			    void (*tell)(void *ctx, const struct skv_error *err), void *ctx)
{
	struct listener l = { .fn = tell, .ctx = ctx };
	struct skv_error err = { 0 };
	int rc = load(p, argc, argv, envp, &l, &err);

	if (rc != SKV_OK) /* no memory */
		tell(ctx, &err);
	return rc == SKV_OK && l.n ? SKV_E_INVALID : rc;
}
