/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a TLS context, read into memory: certificate, private key, CAs, revocation lists. So several contexts
 * can be made from the same bytes, even while somebody replaces the files.
 *
 * This only reads; tls_ctx.c interprets the bytes. Blocking I/O: not for a data thread.
 */
#ifndef RAMPART_COMMON_TLS_FILES_H
#define RAMPART_COMMON_TLS_FILES_H

#include <stddef.h>
#include <stdint.h>

enum tls_file {
	TLS_FILE_CA,
	TLS_FILE_CERT,
	TLS_FILE_KEY,
	TLS_FILE_CRL,
	TLS_FILE_N,
};
/* Names of the files in messages: "CA certificate", ... */
extern const char *const tls_file_names[TLS_FILE_N];

/* Longer files are refused. A list of 500,000 revoked certificates takes half of this. */
#define TLS_FILE_BYTES_MAX (64u << 20)

struct tls_files {
	const char *path[TLS_FILE_N];	/* owned by the caller; NULL: no such file */
	uint8_t *pem[TLS_FILE_N];	/* NULL: not read */
	size_t bytes[TLS_FILE_N];
};

/* Reads every file that has a path. `f` must be zero except for the paths. Returns 0, or with a line in `err` that
 * names the file and what to do, and nothing kept:
 * -ENOENT, -EACCES	a file does not exist, or may not be read
 * -EFBIG	a file is longer than TLS_FILE_BYTES_MAX
 * -ENOMEM, or another -errno of open or read */
int tls_files_read(struct tls_files *f, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Overwrites and frees what was read; the paths stay. May be called twice. */
void tls_files_wipe(struct tls_files *f);

#endif
