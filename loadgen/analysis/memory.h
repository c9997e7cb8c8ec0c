/* How memory grows with the clients held, over the steps of a run. */
#ifndef RAMPART_LOADGEN_MEMORY_H
#define RAMPART_LOADGEN_MEMORY_H

#include <jansson.h>

/* Slopes in bytes per client, by least squares over the steps of run.json that held clients: resident and pinned
 * memory of the server, and the machine's kernel memory. null with fewer than two numbers of clients. */
json_t *memory_analysis(const json_t *steps);

#endif
