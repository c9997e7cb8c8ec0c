/* SPDX-License-Identifier: BSD-2-Clause */
/* An etcd that is started for one run. See etcd_proc.h.
 *
 * It is started twice: first on a Unix socket in its private folder, until it has its users, then for everybody. So nobody else
 * ever reaches it without a password, or has a watch that began before there was one. etcd's peers, of which it has none, would
 * come over a Unix socket, too.
 *
 * With TLS etcd takes clients with a certificate of the CA only, since it has --trusted-ca-file. --client-cert-auth would make
 * its JSON gateway refuse every certificate that has a common name (etcd 3.4, embed/serve.go). */
#include "loadgen/cluster/etcd/etcd_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "common/base/clock.h"
#include "common/base/paths.h"
#include "loadgen/cluster/etcd/bus_url.h"
#include "loadgen/cluster/etcd/etcd_http.h"
#include "loadgen/cluster/etcd/etcd_json.h"

#define START_NS (20 * NS_PER_S)
#define PEER "unix://peer:0"	/* a file in its folder */
#define CLIENT "client:0"
#define ARGS_MAX 40

struct etcd_proc {
	pid_t pid;
	int pid_fd;			/* stays this process's, also if somebody else reaped it */
	char folder[84];
	struct bus_url url;
	char text[BUS_URL_MAX], local_text[BUS_URL_MAX];
	struct etcd_target target;
};

const char *etcd_proc_url(const struct etcd_proc *p)
{
	return p->text;
}

const char *etcd_proc_local_url(const struct etcd_proc *p)
{
	return p->local_text;
}

/* ---- the process */

/* In the child, before exec: only async-signal-safe calls, but for execvp's search, whose memory is this child's alone. */
static void become_etcd(const struct etcd_proc *p, char *const *argv, int log, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY);

	/* A process group of its own: Ctrl-C on the terminal is for the generator only, which then ends the run in order. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || chdir(p->folder))
		_exit(127);
	dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(127);
}

static int spawn(struct etcd_proc *p, char *const *argv, const char *log, char *err, size_t err_size)
{
	pid_t parent = getpid();
	int ret = 0, fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot write %s: %s", log, path_error(ret));
		return ret;
	}
	p->pid = fork();
	if (p->pid == 0)
		become_etcd(p, argv, fd, parent);
	if (p->pid > 0)
		p->pid_fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pid < 0 || p->pid_fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot start etcd: %s", strerror(-ret));
		if (p->pid > 0) {
			kill(p->pid, SIGKILL);
			waitpid(p->pid, NULL, 0);
		}
	}
	close(fd);
	return ret;
}

/* True if it has ended within that time. */
static bool has_ended(const struct etcd_proc *p, int wait_ms)
{
	struct pollfd end = { p->pid_fd, POLLIN, 0 };

	return poll(&end, 1, wait_ms) > 0;
}

static void end(struct etcd_proc *p)
{
	if (p->pid_fd < 0)
		return;
	if (!has_ended(p, 0))
		syscall(SYS_pidfd_send_signal, p->pid_fd, SIGTERM, NULL, 0);
	if (!has_ended(p, 2000)) {
		syscall(SYS_pidfd_send_signal, p->pid_fd, SIGKILL, NULL, 0);
		(void)has_ended(p, 2000);
	}
	waitpid(p->pid, NULL, WNOHANG);
	close(p->pid_fd);
	p->pid_fd = -1;
}

/* A port that is free now, of all addresses; 0: there is none. */
static uint16_t free_port(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
	struct sockaddr_in b = { .sin_family = AF_INET };
	socklen_t n6 = sizeof(a), n4 = sizeof(b);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint16_t port = 0;

	if (fd >= 0 && bind(fd, (struct sockaddr *)&a, n6) == 0 && getsockname(fd, (struct sockaddr *)&a, &n6) == 0)
		port = ntohs(a.sin6_port);
	if (fd >= 0)
		close(fd);
	fd = port ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&b, n4) == 0 && getsockname(fd, (struct sockaddr *)&b, &n4) == 0)
		port = ntohs(b.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

/* ---- its arguments */

struct arguments {
	char *argv[ARGS_MAX];
	char listen[64], advertise[320], initial[64], data[96], cert[4096], key[4096], ca[4096];
};

static void add(struct arguments *a, int *n, const char *option, const char *value)
{
	a->argv[(*n)++] = (char *)option;
	if (value)
		a->argv[(*n)++] = (char *)value;
}

/* `open`: for everybody; else on a Unix socket. */
static void fill_arguments(const struct etcd_proc *p, const struct etcd_proc_config *c, bool open, struct arguments *a)
{
	const char *scheme = c->cert ? "https" : "http";
	int n = 0;

	snprintf(a->listen, sizeof(a->listen), "%s://0.0.0.0:%u", scheme, p->url.port);
	if (p->url.brackets)
		snprintf(a->listen, sizeof(a->listen), "%s://[::]:%u", scheme, p->url.port);
	snprintf(a->advertise, sizeof(a->advertise), "%s://%s", scheme, p->target.name);
	if (!open) {
		snprintf(a->listen, sizeof(a->listen), "unix://%s", CLIENT);
		snprintf(a->advertise, sizeof(a->advertise), "unix://%s", CLIENT);
	}
	snprintf(a->initial, sizeof(a->initial), "run=%s", PEER);
	snprintf(a->data, sizeof(a->data), "%s/data", p->folder);
	add(a, &n, "etcd", NULL);
	add(a, &n, "--name", "run");
	add(a, &n, "--data-dir", a->data);
	add(a, &n, "--listen-client-urls", a->listen);
	add(a, &n, "--advertise-client-urls", a->advertise);
	add(a, &n, "--listen-peer-urls", PEER);
	add(a, &n, "--initial-advertise-peer-urls", PEER);
	add(a, &n, "--initial-cluster", a->initial);
	add(a, &n, "--log-level", "warn");
	/* A password of 128 random bits needs no slow hash. */
	add(a, &n, "--bcrypt-cost", "4");
	/* A transaction may be guarded by some hundred members. */
	add(a, &n, "--max-txn-ops", "1024");
	/* Alone, it is the leader at once. */
	add(a, &n, "--heartbeat-interval", "50");
	add(a, &n, "--election-timeout", "250");
	if (open && c->cert) {
		add(a, &n, "--cert-file", a->cert);
		add(a, &n, "--key-file", a->key);
		add(a, &n, "--trusted-ca-file", a->ca);
	}
	a->argv[n] = NULL;
}

/* ---- its user */

static bool ask(struct etcd_line *l, const char *path, json_t *body, struct etcd_answer *a)
{
	etcd_line_call(l, path, body, "", START_NS / 4, a);
	return a->outcome == ETCD_OK;
}

/* Nobody knows root's password, and nobody needs it: etcd wants a root before it turns authentication on. */
static bool protect(struct etcd_line *l, const struct etcd_proc *p, struct etcd_answer *a)
{
	unsigned char bytes[16];
	char root[33];

	if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
		snprintf(a->why, sizeof(a->why), "no random numbers for a password");
		return false;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(root + 2 * i, 3, "%02x", bytes[i]);
	return ask(l, "auth/user/add", json_pack("{s:s, s:s}", "name", "root", "password", root), a) &&
	       ask(l, "auth/user/grant", json_pack("{s:s, s:s}", "user", "root", "role", "root"), a) &&
	       ask(l, "auth/role/add", json_pack("{s:s}", "name", "rampart"), a) &&
	       ask(l, "auth/role/grant",
		   json_pack("{s:s, s:{s:s, s:o, s:o}}", "name", "rampart", "perm", "permType", "READWRITE", "key",
			     etcd_key("/rampart/", ""), "range_end", etcd_key_end("/rampart/", "")), a) &&
	       ask(l, "auth/user/add", json_pack("{s:s, s:s}", "name", "rampart", "password", p->url.token), a) &&
	       ask(l, "auth/user/grant", json_pack("{s:s, s:s}", "user", "rampart", "role", "rampart"), a) &&
	       ask(l, "auth/enable", json_object(), a);
}

/* Until it takes requests; `path` with `body` (taken) is one that it then answers well. */
static int wait_until_it_serves(const struct etcd_proc *p, struct etcd_line *l, const char *path, json_t *body, const char *log,
				char *err, size_t err_size)
{
	uint64_t end_ns = clock_now_ns() + START_NS;
	struct etcd_answer a;
	int ret = -EAGAIN;

	while (ret == -EAGAIN) {
		if (ask(l, path, json_incref(body), &a)) {
			ret = 0;
		} else if (has_ended(p, 20)) {
			snprintf(err, err_size, "etcd did not start (is it installed? scripts/install-deps --tests; %.200s may say why)",
				 log);
			ret = -ECHILD;
		} else if (clock_now_ns() > end_ns || a.outcome == ETCD_NO) {
			snprintf(err, err_size, "%.400s (%.200s may say why%s)", a.why, log,
				 !p->target.cert ? "" : "; its certificate has to be good for serverAuth and clientAuth");
			ret = -ETIMEDOUT;
		}
	}
	json_decref(body);
	return ret;
}

static int begin_private(struct etcd_proc *p, struct arguments *a, const struct etcd_proc_config *c, char *err, size_t err_size)
{
	struct etcd_target t = { .name = "its Unix socket", .base = "http://localhost/v3/", .patience_ns = START_NS };
	struct etcd_line *line;
	struct etcd_answer answer = { 0 };
	int ret;

	snprintf(t.unix_socket, sizeof(t.unix_socket), "%s/%s", p->folder, CLIENT);
	ret = etcd_line_new(&t, &line);
	if (ret)
		return ret;
	fill_arguments(p, c, false, a);
	ret = spawn(p, a->argv, c->log, err, err_size);
	if (ret == 0)
		ret = wait_until_it_serves(p, line, "kv/range", json_pack("{s:o}", "key", etcd_key("/rampart/", "")), c->log, err,
					   err_size);
	if (ret == 0 && !protect(line, p, &answer)) {
		snprintf(err, err_size, "etcd cannot be given a password: %s", answer.why);
		ret = -EPROTO;
	}
	etcd_line_free(line);
	end(p);
	return ret;
}

static int begin_open(struct etcd_proc *p, struct arguments *a, const struct etcd_proc_config *c, char *err, size_t err_size)
{
	struct etcd_line *line;
	int ret = etcd_line_new(&p->target, &line);

	if (ret)
		return ret;
	fill_arguments(p, c, true, a);
	ret = spawn(p, a->argv, c->log, err, err_size);
	if (ret == 0)
		ret = wait_until_it_serves(p, line, "auth/authenticate",
					   json_pack("{s:s, s:s}", "name", "rampart", "password", p->url.token), c->log, err,
					   err_size);
	etcd_line_free(line);
	return ret;
}

/* ---- */

static int make_token(char token[BUS_TOKEN_MAX + 1])
{
	unsigned char bytes[16], text[25];

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return -EIO;
	EVP_EncodeBlock(text, bytes, sizeof(bytes));
	for (size_t i = 0; i < 22; i++)		/* base64url, without its padding (RFC 4648, 5) */
		token[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : (char)text[i];
	token[22] = '\0';
	return 0;
}

static int set_url(struct etcd_proc *p, const struct etcd_proc_config *c, char *err, size_t err_size)
{
	bool brackets = strchr(c->host, ':');
	struct bus_url u = { .tls = c->cert, .brackets = brackets, .port = c->port ? c->port : free_port() };
	char text[BUS_HOST_MAX + 4];

	if (make_token(u.token) || strlen(c->host) > BUS_HOST_MAX || strlen(c->run) > BUS_RUN_MAX) {
		snprintf(err, err_size, "no random numbers, or a host's or a run's name that is too long");
		return -EINVAL;
	}
	snprintf(u.host, sizeof(u.host), "%s", c->host);
	snprintf(u.run, sizeof(u.run), "%s", c->run);
	bus_url_secret(&u, p->text);
	if (bus_url_parse(p->text, &p->url, err, err_size))
		return -EINVAL;
	if (!u.tls)
		snprintf(u.host, sizeof(u.host), "%s", brackets ? "::1" : "127.0.0.1");
	bus_url_secret(&u, p->local_text);
	snprintf(p->target.name, sizeof(p->target.name), "%s%s%s:%u", brackets ? "[" : "", p->url.host, brackets ? "]" : "",
		 u.port);
	snprintf(text, sizeof(text), "%s%s%s", brackets ? "[" : "", u.host, brackets ? "]" : "");
	snprintf(p->target.base, sizeof(p->target.base), "http%s://%s:%u/v3/", u.tls ? "s" : "", text, u.port);
	return 0;
}

/* Below $TMPDIR, if its path leaves room for a Unix socket's (unix(7): 108 bytes), else below /tmp. */
static int make_folder(struct etcd_proc *p, char *err, size_t err_size)
{
	const char *below = getenv("TMPDIR");
	int ret;

	if (!below || !*below || strlen(below) > 60)
		below = "/tmp";
	snprintf(p->folder, sizeof(p->folder), "%s/rampart-etcd.XXXXXX", below);
	if (mkdtemp(p->folder))
		return 0;
	ret = -errno;
	p->folder[0] = '\0';
	snprintf(err, err_size, "cannot make a folder for etcd's data in %s: %s", below, strerror(-ret));
	return ret;
}

static int absolute(const char *name, char out[4096], char *err, size_t err_size)
{
	char *path = realpath(name, NULL);
	int ret = path ? 0 : -errno;

	if (path && strlen(path) >= 4096)
		ret = -ENAMETOOLONG;
	if (ret)
		snprintf(err, err_size, "cannot read %s: %s", name, strerror(-ret));
	else
		snprintf(out, 4096, "%s", path);
	free(path);
	return ret;
}

static int set_tls(struct etcd_proc *p, const struct etcd_proc_config *c, struct arguments *a, char *err, size_t err_size)
{
	int ret;

	if (!c->ca && !c->cert && !c->key)
		return 0;
	if (!c->ca || !c->cert || !c->key) {
		snprintf(err, err_size, "TLS of etcd needs its CA, a certificate and a key: give all three, or none");
		return -EINVAL;
	}
	ret = absolute(c->ca, a->ca, err, err_size);
	if (ret == 0)
		ret = absolute(c->cert, a->cert, err, err_size);
	if (ret == 0)
		ret = absolute(c->key, a->key, err, err_size);
	if (ret)
		return ret;
	p->target.ca = strdup(c->ca);
	p->target.cert = strdup(c->cert);
	p->target.key = strdup(c->key);
	return p->target.ca && p->target.cert && p->target.key ? 0 : -ENOMEM;
}

int etcd_proc_start(const struct etcd_proc_config *c, struct etcd_proc **out, char *err, size_t err_size)
{
	struct etcd_proc *p = calloc(1, sizeof(*p));
	struct arguments *a = calloc(1, sizeof(*a));
	int ret = -ENOMEM;

	snprintf(err, err_size, "this machine is out of memory");
	if (!p || !a)
		goto out;
	p->pid_fd = -1;
	p->target.patience_ns = 5 * NS_PER_S;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	ret = set_url(p, c, err, err_size);
	if (ret == 0)
		ret = set_tls(p, c, a, err, err_size);
	if (ret == 0)
		ret = make_folder(p, err, err_size);
	if (ret == 0)
		ret = begin_private(p, a, c, err, err_size);
	if (ret == 0)
		ret = begin_open(p, a, c, err, err_size);
out:
	free(a);
	if (ret)
		etcd_proc_free(p);
	else
		*out = p;
	return ret;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	remove(path);
	return 0;
}

void etcd_proc_free(struct etcd_proc *p)
{
	if (!p)
		return;
	end(p);
	if (p->folder[0])
		nftw(p->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(p->target.ca);
	free(p->target.cert);
	free(p->target.key);
	explicit_bzero(p, sizeof(*p));
	free(p);
}
