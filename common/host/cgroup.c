/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits and figures of control groups. See cgroup.h. */
#include "common/host/cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_at.h"
#include "common/host/proc_text.h"

#define LINE_MAX_BYTES	 8192	/* longer lines of mountinfo are skipped: they are of other mounts */
#define FILE_MAX_BYTES	 16384
#define NO_LIMIT_BYTES	 0x1p60	/* version 1 writes "no limit" as a number above this */

/* Reads the file into `text`, whose last byte stays free. False if it cannot be read or does not fit. */
static bool read_file(int fd, char *text, size_t size)
{
	size_t used = 0;
	ssize_t n = 0;

	while (fd >= 0 && used < size && (n = read(fd, text + used, size - used)) > 0)
		used += (size_t)n;
	if (fd < 0 || n < 0 || used == size) {
		text[0] = '\0';
		return false;
	}
	text[used] = '\0';
	return true;
}

static int open_in(const char *dir, const char *name)
{
	char path[CGROUP_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_in(const char *dir, const char *name, char *text, size_t size)
{
	int fd = open_in(dir, name);
	bool ok = read_file(fd, text, size);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Reads a number that ends at a blank or at the end of the text, and advances *at past it. NAN if there is none. */
static double take_number(const char **at)
{
	uint64_t n;

	return proc_text_take(at, &n) && (!**at || strchr(" \t\n", **at)) ? (double)n : NAN;
}

/* The number of a file that contains nothing else; NAN for any other content, such as "max" or -1. */
static double number_in(const char *dir, const char *name)
{
	char text[64];
	const char *at = text;
	double n;

	if (!read_in(dir, name, text, sizeof(text)))
		return NAN;
	n = take_number(&at);
	return at[strspn(at, " \t\n")] ? NAN : n;
}

/* The number in the line "key number"; NAN if there is none. */
static double number_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at;

		line += *line == '\n';
		at = line + len;
		if (strncmp(line, key, len) == 0 && *at == ' ')
			return take_number(&at);
	}
	return NAN;
}

static double limit_or_none(double v)
{
	return v > 0 ? v : INFINITY;	/* also for NAN; a limit of 0 could not have let this process start */
}

static double cpu_limit(const char *dir, int version)
{
	char text[64];
	const char *at = text;
	double quota, period;

	if (version == 1)
		return limit_or_none(number_in(dir, "cpu.cfs_quota_us") / number_in(dir, "cpu.cfs_period_us"));
	if (!read_in(dir, "cpu.max", text, sizeof(text)))
		return INFINITY;
	quota = take_number(&at);
	period = take_number(&at);
	return limit_or_none(period > 0 ? quota / period : NAN);
}

static double memory_limit(const char *dir, int version)
{
	double v = version == 1 ? limit_or_none(number_in(dir, "memory.limit_in_bytes")) :
		   fmin(limit_or_none(number_in(dir, "memory.max")), limit_or_none(number_in(dir, "memory.high")));

	return v < NO_LIMIT_BYTES ? v : INFINITY;
}

static double pids_limit(const char *dir, int version)
{
	(void)version;
	return limit_or_none(number_in(dir, "pids.max"));
}

enum controller { CPU, MEMORY, PIDS, CONTROLLERS };

static const char *const controllers[CONTROLLERS] = { "cpu", "memory", "pids" };

/* Where the process's group of a controller is, in a hierarchy of one version. */
struct spot {
	bool is_member, is_mounted, is_inside;	/* is_inside: the mount shows the process's group */
	char group[CGROUP_PATH_MAX];		/* path in the hierarchy */
	char mount[CGROUP_PATH_MAX];		/* where it is mounted */
	char inner[CGROUP_PATH_MAX];		/* the group's path below the mount; "": the mount itself */
};

struct spots {
	struct spot v1[CONTROLLERS], v2;
};

/* True if the comma-separated list contains the name. */
static bool has_name(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, len) == 0 && (!at[len] || at[len] == ',' || at[len] == '\n'))
			return true;
	}
	return false;
}

static bool keep(char out[CGROUP_PATH_MAX], const char *text)
{
	return snprintf(out, CGROUP_PATH_MAX, "%s", text) < CGROUP_PATH_MAX;
}

/* A line of /proc/self/cgroup: "hierarchy:controllers:path"; "0::path" is of version 2. */
static void read_member(struct spots *s, char *line)
{
	const char *number = strsep(&line, ":"), *names = strsep(&line, ":");
	struct spot *unified = &s->v2;

	if (!number || !names || !line || line[0] != '/')
		return;
	if (strcmp(number, "0") == 0 && !*names)
		unified->is_member = keep(unified->group, line);
	for (int c = 0; c < CONTROLLERS; c++)
		if (has_name(names, controllers[c]))
			s->v1[c].is_member = keep(s->v1[c].group, line);
}

/* Replaces octal escapes, such as "\040" for a blank (proc_pid_mountinfo(5)). */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
		    from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* Keeps a mount, preferably one that shows the process's group: `shown` is the group at its top. */
static void keep_mount(struct spot *s, const char *shown, const char *mount)
{
	size_t len = strcmp(shown, "/") == 0 ? 0 : strlen(shown);
	bool inside = s->is_member && strncmp(s->group, shown, len) == 0 && (!s->group[len] || s->group[len] == '/') &&
		      !strstr(s->group, "/..");

	if (s->is_inside || (s->is_mounted && !inside))
		return;
	s->is_mounted = keep(s->mount, mount);
	s->is_inside = inside;
	snprintf(s->inner, sizeof(s->inner), "%s", inside && strcmp(s->group + len, "/") != 0 ? s->group + len : "");
}

/* A line of mountinfo: "36 35 98:0 SHOWN MOUNT options [optional]... - TYPE source super-options". */
static void read_mount(struct spots *s, char *line)
{
	char *word[5], *shown, *mount;
	const char *type, *super;

	for (int i = 0; i < 5; i++)
		word[i] = strsep(&line, " ");
	shown = word[3];
	mount = word[4];
	line = line ? strstr(line, " - ") : NULL;
	if (!line)
		return;
	line += 3;
	type = strsep(&line, " ");
	strsep(&line, " ");
	super = line ? line : "";
	unescape(shown);
	unescape(mount);
	if (strcmp(type, "cgroup2") == 0)
		keep_mount(&s->v2, shown, mount);
	for (int c = 0; c < CONTROLLERS; c++)
		if (strcmp(type, "cgroup") == 0 && has_name(super, controllers[c]))
			keep_mount(&s->v1[c], shown, mount);
}

static void each_line(const char *root, const char *name, struct spots *s, void (*read_line)(struct spots *, char *))
{
	char path[CGROUP_PATH_MAX], line[LINE_MAX_BYTES];
	bool whole = true;
	FILE *in;

	snprintf(path, sizeof(path), "%s/proc/self/%s", root, name);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in)) {
		bool begins = whole;

		whole = strchr(line, '\n') != NULL;
		line[strcspn(line, "\n")] = '\0';
		if (begins && (whole || feof(in)))
			read_line(s, line);
	}
	if (in)
		fclose(in);
}

/* The lowest limit of the group and of those above it, up to the mount. Stores the folder of that group in `lowest`. */
static double lowest_limit(const char *root, const struct spot *s, int version, double (*limit)(const char *, int),
			   struct cgroup_place *lowest)
{
	char dir[CGROUP_PATH_MAX];
	size_t top = strlen(root) + strlen(s->mount);
	double least = INFINITY;

	lowest->dir[0] = '\0';
	if (snprintf(dir, sizeof(dir), "%s%s%s", root, s->mount, s->inner) >= (int)sizeof(dir))
		return INFINITY;
	while (true) {
		double v = limit(dir, version);

		if (v < least) {
			least = v;
			lowest->version = version;
			memcpy(lowest->dir, dir, sizeof(dir));
		}
		if (strlen(dir) <= top)
			return least;
		*strrchr(dir, '/') = '\0';
	}
}

void cgroup_find(const char *root, struct cgroup *out)
{
	static double (*const limits[CONTROLLERS])(const char *, int) = { cpu_limit, memory_limit, pids_limit };
	struct spots *s = calloc(1, sizeof(*s));
	struct cgroup_place pids, *const places[CONTROLLERS] = { &out->cpu, &out->memory, &pids };
	double *const into[CONTROLLERS] = { &out->cpus, &out->memory_bytes, &out->pids };

	*out = (struct cgroup){ .cpus = INFINITY, .memory_bytes = INFINITY, .pids = INFINITY };
	if (!s)
		return;
	each_line(root, "cgroup", s, read_member);
	each_line(root, "mountinfo", s, read_mount);
	for (int c = 0; c < CONTROLLERS; c++) {
		bool is_v1 = s->v1[c].is_member;
		const struct spot *spot = is_v1 ? &s->v1[c] : &s->v2;

		if (!spot->is_member || !spot->is_mounted)
			continue;
		out->version = is_v1 ? 1 : out->version ? out->version : 2;
		*into[c] = lowest_limit(root, spot, is_v1 ? 1 : 2, limits[c], places[c]);
	}
	free(s);
}

/* The files that hold the figures, by version. With a key, the figure is the number in its line, or the sum of two
 * lines if there are two keys; without a key, it is the file's only number. */
static const struct source {
	const char *file, *key, *second;
	double unit;
} sources[2][CGROUP_FIGURES] = { {
	[CGROUP_CPU_S] = { "cpuacct.usage", NULL, NULL, 1e-9 },
	[CGROUP_THROTTLED_S] = { "cpu.stat", "throttled_time", NULL, 1e-9 },
	[CGROUP_MEMORY_BYTES] = { "memory.usage_in_bytes", NULL, NULL, 1 },
	[CGROUP_CACHE_BYTES] = { "memory.stat", "total_inactive_file", "total_active_file", 1 },
	[CGROUP_MEMORY_HITS] = { "memory.failcnt", NULL, NULL, 1 },
	[CGROUP_OOM_KILLS] = { "memory.oom_control", "oom_kill", NULL, 1 },
}, {
	[CGROUP_CPU_S] = { "cpu.stat", "usage_usec", NULL, 1e-6 },
	[CGROUP_THROTTLED_S] = { "cpu.stat", "throttled_usec", NULL, 1e-6 },
	[CGROUP_MEMORY_BYTES] = { "memory.current", NULL, NULL, 1 },
	[CGROUP_CACHE_BYTES] = { "memory.stat", "inactive_file", "active_file", 1 },
	[CGROUP_MEMORY_HITS] = { "memory.events", "max", "high", 1 },
	[CGROUP_OOM_KILLS] = { "memory.events", "oom_kill", NULL, 1 },
} };

static const struct cgroup_place *place_of(const struct cgroup *g, enum cgroup_figure f)
{
	return f <= CGROUP_THROTTLED_S ? &g->cpu : &g->memory;
}

static const struct source *source_of(const struct cgroup *g, enum cgroup_figure f)
{
	return &sources[place_of(g, f)->version != 1][f];
}

int cgroup_open(const struct cgroup *g, enum cgroup_figure f)
{
	const struct cgroup_place *p = place_of(g, f);

	return *p->dir ? open_in(p->dir, source_of(g, f)->file) : -1;
}

double cgroup_value(const struct cgroup *g, enum cgroup_figure f, const char *text)
{
	const struct source *s = source_of(g, f);
	double v = s->key ? number_of(text, s->key) : take_number(&text);

	return s->unit * (s->second ? v + number_of(text, s->second) : v);
}

double cgroup_now(const struct cgroup *g, enum cgroup_figure f)
{
	char text[FILE_MAX_BYTES];
	int fd = cgroup_open(g, f);
	double v = read_file(fd, text, sizeof(text)) ? cgroup_value(g, f, text) : NAN;

	if (fd >= 0)
		close(fd);
	return v;
}

uint32_t cgroup_threads(const struct cgroup *g, uint32_t cpus)
{
	return (uint32_t)fmax(ceil(fmin(g->cpus, cpus)), 1);
}

json_t *cgroup_json(const struct cgroup *g)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "version", g->version ? json_integer(g->version) : json_null(),
			 "cpus", json_number(g->cpus), "memory_bytes", json_whole(g->memory_bytes), "pids",
			 json_whole(g->pids));
}
