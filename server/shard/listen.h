/* SPDX-License-Identifier: BSD-2-Clause */
/* A shard's listeners: the TLS socket that accepts clients, and the RDMA port that a GRANT sends them to.
 *
 * Every connection is accepted at once, because only accept(2) reveals its address. A socket without room waits in a
 * bounded list, which serves addresses with the fewest TLS connections first, so nobody gets ahead of an address that
 * has fewer. When the list is full, the address with the most entries in it loses its youngest entry.
 *
 * The thread that starts the server opens the listeners; from listen_start on the shard's thread owns them.
 */
#ifndef RAMPART_SERVER_LISTEN_H
#define RAMPART_SERVER_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <ev.h>

struct shard;
struct waiting;

TAILQ_HEAD(waiting_list, waiting);

/* The fields of a shard that listen.c alone uses, except when the shard starts and ends. */
struct listen_state {
	int fd;				/* the TLS socket; -1: closed */
	ev_io io;
	bool paused;			/* accepts nothing until not_before_ns: descriptors or memory are short */
	uint64_t not_before_ns;
	uint64_t crowd_log_ns;		/* earliest time of the next log line about an address that has too many */
	struct waiting *waiting;	/* slots for accepted sockets that wait for room */
	uint32_t slots_used;		/* the first ones of `waiting`, used at least once */
	struct waiting_list free;	/* free slots among them */
	uint32_t n_waiting;
	uint64_t cut_from_ns;		/* start of the unspent budget of may_cut */
	uint64_t look_not_before_ns;	/* earliest time to look again for a connection to evict */
};

/* Binds the shard's RDMA port and TLS socket. If the system is to choose the TLS port, the first shard of all decides
 * it. 0 or -errno, with a line in `err`. */
int listen_open(struct shard *s, char *err, size_t err_size) __attribute__((warn_unused_result));
/* Allocates the slots of waiting sockets; the caller frees the memory. NULL: out of memory. */
struct waiting *listen_make_waiting(struct shard *s);
/* Starts accepting. */
void listen_start(struct shard *s);
/* At the end of a turn: lets waiting sockets in if there is room or room can be made; resumes accepting if a pause is
 * over. */
void listen_resume(struct shard *s);
/* Time until listen_resume should be called, in ns from `now_ns`; UINT64_MAX: nothing waits for it. */
uint64_t listen_idle_ns(const struct shard *s, uint64_t now_ns);
/* Logs, at most once a second, that the shard cannot accept connections `where` ("over TCP") because descriptors or
 * memory are short (errno `err`), with what to do about it. */
void listen_log_shortage(struct shard *s, const char *where, int err);
/* Stops accepting TLS connections for good. May be called twice. */
void listen_close(struct shard *s);

#endif
