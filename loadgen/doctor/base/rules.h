/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of a packet filter, as `nft list ruleset` and `iptables-save` print them, and what they do to a new packet from
 * another host to a port of this one. No I/O but reading the text, which may be anything.
 *
 * Only protocol, port, the interface lo and the connection's state are understood. Of a rule that looks at more, such
 * as an address, it is known only that it may apply. */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_RULES_H
#define RAMPART_LOADGEN_DOCTOR_BASE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "loadgen/doctor/base/rule.h"

enum rules_format { RULES_NFT, RULES_IPTABLES };

enum rules_verdict {
	RULES_ACCEPT,	/* no rule drops it, but perhaps one that looks at more */
	RULES_MAYBE,	/* dropped, unless a rule that looks at more accepts it */
	RULES_DROP,
};

#define RULES_PORTS_MAX 8

/* A chain of rules that the kernel begins with. */
struct rules_where {
	char family[16], table[CHAIN_NAME_MAX], chain[CHAIN_NAME_MAX];	/* nft's names; of iptables the family is "" */
};

struct rules;

/* Reads all rules, with regard to `n` ports. Errors:
 *   -ENOMEM
 *   -EFBIG    there are more than can be judged
 *   -ENODATA  iptables: there is no table in the text, or those of nft instead of its own */
int rules_read(FILE *in, enum rules_format format, const struct rules_port *ports, unsigned n, struct rules **out)
	__attribute__((warn_unused_result));
void rules_free(struct rules *r);

/* What becomes of packets to port number `port` of those that were named; unless accepted, where. `more`: rules that
 * look at more may drop it, too. */
enum rules_verdict rules_ask(const struct rules *r, unsigned port, struct rules_where *where, bool *more);

#endif
