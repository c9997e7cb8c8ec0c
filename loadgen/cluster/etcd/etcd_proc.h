/* SPDX-License-Identifier: BSD-2-Clause */
/* An etcd of this machine that is started for one run (`--lead`): nobody without the run's token reads or writes it, its data
 * are in a folder of its own, and both end with the run. Owning thread: main, which waits in these functions. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_PROC_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_PROC_H

#include <stddef.h>

struct etcd_proc;

struct etcd_proc_config {	/* strings are borrowed during etcd_proc_start only */
	const char *host;	/* how the other hosts reach this one: a name or an IP address, without brackets */
	const char *run;	/* the run's name in the URL */
	const char *log;	/* etcd's output goes to this file */
	/* TLS: etcd serves with this certificate and key, and takes clients with a certificate of this CA only; NULL: no TLS.
	 * The certificate is for `host`, and good for serverAuth and clientAuth: etcd's gateway is a client of etcd. */
	const char *ca, *cert, *key;
};

/* Starts `etcd`, found by PATH, listening on all addresses, gives it a user `rampart` with a new password of 128 random bits, and
 * waits until it serves, 20 s at most. It gets SIGTERM when the calling thread dies: call it on the main thread. 0, or -errno
 * with a line in `err`. */
int etcd_proc_start(const struct etcd_proc_config *, struct etcd_proc **out, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The run's URL with its token, for the other hosts, and the same by the loopback address (with TLS: by the same
 * host, which the certificate is for) for this one. */
const char *etcd_proc_url(const struct etcd_proc *);
const char *etcd_proc_local_url(const struct etcd_proc *);
/* Ends it, within 2 s, by SIGKILL if need be, and removes its data. NULL-safe. */
void etcd_proc_free(struct etcd_proc *);

#endif
