/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of rdma_server and the sizes that follow from them. Read-only while shards run. */
#ifndef RAMPART_SERVER_CONFIG_H
#define RAMPART_SERVER_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/opts.h"
#include "common/base/rails.h"
#include "common/rdma/tuning.h"
#include "common/sock/sock.h"
#include "common/sizing/sizes.h"
#include "common/wire/transport.h"

/* A device and the address that clients reach it at. */
struct server_rail {
	char device[RAIL_NAME_BYTES];	/* from --device; "": the device with the address, or the first active one */
	struct addr addr;		/* port 0; len 0: not given, so an address of the device is used */
};

struct server_config {
	/* options */
	struct opt_config config;
	const char *bind;	/* list of addresses; NULL: those of the devices */
	uint64_t tls_port;
	uint64_t rdma_port;	/* port of the first shard; 0: the system chooses */
	uint64_t threads;	/* shards of each rail */
	uint64_t max_clients;	/* of each rail */
	const char *cert, *key, *ca;
	int client_auth;	/* enum client_auth */
	const char *crl;	/* NULL: no list */
	bool watch_certs;
	const char *allow_names;	/* tls_names.h; NULL: all */
	int core_dumps;		/* 0 off, 1 on */
	int seccomp;		/* 0 off, 1 on */
	uint64_t message_bytes;
	uint64_t credits;	/* per client, at most */
	uint64_t region_bytes;	/* 0: no one-sided regions */
	int poll;		/* enum poll_mode */
	uint64_t spin_ns;
	const char *tcp_text;	/* --tcp; NULL: default */
	const char *transports;	/* list of names; NULL: all */
	const char *connect;	/* list of names; NULL: all */
	bool allow_redirect;	/* without rdmacm, let clients name another RDMA address than TLS came from */
	const char *device;	/* list of names; NULL: those that have the addresses, or the first active one */
	int log_level, log_format;
	const char *metrics;	/* [ADDR:]PORT; NULL: none */
	uint64_t stats_interval_ns;	/* 0: none */
	uint64_t handshake_timeout_ns;
	uint64_t session_timeout_ns;
	uint64_t probe_interval_ns;	/* 0: never */
	uint64_t drain_timeout_ns;
	uint64_t max_handshakes;	/* per shard */
	uint64_t max_per_address;	/* one limit each for TLS connections, clients, control sessions; 0: none */
	int tls_resume;		/* 0 off, 1 on */
	uint64_t ticket_rotation_ns;
	bool verify;
	int windows;		/* 0 off, 1 on */
	struct tuning tuning;

	/* derived by server_config_check */
	struct addr metrics_addr;	/* len 0: none */
	struct sock_config sock;
	uint32_t transport_mask;	/* bits 1 << enum transport of the transports served */
	uint32_t connect_mask;	/* bits 1 << enum connect_way, over RDMA */
	struct server_rail rails[RAILS_MAX];
	uint32_t n_rails;

	/* derived by limits_derive; the same on all rails */
	uint32_t shard_clients;		/* maximum clients of a shard */
	uint32_t shard_conns;		/* connection objects of a shard: clients and handshakes */
	uint32_t shard_waiting;		/* maximum accepted sockets of a shard that wait for room */
	uint32_t shard_qps;
	uint32_t recv_depth;		/* receive buffers of a shard */
	uint32_t spare_bufs;
	uint32_t sq_depth;
	uint32_t inline_bytes;
	enum ibv_mtu path_mtu;		/* upper limit; 0: the path's own */
	char cert_path[PATH_MAX], key_path[PATH_MAX], ca_path[PATH_MAX];
};

enum client_auth { CLIENT_AUTH_NONE, CLIENT_AUTH_REQUIRE };

extern const struct opts_spec server_options;

void server_config_defaults(struct server_config *c);

/* Checks options that depend on each other. 0, or -EINVAL with a line in `err`. */
int server_config_check(struct server_config *c, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Maximum number of TLS connections, of clients and of control sessions of one address: --max-per-address. */
static inline uint32_t server_config_per_address(const struct server_config *c)
{
	return c->max_per_address ? (uint32_t)c->max_per_address : UINT32_MAX;
}

/* Maximum number of addresses that a shard counts at once. The 1: a new socket, until another is closed for it. */
static inline uint32_t server_config_addresses(const struct server_config *c)
{
	return c->shard_conns + c->shard_waiting + 1 + (uint32_t)c->max_handshakes;
}

static inline bool server_config_serves(const struct server_config *c, enum transport t)
{
	return c->transport_mask >> t & 1;
}

/* True if RDMA clients may connect like this. */
static inline bool server_config_connects(const struct server_config *c, enum connect_way m)
{
	return server_config_serves(c, TRANSPORT_RDMA) && (c->connect_mask >> m & 1);
}

/* True if clients may connect over TCP or TLS instead of RDMA. */
static inline bool server_config_serves_sockets(const struct server_config *c)
{
	return server_config_serves(c, TRANSPORT_TCP) || server_config_serves(c, TRANSPORT_TLS);
}

/* Number of shards on all rails. In arrays of shards those of the first rail come first. */
static inline uint32_t server_config_shards(const struct server_config *c)
{
	return (uint32_t)c->threads * c->n_rails;
}

#endif
