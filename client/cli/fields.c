/*
 * fields.c - FIELD=VALUE words of a command line as members of an object of the API. Stateless.
 */
#include "cli.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A whole number as such, all else as a text: the manager reads sizes with units. NULL: not
 * UTF-8. */
static json_t *value_of(const char *text, bool list)
{
	json_t *names;

	if (!list && *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 19)
		return json_integer(strtoll(text, NULL, 10));
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return json_boolean(*text == 't');
	if (!list)
		return json_string(text);
	names = json_array();
	for (size_t n; names && *text; text += n + (text[n] == ',')) {
		n = strcspn(text, ",");
		if (json_array_append_new(names, json_stringn(text, n)) != 0) {
			json_decref(names);
			return NULL;
		}
	}
	return names;
}

static bool in(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

/* Returns false after a message. */
static bool set_fields(const struct skv_cli *cli, json_t *object, char **words, int n,
		       const char *const *lists)
{
	assert(json_is_object(object) && n >= 0);
	for (int i = 0; i < n; i++) {
		char *value = strchr(words[i], '=');

		if (!value || value == words[i]) {
			skv_cli_usage(cli, "'%s' is not FIELD=VALUE", words[i]);
			return false;
		}
		*value++ = '\0';
		if (json_object_set_new(object, words[i],
					value_of(value, in(lists, words[i]))) != 0) {
			skv_cli_usage(cli, "%s: not UTF-8", words[i]);
			return false;
		}
	}
	return true;
}

int skv_cli_set_words(const struct skv_cli *cli, struct slabkv *kv, enum slabkv_object kind,
		      const char *name, char **words, int n, const char *const *lists)
{
	json_t *fields = json_object(), *now;
	int rc;

	if (!set_fields(cli, fields, words, n, lists)) {
		json_decref(fields);
		return SKV_EXIT_USAGE;
	}
	rc = skv_cli_change(cli, kv, kind, name, fields, &now);
	return rc == SKV_EXIT_OK ? skv_cli_print(cli, now, NULL) : rc;
}
