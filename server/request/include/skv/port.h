/* port.h - the ports of a transport: address, API, and limit of clients. */
#ifndef SKV_PORT_H
#define SKV_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/api.h>

struct skv_port_options {
	struct skv_apis apis;       /* APIs to serve, each one of the service's */
	const char *listen;         /* address or host name; default "127.0.0.1" */
	uint16_t port;              /* 0 = any free port */
	bool tls;                   /* with the process's certificates: skv/tls.h */
	bool open;                  /* any address and any Host header, with or without tokens */
	const char *host_param;     /* for messages: "http_listen" */
	const char *port_param;     /* "http_port" */
	const char *port_option;    /* "--http-port" */
	const char *socket_name;    /* name of an inherited socket: "http" */
	uint32_t threads;           /* 0 = one per core */
	uint32_t max_connections;
	uint32_t max_connections_per_ip; /* 0 = no separate limit */
	uint32_t max_streams;       /* gRPC: concurrent calls per connection */
	/* HTTP, inherited socket: clients wait until skv_httpd_open, but at most this long. */
	uint32_t hold_ms;
	uint32_t idle_timeout_ms;   /* idle or too slow connections and calls end after this */
};

#endif
