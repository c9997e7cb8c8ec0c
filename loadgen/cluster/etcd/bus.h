/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run on several hosts wants of a store that all of them reach: keys with values on a lease, changed by guarded
 * transactions and watched in the order of the changes. The one implementation is etcd (bus.c and etcd_*.c).
 *
 * Keys are relative to the run that the URL names ("members/7f3a": /rampart/RUN/members/7f3a in etcd), of [A-Za-z0-9._/-] and
 * at most BUS_KEY_MAX bytes. Values are bytes of any kind, at most BUS_VALUE_MAX. A revision is etcd's: each transaction that
 * writes has a higher one, common to all keys; 0 is before all.
 *
 * This host's lease is kept by a thread of the bus, which depends on no loop. A host that cannot refresh it for its time, by
 * the host's own clock (CLOCK_BOOTTIME, so time when it was stopped or suspended counts), is out, before etcd says so to the
 * others. Every transaction is guarded by this host's lease too: none takes place once etcd has let the lease go.
 *
 * Connections that break are made again, with growing pauses of 1 s at most; neither a transaction nor a change is lost or
 * seen twice through that. Nothing is polled.
 *
 * Thread: all functions and callbacks on the main thread, in its loop, but for bus_is_out. Callbacks never come from within a
 * call of these functions (but bus_close), and may call all of them but bus_close. */
#ifndef RAMPART_LOADGEN_CLUSTER_BUS_H
#define RAMPART_LOADGEN_CLUSTER_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>

#define BUS_KEY_MAX	255
#define BUS_VALUE_MAX	(1024 * 1024)
#define BUS_GUARDS_MAX	100	/* of a transaction; etcd takes 128 operations (--max-txn-ops) */
#define BUS_WRITES_MAX	100

struct bus;
struct bus_watch;

struct bus_config {		/* borrowed during bus_open only */
	const char *url;	/* bus_url.h */
	const char *ca, *cert, *key;	/* files of the TLS connection to etcd; NULL: none */
	uint64_t lease_ns;	/* 2 s at least; whole seconds, rounded up */
};

struct bus_events {
	/* The lease is there: transactions and watches that were asked for meanwhile begin. */
	void (*on_ready)(void *arg);
	/* This host is out: `why` is a sentence (the lease is lost, etcd refuses the token, etcd answers nonsense). Before
	 * it every transaction that waits has ended as BUS_FAILED. The last event; bus_close is still to be called. */
	void (*on_out)(void *arg, const char *why);
};

/* Begins to connect; on_ready follows when etcd answers, however long that takes. Returns 0, or -errno with a line in `err`:
 * a bad URL, a file of TLS that cannot be read, no memory. */
int bus_open(const struct bus_config *, struct ev_loop *, const struct bus_events *, void *arg, struct bus **out,
	     char *err, size_t err_size) __attribute__((warn_unused_result));

/* Revokes the lease, so that etcd deletes this host's leased keys at once, waits `wait_ns` at most for that, and frees. What
 * waits ends as BUS_FAILED. After on_out nothing is waited for. NULL-safe. */
void bus_close(struct bus *, uint64_t wait_ns);

/* True from the moment when this host's lease is over, by its own clock or by etcd's word: at once after a SIGCONT, before
 * on_out. False until the lease is there. Any thread; one clock_gettime. */
bool bus_is_out(const struct bus *);

/* Why etcd does not answer at the moment; NULL: it does. Borrowed until the loop runs again. */
const char *bus_trouble(const struct bus *);

/* ---- Transactions */

enum bus_guard_kind {
	BUS_ABSENT,		/* the key does not exist */
	BUS_CREATED,		/* it exists since `revision`: it was created by that transaction and not deleted since */
	BUS_WRITTEN,		/* it was written last by the transaction of `revision` */
	BUS_NONE_SINCE,		/* no key that begins with `key` and exists was written after `revision` */
};

struct bus_guard {
	enum bus_guard_kind kind;
	const char *key;
	int64_t revision;
};

enum bus_write_kind {
	BUS_PUT_LEASED,		/* the key dies with this host's lease */
	BUS_PUT,		/* it stays until it is deleted */
	BUS_DELETE,		/* also if it does not exist */
	BUS_DELETE_BELOW,	/* every key that begins with `key` */
};

struct bus_write {
	enum bus_write_kind kind;
	const char *key;
	const void *value;	/* of a put */
	size_t bytes;
};

enum bus_status {
	BUS_DONE,		/* every guard held and every write took place */
	BUS_REFUSED,		/* a guard did not hold; nothing was written */
	BUS_FAILED,		/* etcd refused it (`why`), and it did not take place; or this host is out, and it may have */
};

struct bus_result {
	enum bus_status status;
	int64_t revision;	/* BUS_DONE: of the transaction, which the keys that it wrote have */
	const char *why;	/* BUS_FAILED: a sentence, borrowed; else NULL */
};

typedef void bus_done_fn(void *arg, const struct bus_result *);

/* Writes if all guards hold. No two writes of a transaction may touch one key. Everything is copied. Transactions take place in
 * the order of the calls, each of them once, however often a connection breaks; many are under way at once. `done` (may be
 * NULL) is called once, in that order too. Keys and sizes out of bounds are errors of the caller: -EINVAL; after
 * on_out it is -ECANCELED; or -ENOMEM: then `done` is not called. Else 0. */
int bus_transact(struct bus *, const struct bus_guard *, size_t guards, const struct bus_write *, size_t writes,
		 bus_done_fn *done, void *arg) __attribute__((warn_unused_result));

/* ---- Watches */

struct bus_entry {		/* borrowed during the callback */
	const char *key;
	const void *value;	/* never NULL; `bytes` of them and a 0 behind, for texts */
	size_t bytes;
	int64_t created;	/* revision that created the key */
	int64_t written;	/* revision that wrote it last: this one */
};

struct bus_watch_events {
	/* The key is there, with this value: found at the start (in the order of keys) or written since. */
	void (*on_entry)(void *arg, const struct bus_entry *);
	/* The key is gone: deleted, or its lease is over. */
	void (*on_gone)(void *arg, const char *key, int64_t revision);
	/* Everything that was there at the start has been delivered, as of `revision`. Once. May be NULL. */
	void (*on_caught_up)(void *arg, int64_t revision);
};

/* Watches the keys that begin with `prefix`: first what is there, then each change, once, in order. If etcd compacted changes away
 * while this host could not reach it, the difference is delivered instead: of keys that changed their last value, of keys
 * that do not exist any more on_gone. The order between two watches is not defined: compare revisions. `events` is borrowed for
 * the watch's life. 0, -EINVAL (the prefix) or -ENOMEM. */
int bus_watch_start(struct bus *, const char *prefix, const struct bus_watch_events *, void *arg, struct bus_watch **out)
	__attribute__((warn_unused_result));

/* No callback follows. NULL-safe; bus_close does it for watches that are left. */
void bus_watch_stop(struct bus_watch *);

#endif
