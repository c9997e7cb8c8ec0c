/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers under test: a question goes to all of them, and is answered when all have answered. One server is a number
 * of one. Owning thread: main.
 */
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
	/* Our own server is ready: suts_connect can follow. */
	void (*on_ready)(void *arg);
	/* A server's answer, borrowed, as soon as it is there, with the number that suts_ask was given. */
	void (*on_report)(void *arg, uint32_t target, enum control_what what, uint32_t number, json_t *report);
	/* All have answered. `sum` is borrowed: the answer of the only server; of several STATS and MARK, what they add up to
	 * (loadgen/measurement/report_sum.h); else NULL. */
	void (*on_reports)(void *arg, enum control_what what, uint32_t number, json_t *sum);
	/* A server cannot be asked any more: what was asked is not answered by all. `why` names it if there are several. */
	void (*on_lost)(void *arg, const char *why);
	/* Our own server ended, also after suts_stop. */
	void (*on_exit)(void *arg, const char *why);
};

struct suts_one {
	struct suts *all;
	uint32_t index;
	struct sut sut;
	json_t *answers[SUT_QUESTIONS];	/* to the newest question of each kind, by enum control_what; NULL: not yet */
};

struct suts {
	const struct loadgen_config *cfg;
	const struct suts_events *events;
	void *arg;
	struct suts_one one[TARGETS_MAX];
	uint32_t n;
	uint32_t numbers[SUT_QUESTIONS];	/* of the newest question of each kind */
};

/* As sut_init, for --targets, --server or a server of our own. */
void suts_init(struct suts *s, const struct loadgen_config *cfg, const char *log, struct ev_loop *loop,
	       const struct suts_events *events, void *arg);
void suts_clear(struct suts *s);

/* As the functions of sut.h, for all of them; those that can fail end with the first failure. */
int suts_start(struct suts *s, char *err, size_t err_size) __attribute__((warn_unused_result));
int suts_find(struct suts *s, char *err, size_t err_size) __attribute__((warn_unused_result));
int suts_connect(struct suts *s, char *err, size_t err_size) __attribute__((warn_unused_result));
void suts_disconnect(struct suts *s);
bool suts_stop(struct suts *s);
void suts_ask(struct suts *s, enum control_what what, uint32_t number);
void suts_send_next(struct suts *s);
bool suts_are_idle(const struct suts *s);

/* Where workers find them. */
void suts_places(const struct suts *s, struct sut_place out[TARGETS_MAX]);
/* A server's name, as --targets has it; "" if there is only one server. */
const char *suts_name(const struct suts *s, uint32_t target);

/* Of all: sessions that were made again; servers that answered in the place of another one. */
uint32_t suts_reconnects(const struct suts *s);
uint32_t suts_restarts(const struct suts *s);
/* Our own server ended. */
bool suts_are_gone(const struct suts *s);
/* A session broke, and is not there again. */
bool suts_are_waiting(const struct suts *s);
/* When the server that was silent longest answered last. */
uint64_t suts_last_report_ns(const struct suts *s);
/* A server's first report; the sum of all, a new reference, NULL: not of all there is one. */
json_t *suts_baseline_of(const struct suts *s, uint32_t target);
json_t *suts_baseline(const struct suts *s);
/* A server's pools by its last answer to STATS. Without a baseline they are not known: what another server's pools were
 * like without clients was never seen. */
enum step_pools suts_pools(const struct suts *s, uint32_t target);
/* How many clients each server can take, by `infos` (INFO of each, NULL: not known) and its first report. */
void suts_room(const struct suts *s, json_t *const infos[TARGETS_MAX], uint64_t out[TARGETS_MAX]);

#endif
