/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows the `need` of a comparison: whether the work needs RDMA. The file may be damaged or hostile. Adds nothing if
 * the comparison has none. */
#ifndef RAMPART_LOADGEN_REPORT_NEED_H
#define RAMPART_LOADGEN_REPORT_NEED_H

#include "loadgen/report/sections/page.h"

/* Adds the conclusion, and the table `name` with a row for each alternative. */
void need_brief(struct page *p, const char *name, const json_t *comparison);
/* The same in the chapter `id`, and a row for each number of clients that was tried. */
void need_show(struct page *p, const char *id, const json_t *comparison);

#endif
