/*
 * proto_peer.c - our codecs on a pipe, for proto_differ. Lines in: TYPE json|binary HEX. Lines out:
 * the message in binary and as JSON, both in hex, or "refused FIELD MESSAGE".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <kvcm/admin.pb-c.h>
#include <kvcm/debug.pb-c.h>
#include <kvcm/meta.pb-c.h>

#include "all_types.pb-c.h"
#include "proto_tools.h"

/* Everything that is reached from these is found by its full name. */
static const ProtobufCMessageDescriptor *const roots[] = {
	&skv__test__all__descriptor,
	&skv__test__sparse__descriptor,
	&kvcm_meta__register_instance_request__descriptor,
	&kvcm_meta__get_instance_info_response__descriptor,
	&kvcm_meta__get_cache_location_request__descriptor,
	&kvcm_meta__get_cache_location_response__descriptor,
	&kvcm_meta__get_cache_locations_by_backend_request__descriptor,
	&kvcm_meta__get_cache_locations_by_backend_response__descriptor,
	&kvcm_meta__get_cache_meta_response__descriptor,
	&kvcm_meta__start_write_cache_request__descriptor,
	&kvcm_meta__finish_write_cache_request__descriptor,
	&kvcm_meta__replicate_cache_request__descriptor,
	&kvcm_meta__get_cluster_info_response__descriptor,
	&kvcm_meta__report_event_request__descriptor,
	&kvcm_meta__report_event_response__descriptor,
	&kvcm_meta__get_host_cache_state_request__descriptor,
	&kvcm_meta__get_host_cache_state_response__descriptor,
	&kvcm_admin__list_storage_response__descriptor,
	&kvcm_admin__list_instance_group_response__descriptor,
	&kvcm_admin__get_metrics_response__descriptor,
	&kvcm_admin__list_async_copy_quarantine_response__descriptor,
	&kvcm_debug__inject_fault_request__descriptor,
};

static const ProtobufCMessageDescriptor *type_of(const char *name)
{
	for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
		if (strcmp(roots[i]->name, name) == 0)
			return roots[i];
	return NULL;
}

static void print_hex(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", p[i]);
}

static size_t from_hex(const char *s, uint8_t *out)
{
	size_t n = 0;
	unsigned byte;

	for (; sscanf(s, "%2x", &byte) == 1; s += 2)
		out[n++] = (uint8_t)byte;
	return n;
}

static void answer(const char *type, const char *form, const char *hex)
{
	const ProtobufCMessageDescriptor *d = type_of(type);
	uint8_t *bytes = malloc(strlen(hex) / 2 + 1);
	ProtobufCMessage *m = NULL;
	struct tools t;
	size_t n;

	tools_open(&t);
	if (d)
		m = tools_read(&t, strcmp(form, "json") == 0 ? &skv_proto_json : &skv_proto_binary,
			       d, bytes, from_hex(hex, bytes));
	if (m) {
		const uint8_t *packed = tools_write_binary(&t, m, &n);

		print_hex(packed, n);
		putchar(' ');
		tools_write_json(&t, m, NULL);
		print_hex(t.out.data, t.out.len - 1);
		putchar('\n');
	} else {
		printf("refused %s %s\n", t.err.field, d ? t.err.message : "no such type");
	}
	fflush(stdout);
	free(bytes);
	tools_close(&t);
}

int main(int argc, char **argv)
{
	char *line = NULL, *rest, *type, *form, *hex;
	size_t size = 0;

	if (argc > 1 && strcmp(argv[1], "--types") == 0) {
		for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
			puts(roots[i]->name);
		return 0;
	}
	while (getline(&line, &size, stdin) > 0) {
		type = strtok_r(line, " \n", &rest);
		form = strtok_r(NULL, " \n", &rest);
		hex = strtok_r(NULL, " \n", &rest);
		answer(type ? type : "", form ? form : "", hex ? hex : "");
	}
	free(line);
	return 0;
}
