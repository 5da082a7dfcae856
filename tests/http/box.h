/* box.h - real managers in a temporary directory: start, stop, call, put and find blocks. */
#ifndef TESTS_FRONT_BOX_H
#define TESTS_FRONT_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "http.h"

#define LIST(...) (const char *const[]){ __VA_ARGS__, NULL }

enum { MANAGERS = 2 };

struct manager {
	pid_t pid; /* 0 = does not run */
	uint16_t port;
	char port_file[96];
	char out[96];
	char log[96];
};

struct box {
	char dir[64];
	struct manager m[MANAGERS];
};

/* cmocka setup and teardown: teardown kills what is left and removes the directory. */
int box_setup(void **state);
int box_teardown(void **state);

/* Starts slabkvd on a free port in the box; `args` (NULL-terminated, may be NULL) come last. */
void box_spawn(struct box *b, int which, const char *const *args);
/* The same, and waits until it is ready. */
struct manager *box_start(struct box *b, int which, const char *const *args);
void manager_await_port(struct manager *m);
/* Until the ready line is on standard output: then the default objects are there too. */
void manager_await_ready(struct manager *m);
/* Exit status, or minus the signal. */
int manager_reap(struct manager *m);
/* SIGTERM, which must end it with status 0. */
void manager_stop(struct manager *m);
/* Fails the test unless `slabkvd command` ends with `status` and says `words`. */
void assert_run(struct box *b, const char *command, int status, const char *words);
/* A file's text; the caller frees. Empty when there is none. */
char *slurp(const char *path);
void pause_10_ms(void); /* between two looks at something that is awaited with a deadline */

/* Makes a call that must end with `status`; NULL for an empty body. */
json_t *manager_call(struct manager *m, const char *method, const char *path, const char *body,
		     int status);
json_int_t json_number(const json_t *j, const char *name);
/* Instance "model" with one spec of 4096 bytes. */
void put_instance(struct manager *m);
/* `keys` is a JSON array of n texts; block i is filled with 'a' + i. */
void put_blocks(struct box *b, struct manager *m, const char *keys, size_t n);
/* Asserts that the blocks are found with their bytes. */
void assert_found(struct box *b, struct manager *m, const char *keys, size_t n);

#endif
