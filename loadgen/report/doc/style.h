/* SPDX-License-Identifier: BSD-2-Clause */
/* The CSS of a page and of its charts, with a light and a dark palette. */
#ifndef RAMPART_LOADGEN_REPORT_STYLE_H
#define RAMPART_LOADGEN_REPORT_STYLE_H

#include <stdio.h>

/* Colours are variables: --page, --text, --c0 to --c7 for a chart's series, ... */
#define STYLE_LIGHT \
	"--page:#fff;--panel:#f6f7f9;--text:#1b1f24;--dim:#59636e;--rule:#d5dae0;--link:#0a58b8;" \
	"--good:#17703a;--good-bg:#e9f6ee;--warn:#8a5a00;--warn-bg:#fdf4dd;--bad:#b3261e;--bad-bg:#fdecea;" \
	"--grid:#e2e6ea;--axis:#8a939d;--ghost:#7d8793;" \
	"--c0:#0b62b8;--c1:#c04d00;--c2:#00795c;--c3:#8a3fb0;--c4:#8a6a00;--c5:#0089a8;--c6:#b8307f;--c7:#4d5661;"
#define STYLE_DARK \
	"--page:#14171b;--panel:#1d2126;--text:#e6e9ed;--dim:#a3adb8;--rule:#363d46;--link:#7db8ff;" \
	"--good:#63cf8d;--good-bg:#15301f;--warn:#e8b94a;--warn-bg:#332812;--bad:#ff8a80;--bad-bg:#3c1a19;" \
	"--grid:#2a3038;--axis:#77818c;--ghost:#8b95a1;" \
	"--c0:#6ab0ff;--c1:#ff9a52;--c2:#43cfa3;--c3:#cf9df5;--c4:#e2c14f;--c5:#55cfe6;--c6:#f58abf;--c7:#b3bdc8;"
/* A chart is 640 units wide. On a narrow screen a unit is smaller, so letters are given more units. */
#define STYLE_CHART \
	".chart{display:block;width:100%;height:auto}" \
	".chart text{font:12px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Liberation Sans\",sans-serif;" \
	"font-variant-numeric:tabular-nums;fill:var(--text)}" \
	".chart .tick{fill:var(--dim)}" \
	".chart .bad{fill:var(--bad)}" \
	".chart .mark{paint-order:stroke;stroke:var(--page);stroke-width:4px;stroke-linejoin:round}" \
	"@media (max-width:640px){.chart text{font-size:16px}}@media (max-width:460px){.chart text{font-size:20px}}"

/* Writes the text of the page's <style>. The caller checks for errors with ferror(out). */
void style_write(FILE *out);

#endif
