/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of an RDMA port and of its network interface. See port.h. */
#include "common/port/port.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"

#define NAME_BYTES 64
#define TEXT_BYTES 128
#define GIDS_MAX 256

struct file {
	char name[NAME_BYTES];
	int fd;
	bool of_netdev;
};

struct port {
	char device[NAME_BYTES], netdev[NAME_BYTES];	/* netdev "": no interface */
	unsigned number;
	bool software;
	int rate, speed;		/* descriptors; -1: not open */
	unsigned n;
	struct file files[PORT_FILES_MAX];
};

/* Does not block on a FIFO in place of a file. */
static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Reads the first line of the file, without its newline. False if there is none, or if it does not fit. */
static bool read_text(int fd, char text[TEXT_BYTES])
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, TEXT_BYTES, 0);

	if (n <= 0 || n == TEXT_BYTES)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

static bool read_path(const char *path, char text[TEXT_BYTES])
{
	int fd = open_file(path);
	bool ok = read_text(fd, text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Accepts digits only: no sign, and nothing else that strtoll accepts besides them. */
static bool read_number(int fd, int64_t *out)
{
	char text[TEXT_BYTES], *end;
	long long v;

	if (!read_text(fd, text) || !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	v = strtoll(text, &end, 10);
	*out = v;
	return errno == 0 && *end == '\0';
}

static bool is_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	return *name && *name != '.' && strlen(name) < NAME_BYTES && name[strspn(name, allowed)] == '\0';
}

static void add_file(struct port *p, const char *dir, const char *name, bool of_netdev)
{
	struct file *f = &p->files[p->n];
	char path[PATH_MAX];

	if (p->n == PORT_FILES_MAX - 2 || !is_name(name))	/* 2: rate and speed */
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f->fd = open_file(path);
	if (f->fd < 0)
		return;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->of_netdev = of_netdev;
	p->n++;
}

/* Skips `lifespan`, which is a setting: how long the kernel caches the device's values, in ms. */
static void add_folder(struct port *p, const char *port_dir, const char *name)
{
	char dir[PATH_MAX];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/%s", port_dir, name);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, "lifespan") != 0)
			add_file(p, dir, e->d_name, false);
	if (d)
		closedir(d);
}

/* Formats a GID as the kernel does; IPv4 is mapped into IPv6 (RoCE, annex 17 of the InfiniBand specification). */
static void gid_text(const struct addr *a, char text[TEXT_BYTES])
{
	uint8_t b[16];

	addr_to_bytes(a, b);
	for (int i = 0; i < 8; i++)
		snprintf(text + 5 * i, TEXT_BYTES - 5 * (size_t)i, "%02x%02x%s", b[2 * i], b[2 * i + 1], i < 7 ? ":" :
			 "");
}

/* Finds the network interface of the address's GID, or of the first GID if the address has none. */
static void find_netdev(struct port *p, const char *port_dir, const struct addr *addr)
{
	char wanted[TEXT_BYTES], text[TEXT_BYTES], path[PATH_MAX];
	unsigned at = 0;

	gid_text(addr, wanted);
	for (unsigned i = 0; i < GIDS_MAX; i++) {
		snprintf(path, sizeof(path), "%s/gids/%u", port_dir, i);
		if (!read_path(path, text))
			break;
		if (strcmp(text, wanted) == 0) {
			at = i;
			break;
		}
	}
	snprintf(path, sizeof(path), "%s/gid_attrs/ndevs/%u", port_dir, at);
	if (read_path(path, text) && is_name(text))
		snprintf(p->netdev, sizeof(p->netdev), "%.*s", NAME_BYTES - 1, text);
}

static void add_netdev(struct port *p, const char *sysfs)
{
	static const char *const names[] = { "rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "rx_errors",
					     "tx_errors",
		"rx_dropped", "tx_dropped" };
	char dir[PATH_MAX];

	if (!p->netdev[0])
		return;
	snprintf(dir, sizeof(dir), "%s/class/net/%s/statistics", sysfs, p->netdev);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		add_file(p, dir, names[i], true);
	snprintf(dir, sizeof(dir), "%s/class/net/%s/speed", sysfs, p->netdev);
	p->speed = open_file(dir);
}

int port_open(const char *sysfs, const struct port_id *id, struct port **out)
{
	struct port *p = calloc(1, sizeof(*p));
	char dir[512], path[PATH_MAX];

	*out = p;
	if (!p)
		return -ENOMEM;
	snprintf(p->device, sizeof(p->device), "%s", id->device);
	p->number = id->number;
	p->software = id->software;
	p->rate = p->speed = -1;
	if (!is_name(p->device))
		return 0;
	snprintf(dir, sizeof(dir), "%.256s/class/infiniband/%s/ports/%u", sysfs, p->device, p->number);
	find_netdev(p, dir, &id->addr);
	add_netdev(p, sysfs);
	add_folder(p, dir, "hw_counters");
	add_folder(p, dir, "counters");
	snprintf(path, sizeof(path), "%s/rate", dir);
	p->rate = open_file(path);
	return 0;
}

unsigned port_files(const struct port *p)
{
	return p->n + (p->rate >= 0) + (p->speed >= 0);
}

void port_close(struct port *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->n; i++)
		close(p->files[i].fd);
	if (p->rate >= 0)
		close(p->rate);
	if (p->speed >= 0)
		close(p->speed);
	free(p);
}

/* Parses "100 Gb/sec (4X EDR)", as printed by rate_show() of drivers/infiniband/core/sysfs.c. */
static void read_rate(const struct port *p, double *bits_per_s, double *lanes)
{
	char text[TEXT_BYTES], unit;
	double gigabits;
	int width;

	*bits_per_s = *lanes = NAN;
	if (!read_text(p->rate, text))
		return;
	if (sscanf(text, "%20lf Gb/sec (%4dX%c", &gigabits, &width, &unit) != 3 || !(gigabits > 0 && gigabits < 1e6))
		return;
	*bits_per_s = gigabits * 1e9;
	*lanes = width > 0 && width <= 64 ? width : NAN;
}

/* The file is in Mbit/s; an interface with unknown speed reports -1, or a read error. */
static double read_speed(int file)
{
	int64_t megabits;

	return read_number(file, &megabits) && megabits > 0 && megabits < INT32_MAX ? (double)megabits * 1e6 : NAN;
}

double port_netdev_bits_per_s(const char *sysfs, const char *netdev)
{
	char path[PATH_MAX];
	double bits_per_s;
	int file;

	snprintf(path, sizeof(path), "%s/class/net/%s/speed", sysfs, netdev);
	file = open_file(path);
	bits_per_s = read_speed(file);
	if (file >= 0)
		close(file);
	return bits_per_s;
}

static json_t *numbers(const struct port *p, bool of_netdev)
{
	json_t *o = json_object();
	int64_t v;

	for (unsigned i = 0; i < p->n; i++)
		if (p->files[i].of_netdev == of_netdev && read_number(p->files[i].fd, &v))
			json_object_set_new(o, p->files[i].name, json_integer(v));
	return o;
}

json_t *port_read(const struct port *p)
{
	double link, lanes;

	read_rate(p, &link, &lanes);
	return json_pack("{s:s, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "device", p->device, "port", (int)p->number,
			 "software", p->software, "netdev", p->netdev[0] ? json_string(p->netdev) : json_null(),
			 "link_bits_per_s", json_number(link), "link_lanes", json_whole(lanes), "netdev_bits_per_s",
			 json_number(read_speed(p->speed)), "counters", numbers(p, false), "netdev_counters",
			 numbers(p, true));
}

static double amount_of(const json_t *reading, const char *name)
{
	double v = json_number_value(json_object_get(reading, name));

	return v > 0 && v < 1e18 ? v : NAN;
}

double port_line_bits_per_s(const json_t *reading, const char **source)
{
	double netdev = amount_of(reading, "netdev_bits_per_s"), link = amount_of(reading, "link_bits_per_s");
	bool software = json_is_true(json_object_get(reading, "software"));

	*source = isfinite(netdev) ? "netdev" : isfinite(link) && !software ? "rdma_port" : NULL;
	return isfinite(netdev) ? netdev : software ? NAN : link;
}

static json_t *calendar_json(void)
{
	char seconds[32], text[48];
	struct timespec t;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03ldZ", seconds, t.tv_nsec / 1000000);
	return json_string(text);
}

json_t *port_read_all(struct port *const *ports, uint32_t n)
{
	json_t *a = json_array(), *at = calendar_json();
	uint64_t now = clock_now_ns();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(a, port_read(ports[i]));
	return json_pack("{s:o, s:I, s:o}", "read_at", at, "read_ns", (json_int_t)now, "ports", a);
}
