/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of a run's other load hosts, as they come to the leader: hosts/RANK-NAME/ in its results folder.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_HOST_FILES_H
#define RAMPART_LOADGEN_HOST_FILES_H

#include <stdint.h>

#include <jansson.h>

struct results;

/* The files that this host's run has written: {folder, files: {NAME: TEXT}, left: [NAME]}. `left` are those that
 * stay here, because the small files come first and `files` has at most HOST_FILES_MAX bytes. NULL when out of
 * memory. */
#define HOST_FILES_MAX (8 << 20)
json_t *host_files_read(const struct results *r);

/* Writes what the host of this rank handed in, which may be anything: files with the names that a run gives its own,
 * and as much as host_files_read hands in. What else there is, is left out, with one line. What cannot be written is
 * lost (results_lost). Returns how many files were written. */
uint32_t host_files_write(struct results *r, uint32_t rank, const char *host, const json_t *files);

#endif
