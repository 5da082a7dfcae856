/*
 * etcd_servers.h - real etcd servers for tests: a cluster of one or three members in a new folder,
 * on free ports of 127.0.0.1, which end with the test.
 *
 * SLABKV_TEST_ETCD names the program; by default it is the etcd of the PATH. One thread.
 */
#ifndef SKV_TESTS_ETCD_SERVERS_H
#define SKV_TESTS_ETCD_SERVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ETCD_MEMBERS 3u

struct etcd_servers {
	char dir[256];
	uint32_t n;
	bool tls; /* with certificates of certs_make; clients must show one */
	const char *options; /* further ones of each server; "" = none */
	const char *wrapper; /* runs each server; "" = nothing */
	uint16_t client[ETCD_MEMBERS], peer[ETCD_MEMBERS];
	pid_t pid[ETCD_MEMBERS]; /* 0: not running */
};

/* Is there an etcd? Else prints why the test is skipped. */
bool etcd_is_here(void);
/* Fails the test if they do not start. `n`: 1 or 3. */
void etcd_start(struct etcd_servers *s, uint32_t n, bool tls, const char *options);
/* Without TLS, in a new folder of `base`. */
void etcd_start_in(struct etcd_servers *s, const char *base, uint32_t n, const char *wrapper,
		   const char *options);
/* Starts member i again, with its data. */
void etcd_start_one(struct etcd_servers *s, uint32_t i);
void etcd_signal(const struct etcd_servers *s, uint32_t i, int sig);
void etcd_kill(struct etcd_servers *s, uint32_t i);
/* Ends them, and removes the folder. */
void etcd_stop(struct etcd_servers *s);
/* "127.0.0.1:port,..." of all members, beginning with `first`. */
const char *etcd_endpoints(const struct etcd_servers *s, uint32_t first);
/* Path of a file in the folder: ca.crt, client.crt, client.key, other.crt... */
const char *etcd_file(const struct etcd_servers *s, const char *name);
/* A port that nothing listens on. */
uint16_t etcd_free_port(void);

#endif
