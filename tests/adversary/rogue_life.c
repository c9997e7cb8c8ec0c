/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that come back with a session ticket, vanish without a message, wait for room, or keep sending to a server
 * that is told to stop. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/rdma/qp_pool.h"
#include "common/wire/msg.h"
#include "common/tls/tls.h"
#include "tests/adversary/link.h"

/* Connects, asks for a ticket and keeps it if one comes. Prints a line and returns false if it gets no GRANT. */
static bool take_ticket(struct rogue *r, struct tls_session **ticket)
{
	struct frame_hello h = wire_good_hello();
	struct reply reply;
	struct wire w;

	h.features |= FRAME_FEATURE_TICKET;
	wire_open_hello(r, &h, &w, &reply);
	if (reply.kind == REPLY_GRANT)
		*ticket = tls_take_session(w.tls);
	wire_close(&w);
	if (reply.kind == REPLY_GRANT)
		return true;
	wire_answer(&reply);
	return false;
}

static int use_ticket(struct rogue *r)
{
	struct frame_hello h = wire_good_hello();
	struct reply reply;
	struct wire w;
	bool resumed;

	wire_open_hello(r, &h, &w, &reply);
	resumed = reply.kind == REPLY_GRANT && tls_is_resumed(w.tls);
	wire_close(&w);
	if (reply.kind != REPLY_GRANT)
		return wire_answer(&reply);
	return answer("%s ticket, %s handshake, granted", r->session ? "a" : "no", resumed ? "resumed" : "full");
}

/* Gets a ticket from the server and offers it to the server at port ARG of the same host, or to the same server. */
static int ticket(struct rogue *r, const struct mode *m)
{
	struct rogue again = *r;
	int status;

	(void)m;
	if (!take_ticket(r, &again.session))
		return ROGUE_NO_ANSWER;
	if (r->arg)
		addr_set_port(&again.server, (uint16_t)atoi(r->arg));
	status = use_ticket(&again);
	tls_session_free(again.session);
	return status;
}

/* Gets a ticket, and offers it after SIGUSR1. */
static int old_ticket(struct rogue *r, const struct mode *m)
{
	struct rogue again = *r;
	sigset_t signals;
	int signum, status;

	(void)m;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) || !take_ticket(r, &again.session))
		return ROGUE_NO_ANSWER;
	answer("waiting");
	status = sigwait(&signals, &signum) ? no_answer("no signal") : use_ticket(&again);
	tls_session_free(again.session);
	return status;
}

enum death {
	DEATH_IN_ERROR,		/* the QP exists, but accepts no packets */
	DEATH_WITHOUT_QP,
};

/* Makes this end look dead: the CM sends no message, and its id stays open. */
static bool die(struct link *l, enum death how)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (how == DEATH_IN_ERROR)
		return ibv_modify_qp(l->rc.qp, &attr, IBV_QP_STATE) == 0;
	qp_pool_free(l->pool);
	l->pool = NULL;
	return true;
}

/* Connects, gets an echo and stays silent. From SIGUSR1 on it behaves as if dead, until it is killed. */
static int dies(struct rogue *r, const struct mode *m)
{
	sigset_t signals;
	struct link l;
	int signum;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) || link_new(r, &l))
		return no_answer("no verbs resources");
	if (!link_connect(&l, &l.hello) || !link_works(&l))
		return ROGUE_NO_ANSWER;
	answer("connected");
	if (sigwait(&signals, &signum) || !die(&l, (enum death)m->variant))
		return no_answer("it would not die");
	answer("dead");
	pause();
	return ROGUE_ANSWERED;
}

/* Asks for a session until the server is no longer full; the test kills it if that takes too long. */
static int asks_while_full(struct rogue *r, const struct mode *m)
{
	struct frame_hello h = wire_good_hello();
	struct reply reply;

	(void)m;
	do {
		wire_ask(r, &h, &reply);
	} while (reply.kind == REPLY_REFUSE && reply.refuse.code == REFUSE_FULL);
	return wire_answer(&reply);
}

static bool heard_goodbye(const struct link *l)
{
	return l->last[0] == MSG_GOODBYE;
}

static bool is_acknowledged(const struct link *l)
{
	return l->sends_done >= 1u + l->grant.credits;
}

static bool is_answered(const struct link *l)
{
	return l->received == (uint32_t)l->grant.credits + heard_goodbye(l) || link_has_ended(l);
}

static bool heard_goodbye_or_ended(const struct link *l)
{
	return heard_goodbye(l) || link_has_ended(l);
}

/* Connects with as many credits as it can get, then waits for SIGUSR1. */
static bool get_ready(struct rogue *r, struct link *l)
{
	sigset_t signals;
	int signum;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) || link_new(r, l)) {
		no_answer("no verbs resources");
		return false;
	}
	l->hello.queue_depth = LINK_MESSAGES_MAX;
	if (!link_connect(l, &l->hello) || !link_works(l))
		return false;
	l->received = 0;
	answer("connected");
	return sigwait(&signals, &signum) == 0;
}

/* Sends an echo for each of its credits, prints a line when the server's device has acknowledged all of them, and
 * counts the replies. */
static int outstanding(struct rogue *r, const struct mode *m)
{
	struct link l;

	(void)m;
	if (!get_ready(r, &l))
		return ROGUE_NO_ANSWER;
	for (uint32_t i = 0; i < l.grant.credits; i++)
		if (!link_echo(&l, 64))
			return no_answer("echo %u could not be posted", i);
	if (!link_wait(&l, is_acknowledged))
		return no_answer("%u of %u were acknowledged", l.sends_done, l.grant.credits);
	answer("%u acknowledged", l.grant.credits);
	link_wait(&l, is_answered);
	link_wait(&l, heard_goodbye_or_ended);
	answer("%u answered, %s", l.received - heard_goodbye(&l), heard_goodbye(&l) ? "goodbye" : "no goodbye");
	link_disconnect(&l);
	link_free(&l);
	return ROGUE_ANSWERED;
}

/* Sends echoes one by one and ignores the server's goodbye, until the server ends the connection. */
static int never_stops(struct rogue *r, const struct mode *m)
{
	bool told = false;
	struct link l;

	(void)m;
	if (!get_ready(r, &l))
		return ROGUE_NO_ANSWER;
	while (link_works(&l) || heard_goodbye(&l))
		told |= heard_goodbye(&l);
	answer("%s", told ? "was told goodbye" : "was told nothing");
	return link_answer(&l);
}

const struct mode life_modes[] = {
	{ "ticket", .run = ticket },
	{ "old-ticket", .run = old_ticket },
	{ "dies-in-error", .run = dies, .variant = DEATH_IN_ERROR },
	{ "dies-without-qp", .run = dies, .variant = DEATH_WITHOUT_QP },
	{ "asks-while-full", .run = asks_while_full },
	{ "outstanding", .run = outstanding },
	{ "never-stops", .run = never_stops },
	{ NULL },
};
