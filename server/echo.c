/* The data path: a message comes in, its header is checked, and it goes back from the buffer it came
 * in; another buffer takes its place in the shared receive queue at once.
 *
 * Nothing is allocated, registered or copied. Owning thread: the shard's.
 */
#include "common/clock.h"
#include "common/hist.h"
#include "common/log.h"
#include "common/msg.h"
#include "server/shard.h"

void echo_set_live(struct conn *c)
{
	struct shard *s = c->shard;
	uint32_t connected;

	if (c->state != CONN_ST_ACCEPTING)
		return;
	hist_record(s->stats.stages[SS_ACCEPT_TO_ESTABLISHED], clock_now_ns() - c->accepted_ns);
	counter_add(&s->stats.established, 1);
	c->heard = true;
	/* The client has its GRANT, or it would not be here: TLS has no more to say. */
	conn_close_tls(c);
	conn_set_state(c, CONN_ST_LIVE);
	connected = s->lists[CONN_ST_LIVE].n;
	/* Before the client gets its first reply: who then asks for a report finds it counted. */
	counter_set(&s->stats.connected, connected);
	if (connected > counter_get(&s->stats.connected_peak))
		counter_set(&s->stats.connected_peak, connected);
}

/* Puts a buffer into the receive queue for the one just taken from it. Without a free one the queue
 * stays one short until a send completes. */
static void replace_receive(struct shard *s)
{
	uint32_t buf = ep_buf_get(s->ep);

	if (buf == EP_NO_BUF) {
		s->recv_deficit++;
		counter_add(&s->stats.rnr_holds, 1);
		return;
	}
	ep_recycle(s->ep, buf);
}

static void make_up_deficit(struct shard *s)
{
	while (s->recv_deficit) {
		uint32_t buf = ep_buf_get(s->ep);

		if (buf == EP_NO_BUF)
			return;
		s->recv_deficit--;
		ep_recycle(s->ep, buf);
	}
}

/* More messages in one batch of completions than its credits: they were all under way at once. */
static bool keeps_to_credits(struct conn *c)
{
	uint64_t batch = ep_batch(c->shard->ep);

	if (c->batch != batch) {
		c->batch = batch;
		c->batch_messages = 0;
	}
	return ++c->batch_messages <= c->credits && c->rc.waiting_n <= c->credits;
}

static void on_message(struct conn *c, uint32_t buf, uint32_t bytes)
{
	struct shard *s = c->shard;
	struct msg_header h;
	uint8_t *data = ep_buf(s->ep, buf);

	/* Receive buffers are rounded up, so the device lets through a little more than was granted. */
	if (msg_decode(data, bytes, &h) || h.type != MSG_ECHO || bytes > s->cfg->message_bytes) {
		ep_recycle(s->ep, buf);
		conn_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
		return;
	}
	if (!keeps_to_credits(c)) {
		ep_recycle(s->ep, buf);
		conn_fail(c, FAIL_PROTOCOL, PROTO_CREDITS);
		return;
	}
	counter_add(&s->stats.messages_in, 1);
	counter_add(&s->stats.bytes_in, bytes);
	c->heard = true;
	h.type = MSG_REPLY;
	h.credits = 1;
	msg_encode(&h, data);
	if (rc_send(&c->rc, buf, bytes)) {
		replace_receive(s);
		conn_fail(c, FAIL_WC_STATUS, IBV_WC_LOC_QP_OP_ERR);
		return;
	}
	counter_add(&s->stats.messages_out, 1);
	counter_add(&s->stats.bytes_out, bytes);
	replace_receive(s);
}

static void on_receive(struct shard *s, const struct ibv_wc *wc, uint32_t buf)
{
	uint32_t owner = qp_pool_owner_of_qpn(s->qps, wc->qp_num);
	struct conn *c = owner == QP_POOL_NONE ? NULL : &s->conns[owner];

	if (!c || (c->state != CONN_ST_ACCEPTING && c->state != CONN_ST_LIVE)) {
		ep_recycle(s->ep, buf);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		ep_recycle(s->ep, buf);
		conn_fail(c, FAIL_WC_STATUS, (int)wc->status);
		return;
	}
	if (wc->opcode != IBV_WC_RECV) {
		/* A write with immediate data takes a receive buffer and leaves what was in it before. */
		ep_recycle(s->ep, buf);
		conn_fail(c, FAIL_PROTOCOL, PROTO_BAD_MESSAGE);
		return;
	}
	/* A message may overtake the ESTABLISHED event. */
	echo_set_live(c);
	on_message(c, buf, wc->byte_len);
}

static void on_sent(struct shard *s, const struct ibv_wc *wc, const struct wr *w)
{
	uint32_t owner = qp_pool_owner(s->qps, w->qp_slot, w->generation);
	struct conn *c;

	if (owner == QP_POOL_NONE) {
		/* From an earlier life of the slot; only its buffer matters. */
		if (w->buf != EP_NO_BUF)
			ep_buf_put(s->ep, w->buf);
		make_up_deficit(s);
		return;
	}
	c = &s->conns[owner];
	if (w->type == WR_PROBE && wc->status == IBV_WC_SUCCESS)
		c->heard = true;
	if (rc_on_send_wc(&c->rc, wc, w))
		conn_fail(c, FAIL_WC_STATUS, wc->status ? (int)wc->status : IBV_WC_LOC_QP_OP_ERR);
	else if (w->type == WR_BEACON)
		conn_try_finish(c);
	make_up_deficit(s);
}

void echo_on_wc(void *arg, const struct ibv_wc *wc)
{
	struct shard *s = arg;
	struct wr w = wr_unpack(wc->wr_id);

	if (w.type == WR_RECV)
		on_receive(s, wc, w.buf);
	else
		on_sent(s, wc, &w);
}
