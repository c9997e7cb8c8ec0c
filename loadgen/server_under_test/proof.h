/* SPDX-License-Identifier: BSD-2-Clause */
/* Proof that the servers of a run are those that this host may load: one TLS connection to each, whose certificate this host's
 * own CA proves for the server's name. A member of a run on several hosts needs it, because it has the servers' names from the
 * leader and asks them nothing else. Nothing here blocks. Owning thread: main.
 */
#ifndef RAMPART_LOADGEN_PROOF_H
#define RAMPART_LOADGEN_PROOF_H

#include <stdint.h>
#include <sys/param.h>

#include <ev.h>

#include "client/control.h"
#include "loadgen/server_under_test/suts.h"

/* Called once, from the loop. `why` is NULL if every server is proved; else it names one that is not. */
typedef void proof_on_end_fn(void *arg, const char *why);

struct proof;

struct proof_one {
	struct proof *all;
	const struct sut *sut;
	uint32_t rail;
	struct control *control;	/* NULL: none is open */
};

struct proof {
	struct ev_loop *loop;
	proof_on_end_fn *on_end;
	void *arg;
	struct proof_one one[MAX(TARGETS_MAX, RAILS_MAX)];	/* several rails are those of a single server */
	uint32_t n, left;		/* of them; those that are not proved yet */
	char why[512];			/* "": no server has failed */
	ev_timer end;
};

/* Makes one connection to each rail of each server. 0, or -errno of control_new with a line in `err`. Call proof_clear in either
 * case. */
int proof_start(struct proof *p, const struct suts *suts, struct ev_loop *loop, proof_on_end_fn *on_end, void *arg, char *err,
		size_t err_size) __attribute__((warn_unused_result));
/* Closes what is open; on_end is not called any more. For a struct of zeros, too. */
void proof_clear(struct proof *p);

#endif
