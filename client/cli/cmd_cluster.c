/*
 * cmd_cluster.c - slabkv cluster: the managers of a store, its partitions and their owners;
 * draining one before an upgrade; moving a partition.
 *
 * Any manager knows the others' addresses; each is asked for its own part, so the output is
 * current. Stateless; one thread.
 */
#include "args.h"
#include "cli.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define MEMBERS 64u
#define TAKEOVER_MS 30000u
#define LOOK_MS 50u


struct member {
	const char *url;
	const char *id;
	struct slabkv *kv; /* NULL: the manager cannot be asked */
	json_t *view;      /* NULL: no answer */
};

struct members {
	struct member v[MEMBERS];
	size_t n;
	json_t *list; /* the first answer, which owns the strings */
};

static int open_one(const struct skv_cli *cli, const char *url, struct slabkv **out)
{
	struct slabkv_options o;
	const char *urls[1] = { url };
	struct slabkv_error err;

	skv_cli_options(cli, &o);
	o.urls = urls;
	o.n_urls = 1;
	o.rounds = 1;
	return slabkv_open(&o, out, &err);
}

/* NULL: no answer. */
static json_t *view_of(struct slabkv *kv)
{
	struct slabkv_error err;
	const char *text;
	json_error_t e;
	json_t *view = NULL;

	if (kv && slabkv_call(kv, "GET", "/v1/cluster", NULL, &text, &err) == SLABKV_OK) {
		view = json_loads(text, 0, &e);
		slabkv_free(text);
	}
	return view;
}

static void look_again(struct members *m)
{
	for (size_t i = 0; i < m->n; i++) {
		json_decref(m->v[i].view);
		m->v[i].view = view_of(m->v[i].kv);
	}
}

static int find_all(const struct skv_cli *cli, struct members *m)
{
	const json_t *one;
	struct slabkv *kv;
	size_t i;
	int rc = skv_cli_open(cli, NULL, &kv);

	*m = (struct members){ .n = 0 };
	if (rc != SKV_EXIT_OK)
		return rc;
	rc = skv_cli_call(cli, kv, "GET", "/v1/cluster", NULL, &m->list);
	slabkv_close(kv);
	if (rc != SKV_EXIT_OK)
		return rc;
	json_array_foreach(json_object_get(m->list, "members"), i, one) {
		struct member *at = &m->v[m->n];

		if (m->n == MEMBERS)
			break;
		assert(!at->kv && !at->view);
		at->url = skv_cli_text(one, "url");
		at->id = skv_cli_text(one, "id");
		if (open_one(cli, at->url, &at->kv) != SLABKV_OK)
			at->kv = NULL;
		m->n++;
	}
	look_again(m);
	return SKV_EXIT_OK;
}

static void forget(struct members *m)
{
	for (size_t i = 0; i < m->n; i++) {
		json_decref(m->v[i].view);
		if (m->v[i].kv)
			slabkv_close(m->v[i].kv);
	}
	json_decref(m->list);
}

static bool is(const json_t *object, const char *name, const char *text)
{
	return strcmp(skv_cli_text(object, name), text) == 0;
}

static bool is_true(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

/* ---- status ---------------------------------------------------------------------------------- */

/* Partitions that it owns, and that it follows; the records that it lacks of these. */
static void add_up(const json_t *view, unsigned *owns, unsigned *follows, uint64_t *behind)
{
	const json_t *p;
	size_t i;

	*owns = *follows = 0;
	*behind = 0;
	json_array_foreach(json_object_get(view, "partitions"), i, p) {
		*owns += is(p, "state", "ready") || is(p, "state", "recovering");
		if (!is(p, "state", "standby") || !is_true(p, "loaded"))
			continue;
		*follows += 1;
		*behind += skv_cli_u64(p, "behind");
	}
}

static void print_members(const struct members *m)
{
	printf("%-36s %-11s %-9s %5s %8s %8s\n", "MEMBER", "STATE", "VERSION", "OWNS", "FOLLOWS",
	       "BEHIND");
	for (size_t i = 0; i < m->n; i++) {
		const json_t *view = m->v[i].view;
		unsigned owns, follows;
		uint64_t behind;

		if (!view) {
			printf("%-36s no answer\n", m->v[i].url);
			continue;
		}
		add_up(view, &owns, &follows, &behind);
		printf("%-36s %-11s %-9s %5u %8u %8" PRIu64 "\n", m->v[i].url,
		       is_true(view, "draining") ? "draining" : skv_cli_text(view, "state"),
		       skv_cli_text(view, "version"), owns, follows, behind);
	}
}

static const json_t *partition_of(const struct member *m, size_t number)
{
	return json_array_get(json_object_get(m->view, "partitions"), number);
}

/* The member that has the partition ready; NULL: none. */
static const struct member *owner_of(const struct members *m, size_t number)
{
	for (size_t i = 0; i < m->n; i++)
		if (is(partition_of(&m->v[i], number), "state", "ready"))
			return &m->v[i];
	return NULL;
}

static const char *home_of(const json_t *partition)
{
	return json_object_get(partition, "home") ? skv_cli_text(partition, "home") : "-";
}

/* Returns false if a partition has no owner. */
static bool print_partitions(const struct members *m)
{
	size_t n = json_array_size(json_object_get(m->list, "partitions"));
	bool all = true;

	assert(m->n <= MEMBERS);
	printf("\n%-9s %-36s %10s %10s %7s  %s\n", "PARTITION", "OWNER", "BLOCKS", "RECORD",
	       "EPOCH", "MOVED TO");
	for (size_t i = 0; i < n; i++) {
		const struct member *owner = owner_of(m, i);
		const json_t *p = owner ? partition_of(owner, i) : NULL;

		all &= owner != NULL;
		if (owner)
			printf("%-9zu %-36s %10" PRIu64 " %10" PRIu64 " %7" PRIu64 "  %s\n", i,
			       owner->url, skv_cli_u64(p, "blocks"),
			       skv_cli_u64(p, "record"), skv_cli_u64(p, "epoch"), home_of(p));
		else
			printf("%-9zu nobody\n", i);
	}
	return all;
}

static int print_json(const struct members *m)
{
	json_t *all = json_array();

	for (size_t i = 0; i < m->n; i++)
		json_array_append_new(all, json_pack("{sssssO?}", "url", m->v[i].url, "id",
						     m->v[i].id, "view", m->v[i].view));
	return skv_cli_print_json(json_pack("{so}", "members", all));
}

static int status(const struct skv_cli *cli)
{
	struct members m;
	int rc = find_all(cli, &m);

	if (rc == SKV_EXIT_OK && cli->json) {
		rc = print_json(&m);
	} else if (rc == SKV_EXIT_OK) {
		print_members(&m);
		rc = print_partitions(&m) ? SKV_EXIT_OK : SKV_EXIT_MISS;
	}
	forget(&m);
	return rc;
}

/* ---- drain ----------------------------------------------------------------------------------- */

/* Returns true if the member has everything needed to take over. */
static bool could_own(const struct member *m)
{
	size_t n = json_array_size(json_object_get(m->view, "partitions"));
	unsigned owns, follows;
	uint64_t behind;

	assert(m->url && m->id);
	if (!m->view || is_true(m->view, "draining"))
		return false;
	add_up(m->view, &owns, &follows, &behind);
	return owns + follows == n;
}

static struct member *named(struct members *m, const char *url)
{
	const size_t n = strlen(url) - (*url && url[strlen(url) - 1] == '/');

	for (size_t i = 0; i < m->n; i++)
		if (strlen(m->v[i].url) == n && strncmp(m->v[i].url, url, n) == 0)
			return &m->v[i];
	return NULL;
}

static bool all_owned(const struct members *m)
{
	for (size_t i = 0; i < json_array_size(json_object_get(m->list, "partitions")); i++)
		if (!owner_of(m, i))
			return false;
	return true;
}

static int await_owner(const struct skv_cli *cli, struct members *m)
{
	const struct timespec pause = { 0, LOOK_MS * 1000000l };

	assert(m->list);

	for (unsigned ms = 0; ms < TAKEOVER_MS; ms += LOOK_MS) {
		look_again(m);
		if (all_owned(m))
			return SKV_EXIT_OK;
		nanosleep(&pause, NULL);
	}
	skv_cli_tell(cli, "timeout", "no other manager has taken over yet");
	return SKV_EXIT_REFUSED;
}

static int set(const struct skv_cli *cli, const char *url, bool on)
{
	struct members m;
	struct member *it;
	bool other = false;
	int rc = find_all(cli, &m);

	it = rc == SKV_EXIT_OK ? named(&m, url) : NULL;
	for (size_t i = 0; i < m.n; i++)
		other |= &m.v[i] != it && could_own(&m.v[i]);
	if (rc == SKV_EXIT_OK && (!it || !it->view)) {
		skv_cli_tell(cli, it ? "network" : "not_found", it ? "%s does not answer"
			     : "there is no member %s: 'slabkv cluster' lists them", url);
		rc = it ? SKV_EXIT_UNREACHABLE : SKV_EXIT_MISS;
	}
	if (rc == SKV_EXIT_OK && on && !other)
		rc = skv_cli_confirm(cli, "leaves the store without an owner: no other manager "
					  "follows all of it");
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_call(cli, it->kv, "PUT", "/v1/cluster",
				  json_pack("{sb}", "draining", on), NULL);
	if (rc == SKV_EXIT_OK && on && other)
		rc = await_owner(cli, &m);
	if (rc == SKV_EXIT_OK && cli->json)
		rc = print_json(&m);
	forget(&m);
	return rc;
}

/* ---- move ------------------------------------------------------------------------------------ */

static int await_move(const struct skv_cli *cli, struct members *m, size_t number,
		      const struct member *to)
{
	const struct timespec pause = { 0, LOOK_MS * 1000000l };

	for (unsigned ms = 0; ms < TAKEOVER_MS; ms += LOOK_MS) {
		look_again(m);
		if (owner_of(m, number) == to)
			return SKV_EXIT_OK;
		nanosleep(&pause, NULL);
	}
	skv_cli_tell(cli, "timeout", "%s does not own it yet: does it follow it?", to->url);
	return SKV_EXIT_REFUSED;
}

/* `url` NULL: to none. */
static int move(const struct skv_cli *cli, const char *partition, const char *url)
{
	struct members m;
	struct slabkv *kv;
	uint64_t number;
	struct member *to = NULL;
	int rc;

	if (!skv_args_number(partition, 0, UINT32_MAX, &number))
		return skv_cli_usage(cli, "'%s' is not the number of a partition", partition);
	rc = find_all(cli, &m);
	if (rc == SKV_EXIT_OK && url && !(to = named(&m, url))) {
		skv_cli_tell(cli, "not_found", "there is no member %s: 'slabkv cluster' lists them",
			     url);
		rc = SKV_EXIT_MISS;
	}
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &kv);
	if (rc == SKV_EXIT_OK) {
		rc = skv_cli_call(cli, kv, "PUT", "/v1/cluster/home",
				  json_pack("{sIss}", "partition", (json_int_t)number, "member",
					    to ? to->url : ""), NULL);
		slabkv_close(kv);
	}
	if (rc == SKV_EXIT_OK && to)
		rc = await_move(cli, &m, number, to);
	if (rc == SKV_EXIT_OK && cli->json)
		rc = print_json(&m);
	forget(&m);
	return rc;
}

int skv_cmd_cluster(struct skv_cli *cli, int argc, char **argv)
{
	static const char *const actions[] = { "status", "drain", "undrain", "move", NULL };
	bool clear = false;
	const struct skv_cli_option options[] = {
		{ "clear", SKV_CLI_FLAG, &clear, 0, 0, NULL, NULL }, SKV_CLI_OPTIONS_END
	};
	int n, rc = skv_cli_parse(cli, argc, argv, options, NULL);
	const char *action;

	if (rc != SKV_EXIT_OK)
		return rc;
	n = argc - optind;
	action = n ? argv[optind] : "status";
	for (size_t i = 0; !actions[i] || strcmp(action, actions[i]) != 0; i++)
		if (!actions[i])
			return skv_cli_unknown(cli, "action", action, actions);
	if (clear != (strcmp(action, "move") == 0 && n == 2))
		return skv_cli_usage(cli, clear ? "--clear belongs to: move PARTITION --clear"
						: "move: to which member? 'slabkv cluster' "
						  "lists them");
	if (strcmp(action, "status") == 0)
		return n > 1 ? skv_cli_usage(cli, "status takes no arguments") : status(cli);
	if (strcmp(action, "move") == 0)
		return n > 3 ? skv_cli_usage(cli, "move takes a partition and a member")
			     : move(cli, argv[optind + 1], clear ? NULL : argv[optind + 2]);
	if (n != 2)
		return skv_cli_usage(cli, "%s: which manager? 'slabkv cluster' lists them", action);
	return set(cli, argv[optind + 1], strcmp(action, "drain") == 0);
}
