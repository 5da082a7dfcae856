/*
 * status.c - texts and codes of the results, and skv_fail.
 *
 * Stateless, no locks, any thread, no allocation: a failure can be explained when memory is
 * exhausted. The table comes from SKV_STATUS_MAP; nothing else in the product maps a status to HTTP
 * or gRPC.
 */
#include <skv/status.h>

#include <skv/utf8.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct row {
	int status;
	const char *code;
	int http;
	int grpc;
	const char *text;
};

static const struct row rows[] = {
#define ROW(name, number, code, http, grpc, text) { number, code, http, grpc, text },
	SKV_STATUS_MAP(ROW)
#undef ROW
};

static const struct row *find(int status)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].status == status)
			return &rows[i];
	return find(SKV_E_INTERNAL);
}

const char *skv_status_name(int status) { return find(status)->code; }
const char *skv_status_text(int status) { return find(status)->text; }
int skv_status_http(int status) { return find(status)->http; }
int skv_status_grpc(int status) { return find(status)->grpc; }

int skv_status_from_name(const char *name)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(rows[i].code, name) == 0)
			return rows[i].status;
	return SKV_E_INTERNAL;
}

/* `text` may overlap `out`. */
static void copy_cut(char *out, size_t size, const char *text)
{
	size_t n = strlen(text);

	n = skv_utf8_cut(text, n, size - 1);
	memmove(out, text, n);
	out[n] = '\0';
}

int skv_fail(struct skv_error *err, int status, const char *field, const char *fmt, ...)
{
	/* More than fits, so that truncation sees the next bytes. */
	char message[SKV_MESSAGE_MAX + 4];
	va_list ap;

	if (!err)
		return status;
	va_start(ap, fmt);
	if (vsnprintf(message, sizeof message, fmt, ap) < 0)
		message[0] = '\0';
	va_end(ap);
	err->status = status;
	copy_cut(err->field, sizeof err->field, field ? field : "");
	copy_cut(err->message, sizeof err->message, message);
	return status;
}

void skv_error_clear(struct skv_error *err)
{
	if (!err)
		return;
	err->status = SKV_OK;
	err->field[0] = '\0';
	err->message[0] = '\0';
}
