/* SPDX-License-Identifier: BSD-2-Clause */
/* The section on where the figures come from: environment, command, files, and how to repeat the run. */
#include "loadgen/report/sections/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json_at.h"

#define FILES_MAX 400
#define ARGUMENTS_MAX 200

struct fact {
	const char *path, *words;
	bool bytes, is_limit;	/* is_limit: null says that there is no limit */
};

static const char *fact_of(struct page *p, const char *side, const struct fact *f)
{
	const json_t *v = json_at(json_at(json_at(p->run, "environment"), side), f->path);

	if (!f->bytes || (f->is_limit && json_is_null(v)))
		return page_json(p, v);
	return page_bytes(p, json_is_number(v) ? json_number_value(v) : NAN);
}

static void table_environment(struct page *p)
{
	static const struct fact facts[] = {
		{ "hostname", "host", false, false },
		{ "kernel", "kernel", false, false },
		{ "cpu_model", "CPU", false, false },
		{ "cores", "CPUs", false, false },
		{ "memory_bytes", "memory", true, false },
		{ "cgroup.cpus", "CPUs that the control group allows", false, true },
		{ "cgroup.memory_bytes", "memory that the control group allows", true, true },
		{ "cgroup.pids", "processes and threads that the control group allows", false, true },
		{ "hypervisor", "hypervisor", false, false },
		{ "accelerator", "accelerator", false, false },
		{ "rdma_device.name", "RDMA device", false, false },
		{ "rdma_device.driver", "driver", false, false },
		{ "rdma_device.driver_version", "driver version (none: the kernel's)", false, false },
		{ "rdma_device.firmware", "firmware", false, false },
		{ "rdma_device.numa_node", "NUMA node of the device", false, false },
		{ "numa_nodes", "NUMA nodes", false, false },
		{ "cpu_governor", "CPU frequency governor", false, false },
		{ "huge_pages.transparent", "transparent huge pages", false, false },
		{ "huge_pages.used_bytes", "memory in huge pages", true, false },
		{ "libraries.rdma_core", "rdma-core", false, false },
		{ "libraries.openssl", "OpenSSL", false, false },
		{ "rdma_device.link", "link", false, false },
		{ "rdma_device.path_mtu_bytes", "path MTU, bytes", false, false },
		{ "rdma_device.is_software", "software device", false, false },
		{ "rlimits.nofile.soft", "open files allowed", false, false },
		{ "rlimits.memlock.soft", "locked memory allowed, bytes", false, false },
	};
	static const struct fact expiry = { "certificate_expires_at", NULL, false, false };
	struct doc_table *t = page_table(p, "environment", NULL, "what;server;generator");

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		page_add(t, DOC_PLAIN, "sss", facts[i].words, fact_of(p, "server", &facts[i]),
			 fact_of(p, "clients", &facts[i]));
	if (json_at(p->run, "environment.server.certificate_expires_at"))
		page_add(t, DOC_PLAIN, "sss", "certificate expires", fact_of(p, "server", &expiry), "n/a");
}

static void say_build(struct page *p, const char *which, const char *words)
{
	const json_t *b = json_at(p->run, which);

	if (!json_is_object(b))
		return;
	doc_text(p->doc, which, "%s: version %s, commit %s%s, %s %s.", words, page_json(p, json_at(b, "version")),
		 page_json(p, json_at(b, "git_commit")), json_is_true(json_at(b, "dirty")) ? " with changes" : "",
		 page_json(p, json_at(b, "compiler")), page_json(p, json_at(b, "flags")));
}

static const char *command_line(struct page *p)
{
	const json_t *argv = json_at(p->run, "run.argv"), *arg;
	const char *line = "";
	size_t i;

	json_array_foreach(argv, i, arg) {
		if (json_is_string(arg) && i < ARGUMENTS_MAX)
			line = page_text(p, "%s%s%s", line, *line ? " " : "", page_quoted(p, json_string_value(arg)));
	}
	return line;
}

static bool is_in_vm(const struct page *p)
{
	const json_t *argv = json_at(p->run, "run.argv"), *arg;
	const char *before = "";
	size_t i;

	json_array_foreach(argv, i, arg) {
		const char *text = json_is_string(arg) ? json_string_value(arg) : "";

		if (strcmp(before, "--environment") == 0 && strcmp(text, "native") == 0)
			return json_is_true(json_at(p->run, "environment.clients.is_virtual_machine"));
		before = text;
	}
	return false;
}

static void show_command(struct page *p)
{
	const char *line = command_line(p);

	doc_heading(p->doc, "Command, and how to repeat it");
	if (!*line) {
		doc_text(p->doc, "command-none", "The run does not say how it was started.");
		return;
	}
	doc_code(p->doc, line);
	if (is_in_vm(p))
		doc_text(p->doc, "command-in-vm", "This is the command inside the micro-VM. On a machine without an "
			 "RDMA device, leave out --environment native; performance_test then starts the micro-VM "
			 "itself.");
	doc_text(p->doc, "seed", "The seed of the payloads is %s. Times and rates vary from run to run, and more on a "
		 "shared machine; --repeat 5 gives medians with their range.",
		 page_json(p, json_at(p->run, "config.seed")));
	doc_text(p->doc, NULL, "To make this report again, also with other options:");
	doc_code(p->doc, page_text(p, "performance_test report %s", page_quoted(p, p->source->dir)));
}

static void add_file(struct page *p, const char *name, const char *what)
{
	if (source_has_file(p->source, name))
		doc_file(p->doc, page_text(p, "%s%s", p->files_prefix, name), what);
}

/* Links to the suite's report without checking that it exists: it is written after those of its runs. */
static void add_suite(struct page *p)
{
	if (source_is_of_suite(p->source))
		doc_file(p->doc, page_text(p, "%s../report.html", p->files_prefix),
			 "the report of the suite that this run belongs to");
}

static size_t add_histograms(struct page *p, const json_t *step)
{
	static const char *const which[] = { "connect", "response", "service" };
	static const char *const extensions[] = { "hgrm", "hlog" };
	size_t n = 0;
	char name[256];

	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 2 && source_histogram_name(p->source, step, which[i], name, sizeof(name));
		     k++, n++)
			add_file(p, page_text(p, "%s.%s", name, extensions[k]),
				 page_text(p, "%s of %s, %s", which[i],
					   page_clients(p, json_number_at(step, "target_clients")),
					   k ? "HdrHistogram log" : "percentile text"));
	return n;
}

static void list_files(struct page *p)
{
	size_t n = 0;

	doc_heading(p->doc, "Raw files");
	add_suite(p);
	add_file(p, "run.json", "everything that was measured");
	add_file(p, "events.ndjson", "what happened, one object a line");
	add_file(p, "server.log", "the server's log");
	for (size_t i = 0; i < p->points->n; i++)
		for (size_t k = 0; k < p->points->v[i].n && n < FILES_MAX; k++)
			n += add_histograms(p, p->points->v[i].steps[k]);
	if (n >= FILES_MAX)
		doc_text(p->doc, "files-more", "Further histograms are in the same folder.");
}

void section_origin(struct page *p)
{
	doc_section(p->doc, "origin", "Where this comes from");
	doc_text(p->doc, "run", "Run %s, from %s to %s.", p->source->id,
		 page_json(p, json_at(p->run, "run.started_at")), page_json(p, json_at(p->run, "run.ended_at")));
	table_environment(p);
	say_build(p, "build", "Generator");
	say_build(p, "server_build", "Server");
	show_command(p);
	list_files(p);
}
