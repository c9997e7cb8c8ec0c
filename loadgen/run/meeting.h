/* SPDX-License-Identifier: BSD-2-Clause */
/* The meeting of the load hosts of this command (--lead, --join, --cluster): before anything is run, until all is done.
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
	struct etcd_proc *etcd;		/* our own, with --lead */
	char url[ETCD_URL_MAX];		/* of the etcd, with the token */
	char **argv;			/* a member's: its own and the leader's options; NULL: as they were given */
	int argc, own_argc;
};

/* Meets the others: waits until as many as --hosts are there, and has each checked against this one if this is the leader.
 * Blocks. Returns 0, or -errno with a line in `err`; -ECANCELED after SIGINT or SIGTERM. With m->argv a member's command line
 * to be read in the place of the one that was given. */
int meeting_begin(struct meeting *m, const struct opts_spec *spec, const struct loadgen_config *cfg, int argc, char **argv,
		  char *err, size_t err_size) __attribute__((warn_unused_result));

/* Makes a configuration one of the hosts that met. False with a line in `err` if this host may not load its servers
 * (--allow-server). */
bool meeting_apply(struct meeting *m, struct loadgen_config *cfg, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Parts; `why` as in cluster_leave. Nobody need have met. */
void meeting_end(struct meeting *m, const char *why);

#endif
