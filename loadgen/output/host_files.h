/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of a run's other load hosts, which send them to the leader; it keeps them in hosts/RANK-NAME/ of its results
 * folder. Owning thread: main. */
#ifndef RAMPART_LOADGEN_HOST_FILES_H
#define RAMPART_LOADGEN_HOST_FILES_H

#include <stdint.h>

#include <jansson.h>

struct results;

/* The files that this host's run has written: {folder, files: {NAME: TEXT}, left: [NAME]}. Small files come first, and
 * those that do not fit into the HOST_FILES_MAX bytes of `files` are only named, in `left`. NULL when out of
 * memory. */
#define HOST_FILES_MAX (8 << 20)
json_t *host_files_read(const struct results *r);

/* Writes the files that the host of this rank handed in, which are not trusted: only names that a run gives its files
 * are accepted, and only as many bytes as host_files_read hands in. The rest is left out and logged in one line. A file
 * that cannot be written is lost (results_lost). Returns how many files were written. */
uint32_t host_files_write(struct results *r, uint32_t rank, const char *host, const json_t *files);

#endif
