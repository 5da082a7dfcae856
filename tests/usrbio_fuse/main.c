/*
 * main.c - hf3fs_fuse_standin: a stand-in, for tests, for the FUSE daemon of 3FS. See stand.h.
 *
 * usage: hf3fs_fuse_standin --root DIR [OPTION...] MOUNT
 *   --root DIR            the local directory that is shown
 *   --name NAME           cluster name: the mount is "hf3fs.NAME" of type fuse.hf3fs (stage)
 *   --chunk-size BYTES    of the root directory (1 MiB)
 *   --layout PATH=BYTES   of a directory below it, made if it is not there; may be repeated
 *   --attr-timeout S      how long the kernel believes names and attributes (30)
 *   --workers N           threads that run jobs of rings (4)
 * Stays in the foreground, prints "ready" when the mount answers, ends with SIGTERM or
 * SIGINT, or with `exit` written to MOUNT/3fs-virt/control, which leaves a dead mount behind
 * as a killed daemon does.
 */
#include "stand.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options opt = { .name = "stage", .chunk = 1u << 20, .workers = 4, .jobs_per_ring = 32,
		       .attr_timeout = 30 };
static const char *layouts[64];
static int n_layouts;

static void on_init(void *data, struct fuse_conn_info *conn)
{
	(void)data;
	conn->want &= ~(unsigned)FUSE_CAP_READDIRPLUS;
	puts("ready");
	fflush(stdout);
}

static int usage(const char *why)
{
	fprintf(stderr,
		"hf3fs_fuse_standin: %s\nusage: hf3fs_fuse_standin --root DIR [--name NAME] "
		"[--chunk-size BYTES] [--layout PATH=BYTES]... [--attr-timeout S] "
		"[--workers N] MOUNT\n",
		why);
	return 2;
}

static int parse(int argc, char **argv)
{
	static const struct option all[] = {
		{ "root", required_argument, NULL, 'r' },
		{ "name", required_argument, NULL, 'n' },
		{ "chunk-size", required_argument, NULL, 'c' },
		{ "layout", required_argument, NULL, 'l' },
		{ "attr-timeout", required_argument, NULL, 't' },
		{ "workers", required_argument, NULL, 'w' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", all, NULL)) != -1) {
		if (c == 'r')
			opt.root = optarg;
		else if (c == 'n' && strlen(optarg) < sizeof opt.name)
			snprintf(opt.name, sizeof opt.name, "%s", optarg);
		else if (c == 'c')
			opt.chunk = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'l' && n_layouts < 64)
			layouts[n_layouts++] = optarg;
		else if (c == 't')
			opt.attr_timeout = strtod(optarg, NULL);
		else if (c == 'w')
			opt.workers = atoi(optarg);
		else
			return usage("not an option, or its value is too long");
	}
	if (!opt.root || optind != argc - 1)
		return usage("--root and one mount point are needed");
	if (opt.chunk < 65536 || opt.chunk > (64u << 20) || (opt.chunk & (opt.chunk - 1)) != 0)
		return usage("--chunk-size is a power of two from 65536 to 67108864");
	if (opt.workers < 1 || opt.workers > 64)
		return usage("--workers is 1 to 64");
	opt.mount = argv[optind];
	return 0;
}

static int set_layouts(void)
{
	for (int i = 0; i < n_layouts; i++) {
		char path[256];
		unsigned long chunk;
		int error = EINVAL;

		if (sscanf(layouts[i], "%255[^=]=%lu", path, &chunk) == 2)
			error = inode_layout(path, (uint32_t)chunk);
		if (error != 0) {
			fprintf(stderr, "hf3fs_fuse_standin: --layout %s: %s\n", layouts[i],
				strerror(error));
			return error;
		}
	}
	return 0;
}

static int serve(struct fuse_session *se)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int rc = 1;

	fuse_loop_cfg_set_max_threads(config, 32); /* some wait for a chain */
	if (fuse_set_signal_handlers(se) == 0) {
		if (fuse_session_mount(se, opt.mount) == 0) {
			rc = fuse_session_loop_mt(se, config);
			fuse_session_unmount(se);
		}
		fuse_remove_signal_handlers(se);
	}
	fuse_loop_cfg_destroy(config);
	return rc < 0 || rc == 1;
}

int main(int argc, char **argv)
{
	struct fuse_lowlevel_ops ops = { .init = on_init };
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se;
	char mount_options[128];
	int error = parse(argc, argv);

	if (error != 0)
		return error;
	umask(0);
	error = inodes_open();
	if (error != 0)
		fprintf(stderr, "hf3fs_fuse_standin: %s: %s\n", opt.root, strerror(error));
	if (error != 0 || set_layouts() != 0)
		return 1;
	error = rings_open();
	if (error != 0) {
		fprintf(stderr, "hf3fs_fuse_standin: cannot serve rings: %s\n", strerror(error));
		return 1;
	}
	name_operations(&ops);
	file_operations(&ops);
	snprintf(mount_options, sizeof mount_options,
		 "subtype=hf3fs,fsname=hf3fs.%s,allow_other,default_permissions", opt.name);
	fuse_opt_add_arg(&args, argv[0]);
	fuse_opt_add_arg(&args, "-o");
	fuse_opt_add_arg(&args, mount_options);
	se = fuse_session_new(&args, &ops, sizeof ops, NULL);
	error = se ? serve(se) : 1;
	if (se)
		fuse_session_destroy(se);
	fuse_opt_free_args(&args);
	rings_close();
	return error;
}
