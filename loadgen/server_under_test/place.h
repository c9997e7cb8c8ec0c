/* SPDX-License-Identifier: BSD-2-Clause */
/* Where workers find a server. */
#ifndef RAMPART_LOADGEN_SUT_PLACE_H
#define RAMPART_LOADGEN_SUT_PLACE_H

#include "common/base/addr.h"
#include "common/base/rails.h"

struct sut_place {
	struct addr addrs[RAILS_MAX];	/* of each rail */
	const char *names[RAILS_MAX];	/* what the server's certificate must name there */
};

#endif
