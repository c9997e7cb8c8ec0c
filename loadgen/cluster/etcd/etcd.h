/* SPDX-License-Identifier: BSD-2-Clause */
/* Client of the etcd through which the hosts of a run communicate: keys bound to this host's lease, changed by guarded
 * transactions and watched in the order of the changes.
 *
 * Keys are relative to the run that the URL names ("members/7f3a" is /rampart/RUN/members/7f3a in etcd) and have at
 * most ETCD_KEY_MAX bytes of [A-Za-z0-9._/-]. Values are bytes of any kind, at most ETCD_VALUE_MAX. Each
 * transaction that writes has a higher revision than the one before; revisions are common to all keys.
 *
 * A thread of its own keeps this host's lease, so a blocked loop cannot lose it. A host that cannot refresh the lease
 * in time is out before etcd tells the others; it measures with CLOCK_BOOTTIME, so time while it was stopped or
 * suspended counts. Every transaction is also guarded by the lease: none takes place after etcd has dropped it.
 *
 * Broken connections are opened again, after growing pauses of 1 s at most. Reconnecting neither loses nor repeats a
 * transaction or a change. Nothing is polled.
 *
 * Owning thread: main, in its loop. No function except etcd_close calls back from within its call, and callbacks may
 * call every function except etcd_close. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#define ETCD_KEY_MAX	255
#define ETCD_VALUE_MAX	(1024 * 1024)
#define ETCD_GUARDS_MAX	100	/* guards of a transaction; etcd accepts 128 operations (--max-txn-ops) */

struct etcd;

struct etcd_config {		/* borrowed during etcd_open only */
	const char *url;	/* etcd_url.h */
	const char *ca, *cert, *key;	/* files for TLS to etcd; NULL: none */
	uint64_t lease_ns;	/* at least 2 s; rounded up to whole seconds */
};

/* This host is out of the run: `why` is a sentence (lease lost, token refused, invalid answers of etcd). Before this
 * call, all pending transactions end as ETCD_FAILED. No callback follows; the caller still has to call etcd_close. */
typedef void etcd_out_fn(void *arg, const char *why);

/* Starts to connect. Transactions and watches requested meanwhile start when etcd answers, however long that takes.
 * Returns 0, or -errno with a line in `err`: a bad URL, an unreadable TLS file, no memory. */
int etcd_open(const struct etcd_config *, struct ev_loop *, etcd_out_fn *on_out, void *arg, struct etcd **out,
	      char *err, size_t err_size) __attribute__((warn_unused_result));

/* Revokes the lease, so that etcd deletes this host's keys at once, waits at most `wait_ns` for that (not at all after
 * on_out), and frees the client. Pending transactions end as ETCD_FAILED. NULL-safe. */
void etcd_close(struct etcd *, uint64_t wait_ns);

/* Why etcd does not answer at the moment, or NULL if it does. Borrowed until the loop runs again. */
const char *etcd_trouble(const struct etcd *);

struct etcd_guard {
	const char *key;
	int64_t created;	/* the key exists and this revision created it; 0: the key does not exist */
};

struct etcd_write {
	const char *key;
	const void *value;	/* the new value, until this host's lease ends; NULL: deletes the key */
	size_t bytes;
	bool below;		/* deletes every key that begins with `key` */
};

enum etcd_status {
	ETCD_DONE,		/* every guard held and the write took place */
	ETCD_REFUSED,		/* a guard did not hold; nothing was written */
	ETCD_FAILED,		/* etcd refused the write (`why`); or this host is out, and it may have taken place */
};

typedef void etcd_done_fn(void *arg, enum etcd_status, const char *why);

/* Writes if all guards hold. Everything is copied. Transactions take place in the order of the calls, each exactly
 * once, however often the connection breaks. `done` (may be NULL) is called once; its `why` is a sentence for
 * ETCD_FAILED, otherwise NULL. Returns 0, or without a call of `done`: -EINVAL for keys or sizes out of bounds,
 * -ECANCELED after on_out, -ENOMEM. */
int etcd_transact(struct etcd *, const struct etcd_guard *, size_t guards, const struct etcd_write *,
		  etcd_done_fn *done, void *arg)
	__attribute__((warn_unused_result));

struct etcd_entry {		/* borrowed during the callback */
	const char *key;
	const void *value;	/* never NULL; `bytes` long, followed by a 0 byte for texts */
	size_t bytes;
	int64_t created;	/* revision that created the key */
	int64_t written;	/* revision that wrote this value */
};

struct etcd_watch_events {
	/* The key has this value: found at the start (in the order of keys) or written since. */
	void (*on_entry)(void *arg, const struct etcd_entry *);
	/* The key is gone: it was deleted or its lease ended. May be NULL. */
	void (*on_gone)(void *arg, const char *key);
	/* All keys that existed at the start have been delivered. Called once. May be NULL. */
	void (*on_caught_up)(void *arg);
};

/* Watches the keys that begin with `prefix` until etcd_close: first the existing ones, then each change once, in order.
 * If etcd compacted changes while this host could not reach it, the watch delivers the difference instead: the last
 * value of each changed key, and on_gone for each that no longer exists. The order between two watches is not defined.
 * `events` is borrowed. Returns 0, -EINVAL (the prefix) or -ENOMEM. */
int etcd_watch(struct etcd *, const char *prefix, const struct etcd_watch_events *events, void *arg)
	__attribute__((warn_unused_result));

#endif
