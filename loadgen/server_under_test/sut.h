/* SPDX-License-Identifier: BSD-2-Clause */
/* The server under test: the process, if it is one of our own, the control session with it, its description, and what
 * its pools were before the first client came. Nothing here blocks but sut_find. Owning thread: main.
 */
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
	/* Our own server is ready: sut_connect can follow. */
	void (*on_ready)(void *arg);
	/* A report, borrowed, with the number that sut_ask was given. */
	void (*on_report)(void *arg, enum control_what what, uint32_t number, json_t *report);
	/* The server cannot be asked any more: what was asked is not answered. */
	void (*on_lost)(void *arg, const char *why);
	/* Our own server ended, also after sut_stop. */
	void (*on_exit)(void *arg, const char *why);
};

/* A server of our own that serves several runs, one after the other (`keep` of their configurations). It is started by the
 * first of them. */
struct sut_keep {
	struct needs_args args;		/* its command line */
	char program[PATH_MAX], log[PATH_MAX];
	struct server_proc *proc;	/* NULL: none runs */
	struct addr addrs[RAILS_MAX];	/* where it listens, on `n_rails`; 0: it is not ready */
	uint32_t n_rails;
};

/* Prepares a server that suits the run, whose log becomes `log`. 0 or -ENAMETOOLONG. */
int sut_keep_init(struct sut_keep *k, const struct loadgen_config *cfg, const char *log) __attribute__((warn_unused_result));
/* Ends it and waits for that, 20 s at most: then it is killed. Between runs only. */
void sut_keep_end(struct sut_keep *k);

#define SUT_QUESTIONS 4	/* numbers of enum control_what below */

struct sut {
	const struct loadgen_config *cfg;
	const struct target *target;	/* one of several; NULL: --server, or a server of our own */
	struct ev_loop *loop;
	const struct sut_events *events;
	void *arg;
	char log[PATH_MAX];
	struct server_proc *proc;	/* NULL with --server */
	bool told_to_stop;
	bool gone;			/* our own server ended */
	struct addr addrs[RAILS_MAX];	/* of each rail */
	const char *names[RAILS_MAX];	/* what the certificate must name there */
	struct control *control;
	struct {
		bool wanted;
		uint32_t number;
	} waiting[SUT_QUESTIONS];			/* by enum control_what: asked for, not yet sent */
	enum control_what asked;	/* the question under way */
	uint32_t number;		/* and the asker's number of it */
	uint64_t last_report_ns;	/* 0: none came yet */
	double server_began_ns;		/* `started_ns` of its last report; 0: none came yet */
	ev_timer retry;			/* until the question is repeated */
	ev_timer attach;		/* until the run learns that the server that is kept is ready */
	struct backoff backoff;		/* of a control session that broke */
	uint32_t reconnects;		/* sessions that broke and were made again */
	uint32_t restarts;		/* with --reconnect: servers that answered in the place of one that had ended */
	json_t *baseline;		/* the first STATS report, before any client; of a server that has taken the place of another
					 * one, the first that shows it without clients; NULL until it came */
};

/* `target` is of --targets, or NULL; `log` is the path for the stderr of a server of our own. */
void sut_init(struct sut *s, const struct loadgen_config *cfg, const struct target *target, const char *log,
	      struct ev_loop *loop, const struct sut_events *events, void *arg);
/* Kills a server of our own that still runs, unless it is kept for other runs, and forgets all. */
void sut_clear(struct sut *s);

/* Starts a server of our own; or another one after the last has ended, whose session and reports are forgotten. 0 or
 * -errno with a line in `err`. */
int sut_start(struct sut *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Resolves its name. 0 or -errno with a line in `err`. Blocks. */
int sut_find(struct sut *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Asks a server of our own to end. False if there is none that runs, or if it is kept for other runs. */
bool sut_stop(struct sut *s);

/* How a control session with the server is made. */
struct control_config sut_control_config(const struct sut *s, uint32_t rail);
/* Makes the control session. 0 or -errno with a line in `err`. */
int sut_connect(struct sut *s, char *err, size_t err_size) __attribute__((warn_unused_result));
void sut_disconnect(struct sut *s);
/* Asks now, or as soon as the question under way is answered. `number` comes back with the report; of two questions of
 * a kind that wait, the later one's. */
void sut_ask(struct sut *s, enum control_what what, uint32_t number);
/* Sends a question that waits. To be called at the end of each turn of the loop. */
void sut_send_next(struct sut *s);
/* True if no question is under way, or waits to be repeated, in a session that is there or can be made. */
bool sut_is_idle(const struct sut *s);

/* True if the server's pools are as they were before the first client came. QPs and PSNs in quarantine are at rest,
 * not lost. `now` is a STATS report. */
bool sut_is_restored(const struct sut *s, const json_t *now);

#endif
