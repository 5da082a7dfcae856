/*
 * remote.h - a storage managed by fs-masters: the operations of any type whose configuration names
 * some.
 */
#ifndef SKV_FSMASTER_REMOTE_H
#define SKV_FSMASTER_REMOTE_H

#include <skv/storage.h>

/* Opens a storage of type `type`; the other functions of `skv_remote` take the result. */
int skv_remote_open(const char *type, const struct skv_storage_config *c, void **self,
		    struct skv_error *err);
/* The same without a word to anybody: for skv_remote_look, and skv_remote.close. */
int skv_remote_make(const char *type, const struct skv_storage_config *c, void **self,
		    struct skv_error *err);
/* Of a file below the directory of the URLs; skv_file_look. */
int skv_remote_look(void *self, const char *path, struct skv_file_look *out, struct skv_error *err);
/* without the constants of the type: name, edge, grace, chunked */
extern const struct skv_storage_ops skv_remote;

#endif
