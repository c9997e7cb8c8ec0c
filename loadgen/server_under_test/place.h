/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses at which workers reach a server. */
#ifndef RAMPART_LOADGEN_SUT_PLACE_H
#define RAMPART_LOADGEN_SUT_PLACE_H

#include "common/base/addr.h"
#include "common/base/rails.h"

struct sut_place {
	struct addr addrs[RAILS_MAX];	/* addresses of each rail */
	const char *names[RAILS_MAX];	/* names that the certificate must have there */
};

#endif
