/* etcd_servers.c - see etcd_servers.h. One thread. */
#include "etcd_servers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shell.h"

static const char *program(void)
{
	const char *named = getenv("SLABKV_TEST_ETCD");

	return named ? named : "etcd";
}

bool etcd_is_here(void)
{
	char command[400];

	snprintf(command, sizeof command, "command -v '%s' >/dev/null", program());
	if (test_shell(command) == 0)
		return true;
	printf("skipped: there is no %s (package etcd-server)\n", program());
	return false;
}

/* The lowest port that the kernel gives to clients of others. */
static unsigned first_of_clients(void)
{
	unsigned first = 0;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &first), 1);
	fclose(f);
	assert_true(first > 2048);
	return first;
}

/* Below those: a server that is killed must find its port free when it is started again. Each call
 * gives another one. */
uint16_t etcd_free_port(void)
{
	static unsigned turn;
	const unsigned end = first_of_clients(), n = end / 2;
	struct sockaddr_in at = { .sin_family = AF_INET };
	int rc;

	if (!turn)
		turn = (unsigned)getpid() * 131;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	do {
		const int fd = socket(AF_INET, SOCK_STREAM, 0);

		at.sin_port = htons((uint16_t)(end - 1 - turn++ % n));
		rc = bind(fd, (struct sockaddr *)&at, sizeof at);
		close(fd);
	} while (rc != 0);
	return ntohs(at.sin_port);
}

const char *etcd_file(const struct etcd_servers *s, const char *name)
{
	static char path[4][320];
	static unsigned turn;
	char *out = path[turn++ % 4];

	snprintf(out, sizeof path[0], "%s/%s", s->dir, name);
	return out;
}

const char *etcd_endpoints(const struct etcd_servers *s, uint32_t first)
{
	static char out[200];
	size_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s127.0.0.1:%u", i ? "," : "",
				      s->client[(first + i) % s->n]);
	return out;
}

static void make_certificates(const struct etcd_servers *s)
{
	static const char script[] =
		"cd '%s' && exec 2>openssl.log && key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 "
		"-nodes' && for ca in ca other; do openssl req -x509 $key -days 2 -subj /CN=$ca "
		"-keyout $ca.key -out $ca.crt || exit 1; done && echo "
		"subjectAltName=IP:127.0.0.1,DNS:etcd.example >names && for name in server client "
		"stranger; do ca=ca; [ $name != stranger ] || ca=other; openssl req $key -subj "
		"/CN=$name -keyout $name.key -out $name.csr && openssl x509 -req -days 2 -in "
		"$name.csr -CA $ca.crt -CAkey $ca.key -CAcreateserial -extfile names -out "
		"$name.crt || exit 1; done";
	char command[1500];

	snprintf(command, sizeof command, script, s->dir);
	if (test_shell(command) != 0)
		fail_msg("openssl makes no certificates: %s/openssl.log", s->dir);
}

/* The command line, as words for a shell. */
static void print_command(const struct etcd_servers *s, uint32_t i, char *out, size_t size)
{
	const char *scheme = s->tls ? "https" : "http";
	size_t n;

	n = (size_t)snprintf(out, size,
			     "exec %s '%s' --name m%u --data-dir '%s/m%u' --listen-client-urls "
			     "%s://127.0.0.1:%u --advertise-client-urls %s://127.0.0.1:%u "
			     "--listen-peer-urls http://127.0.0.1:%u --initial-advertise-peer-urls "
			     "http://127.0.0.1:%u --initial-cluster-token '%s' "
			     "--heartbeat-interval 50 --election-timeout 500 %s --initial-cluster ",
			     s->wrapper, program(), i, s->dir, i, scheme, s->client[i], scheme,
			     s->client[i],
			     s->peer[i], s->peer[i], s->dir, s->options);
	for (uint32_t k = 0; k < s->n; k++)
		n += (size_t)snprintf(out + n, size - n, "%sm%u=http://127.0.0.1:%u", k ? "," : "",
				      k, s->peer[k]);
	if (s->tls)
		snprintf(out + n, size - n,
			 " --cert-file '%s/server.crt' --key-file '%s/server.key' "
			 "--trusted-ca-file '%s/ca.crt' --client-cert-auth", s->dir, s->dir,
			 s->dir);
}

void etcd_start_one(struct etcd_servers *s, uint32_t i)
{
	char command[3000], log[300];

	print_command(s, i, command, sizeof command);
	snprintf(log, sizeof log, "%s/m%u.log", s->dir, i);
	s->pid[i] = fork();
	if (s->pid[i] == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, 1);
		dup2(fd, 2);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	assert_true(s->pid[i] > 0);
}

static void start_all(struct etcd_servers *s, const char *base)
{
	snprintf(s->dir, sizeof s->dir, "%s/skv-etcd-XXXXXX", base);
	assert_non_null(mkdtemp(s->dir));
	if (s->tls)
		make_certificates(s);
	for (uint32_t i = 0; i < s->n; i++) {
		s->client[i] = etcd_free_port();
		s->peer[i] = etcd_free_port();
	}
	for (uint32_t i = 0; i < s->n; i++)
		etcd_start_one(s, i);
}

void etcd_start(struct etcd_servers *s, uint32_t n, bool tls, const char *options)
{
	*s = (struct etcd_servers){ .n = n, .tls = tls, .options = options, .wrapper = "" };
	start_all(s, "/tmp");
}

void etcd_start_in(struct etcd_servers *s, const char *base, uint32_t n, const char *wrapper,
		   const char *options)
{
	*s = (struct etcd_servers){ .n = n, .options = options, .wrapper = wrapper };
	start_all(s, base);
}

void etcd_signal(const struct etcd_servers *s, uint32_t i, int sig)
{
	assert_true(s->pid[i] > 0);
	assert_int_equal(kill(s->pid[i], sig), 0);
}

void etcd_kill(struct etcd_servers *s, uint32_t i)
{
	if (s->pid[i] <= 0)
		return;
	kill(s->pid[i], SIGKILL);
	waitpid(s->pid[i], NULL, 0);
	s->pid[i] = 0;
}

void etcd_stop(struct etcd_servers *s)
{
	char command[300];

	for (uint32_t i = 0; i < s->n; i++)
		etcd_kill(s, i);
	snprintf(command, sizeof command, "rm -rf '%s'", s->dir);
	test_shell(command);
	s->n = 0;
}
