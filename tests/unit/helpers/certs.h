/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates made for one test run, in a folder of their own (scratch.h). */
#ifndef RAMPART_TESTS_UNIT_CERTS_H
#define RAMPART_TESTS_UNIT_CERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/files/scratch.h"

#define CERTS_PATH_MAX 160

struct certs_cas;

struct certs {
	char dir[SCRATCH_MAX];
	char ca[CERTS_PATH_MAX];		/* signs the next two */
	char server_cert[CERTS_PATH_MAX],
		server_key[CERTS_PATH_MAX]; /* for 127.0.0.1 and localhost */
	char client_cert[CERTS_PATH_MAX], client_key[CERTS_PATH_MAX];
	char other_ca[CERTS_PATH_MAX];		/* signed none of them */
	struct certs_cas *cas;			/* to sign more with */
};

/* 0, or -1 when OpenSSL or the file system failed. So it is with those below. */
int certs_make(struct certs *out);
void certs_remove(const struct certs *c);	/* with all files in the folder */

struct certs_pair {
	char cert[CERTS_PATH_MAX], key[CERTS_PATH_MAX];
};

/* Makes dir/NAME.pem and .key, or replaces them. */
struct certs_wish {
	const char *name;
	const char *san;	/* as in openssl.cnf; NULL: none */
	int valid_s;		/* from now; it began a minute ago */
	bool by_other_ca;
	bool by_third_ca;	/* whose certificate follows in the file */
};
int certs_issue(const struct certs *c, const struct certs_wish *w, struct certs_pair *out);

/* Makes dir/third.pem, one more CA, or replaces it. */
struct certs_ca_wish {
	const char *name;
	const char *usage;	/* its key usage, as in openssl.cnf; NULL: any */
	bool below;		/* `ca` has signed it; else it is a root */
};
int certs_make_third(const struct certs *c, const struct certs_ca_wish *w, char path[CERTS_PATH_MAX]);

/* Makes dir/crl.pem, or replaces it: a list of the CA that has the certificate in the file `revoked`, or nothing
 * (NULL), with its next update in `valid_s`. */
int certs_list(const struct certs *c, const char *revoked, int valid_s, char path[CERTS_PATH_MAX]);

struct certs_list_wish {
	const char *revoked;
	int valid_s;
	uint32_t strangers;	/* this many entries more, of certificates that nobody has */
	const char *only;	/* for which certificates: "onlyuser:TRUE", "onlyCA:TRUE"; NULL: for all */
	bool of_third;		/* of the third CA, not the first */
	bool forged;		/* signed by the other CA in its name */
	bool early;		/* begins in 100 s */
	bool delta;		/* what has changed since another */
	bool append;		/* to dir/crl.pem */
};
int certs_list_as(const struct certs *c, const struct certs_list_wish *w, char path[CERTS_PATH_MAX]);

/* Spoils a file: "not PEM". */
int certs_spoil(const char *path);

#endif
