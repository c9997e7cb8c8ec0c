/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects the fake devices of several processes: packets travel over local sockets. With the fakes it forms a library
 * that replaces libibverbs and librdmacm in whole programs.
 *
 * A thread receives the packets and hands them to the fakes as a test would, with the fakes' lock held. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/addr.h"
#include "tests/unit/fakes/fake_core.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"

#define LINKS_MAX 256
#define SENDS_MAX 1024u
#define SERVED_MAX 256
#define DATA_MAX (128 * 1024)
#define REJ_NO_LISTENER 8	/* reasons as the InfiniBand CM numbers them */
#define REJ_BY_CONSUMER 28

enum packet_type { REQ, REP, RTU, REJ, DREQ, DREP, SEND, WRITE, READ, NOTHING, ACK, NAK };

struct packet {
	enum packet_type type;
	uint32_t qpn;
	uint32_t imm, rkey, bytes, has_imm, solicited;
	uint64_t addr;
	struct addr from;
	uint8_t private_data[196], data[];
};

struct sent {
	enum ibv_wr_opcode opcode;
	void *to;	/* destination of a READ */
};

/* A connection, or a listener. Out of band it has a queue pair and no id. */
struct link {
	TAILQ_ENTRY(link) entry;
	struct rdma_cm_id *id;		/* NULL without `qp`: a connection whose REQ has not come yet */
	struct rdma_cm_id *listener;	/* of a connection without an id */
	bool listens, established, told_end, asked_end, hung_up;
	int fd;
	struct ibv_qp *qp;
	struct sent sends[SENDS_MAX];	/* sent but not acknowledged */
	uint32_t head, n;
	struct packet *held;		/* arrived when no receive was posted */
};

static TAILQ_HEAD(, link) links = TAILQ_HEAD_INITIALIZER(links);
static int wake[2];
static pthread_t thread;
static atomic_bool stop;

static void wake_thread(void)
{
	(void)!write(wake[1], "", 1);
}

static struct link *link_new(struct rdma_cm_id *id, int fd)
{
	struct link *l = calloc(1, sizeof(*l));

	l->id = id;
	l->fd = fd;
	TAILQ_INSERT_TAIL(&links, l, entry);
	wake_thread();
	return l;
}

static struct link *link_of(const struct rdma_cm_id *id)
{
	struct link *l;

	TAILQ_FOREACH(l, &links, entry)
		if (l->id == id)
			break;
	return l;
}

static void link_free(struct link *l)
{
	TAILQ_REMOVE(&links, l, entry);
	close(l->fd);
	free(l->held);
	free(l);
}

/* The name of an RDMA port, or with 0 of a queue pair, by the PSNs that it sends and expects, which no other has.
 * FAKE_NET separates the networks of tests that run at the same time. */
static socklen_t name_of(uint16_t port, uint32_t sq_psn, uint32_t rq_psn, struct sockaddr_un *out)
{
	const char *net = getenv("FAKE_NET");

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "rampart-%s-%u-%u-%u",
					    net ? net : "", port, sq_psn, rq_psn));
}

static void put(struct link *l, struct packet *p, const void *data)
{
	struct iovec parts[2] = { { p, offsetof(struct packet, data) },
				  { (void *)(uintptr_t)data, data ? p->bytes : 0 } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2 };

	if (sendmsg(l->fd, &m, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		fake_violation("the wire of the fakes: %s", strerror(errno));
}

static void put_type(struct link *l, enum packet_type type)
{
	put(l, &(struct packet){ .type = type }, NULL);
}

static struct link *link_of_qp(const struct ibv_qp *qp)
{
	struct link *l;

	TAILQ_FOREACH(l, &links, entry)
		if (l->qp == qp)
			break;
	return l;
}

/* Makes a listening socket. It does not block: the poll may have reported a link that was freed since, and a new
 * listener may have taken its memory and descriptor. accept4 must then return, because no connection is waiting. */
static int listen_as(uint16_t port, uint32_t sq_psn, uint32_t rq_psn)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un name;

	if (bind(fd, (struct sockaddr *)&name, name_of(port, sq_psn, rq_psn, &name)) || listen(fd, 64))
		fake_violation("the wire of the fakes cannot listen: %s", strerror(errno));
	return fd;
}

/* Out of band the server programs its queue pair first, so whoever finds no other end waits for it. With an id, put_cm
 * pairs the queue pairs. */
static void pair(struct ibv_qp *qp, uint32_t sq_psn, uint32_t rq_psn)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	struct link *l;

	if (connect(fd, (struct sockaddr *)&name, name_of(0, rq_psn, sq_psn, &name)) == 0) {
		link_new(NULL, fd)->qp = qp;
		return;
	}
	close(fd);
	l = link_new(NULL, listen_as(0, sq_psn, rq_psn));
	l->qp = qp;
	l->listens = true;
}

static void on_moved(struct ibv_qp *qp, enum ibv_qp_state to, uint32_t sq_psn, uint32_t rq_psn)
{
	struct link *l = link_of_qp(qp);

	if (!l && to == IBV_QPS_RTS)
		pair(qp, sq_psn, rq_psn);
	else if (l && !l->id && to == IBV_QPS_RESET)
		link_free(l);
}

static void put_cm(struct link *l, enum packet_type type, const struct fake_cm_call *c)
{
	struct packet p = { .type = type, .qpn = c->param.qp_num };

	memcpy(p.private_data, c->private_data, c->param.private_data_len);
	if (l->id)
		(void)!addr_from_sockaddr(rdma_get_local_addr(l->id), &p.from);
	if (type == REQ || type == REP) {
		struct link *waits = link_of_qp(fake_qp_of(p.qpn));

		if (waits && !waits->id)
			link_free(waits);
		l->qp = fake_qp_of(p.qpn);
	}
	put(l, &p, NULL);
}

static void start_connect(const struct fake_cm_call *c)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	struct addr peer;

	if (addr_from_sockaddr(rdma_get_peer_addr(c->id), &peer) ||
	    connect(fd, (struct sockaddr *)&name, name_of(addr_port(&peer), 0, 0, &name))) {
		close(fd);
		fake_cm_event(c->id, RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER, 0, NULL, 0);
		return;
	}
	put_cm(link_new(c->id, fd), REQ, c);
}

static void start_listen(struct rdma_cm_id *id)
{
	link_new(id, listen_as(be16toh(rdma_get_src_port(id)), 0, 0))->listens = true;
}

static void end_link(struct link *l)
{
	if (l->told_end)
		return;
	l->told_end = true;
	fake_cm_event(l->id, l->established ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED, 0, 0, NULL, 0);
}

static void disconnect(struct link *l)
{
	put_type(l, l->told_end ? DREP : DREQ);
	l->asked_end = true;
}

static void on_call(const struct fake_cm_call *c)
{
	struct link *l = link_of(c->id);
	struct sockaddr_storage *from = &c->id->route.addr.src_storage;

	switch ((int)c->op) {
	case FAKE_CM_RESOLVE_ADDR:
		if (from->ss_family == AF_UNSPEC) {
			struct addr a;

			if (!addr_parse("127.0.0.1", fake_cm.next_port++, &a))
				memcpy(from, &a.ss, a.len);
		}
		fake_cm_event(c->id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, 0, NULL, 0);
		return;
	case FAKE_CM_RESOLVE_ROUTE:
		fake_cm_event(c->id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, 0, NULL, 0);
		return;
	case FAKE_CM_LISTEN:
		start_listen(c->id);
		return;
	case FAKE_CM_CONNECT:
		start_connect(c);
		return;
	default:
		break;
	}
	if (!l)
		return;
	switch ((int)c->op) {
	case FAKE_CM_ACCEPT:
		put_cm(l, REP, c);
		break;
	case FAKE_CM_ESTABLISH:
		l->established = true;
		put_cm(l, RTU, c);
		break;
	case FAKE_CM_REJECT:
		l->told_end = true;
		put_cm(l, REJ, c);
		break;
	case FAKE_CM_DISCONNECT:
		disconnect(l);
		break;
	case FAKE_CM_DESTROY:
		link_free(l);
		wake_thread();
		break;
	default:
		break;
	}
}

static void complete(struct link *l, enum ibv_wc_status status, const struct packet *p)
{
	struct sent *s = &l->sends[l->head];

	if (!l->n)
		return;
	l->head = (l->head + 1) % SENDS_MAX;
	l->n--;
	if (!l->qp || !fake_qp_outstanding(l->qp))
		return;	/* flushed in the meantime */
	if (p && p->bytes)
		memcpy(s->to, p->data, p->bytes);
	fake_complete_sends(l->qp, 1, status);
	if (status != IBV_WC_SUCCESS)
		l->n = 0;
}

static void on_posted(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->num_sge ? wr->sg_list : NULL;
	struct packet p = { .type = SEND, .imm = wr->imm_data, .has_imm = wr->opcode == IBV_WR_SEND_WITH_IMM,
			    .solicited = wr->send_flags & IBV_SEND_SOLICITED, .addr = wr->wr.rdma.remote_addr,
			    .bytes = sge ? sge->length : 0 };
	void *data = sge ? (void *)(uintptr_t)sge->addr : NULL;
	struct link *l = link_of_qp(qp);
	bool is_local = wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV;

	fake_posts_forget();
	if (is_local && (!l || l->n == 0)) {
		fake_complete_sends(qp, 1, IBV_WC_SUCCESS);
		return;
	}
	if (!l)
		return;
	if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		p.type = WRITE;
	else if (wr->opcode == IBV_WR_RDMA_READ)
		p.type = READ;
	else if (is_local)
		p = (struct packet){ .type = NOTHING };
	if (l->n == SENDS_MAX || p.bytes > DATA_MAX)
		fake_violation("too much for the wire of the fakes: %u requests, %u bytes", l->n, p.bytes);
	l->sends[(l->head + l->n++) % SENDS_MAX] = (struct sent){ wr->opcode, data };
	if (l->hung_up && !l->id)
		complete(l, IBV_WC_RETRY_EXC_ERR, NULL);
	else
		put(l, &p, p.type == READ ? NULL : data);
}

static bool takes_requests(const struct link *l)
{
	enum ibv_qp_state st = l->qp ? fake_qp_state(l->qp) : IBV_QPS_RESET;

	return st == IBV_QPS_RTR || st == IBV_QPS_RTS;
}

/* Returns false if the packet has to wait for a receive. */
static bool take_send(struct link *l, const struct packet *p)
{
	if (p->has_imm)
		return fake_deliver_imm(l->qp, p->data, p->bytes, p->imm);
	return p->solicited ? fake_deliver(l->qp, p->data, p->bytes) :
			      fake_deliver_unsolicited(l->qp, p->data, p->bytes);
}

static bool take_request(struct link *l, const struct packet *p)
{
	struct packet answer = { .type = takes_requests(l) ? ACK : NAK };
	void *at = (void *)(uintptr_t)p->addr;

	if (answer.type == ACK && p->type == SEND && !take_send(l, p))
		return false;
	if (answer.type == ACK && p->type == WRITE && p->bytes)
		memcpy(at, p->data, p->bytes);
	if (answer.type == ACK && p->type == READ)
		answer.bytes = p->bytes;
	put(l, &answer, answer.bytes ? at : NULL);
	return true;
}

static void on_req(struct link *l, const struct packet *p)
{
	if (!link_of(l->listener)) {
		link_free(l);
		return;
	}
	l->id = fake_cm_request(l->listener, &p->from, p->qpn, p->private_data, 56);
}

/* Returns false if the packet has to wait. */
static bool on_packet(struct link *l, const struct packet *p)
{
	switch (p->type) {
	case REQ:
		on_req(l, p);
		break;
	case REP:
		fake_cm_event(l->id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, p->qpn, p->private_data, 196);
		break;
	case RTU:
		l->established = true;
		fake_cm_event(l->id, RDMA_CM_EVENT_ESTABLISHED, 0, 0, NULL, 0);
		break;
	case REJ:
		l->told_end = true;
		fake_cm_event(l->id, RDMA_CM_EVENT_REJECTED, REJ_BY_CONSUMER, 0, p->private_data, 148);
		break;
	case DREQ:
	case DREP:
		if (l->asked_end && p->type == DREQ)
			put_type(l, DREP);
		end_link(l);
		break;
	case SEND:
	case WRITE:
	case READ:
	case NOTHING:
		return take_request(l, p);
	case ACK:
		complete(l, IBV_WC_SUCCESS, p);
		break;
	case NAK:
		complete(l, IBV_WC_RETRY_EXC_ERR, NULL);
		break;
	}
	return true;
}

static void on_hang_up(struct link *l)
{
	if (!l->id && !l->qp) {
		link_free(l);
		return;
	}
	complete(l, IBV_WC_RETRY_EXC_ERR, NULL);
	if (l->id)
		end_link(l);
	l->hung_up = true;
}

static void accept_one(struct link *listener)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && listener->qp) {
		close(listener->fd);
		listener->fd = fd;
		listener->listens = false;
	} else if (fd >= 0) {
		link_new(NULL, fd)->listener = listener->id;
	}
}

/* Hands over one packet. Returns false if there is none, or if it has to wait for a receive. */
static bool serve_packet(struct link *l)
{
	struct packet *p = l->held;
	ssize_t n;

	l->held = NULL;
	if (!p) {
		p = malloc(sizeof(*p) + DATA_MAX);
		n = recv(l->fd, p, sizeof(*p) + DATA_MAX, MSG_DONTWAIT);
		if (n <= 0) {
			free(p);
			if (n == 0 || errno != EAGAIN)
				on_hang_up(l);
			return false;
		}
	}
	if (!on_packet(l, p)) {
		l->held = p;
		return false;
	}
	free(p);
	return true;
}

/* Hands over up to SERVED_MAX of the packets that have arrived: a real device also completes many requests between two
 * polls, but other threads and links wait. A connection request comes alone: it may free the link. */
static void serve(struct link *l)
{
	if (l->listens)
		accept_one(l);
	else if (!l->id && !l->qp)
		(void)serve_packet(l);
	else
		for (int i = 0; i < SERVED_MAX && serve_packet(l); i++)
			;
}

static void *run(void *arg)
{
	struct pollfd fds[LINKS_MAX + 1] = { { .fd = wake[0], .events = POLLIN } };
	struct link *of[LINKS_MAX + 1], *l;
	nfds_t n;

	while (!stop) {
		int timeout_ms = -1;

		fake_lock();
		n = 1;
		TAILQ_FOREACH(l, &links, entry)
			if (l->held) {
				timeout_ms = 1;
			} else if (!l->hung_up) {
				if (n > LINKS_MAX)
					break;
				of[n] = l;
				fds[n++] = (struct pollfd){ .fd = l->fd, .events = POLLIN };
			}
		fake_unlock(NULL);
		poll(fds, n, timeout_ms);
		/* Yield to the sender, so that packets it sends together are handed over together. */
		sched_yield();
		fake_lock();
		if (fds[0].revents)
			(void)!read(wake[0], &(char[64]){ 0 }, 64);
		for (nfds_t i = 1; i < n; i++) {
			TAILQ_FOREACH(l, &links, entry)
				if (l == of[i] && fds[i].revents && l->fd == fds[i].fd)
					break;
			if (l)
				serve(l);
		}
		for (l = TAILQ_FIRST(&links); l; l = TAILQ_NEXT(l, entry))
			if (l->held)
				serve(l);
		fake_unlock(NULL);
	}
	return arg;
}

static void __attribute__((constructor)) start(void)
{
	sigset_t all, before;

	fake_reset();
	fake_cm_called = on_call;
	fake_posted = on_posted;
	fake_moved = on_moved;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pipe2(wake, O_CLOEXEC) || pthread_create(&thread, NULL, run, NULL))
		abort();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Takes no lock: the program's threads have ended by now, or the counts would mean nothing anyway. */
static void __attribute__((destructor)) end(void)
{
	stop = true;
	wake_thread();
	pthread_join(thread, NULL);
	fake_note_left();
}
