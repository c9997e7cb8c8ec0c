/* The gauges among a shard's statistics: what it has at the moment. Owning thread: the shard's.
 */
#ifndef RAMPART_SERVER_GAUGES_H
#define RAMPART_SERVER_GAUGES_H

struct shard;

/* Makes the gauges those of now. */
void gauges_publish(struct shard *s);
/* The gauges of a shard that has nothing any more; what is counted since the start stays. */
void gauges_clear(struct shard *s);

#endif
