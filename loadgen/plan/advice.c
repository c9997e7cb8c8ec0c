/* SPDX-License-Identifier: BSD-2-Clause */
/* Advice on what to set. See advice.h. */
#include "loadgen/plan/advice.h"

#include <math.h>
#include <stdio.h>
#include <sys/param.h>

#define GIB 1073741824.0

/* Number of threads that keeps each shard or worker within its limit, plus 10 % because clients spread unevenly. */
static unsigned long long threads_for(const struct estimate_row *r, uint64_t threads)
{
	return (unsigned long long)ceil((double)threads * MAX(r->needed / r->limit, 1) * 1.1);
}

static void of_device(const struct estimate_row *r, const char *limit, char *text, size_t size)
{
	snprintf(text, size, "another rail (--device A,B), or a device with a %s of %.0f", limit, r->needed);
}

static void of_threads(const struct estimate_in *in, const struct estimate_row *r, char *text, size_t size)
{
	if (r->side == ESTIMATE_GENERATOR)
		snprintf(text, size, "--threads %llu, or a lower --inflight", threads_for(r, in->generator.workers));
	else if (in->server.own)
		snprintf(text, size, "--server-threads %llu, or a lower --inflight",
			 threads_for(r, in->server.size.threads));
	else
		snprintf(text, size,
			 "rdma_server --threads %llu, with a --srq-depth and --cq-depth that allow it, or a lower "
			 "--inflight", threads_for(r, in->server.size.threads));
}

static void of_fds(const struct estimate_in *in, const struct estimate_row *r, char *text, size_t size)
{
	if (r->side == ESTIMATE_SERVER && !in->server.own)
		snprintf(text, size, "ulimit -Hn %.0f (LimitNOFILE=) where rdma_server is started", ceil(r->needed));
	else
		snprintf(text, size, "ulimit -Hn %.0f", ceil(r->needed));
}

static void of_memory(const struct estimate_in *in, const struct estimate_row *r, char *text, size_t size)
{
	const struct estimate_host *h = r->side == ESTIMATE_GENERATOR ? &in->generator_host : &in->server_host;
	double all = h->memory_bytes + MAX(r->needed - r->limit, 0);

	snprintf(text, size, "a machine or control group with %.1f GiB (scripts/softroce vm --memory %.0fM), a lower "
		 "--inflight or --message-size", all / GIB, ceil(all / 1048576 * 1.05));
}

const char *advice_text(const struct estimate_in *in, const struct estimate_row *r, char *text, size_t size)
{
	const char *more = r->side == ESTIMATE_GENERATOR ? "" : in->server.own ? "--server-" : "rdma_server --";

	text[0] = '\0';
	switch (r->resource) {
	case ESTIMATE_max_clients:
		snprintf(text, size, "rdma_server --max-clients %.0f", ceil(r->needed + in->server.clients));
		break;
	case ESTIMATE_max_per_address:
		snprintf(text, size, "rdma_server --max-per-address %.0f (0: no limit), or more load hosts", r->needed);
		break;
	case ESTIMATE_handshakes:
		snprintf(text, size, "%sthreads %llu, or --connect-concurrency %.0f", more,
			 threads_for(r, in->server.size.threads), r->limit * (double)in->server.size.threads / 2);
		break;
	case ESTIMATE_qps: of_device(r, "max_qp", text, size); break;
	case ESTIMATE_cqs: of_device(r, "max_cq", text, size); break;
	case ESTIMATE_mrs: of_device(r, "max_mr", text, size); break;
	case ESTIMATE_mws: of_device(r, "max_mw", text, size); break;
	case ESTIMATE_sq_entries:
		snprintf(text, size, "a lower --inflight, or a device with a max_qp_wr of %.0f", r->needed);
		break;
	case ESTIMATE_cq_entries:
	case ESTIMATE_receives: of_threads(in, r, text, size); break;
	case ESTIMATE_fds:
	case ESTIMATE_fds_at_start: of_fds(in, r, text, size); break;
	case ESTIMATE_ports:
		snprintf(text, size,
			 "sysctl -w net.ipv4.ip_local_port_range='1024 65535', wait 60 s for ports in TIME_WAIT, or "
			 "more load hosts");
		break;
	case ESTIMATE_pinned_bytes:
	case ESTIMATE_pinned_at_start_bytes:
		snprintf(text, size, "ulimit -Hl %.0f (LimitMEMLOCK=)", ceil(r->needed / 1024));
		break;
	case ESTIMATE_memory_at_start_bytes:
	case ESTIMATE_memory_bytes: of_memory(in, r, text, size); break;
	case ESTIMATE_threads:
		snprintf(text, size, "room for %.0f more in ulimit -u, pids.max of the control group or "
			 "kernel.threads-max, or fewer threads", ceil(r->needed - r->limit));
		break;
	case ESTIMATE_cpus:
		snprintf(text, size, "%.0f CPUs, more load hosts, or a lower rate", ceil(r->needed));
		break;
	case ESTIMATE_line_bytes_per_s:
		snprintf(text, size, "a link of %.1f Gbit/s, another rail, or a lower rate or --message-size",
			 r->needed * 8 / 1e9);
		break;
	case ESTIMATE_rss_bytes:
	case ESTIMATE_kernel_bytes:
	case ESTIMATE_N: break;
	}
	return text;
}
