/* SPDX-License-Identifier: BSD-2-Clause */
/* Estimates the size of a run's files. See space.h. The amounts were measured in runs with 10 to 10,000 clients and
 * rounded up. */
#include "loadgen/output/space.h"

#include <sys/param.h>

#include "common/base/clock.h"
#include "loadgen/config/config.h"

#define RUN_BYTES	(256u << 10)	/* the report without its figures; server.log; the rest of run.json */
#define STEP_BYTES	(96u << 10)	/* a step's part of run.json and of the report; histograms */
#define HISTOGRAM_BYTES (24u << 10)	/* .hgrm and .hlog */
#define SECOND_BYTES	1024u		/* events: samples and intervals */
#define SAMPLE_BYTES	4096u		/* a sample of both sides: events, run.json, and its row in the report */
#define CONNECT_S	10u		/* assumed time of connecting and leaving */
#define SEARCH_STEPS	40u		/* assumed steps of --find-capacity */

uint64_t space_needed(const struct loadgen_config *cfg)
{
	uint64_t steps = loadgen_is_search(cfg) ? SEARCH_STEPS : cfg->steps.n * cfg->repeat * MAX(cfg->rates.n, 1);
	uint64_t seconds = (cfg->warmup_ns + cfg->duration_ns) / NS_PER_S + CONNECT_S;
	uint64_t samples = cfg->sample_interval_ns ? seconds * NS_PER_S / cfg->sample_interval_ns : 0;
	uint64_t step = STEP_BYTES + (loadgen_is_open_loop(cfg) ? 3 : 2) * HISTOGRAM_BYTES + seconds * SECOND_BYTES +
			samples * SAMPLE_BYTES;

	return RUN_BYTES + steps * cfg->sizes.n * step;
}
