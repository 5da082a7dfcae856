/*
 * check_config.c - `slabkvd check-config`: reports all errors of a configuration before it is used:
 * each parameter, and the ports, certificates, tokens, directories and store that a start would
 * use. Changes nothing. Stateless.
 */
#include "main.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <skv/auth.h>
#include <skv/mem.h>
#include <skv/service.h>
#include <skv/store.h>
#include <skv/tls.h>

#include "params_internal.h"

static const char usage[] =
	"Usage: slabkvd check-config FILE [--running] [--name value]...\n"
	"Tells all that is wrong with the parameters in FILE, the environment and the arguments,\n"
	"and what a start with them would refuse here. Changes nothing.\n"
	"  --running   a manager runs with them: its ports may be taken\n"
	"Exit status: 0 nothing wrong, 1 something is, 2 wrong arguments.\n";

struct check {
	const char *file;
	struct skv_params p;
	bool running;
	bool bad[SKV_PARAM_COUNT]; /* reported already */
	unsigned n;
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void tell(void *ctx, const struct skv_error *err)
{
	struct check *c = ctx;
	enum skv_param i = err->field[0] ? skv_param_find(err->field) : SKV_PARAM_COUNT;
	bool located; /* the message begins with its line, or the other source */

	if (i != SKV_PARAM_COUNT)
		c->bad[i] = true;
	c->n++;
	located = (begins(err->message, c->file) && err->message[strlen(c->file)] == ':') ||
		  begins(err->message, "command line: ") ||
		  begins(err->message, "environment ") || begins(err->message, "argument ");
	if (i != SKV_PARAM_COUNT && c->p.source[i] == SKV_FROM_FILE && !located)
		printf("%s:%u: ", c->file, c->p.line[i]);
	if (err->field[0] && !located && !strstr(err->message, err->field))
		printf("%s: ", err->field);
	puts(err->message[0] ? err->message : skv_status_text(err->status));
}

static void found(struct check *c, enum skv_param i, int rc, struct skv_error *err)
{
	if (rc == SKV_OK)
		return;
	snprintf(err->field, sizeof err->field, "%s", skv_param_rows[i].name);
	tell(c, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *copy = skv_strdup(!slash ? "." : slash == path ? "/" : path);

	if (copy && slash && slash != path)
		copy[slash - path] = '\0';
	return copy;
}

/* Checks that the file can be appended to, or made. */
static void check_writable(struct check *c, enum skv_param i, const char *path)
{
	struct skv_error err = { 0 };
	char *folder = *path ? folder_of(path) : NULL;
	int rc = SKV_OK;

	if (!folder)
		return;
	if (access(folder, F_OK) != 0)
		rc = skv_fail(&err, SKV_E_IO, NULL, "there is no directory %.200s: make it",
			      folder);
	else if (access(access(path, F_OK) == 0 ? path : folder, W_OK) != 0)
		rc = skv_fail(&err, SKV_E_IO, NULL,
			      "%.200s cannot be written: %s: give this user the right to", path,
			      strerror(errno));
	skv_free(folder);
	found(c, i, rc, &err);
}

static void check_readable(struct check *c, enum skv_param i, const char *path)
{
	struct skv_error err = { 0 };

	if (*path && access(path, R_OK) != 0)
		found(c, i,
		      skv_fail(&err, SKV_E_IO, NULL, "%.200s cannot be read: %s", path,
			       strerror(errno)),
		      &err);
}

/* Checks that the path, or its nearest existing parent, is a directory where this user may
 * write. */
static void check_directory(struct check *c, enum skv_param i, const char *path)
{
	struct skv_error err = { 0 };
	char *at = skv_strdup(path), *up;
	struct stat st;
	int rc = SKV_OK;

	while (at && stat(at, &st) != 0 && errno == ENOENT) {
		up = folder_of(at);
		skv_free(at);
		at = up;
	}
	if (!at || stat(at, &st) != 0)
		rc = skv_fail(&err, SKV_E_IO, NULL, "%.200s: %s", path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		rc = skv_fail(&err, SKV_E_INVALID, NULL, "%.200s is no directory: name another",
			      at);
	else if (access(at, W_OK | X_OK) != 0)
		rc = skv_fail(&err, SKV_E_IO, NULL, "%.200s cannot be written: %s: make it "
			      "writable for this user", at, strerror(errno));
	skv_free(at);
	found(c, i, rc, &err);
}

static void check_files(struct check *c)
{
	const struct skv_params *p = &c->p;

	check_writable(c, SKV_PARAM_log_file, p->log_file);
	check_writable(c, SKV_PARAM_audit_file, p->audit_file);
	check_writable(c, SKV_PARAM_port_file, p->port_file);
	check_readable(c, SKV_PARAM_tls_ca_file, p->tls_ca_file);
	check_readable(c, SKV_PARAM_fs_master_token_file, p->fs_master_token_file);
}

/* ---- ports, tokens, certificates ------------------------------------------------------------- */

static void check_port(struct check *c, enum skv_param i, struct skv_listen l)
{
	struct skv_error err = { 0 };
	struct skv_bound bound;
	int rc;

	if (c->bad[i])
		return;
	if (c->running)
		l.port = 0; /* the address alone */
	rc = skv_listen(&l, *c->p.tokens_file != '\0', &bound, &err);
	if (rc == SKV_OK)
		close(bound.fd);
	found(c, err.field[0] && skv_param_find(err.field) != SKV_PARAM_COUNT
			 ? skv_param_find(err.field)
			 : i,
	      rc, &err);
}

static void check_ports(struct check *c)
{
	const struct skv_params *p = &c->p;

	check_port(c, SKV_PARAM_http_port,
		   (struct skv_listen){ .host = p->http_listen, .port = (uint16_t)p->http_port,
					.host_param = "http_listen", .port_param = "http_port",
					.port_option = "--http-port", .name = "http" });
	if (p->grpc_port != SKV_PORT_OFF && strcmp(p->role, "manager") == 0)
		check_port(c, SKV_PARAM_grpc_port,
			   (struct skv_listen){ .host = p->http_listen,
						.port = (uint16_t)p->grpc_port,
						.host_param = "http_listen",
						.port_param = "grpc_port",
						.port_option = "--grpc-port", .name = "grpc" });
}

static void check_tokens(struct check *c)
{
	struct skv_error err = { 0 };
	struct auth a = { 0 };
	int rc = skv_auth_init(&a, c->p.tokens_file, &err);

	if (rc == SKV_OK)
		skv_auth_destroy(&a);
	found(c, SKV_PARAM_tokens_file, rc, &err);
}

static void check_certificates(struct check *c)
{
	const struct skv_tls_files f = { c->p.tls_cert_file, c->p.tls_key_file,
					 c->p.tls_client_ca_file };
	struct skv_error err = { 0 };
	int rc;

	if (!*f.cert || !*f.key)
		return;
	rc = skv_tls_load(&f, &err);
	if (rc != SKV_OK) {
		enum skv_param i = skv_param_find(err.field);

		found(c, i == SKV_PARAM_COUNT ? SKV_PARAM_tls_cert_file : i, rc, &err);
		return;
	}
	if (skv_tls_expires() < (uint64_t)time(NULL))
		found(c, SKV_PARAM_tls_cert_file,
		      skv_fail(&err, SKV_E_INVALID, NULL,
			       "the certificate in %.200s has expired: clients refuse it", f.cert),
		      &err);
	skv_tls_unload();
}

/* ---- the store ------------------------------------------------------------------------------- */

/* Checks the store, without creating one that does not exist. */
static void check_store(struct check *c)
{
	const struct skv_store_options o = { .path = c->p.store };
	struct skv_error err = { 0 };
	struct skv_store *store;
	int rc;

	if (skv_store_is_file(c->p.store) && access(c->p.store, F_OK) != 0) {
		check_writable(c, SKV_PARAM_store, c->p.store);
		return;
	}
	rc = skv_store_open(skv_store_backend(o.path), &o, &store, &err);
	if (rc == SKV_OK)
		skv_store_close(store);
	found(c, SKV_PARAM_store, rc, &err);
}

static void check_system(struct check *c)
{
	const bool manager = strcmp(c->p.role, "manager") == 0;

	check_tokens(c);
	check_certificates(c);
	check_ports(c);
	check_files(c);
	if (manager && !c->bad[SKV_PARAM_store])
		check_store(c);
	if (manager && !c->bad[SKV_PARAM_storage_root])
		check_directory(c, SKV_PARAM_storage_root, c->p.storage_root);
	if (strcmp(c->p.role, "fs-master") == 0)
		check_directory(c, SKV_PARAM_root, c->p.root);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check(struct check *c, int argc, char **argv, char **envp)
{
	skv_params_load_telling(&c->p, argc, argv, envp, tell, c);
	check_system(c);
	skv_params_destroy(&c->p);
	if (c->n == 0)
		printf("%s: nothing is wrong\n", c->file);
	else
		printf("%s: %u %s wrong\n", c->file, c->n, c->n == 1 ? "thing is" : "things are");
	return c->n ? EXIT_PROBLEM : 0;
}

int skv_check_config_main(int argc, char **argv, char **envp)
{
	struct check c = { .file = argc > 1 ? argv[1] : "" };
	char **args = skv_calloc((size_t)argc + 3, sizeof *args);
	int n = 0, status;

	if (!args || strncmp(c.file, "-", 1) == 0 || !*c.file) {
		bool asked = strcmp(c.file, "--help") == 0 || strcmp(c.file, "-h") == 0;

		skv_free(args);
		fputs(usage, asked ? stdout : stderr);
		return asked ? 0 : EXIT_USAGE;
	}
	args[n++] = argv[0];
	args[n++] = (char *)"--config";
	args[n++] = argv[1];
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--running") == 0)
			c.running = true;
		else
			args[n++] = argv[i];
	}
	assert(n <= argc + 1);
	status = check(&c, n, args, envp);
	skv_free(args);
	return status;
}
