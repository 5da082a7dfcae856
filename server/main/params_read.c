/*
 * params_read.c - finds parameters in the file, the environment and the command line.
 *
 * Precedence is the order of reading: defaults, file, environment, command line; each later one
 * overwrites. The name of the file itself may come from the environment or the command line, so
 * those two are searched for it first. One thread, at start. It knows no parameter by name but
 * `config`.
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

static char *trim(char *s)
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

static int read_line(struct skv_params *p, char *line, const char *where, struct skv_error *err)
{
	char *text = trim(line);
	char *equals;
	enum skv_param i;

	if (*text == '\0' || *text == '#')
		return SKV_OK;
	equals = strchr(text, '=');
	if (!equals)
		return skv_fail(err, SKV_E_INVALID, NULL, "%s: expected 'name = value'", where);
	*equals = '\0';
	text = trim(text);
	i = find_row(text, strlen(text), false);
	if (i == SKV_PARAM_COUNT)
		return skv_fail(err, SKV_E_INVALID, NULL,
				"%s: there is no parameter '%.64s'; --help lists them", where,
				text);
	if (i == SKV_PARAM_config)
		return skv_fail(err, SKV_E_INVALID, "config", "%s: a file cannot name another file",
				where);
	assert(i < SKV_PARAM_COUNT);
	return skv_param_set(p, i, trim(equals + 1), SKV_FROM_FILE, where, err);
}

static int read_file(struct skv_params *p, const char *path, struct skv_error *err)
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
		rc = read_line(p, line, where, err);
	}
	if (rc == SKV_OK && ferror(f))
		rc = skv_fail(err, SKV_E_IO, "config", "cannot read the parameter file %s: %s",
			      path, strerror(errno));
	free(line); /* getline's own */
	fclose(f);
	return rc;
}

/* What the library and the command line read (slabkv(1)); a manager started in such a shell passes over it. */
static const char *const client_names[] = { "URL", "TOKEN", "ENGINE", "CODEC", "LIBRARY" };

static bool is_client_env(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof client_names / sizeof client_names[0]; i++)
		if (strlen(client_names[i]) == n && memcmp(client_names[i], name, n) == 0)
			return true;
	return false;
}

/* What Kubernetes sets by itself for a service whose name begins with slabkv: SLABKV_SERVICE_HOST, SLABKV_PORT,
 * SLABKV_X_SERVICE_PORT_HTTP=7333, SLABKV_X_PORT_7333_TCP_ADDR=10.0.0.1, SLABKV_HTTP_PORT=tcp://10.0.0.1:7333 and so on. */
static bool is_kubernetes_env(const char *name, const char *value)
{
	const char *port = strstr(name, "PORT");

	return strncmp(value, "tcp://", 6) == 0 || strncmp(value, "udp://", 6) == 0 || strncmp(value, "sctp://", 7) == 0 ||
	       strstr(name, "SERVICE_HOST") || strstr(name, "SERVICE_PORT") ||
	       (port && port[4] == '_' && isdigit((unsigned char)port[5]));
}

/* only: SKV_PARAM_COUNT = all rows; else just that one, and nothing is complained about. */
static int read_env(struct skv_params *p, char *const *envp, enum skv_param only,
		    struct skv_error *err)
{
	int rc = SKV_OK;

	for (; rc == SKV_OK && envp && *envp; envp++) {
		const char *name = *envp + strlen(ENV_PREFIX);
		const char *equals = strchr(*envp, '=');
		char where[160];
		enum skv_param i;

		if (strncmp(*envp, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 || !equals || equals < name ||
		    is_client_env(name, (size_t)(equals - name)) || is_kubernetes_env(name, equals + 1))
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

/* `only` as in read_env. */
static int read_args(struct skv_params *p, int argc, char *const *argv, enum skv_param only,
		     struct skv_error *err)
{
	int rc = SKV_OK;

	for (int k = 1; rc == SKV_OK && k < argc; k++) {
		const char *arg = argv[k];
		const char *value;
		size_t n;
		enum skv_param i;

		if (is_action(arg, &p->action))
			continue;
		if (strncmp(arg, "--", 2) != 0)
			return skv_fail(err, SKV_E_INVALID, NULL,
					"argument '%.64s' is not an option; see --help", arg);
		n = strcspn(arg + 2, "=");
		i = find_row(arg + 2, n, false);
		if (i == SKV_PARAM_COUNT)
			return skv_fail(err, SKV_E_INVALID, NULL,
					"argument --%.*s: there is no such parameter; --help "
					"lists them", (int)(n < 64 ? n : 64), arg + 2);
		if (arg[2 + n] == '=')
			value = arg + 2 + n + 1;
		else if (skv_param_rows[i].type == PARAM_FLAG)
			value = "true";
		else if (k + 1 < argc)
			value = argv[++k];
		else
			return skv_fail(err, SKV_E_INVALID, skv_param_rows[i].name,
					"argument --%s: a value is missing",
					skv_param_rows[i].name);
		if (only == SKV_PARAM_COUNT || only == i)
			rc = skv_param_set(p, i, value, SKV_FROM_ARGUMENT, "command line", err);
	}
	return rc;
}

static int check_order(uint64_t low, uint64_t high, const char *low_name, const char *high_name,
		       struct skv_error *err)
{
	if (low <= high)
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, low_name, "%s is above %s: lower it, or raise %s",
			low_name, high_name, high_name);
}

/* It goes into the header Location, with a path behind it. */
static int check_advertise(const char *s, struct skv_error *err)
{
	const char *host = strstr(s, "://") ? strstr(s, "://") + 3 : s;

	if (!*s || (strchr(host, ':') && !strpbrk(host, "/?#@ ") &&
		    (host == s || strncmp(s, "http://", 7) == 0 || strncmp(s, "https://", 8) == 0)))
		return SKV_OK;
	return skv_fail(err, SKV_E_INVALID, "advertise",
			"advertise: '%.64s' is neither host:port nor http://host:port", s);
}

int skv_params_check(const struct skv_params *p, struct skv_error *err)
{
	int rc = check_order(p->lease_default_ms, p->lease_max_ms, "lease_default_ms",
			     "lease_max_ms", err);

	if (rc == SKV_OK)
		rc = check_order(p->session_default_ms, p->session_max_ms, "session_default_ms",
				 "session_max_ms", err);
	if (rc == SKV_OK)
		rc = check_order(p->body_max, p->body_total_max, "body_max", "body_total_max", err);
	if (rc == SKV_OK)
		rc = check_advertise(p->advertise, err);
	if (rc == SKV_OK && p->adopt && p->source[SKV_PARAM_adopt] != SKV_FROM_ARGUMENT)
		rc = skv_fail(err, SKV_E_INVALID, "adopt", "adopt is for one start: give it as an argument, not in a file or the "
			      "environment");
	return rc;
}

int skv_params_load(struct skv_params *p, int argc, char *const *argv, char *const *envp,
		    struct skv_error *err)
{
	int rc = SKV_OK;

	memset(p, 0, sizeof *p);
	for (size_t i = 0; rc == SKV_OK && i < SKV_PARAM_COUNT; i++)
		rc = skv_param_set(p, (enum skv_param)i, skv_param_rows[i].initial,
				   SKV_FROM_DEFAULT,
				   "default", err);
	if (rc == SKV_OK)
		rc = read_env(p, envp, SKV_PARAM_config, err);
	if (rc == SKV_OK)
		rc = read_args(p, argc, argv, SKV_PARAM_config, err);
	/* Help must come even where the file is broken. */
	if (rc == SKV_OK && *p->config &&
	    (p->action == SKV_ACTION_RUN || p->action == SKV_ACTION_DUMP))
		rc = read_file(p, p->config, err);
	if (rc == SKV_OK)
		rc = read_env(p, envp, SKV_PARAM_COUNT, err);
	if (rc == SKV_OK)
		rc = read_args(p, argc, argv, SKV_PARAM_COUNT, err);
	if (rc == SKV_OK)
		rc = skv_params_check(p, err);
	if (rc != SKV_OK)
		skv_params_destroy(p);
	return rc;
}
