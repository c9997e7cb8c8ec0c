/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run needs of its server: as the options of a server of its own, and checked against the description of any.
 */
#ifndef RAMPART_LOADGEN_NEEDS_H
#define RAMPART_LOADGEN_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/sizing/sizes.h"
#include "loadgen/config/config.h"

/* --session-timeout and --handshake-timeout of a server of our own with --phased: rdma_server's longest. */
#define NEEDS_PHASED_TIMEOUT_S 600
/* The largest value that rdma_server takes for --max-clients. */
#define NEEDS_CLIENTS_MAX 200000

#define NEEDS_ARGS_MAX 80
#define NEEDS_NUMBER_MAX 24

/* A command line; `v` ends with NULL and points to `numbers`, to the configuration's texts, and to the program's. */
struct needs_args {
	char *v[NEEDS_ARGS_MAX];
	int n, n_fixed;			/* n_fixed: those that change how a server works; the others follow from: */
	struct sizes_server size;
	bool tls_resume;
	char numbers[NEEDS_ARGS_MAX][NEEDS_NUMBER_MAX];
};

/* rdma_server's defaults. */
#define NEEDS_HANDSHAKES_DEFAULT 512

/* The options of a server of our own that its sizes follow from. */
void needs_of_server(const struct loadgen_config *c, struct sizes_server *out);

/* rdma_server's command line, sized for the run. */
void needs_args(const struct loadgen_config *c, char *program, struct needs_args *a);

/* Makes `a` the command line of a server that serves both runs, and returns NULL, if the settings that change how a server
 * works are the same, and if one sized for both takes no more memory than the larger of the two, or a quarter of
 * `memory_bytes`. Else `a` stays as it is, and what keeps them apart is returned: an option of rdma_server, or "memory". Both
 * come from needs_args. */
const char *needs_join(struct needs_args *a, const struct needs_args *b, uint64_t memory_bytes);

/* Whether the server that described itself so (INFO) gives the run what it needs, with `first` clients in the first step and
 * at most `most`. If not, `text` says what is missing. */
bool needs_are_met(const struct loadgen_config *c, const json_t *info, uint64_t first, uint64_t most, char *text, size_t size);

#endif
