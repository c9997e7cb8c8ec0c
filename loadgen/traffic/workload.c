/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the parameters of a step. See workload.h. */
#include "loadgen/traffic/workload.h"

#include <errno.h>
#include <stdio.h>
#include <sys/param.h>

#include "common/wire/msg.h"
#include "loadgen/config/config.h"

static uint64_t least_bytes(const struct loadgen_config *c)
{
	uint64_t sum = c->verify && c->wl->sums ? MSG_SUM_BYTES : 0, tag = c->message_auth ? MSG_TAG_BYTES : 0;

	return sum + tag ? MAX(c->wl->bytes_min, MSG_HEADER_BYTES + sum + tag) : c->wl->bytes_min;
}

static int check_bytes(const struct loadgen_config *c, uint64_t bytes, char *err, size_t err_size)
{
	if (bytes >= least_bytes(c) && bytes <= c->wl->bytes_max)
		return 0;
	snprintf(err, err_size, "--message-size: %llu is not allowed with --workload %s%s%s; allowed: %llu to %llu",
		 (unsigned long long)bytes, loadgen_workload_names[c->workload], c->verify && c->wl->sums ?
		 " --verify" : "", c->message_auth ? " --message-auth" : "", (unsigned long long)least_bytes(c),
		 (unsigned long long)c->wl->bytes_max);
	return -EINVAL;
}

/* True if `v` is among the values given with the option. */
static bool is_listed(const struct opt_list *list, uint64_t v)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i] == v)
			return true;
	return false;
}

static bool rate_is_allowed(const struct loadgen_config *c, uint64_t rate)
{
	if (!c->rates.n)
		return rate == 0;
	/* A search also tries rates between the given ones. */
	return c->find_rate ? rate >= 1 && rate <= c->rates.v[c->rates.n - 1] : is_listed(&c->rates, rate);
}

int workload_check_step(const struct loadgen_config *c, const struct step_figures *f, char *err, size_t err_size)
{
	/* Checked because files are named after the repetition. A search repeats disturbed steps beyond --repeat. */
	uint64_t most = loadgen_is_search(c) ? UINT32_MAX : c->repeat;

	if (check_bytes(c, f->bytes, err, err_size))
		return -EINVAL;
	if (!is_listed(&c->sizes, f->bytes))
		snprintf(err, err_size, "--message-size: %llu is none of the sizes given with the option",
			 (unsigned long long)f->bytes);
	else if (f->clients < 1 || f->clients > c->clients)
		snprintf(err, err_size, "--clients: %llu are not allowed in a step; allowed: 1 to %llu",
			 (unsigned long long)f->clients, (unsigned long long)c->clients);
	else if (f->repetition < 1 || f->repetition > most)
		snprintf(err, err_size, "--repeat: repetition %llu is not allowed; allowed: 1 to %llu",
			 (unsigned long long)f->repetition, (unsigned long long)most);
	else if (!rate_is_allowed(c, f->rate))
		snprintf(err, err_size, "--rate: %llu operations a second is none of the rates given with the options",
			 (unsigned long long)f->rate);
	else
		return 0;
	return -EINVAL;
}
