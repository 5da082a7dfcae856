/*
 * change.c - changes single fields of an object, whose PUT takes it as a whole.
 *
 * No state; any thread.
 */
#include "table.h"

#include <skv/check.h>

/* The spec among the fields of a view. */
static const struct skv_field *spec_of(const struct skv_table *view)
{
	for (uint32_t i = 0; view && i < view->n; i++)
		if (view->fields[i].kind == SKV_KIND_PART)
			return &view->fields[i];
	return NULL;
}

int skv_v1_change(const struct skv_v1_in *in, const char *schema, const struct skv_buf *view,
		  const char *fields, struct skv_buf *out, struct skv_error *err)
{
	const struct skv_table *t = skv_table_named(schema);
	const struct skv_field *f = spec_of(t);
	char *message;
	int rc = SKV_OK;

	if (!SKV_CHECK(f))
		return SKV_E_INTERNAL;
	message = skv_arena_calloc(in->arena, 1, t->size);
	if (!message)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (view)
		rc = skv_table_read_pb(t, in, (const char *)view->data, view->len, message, err);
	if (rc == SKV_OK)
		rc = (view ? skv_table_lay_json : skv_table_read_json)(
			f->of, in, fields, strlen(fields), message + f->at, err);
	if (rc == SKV_OK)
		skv_table_write_json(f->of, out, message + f->at);
	return rc;
}
