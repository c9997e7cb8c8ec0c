/* A control session with a server. See control.h. */
#include "client/control.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/tls/tls.h"

enum control_state { CT_IDLE, CT_CONNECTING, CT_HANDSHAKE, CT_WRITING, CT_HEADER, CT_BODY };

struct control {
	struct control_config cfg;
	struct ev_loop *loop;
	control_on_report_fn *on_report;
	void *arg;
	struct tls_ctx *tls_ctx;
	struct tls *tls;	/* kept between requests */
	int fd;
	int start_errno;	/* of a connect that failed at once; told by the deadline's watcher */
	ev_io io;
	ev_timer deadline;
	enum control_state state;
	uint8_t out[FRAME_CONTROL_BYTES];
	size_t out_done;
	uint8_t header[FRAME_HEADER_BYTES];
	uint8_t *frame;		/* whole frame, header included */
	size_t frame_n, in_n;
};

static void disconnect(struct control *c)
{
	ev_io_stop(c->loop, &c->io);
	ev_timer_stop(c->loop, &c->deadline);
	if (c->fd >= 0)
		close(c->fd);
	tls_free(c->tls);
	c->fd = -1;
	c->tls = NULL;
	free(c->frame);
	c->frame = NULL;
	c->state = CT_IDLE;
}

static void fail(struct control *c, enum fail_kind kind, int code, const char *text)
{
	struct fail f = { .stage = c->state <= CT_CONNECTING ? STAGE_TCP_CONNECT :
			  c->state == CT_HANDSHAKE ? STAGE_TLS_HANDSHAKE : STAGE_PSN_EXCHANGE,
			  .kind = kind, .code = code };
	char words[FRAME_REFUSE_TEXT_MAX + 1];

	snprintf(words, sizeof(words), "%s", text);
	disconnect(c);
	c->on_report(c->arg, NULL, &f, words);
}

static void want(struct control *c, int events)
{
	int fd = c->tls ? tls_fd(c->tls) : c->fd;

	ev_io_stop(c->loop, &c->io);
	ev_io_set(&c->io, fd, events);
	ev_io_start(c->loop, &c->io);
}

static bool wait_or_end(struct control *c, enum tls_status st)
{
	struct fail f;

	if (st == TLS_DONE)
		return false;
	if (st == TLS_WANT_READ || st == TLS_WANT_WRITE) {
		want(c, st == TLS_WANT_READ ? EV_READ : EV_WRITE);
	} else if (st == TLS_EOF) {
		fail(c, FAIL_CLOSED, 0, "");
	} else {
		tls_failure(c->tls, &f);
		fail(c, f.kind, f.code, tls_failure_text(c->tls));
	}
	return true;
}

static void finish(struct control *c, const struct frame_header *h)
{
	struct frame_refuse r;
	const char *why = "";
	json_t *report;

	if (h->type == FRAME_REFUSE && !frame_decode_refuse(c->frame, c->frame_n, &r, &why)) {
		fail(c, FAIL_REFUSED, r.code, r.text);
		return;
	}
	report = h->type == FRAME_REPORT ?
		 json_loadb((char *)c->frame + FRAME_HEADER_BYTES, c->frame_n - FRAME_HEADER_BYTES, 0, NULL) :
		 NULL;
	if (!report) {
		fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME, "");
		return;
	}
	free(c->frame);
	c->frame = NULL;
	c->state = CT_IDLE;
	ev_timer_stop(c->loop, &c->deadline);
	/* Nothing is expected now, but a close is to be noticed at the next request, not by spinning. */
	ev_io_stop(c->loop, &c->io);
	c->on_report(c->arg, report, NULL, "");
	json_decref(report);
}

static bool read_upto(struct control *c, uint8_t *buf, size_t upto)
{
	while (c->in_n < upto) {
		size_t got;

		if (wait_or_end(c, tls_read(c->tls, buf + c->in_n, upto - c->in_n, &got)))
			return false;
		c->in_n += got;
	}
	return true;
}

static void read_report(struct control *c)
{
	struct frame_header h;

	if (c->state == CT_HEADER) {
		if (!read_upto(c, c->header, FRAME_HEADER_BYTES))
			return;
		if (frame_decode_header(c->header, FRAME_REPORT_BYTES_MAX, &h) ||
		    h.version != FRAME_VERSION) {
			fail(c, FAIL_PROTOCOL, PROTO_BAD_FRAME, "");
			return;
		}
		c->frame = malloc(h.length);
		if (!c->frame) {
			fail(c, FAIL_ERRNO, ENOMEM, "");
			return;
		}
		memcpy(c->frame, c->header, FRAME_HEADER_BYTES);
		c->frame_n = h.length;
		c->state = CT_BODY;
	}
	if (read_upto(c, c->frame, c->frame_n) &&
	    !frame_decode_header(c->header, FRAME_REPORT_BYTES_MAX, &h))
		finish(c, &h);
}

static void write_request(struct control *c)
{
	while (c->out_done < sizeof(c->out)) {
		size_t put;

		if (wait_or_end(c, tls_write(c->tls, c->out + c->out_done, sizeof(c->out) - c->out_done,
					     &put)))
			return;
		c->out_done += put;
	}
	c->state = CT_HEADER;
	read_report(c);
}

static void handshake(struct control *c)
{
	if (wait_or_end(c, tls_handshake(c->tls)))
		return;
	c->state = CT_WRITING;
	write_request(c);
}

static void on_connected(struct control *c)
{
	int e = 0;
	socklen_t len = sizeof(e);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &len))
		e = errno;
	if (e || tls_new(c->tls_ctx, c->fd, c->cfg.verify_name, &c->tls)) {
		fail(c, FAIL_ERRNO, e ? e : ENOMEM, "");
		return;
	}
	c->fd = -1;
	c->state = CT_HANDSHAKE;
	handshake(c);
}

static void on_io(struct ev_loop *loop, ev_io *w, int revents)
{
	struct control *c = w->data;

	(void)loop;
	(void)revents;
	switch (c->state) {
	case CT_CONNECTING: on_connected(c); break;
	case CT_HANDSHAKE: handshake(c); break;
	case CT_WRITING: write_request(c); break;
	case CT_HEADER:
	case CT_BODY: read_report(c); break;
	case CT_IDLE: break;
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct control *c = w->data;

	(void)loop;
	(void)revents;
	fail(c, c->start_errno ? FAIL_ERRNO : FAIL_TIMEOUT, c->start_errno, "");
}

int control_new(const struct control_config *cfg, struct ev_loop *loop, control_on_report_fn *on_report,
		void *arg, struct control **out, char *err, size_t err_size)
{
	struct tls_config tls = { .server = false, .ca_file = cfg->ca_file, .cert_file = cfg->cert_file,
				  .key_file = cfg->key_file };
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
	c->fd = -1;
	ev_io_init(&c->io, on_io, -1, EV_READ);
	c->io.data = c;
	ev_timer_init(&c->deadline, on_deadline, 0., 0.);
	c->deadline.data = c;
	*out = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	if (c->tls)
		tls_close_notify(c->tls);
	disconnect(c);
	tls_ctx_free(c->tls_ctx);
	free(c);
}

static int open_socket(struct control *c)
{
	int one = 1;

	c->fd = socket(c->cfg.server.ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return errno;
	/* Else the request would wait for the acknowledgement of the handshake's last message. */
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(c->fd, (struct sockaddr *)&c->cfg.server.ss, c->cfg.server.len) &&
	    errno != EINPROGRESS)
		return errno;
	return 0;
}

bool control_request(struct control *c, enum control_what what)
{
	if (c->state != CT_IDLE)
		return false;
	frame_encode_control(what, c->out);
	c->out_done = c->in_n = 0;
	c->start_errno = 0;
	ev_timer_set(&c->deadline, (double)c->cfg.timeout_ns / 1e9, 0.);
	ev_timer_start(c->loop, &c->deadline);
	if (c->tls) {
		c->state = CT_WRITING;
		want(c, EV_WRITE);
		return true;
	}
	c->state = CT_CONNECTING;
	c->start_errno = open_socket(c);
	if (c->start_errno) {
		/* Told through the deadline's watcher, so that on_report is never called from here. */
		ev_timer_stop(c->loop, &c->deadline);
		ev_timer_set(&c->deadline, 0., 0.);
		ev_timer_start(c->loop, &c->deadline);
		return true;
	}
	want(c, EV_WRITE);
	return true;
}

bool control_is_busy(const struct control *c)
{
	return c->state != CT_IDLE;
}
