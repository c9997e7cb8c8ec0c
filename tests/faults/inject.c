/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one call of a program fail. The program is linked with --wrap for each WRAP below, so calls from the project's
 * own sources come here, but not those from libraries and the fakes.
 *
 * FAULT=KIND:K makes the K-th call of that kind fail, with its usual error, in the program that FAULT_PROGRAM names.
 * The file FAULT_NOTES gets "failed FUNCTION" when that happens, and at the end "calls KIND N" for each kind and
 * "descriptors open N"; without FAULT also "first KIND K" and "last KIND K" for each calling place. FAULT_TRACE prints
 * the place on stderr. */
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <ev.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include "tests/unit/fakes/fake_core.h"

void __sanitizer_print_stack_trace(void);

enum kind { K_ALLOC, K_OPENSSL, K_FILE, K_SOCKET, K_THREAD, K_TLS, K_VERBS, K_CM, K_QUEUE, KINDS };
static const char *const names[KINDS] = { "alloc", "openssl", "file", "socket", "thread", "tls",
					  "verbs", "cm", "queue" };
static atomic_uint calls[KINDS];
static bool counts;
static enum kind wanted = KINDS;
static unsigned wanted_k;

/* Calls by the place that makes them, which are so alike that the sweep fails only the first and the last. */
#define PLACES (1u << 16)
#define FRAMES 24
static struct place {
	uint64_t hash;
	enum kind kind;
	unsigned first, last;
} *places;
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool inside;

static int notes = -1;

static void note(const char *what, const char *name, unsigned n)
{
	const char *path = getenv("FAULT_NOTES");

	if (path && notes < 0)
		notes = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (path)
		dprintf(notes, "%s %s %u\n", what, name, n);
}

static void add_place(enum kind kind, unsigned k)
{
	void *frames[FRAMES];
	uint64_t hash = 0xcbf29ce484222325u ^ kind;
	struct place *p;

	inside = true;
	for (int i = 0, n = backtrace(frames, FRAMES); i < n; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * 0x100000001b3u;
	pthread_mutex_lock(&places_lock);
	for (p = &places[hash % PLACES]; p->hash && p->hash != hash; p = p + 1 == places + PLACES ? places : p + 1)
		;
	if (!p->hash)
		*p = (struct place){ hash, kind, k, k };
	p->last = k;
	pthread_mutex_unlock(&places_lock);
	inside = false;
}

static bool fails(enum kind kind, const char *function)
{
	unsigned k;

	if (!counts || inside)
		return false;
	k = atomic_fetch_add(&calls[kind], 1) + 1;
	if (places)
		add_place(kind, k);
	if (kind != wanted || k != wanted_k)
		return false;
	note("failed", function, k);
	if (getenv("FAULT_TRACE")) {
		fprintf(stderr, "fault: %s\n", function);
		__sanitizer_print_stack_trace();
	}
	return true;
}

#define WRAP(kind, type, name, params, args, result, err)	\
	type __real_##name params;				\
	type __wrap_##name params;				\
	type __wrap_##name params				\
	{							\
		if (!fails(kind, #name))			\
			return __real_##name args;		\
		errno = (err);					\
		return result;					\
	}

WRAP(K_ALLOC, void *, malloc, (size_t n), (n), NULL, ENOMEM)
WRAP(K_ALLOC, void *, calloc, (size_t n, size_t size), (n, size), NULL, ENOMEM)
WRAP(K_ALLOC, void *, realloc, (void *p, size_t n), (p, n), NULL, ENOMEM)
WRAP(K_ALLOC, char *, strdup, (const char *s), (s), NULL, ENOMEM)
WRAP(K_ALLOC, int, vasprintf, (char **out, const char *fmt, va_list ap), (out, fmt, ap), -1, ENOMEM)
WRAP(K_ALLOC, FILE *, open_memstream, (char **out, size_t *n), (out, n), NULL, ENOMEM)
WRAP(K_ALLOC, FILE *, fopencookie, (void *c, const char *mode, cookie_io_functions_t io), (c, mode, io), NULL, ENOMEM)
WRAP(K_ALLOC, void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t off),
     (at, n, prot, flags, fd, off), MAP_FAILED, ENOMEM)
WRAP(K_ALLOC, struct ev_loop *, ev_loop_new, (unsigned flags), (flags), NULL, EMFILE)
WRAP(K_FILE, FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
WRAP(K_FILE, FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL, ENOMEM)
WRAP(K_FILE, DIR *, opendir, (const char *path), (path), NULL, EMFILE)
WRAP(K_FILE, int, open, (const char *path, int flags, mode_t mode), (path, flags, mode), -1, EMFILE)
WRAP(K_FILE, int, openat, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode), -1, ENOSPC)
WRAP(K_FILE, int, fclose, (FILE *f), (f), (__real_fclose(f), errno = ENOSPC, EOF), 0)
WRAP(K_FILE, int, fflush, (FILE *f), (f), EOF, ENOSPC)
WRAP(K_FILE, int, ferror, (FILE *f), (f), 1, EIO)
WRAP(K_FILE, ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), -1, ENOSPC)
WRAP(K_FILE, ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), -1, EIO)
WRAP(K_FILE, int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
WRAP(K_FILE, int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), -1, ENOSPC)
WRAP(K_FILE, int, renameat, (int a, const char *old, int b, const char *new), (a, old, b, new), -1, EIO)
WRAP(K_FILE, int, ftruncate, (int fd, off_t n), (fd, n), -1, EIO)
WRAP(K_FILE, int, fstat, (int fd, struct stat *st), (fd, st), -1, EIO)
WRAP(K_FILE, int, fstatat, (int at, const char *path, struct stat *st, int flags), (at, path, st, flags), -1, EACCES)
WRAP(K_FILE, int, stat, (const char *path, struct stat *st), (path, st), -1, EACCES)
WRAP(K_FILE, int, fstatvfs, (int fd, struct statvfs *st), (fd, st), -1, EIO)
WRAP(K_FILE, char *, realpath, (const char *path, char *out), (path, out), NULL, EACCES)
WRAP(K_FILE, int, dup2, (int a, int b), (a, b), -1, EMFILE)
WRAP(K_FILE, int, pipe2, (int fds[2], int flags), (fds, flags), -1, EMFILE)
WRAP(K_FILE, int, execv, (const char *path, char *const argv[]), (path, argv), -1, EACCES)
WRAP(K_THREAD, pid_t, fork, (void), (), -1, EAGAIN)
WRAP(K_SOCKET, int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
WRAP(K_SOCKET, int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1, EADDRINUSE)
WRAP(K_SOCKET, int, listen, (int fd, int n), (fd, n), -1, EADDRINUSE)
WRAP(K_SOCKET, int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags), -1, EMFILE)
WRAP(K_SOCKET, int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1, ECONNREFUSED)
WRAP(K_SOCKET, ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), -1, ECONNRESET)
WRAP(K_SOCKET, ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), -1, ECONNRESET)
WRAP(K_SOCKET, int, setsockopt, (int fd, int level, int name, const void *v, socklen_t n), (fd, level, name, v, n), -1,
     ENOBUFS)
WRAP(K_SOCKET, int, getsockopt, (int fd, int level, int name, void *v, socklen_t *n), (fd, level, name, v, n), -1,
     ENOBUFS)
WRAP(K_SOCKET, int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), -1, ENOBUFS)
WRAP(K_SOCKET, int, getpeername, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), -1, ENOTCONN)
WRAP(K_SOCKET, int, fcntl, (int fd, int command, long arg), (fd, command, arg), -1, EBADF)
WRAP(K_SOCKET, int, ioctl, (int fd, unsigned long command, void *arg), (fd, command, arg), -1, EINVAL)
WRAP(K_SOCKET, int, getaddrinfo,
     (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out),
     (host, port, hints, out), EAI_AGAIN, 0)
WRAP(K_THREAD, int, pthread_create, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg),
     (t, a, f, arg), EAGAIN, 0)
WRAP(K_THREAD, int, pthread_attr_init, (pthread_attr_t *a), (a), ENOMEM, 0)
WRAP(K_THREAD, int, pthread_mutex_init, (pthread_mutex_t *m, const pthread_mutexattr_t *a), (m, a), ENOMEM, 0)
WRAP(K_THREAD, int, pthread_cond_init, (pthread_cond_t *c, const pthread_condattr_t *a), (c, a), ENOMEM, 0)
WRAP(K_THREAD, int, timerfd_create, (int clock, int flags), (clock, flags), -1, EMFILE)
WRAP(K_THREAD, int, timerfd_settime, (int fd, int flags, const struct itimerspec *to, struct itimerspec *old),
     (fd, flags, to, old), -1, EINVAL)
WRAP(K_TLS, SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *m), (m), NULL, 0)
WRAP(K_TLS, SSL *, SSL_new, (SSL_CTX *c), (c), NULL, 0)
WRAP(K_TLS, long, SSL_CTX_ctrl, (SSL_CTX *c, int command, long n, void *p), (c, command, n, p), 0, 0)
WRAP(K_TLS, int, SSL_CTX_set_ciphersuites, (SSL_CTX *c, const char *list), (c, list), 0, 0)
WRAP(K_TLS, int, SSL_CTX_set_alpn_protos, (SSL_CTX *c, const unsigned char *p, unsigned n), (c, p, n), 1, 0)
WRAP(K_TLS, int, SSL_CTX_set_ex_data, (SSL_CTX *c, int i, void *p), (c, i, p), 0, 0)
WRAP(K_TLS, int, SSL_CTX_set_session_id_context, (SSL_CTX *c, const unsigned char *p, unsigned n), (c, p, n), 0, 0)
WRAP(K_TLS, int, SSL_CTX_use_certificate, (SSL_CTX *c, X509 *x), (c, x), 0, 0)
WRAP(K_TLS, int, SSL_CTX_use_PrivateKey, (SSL_CTX *c, EVP_PKEY *k), (c, k), 0, 0)
WRAP(K_TLS, int, SSL_CTX_check_private_key, (const SSL_CTX *c), (c), 0, 0)
WRAP(K_TLS, int, SSL_set_ex_data, (SSL *s, int i, void *p), (s, i, p), 0, 0)
WRAP(K_TLS, int, SSL_set1_host, (SSL *s, const char *host), (s, host), 0, 0)
WRAP(K_TLS, int, SSL_set_session, (SSL *s, SSL_SESSION *x), (s, x), 0, 0)
WRAP(K_TLS, int, SSL_new_session_ticket, (SSL *s), (s), 0, 0)
WRAP(K_TLS, SSL_SESSION *, SSL_SESSION_dup, (const SSL_SESSION *x), (x), NULL, 0)
WRAP(K_TLS, int, SSL_export_keying_material,
     (SSL *s, unsigned char *out, size_t n, const char *label, size_t nl, const unsigned char *c, size_t nc, int use),
     (s, out, n, label, nl, c, nc, use), 0, 0)
WRAP(K_TLS, int, X509_VERIFY_PARAM_set1_ip_asc, (X509_VERIFY_PARAM *p, const char *ip), (p, ip), 0, 0)
WRAP(K_TLS, int, X509_STORE_add_cert, (X509_STORE *s, X509 *x), (s, x), 0, 0)
WRAP(K_TLS, BIO *, BIO_new, (const BIO_METHOD *m), (m), NULL, 0)
WRAP(K_TLS, BIO *, BIO_new_mem_buf, (const void *p, int n), (p, n), NULL, 0)
WRAP(K_TLS, BIO_METHOD *, BIO_meth_new, (int type, const char *name), (type, name), NULL, 0)
WRAP(K_TLS, int, RAND_bytes, (unsigned char *p, int n), (p, n), 0, 0)
WRAP(K_TLS, EVP_MAC *, EVP_MAC_fetch, (OSSL_LIB_CTX *l, const char *name, const char *query), (l, name, query), NULL, 0)
WRAP(K_TLS, EVP_MAC_CTX *, EVP_MAC_CTX_new, (EVP_MAC *m), (m), NULL, 0)
WRAP(K_TLS, int, EVP_MAC_CTX_set_params, (EVP_MAC_CTX *c, const OSSL_PARAM *p), (c, p), 0, 0)
WRAP(K_TLS, int, EVP_MAC_init, (EVP_MAC_CTX *c, const unsigned char *k, size_t n, const OSSL_PARAM *p),
     (c, k, n, p), 0, 0)
WRAP(K_TLS, int, EVP_MAC_update, (EVP_MAC_CTX *c, const unsigned char *p, size_t n), (c, p, n), 0, 0)
WRAP(K_TLS, int, EVP_MAC_final, (EVP_MAC_CTX *c, unsigned char *out, size_t *n, size_t room), (c, out, n, room), 0, 0)
WRAP(K_TLS, EVP_CIPHER *, EVP_CIPHER_fetch, (OSSL_LIB_CTX *l, const char *name, const char *query), (l, name, query),
     NULL, 0)
WRAP(K_TLS, EVP_CIPHER_CTX *, EVP_CIPHER_CTX_new, (void), (), NULL, 0)
WRAP(K_TLS, int, EVP_EncryptInit_ex,
     (EVP_CIPHER_CTX *c, const EVP_CIPHER *e, ENGINE *n, const unsigned char *k, const unsigned char *iv),
     (c, e, n, k, iv), 0, 0)
WRAP(K_TLS, X509 *, PEM_read_bio_X509, (BIO *b, X509 **x, pem_password_cb *f, void *p), (b, x, f, p), NULL, 0)
WRAP(K_TLS, X509 *, PEM_read_bio_X509_AUX, (BIO *b, X509 **x, pem_password_cb *f, void *p), (b, x, f, p), NULL, 0)
WRAP(K_TLS, EVP_PKEY *, PEM_read_bio_PrivateKey, (BIO *b, EVP_PKEY **x, pem_password_cb *f, void *p), (b, x, f, p),
     NULL, 0)

static void *openssl_malloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return fails(K_OPENSSL, "OpenSSL's malloc") ? NULL : __real_malloc(n);
}

static void *openssl_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	if (fails(K_OPENSSL, "OpenSSL's realloc"))
		return NULL;
	if (p && !n) {
		free(p);
		return NULL;
	}
	return __real_realloc(p, n);
}

static void openssl_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	free(p);
}

static int device_fault(const char *name)
{
	bool is_queue = strstr(name, "poll") || strstr(name, "post") || strstr(name, "event") || strstr(name, "notify");

	if (!fails(is_queue ? K_QUEUE : name[0] == 'r' ? K_CM : K_VERBS, name))
		return 0;
	return getenv("FAULT_ERRNO") ? atoi(getenv("FAULT_ERRNO")) : ENOMEM;
}

/* Counts open descriptors except the one for the notes. */
static unsigned descriptors(void)
{
	unsigned n = 0;
	DIR *d = __real_opendir("/proc/self/fd");

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - (notes >= 0);
}

static void at_end(void)
{
	counts = false;
	note("descriptors", "open", descriptors());
	for (int i = 0; i < KINDS; i++)
		note("calls", names[i], calls[i]);
	for (unsigned i = 0; places && i < PLACES; i++) {
		const struct place *p = &places[i];

		if (p->hash)
			note("first", names[p->kind], p->first);
		if (p->hash && p->last != p->first)
			note("last", names[p->kind], p->last);
	}
}

static void __attribute__((constructor)) begin(void)
{
	const char *fault = getenv("FAULT"), *program = getenv("FAULT_PROGRAM");
	unsigned char byte;

	for (int i = 0; fault && i < KINDS; i++)
		if (strncmp(fault, names[i], strlen(names[i])) == 0 && fault[strlen(names[i])] == ':') {
			wanted = (enum kind)i;
			wanted_k = (unsigned)atoi(fault + strlen(names[i]) + 1);
		}
	if (!program || strcmp(program, program_invocation_short_name) != 0)
		return;
	/* Initialise OpenSSL and its random numbers before calls fail, because that leaks when it fails. */
	CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free);
	OPENSSL_init_ssl(0, NULL);
	(void)!__real_RAND_bytes(&byte, 1);
	if (wanted == KINDS && getenv("FAULT_NOTES"))
		places = __real_mmap(NULL, PLACES * sizeof(*places), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fake_fault = device_fault;
	atexit(at_end);
	counts = true;
}
