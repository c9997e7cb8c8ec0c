/* SPDX-License-Identifier: BSD-2-Clause */
/* See driver.h. */
#include "loadgen/doctor/base/driver.h"

#include <errno.h>
#include <linux/dcbnl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_BYTES 8192

int driver_pause(const char *netdev, struct driver_pause *out)
{
	struct ethtool_pauseparam p = { .cmd = ETHTOOL_GPAUSEPARAM };
	struct ifreq r = { .ifr_data = (char *)&p };
	int ret = 0, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", netdev);
	if (ioctl(fd, SIOCETHTOOL, &r))
		ret = -errno;
	close(fd);
	*out = (struct driver_pause) { .rx = p.rx_pause, .tx = p.tx_pause };
	return ret;
}

/* The attribute of a type in the `bytes` at `at`; NULL if there is none. */
static const struct rtattr *attribute(const struct rtattr *at, size_t bytes, unsigned type)
{
	for (; RTA_OK(at, bytes); at = RTA_NEXT(at, bytes))
		if ((at->rta_type & NLA_TYPE_MASK) == type)
			return at;
	return NULL;
}

int driver_pfc_of(const void *answer, size_t bytes, uint8_t *priorities)
{
	const struct nlmsghdr *h = answer;
	const struct nlmsgerr *e;
	const struct rtattr *a;
	struct ieee_pfc pfc;

	*priorities = 0;
	if (bytes < sizeof(*h) || h->nlmsg_len < sizeof(*h) || h->nlmsg_len > bytes)
		return -EBADMSG;
	if (h->nlmsg_type == NLMSG_ERROR) {
		e = NLMSG_DATA(h);
		return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*e)) && e->error < 0 ? e->error : -EBADMSG;
	}
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(struct dcbmsg)))
		return -EBADMSG;
	a = (const struct rtattr *)((const char *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(struct dcbmsg)));
	a = attribute(a, h->nlmsg_len - NLMSG_LENGTH(sizeof(struct dcbmsg)), DCB_ATTR_IEEE);
	if (a)
		a = attribute(RTA_DATA(a), RTA_PAYLOAD(a), DCB_ATTR_IEEE_PFC);
	if (!a)
		return -EOPNOTSUPP;
	if (RTA_PAYLOAD(a) < sizeof(pfc))
		return -EBADMSG;
	memcpy(&pfc, RTA_DATA(a), sizeof(pfc));
	*priorities = pfc.pfc_en;
	return 0;
}

static int ask(int fd, const char *netdev)
{
	struct {
		struct nlmsghdr h;
		struct dcbmsg dcb;
		struct rtattr name;
		char text[IFNAMSIZ];
	} q = {
		.h = { .nlmsg_len = sizeof(q), .nlmsg_type = RTM_GETDCB, .nlmsg_flags = NLM_F_REQUEST },
		.dcb = { .dcb_family = AF_UNSPEC, .cmd = DCB_CMD_IEEE_GET },
		.name = { .rta_len = RTA_LENGTH(IFNAMSIZ), .rta_type = DCB_ATTR_IFNAME },
	};

	snprintf(q.text, sizeof(q.text), "%s", netdev);
	return send(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q) ? 0 : -errno;
}

int driver_pfc(const char *netdev, uint8_t *priorities)
{
	alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	const struct timeval patience = { .tv_sec = 1 };
	int ret, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n;

	*priorities = 0;
	if (fd < 0)
		return -errno;
	ret = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ? -errno : ask(fd, netdev);
	if (!ret) {
		n = recv(fd, answer, sizeof(answer), 0);
		ret = n < 0 ? -errno : driver_pfc_of(answer, (size_t)n, priorities);
	}
	close(fd);
	return ret;
}
