/* SPDX-License-Identifier: BSD-2-Clause */
/* An etcd that this host starts for one run (`--lead`). Only holders of the run's token can read or write it. The
 * process and the folder with its data last until the run ends. Owning thread: main, which waits here. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_PROC_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_PROC_H

#include <stddef.h>

struct etcd_proc;

struct etcd_proc_config {	/* strings are borrowed during etcd_proc_start only */
	const char *host;	/* how the other hosts reach this one: a name or an IP address, without brackets */
	const char *run;	/* the run's name in the URL */
	/* TLS: etcd serves with this certificate and key, and accepts only clients with one of this CA; NULL: no TLS.
	 * The certificate must name `host` and allow serverAuth and clientAuth: etcd's gateway is a client of etcd. */
	const char *ca, *cert, *key;
};

/* Starts `etcd` (found in PATH) on all addresses with a user `rampart` and a new password of 128 random bits, and waits
 * until it serves, at most 20 s. etcd gets SIGTERM when the calling thread dies, so call this on the main thread.
 * Returns 0, or -errno with a line in `err`, which ends with the last line that etcd printed, if any. */
int etcd_proc_start(const struct etcd_proc_config *, struct etcd_proc **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The URL of the run with its token: for the other hosts, and for this one. The latter has the loopback address, or
 * with TLS the same host, for which the certificate is valid. */
const char *etcd_proc_url(const struct etcd_proc *);
const char *etcd_proc_local_url(const struct etcd_proc *);
/* Ends etcd, with SIGKILL if it takes longer than 2 s, and removes its data. NULL-safe. */
void etcd_proc_free(struct etcd_proc *);

#endif
