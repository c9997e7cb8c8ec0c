/* What is kept of a step that is over: its element of run.json, its files, and what follows from it for those to come.
 * Owning thread: main. */
#ifndef RAMPART_LOADGEN_RECORD_H
#define RAMPART_LOADGEN_RECORD_H

struct ramp;

/* Collects, judges and writes the running step, and ends it. */
void record_step(struct ramp *r);

#endif
