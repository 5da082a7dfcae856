/*
 * error.c - the one error answer, written and read.
 *
 * `code` is for programs (the wire codes of skv/status.h), `message` for people, `detail.field` names
 * the field at fault. Texts may hold what a stranger sent, cut anywhere: they are mended to UTF-8.
 *
 * No state; any thread.
 */
#include "parts.h"

void ref_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id)
{
	const char *message = err->message[0] ? err->message : skv_status_text(err->status);

	ref_jout_begin(out);
	ref_jout_name(out, "error");
	ref_jout_open(out, '{');
	ref_jout_field_string(out, "code", skv_status_name(err->status));
	ref_jout_field_text(out, "message", message);
	ref_jout_name(out, "detail");
	ref_jout_open(out, '{');
	if (err->field[0])
		ref_jout_field_text(out, "field", err->field);
	ref_jout_close(out, '}');
	ref_jout_close(out, '}');
	ref_jout_field_text(out, "request_id", request_id ? request_id : "");
	ref_jout_close(out, '}');
}

int ref_read_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_error *out)
{
	struct ref_jdoc d;
	struct ref_jat top = ref_jdoc_open(&d, in, text, n, SKV_JANSWER, SKV_JMAX_OBJECT, NULL);
	struct ref_jat error = ref_jat_get(&top, "error");
	struct ref_jat code = ref_jat_get(&error, "code"), message = ref_jat_get(&error, "message"),
		       detail = ref_jat_get(&error, "detail");
	struct ref_jat field = ref_jat_get(&detail, "field");
	const char *c = ref_jat_string(&d, &code, 1, SKV_MAX_NAME);
	const char *m = ref_jat_string(&d, &message, 0, 1u << 16);
	const char *f = field.v ? ref_jat_string(&d, &field, 0, 1u << 12) : "";
	int status = ref_jdoc_close(&d);

	if (status != SKV_OK)
		return skv_fail(out, status, NULL, "the answer is no error object of this API");
	status = skv_status_from_name(c);
	/* An error whose code says "ok" is a bug of who sent it, never a success. */
	return skv_fail(out, status == SKV_OK ? SKV_E_INTERNAL : status, f, "%s", m);
}
