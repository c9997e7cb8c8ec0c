/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of TLS contexts. See tls_files.h. */
#include "common/tls/tls_files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

#define FIRST_BYTES 8192

const char *const tls_file_names[] = {
	[TLS_FILE_CA] = "CA certificate",
	[TLS_FILE_CERT] = "certificate",
	[TLS_FILE_KEY] = "private key",
	[TLS_FILE_CRL] = "revocation list",
};
static_assert(sizeof(tls_file_names) / sizeof(tls_file_names[0]) == TLS_FILE_N, "a name per file");

/* Doubles the room, and wipes the old memory because it may hold a key. */
static int grow(uint8_t **pem, size_t *room, size_t used)
{
	size_t more = *room ? 2 * *room : FIRST_BYTES;
	uint8_t *p = OPENSSL_malloc(more);

	if (!p)
		return -ENOMEM;
	if (used)
		memcpy(p, *pem, used);
	OPENSSL_clear_free(*pem, *room);
	*pem = p;
	*room = more;
	return 0;
}

static int read_all(int fd, uint8_t **pem, size_t *bytes)
{
	size_t room = 0, used = 0;
	ssize_t n = 1;
	int ret = 0;

	*pem = NULL;
	while (!ret && n != 0) {
		if (used == room)
			ret = room >= TLS_FILE_BYTES_MAX ? -EFBIG : grow(pem, &room, used);
		if (ret)
			break;
		n = read(fd, *pem + used, room - used);
		if (n > 0)
			used += (size_t)n;
		else if (n < 0 && errno != EINTR)
			ret = -errno;
	}
	*bytes = used;
	if (ret) {
		OPENSSL_clear_free(*pem, room);
		*pem = NULL;
	}
	return ret;
}

static int read_file(const char *path, uint8_t **pem, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = read_all(fd, pem, bytes);
	close(fd);
	return ret;
}

static void say_file_error(int ret, enum tls_file which, const char *path, char *err, size_t size)
{
	const char *what = tls_file_names[which];

	if (ret == -ENOENT && which != TLS_FILE_CRL)
		snprintf(err, size, "%s %s does not exist; make development certificates with `make certs` or name "
			 "another file", what, path);
	else if (ret == -ENOENT)
		snprintf(err, size, "%s %s does not exist; name another file", what, path);
	else if (ret == -EACCES)
		snprintf(err, size, "%s %s may not be read by this user; change its owner or mode", what, path);
	else
		snprintf(err, size, "%s %s cannot be read: %s", what, path, strerror(-ret));
}

int tls_files_read(struct tls_files *f, char *err, size_t err_size)
{
	for (enum tls_file i = 0; i < TLS_FILE_N; i++) {
		int ret = f->path[i] ? read_file(f->path[i], &f->pem[i], &f->bytes[i]) : 0;

		if (ret) {
			say_file_error(ret, i, f->path[i], err, err_size);
			tls_files_wipe(f);
			return ret;
		}
	}
	return 0;
}

void tls_files_wipe(struct tls_files *f)
{
	for (enum tls_file i = 0; i < TLS_FILE_N; i++) {
		OPENSSL_clear_free(f->pem[i], f->bytes[i]);
		f->pem[i] = NULL;
		f->bytes[i] = 0;
	}
}
