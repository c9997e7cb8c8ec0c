/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the kernel has a module, by /sys/module and modules.builtin (modules.builtin: kbuild, "Kbuild output files").
 */
#ifndef RAMPART_LOADGEN_DOCTOR_BASE_MODULE_H
#define RAMPART_LOADGEN_DOCTOR_BASE_MODULE_H

enum module_state {
	MODULE_LOADED,
	MODULE_BUILT_IN,
	MODULE_ABSENT,
	MODULE_UNKNOWN,	/* not loaded; the list of what is built in cannot be read */
};

/* `name` has no '-'. */
enum module_state module_state(const char *root, const char *name);

#endif
