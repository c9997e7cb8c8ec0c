/* Starting what a run needs: a server of our own, and the workers. For ramp.c. */
#ifndef RAMPART_LOADGEN_LAUNCH_H
#define RAMPART_LOADGEN_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

struct ramp;
struct server_proc_events;

/* --session-timeout and --handshake-timeout of a server of our own with --phased: rdma_server's longest. */
#define LAUNCH_PHASED_TIMEOUT_S 600

/* Starts rdma_server, sized for the run. 0 or -errno with a line in `err`. */
int launch_server(struct ramp *r, const struct server_proc_events *events, char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* What the server's certificate must name on a rail. */
const char *launch_verify_name(const struct ramp *r, uint32_t rail);
/* Resolves --server. 0 or -errno with a line in `err`. Blocks. */
int launch_find_server(struct ramp *r, char *err, size_t err_size) __attribute__((warn_unused_result));

/* Makes and starts the workers for r->server_addr. 0 or -errno with a line in `err`. */
int launch_workers(struct ramp *r, void (*on_progress)(void *arg), char *err, size_t err_size)
	__attribute__((warn_unused_result));

/* The last line our server wrote to its log. 0, or -ENODATA. */
int launch_read_server_error(struct ramp *r, char *text, size_t size)
	__attribute__((warn_unused_result));

#endif
