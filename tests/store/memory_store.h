/*
 * memory_store.h - a store in this process's memory, without a thread and without SQLite, for tests
 * that restart a manager on it or put functions of their own in its table.
 */
#ifndef SKV_TESTS_MEMORY_STORE_H
#define SKV_TESTS_MEMORY_STORE_H

#include <skv/store.h>

/* `path` names a store that outlives its handles; "": one of its own. */
extern const struct skv_store_ops skv_store_memory;

/* Drops the shared store of that name; open handles keep it until they are closed. */
void skv_memory_store_forget(const char *name);

#endif
