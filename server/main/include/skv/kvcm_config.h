/*
 * kvcm_config.h - translates Tair KVCache Manager's command line, file and environment to our
 * parameters.
 *
 * Used when the program is called kv_cache_manager_bin. Its keys (kvcm.*) are translated by one
 * table, kvcm_keys.h; `slabkvd.NAME` sets the parameter NAME. Later sources win: defaults,
 * SLABKV_NAME in the environment, -c FILE, -e KEY=VALUE, KEY=VALUE in the environment (dots may be
 * underscores there). One thread, at start.
 */
#ifndef SKV_KVCM_CONFIG_H
#define SKV_KVCM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include <skv/arena.h>
#include <skv/params.h>

/* Warnings to log once the log is open: unknown keys, and keys without effect here. */
struct kvcm_notes {
	char **text;
	size_t n;
};

struct kvcm_command {
	enum skv_action action; /* RUN, HELP or VERSION */
	bool daemon;
	struct kvcm_notes notes;
};

/* Fills *p, as skv_params_load does, and *c; release both. SKV_E_INVALID names key and source;
 * SKV_E_UNSUPPORTED for a redis:// URI; SKV_E_IO, SKV_E_NOMEM. Creates the directory of a file://
 * URI. */
int kvcm_config_load(struct skv_params *p, struct kvcm_command *c, int argc, char *const *argv,
		     char *const *envp, struct skv_error *err);
void kvcm_command_destroy(struct kvcm_command *c);
/* Usage and the table of keys. */
void kvcm_config_help(FILE *out);
/* Returns true if the program is called kv_cache_manager_bin. */
bool kvcm_config_is_asked(const char *argv0);

/* Objects of KVCM's start-up file, as JSON of its admin service, which names some fields and values
 * differently. */
struct kvcm_start_file {
	const char *name; /* for messages */
	struct kvcm_start_storage {
		const char *json; /* StorageConfig */
		bool enabled;
	} *storages;
	size_t n_storages;
	const char **groups; /* InstanceGroup */
	size_t n_groups;
};

/* Reads `path`; "" = KVCM's built-in objects: storage nfs_01 in `directory`, an absolute path, and
 * group default. The result lives in `a`. SKV_E_INVALID names the file. */
int kvcm_start_file_read(const char *path, const char *directory, struct skv_arena *a,
			 struct kvcm_start_file *out, struct skv_error *err);

#endif
