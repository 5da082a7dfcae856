/* test_kvcm_main.c - kv_cache_manager_bin as a deployment runs it: ports,
 * tokens, background, election. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "http/http.h"
#include "nodes.h"
#include "shell.h"

static const char *text(const json_t *j, const char *name)
{
	const char *s = json_string_value(json_object_get(j, name));

	if (!s)
		fail_msg("no text '%s' in %s", name, json_dumps(j, 0));
	return s;
}

static json_int_t number(const json_t *j, const char *name)
{
	return json_integer_value(json_object_get(j, name));
}

/* ---- ports ----------------------------------------------------------------------------------- */

static void test_meta_and_admin_are_apart(void **state)
{
	struct nodes *s = *state;
	struct node *n = node_start(s, 0, NULL);

	json_decref(call(n->admin_http, "listStorage", NULL, "OK"));
	json_decref(call(n->meta_http, "getClusterInfo", NULL, "OK"));
	assert_int_equal(call_status(n->meta_http, "/api/listStorage", NULL, NULL), 404);
	assert_int_equal(call_status(n->meta_http, "/api/injectFault", NULL, NULL), 404);
	assert_int_equal(call_status(n->admin_http, "/api/getCacheLocation", NULL, NULL), 404);
	/* not enabled */
	assert_int_equal(call_status(n->admin_http, "/api/injectFault", NULL, NULL), 404);
	assert_int_equal(call_status(n->meta_http, "/v1/instances/x/lookup", NULL, NULL), 404);
	assert_int_equal(call_status(n->admin_http, "/v1/instances/x/lookup", NULL, NULL), 404);
	assert_int_equal(n->debug_http, 0);
	/* On the manager's own port all of them are together. */
	json_decref(call(n->native, "listStorage", NULL, "OK"));
	json_decref(call(n->native, "getClusterInfo", NULL, "OK"));
	node_stop(n);
}

static void test_debug(void **state)
{
	struct nodes *s = *state;
	struct node *n = node_start(s, 0, LIST("-e", "kvcm.service.enable_debug_service=true"));

	json_decref(call(n->admin_http, "clearFaults", NULL, "OK"));
	json_decref(call(n->debug_http, "clearFaults", NULL, "OK"));
	assert_int_equal(call_status(n->meta_http, "/api/clearFaults", NULL, NULL), 404);
	assert_int_equal(call_status(n->debug_http, "/api/listStorage", NULL, NULL), 404);
	node_stop(n);
}

static void test_shared_ports(void **state)
{
	struct nodes *s = *state;
	struct node *n = node_start(s, 0, LIST("-e", "kvcm.service.admin_rpc_port=0", "-e",
					       "kvcm.service.admin_http_port=0"));
	json_t *j, *e;

	assert_int_equal(n->admin_http, n->meta_http);
	assert_int_equal(n->admin_rpc, n->meta_rpc);
	json_decref(call(n->meta_http, "listStorage", NULL, "OK"));
	j = call(n->meta_http, "getManagerClusterInfo", NULL, "OK");
	e = json_object_get(j, "leader_endpoint");
	assert_int_equal(number(e, "meta_rpc_port"), n->meta_rpc);
	assert_int_equal(number(e, "meta_http_port"), n->meta_http);
	assert_int_equal(number(e, "admin_rpc_port"), n->meta_rpc);
	assert_int_equal(number(e, "admin_http_port"), n->meta_http);
	json_decref(j);
	node_stop(n);
}

/* ---- who may call ---------------------------------------------------------------------------- */

static void test_tokens(void **state)
{
	struct nodes *s = *state;
	struct node *n = node_start(s, 0, LIST("-e", "kvcm.service.admin_auth_token=first,second"));

	assert_int_equal(call_status(n->admin_http, "/api/listStorage", NULL, NULL), 401);
	assert_int_equal(call_status(n->admin_http, "/api/listStorage",
				     "Authorization: Bearer third\r\n", NULL),
			 401);
	assert_int_equal(call_status(n->admin_http, "/api/listStorage",
				     "Authorization: Bearer second\r\n", NULL),
			 200);
	assert_int_equal(
		call_status(n->meta_http, "/api/getCacheLocation", NULL, "{\"instance_id\":\"i\"}"),
		200);
	node_stop(n);
}

/* Status of a request that calls the manager by a name of other hosts. */
static int status_for_host(uint16_t port, const char *more)
{
	struct answer a;
	struct http h;
	char text[256];
	int status;
	int n = snprintf(text, sizeof text,
			 "POST /api/checkHealth HTTP/1.1\r\nHost: kvcm-manager:6492\r\n%s"
			 "Content-Length: 2\r\n\r\n{}",
			 more);

	http_open(&h, port);
	http_send(&h, text, (size_t)n);
	a = http_read(&h, false);
	status = a.status;
	answer_free(&a);
	http_close(&h);
	return status;
}

static void test_any_host_name_where_it_is_open(void **state)
{
	struct nodes *s = *state;
	struct node *n = node_start(s, 0, NULL);

	assert_int_equal(status_for_host(n->admin_http, ""), 200);
	assert_int_equal(status_for_host(n->admin_http, "Origin: http://elsewhere.example\r\n"),
			 403);
	assert_int_equal(status_for_host(n->native, ""), 403);
	node_stop(n);
	n = node_start(s, 0, LIST("-e", "slabkvd.kvcm_open=false"));
	assert_int_equal(status_for_host(n->admin_http, ""), 403);
	node_stop(n);
}

static void test_other_addresses(void **state)
{
	struct nodes *s = *state;
	char *said;

	/* Open by default, with a warning; closed if asked, until there are tokens. */
	node_stop(node_start(s, 0, NULL));
	said = node_said(&s->n[0]);
	assert_non_null(strstr(said, "0.0.0.0"));
	assert_non_null(strstr(said, "without tokens"));
	free(said);
	assert_int_equal(node_run(s, 1,
				  LIST("-e", "slabkvd.kvcm_open=false", "-e",
				       "slabkvd.kvcm_listen=0.0.0.0")),
			 1);
	said = node_said(&s->n[1]);
	assert_non_null(strstr(said, "kvcm_listen"));
	free(said);
	node_stop(node_start(s, 1,
			     LIST("-e", "slabkvd.kvcm_open=false", "-e",
				  "slabkvd.kvcm_listen=0.0.0.0", "-e",
				  "kvcm.service.admin_auth_token=t")));
}

/* ---- objects --------------------------------------------------------------------------------- */

static void test_default_objects(void **state)
{
	struct nodes *s = *state;
	struct node *n = node_start(s, 0, NULL);
	json_t *j = call(n->admin_http, "listStorage", NULL, "OK");
	const json_t *storage = json_array_get(json_object_get(j, "storage"), 0);
	char root[96], command[160];

	snprintf(root, sizeof root, "%s/nfs/", s->dir);
	assert_int_equal(json_array_size(json_object_get(j, "storage")), 1);
	assert_string_equal(text(storage, "global_unique_name"), "nfs_01");
	assert_string_equal(text(json_object_get(storage, "nfs"), "root_path"), root);
	json_decref(j);
	j = call(n->admin_http, "getInstanceGroup", "{\"name\":\"default\"}", "OK");
	assert_string_equal(text(json_object_get(j, "instance_group"), "version"), "1");
	json_decref(j);
	json_decref(call(
		n->meta_http, "registerInstance",
		"{\"instance_group\":\"default\",\"instance_id\":\"i\",\"block_size\":64,"
		"\"model_deployment\":{\"model_name\":\"m\",\"dtype\":\"fp8\"},"
		"\"location_spec_infos\":[{\"name\":\"tp0\",\"size\":4096}]}",
		"OK"));
	snprintf(command, sizeof command, "ls %snfs_01.p*/slabkv-storage >/dev/null", root);
	assert_int_equal(test_shell(command), 0);
	node_stop(n);
	/* Metadata was in memory: nothing is left. */
	assert_int_not_equal(test_shell(command), 0);
	snprintf(command, sizeof command, "test -z \"$(ls -A %s)\"", root);
	assert_int_equal(test_shell(command), 0);
}

static void test_kept_in_a_registry(void **state)
{
	struct nodes *s = *state;
	char uri[128];
	struct node *n;

	snprintf(uri, sizeof uri, "kvcm.registry_storage.uri=file://%s/registry.db", s->dir);
	n = node_start(s, 0, LIST("-e", uri));
	json_decref(call(
		n->admin_http, "createInstanceGroup",
		"{\"instance_group\":{\"name\":\"g\",\"storage_candidates\":[\"nfs_01\"],"
		"\"global_quota_group_name\":\"q\",\"version\":1,"
		"\"cache_config\":{\"data_storage_strategy\":2,"
		"\"reclaim_strategy\":{\"storage_unique_name\":\"nfs_01\"}}}}",
		"OK"));
	node_stop(n);
	n = node_start(s, 0, LIST("-e", uri));
	json_decref(call(n->admin_http, "getInstanceGroup", "{\"name\":\"g\"}", "OK"));
	node_stop(n);
}

static void test_start_refused(void **state)
{
	struct nodes *s = *state;
	char *said;

	assert_int_equal(node_run(s, 0, LIST("-e", "kvcm.coordination.uri=redis://h:6379")), 2);
	assert_int_equal(node_run(s, 0, LIST("-e", "kvcm.startup_config=/does/not/exist")), 1);
	said = node_said(&s->n[0]);
	assert_non_null(strstr(said, "file:///DIR"));
	assert_non_null(strstr(said, "/does/not/exist"));
	free(said);
	assert_int_equal(node_run(s, 0, LIST("-h")), 0);
	assert_int_equal(node_run(s, 0, LIST("-v")), 0);
}

/* ---- background ------------------------------------------------------------------------------ */

static bool shell_is_true(void *command) { return test_shell(command) == 0; }

static void test_daemon(void **state)
{
	struct nodes *s = *state;
	char command[768], path[128];
	uint16_t port;
	FILE *f;
	long pid = 0;

	snprintf(
		command, sizeof command,
		"cd %s && " PROGRAM " --env kvcm.service.rpc_port=0 --env kvcm.service.http_port=0"
		" --env kvcm.service.admin_rpc_port=0 --env kvcm.service.admin_http_port=0"
		" --env kvcm.startup_config=%s/start.json --env slabkvd.port_file=native"
		" --env slabkvd.storage_capacity=8M --env slabkvd.storage_unit=1M -d > "
		"stdout 2> stderr",
		s->n[0].dir, s->dir);
	assert_int_equal(test_shell(command), 0);
	/* The node serves when the shell goes on, and is found by its command line. */
	snprintf(path, sizeof path, "%s/native.kvcm", s->n[0].dir);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "meta_rpc_port %*d\nmeta_http_port %hu", &port), 1);
	fclose(f);
	json_decref(call(port, "listStorage", NULL, "OK"));
	snprintf(command, sizeof command,
		 "pgrep -f 'k[v]_cache_manager_bin .*%s/start.json' > %s/pid", s->dir, s->dir);
	assert_int_equal(test_shell(command), 0);
	snprintf(path, sizeof path, "%s/pid", s->dir);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &pid), 1);
	fclose(f);
	assert_int_equal(kill((pid_t)pid, SIGTERM), 0);
	/* Nobody may be there to reap it: a zombie has no program. */
	snprintf(
		command, sizeof command,
		"! readlink -e /proc/%ld/exe >/dev/null && grep -q stopping "
		"%s/logs/kv_cache_manager.log",
		pid, s->n[0].dir);
	await_true(shell_is_true, command, 20, "it ends, and says so in its log");
}

static void test_daemon_that_cannot_start(void **state)
{
	struct nodes *s = *state;
	struct node *n = node_start(s, 0, NULL);
	char port[64];

	snprintf(port, sizeof port, "kvcm.service.http_port=%u", n->meta_http);
	assert_int_equal(node_run(s, 1, LIST("-d", "-e", port)), 1);
	node_stop(n);
}

/* ---- election -------------------------------------------------------------------------------- */

static bool leads(struct node *n)
{
	json_t *j = call(n->admin_http, "checkHealth", NULL, "OK");
	bool yes = json_is_true(json_object_get(j, "is_leader"));

	json_decref(j);
	return yes;
}

static bool one_leads(void *ctx)
{
	struct nodes *s = ctx;

	return leads(&s->n[0]) != leads(&s->n[1]);
}

static bool node_leads(void *ctx) { return leads(ctx); }

static struct node *start_member(struct nodes *s, int which)
{
	char lock[128], id[64];

	snprintf(lock, sizeof lock, "kvcm.distributed_lock.uri=file://%s/lock", s->dir);
	snprintf(id, sizeof id, "kvcm.leader_elector.node_id=node_%d", which);
	return node_start(s, which,
			  LIST("-e", lock, "-e", id, "-e", "kvcm.leader_elector.lease_ms=2000",
			       "-e", "kvcm.service.advertised_host=127.0.0.1"));
}

/* The leader as `n` tells it. */
static void assert_leader(struct node *n, struct node *leader, const char *id)
{
	json_t *j = call(n->meta_http, "getClusterInfo", NULL, "OK");
	const json_t *e = json_object_get(j, "leader_endpoint");

	assert_string_equal(text(j, "leader_node_id"), id);
	assert_string_equal(text(e, "node_id"), id);
	assert_string_equal(text(e, "host"), "127.0.0.1");
	assert_int_equal(number(e, "meta_http_port"), leader->meta_http);
	assert_int_equal(number(e, "meta_rpc_port"), leader->meta_rpc);
	assert_null(json_object_get(e, "admin_http_port"));
	json_decref(j);
	j = call(n->admin_http, "getManagerClusterInfo", NULL, "OK");
	assert_string_equal(text(j, "leader_node_id"), id);
	assert_int_equal(number(json_object_get(j, "leader_endpoint"), "admin_http_port"),
			 leader->admin_http);
	json_decref(j);
}

struct told {
	struct node *n;
	const char *id;
};

static bool tells(void *ctx)
{
	struct told *t = ctx;
	json_t *j = call(t->n->meta_http, "getClusterInfo", NULL, "OK");
	bool yes = strcmp(text(j, "leader_node_id"), t->id) == 0 &&
		   json_object_get(j, "leader_endpoint");

	json_decref(j);
	return yes;
}

static const char *name_of(struct nodes *s, const struct node *n)
{
	return n == &s->n[0] ? "node_0" : "node_1";
}

static void test_election(void **state)
{
	struct nodes *s = *state;
	struct node *leader, *other;

	start_member(s, 0);
	start_member(s, 1);
	await_true(one_leads, s, 10, "one leader");
	leader = leads(&s->n[0]) ? &s->n[0] : &s->n[1];
	other = leader == &s->n[0] ? &s->n[1] : &s->n[0];
	await_true(tells, &(struct told){ other, name_of(s, leader) }, 10,
		   "the follower knows the leader");
	assert_leader(leader, leader, name_of(s, leader));
	assert_leader(other, leader, name_of(s, leader));
	json_decref(call(other->meta_http, "getInstanceInfo", "{\"instance_id\":\"i\"}",
			 "SERVER_NOT_LEADER"));

	/* Demoted, it stays out for as long as it is told; the other one leads. */
	json_decref(call(leader->admin_http, "updateLeaderElectorConfig",
			 "{\"campaign_delay_time_ms\":\"60000\"}", "OK"));
	json_decref(call(leader->admin_http, "leaderDemote", NULL, "OK"));
	assert_false(leads(leader));
	await_true(node_leads, other, 10, "the other one leads");
	await_true(tells, &(struct told){ leader, name_of(s, other) }, 10,
		   "the old leader knows the new one");
	assert_leader(leader, other, name_of(s, other));
	json_decref(call(leader->admin_http, "leaderDemote", NULL, "SERVER_NOT_LEADER"));
	node_stop(&s->n[0]);
	node_stop(&s->n[1]);
}

static void test_switch_when_the_leader_dies(void **state)
{
	struct nodes *s = *state;
	struct node *leader, *other;
	int which;

	start_member(s, 0);
	start_member(s, 1);
	await_true(one_leads, s, 10, "one leader");
	leader = leads(&s->n[0]) ? &s->n[0] : &s->n[1];
	other = leader == &s->n[0] ? &s->n[1] : &s->n[0];
	which = (int)(leader - s->n);
	kill(leader->pid, SIGKILL);
	assert_int_equal(node_reap(leader), -SIGKILL);
	await_true(node_leads, other, 10, "the other one leads");
	leader = start_member(s, which);
	await_true(tells, &(struct told){ leader, name_of(s, other) }, 10,
		   "who comes back knows the leader");
	assert_false(leads(leader));
	assert_leader(leader, other, name_of(s, other));
	node_stop(leader);
	node_stop(other);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, nodes_setup, nodes_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_meta_and_admin_are_apart),
		CASE(test_debug),
		CASE(test_shared_ports),
		CASE(test_tokens),
		CASE(test_any_host_name_where_it_is_open),
		CASE(test_other_addresses),
		CASE(test_default_objects),
		CASE(test_kept_in_a_registry),
		CASE(test_start_refused),
		CASE(test_daemon),
		CASE(test_daemon_that_cannot_start),
		CASE(test_election),
		CASE(test_switch_when_the_leader_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
