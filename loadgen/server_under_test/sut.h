/* SPDX-License-Identifier: BSD-2-Clause */
/* The server under test: its process if it is our own, the control session, and the state of its pools before the first
 * client. Only sut_find and sut_keep_end block. Owning thread: main. */
#ifndef RAMPART_LOADGEN_SUT_H
#define RAMPART_LOADGEN_SUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "client/backoff.h"
#include "client/control.h"
#include "common/base/addr.h"
#include "common/wire/frame.h"
#include "loadgen/config/config.h"
#include "loadgen/server_under_test/needs.h"

struct server_proc;

struct sut_events {
	/* Our own server is ready for sut_connect. */
	void (*on_ready)(void *arg);
	/* A report (borrowed), with the number given to sut_ask. */
	void (*on_report)(void *arg, enum control_what what, uint32_t number, json_t *report);
	/* The control session is lost for good; pending requests get no answer. */
	void (*on_lost)(void *arg, const char *why);
	/* Our own server ended, perhaps after sut_stop. */
	void (*on_exit)(void *arg, const char *why);
};

/* A server of our own that serves several runs in turn (`keep` in their configurations). The first run starts it. */
struct sut_keep {
	struct needs_args args;		/* its command line */
	char program[PATH_MAX], log[PATH_MAX];
	struct server_proc *proc;	/* NULL: not running */
	struct addr addrs[RAILS_MAX];	/* its addresses on `n_rails` rails; 0 rails: not ready */
	uint32_t n_rails;
};

/* Prepares a server that suits the run and logs to `log`. Returns 0 or -ENAMETOOLONG. */
int sut_keep_init(struct sut_keep *k, const struct loadgen_config *cfg, const char *log)
	__attribute__((warn_unused_result));
/* Ends the server and waits for its end, at most 20 s, then kills it. Only between runs. */
void sut_keep_end(struct sut_keep *k);

#define SUT_QUESTIONS 4	/* values of enum control_what up to CONTROL_MARK, and 0 */

struct sut {
	const struct loadgen_config *cfg;
	const struct target *target;	/* one of several servers; NULL: --server, or a server of our own */
	struct ev_loop *loop;
	const struct sut_events *events;
	void *arg;
	char log[PATH_MAX];
	struct server_proc *proc;	/* NULL with --server */
	bool told_to_stop;
	bool gone;			/* our own server ended */
	struct addr addrs[RAILS_MAX];	/* addresses of each rail */
	const char *names[RAILS_MAX];	/* names that the certificate must have there */
	struct control *control;
	struct {
		bool wanted;
		uint32_t number;
	} waiting[SUT_QUESTIONS];			/* requests not yet sent, by enum control_what */
	enum control_what asked;	/* the request in flight */
	uint32_t number;		/* its number, given to sut_ask */
	uint64_t last_report_ns;	/* 0: none yet */
	double server_began_ns;		/* `started_ns` of its last report; 0: none yet */
	ev_timer retry;			/* until the request is repeated */
	ev_timer attach;		/* reports from the loop that the kept server is ready */
	struct backoff backoff;		/* for a broken control session */
	uint32_t reconnects;		/* sessions restored after a break */
	uint32_t restarts;		/* with --reconnect: servers that replaced one that had ended */
	json_t *baseline;		/* the first STATS report, before any client; if the server replaced
					 * another one, its first report without clients; NULL: none yet */
};

/* `target` is one of several --targets, or NULL; `log` is the file for stderr of a server of our own. */
void sut_init(struct sut *s, const struct loadgen_config *cfg, const struct target *target, const char *log,
	      struct ev_loop *loop, const struct sut_events *events, void *arg);
/* Kills a running server of our own, unless it is kept for other runs, and clears all state. */
void sut_clear(struct sut *s);

/* Starts a server of our own. After an earlier one, forgets its session and reports first. Returns 0 or -errno with a
 * line in `err`. */
int sut_start(struct sut *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Resolves the name of the server. Blocks. Returns 0 or -errno with a line in `err`. */
int sut_find(struct sut *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Asks a server of our own to end. False if none is running, or if it is kept for other runs. */
bool sut_stop(struct sut *s);

/* The configuration of a control session with the server. */
struct control_config sut_control_config(const struct sut *s, uint32_t rail);
/* Opens the control session. Returns 0 or -errno with a line in `err`. */
int sut_connect(struct sut *s, char *err, size_t err_size) __attribute__((warn_unused_result));
void sut_disconnect(struct sut *s);
/* Sends a request now, or when the one in flight is answered. `number` comes back with the report. A newer waiting
 * request of the same kind replaces an older one. */
void sut_ask(struct sut *s, enum control_what what, uint32_t number);
/* Sends a waiting request. Call it at the end of each iteration of the loop. */
void sut_send_next(struct sut *s);
/* True if the session exists and no request is in flight or waits to be repeated. */
bool sut_is_idle(const struct sut *s);

/* True if the pools of the server are as they were before the first client. Quarantined QPs and PSNs do not count as
 * lost. `now` is a STATS report. */
bool sut_is_restored(const struct sut *s, const json_t *now);

#endif
