/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of workloads, and the options' defaults and checks that depend on the workload. See workloads.h. */
#include "loadgen/workloads/workloads.h"

#include <errno.h>
#include <stdio.h>
#include <sys/param.h>

#include "common/wire/frame.h"

/* Smallest default of --inflight in the open loop, where a client needs room for bursts. */
#define OPEN_LOOP_INFLIGHT 16u

#define X(name) &workload_##name,
static const struct workload *const workloads[] = { LOADGEN_WORKLOADS(X) };
#undef X

#define WORKLOADS_N (sizeof(workloads) / sizeof(workloads[0]))

/* Refuses options that belong to another workload. */
static int check_options_of_others(const struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
{
	for (size_t i = 0; i < WORKLOADS_N; i++)
		for (unsigned k = 0; k < WORKLOAD_OPTIONS_MAX && workloads[i]->options[k]; k++) {
			const char *option = workloads[i]->options[k];

			if (workloads[i] == c->wl || !opts_given(&loadgen_options, argc, argv, option))
				continue;
			snprintf(err, err_size, "--%s: needs --workload %s", option, loadgen_workload_names[i]);
			return -EINVAL;
		}
	if (!c->wl->plan && opts_given(&loadgen_options, argc, argv, "stripe-min")) {
		snprintf(err, err_size, "--stripe-min: needs --workload large or duplex");
		return -EINVAL;
	}
	return 0;
}

/* Text about an option that the workload cannot honour; NULL: there is none. */
static const char *contradiction(const struct loadgen_config *c)
{
	const struct workload *wl = c->wl;

	if (c->active && wl->idle)
		return "--active: cannot be combined with this --workload, whose clients send nothing";
	if (c->iterations && wl->idle)
		return "--iterations: cannot be combined with this --workload, whose clients send nothing";
	if (c->total_inflight && wl->streams != 1)
		return "--total-inflight: cannot be combined with this --workload";
	if (c->total_inflight && c->coalesce > 1)
		return "--total-inflight: cannot be combined with --coalesce, because clients begin one message at a "
		       "time";
	if (loadgen_is_open_loop(c) && wl->streams != 1)
		return "--rate: cannot be combined with this --workload";
	if (c->message_auth && !wl->tags)
		return "--message-auth: needs --workload echo, small or idle";
	if (c->n_rails > 1 && !wl->plan)
		return "--device, --server: several rails need --workload large or duplex";
	if (c->qps > 1 && !wl->plan)
		return "--qps: needs --workload large or duplex; with others, use more --clients";
	return NULL;
}

/* Checks the first step's parameters with each message size. */
static int check_steps(const struct loadgen_config *c, char *err, size_t err_size)
{
	struct step_figures f = { .clients = c->steps.v[0], .repetition = 1, .rate = c->rates.n ? c->rates.v[0] : 0 };

	for (size_t i = 0; i < c->sizes.n; i++) {
		f.bytes = c->sizes.v[i];
		if (workload_check_step(c, &f, err, err_size))
			return -EINVAL;
	}
	return 0;
}

static const char two_sided[] = "echo, pingpong, small, large with --operation send, duplex, connect, idle";

/* Checks that a SEND and a region can hold what the operations in flight need. */
static int check_needs(const struct loadgen_config *c, char *err, size_t err_size)
{
	struct workload_needs needs = { 0 };

	c->wl->needs(c, &needs);
	if (c->transport != TRANSPORT_RDMA && needs.region_bytes) {
		snprintf(err, err_size,
			 "--transport %s: --workload %s%s reads and writes the server's memory, which only rdma can; "
			 "allowed: %s", transport_names[c->transport], loadgen_workload_names[c->workload],
			 c->wl->chunks ? " with these options" : "", two_sided);
		return -EINVAL;
	}
	if (needs.message_bytes > FRAME_MESSAGE_BYTES_MAX) {
		snprintf(err, err_size,
			 "--coalesce: %llu messages of %llu bytes are too large for one SEND; allowed: 1 to %llu",
			 (unsigned long long)c->coalesce, (unsigned long long)c->message_bytes,
			 (unsigned long long)(FRAME_MESSAGE_BYTES_MAX / c->message_bytes));
		return -EINVAL;
	}
	if (needs.region_bytes > FRAME_REGION_BYTES_MAX) {
		snprintf(err, err_size, "--message-size and --inflight: the operations in flight need a region of %llu "
			 "bytes; allowed: %u", (unsigned long long)needs.region_bytes, FRAME_REGION_BYTES_MAX);
		return -EINVAL;
	}
	return 0;
}

static void add_default_sizes(struct loadgen_config *c)
{
	if (c->sizes.n == 0)
		c->sizes.v[c->sizes.n++] = c->wl->bytes_default;
	c->message_bytes = 0;
	for (size_t i = 0; i < c->sizes.n; i++)
		c->message_bytes = MAX(c->message_bytes, c->sizes.v[i]);
}

static void add_default_depths(struct loadgen_config *c)
{
	uint32_t inflight = c->wl->inflight_default;

	if (c->inflight == 0 && c->total_inflight)
		c->inflight = MIN(c->total_inflight, LOADGEN_INFLIGHT_MAX);
	else if (c->inflight == 0)
		c->inflight = loadgen_is_open_loop(c) ? MAX(inflight, OPEN_LOOP_INFLIGHT) : inflight;
	if (c->chunk_bytes == 0)
		c->chunk_bytes = 1 << 20;
}

int workloads_apply(struct loadgen_config *c, int argc, char **argv, char *err, size_t err_size)
{
	const char *text;
	int ret;

	c->wl = workloads[c->workload];
	ret = check_options_of_others(c, argc, argv, err, err_size);
	if (ret)
		return ret;
	add_default_sizes(c);
	text = contradiction(c);
	if (text) {
		snprintf(err, err_size, "%s", text);
		return -EINVAL;
	}
	ret = check_steps(c, err, err_size);
	if (ret)
		return ret;
	if (c->wl->prepare)
		ret = c->wl->prepare(c, err, err_size);
	if (ret)
		return ret;
	add_default_depths(c);
	return check_needs(c, err, err_size);
}
