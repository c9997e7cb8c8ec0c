/* Messages of a workload: what they need, their numbers and payloads. Owning thread: the worker's. */
#ifndef RAMPART_LOADGEN_MESSAGE_H
#define RAMPART_LOADGEN_MESSAGE_H

struct loadgen_config;
struct workload_needs;

/* struct workload's needs, where operations are messages of the run's size. */
void message_needs(const struct loadgen_config *c, struct workload_needs *out);

#endif
