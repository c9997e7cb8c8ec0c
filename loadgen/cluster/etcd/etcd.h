/* SPDX-License-Identifier: BSD-2-Clause */
/* The etcd in which the hosts of a run meet: keys with values on this host's lease, changed by guarded transactions and watched in
 * the order of the changes.
 *
 * Keys are relative to the run that the URL names ("members/7f3a" is /rampart/RUN/members/7f3a in etcd), of [A-Za-z0-9._/-] and
 * at most ETCD_KEY_MAX bytes. Values are bytes of any kind, at most ETCD_VALUE_MAX. Each transaction that writes has a higher
 * revision than the one before; revisions are common to all keys.
 *
 * This host's lease is kept by a thread of its own, which depends on no loop. A host that cannot refresh it for its time, by
 * the host's own clock (CLOCK_BOOTTIME, so time when it was stopped or suspended counts), is out, before etcd says so to the
 * others. Every transaction is guarded by this host's lease too: none takes place once etcd has let the lease go.
 *
 * Connections that break are made again, with growing pauses of 1 s at most; neither a transaction nor a change is lost or
 * seen twice through that. Nothing is polled.
 *
 * Thread: all functions and callbacks on the main thread, in its loop. Callbacks never come from within a call of these functions
 * (but etcd_close), and may call all of them but etcd_close. */
#ifndef RAMPART_LOADGEN_CLUSTER_ETCD_H
#define RAMPART_LOADGEN_CLUSTER_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#define ETCD_KEY_MAX	255
#define ETCD_VALUE_MAX	(1024 * 1024)
#define ETCD_GUARDS_MAX	100	/* of a transaction; etcd takes 128 operations (--max-txn-ops) */

struct etcd;

struct etcd_config {		/* borrowed during etcd_open only */
	const char *url;	/* etcd_url.h */
	const char *ca, *cert, *key;	/* files of the TLS connection to etcd; NULL: none */
	uint64_t lease_ns;	/* 2 s at least; whole seconds, rounded up */
};

/* This host is out: `why` is a sentence (the lease is lost, etcd refuses the token, etcd answers nonsense). Before it every
 * transaction that waits has ended as ETCD_FAILED. No callback follows; etcd_close is still to be called. */
typedef void etcd_out_fn(void *arg, const char *why);

/* Begins to connect. Transactions and watches that are asked for meanwhile begin when etcd has answered, however long that takes.
 * Returns 0, or -errno with a line in `err`: a bad URL, a file of TLS that cannot be read, no memory. */
int etcd_open(const struct etcd_config *, struct ev_loop *, etcd_out_fn *on_out, void *arg, struct etcd **out, char *err,
	      size_t err_size) __attribute__((warn_unused_result));

/* Revokes the lease, so that etcd deletes this host's keys at once, waits `wait_ns` at most for that, and frees. What waits ends as
 * ETCD_FAILED. After on_out nothing is waited for. NULL-safe. */
void etcd_close(struct etcd *, uint64_t wait_ns);

/* Why etcd does not answer at the moment; NULL: it does. Borrowed until the loop runs again. */
const char *etcd_trouble(const struct etcd *);

/* ---- Transactions */

struct etcd_guard {
	const char *key;
	int64_t created;	/* the transaction of this revision created it, and it was not deleted since; 0: it does not exist */
};

struct etcd_write {
	const char *key;
	const void *value;	/* what the key has from now on, until this host's lease ends; NULL: the key is deleted */
	size_t bytes;
	bool below;		/* deletes every key that begins with `key` */
};

enum etcd_status {
	ETCD_DONE,		/* every guard held and the write took place */
	ETCD_REFUSED,		/* a guard did not hold; nothing was written */
	ETCD_FAILED,		/* etcd refused it (`why`), and it did not take place; or this host is out, and it may have */
};

typedef void etcd_done_fn(void *arg, enum etcd_status, const char *why);

/* Writes if all guards hold. Everything is copied. Transactions take place one after the other in the order of the calls, each of
 * them once, however often a connection breaks. `done` (may be NULL) is called once; its `why` is a sentence for ETCD_FAILED, else
 * NULL. Keys and sizes out of bounds are errors of the caller: -EINVAL; after on_out it is -ECANCELED; or -ENOMEM: then `done` is
 * not called. Else 0. */
int etcd_transact(struct etcd *, const struct etcd_guard *, size_t guards, const struct etcd_write *, etcd_done_fn *done, void *arg)
	__attribute__((warn_unused_result));

/* ---- Watches */

struct etcd_entry {		/* borrowed during the callback */
	const char *key;
	const void *value;	/* never NULL; `bytes` of them and a 0 behind, for texts */
	size_t bytes;
	int64_t created;	/* revision that created the key */
	int64_t written;	/* revision that wrote it last: this one */
};

struct etcd_watch_events {
	/* The key is there, with this value: found at the start (in the order of keys) or written since. */
	void (*on_entry)(void *arg, const struct etcd_entry *);
	/* The key is gone: deleted, or its lease is over. May be NULL. */
	void (*on_gone)(void *arg, const char *key);
	/* Everything that was there at the start has been delivered. Once. May be NULL. */
	void (*on_caught_up)(void *arg);
};

/* Watches the keys that begin with `prefix` until etcd_close: first what is there, then each change, once, in order. If etcd compacted
 * changes away while this host could not reach it, the difference is delivered instead: of keys that changed their last value, of
 * keys that do not exist any more on_gone. The order between two watches is not defined. `events` is borrowed. 0, -EINVAL (the
 * prefix) or -ENOMEM. */
int etcd_watch(struct etcd *, const char *prefix, const struct etcd_watch_events *events, void *arg)
	__attribute__((warn_unused_result));

#endif
