/*
 * params_table.h - every parameter of slabkvd, one row each.
 *
 * The struct, the parsers (file, environment, command line), --help, --dump-config and the manual
 * all come from these rows. Columns:
 *   name     as in the file; SLABKV_<NAME> in the environment; --<name> (or --na-me) on the
 * command line
 *   type     TEXT, CHOICE, FLAG, NUMBER, BYTES (with K, M, G, T as powers of 1024),
 *            PORT (a number, or "off")
 *   default  as text, read by the same parser as any other source
 *   min, max of the value; of the length for TEXT
 *   unit     of the value; the allowed words, separated by '|', for CHOICE
 *   help     one sentence or two
 */
#ifndef SKV_PARAMS_TABLE_H
#define SKV_PARAMS_TABLE_H

#include <skv/limits.h>

#define SKV_PARAMS(X)                                                                              \
	X(config, TEXT, "", 0, 4095, "", "File with parameters; empty = none.")                    \
	X(role, CHOICE, "manager", 0, 0, "manager|fs-master|memory-node",                          \
	  "fs-master: only makes, checks and deletes slab files below root, over HTTP, "           \
	  "for managers "                                                                          \
	  "without the mount; of the other parameters those of HTTP, tokens and log count. "       \
	  "memory-node: offers memory as slabs; of the other parameters those memory_* and the "   \
	  "same count.")                                                                           \
	X(memory, BYTES, "0", 0, 1ull << 50, "bytes", "Of a memory node: how much it offers.")     \
	X(memory_name, TEXT, "", 0, 63, "",                                                        \
	  "Name of a memory node, the last part of its URL in a storage; unique in a store. "      \
	  "Empty = the host's name.")                                                              \
	X(memory_pages, CHOICE, "auto", 0, 0, "auto|normal|2M|1G",                                 \
	  "Pages of its slabs. auto: 2M if enough huge pages are reserved, else ordinary ones.")   \
	X(memory_numa, TEXT, "", 0, 63, "",                                                        \
	  "Numbers of the NUMA nodes that its slabs are spread over, with commas; empty = any.")   \
	X(memory_rdma, TEXT, "auto", 1, 255, "",                                                   \
	  "RDMA devices that its slabs are registered on, with commas; auto: all that have a "     \
	  "link; off: none. Clients without RDMA use TCP.")                                        \
	X(memory_port, NUMBER, "7336", 0, 65535, "",                                               \
	  "TCP port of its data, at the address http_listen; 0 = any free one. Clients are told.") \
	X(root, TEXT, "", 0, SKV_MAX_ROOT, "",                                                     \
	  "Of an fs-master: the directory whose subdirectories it looks after; an absolute path.") \
	X(fs_master_token_file, TEXT, "", 0, 4095, "",                                             \
	  "File with the token, of role admin there, that the manager shows to fs-masters; read "  \
	  "for each call. Empty = none.")                                                          \
	X(http_listen, TEXT, "127.0.0.1", 1, 255, "",                                              \
	  "Address or host name that the HTTP and gRPC ports are bound to. Anything but "          \
	  "loopback needs tokens_file.")                                                           \
	X(http_port, NUMBER, "7333", 0, 65535, "",                                                 \
	  "HTTP port; 0 = any free one, which is then printed and written to port_file.")          \
	X(advertise, TEXT, "", 0, 255, "",                                                         \
	  "URL or host:port of the HTTP port that other managers of the store send "               \
	  "clients to (307), without a path; a host alone: with the bound port. Clients of kvcm "  \
	  "are told the host. Empty = the bound address, or this host's first one, and the bound " \
	  "port; "                                                                                 \
	  "with tokens_file, none: clients drop their token when they are sent elsewhere.")        \
	X(threads, NUMBER, "0", 0, 256, "", "Threads of HTTP, and of gRPC; 0 = one per core.")     \
	X(port_file, TEXT, "", 0, 4095, "",                                                        \
	  "File that gets the bound HTTP port as a decimal number; beside it PORT_FILE.grpc gets " \
	  "that of gRPC, PORT_FILE.kvcm a line 'name number' for each kvcm port. Empty = none.")   \
	X(grpc_port, PORT, "7334", 0, 65535, "",                                                   \
	  "gRPC port, at the address http_listen; 0 = any free one; off = no gRPC.")               \
	X(store, TEXT, "./slabkv.db", 1, 4095, "",                                                 \
	  "Metadata store: an SQLite file on a local file system, made if absent; "                \
	  "etcd://, see SEVERAL_HOSTS; :memory: = none, everything is forgotten at the end.")      \
	X(durability, CHOICE, "full", 0, 0, "full|normal",                                         \
	  "full: an answer survives power loss. normal: it survives kill -9, and "                 \
	  "power loss after "                                                                      \
	  "the next sync.")                                                                        \
	X(adopt, FLAG, "false", 0, 0, "",                                                          \
	  "Only as an argument, for one start: another copy of the store was used in its slab "    \
	  "directories and was stopped for good; take them over. Free slots rest for "             \
	  "session_max_ms and the grace, blocks without checksum are dropped.")                    \
	X(storage_root, TEXT, "./slabkv-data", 1, SKV_MAX_ROOT, "",                                \
	  "Directory of the first storage, which is made at the first start: 'default', or "       \
	  "nfs_01 with compat = kvcm.")                                                            \
	X(storage_capacity, BYTES, "4G", 4096, 1ull << 60, "bytes",                                \
	  "Most bytes that the storage 'default' may take. Set it higher later to let it grow.")   \
	X(storage_file_size, BYTES, "0", 0, 1ull << 50, "bytes",                                   \
	  "Length of one slab file of the storage 'default'; 0 = 1G, or the capacity if smaller.") \
	X(storage_unit, BYTES, "0", 0, 1ull << 40, "bytes",                                        \
	  "Smallest region that is given to one block size; a power of two, at least 4K. 0 = at "  \
	  "most a 1024th of the capacity, from 1M to 64M.")                                        \
	X(storage_mode, CHOICE, "0660", 0, 0, "0600|0640|0660",                                    \
	  "Mode of slab files and of all that is made beside them, whatever the umask; "           \
	  "directories of storages can be searched by those who may read.")                        \
	X(storage_roots, TEXT, "", 0, 4095, "",                                                    \
	  "Directories, separated by commas, that storages may lie below, after symbolic links; "  \
	  "empty = anywhere. Of storages of before, those elsewhere serve on, unchanged.")         \
	X(tokens_file, TEXT, "", 0, 4095, "",                                                      \
	  "File with one 'role tenant token' a line, role read, write or admin. Empty: every "     \
	  "caller is admin, and only loopback may be bound. SIGHUP reads it again.")               \
	X(audit_file, TEXT, "", 0, 4095, "",                                                       \
	  "Audit log: a JSON line for each administrative act and each refused access, appended; " \
	  "opened again on SIGHUP. Empty = none.")                                                 \
	X(tls_cert_file, TEXT, "", 0, 4095, "",                                                    \
	  "PEM file with the certificate of all ports, then those between it and the root: they "  \
	  "speak TLS 1.2 and 1.3 then, and nothing else. Empty = plain. SIGHUP reads it again; "   \
	  "open connections go on.")                                                               \
	X(tls_key_file, TEXT, "", 0, 4095, "", "PEM file with the key of tls_cert_file.")          \
	X(tls_client_ca_file, TEXT, "", 0, 4095, "",                                               \
	  "PEM file with the CAs of clients' certificates, whose names tokens_file gives roles; "  \
	  "who shows none needs a token. Empty = clients are not asked for any.")                  \
	X(tls_ca_file, TEXT, "", 0, 4095, "",                                                      \
	  "PEM file with the CAs to trust when this process calls others: fs-masters with https. " \
	  "Empty = $SSL_CERT_FILE, else the system's. It shows tls_cert_file to who asks.")        \
	X(owner_lease_ms, NUMBER, "5000", 1000, 60000, "ms",                                       \
	  "How long this manager owns the store without renewing: a standby takes over after it.") \
	X(partitions, NUMBER, "1", 1, 16, "",                                                      \
	  "Partitions of the store, each with its own lock and journal; a store keeps those it "   \
	  "has. Groups are spread over them.")                                                     \
	X(warm_standby, FLAG, "true", 0, 0, "",                                                    \
	  "While another manager owns the store: keep its state loaded here, and follow it. "      \
	  "Takes the memory of an owner.")                                                         \
	X(lease_default_ms, NUMBER, "10000", 1, SKV_MAX_LEASE_MS, "ms",                            \
	  "Lease of a lookup that names none.")                                                    \
	X(lease_max_ms, NUMBER, "60000", 1, SKV_MAX_LEASE_MS, "ms", "Longest lease of a lookup.")  \
	X(session_default_ms, NUMBER, "30000", 1, SKV_MAX_SESSION_MS, "ms",                        \
	  "Time to write for a start that names none, and between reserve and confirm of a page.") \
	X(session_max_ms, NUMBER, "600000", 1, SKV_MAX_SESSION_MS, "ms",                           \
	  "Longest time to write of a session.")                                                   \
	X(grace_ms, NUMBER, "2000", 0, 600000, "ms",                                               \
	  "How long slots of a failed session rest after its deadline; 60000 on 3FS.")             \
	X(max_sessions, NUMBER, "65536", 1, 16777216, "", "Sessions open at a time.")              \
	X(leased_percent, NUMBER, "90", 1, 100, "percent",                                         \
	  "Part of an instance's share that may be leased; the rest is for writers.")              \
	X(open_percent, NUMBER, "50", 1, 100, "percent",                                           \
	  "Part of the storages that open sessions may hold.")                                     \
	X(instance_idle_days, NUMBER, "0", 0, 36500, "days",                                       \
	  "Instances that hold no block, pin or session are dropped after so many days in which "  \
	  "no registration, lookup or start named them; 0 = never.")                               \
	X(free_percent, NUMBER, "2", 0, 50, "percent",                                             \
	  "Eviction keeps at most this much free ahead of need.")                                  \
	X(journal_limit, BYTES, "256M", 1 << 20, 1ull << 36, "bytes",                              \
	  "Bound of the journal; or a checkpoint's size, if that is more.")                        \
	X(memory_max, BYTES, "0", 0, 1ull << 50, "bytes",                                          \
	  "Memory that the manager may use: from 3/4 of it on new blocks replace old ones, from "  \
	  "7/8 on nothing is added. 0 = the limit of its control group, else none.")             \
	X(body_max, BYTES, "32M", 1024, 1ull << 30, "bytes", "Longest request body.")              \
	X(body_total_max, BYTES, "512M", 1024, 1ull << 40, "bytes",                                \
	  "Bytes held by all calls of all ports: bodies, decoded requests, unsent answers.")       \
	X(answer_max, BYTES, "128M", 65536, 1ull << 36, "bytes",                                   \
	  "Longest answer; what would be longer fails with too_large.")                            \
	X(min_rate, BYTES, "64K", 0, 1ull << 36, "bytes/s",                                        \
	  "Lowest rate of sending a body or reading an answer, over 5 s; 0 = no bound.")           \
	X(max_connections, NUMBER, "4096", 1, 1000000, "", "Connections at a time, of each port. " \
	  "All ports together: 'ulimit -n' less 256, which the store and the storages need.")      \
	X(max_connections_per_ip, NUMBER, "0", 0, 1000000, "",                                     \
	  "Connections at a time from one address, of each port; 0 = half of max_connections. "    \
	  "At most a quarter of what 'ulimit -n' allows. Behind a proxy set it to "                \
	  "max_connections: then addresses limit neither bodies nor wrong tokens either.")         \
	X(idle_timeout_s, NUMBER, "60", 1, 3600, "s",                                              \
	  "A connection that is idle, or too slow in sending its request or reading the answer, "  \
	  "is closed after this.")                                                                 \
	X(hold_ms, NUMBER, "3000", 0, 60000, "ms",                                                 \
	  "How long a call waits while the ownership moves to another manager or the store is "    \
	  "not to be reached, before it fails, or a pages call is answered as if nothing were "    \
	  "stored; 0 = at once.")                                                                  \
	X(forward, FLAG, "true", 0, 0, "",                                                         \
	  "While another manager owns the store: send calls on to it, and answer what it "         \
	  "answers. false: the answer is not_owner.")                                              \
	X(slow_ms, NUMBER, "200", 0, 3600000, "ms",                                                \
	  "Requests that take at least this long are logged; 0 = none are.")                       \
	X(log_level, CHOICE, "info", 0, 0, "error|warn|info|debug", "How much is logged.")         \
	X(log_format, CHOICE, "text", 0, 0, "text|json", "Form of a log line.")                    \
	X(log_file, TEXT, "", 0, 4095, "",                                                         \
	  "Log file, appended to and opened again on SIGHUP; empty = standard error.")             \
	X(metrics_open, FLAG, "false", 0, 0, "", "/metrics needs no token even where others do.")  \
	X(pages, FLAG, "true", 0, 0, "",                                                           \
	  "Serve the hf3fs metadata APIs of SGLang and vLLM on the HTTP port.")                    \
	X(strict_upstream, FLAG, "false", 0, 0, "",                                                \
	  "These APIs answer like SGLang's own server, 404 and 500 included.")                     \
	X(pages_lease_ms, NUMBER, "70000", 0, SKV_MAX_LEASE_MS, "ms",                              \
	  "Lease of pages that exists and get reported; 0 = none.")                                \
	X(pages_grace_ms, NUMBER, "60000", 0, 600000, "ms",                                        \
	  "How long a page that was not confirmed rests after its deadline: 3FS may retry its "    \
	  "write so long.")                                                                        \
	X(pages_file_prefix, TEXT, "", 0, 511, "",                                                 \
	  "file_path_prefix of SGLang's hf3fs configuration, as this host sees it; {tenant} "      \
	  "in it stands "                                                                          \
	  "for the tenant. A space whose file there is gone, was replaced or was cut loses its "   \
	  "keys. With pages_fs_master a path below its directory. Empty = files are not watched.") \
	X(pages_vllm_path, TEXT, "", 0, 511, "",                                                   \
	  "hf3fs_storage_path of vLLM, in the same way.")                                          \
	X(pages_fs_master, TEXT, "", 0, 2047, "",                                                  \
	  "URLs http://host:port/DIR of fs-masters that check these files, separated by commas; "  \
	  "empty = they lie on a mount here.")                                                     \
	X(compat, CHOICE, "off", 0, 0, "off|kvcm",                                                 \
	  "kvcm: also opens the four ports of Tair KVCache Manager, and begins with its storage "  \
	  "nfs_01 and group default. Its API is on the ports above in any case.")                  \
	X(kvcm_listen, TEXT, "", 0, 255, "",                                                       \
	  "Address or host name of the kvcm ports; empty = that of http_listen.")                  \
	X(kvcm_open, FLAG, "false", 0, 0, "",                                                      \
	  "The kvcm ports may be bound to any address without tokens, as that manager's are: "     \
	  "whoever reaches them may do everything.")                                               \
	X(kvcm_tls, FLAG, "true", 0, 0, "",                                                        \
	  "With tls_cert_file the kvcm ports speak TLS too; false: they stay plain, because many " \
	  "of its clients know no TLS.")                                                           \
	X(kvcm_ports, TEXT, "6381,6382,6491,6492", 7, 31, "",                                      \
	  "Ports of the meta service (gRPC, HTTP) and of the admin service (gRPC, HTTP); 0 = any " \
	  "free one, off = none. An admin port that is off or the same number: that of the meta "  \
	  "service. With kvcm_debug one more, 3000 above the HTTP port of the meta service.")      \
	X(kvcm_debug, FLAG, "false", 0, 0, "",                                                     \
	  "Serve fault injection, where the admin service is.")                                    \
	X(kvcm_node_id, TEXT, "", 0, 127, "",                                                      \
	  "Name of this manager in getClusterInfo; empty = host, port and random digits.")         \
	X(kvcm_admin_tokens, TEXT, "", 0, 4095, "",                                                \
	  "Tokens of role admin for the admin service, separated by commas; empty = those of "     \
	  "tokens_file.")                                                                          \
	X(kvcm_startup_config, TEXT, "", 0, 4095, "",                                              \
	  "JSON file with the storages and groups to begin with; empty = nfs_01 in storage_root "  \
	  "and the group default.")                                                                \
	X(kvcm_any_mount, FLAG, "false", 0, 0, "",                                                 \
	  "Storages of type ST_3FS may lie on mounts that are not 3FS, for tests.")                \
	X(kvcm_transfer_ms, NUMBER, "20000", 1000, SKV_MAX_LEASE_MS, "ms",                         \
	  "How long a transfer of a kvcm client may take: no slot that a query named is reused "   \
	  "so long, nor one of a session after its deadline.")                                     \
	X(kvcm_check_writes, FLAG, "true", 0, 0, "",                                               \
	  "Before a finish of a kvcm client commits blocks in a storage of type file: look "       \
	  "whether they were written, and refuse them if not. false: for rigs that write none.")   \
	X(kvcm_mounts, TEXT, "", 0, 4095, "",                                                      \
	  "Where directories of clients are on this host, 'theirs=here,...'; others are the same.")

#endif
