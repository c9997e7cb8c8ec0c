/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of the release that is made from this tree. */
#ifndef RAMPART_COMMON_VERSION_H
#define RAMPART_COMMON_VERSION_H

#define RAMPART_VERSION "0.1.0"

#endif
