/* The gauges among a shard's statistics: numbers of what it has at the moment. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_GAUGES_H
#define RAMPART_SERVER_GAUGES_H

struct shard;

/* Sets the gauges. */
void gauges_publish(struct shard *s);
/* Sets the gauges to 0, for a shard that has released everything. Counters of events keep their values. */
void gauges_clear(struct shard *s);

#endif
