/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers under test, one or several. A request goes to all of them and is complete when all have answered. Owning
 * thread: main. */
#ifndef RAMPART_LOADGEN_SUTS_H
#define RAMPART_LOADGEN_SUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "loadgen/server_under_test/place.h"
#include "loadgen/server_under_test/sut.h"
#include "loadgen/measurement/step.h"

struct suts;

struct suts_events {
	/* Our own server is ready for suts_connect. */
	void (*on_ready)(void *arg);
	/* The answer of one server (borrowed), with the number given to suts_ask. */
	void (*on_report)(void *arg, uint32_t target, enum control_what what, uint32_t number, json_t *report);
	/* All servers have answered. `sum` is borrowed: the answer of the only server, or the sum of several STATS or
	 * MARK (loadgen/measurement/report_sum.h); NULL for INFO of several. */
	void (*on_reports)(void *arg, enum control_what what, uint32_t number, json_t *sum);
	/* A control session is lost for good: requests stay incomplete. With several servers `why` names the server. */
	void (*on_lost)(void *arg, const char *why);
	/* Our own server ended, perhaps after suts_stop. */
	void (*on_exit)(void *arg, const char *why);
};

struct suts_one {
	struct suts *all;
	uint32_t index;
	struct sut sut;
	json_t *answers[SUT_QUESTIONS];	/* to the newest request of each kind, by enum control_what; NULL: not yet */
};

struct suts {
	const struct loadgen_config *cfg;
	const struct suts_events *events;
	void *arg;
	struct suts_one one[TARGETS_MAX];
	uint32_t n;
	uint32_t numbers[SUT_QUESTIONS];	/* of the newest request of each kind */
};

/* Like sut_init, for --targets, --server or a server of our own. */
void suts_init(struct suts *s, const struct loadgen_config *cfg, const char *log, struct ev_loop *loop,
	       const struct suts_events *events, void *arg);
void suts_clear(struct suts *s);

/* Like the functions of sut.h, for all servers; those that can fail stop at the first failure. */
int suts_start(struct suts *s, char *err, size_t err_size) __attribute__((warn_unused_result));
int suts_find(struct suts *s, char *err, size_t err_size) __attribute__((warn_unused_result));
int suts_connect(struct suts *s, char *err, size_t err_size) __attribute__((warn_unused_result));
void suts_disconnect(struct suts *s);
bool suts_stop(struct suts *s);
void suts_ask(struct suts *s, enum control_what what, uint32_t number);
void suts_send_next(struct suts *s);
bool suts_are_idle(const struct suts *s);

/* The addresses at which workers reach the servers. */
void suts_places(const struct suts *s, struct sut_place out[TARGETS_MAX]);
/* A server's name as given in --targets; "" for a single server. */
const char *suts_name(const struct suts *s, uint32_t target);

/* Sums over all servers: sessions restored, and servers replaced by another one. */
uint32_t suts_reconnects(const struct suts *s);
uint32_t suts_restarts(const struct suts *s);
/* True if our own server ended. */
bool suts_are_gone(const struct suts *s);
/* True if a broken session is not restored yet. */
bool suts_are_waiting(const struct suts *s);
/* When the server that has been silent longest gave its last answer. */
uint64_t suts_last_report_ns(const struct suts *s);
/* The first report of a server, borrowed; and the sum over all, a new reference, NULL unless all have one. */
json_t *suts_baseline_of(const struct suts *s, uint32_t target);
json_t *suts_baseline(const struct suts *s);
/* The state of a server's pools by its last answer to STATS. POOLS_UNKNOWN without a baseline, as for a server that
 * replaced another and was never seen without clients. */
enum step_pools suts_pools(const struct suts *s, uint32_t target);
/* Number of clients each server has room for, by its INFO in `infos` (NULL: not known) and its first report. */
void suts_room(const struct suts *s, json_t *const infos[TARGETS_MAX], uint64_t out[TARGETS_MAX]);

#endif
