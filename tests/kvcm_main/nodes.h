/* nodes.h - real kv_cache_manager_bin processes in a temporary directory, with free ports. */
#ifndef TESTS_KVCM_MAIN_NODES_H
#define TESTS_KVCM_MAIN_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#define LIST(...) (const char *const[]){ __VA_ARGS__, NULL }

enum { NODES = 2 };

struct node {
	pid_t pid; /* 0 = does not run */
	char dir[96];
	uint16_t meta_rpc, meta_http, admin_rpc, admin_http, debug_http; /* 0 = none */
	uint16_t native; /* slabkvd's own HTTP port */
};

struct nodes {
	char dir[64];
	struct node n[NODES];
};

/* cmocka setup and teardown: teardown kills what is left and removes the directory. */
int nodes_setup(void **state);
int nodes_teardown(void **state);

/* Starts one on free ports, its slab files below the box; `args` (NULL-terminated, may be NULL)
 * come last. Returns when it has told its ports. */
struct node *node_start(struct nodes *s, int which, const char *const *args);
/* Runs to its end; returns the exit status. What it said is in <node dir>/out. */
int node_run(struct nodes *s, int which, const char *const *args);
/* Exit status, or minus the signal. */
int node_reap(struct node *n);
void node_stop(struct node *n);
/* Returns the node's log and output. The caller frees. */
char *node_said(struct node *n);

/* POST of `body` (NULL: {}), with the extra headers or NULL; the HTTP status. */
int call_status(uint16_t port, const char *path, const char *headers, const char *body);
/* The same; answer 200 with this header.status.code, or the test fails. The caller releases. */
json_t *call(uint16_t port, const char *api, const char *body, const char *code);
/* Fails the test unless it becomes true within `seconds`. */
void await_true(bool (*f)(void *ctx), void *ctx, unsigned seconds, const char *what);

#endif
