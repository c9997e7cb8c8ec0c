/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks before anything is started. See preflight.h. */
#include "loadgen/run/preflight.h"

#include <errno.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/host/res.h"
#include "common/rdma/dev.h"
#include "common/sizing/sizes.h"

/* True if the file of an option can be written, or if the option was not given (`file` is NULL). */
static bool can_write(const char *option, const char *file)
{
	int ret = file ? path_may_write(file) : 0;

	if (ret)
		log_error("--%s %s: %s; name a file in a folder that exists and may be written", option, file,
			  path_error(ret));
	return !ret;
}

int preflight_check(const struct loadgen_config *cfg)
{
	/* With --phased every client of a step has its TLS connection open at once. */
	uint64_t open = cfg->phased ? cfg->clients : cfg->connect_concurrency, have = res_raise_nofile();
	uint64_t fds = sizes_generator_fds(cfg->clients, open, cfg->transport != TRANSPORT_RDMA);
	const char *option = cfg->transport == TRANSPORT_RDMA && !cfg->phased ? "--connect-concurrency" : "--clients";
	struct addr any;
	char err[512];

	res_raise_memlock();
	if (!can_write("json", cfg->json && strcmp(cfg->json, "-") == 0 ? NULL : cfg->json) ||
	    !can_write("metrics-textfile", cfg->metrics_textfile) || !can_write("junit", cfg->junit) ||
	    !can_write("trace", cfg->trace))
		return -ENOENT;
	if (have < fds) {
		log_error("the limit of open files (ulimit -n) is %llu, %s needs %llu; raise the limit or lower %s",
			  (unsigned long long)have, cfg->transport == TRANSPORT_RDMA && cfg->phased ?
			  "--clients with --phased" : option, (unsigned long long)fds, option);
		return -ENOENT;
	}
	for (uint32_t i = 0; i < cfg->n_rails && cfg->transport == TRANSPORT_RDMA; i++)
		if (dev_local_addr(cfg->devices.n ? cfg->devices.name[i] : NULL, &any, err, sizeof(err))) {
			log_error("%s", err);
			return -ENOENT;
		}
	return 0;
}
