/*
 * change.c - changes single fields of an object, whose PUT takes it as a whole.
 *
 * No state; any thread.
 */
#include "table.h"

#include <skv/check.h>

int skv_v1_change(const struct skv_v1_in *in, const char *schema, const struct skv_buf *view,
		  const char *fields, struct skv_buf *out, struct skv_error *err)
{
	const struct skv_table *t = skv_table_named(schema);
	struct skv_table among; /* the same fields among others */
	void *message;
	int rc;

	if (!SKV_CHECK(t && t->strict))
		return SKV_E_INTERNAL;
	message = skv_arena_calloc(in->arena, 1, t->size);
	if (!message)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	among = *t;
	among.strict = false;
	if (view) {
		rc = skv_table_read_json(&among, in, (const char *)view->data, view->len, message,
					 err);
		if (rc == SKV_OK)
			rc = skv_table_lay_json(t, in, fields, strlen(fields), message, err);
	} else {
		rc = skv_table_read_json(t, in, fields, strlen(fields), message, err);
	}
	if (rc == SKV_OK)
		skv_table_write_json(t, out, message, NULL);
	return rc;
}
