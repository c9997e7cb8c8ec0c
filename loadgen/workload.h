/* What the clients of a run do once they are connected. */
#ifndef RAMPART_LOADGEN_WORKLOAD_H
#define RAMPART_LOADGEN_WORKLOAD_H

enum workload {
	WORKLOAD_ECHO,		/* closed loop: a message goes out when a reply comes */
	WORKLOAD_CONNECT,	/* nothing: not even a first message; what a connection costs */
	WORKLOAD_IDLE,		/* nothing after the first reply; what a held client costs */
};
extern const char *const workload_names[];	/* in the order of the enum, NULL-terminated */

#endif
