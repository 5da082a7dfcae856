/* status.c - texts and codes of the one result list. No state. */
#include <kvb/status.h>

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
	KVB_STATUS_MAP(ROW)
#undef ROW
};

static const struct row *find(int status)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].status == status)
			return &rows[i];
	return find(KVB_E_INTERNAL);
}

const char *kvb_status_name(int status) { return find(status)->code; }
const char *kvb_status_text(int status) { return find(status)->text; }
int kvb_status_http(int status) { return find(status)->http; }
int kvb_status_grpc(int status) { return find(status)->grpc; }

int kvb_status_from_name(const char *name)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(rows[i].code, name) == 0)
			return rows[i].status;
	return KVB_E_INTERNAL;
}

int kvb_fail(struct kvb_error *err, int status, const char *field, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return status;
	err->status = status;
	snprintf(err->field, sizeof err->field, "%s", field ? field : "");
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof err->message, fmt, ap);
	va_end(ap);
	return status;
}

void kvb_error_clear(struct kvb_error *err)
{
	if (!err)
		return;
	err->status = KVB_OK;
	err->field[0] = '\0';
	err->message[0] = '\0';
}
