/*
 * params_read.c - finds parameters in the file, the environment and the command line.
 *
 * Precedence is the order of reading: defaults, file, environment, command line; each later one
 * overwrites. The name of the file itself may come from the environment or the command line, so
 * those two are searched for it first. One thread, at start. It knows no parameter by name but
 * `config`.
 */
#include "params_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kvb/mem.h>

#define ENV_PREFIX "KVBLOCKD_"

/* Row whose name is s[0..n), '-' counting as '_'; KVB_PARAM_COUNT if none. `upper`: NAME in
 * capitals. */
static enum kvb_param find_row(const char *s, size_t n, bool upper)
{
	for (size_t i = 0; i < KVB_PARAM_COUNT; i++) {
		const char *name = kvb_param_rows[i].name;
		size_t k = 0;

		for (; k < n && name[k]; k++) {
			int c = upper ? toupper((unsigned char)name[k]) : name[k];

			if (s[k] != c && !(s[k] == '-' && name[k] == '_' && !upper))
				break;
		}
		if (k == n && name[k] == '\0')
			return (enum kvb_param)i;
	}
	return KVB_PARAM_COUNT;
}

enum kvb_param kvb_param_find(const char *name)
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

static int read_line(struct kvb_params *p, char *line, const char *where, struct kvb_error *err)
{
	char *text = trim(line);
	char *equals;
	enum kvb_param i;

	if (*text == '\0' || *text == '#')
		return KVB_OK;
	equals = strchr(text, '=');
	if (!equals)
		return kvb_fail(err, KVB_E_INVALID, NULL, "%s: expected 'name = value'", where);
	*equals = '\0';
	text = trim(text);
	i = find_row(text, strlen(text), false);
	if (i == KVB_PARAM_COUNT)
		return kvb_fail(err, KVB_E_INVALID, NULL,
				"%s: there is no parameter '%.64s'; --help lists them", where,
				text);
	if (i == KVB_PARAM_config)
		return kvb_fail(err, KVB_E_INVALID, "config", "%s: a file cannot name another file",
				where);
	return kvb_param_set(p, i, trim(equals + 1), KVB_FROM_FILE, where, err);
}

static int read_file(struct kvb_params *p, const char *path, struct kvb_error *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	unsigned number = 0;
	int rc = KVB_OK;

	if (!f)
		return kvb_fail(err, KVB_E_IO, "config", "cannot read the parameter file %s: %s",
				path, strerror(errno));
	while (rc == KVB_OK && getline(&line, &size, f) >= 0) {
		char where[200];

		snprintf(where, sizeof where, "%.160s:%u", path, ++number);
		rc = read_line(p, line, where, err);
	}
	if (rc == KVB_OK && ferror(f))
		rc = kvb_fail(err, KVB_E_IO, "config", "cannot read the parameter file %s: %s",
			      path, strerror(errno));
	free(line); /* getline's own */
	fclose(f);
	return rc;
}

/* Kubernetes sets KVBLOCKD_PORT and KVBLOCKD_SERVICE_* by itself when a service is named
 * kvblockd. */
static bool is_foreign_env(const char *name)
{
	return strncmp(name, "PORT", 4) == 0 || strncmp(name, "SERVICE_", 8) == 0;
}

/* only: KVB_PARAM_COUNT = all rows; else just that one, and nothing is complained about. */
static int read_env(struct kvb_params *p, char *const *envp, enum kvb_param only,
		    struct kvb_error *err)
{
	int rc = KVB_OK;

	for (; rc == KVB_OK && envp && *envp; envp++) {
		const char *name = *envp + strlen(ENV_PREFIX);
		const char *equals = strchr(*envp, '=');
		char where[160];
		enum kvb_param i;

		if (strncmp(*envp, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 || !equals)
			continue;
		snprintf(where, sizeof where, "environment %.*s", (int)(equals - *envp), *envp);
		i = find_row(name, (size_t)(equals - name), true);
		if (only != KVB_PARAM_COUNT && i != only)
			continue;
		if (i != KVB_PARAM_COUNT)
			rc = kvb_param_set(p, i, equals + 1, KVB_FROM_ENVIRONMENT, where, err);
		else if (!is_foreign_env(name))
			rc = kvb_fail(err, KVB_E_INVALID, NULL,
				      "%s: there is no such parameter; --help lists them", where);
	}
	return rc;
}

static bool is_action(const char *arg, enum kvb_action *out)
{
	static const struct {
		const char *arg;
		enum kvb_action action;
	} actions[] = {
		{ "--help", KVB_ACTION_HELP },	     { "-h", KVB_ACTION_HELP },
		{ "--version", KVB_ACTION_VERSION }, { "-V", KVB_ACTION_VERSION },
		{ "--dump-config", KVB_ACTION_DUMP }, { "--man", KVB_ACTION_MAN },
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
static int read_args(struct kvb_params *p, int argc, char *const *argv, enum kvb_param only,
		     struct kvb_error *err)
{
	int rc = KVB_OK;

	for (int k = 1; rc == KVB_OK && k < argc; k++) {
		const char *arg = argv[k];
		const char *value;
		size_t n;
		enum kvb_param i;

		if (is_action(arg, &p->action))
			continue;
		if (strncmp(arg, "--", 2) != 0)
			return kvb_fail(err, KVB_E_INVALID, NULL,
					"argument '%.64s' is not an option; see --help", arg);
		n = strcspn(arg + 2, "=");
		i = find_row(arg + 2, n, false);
		if (i == KVB_PARAM_COUNT)
			return kvb_fail(err, KVB_E_INVALID, NULL,
					"argument --%.*s: there is no such parameter; --help "
					"lists them", (int)(n < 64 ? n : 64), arg + 2);
		if (arg[2 + n] == '=')
			value = arg + 2 + n + 1;
		else if (kvb_param_rows[i].type == PARAM_FLAG)
			value = "true";
		else if (k + 1 < argc)
			value = argv[++k];
		else
			return kvb_fail(err, KVB_E_INVALID, kvb_param_rows[i].name,
					"argument --%s: a value is missing",
					kvb_param_rows[i].name);
		if (only == KVB_PARAM_COUNT || only == i)
			rc = kvb_param_set(p, i, value, KVB_FROM_ARGUMENT, "command line", err);
	}
	return rc;
}

static int check_order(uint64_t low, uint64_t high, const char *low_name, const char *high_name,
		       struct kvb_error *err)
{
	if (low <= high)
		return KVB_OK;
	return kvb_fail(err, KVB_E_INVALID, low_name, "%s is above %s: lower it, or raise %s",
			low_name, high_name, high_name);
}

/* It goes into the header Location, with a path behind it. */
static int check_advertise(const char *s, struct kvb_error *err)
{
	const char *host = strstr(s, "://") ? strstr(s, "://") + 3 : s;

	if (!*s || (strchr(host, ':') && !strpbrk(host, "/?#@ ") &&
		    (host == s || strncmp(s, "http://", 7) == 0 || strncmp(s, "https://", 8) == 0)))
		return KVB_OK;
	return kvb_fail(err, KVB_E_INVALID, "advertise",
			"advertise: '%.64s' is neither host:port nor http://host:port", s);
}

int kvb_params_check(const struct kvb_params *p, struct kvb_error *err)
{
	int rc = check_order(p->lease_default_ms, p->lease_max_ms, "lease_default_ms",
			     "lease_max_ms", err);

	if (rc == KVB_OK)
		rc = check_order(p->session_default_ms, p->session_max_ms, "session_default_ms",
				 "session_max_ms", err);
	if (rc == KVB_OK)
		rc = check_order(p->body_max, p->body_total_max, "body_max", "body_total_max", err);
	if (rc == KVB_OK)
		rc = check_advertise(p->advertise, err);
	return rc;
}

int kvb_params_load(struct kvb_params *p, int argc, char *const *argv, char *const *envp,
		    struct kvb_error *err)
{
	int rc = KVB_OK;

	memset(p, 0, sizeof *p);
	for (size_t i = 0; rc == KVB_OK && i < KVB_PARAM_COUNT; i++)
		rc = kvb_param_set(p, (enum kvb_param)i, kvb_param_rows[i].initial,
				   KVB_FROM_DEFAULT,
				   "default", err);
	if (rc == KVB_OK)
		rc = read_env(p, envp, KVB_PARAM_config, err);
	if (rc == KVB_OK)
		rc = read_args(p, argc, argv, KVB_PARAM_config, err);
	/* Help must come even where the file is broken. */
	if (rc == KVB_OK && *p->config &&
	    (p->action == KVB_ACTION_RUN || p->action == KVB_ACTION_DUMP))
		rc = read_file(p, p->config, err);
	if (rc == KVB_OK)
		rc = read_env(p, envp, KVB_PARAM_COUNT, err);
	if (rc == KVB_OK)
		rc = read_args(p, argc, argv, KVB_PARAM_COUNT, err);
	if (rc == KVB_OK)
		rc = kvb_params_check(p, err);
	if (rc != KVB_OK)
		kvb_params_destroy(p);
	return rc;
}
