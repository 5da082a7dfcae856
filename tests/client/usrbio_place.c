/* usrbio_place.c - see usrbio_place.h. */
#include "usrbio_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/shell.h"

char root[64];
int rootfd;
static int64_t epoch = 1;

uint64_t count(enum counter_name name) { return standin_count(root, name); }

void knobs(const char *text)
{
	char all[256];

	snprintf(all, sizeof all, "epoch=%lld %s", (long long)epoch, text);
	standin_set(root, all);
}

void restart(void) { standin_restart(root, ++epoch, ""); }

void make_file(const char *name)
{
	int fd = openat(rootfd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)LENGTH), 0);
	close(fd);
}

void open_files(struct place *p)
{
	struct skv_error err;

	assert_int_equal(skv_engine_open(p->engine, rootfd, "slab", true, &p->w, &err), SKV_OK);
	assert_int_equal(skv_engine_open(p->engine, rootfd, "slab", false, &p->r, &err), SKV_OK);
	assert_int_equal(((struct skv_usrbio_file *)p->r)->kind, SKV_USRBIO_NATIVE);
}

void close_files(struct place *p)
{
	skv_engine_close(p->engine, p->r);
	skv_engine_close(p->engine, p->w);
	p->r = p->w = NULL;
}

int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	struct skv_error err;

	assert_non_null(p);
	restart();
	make_file("slab");
	skv_hf3fs_init(&p->o);
	p->o.mount_point = root;
	p->o.read_iov_size = p->o.write_iov_size = 32 * MIB;
	p->o.ior_entries = 128;
	p->with = (struct skv_engine_options){ .depth = 64, .hf3fs = &p->o };
	assert_int_equal(skv_engine_usrbio.create(&p->with, &p->engine, &err), SKV_OK);
	skv_fake_clock_init(&p->clock, 1000);
	p->by = (struct skv_io_call){ .clock = &p->clock.clock, .at_ms = UINT64_MAX };
	open_files(p);
	*state = p;
	return 0;
}

/* An object in /dev/shm whose name says that it is this process's. */
static bool left_behind(char name[256])
{
	const struct dirent *e;
	DIR *d = opendir("/dev/shm");
	bool found = false;
	char pid[32];

	assert_non_null(d);
	snprintf(pid, sizeof pid, "-%d-", (int)getpid());
	while (!found && (e = readdir(d)) != NULL) {
		found = strncmp(e->d_name, "slabkv-", 7) == 0 && strstr(e->d_name, pid);
		snprintf(name, 256, "%s", e->d_name);
	}
	closedir(d);
	return found;
}

int teardown(void **state)
{
	struct place *p = *state;
	char name[256];

	close_files(p);
	p->engine->ops->destroy(p->engine);
	if (left_behind(name))
		fail_msg("left in /dev/shm: %s", name);
	assert_int_equal(standin_links(root), 0);
	free(p);
	return 0;
}

struct skv_usrbio_conn *conn(const struct place *p)
{
	return ((struct skv_usrbio_file *)p->r)->conn;
}

bool in_use(struct skv_usrbio_conn *g, enum skv_usrbio_way way)
{
	bool some;

	skv_mutex_lock(&g->pools[way].lock);
	some = g->pools[way].n_used > 0;
	skv_mutex_unlock(&g->pools[way].lock);
	return some;
}

void fill(uint8_t *data, size_t n, uint64_t seed)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t v = (seed + i) * 0x9e3779b97f4a7c15u;

		memcpy(data + i, &v, 8);
	}
}

struct skv_io_run run_of(struct skv_engine_file *f, uint64_t offset, uint8_t *data, size_t size,
			 size_t stride, int n, struct iovec *iov)
{
	for (int i = 0; i < n; i++)
		iov[i] = (struct iovec){ data + (size_t)i * stride, size };
	return (struct skv_io_run){ .file = f, .offset = offset, .iov = iov, .n_iov = n,
				    .length = (uint64_t)n * size };
}

void write_bytes(struct place *p, uint64_t offset, uint8_t *data, size_t n)
{
	struct iovec iov[1];
	struct skv_io_run run = run_of(p->w, offset, data, n, n, 1, iov);

	skv_engine_write(p->engine, &run, 1, &p->by);
	assert_int_equal(run.status, SKV_OK);
	assert_int_equal(run.done, n);
}

int place_begin(void)
{
	snprintf(root, sizeof root, "/tmp/skv-3fs-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	setenv("HF3FS_STANDIN_ROOT", root, 1);
	setenv("HF3FS_LIB", HF3FS_STANDIN, 1);
	rootfd = open(root, O_DIRECTORY | O_CLOEXEC);
	knobs("");
	return 0;
}

void place_end(void)
{
	char command[128];

	close(rootfd);
	snprintf(command, sizeof command, "rm -rf %s", root);
	(void)test_shell(command);
}
