/* SPDX-License-Identifier: BSD-2-Clause */
/* A server process of our own: started, waited for, stopped. Owning thread: main; its loop is the
 * default one (child watchers need it). */
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
	/* It is ready; `tls` is where it listens, on each of its `n` rails: 1 to RAILS_MAX. Must not free the
	 * server_proc. */
	void (*on_ready)(void *arg, const struct addr *tls, uint32_t n);
	/* It ended: `status` as waitpid gives it. Also after server_proc_stop. May free the server_proc. */
	void (*on_exit)(void *arg, int status);
};

/* Starts `argv` (argv[0] is the program's path) with stderr into the file `log`. It gets SIGTERM when
 * this process dies. Must be called before threads are started. 0 or -errno with a line in `err`. */
int server_proc_start(char *const *argv, const char *log, struct ev_loop *loop,
		      const struct server_proc_events *events, void *arg, struct server_proc **out,
		      char *err, size_t err_size) __attribute__((warn_unused_result));

/* From now on events are those of another owner. */
void server_proc_pass(struct server_proc *p, const struct server_proc_events *events, void *arg);

/* Asks it to drain and end; on_exit follows. */
void server_proc_stop(struct server_proc *p);

/* Kills it if it still runs, and reaps it. NULL-safe. */
void server_proc_free(struct server_proc *p);

#endif
