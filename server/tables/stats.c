/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of a shard. See stats.h. */
#include "server/tables/stats.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/hist/hist.h"

const char *const server_stage_names[SS_N] = {
	[SS_TLS_ACCEPT] = "tls_accept",
	[SS_TLS_ACCEPT_RESUMED] = "tls_accept_resumed",
	[SS_PSN_GENERATE] = "psn_generate",
	[SS_QP_SETUP] = "qp_setup",
	[SS_ACCEPT_TO_ESTABLISHED] = "accept_to_established",
	[SS_QP_RECYCLE] = "qp_recycle",
};

const char *const close_reason_names[CLOSE_N] = {
	[CLOSE_PEER_LEFT] = "peer_left",
	[CLOSE_DRAINING] = "draining",
	[CLOSE_REFUSED] = "refused",
	[CLOSE_HANDED_OVER] = "handed_over",
	[CLOSE_CONTROL_END] = "control_end",
	[CLOSE_CROWDED_OUT] = "crowded_out",
	[CLOSE_FAILED] = "failed",
};

const uint64_t stats_lag_bounds_ns[STATS_LAGS] = {
	2500 * NS_PER_US, 5 * NS_PER_MS, 10 * NS_PER_MS, 50 * NS_PER_MS, 250 * NS_PER_MS, NS_PER_S,
};

int stats_init(struct stats *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < SS_N; i++) {
		int ret = hist_new(&s->stages[i]);

		if (ret) {
			stats_fini(s);
			return ret;
		}
	}
	return 0;
}

void stats_fini(struct stats *s)
{
	for (int i = 0; i < SS_N; i++) {
		hist_free(s->stages[i]);
		s->stages[i] = NULL;
	}
}

void stats_count_lag(struct stats *s, uint64_t lag_ns)
{
	int i = 0;

	while (i < STATS_LAGS && lag_ns > stats_lag_bounds_ns[i])
		i++;
	counter_add(&s->loop_lags[i], 1);
	counter_add(&s->loop_lag_ns, lag_ns);
}
