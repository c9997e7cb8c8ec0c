/* SPDX-License-Identifier: BSD-2-Clause */
/* See figures.h. */
#include "common/port/figures.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Counters by driver. They are defined in the kernel: drivers/infiniband/sw/rxe/rxe_hw_counters.c,
 * hw/bnxt_re/hw_counters.c, hw/efa/efa_verbs.c, hw/mlx5/counters.c and core/sysfs.c. mlx5's are explained in NVIDIA's
 * "Understanding mlx5 Linux Counters and Status Parameters". */
const struct port_figure port_figures[PORT_FIGURES] = {
	/* port_*_data are "divided by 4": Documentation/ABI/stable/sysfs-class-infiniband */
	{ "bytes_out", "Bytes sent",
	  { { { "port_xmit_data" }, 4 }, { { "tx_bytes" }, 1 } } },
	{ "bytes_in", "Bytes received",
	  { { { "port_rcv_data" }, 4 }, { { "rx_bytes" }, 1 } } },
	{ "packets_out", "Packets sent",
	  { { { "port_xmit_packets" }, 1 }, { { "tx_pkts" }, 1 }, { { "sent_pkts" }, 1 } } },
	{ "packets_in", "Packets received",
	  { { { "port_rcv_packets" }, 1 }, { { "rx_pkts" }, 1 }, { { "rcvd_pkts" }, 1 } } },
	{ "retransmits", "Retransmissions that the device started",
	  { { { "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err" }, 1 },
	    { { "to_retransmits", "seq_err_naks_rcvd" }, 1 },
	    { { "retrans_pkts" }, 1 }, { { "completer_retry_err" }, 1 } } },
	{ "retries_exceeded", "Requests given up after all retries",
	  { { { "req_transport_retries_exceeded", "req_rnr_retries_exceeded" }, 1 },
	    { { "max_retry_exceeded" }, 1 },
	    { { "retry_exceeded_err", "retry_rnr_exceeded_err" }, 1 } } },
	{ "rnr_naks_sent", "RNR NAKs sent, because no receive buffer was posted",
	  { { { "out_of_buffer" }, 1 }, { { "rx_out_of_buffer" }, 1 }, { { "send_rnr_err" }, 1 } } },
	{ "rnr_naks_received", "RNR NAKs received",
	  { { { "rnr_nak_retry_err" }, 1 }, { { "rnr_naks_rcvd" }, 1 },
	    { { "rcvd_rnr_err" }, 1 } } },
	{ "out_of_sequence", "Packets that arrived out of sequence",
	  { { { "out_of_sequence" }, 1 }, { { "oos_drop_count" }, 1 },
	    { { "out_of_seq_request" }, 1 } } },
	{ "duplicate_requests", "Requests that arrived twice",
	  { { { "duplicate_request" }, 1 }, { { "dup_req" }, 1 } } },
	{ "ecn_marked", "Packets that arrived with a congestion mark (ECN)",
	  { { { "np_ecn_marked_roce_packets" }, 1 }, { { "rx_ecn_marked_pkts" }, 1 } } },
	{ "cnps_sent", "Congestion notification packets sent",
	  { { { "np_cnp_sent" }, 1 }, { { "tx_cnp_pkts" }, 1 } } },
	{ "cnps_received", "Congestion notification packets received",
	  { { { "rp_cnp_handled", "rp_cnp_ignored" }, 1 }, { { "rx_cnp_pkts" }, 1 } } },
	{ "transmit_waits", "Ticks in which data waited to be sent because of missing credits or a pause",
	  { { { "port_xmit_wait" }, 1 } } },
};

double port_growth(const json_t *begin, const json_t *end)
{
	json_int_t a = json_integer_value(begin), b = json_integer_value(end);

	if (!json_is_integer(begin) || !json_is_integer(end) || a < 0 || b < 0 || b == UINT32_MAX)
		return NAN;
	if (b >= a)
		return (double)(b - a);
	return a <= UINT32_MAX && a > INT32_MAX && b <= INT32_MAX ? (double)(b - a) + 0x1p32 : NAN;
}

double port_growth_at(const json_t *begin, const json_t *end, const char *name)
{
	return port_growth(json_object_get(begin, name), json_object_get(end, name));
}

static double value_of(const json_t *begin, const json_t *end, const char *name)
{
	const json_t *v = json_object_get(end, name);

	(void)begin;
	return json_is_integer(v) ? (double)json_integer_value(v) : NAN;
}

static double sum_counters(const struct port_figure *f, const json_t *begin, const json_t *end,
			   double (*value)(const json_t *begin, const json_t *end, const char *name))
{
	for (size_t i = 0; i < sizeof(f->of) / sizeof(f->of[0]) && f->of[i].unit > 0; i++) {
		double sum = 0;
		bool any = false;

		for (size_t k = 0; k < PORT_COUNTERS_MAX && f->of[i].names[k]; k++) {
			if (!json_object_get(end, f->of[i].names[k]))
				continue;
			sum += value(begin, end, f->of[i].names[k]) * f->of[i].unit;
			any = true;
		}
		if (any)
			return sum;
	}
	return NAN;
}

double port_figure_value(const struct port_figure *f, const json_t *counters)
{
	return sum_counters(f, NULL, counters, value_of);
}

double port_figure_growth(const struct port_figure *f, const json_t *begin, const json_t *end)
{
	return sum_counters(f, begin, end, port_growth_at);
}
