/*
 * key_file.h - keys from a file: one a line, or prompts as token ids, hashed as an engine does.
 */
#ifndef SKV_CLI_KEY_FILE_H
#define SKV_CLI_KEY_FILE_H

#include <stddef.h>
#include <stdint.h>

struct skv_cli;

/* In the order of their texts, each once. */
struct key_file {
	char **text; /* of prompts: 32 hex digits */
	size_t n, cap;
};

/* Each line that is not empty is a key. SKV_EXIT_OK or SKV_EXIT_USAGE, after printing. "-":
 * standard input. Release with key_file_free, also after a failure. */
int key_file_read(const struct skv_cli *cli, const char *path, struct key_file *out);
/* Each line is a prompt: token ids, separated by blanks or commas, brackets around them or not. The
 * keys are those of its whole pages of `page` tokens, as SGLang's HiCache makes them and
 * slabkv.sglang shortens them, of requests without LoRA adapter and cache salt. */
int key_file_read_prompts(const struct skv_cli *cli, const char *path, uint32_t page,
			  struct key_file *out);
void key_file_free(struct key_file *f);

#endif
