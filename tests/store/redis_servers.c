/* redis_servers.c - see redis_servers.h. One thread. */
#include "redis_servers.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "shell.h"

/* Debian's redis-tools has the server's program under this name; which of the two it
 * is, is its name's matter. */
static const char *const programs[] = { "/usr/bin/redis-check-rdb", "/usr/bin/redis-server",
					"/usr/bin/valkey-server" };

static const char *program(void)
{
	const char *named = getenv("SLABKV_TEST_REDIS");

	if (named)
		return named;
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
		if (access(programs[i], X_OK) == 0)
			return programs[i];
	return NULL;
}

bool servers_available(void)
{
	if (program())
		return true;
	printf("skipped: no Redis on this machine (Debian: redis-tools; or SLABKV_TEST_REDIS "
	       "names a server)\n");
	return false;
}

static uint16_t free_port(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static bool with_tls;

void servers_use_tls(bool yes) { with_tls = yes; }

/* A CA, another one, and certificates of servers and of a client. */
static void make_certificates(const struct servers *s)
{
	static const char script[] =
		"cd %s && key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes' && exec "
		"2>openssl.log && for ca in ca other; do openssl req -x509 $key -days 2 -subj "
		"/CN=$ca -keyout $ca.key -out $ca.pem; done && for name in server client; do "
		"openssl req $key -subj /CN=$name -keyout $name.key -out $name.csr && echo "
		"subjectAltName=IP:127.0.0.1,DNS:redis.example >names && openssl x509 -req -days 2 "
		"-in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out "
		"$name.pem || exit; done";
	char text[sizeof script + sizeof s->dir];

	snprintf(text, sizeof text, script, s->dir);
	if (test_shell(text) != 0)
		fail_msg("openssl makes no certificates: %s/openssl.log", s->dir);
}

/* The words for TLS, NULL-terminated; `room` has what they point to. */
struct tls_words {
	const char *v[20];
	char port[8], cert[96], key[96], ca[96];
};

static void tls_words(const struct servers *s, int i, struct tls_words *w)
{
	const struct tls_words fixed = {
		.v = { "--tls-port", w->port, "--tls-cert-file", w->cert, "--tls-key-file", w->key,
		       "--tls-ca-cert-file", w->ca, "--tls-replication", "yes", "--tls-cluster",
		       "yes", NULL }
	};

	*w = fixed;
	snprintf(w->port, sizeof w->port, "%u", s->tls[i]);
	snprintf(w->cert, sizeof w->cert, "%s/server.pem", s->dir);
	snprintf(w->key, sizeof w->key, "%s/server.key", s->dir);
	snprintf(w->ca, sizeof w->ca, "%s/ca.pem", s->dir);
}

static void spawn(struct servers *s, int i, const char *const *more)
{
	const char *v[64] = { "redis-server",
			      "--bind",
			      "127.0.0.1",
			      "--port",
			      NULL,
			      "--dir",
			      NULL,
			      "--save",
			      "",
			      "--protected-mode",
			      "no",
			      "--repl-diskless-sync-delay",
			      "0",
			      "--repl-timeout",
			      "5",
			      "--logfile",
			      "log" };
	int n = 17;
	char port[8], bus[8], dir[96];
	struct tls_words tls;

	snprintf(port, sizeof port, "%u", s->port[i]);
	snprintf(dir, sizeof dir, "%s/%d", s->dir, i);
	(void)mkdir(dir, 0700);
	v[4] = port;
	v[6] = dir;
	for (; more && *more && n < 40; more++)
		v[n++] = *more;
	tls_words(s, i, &tls);
	for (int w = 0; s->tls[i] && tls.v[w]; w++)
		v[n++] = tls.v[w];
	if (s->bus[i]) {
		snprintf(bus, sizeof bus, "%u", s->bus[i]);
		v[n++] = "--cluster-port";
		v[n++] = bus;
	}
	fflush(stdout);
	s->pid[i] = fork();
	assert_true(s->pid[i] >= 0);
	if (s->pid[i] == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 0);
		dup2(null, 1);
		execv(program(), (char *const *)v);
		_exit(127);
	}
}

const char *servers_ask(const struct servers *s, int i, const char *command, ...)
{
	static char text[65536];
	redisContext *c = redisConnectWithTimeout("127.0.0.1", s->port[i],
						  (struct timeval){ .tv_usec = 500000 });
	redisReply *r = NULL;
	char whole[512];
	va_list ap;

	va_start(ap, command);
	vsnprintf(whole, sizeof whole, command, ap);
	va_end(ap);
	snprintf(text, sizeof text, "-no answer");
	if (c && !c->err) {
		redisSetTimeout(c, (struct timeval){ .tv_sec = 2 });
		r = redisCommand(c, whole);
	}
	if (r && r->type == REDIS_REPLY_INTEGER)
		snprintf(text, sizeof text, "%lld", r->integer);
	else if (r && r->type == REDIS_REPLY_ARRAY) {
		size_t n = 0;

		text[0] = '\0';
		for (size_t e = 0; e < r->elements && n < sizeof text - 1; e++)
			n += (size_t)snprintf(text + n, sizeof text - n, e ? " %s" : "%s",
					      r->element[e]->str ? r->element[e]->str : "?");
	} else if (r && r->str)
		snprintf(text, sizeof text, r->type == REDIS_REPLY_ERROR ? "-%s" : "%s", r->str);
	freeReplyObject(r);
	if (c)
		redisFree(c);
	return text;
}

/* Until `i` answers so (a part of it), 20 s at most. */
static void wait_for(const struct servers *s, int i, const char *command, const char *part)
{
	for (int tries = 0; tries < 2000; tries++) {
		if (strstr(servers_ask(s, i, "%s", command), part))
			return;
		poll(NULL, 0, 10);
	}
	fail_msg("server %d does not say '%s' to %s: %s", i, part, command,
		 servers_ask(s, i, "%s", command));
}

/* Starts server i; on other ports, if somebody has taken these meanwhile. */
static void start(struct servers *s, int i, bool cluster, const char *const *more)
{
	char mine[32];

	for (int tries = 0; tries < 10; tries++) {
		s->port[i] = free_port();
		s->bus[i] = cluster ? free_port() : 0;
		s->tls[i] = with_tls ? free_port() : 0;
		spawn(s, i, more);
		for (int n = 0; n < 2000 && s->pid[i] > 0; n++) {
			snprintf(mine, sizeof mine, "process_id:%d\r", (int)s->pid[i]);
			/* and not who has taken its port */
			if (strstr(servers_ask(s, i, "INFO server"), mine))
				return;
			poll(NULL, 0, 10);
			if (waitpid(s->pid[i], NULL, WNOHANG) != 0)
				s->pid[i] = 0; /* it has ended */
		}
		servers_signal(s, i, SIGKILL);
	}
	fail_msg("server %d does not start", i);
}

static void make_dir(struct servers *s)
{
	memset(s, 0, sizeof *s);
	snprintf(s->dir, sizeof s->dir, "/tmp/skv-redis-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	if (with_tls)
		make_certificates(s);
}

/* The port of server i for the store and for other servers. */
static unsigned int spoken(const struct servers *s, int i)
{
	return s->tls[i] ? s->tls[i] : s->port[i];
}

void servers_start(struct servers *s, int replicas, const char *const *more)
{
	char part[48];

	make_dir(s);
	s->n = 1 + replicas;
	assert_true(s->n <= SERVERS_MAX);
	for (int i = 0; i < s->n; i++) {
		start(s, i, false, more);
		if (i > 0)
			assert_string_equal(
				servers_ask(s, i, "REPLICAOF 127.0.0.1 %u", spoken(s, 0)), "OK");
	}
	for (int i = 0; i < replicas; i++) { /* in what order they came nobody knows */
		snprintf(part, sizeof part, "port=%u,state=online", spoken(s, 1 + i));
		wait_for(s, 0, "INFO replication", part);
	}
}

static bool all_know_all(const struct servers *s)
{
	for (int i = 0; i < s->n; i++)
		if (!strstr(servers_ask(s, i, "CLUSTER INFO"), "cluster_known_nodes:6"))
			return false;
	return true;
}

/* A server forgets whom it was told to meet when the handshake takes longer than the node timeout:
 * so it is told again, each second, 60 s at most. */
static void meet(const struct servers *s)
{
	for (int tries = 0; tries < 600 && !all_know_all(s); tries++) {
		for (int i = 1; i < s->n && tries % 10 == 0; i++)
			assert_string_equal(servers_ask(s, 0, "CLUSTER MEET 127.0.0.1 %u %u",
							spoken(s, i), s->bus[i]),
					    "OK");
		poll(NULL, 0, 100);
	}
	wait_for(s, 0, "CLUSTER INFO", "cluster_known_nodes:6");
}

void servers_start_cluster(struct servers *s, unsigned int node_timeout_ms)
{
	char ms[16];
	const char *const more[] = { "--cluster-enabled", "yes", "--cluster-node-timeout", ms,
				     "--cluster-replica-validity-factor", "0", NULL };

	snprintf(ms, sizeof ms, "%u", node_timeout_ms);
	make_dir(s);
	s->n = 6;
	for (int i = 0; i < s->n; i++)
		start(s, i, true, more);
	for (int i = 0; i < 3; i++)
		assert_string_equal(servers_ask(s, i, "CLUSTER ADDSLOTSRANGE %d %d", i * 5461,
						i == 2 ? 16383 : i * 5461 + 5460),
				    "OK");
	meet(s);
	for (int i = 3; i < s->n; i++) {
		char id[64];

		snprintf(id, sizeof id, "%.40s", servers_ask(s, i - 3, "CLUSTER MYID"));
		for (int tries = 0;
		     tries < 500 &&
		     strcmp(servers_ask(s, i, "CLUSTER REPLICATE %s", id), "OK") != 0;
		     tries++)
			poll(NULL, 0, 20);
		wait_for(s, i, "INFO replication", "master_link_status:up");
	}
	for (int i = 0; i < s->n; i++) {
		wait_for(s, i, "CLUSTER INFO", "cluster_state:ok");
		wait_for(s, i % 3, "INFO replication", "state=online");
	}
}

void servers_again(struct servers *s, int i, const char *const *more)
{
	assert_int_equal(s->pid[i], 0);
	spawn(s, i, more);
	wait_for(s, i, "PING", "PONG");
}

void servers_signal(struct servers *s, int i, int number)
{
	if (s->pid[i] <= 0)
		return;
	kill(s->pid[i], number);
	if (number == SIGKILL || number == SIGTERM) {
		waitpid(s->pid[i], NULL, 0);
		s->pid[i] = 0;
	}
}

static void remove_tree(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	char file[640];

	while (d && (e = readdir(d)) != NULL) {
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    unlink(file) != 0)
			remove_tree(file);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

void servers_stop(struct servers *s)
{
	for (int i = 0; i < s->n; i++)
		servers_signal(s, i, SIGKILL);
	remove_tree(s->dir);
}

void servers_url(const struct servers *s, const char *prefix, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, s->tls[0] ? "rediss://" : "redis://");

	for (int i = 0; i < s->n; i++)
		n += (size_t)snprintf(out + n, size - n, i ? ",127.0.0.1:%u" : "127.0.0.1:%u",
				      spoken(s, i));
	n += (size_t)snprintf(out + n, size - n, "/%s", prefix);
	if (s->tls[0])
		n += (size_t)snprintf(out + n, size - n,
				      "%cca_file=%s/ca.pem&cert_file=%s/client.pem&"
				      "key_file=%s/client.key",
				      strchr(prefix, '?') ? '&' : '?', s->dir, s->dir, s->dir);
	assert_true(n < size);
}

int servers_primary(const struct servers *s, const char *key)
{
	for (int i = 0; i < s->n; i++) {
		const char *said;

		if (s->pid[i] <= 0 || !strstr(servers_ask(s, i, "INFO replication"), "role:master"))
			continue;
		said = servers_ask(s, i, "EXISTS %s", key);
		if (said[0] != '-')
			return i;
	}
	return -1;
}
