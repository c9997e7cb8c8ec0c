/* SPDX-License-Identifier: BSD-2-Clause */
/* `performance_test report`: its command line. Owning thread: main. */
#ifndef RAMPART_LOADGEN_REPORT_COMMAND_H
#define RAMPART_LOADGEN_REPORT_COMMAND_H

#include "common/base/opts.h"

extern const struct opts_spec report_command_options;

/* argv[0] is "report". Returns an exit status: 0, 1 a regression against a baseline, 2 usage, 3 no report. */
int report_command(int argc, char **argv);

#endif
