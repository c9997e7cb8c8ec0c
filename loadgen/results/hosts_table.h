/* SPDX-License-Identifier: BSD-2-Clause */
/* The load hosts of a run on several, on the terminal. Pure. */
#ifndef RAMPART_LOADGEN_HOSTS_TABLE_H
#define RAMPART_LOADGEN_HOSTS_TABLE_H

#include <stdio.h>

#include <jansson.h>

/* A row for each host of `hosts` of run.json, with its figures in the last step it took part in, and a line for each that was
 * lost. Nothing for a run of one host. */
void hosts_table_print(const json_t *run, FILE *out);

#endif
