/*
 * echo.c - the floor of a call: a bare libmicrohttpd server that reads a body and answers another
 * of a given length, with the manager's settings, under the load that the library's HTTP (libcurl,
 * one connection per thread) puts on it. No codec, no core.
 *
 * Usage: echo REQUEST_BYTES ANSWER_BYTES CLIENTS SECONDS [SERVER_THREADS]. One JSON
 * object on stdout: calls_per_s, cpu_us_per_call (of the server process), p50_us, p99_us.
 * With 0 clients the load is somebody else's: it prints the server's port and process,
 * and ends with stdin. Not a test.
 */
#include <curl/curl.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_util.h"

struct load {
	pthread_t thread;
	long port;
	const char *body;
	size_t request;
	double seconds;
	struct bench_times times;
};

static char *answer;
static size_t answer_bytes;

static enum MHD_Result serve(void *ctx, struct MHD_Connection *c, const char *url,
			     const char *method, const char *version, const char *data, size_t *n,
			     void **state)
{
	static int seen;
	struct MHD_Response *r;
	enum MHD_Result rc;

	(void)ctx;
	(void)url;
	(void)method;
	(void)version;
	(void)data;
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	if (*n) {
		*n = 0;
		return MHD_YES;
	}
	r = MHD_create_response_from_buffer(answer_bytes, answer, MHD_RESPMEM_PERSISTENT);
	MHD_add_response_header(r, "Content-Type", "application/json");
	rc = MHD_queue_response(c, 200, r);
	MHD_destroy_response(r);
	return rc;
}

/* The child: tells its port, serves until the pipe of the parent ends. */
static void server(int tell, int until, unsigned threads)
{
	struct MHD_Daemon *d = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, serve,
		NULL, MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768, MHD_OPTION_END);
	const union MHD_DaemonInfo *info =
		d ? MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	long port = info ? info->port : 0;
	char c;

	if (write(tell, &port, sizeof port) != sizeof port || port == 0)
		_exit(1);
	while (read(until, &c, 1) > 0)
		;
	_exit(0);
}

static size_t discard(char *data, size_t one, size_t n, void *ctx)
{
	(void)data;
	(void)ctx;
	return one * n;
}

static void *work(void *ctx)
{
	struct load *l = ctx;
	CURL *curl = curl_easy_init();
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	uint64_t begin = bench_now_us(), now = begin;
	char url[64];

	headers = curl_slist_append(headers, "Expect:");
	snprintf(url, sizeof url, "http://127.0.0.1:%ld/v1/instances/bench/lookup", l->port);
	while (now - begin < (uint64_t)(l->seconds * 1e6)) {
		uint64_t last = now;

		curl_easy_reset(curl);
		curl_easy_setopt(curl, CURLOPT_URL, url);
		curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
		curl_easy_setopt(curl, CURLOPT_POST, 1L);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)l->request);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, l->body);
		if (curl_easy_perform(curl) != CURLE_OK)
			bench_die("a call failed");
		now = bench_now_us();
		bench_times_add(&l->times, now - last);
	}
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	return NULL;
}

static void run(pid_t pid, struct load *loads, uint32_t n)
{
	struct bench_times all = { 0 };
	uint64_t begin = bench_now_us(), cpu = bench_cpu_ns(pid), wall;

	for (uint32_t i = 0; i < n; i++)
		if (pthread_create(&loads[i].thread, NULL, work, &loads[i]) != 0)
			bench_die("pthread_create");
	for (uint32_t i = 0; i < n; i++)
		pthread_join(loads[i].thread, NULL);
	wall = bench_now_us() - begin;
	cpu = bench_cpu_ns(pid) - cpu;
	for (uint32_t i = 0; i < n; i++) {
		bench_times_merge(&all, &loads[i].times);
		bench_times_free(&loads[i].times);
	}
	printf("{\"calls_per_s\": %.1f, \"cpu_us_per_call\": %.3f, \"p50_us\": %" PRIu64
	       ", \"p99_us\": %" PRIu64 "}\n",
	       (double)all.n * 1e6 / (double)wall, (double)cpu / 1e3 / (double)all.n,
	       bench_quantile(&all, 0.5), bench_quantile(&all, 0.99));
	bench_times_free(&all);
}

int main(int argc, char **argv)
{
	int tell[2], until[2];
	uint32_t clients;
	struct load *loads;
	long port = 0;
	char *body;
	pid_t pid;

	if (argc < 5 || pipe(tell) != 0 || pipe(until) != 0)
		bench_die("usage: echo REQUEST_BYTES ANSWER_BYTES CLIENTS SECONDS [THREADS]");
	answer_bytes = strtoul(argv[2], NULL, 10);
	answer = bench_memory(answer_bytes + 1);
	clients = (uint32_t)strtoul(argv[3], NULL, 10);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(until[1]);
		server(tell[1], until[0], argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 2);
	}
	close(until[0]);
	if (read(tell[0], &port, sizeof port) != sizeof port || port == 0)
		bench_die("the server did not start");
	if (clients == 0) {
		printf("%ld %ld\n", port, (long)pid);
		fflush(stdout);
		while (getchar() != EOF)
			;
		return 0;
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	body = bench_memory(strtoul(argv[1], NULL, 10) + 1);
	loads = calloc(clients, sizeof *loads);
	if (!loads)
		bench_die("out of memory");
	for (uint32_t i = 0; i < clients; i++)
		loads[i] = (struct load){ .port = port, .body = body,
					  .request = strtoul(argv[1], NULL, 10),
					  .seconds = strtod(argv[4], NULL) };
	run(pid, loads, clients);
	close(until[1]);
	waitpid(pid, NULL, 0);
	free(loads);
	free(body);
	free(answer);
	curl_global_cleanup();
	return 0;
}
