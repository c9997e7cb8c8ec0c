/* SPDX-License-Identifier: BSD-2-Clause */
/* Derives what a run needs of its server: options for a server of our own, and a check of any server's description. */
#ifndef RAMPART_LOADGEN_NEEDS_H
#define RAMPART_LOADGEN_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/sizing/sizes.h"
#include "loadgen/config/config.h"

/* --session-timeout and --handshake-timeout of our own server with --phased: the longest that rdma_server accepts. */
#define NEEDS_PHASED_TIMEOUT_S 600
/* The largest value that rdma_server takes for --max-clients. */
#define NEEDS_CLIENTS_MAX 200000

#define NEEDS_ARGS_MAX 80
#define NEEDS_NUMBER_MAX 24

/* A command line; `v` ends with NULL and points to `numbers`, to the configuration's texts, and to the program's. */
struct needs_args {
	char *v[NEEDS_ARGS_MAX];
	int n, n_fixed;			/* the first n_fixed words are settings; the rest follow from: */
	struct sizes_server size;
	bool tls_resume;
	char numbers[NEEDS_ARGS_MAX][NEEDS_NUMBER_MAX];
};

/* rdma_server's default of --max-handshakes. */
#define NEEDS_HANDSHAKES_DEFAULT 512

/* The options from which the sizes of a server of our own follow. */
void needs_of_server(const struct loadgen_config *c, struct sizes_server *out);

/* rdma_server's command line, sized for the run. */
void needs_args(const struct loadgen_config *c, char *program, struct needs_args *a);

/* If one server can serve both runs, makes `a` its command line and returns NULL. It can if the settings that change
 * how a server works are equal, and if a server sized for both takes no more memory than the larger of the two, or than
 * a quarter of `memory_bytes`. Otherwise leaves `a` unchanged and returns the obstacle: an option of rdma_server, or
 * "memory". Both command lines come from needs_args. */
const char *needs_join(struct needs_args *a, const struct needs_args *b, uint64_t memory_bytes);

/* True if the server described by `info` (INFO) can serve the run, with `first` clients in the first step and `most` in
 * the largest. If not, `text` says what is missing. */
bool needs_are_met(const struct loadgen_config *c, const json_t *info, uint64_t first, uint64_t most, char *text,
		   size_t size);

#endif
