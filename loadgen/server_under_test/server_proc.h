/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts, watches and stops a server process of our own. Owning thread: main, with the default loop, which child
 * watchers need. */
#ifndef RAMPART_LOADGEN_SERVER_PROC_H
#define RAMPART_LOADGEN_SERVER_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#include "common/base/addr.h"
#include "common/base/rails.h"

struct server_proc;

struct server_proc_events {
	/* The server is ready; `tls` has its address on each of its `n` rails (1 to RAILS_MAX). Must not free the
	 * server_proc. */
	void (*on_ready)(void *arg, const struct addr *tls, uint32_t n);
	/* The server ended, perhaps after server_proc_stop; `status` is that of waitpid. May free the server_proc. */
	void (*on_exit)(void *arg, int status);
};

/* Starts `argv` (argv[0] is the path of the program) with stderr to the file `log`. The server gets SIGTERM when this
 * process dies. Call it before starting threads. Returns 0 or -errno with a line in `err`. */
int server_proc_start(char *const *argv, const char *log, struct ev_loop *loop,
		      const struct server_proc_events *events, void *arg, struct server_proc **out,
		      char *err, size_t err_size) __attribute__((warn_unused_result));

/* Sends further events to another owner. */
void server_proc_pass(struct server_proc *p, const struct server_proc_events *events, void *arg);

/* Asks the server to drain and end; on_exit follows. */
void server_proc_stop(struct server_proc *p);

/* Kills the server if it still runs, reaps it and frees. NULL-safe. */
void server_proc_free(struct server_proc *p);

#endif
