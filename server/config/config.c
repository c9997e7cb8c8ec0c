/* SPDX-License-Identifier: BSD-2-Clause */
/* Derives settings from rdma_server's options, and checks them against each other. No I/O except interface indices. */
#include "server/config/config.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "common/base/paths.h"
#include "common/host/place.h"
#include "common/metrics/exporter.h"
#include "common/tls/tls_names.h"

void server_config_defaults(struct server_config *c)
{
	memset(c, 0, sizeof(*c));
	opts_defaults(&server_options, c);
	c->threads = place_threads();
	c->n_rails = 1;
	c->transport_mask = TRANSPORTS_ALL;
	c->connect_mask = CONNECTS_ALL;
	tuning_defaults(&c->tuning);
}

static int file_or_default(const char *given, const char *name, char out[PATH_MAX])
{
	if (!given)
		return path_of_certificate(name, out, PATH_MAX);
	return snprintf(out, PATH_MAX, "%s", given) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Replaces the interface name of a link-local address (after the %) by its index: addr_parse knows only indices. */
static const char *with_interface(const char *text, char *out, size_t size)
{
	const char *name = strchr(text, '%');
	unsigned index = name ? if_nametoindex(name + 1) : 0;

	if (!index)
		return text;
	snprintf(out, size, "%.*s%%%u", (int)(name - text), text, index);
	return out;
}

/* Parses the address of rail `i`, which must differ from those of the rails before it. */
static int take_addr(struct server_config *c, uint32_t i, const char *text, char *err, size_t err_size)
{
	struct addr *a = &c->rails[i].addr;
	char with_index[RAIL_NAME_BYTES + 16];

	if (addr_parse(with_interface(text, with_index, sizeof(with_index)), 0, a)) {
		snprintf(err, err_size, "--bind: '%s' is not an IPv4 or IPv6 address", text);
		return -EINVAL;
	}
	if (addr_is_any(a)) {
		snprintf(err, err_size, "--bind: %s is not allowed; RDMA needs the address of one device%s", text,
			 server_config_serves(c, TRANSPORT_RDMA) ? "" :
			 ", and without --bind all addresses are served");
		return -EINVAL;
	}
	for (uint32_t j = 0; j < i; j++)
		if (addr_same_host(&c->rails[j].addr, a)) {
			snprintf(err, err_size, "--bind: %s is given twice; allowed: a different address for "
				 "each device", text);
			return -EINVAL;
		}
	return 0;
}

static int check_rails(struct server_config *c, char *err, size_t err_size)
{
	struct rail_names devices = { .n = 0 }, addrs = { .n = 0 };
	int ret = c->device ? rails_split("device", c->device, &devices, err, err_size) : 0;

	if (!ret && c->bind)
		ret = rails_split("bind", c->bind, &addrs, err, err_size);
	if (ret)
		return ret;
	if (devices.n && addrs.n && devices.n != addrs.n) {
		snprintf(err, err_size, "--device and --bind: the lists have %u and %u entries; allowed: an address "
			 "for each device, in the same order", devices.n, addrs.n);
		return -EINVAL;
	}
	memset(c->rails, 0, sizeof(c->rails));
	c->n_rails = MAX(MAX(devices.n, addrs.n), 1);
	for (uint32_t i = 0; i < devices.n; i++)
		memcpy(c->rails[i].device, devices.name[i], RAIL_NAME_BYTES);
	for (uint32_t i = 0; i < addrs.n && !ret; i++)
		ret = take_addr(c, i, addrs.name[i], err, err_size);
	return ret;
}

static int check_ports(const struct server_config *c, char *err, size_t err_size)
{
	uint32_t shards = server_config_shards(c);

	if (!c->rdma_port || !server_config_connects(c, CONNECT_CM) || c->rdma_port + shards - 1 <= 65535)
		return 0;
	snprintf(err, err_size, "--rdma-port: %llu and --threads %llu%s need ports above 65535; "
		 "allowed: 1 to %u, or 0", (unsigned long long)c->rdma_port,
		 (unsigned long long)c->threads, c->n_rails > 1 ? " on each rail" : "", 65536 - shards);
	return -EINVAL;
}

/* Without RDMA the server needs no device, and it has neither regions nor windows. */
static int check_without_rdma(struct server_config *c, char *err, size_t err_size)
{
	if (server_config_serves(c, TRANSPORT_RDMA))
		return 0;
	if (c->device || c->connect || c->allow_redirect) {
		snprintf(err, err_size, "--%s: cannot be combined with --transports %s, which has no rdma",
			 c->device ? "device" : c->connect ? "connect" : "allow-redirect", c->transports);
		return -EINVAL;
	}
	c->region_bytes = 0;
	c->windows = 0;
	return 0;
}

int server_config_check(struct server_config *c, char *err, size_t err_size)
{
	int ret = 0;

	if (c->transports)
		ret = transports_parse("transports", transport_names, c->transports, &c->transport_mask, err, err_size);
	if (!ret && c->connect)
		ret = transports_parse("connect", connect_way_names, c->connect, &c->connect_mask, err, err_size);
	if (!ret)
		ret = tcp_parse(c->tcp_text, &c->sock.tcp, err, err_size);
	c->sock.pinned_max = (uint32_t)c->credits;
	if (!ret)
		ret = check_without_rdma(c, err, err_size);
	if (!ret)
		ret = check_rails(c, err, err_size);
	if (!ret)
		ret = check_ports(c, err, err_size);
	if (ret)
		return ret;
	if (file_or_default(c->cert, "server.pem", c->cert_path) ||
	    file_or_default(c->key, "server.key", c->key_path) ||
	    file_or_default(c->ca, "ca.pem", c->ca_path)) {
		snprintf(err, err_size, "--cert, --key, --ca: a path is too long");
		return -EINVAL;
	}
	ret = tls_names_check("allow-names", c->allow_names, err, err_size);
	if (!ret && c->metrics)
		ret = exporter_parse(c->metrics, &c->metrics_addr, err, err_size);
	if (ret)
		return ret;
	return tuning_check(&c->tuning, err, err_size);
}
