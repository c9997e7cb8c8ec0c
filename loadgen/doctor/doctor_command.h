/* SPDX-License-Identifier: BSD-2-Clause */
/* `performance_test doctor`: its command line. Owning thread: main. */
#ifndef RAMPART_LOADGEN_DOCTOR_COMMAND_H
#define RAMPART_LOADGEN_DOCTOR_COMMAND_H

/* argv[0] is "doctor". Returns the exit status: 0 nothing is wrong, 1 something is, 2 usage, 3 could not check. */
int doctor_command(int argc, char **argv);

#endif
