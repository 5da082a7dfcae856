/*
 * error.c - writes and reads the error answer.
 *
 * `code` is for programs (the wire codes of skv/status.h), `message` for people, `detail.field`
 * names the field at fault. Texts may hold a stranger's bytes, cut anywhere: they are repaired to
 * valid UTF-8.
 *
 * No state; any thread.
 */
#include "parts.h"

void skv_v1_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id)
{
	const char *message = err->message[0] ? err->message : skv_status_text(err->status);

	skv_jout_begin(out);
	skv_jout_name(out, "error");
	skv_jout_open(out, '{');
	skv_jout_field_string(out, "code", skv_status_name(err->status));
	skv_jout_field_text(out, "message", message);
	skv_jout_name(out, "detail");
	skv_jout_open(out, '{');
	if (err->field[0])
		skv_jout_field_text(out, "field", err->field);
	skv_jout_close(out, '}');
	skv_jout_close(out, '}');
	skv_jout_field_text(out, "request_id", request_id ? request_id : "");
	skv_jout_close(out, '}');
}

int skv_v1_read_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_error *out)
{
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, in, text, n, SKV_JMAX_OBJECT, NULL);
	struct skv_jat error = skv_jat_get(&top, "error");
	struct skv_jat code = skv_jat_get(&error, "code"), message = skv_jat_get(&error, "message"),
		       detail = skv_jat_get(&error, "detail");
	struct skv_jat field = skv_jat_get(&detail, "field");
	const char *c = skv_jat_string(&d, &code, 1, SKV_MAX_NAME);
	const char *m = skv_jat_string(&d, &message, 0, 1u << 16);
	const char *f = field.v ? skv_jat_string(&d, &field, 0, 1u << 12) : "";
	int status = skv_jdoc_close(&d);

	if (status != SKV_OK || !detail.v)
		return skv_fail(out, status == SKV_E_NOMEM ? status : SKV_E_NETWORK, NULL,
				SKV_NOT_AN_ERROR);
	status = skv_status_from_name(c);
	/* An error whose code says "ok" is a bug of the sender, never a success. */
	return skv_fail(out, status == SKV_OK ? SKV_E_INTERNAL : status, f, "%s", m);
}
