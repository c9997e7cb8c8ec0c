/* SPDX-License-Identifier: BSD-2-Clause */
/* See load_hosts.h. */
#include "loadgen/output/load_hosts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"

struct host {
	json_t *o;			/* the host's element of run.json */
	json_t *step;			/* the running step, borrowed from `o`; NULL: the host has not handed it in */
	int64_t started_ns;
};

struct load_hosts {
	uint32_t n, index;
	struct host v[];
};

static json_t *text_or_null(const json_t *o, const char *path)
{
	const char *text = json_text_at(o, path);
	char shown[256];

	/* A line break in a name would begin a line of the summary. */
	return text ? json_string(utf8_show(text, shown, sizeof(shown))) : json_null();
}

static json_t *count_or_null(const json_t *o, const char *path)
{
	const json_t *v = json_at(o, path);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? json_integer(json_integer_value(v)) : json_null();
}

static json_t *device_json(const json_t *device)
{
	const json_t *software = json_object_get(device, "is_software");

	if (!json_is_object(device))
		return json_null();
	return json_pack("{s:o, s:o, s:n}", "name", text_or_null(device, "name"), "is_software",
			 json_is_boolean(software) ? json_boolean(json_is_true(software)) : json_null(),
			 "link_bits_per_s");
}

static json_t *build_json(const json_t *build)
{
	if (!json_is_object(build))
		return json_null();
	return json_pack("{s:o, s:o}", "version", text_or_null(build, "version"), "git_commit",
			 text_or_null(build, "git_commit"));
}

/* The limits of the host's control group that the report shows. */
static json_t *limits_json(const json_t *about)
{
	double cpus = json_number_at(about, "environment.cgroup.cpus");

	return json_pack("{s:o, s:o}", "cpus", json_number(cpus > 0 ? cpus : NAN), "memory_bytes",
			 count_or_null(about, "environment.cgroup.memory_bytes"));
}

static json_t *about_json(const json_t *about)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kernel", text_or_null(about, "environment.kernel"),
			 "cpu_model",
			 text_or_null(about, "environment.cpu_model"), "cores",
			 count_or_null(about, "environment.cores"),
			 "memory_bytes", count_or_null(about, "environment.memory_bytes"), "cgroup",
			 limits_json(about), "rdma_device",
			 device_json(json_at(about, "environment.rdma_device")), "build",
			 build_json(json_object_get(about, "build")));
}

int load_hosts_new(uint32_t n, struct load_hosts **out)
{
	struct load_hosts *h = calloc(1, sizeof(*h) + n * sizeof(h->v[0]));

	if (!h)
		return -ENOMEM;
	for (; h->n < n; h->n++) {
		h->v[h->n].o = json_pack("{s:i, s:n, s:n, s:o, s:n, s:n, s:n, s:[]}", "rank", (int)h->n, "name",
					 "address", "about", about_json(NULL), "clock", "lost", "files", "steps");
		if (!h->v[h->n].o) {
			load_hosts_free(h);
			return -ENOMEM;
		}
	}
	*out = h;
	return 0;
}

void load_hosts_free(struct load_hosts *h)
{
	for (uint32_t i = 0; h && i < h->n; i++)
		json_decref(h->v[i].o);
	free(h);
}

void load_hosts_about(struct load_hosts *h, uint32_t rank, const json_t *about)
{
	json_t *o = rank < h->n ? h->v[rank].o : NULL;

	json_object_set_new(o, "name", text_or_null(about, "name"));
	json_object_set_new(o, "address", text_or_null(about, "address"));
	json_object_set_new(o, "about", about_json(about));
}

void load_hosts_clock(struct load_hosts *h, uint32_t rank, int64_t offset_ns, uint64_t error_ns)
{
	if (rank < h->n)
		json_object_set_new(h->v[rank].o, "clock", json_pack("{s:I, s:I}", "offset_ns", (json_int_t)offset_ns,
								     "error_ns", (json_int_t)MIN(error_ns, INT64_MAX)));
}

void load_hosts_files(struct load_hosts *h, uint32_t rank, const char *folder)
{
	if (rank < h->n)
		json_object_set_new(h->v[rank].o, "files", json_string(folder));
}

void load_hosts_lost(struct load_hosts *h, uint32_t rank, double at_s, const char *why)
{
	char text[512];

	/* The first reason counts. */
	if (rank < h->n && json_is_null(json_object_get(h->v[rank].o, "lost")))
		json_object_set_new(h->v[rank].o, "lost", json_pack("{s:f, s:s}", "at_s", at_s, "why",
								    utf8_show(why, text, sizeof(text))));
}

void load_hosts_begin_step(struct load_hosts *h, uint32_t index)
{
	h->index = index;
	for (uint32_t i = 0; i < h->n; i++) {
		h->v[i].step = NULL;
		h->v[i].started_ns = LOAD_HOSTS_NOT_STARTED;
	}
}

/* Keeps the speed of the host's ports, which a host only knows after it has read them in a step. */
static void set_link(json_t *host, const json_t *own)
{
	double bits = json_number_at(own, "network.generator.line_bits_per_s");

	if (bits > 0)
		json_object_set_new(json_at(host, "about.rdma_device"), "link_bits_per_s", json_number(bits));
}

void load_hosts_step(struct load_hosts *h, uint32_t rank, const json_t *packed, int64_t started_ns)
{
	json_t *own = json_object_get(packed, "own"), *step;
	double share = json_number_at(packed, "figures.target");
	struct host *host = rank < h->n ? &h->v[rank] : NULL;

	if (!host || host->step)
		return;
	/* A host without clients has measured nothing. */
	step = json_pack("{s:i, s:o, s:n, s:O}", "step", (int)h->index, "share", json_whole(share > 0 ? share : 0),
			 "start_skew_ns", "own", share > 0 && own ? own : json_null());
	if (json_array_append_new(json_object_get(host->o, "steps"), step))
		return;
	host->step = step;
	host->started_ns = share > 0 ? started_ns : LOAD_HOSTS_NOT_STARTED;
	set_link(host->o, own);
}

bool load_hosts_end_step(struct load_hosts *h, uint64_t *skew_ns)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->n; i++) {
		if (!h->v[i].step || h->v[i].started_ns == LOAD_HOSTS_NOT_STARTED)
			continue;
		first = MIN(first, h->v[i].started_ns);
		last = MAX(last, h->v[i].started_ns);
		n++;
	}
	for (uint32_t i = 0; i < h->n; i++)
		if (h->v[i].step && h->v[i].started_ns != LOAD_HOSTS_NOT_STARTED)
			json_object_set_new(h->v[i].step, "start_skew_ns",
					    json_whole((double)h->v[i].started_ns - (double)first));
	*skew_ns = n > 1 ? (uint64_t)last - (uint64_t)first : 0;
	return n > 1;
}

json_t *load_hosts_json(const struct load_hosts *h)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < h->n; i++)
		json_array_append(a, h->v[i].o);
	return a;
}
