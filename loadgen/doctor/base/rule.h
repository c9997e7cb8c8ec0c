/* SPDX-License-Identifier: BSD-2-Clause */
/* One rule of a packet filter, read from the words of a line. See rules.h, whose part this is. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_RULE_H
#define RAMPART_LOADGEN_DOCTOR_BASE_RULE_H

#include <stdbool.h>

#define WORDS_MAX 256
#define CHAIN_NAME_MAX 64

struct rules_port {
	bool udp;
	unsigned port;
};

struct words {
	char *v[WORDS_MAX];
	unsigned n, at;
	bool cut;		/* there were more */
};

enum verdict { GOES_ON, ACCEPTS, DROPS, RETURNS, JUMPS, GOES_TO };

struct rule {
	int next;		/* of its chain */
	unsigned ports;		/* a bit for each that it may apply to */
	bool more;		/* it looks at more */
	enum verdict verdict;
	char target[CHAIN_NAME_MAX];	/* of JUMPS and GOES_TO */
};

/* Parts a line at its blanks, which it overwrites. */
void words_split(char *line, struct words *w);
/* "" behind the last. */
const char *words_next(struct words *w);

/* Reads what is left of the words. `r` begins with all ports, and without a verdict. */
void rule_read_nft(const struct rules_port *ports, unsigned n_ports, struct words *w, struct rule *r);
void rule_read_iptables(const struct rules_port *ports, unsigned n_ports, struct words *w, struct rule *r);

#endif
