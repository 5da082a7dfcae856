/*
 * main.c - entry point of `slabkv`: the table of commands, their help.
 *
 * Each command is one row here and one file cmd_NAME.c (replay, bench and doctor have their own).
 */
#include "cli.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

struct command {
	const char *name;
	skv_command_fn run;
	const char *args;
	const char *what;
	const char *options; /* lines of help */
};

#define TARGET_HELP                                                                                \
	"  --instance ID         instance (default: default)\n"                                    \
	"  --key KEY             a key; may be repeated, or given as argument\n"                   \
	"  --key-form FORM       string (default), int, hex\n"

static const struct command commands[] = {
	{ "put", skv_cmd_put, "--key KEY [options] [FILE|-]", "write a file or stdin as block(s)",
	  TARGET_HELP
	  "  --spec NAME=FILE      bytes of one spec; may be repeated (FILE alone: spec kv)\n"
	  "  --block-bytes SIZE    cut FILE into chained blocks KEY/0, KEY/1, ... of SIZE bytes;\n"
	  "                        the last one is filled with zeros\n"
	  "  --independent         the blocks are no chain: each is evicted by its own "
	  "use (states,\n"
	  "                        windows)\n"
	  "  --group NAME          group of a new instance (default: default)\n"
	  "  --storage NAME        storage of a new group (default: default)\n" },
	{ "get", skv_cmd_get, "--key KEY [options] [FILE|-]", "read block(s) into a file or stdout",
	  TARGET_HELP
	  "  --spec NAME           which spec (default: all, one after the other)\n"
	  "  --block-bytes SIZE    read the chain KEY/0, KEY/1, ... that put --block-bytes wrote\n"
	  "  --length SIZE         stop after so many bytes (the file's own length)\n" },
	{ "lookup", skv_cmd_lookup, "[options] KEY...", "where blocks lie",
	  TARGET_HELP
	  "  --batch               every key on its own (default: prefix, stop at the first miss)\n"
	  "  --window N            the last N keys in a row that are there, and no others\n"
	  "  --trailing            every key on its own, not counted as a use\n"
	  "  --lease MS            lease (default: the manager's; 0 = none)\n" },
	{ "match", skv_cmd_match, "--instance ID... [options] KEY...",
	  "how many leading keys each instance has", TARGET_HELP },
	{ "delete", skv_cmd_delete, "[options] KEY...",
	  "delete blocks, or with --object a registered object",
	  TARGET_HELP
	  "  --object KIND         instance, group or storage; the arguments are names. "
	  "Asks first,\n"
	  "                        or needs --yes\n" },
	{ "purge", skv_cmd_purge, "INSTANCE... | --prefix|--group|--tenant NAME",
	  "all that is stored or being written before now is gone",
	  "  --prefix NAME         of all instances whose names begin like this\n"
	  "  --group NAME          of all instances of a group\n"
	  "  --tenant NAME         of all instances of a tenant\n"
	  "For new weights, and for erasure. The instances stay. Asks first, or needs --yes. Safe\n"
	  "to repeat.\n" },
	{ "ls", skv_cmd_ls, "[INSTANCE]", "list instances, or the keys of one",
	  "Keys are told as the manager has them: 32 hex digits, for --key-form hex.\n" },
	{ "instance", skv_cmd_instance, "list | keys ID | rm --older-than AGE",
	  "instances, the keys of their blocks, and the end of unused ones",
	  "  --older-than AGE      rm: those that no registration, lookup or start has named for "
	  "so\n"
	  "                        long, like 30d or 12h, and that hold nothing\n"
	  "  --group NAME          rm: only of this group\n"
	  "  --with-blocks         rm: also those that hold blocks, pins or sessions\n"
	  "  --dry-run             rm: only tell which\n"
	  "Keys are told as the manager has them: 32 hex digits, for --key-form hex. rm asks\n"
	  "first, or needs --yes.\n" },
	{ "pin", skv_cmd_pin, "[options] KEY...", "keep blocks from eviction",
	  TARGET_HELP
	  "  --ttl MS              the pin ends after so long (default: 0 = when it is unpinned)\n"
	  "  --soft                is evicted when nothing else may be; needs --ttl "
	  "(default: hard)\n"
	  "  --keys FILE           keys, one a line (-: standard input)\n"
	  "  --prompts FILE        prompts, one a line, as token ids; needs\n"
	  "  --hash sglang         whose page hashes their keys are, and\n"
	  "  --page TOKENS         of a page, as SGLang's\n" },
	{ "unpin", skv_cmd_unpin, "--all | [options] KEY...", "end pins",
	  TARGET_HELP
	  "  --all                 all pins of the instance\n" },
	{ "pins", skv_cmd_pins, "[options]", "list the pins of an instance",
	  "  --instance ID         instance (default: default)\n" },
	{ "stat", skv_cmd_stat, "[options]", "the manager's numbers; with --key, one block",
	  TARGET_HELP },
	{ "top", skv_cmd_top, "[options]",
	  "who holds what: storages, groups and instances, refreshed; q ends it",
	  "  --interval SECONDS    between refreshes (default: 2)\n"
	  "  --sort COLUMN         name (default), used, share, leased, pinned, open, "
	  "evicted, hits\n"
	  "  --lines N             at most so many instances (default: as many as fit on "
	  "the screen)\n"
	  "  --once                print once and end\n" },
	{ "replay", skv_cmd_replay, "[options] TRACE|-",
	  "replay a trace of requests, verifying every byte",
	  "  --block-bytes SIZE    bytes of a block (default: 64K)\n"
	  "  --spec-count N        parts of a block (default: 1)\n"
	  "  --clients N           threads (default: 4)\n"
	  "  --requests N          stop after so many requests (default: all)\n"
	  "  --speed FACTOR        keep the trace's own times, FACTOR times as fast\n"
	  "                        (default: as fast as possible)\n"
	  "  --instance ID         (default: replay-BYTESxSPECS)\n"
	  "  --group NAME          (default: default)\n"
	  "  --storage NAME        storage of a new group (default: default)\n"
	  "  --lease MS            of lookups (default: the manager's; 0 = none, then only blocks\n"
	  "                        with checksums are read)\n"
	  "  --hits FILE           what each request found, as CSV; like slabkvd "
	  "simulate --hits\n" },
	{ "bench", skv_cmd_bench, "[options]",
	  "calls/s, latency, manager CPU; or put and get of bytes",
	  "  --ops LIST            of lookup,match,start,delete (default: all)\n"
	  "  --keys LIST           keys of a call, 1..16384 (default: 1,512; with --data 16)\n"
	  "  --clients N           threads (default: 4)\n"
	  "  --seconds S           for each operation, e.g. 0.5 (default: 5)\n"
	  "  --rate N              start no more than so many blocks a second (default: no bound)\n"
	  "  --hits RATIO          part of a lookup's keys that are there, 0..1 (default: 1)\n"
	  "  --batch               look up every key on its own (default: prefix)\n"
	  "  --population N        blocks that lookups and matches find (default: 65536)\n"
	  "  --scatter             their keys lie all over these, not side by side\n"
	  "  --text                keys are texts of 64 characters, not numbers\n"
	  "  --checksums           start: finish has a checksum of each block\n"
	  "  --independent         start: each block by itself, not in a chain\n"
	  "  --policy NAME         of its group, e.g. lru (default: the manager's)\n"
	  "  --full                fill the storage first, so that every start evicts\n"
	  "  --capacity SIZE       of its storage (default: 16T; with --full 1G)\n"
	  "  --slot SIZE           bytes of a block, for --capacity (default: 4K)\n"
	  "  --max-blocks N        end start after so many blocks (default: 1000000)\n"
	  "  --manager-pid PID     measure the CPU time of this process\n"
	  "  --keep                do not remove storage, group and instance at the end\n"
	  "  --data LIST           put and get blocks of these sizes, verified, e.g. 1M,4497408\n"
	  "  --storage NAME        where, with --data (default: default)\n"
	  "  --data-bytes SIZE     put so much, with --data (default: 1G)\n"
	  "  --depth N             requests that the engine keeps in flight, for each call\n"
	  "  --in-flight N         calls of a thread at a time, with --data (default: 2)\n" },
	{ "doctor", skv_cmd_doctor, "[options]",
	  "check manager, mounts and this machine; say what to do",
	  "  --no-write            leave out the write and read probes\n"
	  "  --mount DIR           look closely at DIR: type, chunk size, 3FS's library, limits,\n"
	  "                        shared memory, rings, bytes there and back. Asks no "
	  "manager, unless\n"
	  "                        --url names one, too\n" },
	{ "group", skv_cmd_group, "list | set NAME FIELD=VALUE...",
	  "groups: quotas, parts, eviction policies",
	  "set makes the group, or changes what is named of it: the fields of PUT "
	  "/v1/groups, e.g.\n"
	  "policy=lru, policy=ttl ttl_ms=3600000, capacity=1T, storages=fast,slow\n" },
	{ "storage", skv_cmd_storage,
	  "list | files NAME | drain NAME [FILE...] | keep NAME [FILE...] | forget NAME FILE... | "
	  "capacity NAME SIZE",
	  "storages and their slab files; space that comes or goes",
	  "  --wait                until the files that drain are gone; tells how far it is\n"
	  "  --move                drain: movers copy the blocks elsewhere (slabkv mover), none\n"
	  "                        is evicted; what cannot be moved stays\n"
	  "drain evicts what is in the slab files with these numbers and removes them; without\n"
	  "numbers it retires the storage; it asks first, or needs --yes, and so does a capacity\n"
	  "that is lower. keep takes that back, as long as a file is not empty. A\n"
	  "drained file is replaced by a new one when room is needed, if the capacity "
	  "allows it; a\n"
	  "lower capacity drains the files that are worth least.\n" },
	{ "mover", skv_cmd_mover, "[--limit BYTES_PER_S] [--once]",
	  "copy blocks: out of what drains with --move, into fast tiers",
	  "  --limit SIZE          bytes to copy in a second, like 200M (default: no bound)\n"
	  "  --once                end when there was nothing to move for 5 s\n"
	  "Runs until SIGTERM, on any host that reaches the storages, as often as you like; it\n"
	  "keeps nothing, and its I/O has idle priority. It needs a token of role admin.\n" },
	{ "scrub", skv_cmd_scrub, "[--limit BYTES_PER_S] [--once] [--older TIME]",
	  "verify the checksums of stored blocks, the longest unchecked first",
	  "  --limit SIZE          bytes to read in a second, like 200M (default: 100M)\n"
	  "  --older TIME          what was not checked for so long, like 7d or 12h (default: 7d;\n"
	  "                        with --once: everything)\n"
	  "  --once                end when nothing is left to check\n"
	  "Runs until SIGTERM, on any host that reaches the storages, as often as you like: all\n"
	  "share the work, and a scrub that was ended goes on where it was. Damaged blocks are\n"
	  "misses at once, and can be put again. The exit status is 5 if there were any, 1 if\n"
	  "blocks could not be read. It needs a token of role admin.\n" },
	{ "tenant", skv_cmd_tenant,
	  "list | get NAME | set NAME FIELD=VALUE... | isolate NAME root=DIR... | forget NAME",
	  "what each tenant may use, own and have, and what it has",
	  "Fields are those of PUT /v1/tenants/NAME (PROTOCOL.md), lists as a,b: groups\n"
	  "where it may register instances, storages that groups of its own may name,\n"
	  "own_groups and own_storages, which its administrators change, too. What no tenant\n"
	  "names is everybody's. Others' fields stay as they are.\n"
	  "isolate gives it a storage and a group of its name, in the directory root, with\n"
	  "capacity. With gid=GROUP it makes that directory, on this host, for processes of\n"
	  "that Unix group only (mode=2770): run it as the manager's user or as root.\n" },
	{ "cluster", skv_cmd_cluster, 
	  "[status] | drain MEMBER | undrain MEMBER | move PARTITION MEMBER | move PARTITION "
	  "--clear",
	  "managers of the store: who owns its partitions, how far the others are",
	  "  --json                what each manager says, as one document\n"
	  "status exits with 1 if nobody owns a partition. drain takes what a manager owns away "
	  "from\n"
	  "it, before an upgrade, until undrain or until its process ends; MEMBER is the URL that\n"
	  "status shows. It waits until another one has taken over, and asks first if none "
	  "could.\n"
	  "move gives a partition to a member for good: it comes back to it, until --clear.\n" },
	{ "token", skv_cmd_token,
	  "add NAME | list | rotate NAME | revoke NAME | new | hash FILE",
	  "bearer tokens: who may call",
	  "  --role ROLE           read, write or admin: of add and new\n"
	  "  --tenant NAME         whose it is (default: default)\n"
	  "  --expires WHEN        like 90d, 12h or 2027-01-31 (default: never)\n"
	  "  --keep TIME           rotate: the one before is accepted so much longer, like 24h\n"
	  "  --name NAME           of new\n"
	  "add, list, rotate and revoke ask the manager, whose store keeps hashes of tokens for\n"
	  "all managers; add and rotate print the token, once. new asks nobody: it prints a\n"
	  "token, and to stderr the line for a tokens_file. hash prints a tokens_file with\n"
	  "hashes in place of tokens.\n" },
	{ "plan", skv_cmd_plan, "--model config.json --tokens N [options]",
	  "what a model's KV cache takes: blocks, slots, capacity, slab files",
	  "  --model FILE          the model's config.json, as on Hugging Face\n"
	  "  --tokens N            that are to be kept, like 1000000 or 64M\n"
	  "  --tp N                ranks of tensor parallelism: a spec for each (default: 1)\n"
	  "  --block-tokens N      tokens of a block (default: 64)\n"
	  "  --dtype TYPE          of the KV cache, like bfloat16 or fp8 (default: the model's)\n"
	  "  --file-size SIZE      of a slab file (default: 1G)\n"
	  "Asks no manager. Layers that attend to a window are counted in full, those with a\n"
	  "state of fixed size are told and not counted.\n" },
	{ "pages", skv_cmd_pages, "list|export FILE|import FILE|clear [options]",
	  "page spaces of SGLang's and vLLM's hf3fs backends",
	  "  --tenant NAME         (default: default; list: all)\n"
	  "  --space RANK:NAME     which; may be repeated (RANK alone: namespace kv; "
	  "default: all,\n"
	  "                        clear needs one)\n"
	  "  --portion N           keys of one call of import (default: 1024)\n"
	  "FILE is upstream's persistence file, - stdin or stdout. import makes spaces that are\n"
	  "absent and leaves out keys that are there already or whose page is not "
	  "free. clear asks\n"
	  "first, or needs --yes.\n" },
	{ "gen-trace", skv_cmd_gen_trace, "[options]", "make a trace of requests",
	  "  --kind KIND           chat (default), agents, rag, scan, mix: sets what "
	  "follows; of mix\n"
	  "                        --conversations is a percentage of the four others' own\n"
	  "  --conversations N     (default of chat: 100)\n"
	  "  --turns N             at most, per conversation (8)\n"
	  "  --systems N           different system prompts (4)\n"
	  "  --system-tokens N     of a system prompt, on average (2048)\n"
	  "  --input-tokens N      of a question, on average (1024)\n"
	  "  --output-tokens N     of an answer, on average (512)\n"
	  "  --gap-ms N            between conversations, on average (400)\n"
	  "  --think-ms N          between turns, on average (10000)\n"
	  "  --documents N         that turns look up, popular ones oftener; 0 = none (0)\n"
	  "  --document-tokens N   of a document, on average (rag: 2048)\n"
	  "  --documents-each N    looked up in a turn (rag: 3)\n"
	  "  --seed N              the same seed gives the same trace (default: 1)\n"
	  "  --out FILE            (default: stdout)\n" },
	{ "help", skv_cmd_help, "[COMMAND]", "this, or what a command does", "" },
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static const char global_help[] =
	"Global options (before or after the command):\n"
	"  --url URL             manager, or several with commas; may be repeated (default:\n"
	"                        $SLABKV_URL, 127.0.0.1:7333)\n"
	"  --token TOKEN         bearer token (default: $SLABKV_TOKEN)\n"
	"  --token-file FILE     read it from the first line of FILE\n"
	"  --mount DIR           where a storage is mounted here; may be repeated\n"
	"  --timeout MS          for one call to the manager (default: 10000)\n"
	"  --engine NAME         how bytes are moved: auto, posix, uring, usrbio (default:\n"
	"                        $SLABKV_ENGINE, auto)\n"
	"  -o, --option NAME=VALUE  an option of the library, e.g. hf3fs_mount_point=/3fs/stage;\n"
	"                        -o help lists them\n"
	"  --json                output for programs; errors too, as an object on stderr\n"
	"  --yes                 do what would be asked about\n"
	"  --help, --version\n"
	"\n"
	"Exit status: 0 done, 1 miss or not found, 2 usage, 3 no manager reached,\n"
	"4 refused by the manager or storage not usable here, 5 bytes differ from what was "
	"written.\n";

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int unknown_command(const struct skv_cli *cli, const char *word)
{
	struct skv_nearest best = { 0 };

	for (size_t i = 0; i < N_COMMANDS; i++)
		skv_cli_nearest(word, commands[i].name, &best);
	if (best.word)
		return skv_cli_usage(cli, "there is no command '%s'; did you mean %s?", word,
				     best.word);
	return skv_cli_usage(cli, "there is no command '%s'", word);
}

static void help(const char *command)
{
	const struct command *c = command ? find_command(command) : NULL;

	if (c) {
		printf("slabkv %s %s\n\n%s.\n\n%s\n%s", c->name, c->args, c->what, c->options,
		       global_help);
		return;
	}
	printf("slabkv [options] COMMAND [options]\n\nStores and finds KV-cache blocks through "
	       "slabkvd.\n\n");
	for (size_t i = 0; i < N_COMMANDS; i++) {
		/* names are unique */
		assert(find_command(commands[i].name) == &commands[i]);
		printf("  %-10s %s\n", commands[i].name, commands[i].what);
	}
	printf("\nslabkv COMMAND --help tells more.\n\n%s", global_help);
}

int skv_cmd_help(struct skv_cli *cli, int argc, char **argv)
{
	if (argc > 2)
		return skv_cli_usage(cli, "one command");
	if (argc == 2 && !find_command(argv[1]))
		return unknown_command(cli, argv[1]);
	help(argc == 2 ? argv[1] : NULL);
	return SKV_EXIT_OK;
}

/* --json counts also where an option before it is wrong. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static int run(struct skv_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "version", no_argument, NULL, 'V' },
						 SKV_CLI_GLOBAL_OPTIONS };
	const struct command *c;
	int opt, rc;

	opterr = 0;
	cli->json = wants_json(argc, argv);
	cli->argv = argv;
	while ((opt = getopt_long(argc, argv, "+h" SKV_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 'V') {
			printf("slabkv %s\n", slabkv_version());
			return SKV_EXIT_OK;
		}
		rc = skv_cli_global_option(cli, opt == 'h' ? SKV_OPT_HELP : opt, optarg);
		if (rc != SKV_EXIT_OK)
			return rc < 0 ? SKV_EXIT_OK : rc;
	}
	if (optind >= argc)
		return skv_cli_usage(cli, "no command given");
	c = find_command(argv[optind]);
	if (!c)
		return unknown_command(cli, argv[optind]);
	cli->command = c->name;
	argc -= optind;
	argv += optind;
	cli->argv = argv;
	optind = 0; /* GNU getopt: begin anew */
	rc = c->run(cli, argc, argv);
	assert(rc >= -1 && rc <= SKV_EXIT_MISMATCH); /* -1: --help was printed */
	return rc < 0 ? SKV_EXIT_OK : rc;
}

int main(int argc, char **argv)
{
	struct skv_cli cli = { .timeout_ms = 10000, .help = help };
	const char *token = getenv("SLABKV_TOKEN");
	const char *trace = getenv("TRACEPARENT");
	int rc = SKV_EXIT_OK;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE fails with EFBIG */
	slabkv_options_init(&cli.library, sizeof cli.library);
	slabkv_trace(trace); /* an invalid value counts as absent */
	if (token && token[0])
		rc = skv_cli_set_token(&cli, token);
	if (rc == SKV_EXIT_OK)
		rc = run(&cli, argc, argv);
	skv_free(cli.token);
	if (fflush(stdout) != 0 && rc == SKV_EXIT_OK) {
		fprintf(stderr, "slabkv: stdout cannot be written\n");
		rc = SKV_EXIT_USAGE;
	}
	return rc;
}
