/* SPDX-License-Identifier: BSD-2-Clause */
/* Floods: many requests that cost the server time while other clients want to be served. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/wire/auth.h"
#include "common/rdma/cm.h"
#include "common/tls/tls.h"
#include "tests/adversary/wire.h"

#define OPEN_MAX 128		/* TCP connections that the ClientHello flood keeps open */
#define REQUESTS_OPEN 64	/* CM ids that the REQ flood has in progress */
#define RESOLVE_MS 5000
#define CONTROLS 16
#define QUESTIONS 14		/* requests that each control session sends at once */

/* Parses "COUNT" or "COUNT@RATE", with RATE per second. */
static void parse_flood(const char *arg, int count, int *n, int *rate)
{
	*n = count;
	*rate = 0;
	if (arg)
		(void)!sscanf(arg, "%d@%d", n, rate);
}

/* Waits until the i-th is due. */
static void pace(uint64_t began_ns, int i, int rate)
{
	uint64_t due_ns = rate > 0 ? began_ns + (uint64_t)i * NS_PER_S / (unsigned)rate : 0, now = clock_now_ns();

	if (due_ns > now)
		poll(NULL, 0, (int)((due_ns - now) / NS_PER_MS) + 1);
}

static bool has_answer(int fd)
{
	uint8_t byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 1;
}

/* Sends a recorded ClientHello on ARG (COUNT@RATE) connections, and does not read the server's answers. */
static int client_hellos(struct rogue *r, const struct mode *m)
{
	int fds[OPEN_MAX], n, rate, answered = 0;
	uint64_t began_ns = clock_now_ns();
	uint8_t hello[2048];
	ssize_t bytes = wire_client_hello(r, hello, sizeof(hello));

	(void)m;
	if (bytes <= 0)
		return no_answer("no ClientHello");
	memset(fds, -1, sizeof(fds));
	parse_flood(r->arg, 100, &n, &rate);
	answer("begun");
	for (int i = 0; i < n + OPEN_MAX; i++) {
		int *fd = &fds[i % OPEN_MAX];

		if (*fd >= 0) {
			answered += has_answer(*fd);
			close(*fd);
		}
		*fd = -1;
		if (i >= n)
			continue;
		pace(began_ns, i, rate);
		*fd = wire_tcp(r, NULL);
		if (*fd >= 0)
			(void)!send(*fd, hello, (size_t)bytes, MSG_NOSIGNAL);
	}
	return answered ? answer("%d sent", n) : no_answer("the server answered none of %d", n);
}

struct requests {
	struct rogue *r;
	struct cm_channel *cm;
	struct addr from, to;
	int begun, sent, under_way, rejected, lost;
};

static void begin_request(struct requests *q)
{
	struct rdma_cm_id *id;

	q->begun++;
	if (cm_id_new(q->cm, NULL, &id)) {
		q->lost++;
	} else if (cm_resolve_addr(id, &q->from, &q->to, RESOLVE_MS)) {
		cm_id_destroy(id);
		q->lost++;
	} else {
		q->under_way++;
	}
}

static void end_request(struct requests *q, struct rdma_cm_id *id, bool rejected)
{
	cm_id_destroy(id);
	q->under_way--;
	q->rejected += rejected;
	q->lost += !rejected;
}

/* Guesses a session and a proof. The QP numbers belong to no queue pair, because nothing is to be connected, and each
 * is used once, because the server's kernel refuses numbers that it knows. */
static bool send_request(struct requests *q, struct rdma_cm_id *id)
{
	struct pdata_proof proof;
	uint8_t data[PDATA_PROOF_BYTES];
	struct cm_conn_param p = { .qpn = 0x800000u + (uint32_t)q->sent++, .private_data = data,
				   .private_bytes = sizeof(data) };

	if (getrandom(&proof, sizeof(proof), 0) != sizeof(proof))
		return false;
	pdata_encode_proof(PDATA_REQUEST, &proof, data);
	return cm_connect(id, &p) == 0;
}

static void on_event(struct requests *q, const struct cm_event *e)
{
	bool goes_on = true;

	switch (e->type) {
	case CM_ADDR_RESOLVED:
		goes_on = cm_resolve_route(e->id, RESOLVE_MS) == 0;
		break;
	case CM_ROUTE_RESOLVED:
		goes_on = send_request(q, e->id);
		break;
	case CM_REJECTED:
		end_request(q, e->id, true);
		return;
	case CM_OTHER:
		return;
	case CM_ADDR_ERROR:
	case CM_ROUTE_ERROR:
	case CM_CONNECT_REQUEST:
	case CM_CONNECT_RESPONSE:
	case CM_CONNECT_ERROR:
	case CM_UNREACHABLE:
	case CM_ESTABLISHED:
	case CM_DISCONNECTED:
	case CM_DEVICE_REMOVED:
		goes_on = false;
	}
	if (!goes_on)
		end_request(q, e->id, false);
}

static void run_requests(struct requests *q, int n, int rate)
{
	uint64_t began_ns = clock_now_ns(), heard_ns = began_ns;
	struct cm_event e;

	while ((q->begun < n || q->under_way > 0) && clock_now_ns() - heard_ns < q->r->timeout_ns) {
		struct pollfd p = { .fd = cm_channel_fd(q->cm), .events = POLLIN };

		for (; q->begun < n && q->under_way < REQUESTS_OPEN; begin_request(q))
			pace(began_ns, q->begun, rate);
		if (poll(&p, 1, 100) <= 0)
			continue;
		heard_ns = clock_now_ns();
		while (cm_next_event(q->cm, &e) == 1)
			on_event(q, &e);
	}
}

/* Gets the RDMA address from a GRANT; the session is not used. */
static bool learn_rdma_address(struct rogue *r, struct addr *out)
{
	struct frame_hello h = wire_good_hello();
	struct reply reply;

	wire_ask(r, &h, &reply);
	*out = reply.grant.rdma;
	return reply.kind == REPLY_GRANT;
}

/* Sends ARG (COUNT@RATE, or COUNT@RATE:PORT if the port is known) connection requests for sessions that nobody has. */
static int requests(struct rogue *r, const struct mode *m)
{
	struct requests q = { .r = r, .from = r->source.len ? r->source : r->dev.addr };
	const char *port = r->arg ? strchr(r->arg, ':') : NULL;
	int n, rate;

	(void)m;
	parse_flood(r->arg, 1000, &n, &rate);
	q.to = r->server;
	if (port)
		addr_set_port(&q.to, (uint16_t)atoi(port + 1));
	if ((!port && !learn_rdma_address(r, &q.to)) || cm_channel_new(&q.cm))
		return no_answer("no session, or no channel");
	answer("begun");
	run_requests(&q, n, rate);
	if (q.under_way > 0)
		return no_answer("%d rejected, %d lost, %d without an end", q.rejected, q.lost, q.under_way);
	cm_channel_free(q.cm);
	return q.rejected ? answer("%d rejected, %d lost", q.rejected, q.lost) :
			    no_answer("none of %d was rejected", n);
}

static bool ask_at_once(struct wire *w, enum control_what what)
{
	uint8_t buf[QUESTIONS * FRAME_CONTROL_BYTES];
	size_t n = 0;

	for (int i = 0; i < QUESTIONS; i++)
		n += frame_encode_control(what, buf + n);
	return wire_write(w, buf, n);
}

static bool read_reports(struct wire *w, struct reply *reply)
{
	for (int i = 0; i < QUESTIONS; i++) {
		wire_read(w, reply);
		if (reply->kind != REPLY_REPORT)
			return false;
	}
	return true;
}

/* Sends ARG rounds of QUESTIONS requests without pause on each control session. variant: the kind of request. */
static int control_flood(struct rogue *r, const struct mode *m)
{
	int rounds = r->arg ? atoi(r->arg) : 1, open = 0;
	struct wire wires[CONTROLS];
	struct reply reply;
	bool good = true;

	for (; good && open < CONTROLS; open++)
		good = wire_open(r, NULL, &wires[open], &reply);
	for (int i = 0; good && i < rounds; i++) {
		for (int k = 0; good && k < CONTROLS; k++)
			good = ask_at_once(&wires[k], (enum control_what)m->variant);
		for (int k = 0; good && k < CONTROLS; k++)
			good = read_reports(&wires[k], &reply);
	}
	while (open-- > 0)
		wire_close(&wires[open]);
	return good ? answer("%d reports", rounds * CONTROLS * QUESTIONS) : wire_answer(&reply);
}

const struct mode flood_modes[] = {
	{ "client-hellos", .run = client_hellos },
	{ "requests", .run = requests },
	{ "control-flood", .run = control_flood, .variant = CONTROL_STATS },
	{ "mark-flood", .run = control_flood, .variant = CONTROL_MARK },
	{ NULL },
};
