/* standin_http.c - the stand-in's HTTP server, slab files and life. One thread of libmicrohttpd. */
#include "standin_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/owner_note.h>

#include "shell.h"

void standin_path(const struct standin *s, uint32_t file, char out[160])
{
	char name[SKV_SLAB_PATH_MAX];

	skv_slab_path(file, name);
	snprintf(out, 160, "%s/%s", s->root, name);
}

/* Which operation a URL is, for the fail knob. */
static bool is_op(const char *url, const char *op)
{
	const char *last = strrchr(url, '/');

	return strcmp(op, "*") == 0 || (last && strcmp(last + 1, op) == 0);
}

static int answer(struct standin *s, struct exchange *x, const char *method, const char *url,
		  bool *cut)
{
	bool fails = s->fail_count > 0 && s->fail_op && is_op(url, s->fail_op) &&
		     !(s->forwards && !x->direct);

	*cut = false;
	if (fails) {
		s->fail_count--;
		*cut = s->fail_status == SKV_OK;
		if (!*cut)
			return skv_fail(&x->err, s->fail_status, "knob", "told to fail");
	}
	return standin_dispatch(s, x, method, url);
}

/* In which form a request is read and answered. */
static const struct skv_v1_codec *codec_of(struct MHD_Connection *c, const char *method)
{
	bool get = strcmp(method, "GET") == 0;
	const char *type =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, get ? "Accept" : "Content-Type");
	const struct skv_v1_codec *codec = skv_v1_codec_of_type(type);

	return codec ? codec : &skv_v1_json;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **state)
{
	struct standin *s = ctx;
	struct exchange *x = *state;
	struct MHD_Response *r;
	enum MHD_Result result;
	bool cut;
	int rc;

	(void)version;
	if (!x) {
		*state = calloc(1, sizeof *x);
		return *state ? MHD_YES : MHD_NO;
	}
	if (*size) {
		skv_put_bytes(&x->in, data, *size);
		*size = 0;
		return MHD_YES;
	}
	skv_arena_init(&x->arena);
	x->codec = codec_of(c, method);
	x->direct = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Slabkv-Route") != NULL;
	pthread_mutex_lock(&s->lock);
	s->requests++;
	rc = answer(s, x, method, url, &cut);
	pthread_mutex_unlock(&s->lock);
	if (cut)
		return MHD_NO;
	if (rc != SKV_OK) {
		skv_buf_clear(&x->out);
		x->codec->write_error(&x->out, &x->err, "r1");
	}
	r = MHD_create_response_from_buffer(x->out.len, x->out.data ? (void *)x->out.data : "",
					    MHD_RESPMEM_MUST_COPY);
	if (s->note)
		MHD_add_response_header(r, SKV_OWNER_NOTE, s->note);
	result = MHD_queue_response(c, (unsigned)skv_status_http(rc), r);
	MHD_destroy_response(r);
	return result;
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **state,
			 enum MHD_RequestTerminationCode t)
{
	struct exchange *x = *state;

	(void)ctx;
	(void)c;
	(void)t;
	if (!x)
		return;
	skv_buf_destroy(&x->in);
	skv_buf_destroy(&x->out);
	skv_arena_destroy(&x->arena);
	free(x);
	*state = NULL;
}

/* ---- files and life -------------------------------------------------------------------------- */

static void write_superblock(const struct standin *s, const char *path, uint32_t file,
			     uint64_t length)
{
	struct skv_superblock sb = { .file = file,
				     .length = length,
				     .unit = 65536,
				     .header = STANDIN_HEADER,
				     .trailer = STANDIN_TRAILER,
				     .created_ms = 1 };
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	memcpy(sb.uuid, s->uuid, 16);
	skv_superblock_encode(&sb, raw);
	assert(fd >= 0);
	assert(pwrite(fd, raw, sizeof raw, 0) == (ssize_t)sizeof raw);
	assert(length == 0 || ftruncate(fd, (off_t)length) == 0);
	close(fd);
}

static void make_files(struct standin *s)
{
	char path[160];

	snprintf(s->root, sizeof s->root, "/tmp/skv-client-XXXXXX");
	assert(mkdtemp(s->root));
	skv_random(s->uuid, sizeof s->uuid);
	snprintf(path, sizeof path, "%s/%s", s->root, SKV_STORAGE_MARKER);
	write_superblock(s, path, SKV_NO_FILE, 0);
	s->file_length = 4u << 20;
	for (uint32_t i = 0; i < STANDIN_FILES; i++) {
		standin_path(s, i, path);
		write_superblock(s, path, i, s->file_length);
	}
}

static void listen_on(struct standin *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	pthread_mutex_init(&s->lock, NULL);
	s->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, 0, NULL, NULL,
				     on_request, s, MHD_OPTION_SOCK_ADDR, &at,
				     MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
				     MHD_OPTION_CONNECTION_LIMIT, 256u, MHD_OPTION_END);
	assert(s->daemon);
	s->port = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", s->port);
}

void standin_start(struct standin *s)
{
	memset(s, 0, sizeof *s);
	s->blocks = calloc(STANDIN_BLOCKS, sizeof *s->blocks);
	s->sessions = calloc(STANDIN_SESSIONS, sizeof *s->sessions);
	assert(s->blocks && s->sessions);
	s->lease_ms = 10000;
	s->deadline_ms = 30000;
	s->next_offset = STANDIN_HEADER;
	make_files(s);
	listen_on(s);
}

void standin_start_failing(struct standin *s, int status)
{
	memset(s, 0, sizeof *s);
	s->fail_op = "*";
	s->fail_status = status;
	s->fail_count = UINT32_MAX;
	listen_on(s);
}

void standin_stop(struct standin *s)
{
	char command[192];

	MHD_stop_daemon(s->daemon);
	pthread_mutex_destroy(&s->lock);
	free(s->blocks);
	free(s->sessions);
	if (s->root[0]) {
		snprintf(command, sizeof command, "rm -rf '%s' '%s.away'", s->root, s->root);
		assert(test_shell(command) == 0);
	}
}
