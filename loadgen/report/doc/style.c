/* SPDX-License-Identifier: BSD-2-Clause */
/* The page's style sheet. See style.h. */
#include "loadgen/report/doc/style.h"

static const char colours[] =
	":root{color-scheme:light dark;" STYLE_LIGHT "}\n"
	"@media screen and (prefers-color-scheme:dark){:root{" STYLE_DARK "}}\n";

static const char frame[] =
	"*{box-sizing:border-box}\n"
	"html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-padding-top:1rem}\n"
	"body{margin:0 auto;max-width:76rem;padding:1.75rem clamp(.9rem,3vw,2.25rem) 4rem;"
	"background:var(--page);color:var(--text);"
	"font:15px/1.55 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Liberation Sans\",sans-serif;"
	"overflow-wrap:break-word}\n"
	"h1{font-size:clamp(1.3rem,4.5vw,1.6rem);line-height:1.2;margin:0;letter-spacing:-.01em}\n"
	"h2{font-size:1.2rem;line-height:1.3;margin:0 0 .75rem;padding-top:1.1rem;border-top:1px solid var(--rule)}\n"
	"h2 .no{color:var(--dim);font-weight:400;margin-right:.35em;font-variant-numeric:tabular-nums}\n"
	"h3{font-size:1rem;margin:1.6rem 0 .5rem}\n"
	"p,ul,pre,figure,details,.scroll{margin:.6rem 0}\n"
	"p,li{max-width:46rem}\n"
	"a{color:var(--link);text-underline-offset:.15em}\n"
	":focus-visible{outline:2px solid var(--link);outline-offset:2px}\n"
	"header{margin-bottom:1.25rem}\n"
	"header p{color:var(--dim);margin:.35rem 0 0;max-width:none}\n"
	"section{margin-top:2.25rem}\n"
	"nav{font-size:.9rem}\n"
	"nav ol{list-style-position:inside;columns:15rem;column-gap:1.5rem;margin:1.25rem 0 0;padding:.7rem 0;"
	"border-top:1px solid var(--rule)}\n"
	"nav li{padding:.1rem 0;break-inside:avoid}\n"
	"nav li::marker{color:var(--dim);font-variant-numeric:tabular-nums}\n"
	"nav a{color:inherit;text-decoration:none}nav a:hover{color:var(--link);text-decoration:underline}\n"
	/* On a phone the answers come first, and the contents last. */
	"@media (max-width:40rem){main{display:flex;flex-direction:column}.sections{min-width:0}nav{order:1}}\n"
	"@media (min-width:70rem){main{display:grid;grid-template-columns:13rem minmax(0,1fr);column-gap:2.5rem;"
	"grid-template-areas:\"intro intro\" \"nav sections\"}\n"
	".intro{grid-area:intro}nav{grid-area:nav}.sections{grid-area:sections}\n"
	"nav ol{position:sticky;top:1rem;columns:auto;margin-top:2.25rem;max-height:calc(100vh - 2rem);"
	"overflow:auto}nav li{padding:.2rem 0}}\n";

static const char blocks[] =
	".answers{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,17rem),1fr));gap:.9rem;"
	"margin:1rem 0}\n"
	".answer{background:var(--panel);border:1px solid var(--rule);border-top:4px solid var(--axis);"
	"border-radius:4px;"
	"padding:.9rem 1.1rem 1rem}\n"
	".answer p{margin:0}\n"
	".answer .question{color:var(--dim);font-size:.9rem}\n"
	".answer .value{font-size:1.75rem;line-height:1.2;font-weight:650;margin:.3rem 0 .4rem;letter-spacing:-.01em;"
	"font-variant-numeric:tabular-nums}\n"
	".answer .detail{font-size:.9rem}\n"
	".sign{font-weight:700}\n"
	".good .sign,.note.good strong{color:var(--good)}.warn .sign,.note.warn strong{color:var(--warn)}"
	".bad .sign,.note.bad strong{color:var(--bad)}\n"
	".answer.good{border-top-color:var(--good)}.answer.warn{border-top-color:var(--warn)}"
	".answer.bad{border-top-color:var(--bad)}\n"
	".note{border-left:4px solid var(--axis);background:var(--panel);padding:.5rem .9rem;"
	"border-radius:0 4px 4px 0}\n"
	".note.good{border-color:var(--good);background:var(--good-bg)}.note.warn{border-color:var(--warn);"
	"background:var(--warn-bg)}.note.bad{border-color:var(--bad);background:var(--bad-bg)}\n"
	".badges{display:flex;flex-wrap:wrap;gap:.45rem;padding:0;list-style:none}\n"
	".badges li{border:1px solid var(--rule);border-radius:4px;padding:.15rem .6rem;font-size:.9rem;"
	"background:var(--panel)}\n"
	".badges li.good{border-color:var(--good)}.badges li.warn{border-color:var(--warn)}"
	".badges li.bad{border-color:var(--bad)}\n"
	".badges span:not(.sign),.files span{color:var(--dim)}\n"
	"ul{padding-left:1.25rem}li{margin:.2rem 0}\n"
	"code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\"Liberation Mono\",monospace;"
	"font-size:.87em}\n"
	"pre{background:var(--panel);border:1px solid var(--rule);border-radius:4px;padding:.7rem .9rem;"
	"overflow-x:auto;"
	"line-height:1.45}pre code{font-size:inherit}\n";

static const char tables[] =
	".scroll{overflow-x:auto;max-width:100%}\n"
	"table{border-collapse:collapse;font-size:.9rem;line-height:1.4;font-variant-numeric:tabular-nums}\n"
	"caption{text-align:left;font-weight:600;padding:.2rem 0 .35rem}\n"
	"th,td{text-align:left;padding:.28rem .8rem .28rem 0;vertical-align:top;border-bottom:1px solid var(--rule);"
	"font-weight:400;overflow-wrap:normal}\n"
	"th:last-child,td:last-child{padding-right:.3rem}th:first-child,td:first-child{padding-left:.3rem}\n"
	"thead th{vertical-align:bottom;font-weight:600;border-bottom:1.5px solid var(--axis)}\n"
	"thead .unit{color:var(--dim);font-weight:400;white-space:nowrap}\n"
	".n{text-align:right;white-space:nowrap}thead .n{white-space:normal}\n"
	".l{min-width:15rem}\n"
	".toned tbody th{position:relative;padding-left:1.6em}.toned thead th:first-child:not(.n){padding-left:1.6em}"
	"th .sign{position:absolute;left:.35em}\n"
	"tbody tr:hover{background:var(--panel)}\n"
	"tr.good{background:var(--good-bg)}tr.warn{background:var(--warn-bg)}tr.bad{background:var(--bad-bg)}\n"
	".none{color:var(--dim);font-style:italic}\n"
	"figure{max-width:46rem;margin:1.25rem 0 .4rem}\n"
	"figcaption{font-weight:600;margin-bottom:.3rem}\n"
	"details{margin:0 0 1.5rem}\n"
	"summary{cursor:pointer;color:var(--link);font-size:.9rem;width:fit-content;padding:.15rem 0}\n"
	STYLE_CHART "\n";

/* On paper, ::details-content opens closed details, in a browser that knows it. */
static const char print[] =
	"@media print{@page{margin:15mm}\n"
	":root{color-scheme:light}\n"
	"body{padding:0;max-width:none;font-size:10pt;background:#fff;color:#000}nav{display:none}\n"
	".answers{grid-template-columns:repeat(3,1fr)}.answer .value{font-size:1.4rem}\n"
	".answer,.note,.badges li,pre,tr{print-color-adjust:exact;-webkit-print-color-adjust:exact}\n"
	"figure,.answer,.note,.badges,tr,caption,pre{break-inside:avoid}\n"
	"h2,h3,caption,figcaption,summary,thead{break-after:avoid}thead{display:table-header-group}\n"
	".scroll{overflow:visible}table{font-size:8pt}th,td{padding-right:.5rem}.l{min-width:0}"
	".wide{font-size:6.5pt}.wide th,.wide td{padding-right:.3rem;overflow-wrap:anywhere}"
	".wide .n{white-space:normal}\n"
	"pre{white-space:pre-wrap;overflow:visible}\n"
	"a{color:#000}\n"
	"details::details-content{content-visibility:visible;block-size:auto}summary{color:#000;list-style:none}\n"
	"figure{max-width:13.5cm}.chart text{font-size:12px}}\n";

void style_write(FILE *out)
{
	fputs(colours, out);
	fputs(frame, out);
	fputs(blocks, out);
	fputs(tables, out);
	fputs(print, out);
}
