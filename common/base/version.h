/* SPDX-License-Identifier: BSD-2-Clause */
/* Release number of this source tree. */
#ifndef RAMPART_COMMON_VERSION_H
#define RAMPART_COMMON_VERSION_H

#define RAMPART_VERSION "0.1.0"

#endif
