/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of loadgen/measurement/network.c: what the ports of one side did between two readings, with the counter
 * names of each driver, and with invalid readings. */
#include "tests/unit/helpers/unit.h"

#include <math.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/port/figures.h"
#include "loadgen/measurement/network.h"

#define SECOND INT64_C(1000000000)

/* A port's reading, from its counters as text. */
static json_t *port_of(bool software, const char *counters, const char *netdev_counters)
{
	json_t *a = json_loads(counters, 0, NULL), *b = json_loads(netdev_counters, 0, NULL);

	assert_true(a && b);
	return json_pack("{s:s, s:i, s:b, s:s, s:f, s:i, s:n, s:o, s:o}", "device", "dev0", "port", 1, "software",
			 software,
			 "netdev", "eth0", "link_bits_per_s", 100e9, "link_lanes", 4, "netdev_bits_per_s", "counters",
			 a, "netdev_counters", b);
}

static json_t *reading(json_int_t ns, json_t *port)
{
	return json_pack("{s:s, s:I, s:[o]}", "read_at", "2026-11-22T10:00:00.125Z", "read_ns", ns, "ports", port);
}

/* The figures of a side with one port, over 2 s. */
static json_t *side(bool software, bool loopback, const char *begin, const char *end, const char *netdev_begin,
		    const char *netdev_end)
{
	json_t *a = reading(SECOND, port_of(software, begin, netdev_begin));
	json_t *b = reading(3 * SECOND, port_of(software, end, netdev_end));
	json_t *o = network_side_json(a, b, loopback);

	assert_non_null(o);
	json_decref(a);
	json_decref(b);
	return o;
}

static void is_number(const json_t *o, const char *path, double v)
{
	double have = json_number_at(o, path);

	if (!(fabs(have - v) <= 1e-9 * fabs(v)))
		fail_msg("%s is %g, not %g", path, have, v);
}

static void is_null(const json_t *o, const char *path)
{
	if (!json_is_null(json_at(o, path)))
		fail_msg("%s is not null", path);
}

static void is_text(const json_t *o, const char *path, const char *v)
{
	const char *text = json_text_at(o, path);

	if (!text || strcmp(text, v) != 0)
		fail_msg("%s is %s, not %s", path, text ? text : "no text", v);
}

TEST(mlx5__words_of_four_bytes__bytes_and_share_of_the_line)
{
	json_t *o = side(false, false,
		"{\"port_xmit_data\": 1000, \"port_rcv_data\": 0, \"port_xmit_packets\": 5, \"port_rcv_packets\": 6,"
		" \"packet_seq_err\": 1, \"local_ack_timeout_err\": 2, \"out_of_buffer\": 0, \"rnr_nak_retry_err\": 7,"
		" \"out_of_sequence\": 3, \"np_cnp_sent\": 1, \"rp_cnp_handled\": 2, \"rp_cnp_ignored\": 3,"
		" \"np_ecn_marked_roce_packets\": 4, \"port_xmit_wait\": 10}",
		"{\"port_xmit_data\": 2500001000, \"port_rcv_data\": 50, \"port_xmit_packets\": 105, "
		"\"port_rcv_packets\": 46,"
		" \"packet_seq_err\": 11, \"local_ack_timeout_err\": 22, \"out_of_buffer\": 5, \"rnr_nak_retry_err\": "
		"8,"
		" \"out_of_sequence\": 3, \"np_cnp_sent\": 3, \"rp_cnp_handled\": 5, \"rp_cnp_ignored\": 7,"
		" \"np_ecn_marked_roce_packets\": 9, \"port_xmit_wait\": 16}",
		"{\"tx_bytes\": 1}", "{\"tx_bytes\": 99}");

	is_text(o, "bytes_source", "rdma_counters");
	is_number(o, "bytes_out", 1e10);
	is_number(o, "bytes_in", 200);
	is_number(o, "bytes_out_per_s", 5e9);
	is_number(o, "packets_out", 100);
	is_number(o, "packets_in", 40);
	is_number(o, "retransmits", 30);
	is_number(o, "rnr_naks_sent", 5);
	is_number(o, "rnr_naks_received", 1);
	is_number(o, "out_of_sequence", 0);
	is_number(o, "cnps_sent", 2);
	is_number(o, "cnps_received", 7);
	is_number(o, "ecn_marked", 5);
	is_number(o, "transmit_waits", 6);
	is_null(o, "duplicate_requests");
	is_number(o, "line_bits_per_s", 100e9);
	is_number(o, "used_ratio", 0.4);	/* 5 GB/s of 100 Gbit/s */
	is_number(o, "window_s", 2);
	is_text(o, "began_at", "2026-11-22T10:00:00.125Z");
	is_text(json_array_get(json_at(o, "ports"), 0), "line_source", "rdma_port");
	is_number(json_array_get(json_at(o, "ports"), 0), "counters.port_xmit_data", 2500000000.0);
	is_number(json_array_get(json_at(o, "ports"), 0), "netdev_counters.tx_bytes", 98);
	json_decref(o);
}

TEST(other_drivers__their_names__the_same_words)
{
	static const struct { const char *name, *word; } names[] = {
		{ "tx_bytes", "bytes_out" }, { "rx_bytes", "bytes_in" }, { "tx_pkts", "packets_out" },
		{ "rx_pkts", "packets_in" }, { "to_retransmits", "retransmits" }, { "retrans_pkts", "retransmits" },
		{ "rnr_naks_rcvd", "rnr_naks_received" }, { "oos_drop_count", "out_of_sequence" },
		{ "sent_pkts", "packets_out" }, { "rcvd_pkts", "packets_in" }, { "completer_retry_err", "retransmits" },
		{ "send_rnr_err", "rnr_naks_sent" }, { "rcvd_rnr_err", "rnr_naks_received" },
		{ "out_of_seq_request", "out_of_sequence" }, { "duplicate_request", "duplicate_requests" },
		{ "retry_exceeded_err", "retries_exceeded" }, { "max_retry_exceeded", "retries_exceeded" },
	};
	char begin[64], end[64];

	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		json_t *o;

		snprintf(begin, sizeof(begin), "{\"%s\": 5}", names[i].name);
		snprintf(end, sizeof(end), "{\"%s\": 8}", names[i].name);
		o = side(false, false, begin, end, "{}", "{}");
		is_number(o, names[i].word, 3);
		json_decref(o);
	}
}

#define RXE_BEGIN "{\"sent_pkts\": 100, \"rcvd_pkts\": 100, \"out_of_seq_request\": 0}"
#define RXE_END "{\"sent_pkts\": 1100, \"rcvd_pkts\": 1000, \"out_of_seq_request\": 2}"
#define NETDEV_END "{\"tx_bytes\": 70000, \"rx_bytes\": 60000, \"tx_packets\": 1020, \"rx_packets\": 910}"
#define NETDEV_BEGIN "{\"tx_bytes\": 0, \"rx_bytes\": 0, \"tx_packets\": 0, \"rx_packets\": 0}"

TEST(rxe__on_a_wire__bytes_of_the_interface_and_packets_of_its_own)
{
	json_auto_t *o = side(true, false, RXE_BEGIN, RXE_END, NETDEV_BEGIN, NETDEV_END);

	assert_false(json_is_true(json_at(o, "loopback")));
	is_text(o, "bytes_source", "netdev");
	is_text(o, "packets_source", "rdma_counters");
	is_number(o, "bytes_out", 70000);
	is_number(o, "bytes_in", 60000);
	is_number(o, "packets_out", 1000);
	is_number(o, "other_packets", 30);
	is_number(o, "out_of_sequence", 2);
	/* The kernel invents a line rate for software devices. */
	is_null(o, "line_bits_per_s");
	is_null(o, "used_ratio");
}

TEST(loopback__whatever_the_interface_says__no_bytes)
{
	static const char *const netdevs[] = { NETDEV_BEGIN,
		"{\"tx_bytes\": 70000, \"rx_bytes\": 60000, \"tx_packets\": 1020, \"rx_packets\": 910}" };
	json_t *o;

	for (size_t i = 0; i < N_ELEMENTS(netdevs); i++) {
		o = side(true, true, RXE_BEGIN, RXE_END, NETDEV_BEGIN, netdevs[i]);
		assert_true(json_is_true(json_at(o, "loopback")));
		is_text(o, "bytes_source", "loopback");
		is_null(o, "bytes_out");
		is_null(o, "bytes_in");
		is_number(o, "packets_out", 1000);
		is_null(o, "other_packets");
		json_decref(o);
	}
	o = side(false, true,
		 "{\"port_xmit_data\": 1, \"port_rcv_data\": 1, \"port_xmit_packets\": 1, \"port_rcv_packets\": 1}",
		 "{\"port_xmit_data\": 2, \"port_rcv_data\": 2, \"port_xmit_packets\": 2, \"port_rcv_packets\": 2}",
		 "{}", "{}");
	is_null(o, "bytes_out");
	is_null(o, "packets_out");
	is_text(o, "packets_source", "loopback");
	json_decref(o);
}

/* It is not marked as loopback, but the interface saw fewer packets than the device sent. */
TEST(an_interface_without_the_packets__found_to_be_loopback)
{
	json_t *o = side(true, false, RXE_BEGIN, RXE_END, NETDEV_BEGIN,
			 "{\"tx_bytes\": 7000, \"rx_bytes\": 6000, \"tx_packets\": 50, \"rx_packets\": 40}");

	assert_true(json_is_true(json_at(o, "loopback")));
	is_null(o, "bytes_out");
	json_decref(o);
}

static double growth(const char *begin, const char *end)
{
	json_t *a = json_loads(begin, JSON_DECODE_ANY, NULL), *b = json_loads(end, JSON_DECODE_ANY, NULL);
	double v = port_growth(a, b);

	json_decref(a);
	json_decref(b);
	return v;
}

TEST(counters__that_begin_anew__only_at_32_bits)
{
	assert_true(growth("5", "5") == 0);
	assert_true(growth("0", "9007199254740993") >= 9007199254740992.0);
	assert_true(growth("4294967290", "10") == 16);
	assert_true(growth("3000000000", "5") == 1294967301.0);
	/* The counter was reset, so its growth is unknown. */
	assert_true(isnan(growth("1000", "10")));
	assert_true(isnan(growth("4294967290", "4294967200")));
	assert_true(isnan(growth("5000000000", "10")));
	/* The counter is stuck at its maximum. */
	assert_true(isnan(growth("4294967295", "4294967295")));
	assert_true(isnan(growth("17", "4294967295")));
	assert_true(isnan(growth("-5", "5")));
	assert_true(isnan(growth("1.5", "5")));
	assert_true(isnan(growth("\"1\"", "5")));
	assert_true(isnan(port_growth(NULL, NULL)));
}

TEST(figure__value_of_a_reading__in_its_unit_or_unknown)
{
	json_t *o = json_loads("{\"port_xmit_data\": 10, \"tx_bytes\": 7, \"rx_pkts\": \"x\", "
			       "\"seq_err_naks_rcvd\": 3}", 0, NULL);

	assert_true(port_figure_value(&port_figures[PORT_BYTES_OUT], o) == 40);
	assert_true(isnan(port_figure_value(&port_figures[PORT_BYTES_IN], o)));
	assert_true(isnan(port_figure_value(&port_figures[PORT_PACKETS_IN], o)));
	assert_string_equal(port_figures[4].name, "retransmits");
	assert_true(port_figure_value(&port_figures[4], o) == 3);
	assert_non_null(port_figures[PORT_FIGURES - 1].name);
	json_decref(o);
}

TEST(rails__added_up__unknown_if_one_is)
{
	json_auto_t *a = reading(SECOND, port_of(false, "{\"tx_bytes\": 10, \"rx_bytes\": 10, \"tx_pkts\": 0}", "{}"));
	json_auto_t *b = reading(2 * SECOND, port_of(false, "{\"tx_bytes\": 100010, \"rx_bytes\": 30, \"tx_pkts\": 2}",
						     "{}"));
	json_t *o;

	json_array_append_new(json_at(a, "ports"), port_of(false, "{\"tx_bytes\": 0, \"rx_bytes\": 0}", "{}"));
	json_array_append_new(json_at(b, "ports"), port_of(false, "{\"tx_bytes\": 900000, \"rx_bytes\": 5}", "{}"));
	json_object_set_new(json_array_get(json_at(a, "ports"), 1), "device", json_string("dev1"));
	json_object_set_new(json_array_get(json_at(b, "ports"), 1), "device", json_string("dev1"));
	o = network_side_json(a, b, false);
	is_number(o, "bytes_out", 1000000);
	is_number(o, "bytes_in", 25);
	is_null(o, "packets_out");
	is_number(o, "line_bits_per_s", 200e9);
	is_number(o, "used_ratio", 900000 * 8 / 100e9);	/* of the rail with the highest use */
	is_number(json_array_get(json_at(o, "ports"), 1), "bytes_out", 900000);
	json_decref(o);
	/* Another device took its place, so there is no difference. */
	json_object_set_new(json_array_get(json_at(a, "ports"), 1), "device", json_string("dev2"));
	o = network_side_json(a, b, false);
	is_null(o, "bytes_out");
	is_number(json_array_get(json_at(o, "ports"), 0), "bytes_out", 100000);
	json_decref(o);
}

/* 2^53 ns, up to which a double counts single nanoseconds, are 104 days. */
TEST(a_machine_up_for_years__window_known)
{
	const json_int_t year = 365 * 86400 * SECOND;
	json_auto_t *a = reading(3 * year, port_of(true, RXE_BEGIN, NETDEV_BEGIN));
	json_auto_t *b = reading(3 * year + 2 * SECOND, port_of(true, RXE_END, NETDEV_END));
	json_t *o = network_side_json(a, b, false);

	is_number(o, "window_s", 2);
	assert_true(json_number_at(o, "bytes_out") > 0);
	json_decref(o);
	o = network_side_json(b, a, false);
	assert_true(json_is_null(o));
	json_decref(o);
}

TEST(an_interface_without_counters__no_source)
{
	json_t *o = side(true, false, RXE_BEGIN, RXE_END, "{}", "{}");

	is_null(o, "bytes_out");
	is_null(o, "bytes_source");
	is_text(o, "packets_source", "rdma_counters");
	json_decref(o);
	o = side(true, false, "{}", "{}", "{}", "{}");
	is_null(o, "packets_out");
	is_null(o, "packets_source");
	json_decref(o);
}

/* A server may send anything. */
TEST(readings_that_are_none__null_and_no_crash)
{
	static const char *const texts[] = { "null", "7", "\"x\"", "[]", "{}", "{\"ports\": 7}", "{\"ports\": []}",
		"{\"read_ns\": 9e18, \"ports\": [{}]}", "{\"read_ns\": 1, \"ports\": [{}]}",
		"{\"read_ns\": 3000000000, \"ports\": [7]}", "{\"read_ns\": 3000000000, \"ports\": [{}, {}]}",
		"{\"read_ns\": 3000000000, \"ports\": [{\"counters\": [], \"netdev_counters\": \"x\", \"software\": "
		"5}]}",
		"{\"read_ns\": 3000000000, \"read_at\": 5, \"ports\": [{\"device\": \"a b\", \"port\": -1, "
		"\"link_lanes\": 1e300}]}",
		"{\"read_ns\": 3000000000, \"ports\": [{\"counters\": {\"a b\": 5, \"\": 6, \"sent_pkts\": -3}}]}",
		"{\"read_ns\": 3000000000, \"ports\": [{\"netdev_bits_per_s\": -5, \"link_bits_per_s\": -7}]}" };
	json_t *good = reading(SECOND, port_of(true, RXE_BEGIN, NETDEV_BEGIN));

	for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
		json_t *bad = json_loads(texts[i], JSON_DECODE_ANY, NULL), *o;

		assert_non_null(bad);
		json_decref(network_side_json(bad, good, false));
		o = network_side_json(good, bad, false);
		if (json_is_object(o)) {
			is_null(o, "bytes_out");
			is_null(o, "packets_out");
			is_null(o, "line_bits_per_s");
			is_null(json_array_get(json_at(o, "ports"), 0), "device");
			assert_int_equal(json_object_size(json_at(json_array_get(json_at(o, "ports"), 0), "counters")),
					 0);
		}
		json_decref(o);
		json_decref(bad);
	}
	json_decref(good);
	assert_true(json_is_null(network_side_json(NULL, NULL, false)));
}
