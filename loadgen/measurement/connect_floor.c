/* SPDX-License-Identifier: BSD-2-Clause */
/* See connect_floor.h. */
#include "loadgen/measurement/connect_floor.h"

#include <errno.h>
#include <stdlib.h>

#include "common/hist/hist.h"
#include "loadgen/measurement/connect_json.h"
#include "loadgen/traffic/worker_stats.h"

struct connect_floor {
	uint32_t tried, connected;
	struct hist *stages[STAGE_TIMED], *psn_generate, *total;
	struct fail_table failures;
};

int connect_floor_new(struct connect_floor **out)
{
	struct connect_floor *f = calloc(1, sizeof(*f));
	int ret = f ? hist_new(&f->total) : -ENOMEM;

	if (!ret)
		ret = hist_new(&f->psn_generate);
	if (!ret)
		ret = hists_new(f->stages, STAGE_TIMED);
	if (ret)
		connect_floor_free(f);
	else
		*out = f;
	return ret;
}

void connect_floor_free(struct connect_floor *f)
{
	if (!f)
		return;
	hists_free(f->stages, STAGE_TIMED);
	hist_free(f->psn_generate);
	hist_free(f->total);
	free(f);
}

bool connect_floor_add(struct connect_floor *f, const struct worker_stats *st)
{
	bool connected = counter_get(&st->live) > 0;

	f->tried++;
	f->connected += connected;
	for (int k = 0; k < HANDSHAKE_N; k++) {
		hists_add(f->stages, st->hists.stages[k], STAGE_TIMED);
		hist_add(f->total, st->hists.total[k]);
	}
	hist_add(f->psn_generate, st->hists.psn_generate);
	fail_table_add(&f->failures, &st->failures);
	return connected;
}

uint32_t connect_floor_tried(const struct connect_floor *f)
{
	return f->tried;
}

uint32_t connect_floor_connected(const struct connect_floor *f)
{
	return f->connected;
}

json_t *connect_floor_json(const struct connect_floor *f)
{
	return json_pack("{s:i, s:i, s:o, s:o, s:o}", "tried", (int)f->tried, "connected", (int)f->connected,
			 "connect_ns",
			 connect_json(f->stages, f->total, f->psn_generate), "longest",
			 connect_longest_json(f->stages, f->total), "failures", fail_table_json(&f->failures));
}
