/* SPDX-License-Identifier: BSD-2-Clause */
/* Forges RoCEv2 packets to another client's queue pair at the server, from --source or this machine's address. Needs
 * root, and a server on another machine, because packets to oneself do not arrive through an interface. */
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zlib.h>

#include "common/wire/be.h"
#include "common/wire/psn.h"
#include "tests/adversary/rogue.h"

#define ROCE_PORT 4791
#define BTH_BYTES 12u	/* base transport header */
#define RETH_BYTES 16u	/* RDMA extended transport header */
#define DATA_BYTES 64u
#define ICRC_BYTES 4u
#define PACKETS_PER_MS 10

/* Opcodes of reliable connections (InfiniBand Architecture, volume 1, 9.2.1). */
enum { RC_SEND_ONLY = 0x04, RC_WRITE_ONLY = 0x0a };

struct packet {
	struct iphdr ip;
	struct udphdr udp;
	uint8_t roce[BTH_BYTES + RETH_BYTES + DATA_BYTES + ICRC_BYTES];
};

/* Computes the invariant CRC (annex A17): fields that routers change count as ones, and 8 bytes of ones come first. */
static uint32_t icrc(const struct packet *p, size_t bytes)
{
	static const uint8_t ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
	struct packet masked = *p;

	masked.ip.tos = masked.ip.ttl = 255;
	masked.ip.check = masked.udp.check = 0xffff;
	masked.roce[4] = 255;
	return (uint32_t)crc32(crc32(0, ones, sizeof(ones)), (const uint8_t *)&masked, (uInt)bytes);
}

/* Makes a packet of zeros, which begin no valid message; a WRITE goes to `key`, address 0. Returns its size. */
static size_t forge(const struct rogue *r, int opcode, uint32_t qpn, uint32_t psn, uint32_t key, struct packet *p)
{
	const struct addr *from = r->source.len ? &r->source : &r->dev.addr;
	size_t at = BTH_BYTES + (opcode == RC_WRITE_ONLY ? RETH_BYTES : 0) + DATA_BYTES;
	size_t bytes = sizeof(p->ip) + sizeof(p->udp) + at + ICRC_BYTES;
	uint32_t sum;

	memset(p, 0, sizeof(*p));
	p->ip = (struct iphdr){ .version = 4, .ihl = 5, .tot_len = htons((uint16_t)bytes), .id = htons(1),
				.frag_off = htons(IP_DF), .ttl = 64, .protocol = IPPROTO_UDP,
				.saddr = ((const struct sockaddr_in *)&from->ss)->sin_addr.s_addr,
				.daddr = ((const struct sockaddr_in *)&r->server.ss)->sin_addr.s_addr };
	p->udp.source = htons(50000);
	p->udp.dest = htons(ROCE_PORT);
	p->udp.len = htons((uint16_t)(bytes - sizeof(p->ip)));
	p->roce[0] = (uint8_t)opcode;
	be_put16(p->roce + 2, 0xffff);	/* the default partition */
	be_put32(p->roce + 4, qpn);
	be_put32(p->roce + 8, (psn & PSN_MASK) | 0x80000000);	/* requests an acknowledgement */
	if (opcode == RC_WRITE_ONLY) {
		be_put32(p->roce + BTH_BYTES + 8, key);
		be_put32(p->roce + BTH_BYTES + 12, DATA_BYTES);
	}
	sum = icrc(p, bytes - ICRC_BYTES);
	memcpy(p->roce + at, &sum, ICRC_BYTES);
	return bytes;
}

static uint32_t random_number(void)
{
	uint32_t number = 0;

	(void)!getrandom(&number, sizeof(number), 0);
	return number;
}

/* Sends `n` packets with this PSN, or with random PSNs if it is negative. WRITEs guess their key. */
static int send_packets(const struct rogue *r, int opcode, uint32_t qpn, int psn, int n)
{
	struct sockaddr_in to = *(const struct sockaddr_in *)&r->server.ss;
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), sent = 0;
	struct packet p;

	to.sin_port = 0;
	for (int i = 0; fd >= 0 && i < n; i++) {
		size_t bytes = forge(r, opcode, qpn, psn < 0 ? random_number() : (uint32_t)psn, random_number(), &p);

		sent += sendto(fd, &p, bytes, 0, (const struct sockaddr *)&to, sizeof(to)) == (ssize_t)bytes;
		if (i % PACKETS_PER_MS == 0)
			poll(NULL, 0, 1);
	}
	if (fd >= 0)
		close(fd);
	return sent == n ? answer("%d sent", n) : no_answer("%d of %d packets could be sent (root?)", sent, n);
}

/* ARG: QPN,COUNT. Sends packets with guessed PSNs. */
static int guess(struct rogue *r, const struct mode *m)
{
	unsigned qpn;
	int n;

	if (!r->arg || sscanf(r->arg, "%u,%d", &qpn, &n) != 2 || n < 1)
		return no_answer("QPN,COUNT is needed");
	return send_packets(r, m->variant, qpn, -1, n);
}

/* ARG: QPN,PSN. Sends one packet with the PSN that the queue pair expects. */
static int exact(struct rogue *r, const struct mode *m)
{
	unsigned qpn, psn;

	if (!r->arg || sscanf(r->arg, "%u,%u", &qpn, &psn) != 2 || psn > PSN_MASK)
		return no_answer("QPN,PSN is needed");
	return send_packets(r, m->variant, qpn, (int)psn, 1);
}

const struct mode packet_modes[] = {
	{ "packets-guess", .run = guess, .variant = RC_SEND_ONLY },
	{ "packets-guess-write", .run = guess, .variant = RC_WRITE_ONLY },
	{ "packets-exact", .run = exact, .variant = RC_SEND_ONLY },
	{ "packets-exact-write", .run = exact, .variant = RC_WRITE_ONLY },
	{ NULL },
};
