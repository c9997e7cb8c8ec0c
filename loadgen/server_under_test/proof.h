/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that this host may load the servers of a run: opens a TLS connection to each and verifies its certificate for
 * the server's name with this host's own CA. A member of a run on several hosts needs that, because it gets the names
 * of the servers from the leader and has no control session with them. Does not block. Owning thread: main. */
#ifndef RAMPART_LOADGEN_PROOF_H
#define RAMPART_LOADGEN_PROOF_H

#include <stdint.h>
#include <sys/param.h>

#include <ev.h>

#include "client/control.h"
#include "loadgen/server_under_test/suts.h"

/* Called once, from the loop. `why` names a server that did not prove its identity; NULL: all did. */
typedef void proof_on_end_fn(void *arg, const char *why);

struct proof;

struct proof_one {
	struct proof *all;
	const struct sut *sut;
	uint32_t rail;
	struct control *control;	/* NULL: not open */
};

struct proof {
	struct ev_loop *loop;
	proof_on_end_fn *on_end;
	void *arg;
	struct proof_one one[MAX(TARGETS_MAX, RAILS_MAX)];	/* only a single server has several rails */
	uint32_t n, left;		/* number of proofs; those still pending */
	char why[512];			/* "": no server has failed */
	ev_timer end;
};

/* Opens one connection to each rail of each server. Returns 0, or -errno of control_new with a line in `err`. Call
 * proof_clear in either case. */
int proof_start(struct proof *p, const struct suts *suts, struct ev_loop *loop, proof_on_end_fn *on_end, void *arg,
		char *err, size_t err_size) __attribute__((warn_unused_result));
/* Closes all connections; on_end is not called any more. A zeroed struct is allowed. */
void proof_clear(struct proof *p);

#endif
