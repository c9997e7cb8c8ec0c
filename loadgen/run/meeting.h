/* SPDX-License-Identifier: BSD-2-Clause */
/* Brings the load hosts together before the run (--lead, --join, --cluster) and keeps them until all runs are done.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_MEETING_H
#define RAMPART_LOADGEN_MEETING_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/opts.h"
#include "loadgen/cluster/etcd/etcd_url.h"
#include "loadgen/config/config.h"
#include "loadgen/cluster/team.h"

struct etcd_proc;

struct meeting {
	struct team team;
	struct etcd_proc *etcd;		/* with --lead: the etcd of this host */
	char url[ETCD_URL_MAX];		/* URL of the etcd, with the token */
	char **argv;			/* of a member: its own and the leader's options; NULL: as given */
	int argc, own_argc;
};

/* Joins the run and waits until all --hosts hosts are there; the leader checks each against itself. Blocks. Returns 0,
 * or -errno with a line in `err`; -ECANCELED after SIGINT or SIGTERM. If m->argv is set, this host is a member and must
 * use that command line instead of the given one. */
int meeting_begin(struct meeting *m, const struct opts_spec *spec, const struct loadgen_config *cfg, int argc,
		  char **argv, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Adds the hosts to a configuration. False with a line in `err` if this host may not load its servers
 * (--allow-server). */
bool meeting_apply(struct meeting *m, struct loadgen_config *cfg, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* Leaves the run; `why` as in cluster_leave. Allowed even if the hosts never met. */
void meeting_end(struct meeting *m, const char *why);

#endif
