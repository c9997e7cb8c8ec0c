/* SPDX-License-Identifier: BSD-2-Clause */
/* Renders a document in one of its forms. */
#ifndef RAMPART_TESTS_UNIT_DOC_RIG_H
#define RAMPART_TESTS_UNIT_DOC_RIG_H

#include "tests/unit/helpers/unit.h"

#include <stdio.h>

#include "loadgen/report/doc/doc.h"

enum doc_form { DOC_FORM_HTML, DOC_FORM_MARKDOWN, DOC_FORM_TEXT };

/* A document, titled "Title"; what is asserted on the way fails the test. */
struct doc *doc_rig_new(void);
/* With a block of every kind, and every tone. */
void doc_rig_fill(struct doc *d);

/* The caller's to free. */
char *doc_rig_written(const struct doc *d, enum doc_form form);
/* Writes, looks for each of the texts up to NULL, one behind the other, and fails with what was written. */
void doc_rig_expect(const struct doc *d, enum doc_form form, ...) __attribute__((sentinel));
void doc_rig_expect_not(const struct doc *d, enum doc_form form, const char *text);

#endif
