/* SPDX-License-Identifier: BSD-2-Clause */
/* A control session with a server. See control.h. */
#include "client/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json_at.h"
#include "common/tls/tls_io.h"

/* A server may send twice the samples asked for, plus this many, because clocks differ and networks delay. */
#define SAMPLES_SPARE 16
/* Memory limit of a parsed report. A server's report takes about 14 bytes of memory per byte of text. */
#define REPORT_MEMORY_MAX (16 * (size_t)FRAME_REPORT_BYTES_MAX)

enum control_state { CT_IDLE, CT_CONNECTING, CT_HANDSHAKE, CT_EXCHANGE };

struct control {
	struct control_config cfg;
	struct ev_loop *loop;
	control_on_report_fn *on_report;
	void *arg;
	struct tls_ctx *tls_ctx;
	struct tls_io io;	/* stays open between requests */
	struct frame_control request;	/* the request under way */
	int start_errno;	/* error of a connect that failed at once; on_deadline reports it */
	ev_timer deadline;
	enum control_state state;
	uint64_t watch_ns, samples;	/* start of the watch, and samples received since */
};

static void disconnect(struct control *c)
{
	ev_timer_stop(c->loop, &c->deadline);
	tls_io_close(&c->io);
	c->state = CT_IDLE;
}

static void fail_session(struct control *c, enum fail_kind kind, int code, const char *text)
{
	struct fail f = { .stage = c->state <= CT_CONNECTING ? STAGE_TCP_CONNECT :
			  c->state == CT_HANDSHAKE ? STAGE_TLS_HANDSHAKE : STAGE_PSN_EXCHANGE,
			  .kind = kind, .code = code };
	char words[FRAME_REFUSE_TEXT_MAX + 1];

	snprintf(words, sizeof(words), "%s", text);
	disconnect(c);
	c->on_report(c->arg, NULL, &f, words);
}

/* True if the caller has to wait for the socket or the session is over; false to go on. */
static bool wait_or_end(struct control *c, enum tls_io_status st)
{
	if (st == TLS_IO_FAILED)
		fail_session(c, c->io.failure.kind, c->io.failure.code, tls_io_failure_text(&c->io));
	return st != TLS_IO_DONE;
}

static void start_deadline(struct control *c, double s)
{
	ev_timer_stop(c->loop, &c->deadline);
	ev_timer_set(&c->deadline, s, 0.);
	ev_timer_start(c->loop, &c->deadline);
}

/* Time allowed for an answer or, while watching, for the next sample. */
static double sample_s(const struct control *c)
{
	return (double)c->cfg.timeout_ns / 1e9 + c->request.interval_ms / 1e3;
}

/* True if the server sends far more samples than asked for, which would fill the disk of a caller that saves them. */
static bool is_flooded(struct control *c)
{
	uint64_t due = (clock_now_ns() - c->watch_ns) / (c->request.interval_ms * NS_PER_MS);

	return ++c->samples > 2 * due + SAMPLES_SPARE;
}

static void on_answer(struct control *c, const struct frame_header *h)
{
	static const struct json_limit limit = { FRAME_REPORT_BYTES_MAX, REPORT_MEMORY_MAX };
	const uint8_t *frame = c->io.frame;
	struct frame_refuse r;
	const char *why = "";
	json_t *report;

	if (h->type == FRAME_REFUSE && !frame_decode_refuse(frame, h->length, &r, &why)) {
		fail_session(c, FAIL_REFUSED, r.code, r.text);
		return;
	}
	report = h->type == FRAME_REPORT ?
		 json_read((const char *)frame + FRAME_HEADER_BYTES, h->length - FRAME_HEADER_BYTES, 0, &limit, NULL,
			   0) : NULL;
	if (!report) {
		fail_session(c, FAIL_PROTOCOL, PROTO_BAD_FRAME, "");
		return;
	}
	if (c->request.what == CONTROL_WATCH && is_flooded(c)) {
		json_decref(report);
		fail_session(c, FAIL_PROTOCOL, PROTO_UNEXPECTED_FRAME, "");
		return;
	}
	if (c->request.what == CONTROL_WATCH) {
		start_deadline(c, sample_s(c));
		/* The next turn of the loop reads the next sample, which may have arrived already. */
		tls_io_watch(&c->io, EV_WRITE);
	} else {
		c->state = CT_IDLE;
		ev_timer_stop(c->loop, &c->deadline);
		/* An idle session is not watched: the next request finds out whether the server has closed it. */
		tls_io_watch(&c->io, 0);
	}
	c->on_report(c->arg, report, NULL, "");
	json_decref(report);
}

static void exchange(struct control *c)
{
	struct frame_header h;

	if (wait_or_end(c, tls_io_write(&c->io)) ||
	    wait_or_end(c, tls_io_read_header(&c->io, FRAME_REPORT_BYTES_MAX, &h)))
		return;
	if (h.version != FRAME_VERSION)
		fail_session(c, FAIL_PROTOCOL, PROTO_BAD_FRAME, "");
	else if (!wait_or_end(c, tls_io_read_frame(&c->io, &h)))
		on_answer(c, &h);
}

static void begin_exchange(struct control *c)
{
	uint8_t *frame = tls_io_frame(&c->io);

	c->state = CT_EXCHANGE;
	tls_io_put(&c->io, c->request.what == CONTROL_WATCH ? frame_encode_watch(c->request.interval_ms, frame) :
			   frame_encode_control(c->request.what, frame));
}

static void handshake(struct control *c)
{
	if (wait_or_end(c, tls_io_handshake(&c->io)))
		return;
	begin_exchange(c);
	exchange(c);
}

static void on_connected(struct control *c)
{
	int ret = tls_io_connected(&c->io);

	if (!ret)
		ret = tls_io_start(&c->io, c->tls_ctx, c->cfg.verify_name);
	if (ret) {
		fail_session(c, FAIL_ERRNO, -ret, "");
		return;
	}
	c->state = CT_HANDSHAKE;
	handshake(c);
}

static void on_tls_ready(void *owner)
{
	struct control *c = owner;

	switch (c->state) {
	case CT_CONNECTING: on_connected(c); break;
	case CT_HANDSHAKE: handshake(c); break;
	case CT_EXCHANGE: exchange(c); break;
	case CT_IDLE: break;
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct control *c = w->data;

	(void)loop;
	(void)revents;
	fail_session(c, c->start_errno ? FAIL_ERRNO : FAIL_TIMEOUT, c->start_errno, "");
}

int control_new(const struct control_config *cfg, struct ev_loop *loop, control_on_report_fn *on_report,
		void *arg, struct control **out, char *err, size_t err_size)
{
	struct tls_config tls = { .server = false, .ca_file = cfg->ca_file, .cert_file = cfg->cert_file,
				  .key_file = cfg->key_file, .crl_file = cfg->crl_file };
	struct control *c = calloc(1, sizeof(*c));
	int ret;

	snprintf(err, err_size, "this machine is out of memory");
	if (!c)
		return -ENOMEM;
	ret = tls_ctx_new(&tls, &c->tls_ctx, err, err_size);
	if (ret) {
		free(c);
		return ret;
	}
	c->cfg = *cfg;
	c->loop = loop;
	c->on_report = on_report;
	c->arg = arg;
	tls_io_init(&c->io, loop, on_tls_ready, c, NULL, NULL);
	ev_timer_init(&c->deadline, on_deadline, 0., 0.);
	c->deadline.data = c;
	*out = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	if (c->io.tls)
		tls_io_say_bye(&c->io);
	disconnect(c);
	tls_ctx_free(c->tls_ctx);
	free(c);
}

static void start_session(struct control *c)
{
	double deadline_s = sample_s(c);

	if (c->io.tls) {
		begin_exchange(c);
		tls_io_watch(&c->io, EV_WRITE);
	} else {
		c->state = CT_CONNECTING;
		c->start_errno = -tls_io_connect(&c->io, &c->cfg.server, NULL);
		/* on_deadline reports the error, so that on_report is not called from here. */
		if (c->start_errno)
			deadline_s = 0.;
	}
	start_deadline(c, deadline_s);
}

bool control_request(struct control *c, enum control_what what)
{
	if (c->state != CT_IDLE)
		return false;
	c->request = (struct frame_control){ .what = what };
	start_session(c);
	return true;
}

bool control_watch(struct control *c, uint16_t interval_ms)
{
	if (c->state != CT_IDLE || c->io.tls)
		return false;
	c->request = (struct frame_control){ .what = CONTROL_WATCH, .interval_ms = interval_ms };
	c->watch_ns = clock_now_ns();
	c->samples = 0;
	start_session(c);
	return true;
}

bool control_is_busy(const struct control *c)
{
	return c->state != CT_IDLE;
}
