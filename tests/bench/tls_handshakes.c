/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures TLS 1.3 handshakes alone in a simple use of OpenSSL: two processes over loopback, each with one thread and
 * one libev loop. The parent is the client and measures; the child is the server. scripts/bench-connect compares
 * rampart with it (docs/bench.md), so it uses nothing of common/. It ends at the first failure. Non-goals: application
 * data, client certificates, tickets (except with --resume). */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>
#include <jansson.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#define ACCEPT_BUDGET 64

struct options {
	uint64_t handshakes, concurrency, timeout_s;
	const char *certs;
	bool resume;
};

/* One process: the client or the server. */
struct side {
	const struct options *options;
	struct ev_loop *loop;
	SSL_CTX *ctx;
	int listener;			/* server only */
	struct sockaddr_in address;	/* client: the server's address */
	uint64_t started, done;		/* client; the server uses only `done` */
	uint64_t begin_ns, end_ns;
	uint64_t cpu_begin_ns;		/* client: CPU time of both processes */
	pid_t server;
	SSL_SESSION *session;		/* client, --resume: from the first connection */
	char tls[96];			/* client: the negotiated parameters, as text */
};

struct conn {
	ev_io io;
	struct side *side;
	SSL *ssl;
};

static uint64_t read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

static uint64_t cpu_ns(const struct side *client)
{
	clockid_t server;

	if (clock_getcpuclockid(client->server, &server))
		return 0;
	return read_ns(CLOCK_PROCESS_CPUTIME_ID) + read_ns(server);
}

static struct conn *conn_new(struct side *s, int fd, int events,
			     void (*on_io)(struct ev_loop *loop, ev_io *w, int revents))
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c || !(c->ssl = SSL_new(s->ctx)) || SSL_set_fd(c->ssl, fd) != 1)
		errx(1, "out of memory");
	c->side = s;
	ev_io_init(&c->io, on_io, fd, events);
	ev_io_start(s->loop, &c->io);
	return c;
}

static void conn_free(struct conn *c)
{
	ev_io_stop(c->side->loop, &c->io);
	/* Sends nothing, but without it OpenSSL takes the session for broken and does not resume it. */
	SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN);
	SSL_free(c->ssl);
	close(c->io.fd);
	free(c);
}

/* After an OpenSSL call that did not succeed: true if it failed; false if it only has to be repeated when the socket is
 * ready, for which the watcher is set. */
static bool conn_failed(struct conn *c, int ret)
{
	int error = SSL_get_error(c->ssl, ret);
	int events = error == SSL_ERROR_WANT_WRITE ? EV_WRITE : EV_READ;

	if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
		return true;
	if ((c->io.events & (EV_READ | EV_WRITE)) != events) {
		ev_io_stop(c->side->loop, &c->io);
		ev_io_set(&c->io, c->io.fd, events);
		ev_io_start(c->side->loop, &c->io);
	}
	return false;
}

static void warn_of_failure(const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_error());

	if (why)
		warnx("%s: %s", what, why);
	else
		warn("%s", what);
}

/* The settings of both ends are those of common/tls/tls.c. */
static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, "X25519:P-256") != 1 ||
	    SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
				     "TLS_CHACHA20_POLY1305_SHA256") != 1)
		errx(3, "this OpenSSL library cannot do TLS 1.3 with X25519 or P-256");
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	return ctx;
}

static void on_server_io(struct ev_loop *loop, ev_io *w, int revents)
{
	struct conn *c = (struct conn *)w;
	int ret;

	(void)loop;
	(void)revents;
	ERR_clear_error();
	ret = SSL_do_handshake(c->ssl);
	if (ret != 1 && !conn_failed(c, ret))
		return;
	if (ret != 1) {
		warn_of_failure("server: handshake");
		exit(1);
	}
	if (c->side->done++ == 0)
		SSL_CTX_set_num_tickets(c->side->ctx, 0);	/* --resume: the first connection has got its ticket */
	conn_free(c);
}

static void on_listener(struct ev_loop *loop, ev_io *w, int revents)
{
	struct side *s = w->data;
	int fd;

	(void)loop;
	(void)revents;
	for (int i = 0; i < ACCEPT_BUDGET; i++) {
		fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			SSL_set_accept_state(conn_new(s, fd, EV_READ, on_server_io)->ssl);
		else if (errno == EAGAIN)
			return;
		else
			err(1, "server: accept");
	}
}

/* Runs until it is killed; writes to `ready` once handshakes may begin. */
static void server_run(struct side *s, int ready)
{
	char cert[4096], key[4096];
	ev_io listener;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(cert, sizeof(cert), "%s/server.pem", s->options->certs);
	snprintf(key, sizeof(key), "%s/server.key", s->options->certs);
	s->ctx = new_ctx(TLS_server_method());
	SSL_CTX_set_num_tickets(s->ctx, s->options->resume ? 1 : 0);
	if (SSL_CTX_use_certificate_chain_file(s->ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(s->ctx, key, SSL_FILETYPE_PEM) != 1)
		errx(3, "%s and %s are no certificate and key; `make certs` makes them", cert, key);
	s->loop = ev_loop_new(EVFLAG_AUTO);
	ev_io_init(&listener, on_listener, s->listener, EV_READ);
	listener.data = s;
	ev_io_start(s->loop, &listener);
	if (write(ready, "", 1) == 1)
		ev_run(s->loop, 0);
}

static void on_client_io(struct ev_loop *loop, ev_io *w, int revents);

static void client_start(struct side *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct conn *c;

	if (fd < 0 || (connect(fd, (struct sockaddr *)&s->address, sizeof(s->address)) && errno != EINPROGRESS))
		err(1, "client: connect");
	c = conn_new(s, fd, EV_WRITE, on_client_io);
	SSL_set_connect_state(c->ssl);
	if (SSL_set1_host(c->ssl, "localhost") != 1 || SSL_set_tlsext_host_name(c->ssl, "localhost") != 1 ||
	    (s->session && SSL_set_session(c->ssl, s->session) != 1))
		errx(1, "out of memory");
	s->started++;
}

/* Keeps the wanted number of handshakes in progress. With --resume the first one runs alone and is not counted. */
static void client_fill(struct side *s)
{
	uint64_t total = s->options->resume && !s->session ? 1 : s->options->handshakes;

	while (s->started < total && s->started - s->done < s->options->concurrency)
		client_start(s);
	if (s->done == total)
		ev_break(s->loop, EVBREAK_ALL);
}

static void client_begin(struct side *s)
{
	s->started = s->done = 0;
	s->cpu_begin_ns = cpu_ns(s);
	s->begin_ns = now_ns();
}

static void client_keep_session(struct side *s, SSL *ssl)
{
	s->session = SSL_get1_session(ssl);
	if (!s->session || !SSL_SESSION_is_resumable(s->session))
		errx(1, "client: the server gave no ticket to resume with");
	client_begin(s);
}

static void client_done(struct conn *c)
{
	struct side *s = c->side;

	s->done++;
	s->end_ns = now_ns();
	if (s->options->resume && !s->session)
		client_keep_session(s, c->ssl);
	conn_free(c);
	client_fill(s);
}

static void client_failed(struct conn *c, const char *what)
{
	warn_of_failure(what);
	ev_break(c->side->loop, EVBREAK_ALL);
}

/* The server closes the connection when it has completed the handshake; if it cannot, it sends an alert. */
static void client_await_close(struct conn *c)
{
	char byte;
	int ret = SSL_read(c->ssl, &byte, 1);

	if (ret <= 0 && SSL_get_error(c->ssl, ret) == SSL_ERROR_ZERO_RETURN)
		client_done(c);
	else if (ret > 0 || conn_failed(c, ret))
		client_failed(c, "client: after the handshake");
}

static void on_client_io(struct ev_loop *loop, ev_io *w, int revents)
{
	struct conn *c = (struct conn *)w;
	struct side *s = c->side;
	int ret;

	(void)loop;
	(void)revents;
	ERR_clear_error();
	if (!SSL_is_init_finished(c->ssl)) {
		ret = SSL_do_handshake(c->ssl);
		if (ret != 1) {
			if (conn_failed(c, ret))
				client_failed(c, "client: handshake");
			return;
		}
		if (SSL_session_reused(c->ssl) != (s->session != NULL))
			errx(1, "client: a handshake was %s", s->session ? "full" : "resumed");
		if (!s->tls[0])
			snprintf(s->tls, sizeof(s->tls), "%s %s %s", SSL_get_version(c->ssl),
				 SSL_get_cipher_name(c->ssl),
				 OBJ_nid2sn((int)(SSL_get_negotiated_group(c->ssl) & 0xffff)));
	}
	client_await_close(c);
}

static void on_timeout(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct side *s = w->data;

	(void)revents;
	warnx("timed out after %llu s", (unsigned long long)s->options->timeout_s);
	ev_break(loop, EVBREAK_ALL);
}

static void client_run(struct side *s, int ready)
{
	char ca[4096], byte;
	ev_timer timer;

	s->ctx = new_ctx(TLS_client_method());
	SSL_CTX_set_verify(s->ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_options(s->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);	/* the server closes without close_notify */
	snprintf(ca, sizeof(ca), "%s/ca.pem", s->options->certs);
	if (SSL_CTX_load_verify_locations(s->ctx, ca, NULL) != 1)
		errx(3, "%s is no CA certificate; `make certs` makes one", ca);
	if (read(ready, &byte, 1) != 1)
		exit(3);	/* the server has printed why */
	s->loop = ev_loop_new(EVFLAG_AUTO);
	ev_timer_init(&timer, on_timeout, (ev_tstamp)s->options->timeout_s, 0);
	timer.data = s;
	ev_timer_start(s->loop, &timer);
	client_begin(s);
	client_fill(s);
	ev_run(s->loop, 0);
}

static void print(const struct side *s)
{
	const struct options *o = s->options;
	uint64_t done = o->resume && !s->session ? 0 : s->done;
	json_int_t wall_ns = done ? (json_int_t)(s->end_ns - s->begin_ns) : 0;
	json_int_t cpu = (json_int_t)(cpu_ns(s) - s->cpu_begin_ns);
	json_t *j = json_pack("{s:I, s:I, s:I, s:o, s:o, s:b, s:I, s:s, s:s}",
			      "handshakes_done", (json_int_t)done,
			      "handshakes_failed", (json_int_t)(o->handshakes - done), "wall_ns", wall_ns,
			      "ns_per_handshake", done ? json_integer(wall_ns / (json_int_t)done) : json_null(),
			      "cpu_ns_per_handshake", done ? json_integer(cpu / (json_int_t)done) : json_null(),
			      "resumed", (int)o->resume, "concurrency", (json_int_t)o->concurrency,
			      "tls", s->tls, "library", OpenSSL_version(OPENSSL_VERSION));

	if (!j || json_dumpf(j, stdout, JSON_COMPACT) || puts("") == EOF || fflush(stdout))
		err(1, "stdout");
	json_decref(j);
}

static const char usage[] =
	"Usage: tls_handshakes [--handshakes N] [--concurrency N] [--certs DIR] [--resume] [--timeout S]\n\n"
	"Does N TLS 1.3 handshakes (1000), so many at once (32), between two processes over loopback, and\n"
	"prints as JSON how long one takes. Certificates: server.pem, server.key and ca.pem in DIR\n"
	"(build/certs). --resume: resumed ones, after a full one that does not count. Gives up after S\n"
	"seconds (600). Exit status: 0 done, 1 a handshake failed or time was up, 2 usage, 3 not possible here.\n";

static uint64_t number(const char *text, uint64_t max)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || value < 1 || value > max)
		errx(2, "%s is not allowed; allowed: 1 to %llu", text, (unsigned long long)max);
	return value;
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "handshakes", required_argument, NULL, 'n' }, { "concurrency", required_argument, NULL, 'c' },
		{ "timeout", required_argument, NULL, 't' },	{ "certs", required_argument, NULL, 'd' },
		{ "resume", no_argument, NULL, 'r' },		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (opt == 'n')
			o->handshakes = number(optarg, 1000000);
		else if (opt == 'c')
			o->concurrency = number(optarg, 500);
		else if (opt == 't')
			o->timeout_s = number(optarg, 86400);
		else if (opt == 'd')
			o->certs = optarg;
		else if (opt == 'r')
			o->resume = true;
		else
			exit(fputs(usage, opt == 'h' ? stdout : stderr) == EOF || opt != 'h' ? 2 : 0);
	}
	if (optind < argc)
		errx(2, "%s: no operands are taken", argv[optind]);
}

static void listen_on_loopback(struct side *s)
{
	socklen_t n = sizeof(s->address);

	s->address.sin_family = AF_INET;
	s->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&s->address, n) ||
	    listen(s->listener, SOMAXCONN) || getsockname(s->listener, (struct sockaddr *)&s->address, &n))
		err(3, "loopback");
}

int main(int argc, char **argv)
{
	struct options o = { .handshakes = 1000, .concurrency = 32, .timeout_s = 600, .certs = "build/certs" };
	struct side s = { .options = &o };
	int ready[2];

	parse(argc, argv, &o);
	signal(SIGPIPE, SIG_IGN);
	listen_on_loopback(&s);
	if (pipe(ready))
		err(3, "pipe");
	s.server = fork();
	if (s.server < 0)
		err(3, "fork");
	if (s.server == 0) {
		close(ready[0]);
		server_run(&s, ready[1]);
		return 1;
	}
	close(ready[1]);
	close(s.listener);
	client_run(&s, ready[0]);
	print(&s);
	kill(s.server, SIGTERM);
	waitpid(s.server, NULL, 0);
	SSL_SESSION_free(s.session);
	SSL_CTX_free(s.ctx);
	ev_loop_destroy(s.loop);
	return s.done == o.handshakes && s.done == s.started ? 0 : 1;
}
