/* test_kvcm_startup.c - the peer's start-up file: what it may hold, and what a core then has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/core.h>
#include <skv/kvcm_config.h>
#include <skv/kvcm_run.h>
#include <skv/store.h>

#include "model.h"
#include "shell.h"

#define ID "p0123" /* of a process */

struct box {
	char dir[64];
	char file[96];
	struct skv_arena a;
	struct skv_error err;
	struct kvcm_model model;
	struct kvcm_startup s;
	struct skv_store *store;
	struct skv_cluster *cluster;
};

static int setup(void **state)
{
	struct box *b = calloc(1, sizeof *b);

	assert_non_null(b);
	snprintf(b->dir, sizeof b->dir, "/tmp/kvcm-startup-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->file, sizeof b->file, "%s/start.json", b->dir);
	skv_arena_init(&b->a);
	b->model = (struct kvcm_model){ .storage_capacity = 2 << 20, .storage_unit = 1 << 20,
					.any_mount = true, .mounts = "" };
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct box *b = *state;
	char command[128];

	if (b->cluster) {
		skv_cluster_shutdown(b->cluster);
		skv_cluster_destroy(b->cluster);
		skv_store_close(b->store);
	}
	skv_arena_destroy(&b->a);
	snprintf(command, sizeof command, "rm -rf %s", b->dir);
	assert_int_equal(test_shell(command), 0);
	free(b);
	return 0;
}

/* As main does (compat.c). */
static int read_objects(struct box *b, const char *path)
{
	struct kvcm_start_file f;
	int rc = kvcm_start_file_read(path, "/data/kv", &b->a, &f, &b->err);

	if (rc != SKV_OK)
		return rc;
	b->s.storages = skv_arena_calloc(&b->a, f.n_storages + 1, sizeof *b->s.storages);
	b->s.groups = skv_arena_calloc(&b->a, f.n_groups + 1, sizeof *b->s.groups);
	for (b->s.n_storages = 0; rc == SKV_OK && b->s.n_storages < f.n_storages; b->s.n_storages++)
		rc = kvcm_startup_storage(f.name, f.storages[b->s.n_storages].json,
					  f.storages[b->s.n_storages].enabled, &b->model, &b->a,
					  &b->s.storages[b->s.n_storages], &b->err);
	for (b->s.n_groups = 0; rc == SKV_OK && b->s.n_groups < f.n_groups; b->s.n_groups++)
		rc = kvcm_startup_group(f.name, f.groups[b->s.n_groups], &b->a,
					&b->s.groups[b->s.n_groups], &b->err);
	return rc;
}

/* The quotes are single ones: they become double. */
static int load(struct box *b, const char *json)
{
	FILE *f = fopen(b->file, "w");

	assert_non_null(f);
	for (; *json; json++)
		fputc(*json == '\'' ? '"' : *json, f);
	fclose(f);
	return read_objects(b, b->file);
}

static void test_built_in(void **state)
{
	struct box *b = *state;
	const KvcmAdmin__StorageConfig *s;
	const KvcmAdmin__InstanceGroup *g;

	assert_int_equal(read_objects(b, ""), SKV_OK);
	assert_int_equal(b->s.n_storages, 1);
	assert_int_equal(b->s.n_groups, 1);
	s = b->s.storages[0].config;
	g = b->s.groups[0].group;
	assert_string_equal(s->global_unique_name, "nfs_01");
	assert_string_equal(s->nfs->root_path, "/data/kv");
	assert_int_equal(s->nfs->key_count_per_file, 8);
	assert_string_equal(g->name, "default");
	assert_string_equal(g->storage_candidates[0], "nfs_01");
	assert_string_equal(g->global_quota_group_name, "default_quota_group");
	assert_int_equal(g->max_instance_count, 100);
	assert_int_equal(g->quota->capacity, 30000000000);
	assert_int_equal(g->quota->n_quota_config, 3);
	assert_int_equal(g->quota->quota_config[0]->storage_type, KVCM_ADMIN__STORAGE_TYPE__ST_NFS);
	assert_int_equal(g->quota->quota_config[1]->storage_type, KVCM_ADMIN__STORAGE_TYPE__ST_3FS);
	assert_int_equal(g->quota->quota_config[2]->capacity, 10000000000);
	assert_int_equal(g->cache_config->data_storage_strategy,
			 KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_PREFER_3FS);
	assert_true(g->cache_config->reclaim_strategy->trigger_strategy->used_percentage == 0.8);
	assert_int_equal(g->cache_config->reclaim_strategy->delay_before_delete_ms, 1000);
	assert_int_equal(g->cache_config->meta_indexer_config->max_key_count, 1000000);
}

#define GROUP(more)                                                                              \
	"'instance_group':{'name':'g','storage_candidates':['s'],'global_quota_group_name':'q'," \
	"'cache_config':{'cache_prefer_strategy':1,'reclaim_strategy':{'reclaim_policy':1,"      \
	"'enable_instance_fairness':true}}" more "}"

static void test_names_of_the_file(void **state)
{
	struct box *b = *state;
	const KvcmAdmin__InstanceGroup *g;
	const KvcmAdmin__StorageConfig *s;

	assert_int_equal(
		load(b,
		     "{'unknown':[1],'storage_config':{'type':'hf3fs','global_unique_name':'s',"
		     "'is_available':false,'storage_spec':{'cluster_name':'c','mountpoint':'/3fs',"
		     "'root_dir':'d','key_count_per_file':2}}," GROUP("") "}"),
		SKV_OK);
	s = b->s.storages[0].config;
	g = b->s.groups[0].group;
	assert_string_equal(s->threefs->mountpoint, "/3fs");
	assert_int_equal(s->storage_type, KVCM_ADMIN__STORAGE_TYPE__ST_3FS);
	assert_false(b->s.storages[0].enabled);
	assert_int_equal(g->cache_config->data_storage_strategy,
			 KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_ALWAYS_3FS);
	assert_int_equal(
		load(b,
		     "{'instance_group':[],'storage_config':[{'type':'file',"
		     "'global_unique_name':'a','storage_spec':{'root_path':'/a'}},{'type':'file',"
		     "'global_unique_name':'b','storage_spec':{'root_path':'/b'}}]}"),
		SKV_OK);
	assert_int_equal(b->s.n_storages, 2);
	assert_string_equal(b->s.storages[1].name, "b");
	assert_true(b->s.storages[1].enabled);
	assert_int_equal(b->s.n_groups, 0);
	assert_int_equal(load(b, "{}"), SKV_OK);
	assert_int_equal(b->s.n_storages, 0);
}

static void test_refused(void **state)
{
	static const struct {
		const char *json;
		int status;
		const char *words;
	} cases[] = {
		{ "{'storage_config':{'type':'mooncake','global_unique_name':'s','storage_spec':"
		  "{'master_server_entry':'h:1'}}}", SKV_E_UNSUPPORTED, "mooncake" },
		{ "{'storage_config':{'type':'pace','global_unique_name':'s',"
		  "'storage_spec':{'domain':'d'}}}",
		  SKV_E_UNSUPPORTED, "tair_mem_pool" },
		{ "{'storage_config':{'type':'vcns_hf3fs','global_unique_name':'s',"
		  "'storage_spec':{}}}",
		  SKV_E_UNSUPPORTED, "vcnsthreefs" },
		{ "{'storage_config':{'type':'event_report_l2','global_unique_name':'s',"
		  "'storage_spec':{}}}",
		  SKV_E_UNSUPPORTED, "event_report" },
		{ "{'storage_config':{'type':'tape','global_unique_name':'s'}}", SKV_E_INVALID,
		  "'tape'" },
		{ "{'storage_config':{'global_unique_name':'s'}}", SKV_E_INVALID, "storage type" },
		{ "{'storage_config':{'type':'file','global_unique_name':'s',"
		  "'storage_spec':{'root_path':'x'}}}",
		  SKV_E_INVALID, "root_path" },
		{ "{'storage_config':{'type':'file','global_unique_name':7}}", SKV_E_INVALID,
		  "start.json" },
		{ "{" GROUP(",'event_reporting_storage_candidates':['e']") "}", SKV_E_UNSUPPORTED,
		  "event_report" },
		{ "{" GROUP(",'quota':{'quota_config':[{'storage_type':'tape'}]}") "}",
		  SKV_E_INVALID, "'tape'" },
		{ "{\n'storage_config':", SKV_E_INVALID, "line 2" },
		/* Of the wrong type is not the same as not there. */
		{ "{'storage_config':'nfs_01'}", SKV_E_INVALID, "storage_config" },
		{ "{'storage_config':7," GROUP("") "}", SKV_E_INVALID, "storage_config" },
		{ "{'storage_config':null}", SKV_E_INVALID, "storage_config" },
		{ "{'storage_config':['nfs_01']}", SKV_E_INVALID, "storage_config" },
		{ "{'storage_config':{'type':3,'global_unique_name':'s'}}", SKV_E_INVALID,
		  "storage_config.type" },
		{ "{'storage_config':{'type':'file','global_unique_name':'s','is_available':'no',"
		  "'storage_spec':{}}}",
		  SKV_E_INVALID, "storage_config.is_available" },
		{ "{'storage_config':{'type':'file','global_unique_name':'s','storage_spec':[]}}",
		  SKV_E_INVALID,
		  "storage_config.storage_spec" },
		{ "{'instance_group':'default'}", SKV_E_INVALID, "instance_group" },
		{ "{'instance_group':[[]]}", SKV_E_INVALID, "instance_group" },
		{ "{" GROUP(",'quota':[]") "}", SKV_E_INVALID, "instance_group.quota" },
		{ "{" GROUP(",'quota':{'quota_config':{}}") "}", SKV_E_INVALID,
		  "instance_group.quota.quota_config" },
		{ "[]", SKV_E_INVALID, "start.json" },
	};
	struct box *b = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int rc = load(b, cases[i].json);

		if (rc != cases[i].status || !strstr(b->err.message, cases[i].words))
			fail_msg("case %zu: %s: %s", i, skv_status_name(rc), b->err.message);
	}
	assert_int_equal(read_objects(b, "/does/not/exist"), SKV_E_INVALID);
	assert_non_null(strstr(b->err.message, "/does/not/exist"));
}

/* ---- what is made ---------------------------------------------------------------------------- */

static void open_core(struct box *b)
{
	const struct skv_store_options o = { .path = SKV_STORE_IN_MEMORY };
	struct skv_core_options c;

	assert_int_equal(skv_store_open(&skv_store_sqlite, &o, &b->store, &b->err), SKV_OK);
	skv_core_options_init(&c);
	c.store = b->store;
	assert_int_equal(skv_cluster_create(&c, NULL, &b->cluster, &b->err), SKV_OK);
	assert_int_equal(skv_cluster_wait_ready(b->cluster, 10000), SKV_OK);
}

static void load_in_dir(struct box *b, const char *capacity)
{
	char json[1024];

	snprintf(
		json, sizeof json,
		"{'storage_config':[{'type':'file','global_unique_name':'one',"
		"'storage_spec':{'root_path':'%s/up/made/'}},{'type':'file',"
		"'global_unique_name':'two','is_available':false,"
		"'storage_spec':{'root_path':'%s'}}],'instance_group':{'name':'g',"
		"'storage_candidates':['one','later'],'global_quota_group_name':'q',"
		"'quota':{'capacity':%s},'cache_config':{'cache_prefer_strategy':2,"
		"'reclaim_strategy':{}}}}",
		b->dir, b->dir, capacity);
	assert_int_equal(load(b, json), SKV_OK);
}

static struct skv_storage_spec storage(struct box *b, const char *name)
{
	struct skv_storage_view *v;

	assert_int_equal(skv_cluster_storage(b->cluster, name, &b->a, &v, &b->err), SKV_OK);
	return v[0].spec;
}

static struct skv_group_spec group(struct box *b)
{
	struct skv_group_view *v;

	assert_int_equal(skv_cluster_group(b->cluster, "g", &b->a, &v, &b->err), SKV_OK);
	return v[0].spec;
}

static void make(struct box *b)
{
	if (kvcm_startup_make(&b->s, &b->model, b->cluster, &b->err) != SKV_OK)
		fail_msg("%s", b->err.message);
}

static void test_made_once(void **state)
{
	struct box *b = *state;
	struct skv_storage_spec s;

	open_core(b);
	load_in_dir(b, "1000");
	make(b);
	s = storage(b, "one");
	assert_true(s.enabled);
	assert_true(strlen(s.root) == strlen(b->dir) + strlen("/up/made/one.01234567"));
	assert_int_equal(access(s.root, W_OK), 0); /* the root and its last directory are made */
	assert_int_equal(s.capacity, 2 << 20);
	assert_false(storage(b, "two").enabled);
	assert_int_equal(group(b).capacity, 1000);
	load_in_dir(b, "5");
	b->model.storage_capacity = 3 << 20;
	make(b); /* existing objects stay */
	assert_int_equal(group(b).capacity, 1000);
	assert_int_equal(storage(b, "one").capacity, 2 << 20);
}

static void test_storage_grows_and_groups_notice(void **state)
{
	struct box *b = *state;
	char json[256];
	KvcmAdmin__StorageConfig *later;

	open_core(b);
	load_in_dir(b, "0");
	make(b);
	assert_string_equal(group(b).storages[0], "one");
	snprintf(json, sizeof json,
		 "{'storage_config':{'type':'hf3fs','global_unique_name':'later','storage_spec':"
		 "{'mountpoint':'%s','root_dir':'fs'}}}",
		 b->dir);
	assert_int_equal(load(b, json), SKV_OK);
	later = (KvcmAdmin__StorageConfig *)b->s.storages[0].config;
	assert_int_equal(kvcm_storage_create(b->cluster, later, &b->model, &b->err), SKV_OK);
	assert_string_equal(group(b).storages[0], "later"); /* CPS_PREFER_3FS */
	assert_string_equal(group(b).storages[1], "one");
	b->model.storage_capacity = 3 << 20;
	b->model.storage_unit = 64 << 20; /* fixed when it was made */
	assert_int_equal(kvcm_storage_change(b->cluster, later, &b->model, &b->err), SKV_OK);
	assert_int_equal(storage(b, "later").capacity, 3 << 20);
}

static void test_private_directories(void **state)
{
	struct box *b = *state;
	char owner[192], dead[192], path[160], gone[128], command[512];
	struct skv_storage_spec s;
	FILE *f;

	open_core(b);
	skv_owner_name(owner);
	b->model.id = ID;
	b->model.owner = owner;
	/* The remains of a dead process: the owner's text with another process id. */
	snprintf(gone, sizeof gone, "%s/up/made/one.pdead", b->dir);
	snprintf(command, sizeof command, "mkdir -p %s && touch %s/slabkv-storage %s/other", gone,
		 gone, gone);
	assert_int_equal(test_shell(command), 0);
	assert_non_null(strchr(owner, ':'));
	snprintf(dead, sizeof dead, "%.*s:4194303%.120s", (int)strcspn(owner, ":"), owner,
		 strchr(strchr(owner, ':') + 1, ':'));
	assert_true(skv_owner_is_dead(dead));
	snprintf(path, sizeof path, "%s/up/made/.kvcm-pdead", b->dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(dead, f);
	fclose(f);
	load_in_dir(b, "0");
	make(b);
	assert_int_not_equal(access(gone, F_OK), 0);
	assert_int_not_equal(access(path, F_OK), 0);
	s = storage(b, "one");
	snprintf(path, sizeof path, "%s/up/made/.kvcm-" ID, b->dir);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(s.root, F_OK), 0);
	kvcm_private_remove(s.root, ID);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_not_equal(access(s.root, F_OK), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_built_in),
		CASE(test_names_of_the_file),
		CASE(test_refused),
		CASE(test_made_once),
		CASE(test_storage_grows_and_groups_notice),
		CASE(test_private_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
