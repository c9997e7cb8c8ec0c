/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding and describing RDMA devices. Called at start, not on any hot path. */
#include "common/rdma/dev.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "common/host/place.h"
#include "common/rdma/cm.h"

#define GIDS_MAX 256

int dev_count(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (!list)
		return 0;
	ibv_free_device_list(list);
	return n;
}

int dev_name(unsigned i, char *out, size_t size)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	bool found = list && i < (unsigned)n;

	if (found)
		snprintf(out, size, "%s", ibv_get_device_name(list[i]));
	if (list)
		ibv_free_device_list(list);
	return found ? 0 : -ENODEV;
}

static bool is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static bool port_is_active(struct ibv_context *ctx, uint32_t port)
{
	struct ibv_port_attr attr;

	return ibv_query_port(ctx, (uint8_t)port, &attr) == 0 && attr.state == IBV_PORT_ACTIVE;
}

/* The best address in the GID tables of the active ports: IPv4 first, else global IPv6. */
static bool addr_from_gids(struct ibv_context *ctx, struct addr *out)
{
	struct ibv_gid_entry gids[GIDS_MAX];
	ssize_t n = ibv_query_gid_table(ctx, gids, GIDS_MAX, 0);
	bool found = false;

	for (ssize_t i = 0; i < n; i++) {
		struct addr a;

		if (gids[i].gid_type != IBV_GID_TYPE_ROCE_V2 || is_link_local(&gids[i].gid) ||
		    !port_is_active(ctx, gids[i].port_num))
			continue;
		addr_from_bytes(gids[i].gid.raw, 0, &a);
		if (!found || a.ss.ss_family == AF_INET)
			*out = a;
		found = true;
		if (a.ss.ss_family == AF_INET)
			break;
	}
	return found;
}

int dev_local_addr(const char *name, struct addr *out, char *err, size_t err_size)
{
	int n = 0;
	bool named = false, found = false;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && !found; i++) {
		struct ibv_context *ctx;

		if (name && strcmp(name, ibv_get_device_name(list[i])) != 0)
			continue;
		named = true;
		ctx = ibv_open_device(list[i]);
		found = ctx && addr_from_gids(ctx, out);
		if (ctx)
			ibv_close_device(ctx);
	}
	if (list)
		ibv_free_device_list(list);
	if (found)
		return 0;
	if (!list || n == 0)
		snprintf(err, err_size, "no RDMA device on this machine; make a software one with "
			 "`scripts/softroce up` (root) or run in a micro-VM with `scripts/softroce vm`");
	else if (name && !named)
		snprintf(err, err_size, "--device %s: no such RDMA device; `ibv_devices` lists them", name);
	else
		snprintf(err, err_size, "%s%s: no active port with an IP address; bring the network "
			 "interface up and give it an address (`ibv_devinfo`, `ip addr`), or give "
			 "rdma_server an address with --bind",
			 name ? "RDMA device " : "the RDMA devices", name ? name : " here");
	return -ENODEV;
}

int dev_source_addr(const struct addr *peer, struct addr *out)
{
	struct addr with_port = *peer;
	int ret, fd = socket(peer->ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (addr_port(&with_port) == 0)
		addr_set_port(&with_port, 9);
	/* Connecting a datagram socket only asks the routing table. */
	ret = connect(fd, (struct sockaddr *)&with_port.ss, with_port.len) ? -errno : addr_of_socket(fd, out);
	close(fd);
	if (!ret)
		addr_set_port(out, 0);
	return ret;
}

static int bind_anchor(const struct addr *local, struct dev *d)
{
	struct addr a = *local;
	int ret = cm_channel_new(&d->channel);

	if (!ret)
		ret = cm_id_new(d->channel, NULL, &d->anchor);
	if (ret)
		return ret;
	addr_set_port(&a, 0);
	if (rdma_bind_addr(d->anchor, (struct sockaddr *)&a.ss))
		return -errno;
	d->ctx = d->anchor->verbs;
	d->port_num = d->anchor->port_num;
	return d->ctx ? 0 : -ENODEV;
}

static void drop_anchor(struct dev *d)
{
	cm_id_destroy(d->anchor);
	cm_channel_free(d->channel);
	d->anchor = NULL;
	d->channel = NULL;
}

static bool find_port(struct ibv_context *ctx, const struct addr *local, uint8_t *port)
{
	struct ibv_gid_entry gids[GIDS_MAX];
	ssize_t n = ibv_query_gid_table(ctx, gids, GIDS_MAX, 0);
	struct addr a;

	for (ssize_t i = 0; i < n; i++) {
		addr_from_bytes(gids[i].gid.raw, 0, &a);
		if (!addr_same_host(&a, local))
			continue;
		*port = (uint8_t)gids[i].port_num;
		return true;
	}
	return false;
}

/* Without librdmacm, which cannot be used where there is no /dev/infiniband/rdma_cm, and in a container whose addresses
 * the CM does not know: opens the device that has the address in its GID table. False if there is none. */
static bool open_by_gid(const struct addr *local, struct dev *d)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && !d->ctx; i++) {
		struct ibv_context *ctx = ibv_open_device(list[i]);

		if (ctx && find_port(ctx, local, &d->port_num))
			d->ctx = ctx;
		else if (ctx)
			ibv_close_device(ctx);
	}
	if (list)
		ibv_free_device_list(list);
	return d->ctx;
}

static void driver_name(const struct dev *d, char *out, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX + 32];
	char link[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/driver", d->name);
	n = readlink(path, link, sizeof(link) - 1);
	if (n > 0) {
		link[n] = '\0';
		snprintf(out, size, "%.63s", strrchr(link, '/') ? strrchr(link, '/') + 1 : link);
		return;
	}
	/* Software devices have no bus device; the file `parent` of a Soft-RoCE device names its network interface. */
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", d->name);
	snprintf(out, size, "%s", access(path, F_OK) == 0 ? "rdma_rxe" : "unknown");
}

static bool driver_tells_last_wqe(const struct dev *d)
{
	char driver[64];

	driver_name(d, driver, sizeof(driver));
	return strcmp(driver, "mlx5_core") == 0 || strcmp(driver, "mlx4_core") == 0;
}

static bool better_gid(const struct ibv_gid_entry *e, const struct ibv_gid_entry *than)
{
	return !than || (e->gid_type == IBV_GID_TYPE_ROCE_V2 && than->gid_type != IBV_GID_TYPE_ROCE_V2);
}

/* On InfiniBand, whose GIDs are no IP addresses, the first entry. */
static void find_gid(struct dev *d)
{
	struct ibv_gid_entry gids[GIDS_MAX], *found = NULL;
	ssize_t n = ibv_query_gid_table(d->ctx, gids, GIDS_MAX, 0);
	struct addr a;

	for (ssize_t i = 0; i < n; i++) {
		addr_from_bytes(gids[i].gid.raw, 0, &a);
		if (gids[i].port_num == d->port_num && better_gid(&gids[i], found) &&
		    (!dev_ethernet_port(d) || addr_same_host(&a, &d->addr)))
			found = &gids[i];
	}
	if (!found)
		return;
	d->gid = found->gid;
	d->gid_index = (uint8_t)found->gid_index;
}

bool dev_has_gid(const struct dev *d)
{
	static const union ibv_gid none;

	return memcmp(&d->gid, &none, sizeof(none)) != 0;
}

static int query(struct dev *d, const struct addr *local)
{
	int ret;

	d->addr = *local;
	addr_set_port(&d->addr, 0);
	snprintf(d->name, sizeof(d->name), "%s", ibv_get_device_name(d->ctx->device));
	d->tells_last_wqe = driver_tells_last_wqe(d);
	ret = ibv_query_device(d->ctx, &d->attr);
	if (!ret)
		ret = ibv_query_port(d->ctx, d->port_num, &d->port);
	if (!ret)
		find_gid(d);
	return -ret;
}

int dev_open(const struct addr *local, const char *name, bool needs_cm, struct dev *out, char *err,
	     size_t err_size)
{
	char text[ADDR_TEXT_MAX];
	int ret;

	memset(out, 0, sizeof(*out));
	addr_host_text(local, text);
	ret = bind_anchor(local, out);
	if (ret)
		drop_anchor(out);
	if (ret && (needs_cm || !open_by_gid(local, out))) {
		if (ret == -EADDRNOTAVAIL)
			snprintf(err, err_size, "address %s is not this machine's, or not an RDMA device's; "
				 "`rdma link` shows the devices' interfaces, `ip addr` their addresses", text);
		else if (ret == -ENODEV)
			snprintf(err, err_size, "no RDMA device has address %s; `rdma link` shows the "
				 "devices' interfaces, `scripts/softroce` makes a software device", text);
		else
			snprintf(err, err_size, "cannot open the RDMA device of %s: %s; are rdma_ucm and "
				 "ib_uverbs loaded and /dev/infiniband accessible? --connect oob needs no rdma_ucm",
				 text, strerror(-ret));
		return ret;
	}
	ret = query(out, local);
	if (ret) {
		snprintf(err, err_size, "cannot query RDMA device %s: %s", out->name, strerror(-ret));
		goto err_close;
	}
	if (name && strcmp(name, out->name) != 0) {
		snprintf(err, err_size, "--device %s: address %s belongs to %s; name that device or "
			 "another address", name, text, out->name);
		ret = -ENODEV;
		goto err_close;
	}
	return 0;

err_close:
	dev_close(out);
	return ret;
}

void dev_close(struct dev *d)
{
	if (d->anchor)
		drop_anchor(d);
	else if (d->ctx)
		ibv_close_device(d->ctx);
	memset(d, 0, sizeof(*d));
}

static bool gid_at(const struct dev *d, uint32_t index, struct ibv_gid_entry *out)
{
	struct ibv_gid_entry gids[GIDS_MAX];
	ssize_t n = ibv_query_gid_table(d->ctx, gids, GIDS_MAX, 0);

	for (ssize_t i = 0; i < n; i++)
		if (gids[i].gid_index == index && gids[i].port_num == d->port_num) {
			*out = gids[i];
			return true;
		}
	return false;
}

int dev_use_gid(struct dev *d, uint32_t index, char *err, size_t err_size)
{
	char name[IBV_SYSFS_NAME_MAX], text[ADDR_TEXT_MAX], other[ADDR_TEXT_MAX];
	bool has_cm = d->anchor;
	struct ibv_gid_entry gid;
	struct addr a;

	if (!dev_ethernet_port(d)) {
		snprintf(err, err_size,
			 "--gid-index: the link of device %s is InfiniBand, whose GIDs are not IP addresses; "
			 "omit --gid-index", d->name);
		return -EAFNOSUPPORT;
	}
	if (!gid_at(d, index, &gid)) {
		snprintf(err, err_size,
			 "--gid-index: device %s has no entry %u; see /sys/class/infiniband/%s/ports/%u/gids for "
			 "its entries", d->name, index, d->name, d->port_num);
		return -EINVAL;
	}
	addr_from_bytes(gid.gid.raw, 0, &a);
	addr_set_scope(&a, gid.ndev_ifindex);
	if (addr_same_host(&a, &d->addr))
		return 0;
	if (a.ss.ss_family != d->addr.ss.ss_family) {
		snprintf(err, err_size,
			 "--gid-index: entry %u of device %s is %s, which cannot reach peers in the "
			 "address family of %s; name an entry of that family, or another address", index, d->name,
			 addr_host_text(&a, text), addr_host_text(&d->addr, other));
		return -EINVAL;
	}
	memcpy(name, d->name, sizeof(name));
	dev_close(d);
	return dev_open(&a, name, has_cm, d, err, err_size);
}

int dev_fit_fabric(struct dev *d, const struct cm_fabric *f, char *err, size_t err_size)
{
	if (f->has_service_level && f->service_level > 7 && dev_ethernet_port(d)) {
		snprintf(err, err_size,
			 "--service-level: %u is not allowed on device %s, whose link is Ethernet; allowed: 0 to 7",
			 f->service_level, d->name);
		return -EINVAL;
	}
	return f->has_gid_index ? dev_use_gid(d, f->gid_index, err, err_size) : 0;
}

bool dev_is_software(const struct dev *d)
{
	char driver[64];

	driver_name(d, driver, sizeof(driver));
	return strcmp(driver, "rdma_rxe") == 0 || strcmp(driver, "siw") == 0;
}

int dev_numa_node(const struct dev *d)
{
	return !*d->name ? PLACE_NO_NODE : place_node_of_rdma(PLACE_SYS, d->name);
}

/* In-tree drivers of the kernel have no version. */
static json_t *driver_version(const char *driver)
{
	char path[IBV_SYSFS_PATH_MAX], text[64] = "";
	json_t *version = NULL;
	FILE *f;

	snprintf(path, sizeof(path), PLACE_SYS "/module/%s/version", driver);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f))
		version = json_stringn(text, strcspn(text, "\n"));
	if (f)
		fclose(f);
	return version ? version : json_null();
}

json_t *dev_json(const struct dev *d)
{
	char driver[64], text[ADDR_TEXT_MAX];
	int node;

	if (!*d->name)
		return json_null();
	node = dev_numa_node(d);
	driver_name(d, driver, sizeof(driver));
	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:i, s:i, s:b,"
			 " s:{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}}",
			 "name", d->name, "driver", driver, "driver_version", driver_version(driver),
			 "numa_node", node == PLACE_NO_NODE ? json_null() : json_integer(node), "firmware",
			 d->attr.fw_ver,
			 "link", d->port.link_layer == IBV_LINK_LAYER_ETHERNET ? "ethernet" : "infiniband",
			 "address", addr_host_text(&d->addr, text),
			 "path_mtu_bytes", 128 << d->port.active_mtu,
			 "port", d->port_num, "is_software", dev_is_software(d), "limits",
			 "max_qp", d->attr.max_qp, "max_qp_wr", d->attr.max_qp_wr,
			 "max_cq", d->attr.max_cq, "max_cqe", d->attr.max_cqe,
			 "max_mr", d->attr.max_mr, "max_mw", d->attr.max_mw,
			 "max_srq", d->attr.max_srq, "max_srq_wr", d->attr.max_srq_wr,
			 "max_pd", d->attr.max_pd);
}

bool dev_has_atomics(const struct dev *d)
{
	return d->attr.atomic_cap != IBV_ATOMIC_NONE;
}
