/* What a run needs of its server: as the options of a server of its own, and checked against the description of any.
 */
#ifndef RAMPART_LOADGEN_NEEDS_H
#define RAMPART_LOADGEN_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "loadgen/config/config.h"

/* --session-timeout and --handshake-timeout of a server of our own with --phased: rdma_server's longest. */
#define NEEDS_PHASED_TIMEOUT_S 600
/* The largest value that rdma_server takes for --max-clients. */
#define NEEDS_CLIENTS_MAX 200000

#define NEEDS_ARGS_MAX 64
#define NEEDS_NUMBER_MAX 24

/* A command line; `v` ends with NULL and points to `numbers`, to the configuration's texts, and to the program's. */
struct needs_args {
	char *v[NEEDS_ARGS_MAX];
	int n;
	char numbers[NEEDS_ARGS_MAX][NEEDS_NUMBER_MAX];
};

/* rdma_server's command line, sized for the run. */
void needs_args(const struct loadgen_config *c, char *program, struct needs_args *a);

/* Whether the server that described itself so (INFO) gives the run what it needs. If not, `text` says what is missing. */
bool needs_are_met(const struct loadgen_config *c, const json_t *info, char *text, size_t size);

#endif
