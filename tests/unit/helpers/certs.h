/* Certificates made for one test run, in a folder of their own below $TMPDIR or /tmp. */
#ifndef RAMPART_TESTS_UNIT_CERTS_H
#define RAMPART_TESTS_UNIT_CERTS_H

#define CERTS_PATH_MAX 160

struct certs {
	char dir[CERTS_PATH_MAX - 32];
	char ca[CERTS_PATH_MAX];		/* signs the next two */
	char server_cert[CERTS_PATH_MAX],
		server_key[CERTS_PATH_MAX]; /* for 127.0.0.1 and localhost */
	char client_cert[CERTS_PATH_MAX], client_key[CERTS_PATH_MAX];
	char other_ca[CERTS_PATH_MAX];		/* signed none of them */
};

/* 0, or -1 when OpenSSL or the file system failed. */
int certs_make(struct certs *out);
void certs_remove(const struct certs *c);

#endif
