/*
 * manager.h - slabkvd as a child of a test, and how a test gives up.
 */
#ifndef SKV_TESTS_MANAGER_H
#define SKV_TESTS_MANAGER_H

#include <stdbool.h>
#include <sys/types.h>

#include <slabkv.h>

/* A failure ends the test at once: the manager is killed, its directory kept for a look. */
#define MUST(cond, ...)                                                                            \
	do {                                                                                       \
		if (!(cond))                                                                       \
			give_up(__FILE__, __LINE__, #cond, __VA_ARGS__);                           \
	} while (0)
void give_up(const char *file, int line, const char *what, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 4, 5)));

struct manager {
	const char *program, *durability;
	/* Parameters beside the usual ones, which they overrule; ends with NULL. Or NULL. */
	const char *const *more;
	char dir[64], port[16];
	pid_t pid;
};

void manager_init(struct manager *m, const char *program, const char *durability,
		  const char *capacity);
void manager_launch(struct manager *m); /* returns at once */
void manager_await(struct manager *m);  /* returns when it answers /readyz */
void manager_start(struct manager *m);  /* both */
void manager_alive(const struct manager *m); /* gives up if it ended by itself */
void manager_kill(struct manager *m);   /* -9, and reaped */
void manager_stop(struct manager *m);   /* SIGTERM; must end with 0 */
void manager_fsck(struct manager *m);   /* must be clean */
void manager_remove(struct manager *m);
/* Ends the test as skipped; the reason was printed. */
void manager_skip(void) __attribute__((noreturn));
struct slabkv *manager_connect(const struct manager *m);
/* A number of an object of the manager. */
uint64_t manager_number(struct slabkv *kv, enum slabkv_object kind, const char *name,
			const char *field);

#endif
