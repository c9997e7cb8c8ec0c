/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts an etcd for one run. See etcd_proc.h.
 *
 * etcd starts twice: first on a Unix socket in its private folder, until its users exist, then for everybody. So no
 * other process can reach it before it has passwords, or keep a watch from that time. It has no peers, so its peer
 * address is a Unix socket as well.
 *
 * With TLS, --trusted-ca-file makes etcd accept only clients with a certificate of the CA. --client-cert-auth would
 * make its JSON gateway refuse every certificate that has a common name (etcd 3.4, embed/serve.go). */
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

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "common/base/clock.h"
#include "common/base/paths.h"
#include "loadgen/cluster/etcd/etcd_http.h"
#include "loadgen/cluster/etcd/etcd_json.h"
#include "loadgen/cluster/etcd/etcd_url.h"

#define START_NS (20 * NS_PER_S)
#define PEER "unix://peer:0"	/* a socket in etcd's folder */
static const char peers[] = "run=" PEER;
#define LOG_PATH_BYTES 96	/* of etcd's output, which is kept in its folder */
#define SOCKET "client:0"
#define CLIENT "unix://" SOCKET

struct etcd_proc {
	pid_t pid;
	int pid_fd;			/* refers to this process even after somebody else reaped it */
	char folder[84];
	struct etcd_url url;
	char text[ETCD_URL_MAX], local_text[ETCD_URL_MAX];
	struct etcd_target target;	/* its file paths are absolute, because etcd runs in `folder` */
};

const char *etcd_proc_url(const struct etcd_proc *p)
{
	return p->text;
}

const char *etcd_proc_local_url(const struct etcd_proc *p)
{
	return p->local_text;
}

/* In the child, before exec: only async-signal-safe calls, except execvp's path search, whose memory is private. */
static void become_etcd(const struct etcd_proc *p, const char *const *argv, int log, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY);

	/* A process group of its own, so that Ctrl-C reaches only the generator, which then ends the run in order. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || chdir(p->folder))
		_exit(127);
	dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static const char *log_path(const struct etcd_proc *p, char path[LOG_PATH_BYTES])
{
	snprintf(path, LOG_PATH_BYTES, "%s/log", p->folder);
	return path;
}

static int spawn(struct etcd_proc *p, const char *const *argv, char *err, size_t err_size)
{
	char path[LOG_PATH_BYTES];
	pid_t parent = getpid();
	int ret = 0, fd = open(log_path(p, path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot write %s: %s", path, path_error(ret));
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

/* True if the process ends within `wait_ms`. */
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

/* A port that is currently free on all addresses; 0: none. */
static uint16_t free_port(int family)
{
	union { struct sockaddr any; struct sockaddr_in in; struct sockaddr_in6 in6; } a = {
		.in6.sin6_family = (sa_family_t)family };
	socklen_t n = sizeof(a);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool bound = fd >= 0 && bind(fd, &a.any, n) == 0 && getsockname(fd, &a.any, &n) == 0;

	if (fd >= 0)
		close(fd);
	return bound ? ntohs(a.in.sin_port) : 0;	/* sin6_port has the same offset */
}

/* With `open` etcd listens for everybody, otherwise on a Unix socket. */
static int spawn_etcd(struct etcd_proc *p, bool open, char *err, size_t err_size)
{
	const struct etcd_target *t = &p->target;
	char listen[64] = CLIENT, advertise[320] = CLIENT;
	const char *const argv[] = { "etcd", "--name", "run", "--data-dir", "data", "--listen-client-urls", listen,
		"--advertise-client-urls", advertise, "--listen-peer-urls", PEER, "--initial-advertise-peer-urls", PEER,
		"--initial-cluster", peers, "--log-level", "warn",
		/* A password of 128 random bits needs no slow hash. */
		"--bcrypt-cost", "4",
		/* A single member elects itself at once. */
		"--heartbeat-interval", "50", "--election-timeout", "250",
		open && t->cert ? "--cert-file" : NULL, t->cert, "--key-file", t->key, "--trusted-ca-file", t->ca,
		NULL };

	if (open) {
		snprintf(listen, sizeof(listen), "http%s://%s:%u", t->cert ? "s" : "",
			 p->url.host[0] == '[' ? "[::]" : "0.0.0.0", p->url.port);
		snprintf(advertise, sizeof(advertise), "http%s://%s:%u", t->cert ? "s" : "", p->url.host, p->url.port);
	}
	return spawn(p, argv, err, err_size);
}

static bool ask(struct etcd_http *h, const char *path, json_t *body, struct etcd_answer *a)
{
	etcd_ask(h, path, body, "", START_NS / 4, a);
	return a->outcome == ETCD_OK;
}

/* 128 random bits as base64url, without its padding (RFC 4648, 5). */
static bool make_secret(char secret[ETCD_TOKEN_MAX + 1])
{
	unsigned char bytes[16], text[25];

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	EVP_EncodeBlock(text, bytes, sizeof(bytes));
	for (size_t i = 0; i < 22; i++)
		secret[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : (char)text[i];
	secret[22] = '\0';
	return true;
}

/* etcd requires a user root before it turns authentication on. Its password is discarded, because nobody needs it. */
static bool protect(struct etcd_http *h, const struct etcd_proc *p, struct etcd_answer *a)
{
	char root[ETCD_TOKEN_MAX + 1];

	if (!make_secret(root)) {
		snprintf(a->why, sizeof(a->why), "no random numbers for a password");
		return false;
	}
	return ask(h, "auth/user/add", json_pack("{s:s, s:s}", "name", "root", "password", root), a) &&
	       ask(h, "auth/user/grant", json_pack("{s:s, s:s}", "user", "root", "role", "root"), a) &&
	       ask(h, "auth/role/add", json_pack("{s:s}", "name", "rampart"), a) &&
	       ask(h, "auth/role/grant",
		   json_pack("{s:s, s:{s:s, s:o, s:o}}", "name", "rampart", "perm", "permType", "READWRITE", "key",
			     etcd_key("/rampart/", ""), "range_end", etcd_key_end("/rampart/", "")), a) &&
	       ask(h, "auth/user/add", json_pack("{s:s, s:s}", "name", "rampart", "password", p->url.token), a) &&
	       ask(h, "auth/user/grant", json_pack("{s:s, s:s}", "user", "rampart", "role", "rampart"), a) &&
	       ask(h, "auth/enable", json_object(), a);
}

/* Starts etcd and waits until it serves: until it answers `path` with `body` (taken over) without an error. */
static int etcd_begin(struct etcd_proc *p, bool open, struct etcd_http *h, const char *path, json_t *body,
		      char *err, size_t err_size)
{
	uint64_t end_ns = clock_now_ns() + START_NS;
	int ret = spawn_etcd(p, open, err, err_size);
	bool serves = false;
	char log[LOG_PATH_BYTES], line[256];
	struct etcd_answer a;

	while (!ret && !serves) {
		serves = ask(h, path, json_incref(body), &a);
		if (!serves && has_ended(p, 20)) {
			snprintf(err, err_size, "etcd did not start%s%s",
				 path_last_line(log_path(p, log), line, sizeof(line)) ? ": " :
				 " (is it installed? scripts/install-deps --tests)", line);
			ret = -ECHILD;
		} else if (!serves && (clock_now_ns() > end_ns || a.outcome == ETCD_NO)) {
			snprintf(err, err_size, "%.400s%s%s%s", a.why, !p->target.cert ? "" :
				 " (etcd's certificate must be valid for serverAuth and clientAuth)",
				 path_last_line(log_path(p, log), line, sizeof(line)) ? ": " : "", line);
			ret = -ETIMEDOUT;
		}
	}
	json_decref(body);
	return ret;
}

static int begin_private(struct etcd_proc *p, char *err, size_t err_size)
{
	struct etcd_target t = { .name = "its Unix socket", .base = "http://localhost/v3/", .patience_ns = START_NS };
	struct etcd_http *http;
	struct etcd_answer answer = { 0 };
	int ret;

	snprintf(t.unix_socket, sizeof(t.unix_socket), "%s/%s", p->folder, SOCKET);
	ret = etcd_http_new(&t, NULL, &http);
	if (ret)
		return ret;
	ret = etcd_begin(p, false, http, "kv/range", json_pack("{s:o}", "key", etcd_key("/rampart/", "")), err,
			 err_size);
	if (ret == 0 && !protect(http, p, &answer)) {
		snprintf(err, err_size, "cannot set etcd's users and passwords: %s", answer.why);
		ret = -EPROTO;
	}
	etcd_http_free(http);
	end(p);
	return ret;
}

static int begin_open(struct etcd_proc *p, char *err, size_t err_size)
{
	json_t *login = json_pack("{s:s, s:s}", "name", "rampart", "password", p->url.token);
	struct etcd_http *http = NULL;
	int ret = etcd_http_new(&p->target, NULL, &http);

	if (ret == 0)
		ret = etcd_begin(p, true, http, "auth/authenticate", login, err, err_size);
	else
		json_decref(login);
	etcd_http_free(http);
	return ret;
}

static int set_url(struct etcd_proc *p, const struct etcd_proc_config *c, char *err, size_t err_size)
{
	bool brackets = strchr(c->host, ':');
	struct etcd_url u = { .tls = c->cert, .port = free_port(brackets ? AF_INET6 : AF_INET) };

	if (!make_secret(u.token) || strlen(c->host) > ETCD_HOST_MAX || strlen(c->run) > ETCD_RUN_MAX) {
		snprintf(err, err_size,
			 "no random numbers are available, or the name of the host or of the run is too long");
		return -EINVAL;
	}
	snprintf(u.host, sizeof(u.host), brackets ? "[%s]" : "%s", c->host);
	snprintf(u.run, sizeof(u.run), "%s", c->run);
	if (etcd_url_parse(etcd_url_secret(&u, p->text), &p->url, err, err_size))
		return -EINVAL;
	if (!u.tls)
		snprintf(u.host, sizeof(u.host), "%s", brackets ? "[::1]" : "127.0.0.1");
	etcd_url_secret(&u, p->local_text);
	return etcd_target_set(&p->target, &u, NULL, NULL, NULL);
}

/* Below $TMPDIR if that path leaves room for the path of a Unix socket (unix(7): 108 bytes), otherwise below /tmp. */
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

static int set_tls(struct etcd_proc *p, const struct etcd_proc_config *c, char *err, size_t err_size)
{
	const char *const names[] = { c->ca, c->cert, c->key };
	char **const paths[] = { &p->target.ca, &p->target.cert, &p->target.key };

	if (!c->ca && !c->cert && !c->key)
		return 0;
	if (!c->ca || !c->cert || !c->key) {
		snprintf(err, err_size, "give all of --etcd-ca, --etcd-cert and --etcd-key, or none");
		return -EINVAL;
	}
	for (size_t i = 0; i < 3; i++) {
		*paths[i] = realpath(names[i], NULL);
		if (!*paths[i]) {
			int ret = -errno;

			snprintf(err, err_size, "cannot read %s: %s", names[i], strerror(-ret));
			return ret;
		}
	}
	return 0;
}

int etcd_proc_start(const struct etcd_proc_config *c, struct etcd_proc **out, char *err, size_t err_size)
{
	struct etcd_proc *p = calloc(1, sizeof(*p));
	int ret;

	snprintf(err, err_size, "this machine is out of memory");
	if (!p)
		return -ENOMEM;
	p->pid_fd = -1;
	ret = set_url(p, c, err, err_size);
	p->target.patience_ns = 5 * NS_PER_S;
	if (ret == 0)
		ret = set_tls(p, c, err, err_size);
	if (ret == 0)
		ret = make_folder(p, err, err_size);
	if (ret == 0)
		ret = begin_private(p, err, err_size);
	if (ret == 0)
		ret = begin_open(p, err, err_size);
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
	etcd_target_clear(&p->target);
	explicit_bzero(p, sizeof(*p));
	free(p);
}
