/* SPDX-License-Identifier: BSD-2-Clause */
/* The data path. See messages.h.
 *
 * A SEND, or a record from a socket, carries one message or several one-way messages. Each header is checked. The
 * answer is sent from the buffer that the request came in: an echo, the credit for one-way messages, or the answer to a
 * push, after the pushed data. At the end of the batch another buffer takes its place in the shared receive queue.
 * Nothing is allocated, registered or copied.
 */
#include "server/shard/messages.h"

#include <arpa/inet.h>
#include <errno.h>

#include "common/base/hot.h"
#include "common/sock/link.h"
#include "common/wire/frame.h"
#include "common/wire/msg.h"
#include "common/rdma/region.h"
#include "server/shard/oob.h"
#include "server/shard/shard_data.h"
#include "server/shard/socket.h"

/* Puts a free buffer into the receive queue, to replace the buffer that an answer is sent from. */
static void replace_receive(struct conn *c)
{
	if (!ep_replace(c->link.ep))
		counter_add(&c->shard->stats.receive_shortfalls, 1);
}

/* Counts a SEND; false if the client then has more SENDs in flight than credits. A look at the receive queue (ep_look)
 * takes all that have arrived, before any of them is answered. When it begins, an earlier SEND is still in flight if
 * its credit is owed, or if its answer waits for an entry of the send queue. */
static HOT_INLINE bool keeps_to_credits(struct conn *c)
{
	uint64_t look = link_look(&c->link);

	if (c->look != look) {
		c->look = look;
		c->in_flight = c->owed + link_waiting(&c->link);
	}
	/* Allow one more after a GOODBYE, which may be counted among the waiting answers. */
	return ++c->in_flight <= c->credits || c->in_flight <= c->credits + c->told;
}

/* Ends the connection because the peer broke a rule of the protocol. */
static void drop_buffer(struct conn *c, uint32_t buf, int code)
{
	ep_recycle(c->link.ep, buf);
	conn_fail(c, FAIL_PROTOCOL, code);
}

static void drop_errno(struct conn *c, uint32_t buf, int code)
{
	ep_recycle(c->link.ep, buf);
	conn_fail(c, FAIL_ERRNO, code);
}

/* Sends back `bytes` of the receive buffer, after `write` unless NULL. The receive queue gets another buffer. */
static void answer(struct conn *c, const struct ep_write *write, uint32_t buf, uint32_t bytes)
{
	struct shard *s = c->shard;
	int ret;

	if (c->tags && msg_tag_write(c->tags, ep_buf(c->link.ep, buf), bytes)) {
		drop_errno(c, buf, EIO);
		return;
	}
	counter_add(&s->stats.messages_out, 1);
	counter_add(&s->stats.bytes_out, bytes + (write ? write->bytes : 0));
	ret = write ? rc_write_send(&c->link.rc, write, buf, bytes) : link_send(&c->link, buf, bytes);
	if (ret)
		conn_fail(c, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
	replace_receive(c);
}

static void on_echo(struct conn *c, uint32_t buf, struct msg_header *h)
{
	h->type = MSG_REPLY;
	h->credits = 1;
	msg_encode(h, ep_buf(c->link.ep, buf));
	answer(c, NULL, buf, h->length);
}

static void return_credits(struct conn *c, uint32_t buf)
{
	uint8_t flags = c->tags ? MSG_FLAG_TAG : 0;
	struct msg_header credit = { .type = MSG_CREDIT, .flags = flags, .credits = (uint16_t)c->owed,
				     .sequence = c->owed_sequence,
				     .length = MSG_HEADER_BYTES + msg_trailer_bytes(flags) };

	c->owed = 0;
	msg_encode(&credit, ep_buf(c->link.ep, buf));
	answer(c, NULL, buf, credit.length);
}

/* Handles a one-way SEND. Its credit, with those owed before it, is returned when its last message asks for them. */
static void on_one_way(struct conn *c, uint32_t buf, uint64_t sequence, bool asks)
{
	c->owed++;
	c->owed_sequence = sequence;
	/* A client that was told goodbye sends no further message that could ask for its credits. */
	if (asks || c->told)
		return_credits(c, buf);
	else
		ep_recycle(c->link.ep, buf);
}

/* Answers with a WRITE of the data and then PUSHED, in this order: a client that received PUSHED has the data, too. */
static void on_push(struct conn *c, uint32_t buf, const struct msg_header *h)
{
	const struct shard *s = c->shard;
	struct msg_header pushed = { .type = MSG_PUSHED, .flags = h->flags, .credits = 1, .sequence = h->sequence,
				     .length = MSG_HEADER_BYTES + msg_trailer_bytes(h->flags) };
	struct ep_write write = { .rkey = c->window.rkey };
	struct msg_push p;

	msg_get_push(ep_buf(s->ep, buf), &p);
	if (p.window_offset > c->window.bytes || p.bytes > c->window.bytes - p.window_offset ||
	    p.bytes > s->dev.port.max_msg_sz ||
	    !region_source(s->regions, c->region, p.region_offset, p.bytes, &write)) {
		drop_buffer(c, buf, PROTO_BAD_MESSAGE);
		return;
	}
	write.remote_addr = c->window.addr + p.window_offset;
	msg_encode(&pushed, ep_buf(s->ep, buf));
	answer(c, &write, buf, pushed.length);
}

/* A socket has neither region nor window: the bytes the client asked for follow PUSHED in the same record. */
static void on_push_over_socket(struct conn *c, uint32_t buf, const struct msg_header *h)
{
	const struct shard *s = c->shard;
	struct msg_header pushed = { .type = MSG_PUSHED, .flags = h->flags, .credits = 1, .sequence = h->sequence,
				     .length = MSG_HEADER_BYTES + msg_trailer_bytes(h->flags) };
	struct msg_push p;

	msg_get_push(ep_buf(c->link.ep, buf), &p);
	if (p.window_offset || p.region_offset || p.bytes < 1 || p.bytes > s->cfg->message_bytes - pushed.length) {
		drop_buffer(c, buf, PROTO_BAD_MESSAGE);
		return;
	}
	msg_encode(&pushed, ep_buf(c->link.ep, buf));
	if (c->tags && msg_tag_write(c->tags, ep_buf(c->link.ep, buf), pushed.length)) {
		drop_errno(c, buf, EIO);
		return;
	}
	counter_add(&c->shard->stats.messages_out, 1);
	counter_add(&c->shard->stats.bytes_out, pushed.length + p.bytes);
	sock_send_two(&c->link.sock, buf, pushed.length, s->pushed + h->sequence % SOCKET_PUSHED_BEGINNINGS, p.bytes);
}

/* A ping has no header: its bytes and immediate data go back unchanged. */
static void on_ping(struct conn *c, uint32_t buf, struct link_arrival a)
{
	struct shard *s = c->shard;

	counter_add(&s->stats.messages_out, 1);
	counter_add(&s->stats.bytes_out, a.bytes);
	if (link_send_imm(&c->link, buf, a.bytes, a.imm))
		conn_fail(c, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
	replace_receive(c);
}

/* Sends a header-only message of the server's own. To a client that leaves, its completion wakes this thread. False if
 * no buffer is free. */
static bool send_header(struct conn *c, struct msg_header *h)
{
	struct shard *s = c->shard;
	struct ep *ep = c->link.ep;
	uint32_t buf = ep_buf_get(ep);

	if (buf == EP_NO_BUF)
		return false;
	h->flags = c->tags ? MSG_FLAG_TAG : 0;
	h->length = MSG_HEADER_BYTES + msg_trailer_bytes(h->flags);
	msg_encode(h, ep_buf(ep, buf));
	if (c->tags && msg_tag_write(c->tags, ep_buf(ep, buf), h->length)) {
		ep_buf_put(ep, buf);
		conn_fail(c, FAIL_ERRNO, EIO);
		return true;
	}
	counter_add(&s->stats.messages_out, 1);
	counter_add(&s->stats.bytes_out, h->length);
	if (c->left ? rc_send_awaited(&c->link.rc, buf, h->length) : link_send(&c->link, buf, h->length))
		conn_fail(c, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
	return true;
}

bool messages_say_goodbye(struct conn *c)
{
	struct msg_header credit = { .type = MSG_CREDIT, .credits = (uint16_t)c->owed, .sequence = c->owed_sequence };
	struct msg_header goodbye = { .type = MSG_GOODBYE, .sequence = REFUSE_DRAINING };

	if (c->owed && !send_header(c, &credit))
		return false;
	c->owed = 0;
	if (c->state != CONN_ST_LIVE)
		return true;
	c->told = send_header(c, &goodbye);
	return c->told;
}

static __attribute__((noinline)) void compare_sum(struct conn *c, const uint8_t *data, const struct msg_header *h)
{
	uint32_t seed, bytes = h->length - (h->flags & MSG_FLAG_TAG ? MSG_TAG_BYTES : 0);

	seed = msg_sum_seed(c->session, sizeof(c->session));
	counter_add(&c->shard->stats.messages_checked, 1);
	if (!msg_is_intact(seed, data, bytes))
		counter_add(&c->shard->stats.messages_corrupt, 1);
}

static void check_sum(struct conn *c, const uint8_t *data, const struct msg_header *h)
{
	if (h->flags & MSG_FLAG_SUM)
		compare_sum(c, data, h);
}

/* On a connection with tags every message must have one; on other connections none may. */
static HOT_INLINE bool tag_is_right(struct conn *c, const uint8_t *data, const struct msg_header *h)
{
	bool tagged = h->flags & MSG_FLAG_TAG;

	return tagged == (c->tags != NULL) && (!tagged || msg_tag_check(c->tags, data, h->length));
}

/* True for message types that this client may send. Over RDMA a PUSH needs a window. Only a client without rdmacm needs
 * a GOODBYE. */
static bool may_come(const struct conn *c, enum msg_type type)
{
	return type == MSG_ECHO || type == MSG_DATA || (type == MSG_GOODBYE && c->oob) ||
	       (type == MSG_PUSH && (c->window.bytes > 0 || !link_is_rdma(&c->link)));
}

/* Checks the message at offset `at` of a SEND. Returns 0 with its header in `h`, or the broken rule, negated. */
static HOT_INLINE int check_message(struct conn *c, const uint8_t *data, uint32_t received, uint32_t at,
				    struct msg_header *h)
{
	if (msg_decode_at(data, received, at, h) || !may_come(c, h->type))
		return -PROTO_BAD_MESSAGE;
	if (!tag_is_right(c, data + at, h))
		return -PROTO_BAD_TAG;
	check_sum(c, data + at, h);
	return 0;
}

/* Checks the messages of a SEND after the first one, whose header is `last`. Returns as check_messages. */
static __attribute__((noinline)) int check_joined(struct conn *c, const uint8_t *data, uint32_t received,
						  struct msg_header *last)
{
	uint32_t at = last->length;
	int n = 1;

	do {
		int ret = n == MSG_JOINED_MAX ? -PROTO_BAD_MESSAGE : check_message(c, data, received, at, last);

		if (ret)
			return ret;
		at += last->length;
		n++;
	} while (at < received);
	return n;
}

/* Checks the messages of a SEND in order, because their tags are numbered in order. Returns how many there are, with
 * the header of the last one in `last`; or the rule that was broken, negated. */
static HOT_INLINE int check_messages(struct conn *c, const uint8_t *data, uint32_t received, struct msg_header *last)
{
	int ret = check_message(c, data, received, 0, last);

	if (ret)
		return ret;
	return last->length < received ? check_joined(c, data, received, last) : 1;
}

/* Checks a SEND or a record; returns as check_messages. */
static HOT_INLINE int check_arrival(struct conn *c, const uint8_t *data, struct link_arrival a, struct msg_header *last)
{
	/* Receive buffers are rounded up, so the device accepts a SEND slightly larger than was granted. */
	if (a.bytes > c->shard->cfg->message_bytes)
		return -PROTO_BAD_MESSAGE;
	/* A ping has no place for a tag. */
	if (a.has_imm)
		return c->tags ? -PROTO_BAD_TAG : 1;
	return check_messages(c, data, a.bytes, last);
}

/* The client leaves: answers with a GOODBYE, and closes when the client's device has acknowledged it. A client that a
 * draining server has told goodbye expects no further answer. */
static __attribute__((noinline)) void on_goodbye(struct conn *c, uint32_t buf)
{
	struct msg_header h = { .type = MSG_GOODBYE };

	if (c->left) {
		drop_buffer(c, buf, PROTO_BAD_MESSAGE);
		return;
	}
	ep_recycle(c->link.ep, buf);
	conn_await_leave(c);
	/* Without a buffer for the answer the client has to notice that the connection ends. */
	if (c->told || !send_header(c, &h))
		conn_close(c, c->told ? CLOSE_DRAINING : CLOSE_PEER_LEFT);
}

static HOT_INLINE void on_messages(struct conn *c, uint32_t buf, struct link_arrival a)
{
	struct shard *s = c->shard;
	struct msg_header last = { 0 };
	int n = check_arrival(c, ep_buf(c->link.ep, buf), a, &last);

	if (n < 0) {
		drop_buffer(c, buf, -n);
		return;
	}
	/* A GOODBYE takes no credit; a second one ends the connection. */
	if (last.type != MSG_GOODBYE && !keeps_to_credits(c)) {
		drop_buffer(c, buf, PROTO_CREDITS);
		return;
	}
	counter_add(&s->stats.messages_in, (uint64_t)n);
	counter_add(&s->stats.bytes_in, a.bytes);
	c->heard = true;
	if (a.has_imm)
		on_ping(c, buf, a);
	else if (last.type == MSG_ECHO)
		on_echo(c, buf, &last);
	else if (last.type == MSG_DATA)
		on_one_way(c, buf, last.sequence, last.flags & MSG_FLAG_ACK);
	else if (last.type == MSG_PUSH)
		(link_is_rdma(&c->link) ? on_push : on_push_over_socket)(c, buf, &last);
	else
		on_goodbye(c, buf);
}

/* A WRITE with immediate data consumed a receive, like a SEND, but its buffer holds old contents. It counts as a
 * one-way message that asks for its credit; its immediate data are the sequence. */
static void on_written(struct conn *c, uint32_t buf, const struct ibv_wc *wc)
{
	if (!keeps_to_credits(c)) {
		drop_buffer(c, buf, PROTO_CREDITS);
		return;
	}
	counter_add(&c->shard->stats.messages_in, 1);
	c->heard = true;
	on_one_way(c, buf, ntohl(wc->imm_data), true);
}

static bool is_plain_send(const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV && !(wc->wc_flags & IBV_WC_WITH_IMM);
}

static void on_receive(struct shard *s, const struct ibv_wc *wc, uint32_t buf)
{
	uint32_t owner = qp_pool_owner_of_qpn(s->qps, wc->qp_num);
	struct conn *c = owner == QP_POOL_NONE ? NULL : &s->conns[owner];

	if (!c || (c->state != CONN_ST_ACCEPTING && c->state != CONN_ST_LIVE)) {
		if (c && c->oob && (c->state == CONN_ST_GRANT || c->state == CONN_ST_GRANTED))
			oob_on_first_message(c, buf, is_plain_send(wc) ? wc->byte_len : 0);
		else
			ep_recycle(s->ep, buf);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		ep_recycle(s->ep, buf);
		conn_fail(c, FAIL_WC_STATUS, (int)wc->status);
		return;
	}
	if (wc->opcode != IBV_WC_RECV && !(wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM && c->write_imm)) {
		drop_buffer(c, buf, PROTO_BAD_MESSAGE);
		return;
	}
	/* A message may arrive before the ESTABLISHED event. */
	if (c->state == CONN_ST_ACCEPTING)
		conn_set_live(c);
	if (wc->opcode == IBV_WC_RECV)
		on_messages(c, buf, (struct link_arrival){ .bytes = wc->byte_len, .imm = wc->imm_data,
							    .has_imm = wc->wc_flags & IBV_WC_WITH_IMM });
	else
		on_written(c, buf, wc);
}

static void on_sent(struct shard *s, const struct ibv_wc *wc, const struct wr *w)
{
	uint32_t owner = qp_pool_owner(s->qps, w->qp_slot, w->generation);
	struct conn *c;

	/* Without an owner, the completion belongs to an earlier connection of this slot, whose end freed its
	 * buffers. */
	if (owner == QP_POOL_NONE)
		return;
	c = &s->conns[owner];
	if (wc->status == IBV_WC_SUCCESS)
		c->acked = true;
	if (rc_on_send_wc(&c->link.rc, wc, w)) {
		if (c->left)
			conn_close(c, CLOSE_PEER_LEFT);
		else
			conn_fail(c, FAIL_WC_STATUS, wc->status ? (int)wc->status : IBV_WC_LOC_QP_OP_ERR);
	} else if (c->left && c->state == CONN_ST_LIVE && rc_is_idle(&c->link.rc)) {
		conn_close(c, CLOSE_PEER_LEFT);
	} else if (rc_may_end_drain(w))
		conn_try_finish(c);
}

void messages_on_wc(void *arg, const struct ibv_wc *wc)
{
	struct shard *s = arg;
	struct wr w = wr_unpack(wc->wr_id);

	if (w.type == WR_RECV)
		on_receive(s, wc, w.buf);
	else
		on_sent(s, wc, &w);
}

void messages_on_record(struct conn *c, uint32_t buf, const struct record *r)
{
	if (c->state != CONN_ST_LIVE)
		ep_recycle(c->link.ep, buf);
	else if (r->kind != RECORD_MESSAGES && r->kind != RECORD_PING)
		drop_buffer(c, buf, PROTO_BAD_FRAME);
	else
		on_messages(c, buf, (struct link_arrival){ .bytes = r->bytes, .imm = r->imm,
							    .has_imm = r->kind == RECORD_PING });
}
