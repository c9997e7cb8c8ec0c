/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the forms of a document: doc_html.c, doc_text.c. */
#include "tests/unit/helpers/doc_rig.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOSTILE "<script>alert(1)</script>\"'&`|*_[x](y) @all #1 http://a \033[2J"

static void fill_hostile(struct doc *d)
{
	struct doc_table *t;

	doc_answer(d, DOC_BAD, NULL, HOSTILE, HOSTILE, HOSTILE);
	doc_badge(d, DOC_WARN, NULL, HOSTILE, HOSTILE);
	doc_section(d, HOSTILE, HOSTILE);
	doc_heading(d, HOSTILE);
	doc_text(d, NULL, "%s", HOSTILE);
	doc_note(d, DOC_BAD, NULL, "%s", HOSTILE);
	doc_item(d, NULL, "%s", HOSTILE);
	doc_file(d, HOSTILE, HOSTILE);
	doc_chart(d, HOSTILE, HOSTILE, "<svg></svg>", HOSTILE);
	t = doc_table(d, HOSTILE, HOSTILE);
	doc_column(t, HOSTILE, HOSTILE, false);
	doc_row(t, DOC_BAD);
	doc_cell(t, "%s", HOSTILE);
}

TEST(html__every_block__in_order)
{
	struct doc *d = doc_rig_new();

	doc_rig_fill(d);
	doc_rig_expect(d, DOC_FORM_HTML, "<html lang=\"en\">", "default-src 'none'", "<title>Title</title>",
		       "<h1>Title</h1>", "<div class=\"answers\">\n<div class=\"answer good\">", "Question?",
		       "aria-label=\"Good\"", "Answer", "Detail", "<nav", "<a href=\"#first\">First</a>",
		       "<section id=\"first\"", "<h2", "First</h2>", "<h3>Heading</h3>", "<p id=\"said\">text 1</p>",
		       "<p class=\"note plain\">note 0", "<ul class=\"badges\">", "Good:</strong> note 1",
		       "Caution:</strong> note 2",
		       "Problem:</strong> note 3", "<ul>\n<li>item 1</li>\n<li>item 2</li>\n</ul>",
		       "<code>code\n\tmore</code>",
		       "<a href=\"./run.json\">", "<caption>Caption</caption>", "<th scope=\"col\">Step</th>",
		       "<th scope=\"col\" class=\"n\">Time <span class=\"unit\">ns</span></th>",
		       "<tr class=\"plain\"><th scope=\"row\">step 0</th><td class=\"n\">\xe2\x80\x93</td></tr>",
		       "<tr class=\"bad\"><th scope=\"row\"><span class=\"sign\" role=\"img\" aria-label=\"Problem\">",
		       "step 3</th><td class=\"n\">3,703.5</td></tr>", "<figure id=\"chart\">",
		       "<svg role=\"img\" aria-labelledby=\"chart.t chart.d\" class=\"chart\">",
		       "<title id=\"chart.t\">Chart</title><desc id=\"chart.d\">It rises.</desc><path/></svg>",
		       "<details><summary>Numbers</summary>", "</details>", "has nothing to show.</strong> It falls.",
		       "</section>", "</html>", NULL);
	doc_free(d);
}

TEST(html__hostile_texts__escaped)
{
	struct doc *d = doc_rig_new();

	fill_hostile(d);
	doc_rig_expect(d, DOC_FORM_HTML, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;`", NULL);
	doc_rig_expect(d, DOC_FORM_HTML, "href=\"./%3Cscript%3Ealert%281%29%3C/script%3E%22%27%26", NULL);
	doc_rig_expect_not(d, DOC_FORM_HTML, "<script");
	doc_rig_expect_not(d, DOC_FORM_HTML, "</script");
	doc_rig_expect_not(d, DOC_FORM_HTML, "\033");
	doc_free(d);
}

TEST(html__links__stay_below_the_folder)
{
	struct doc *d = doc_rig_new();

	doc_file(d, "javascript:alert(1)", NULL);
	doc_file(d, "//a/b?c#d", NULL);
	doc_rig_expect(d, DOC_FORM_HTML, "href=\"./javascript%3Aalert%281%29\"", "href=\".///a/b%3Fc%23d\"", NULL);
	doc_free(d);
}

TEST(html__nothing_in_it__a_page_without_contents)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t;

	doc_rig_expect_not(d, DOC_FORM_HTML, "<nav");
	doc_table(d, "none", "No columns");
	doc_rig_expect_not(d, DOC_FORM_HTML, "No columns");
	t = doc_table(d, "empty", "Empty");
	doc_column(t, "a", NULL, false);
	doc_column(t, "b", NULL, false);
	doc_rig_expect(d, DOC_FORM_HTML, "<td colspan=\"2\" class=\"none\">nothing</td>", NULL);
	doc_free(d);
}

TEST(html__from_elsewhere__nothing)
{
	struct doc *d = doc_rig_new();

	doc_rig_fill(d);
	doc_rig_expect_not(d, DOC_FORM_HTML, "//");
	doc_rig_expect_not(d, DOC_FORM_HTML, "url(");
	doc_rig_expect_not(d, DOC_FORM_HTML, "@import");
	doc_free(d);
}

TEST(markdown__every_block__in_order)
{
	struct doc *d = doc_rig_new();

	doc_rig_fill(d);
	doc_rig_expect(d, DOC_FORM_MARKDOWN, "# Title\n", "| Question | Answer |",
		       "| Question? | \xe2\x9c\x85 **Answer** | Detail |\n",
		       "\n## First\n", "\n### Heading\n", "\ntext 1\n", "> [!NOTE]\n> note 0\n", "- **badge**\n",
		       "> [!TIP]\n> note 1\n", "**badge** meaning\n", "> [!WARNING]\n", "> [!CAUTION]\n",
		       "\n- item 1\n- item 2\n",
		       "```\ncode\n\tmore\n```\n", "```\npicture\n```\n", "- run.json: everything\n",
		       "**Caption**\n\n| Step | Time (ns) |\n| --- | --: |\n",
		       "| step 0 | \xe2\x80\x93 |\n", "| \xe2\x9c\x85 step 1 | 1,234.5 |\n", "**Chart**\n\nIt rises.\n",
		       "<details><summary>Numbers: Caption</summary>\n\n| Step", "\n</details>\n",
		       "**No chart**\n\nIt falls.\n", NULL);
	doc_rig_expect_not(d, DOC_FORM_MARKDOWN, "<svg");
	doc_free(d);
}

TEST(markdown__hostile_texts__escaped)
{
	struct doc *d = doc_rig_new();

	fill_hostile(d);
	doc_rig_expect(d, DOC_FORM_MARKDOWN,
		       "&lt;script&gt;alert(1)&lt;/script&gt;\"'&amp;\\`\\|\\*\\_\\[x\\](y) @<!-- -->all "
		       "#<!-- -->1 http:<!-- -->//a ", NULL);
	doc_rig_expect_not(d, DOC_FORM_MARKDOWN, "<script");
	doc_free(d);
}

/* GitHub's Markdown turns bare addresses into links (extended autolinks), which no escape prevents. */
TEST(markdown__addresses__no_links)
{
	static const struct { const char *text, *shown; } cases[] = {
		{ "www.evil.example", "www<!-- -->.evil.example" },
		{ "(WWW.evil.example) wWw.a", "(WWW<!-- -->.evil.example) wWw<!-- -->.a" },
		{ "http://www.a.example/x", "http:<!-- -->//www<!-- -->.a.example/x" },
		{ "HTTPS://a.example ftp://a.example", "HTTPS:<!-- -->//a.example ftp:<!-- -->//a.example" },
		{ "me@a.example mailto:me@a.example xmpp:me@a.example/b",
		  "me@<!-- -->a.example mailto:me@<!-- -->a.example "
		  "xmpp:me@<!-- -->a.example/b" },
		/* Host names, addresses and figures stay unchanged. */
		{ "web-1.example.com:7471 10.77.0.1:7471 [fe80::1]:7471 www w.w.w. 99.9",
		  "web-1.example.com:7471 10.77.0.1:7471 "
		  "\\[fe80::1\\]:7471 www w.w.w. 99.9" },
	};

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct doc *d = doc_rig_new();
		struct doc_table *t;

		doc_text(d, NULL, "%s", cases[i].text);
		t = doc_table(d, "t", "T");
		doc_column(t, "c", NULL, false);
		doc_row(t, DOC_PLAIN);
		doc_cell(t, "%s", cases[i].text);
		/* Once in the paragraph, and once in the table behind it. */
		doc_rig_expect(d, DOC_FORM_MARKDOWN, cases[i].shown, "| ", cases[i].shown, NULL);
		doc_free(d);
	}
}

TEST(markdown__what_would_begin_a_list__escaped)
{
	struct doc *d = doc_rig_new();

	doc_text(d, NULL, "   12. twelve");
	doc_text(d, NULL, "- minus");
	doc_text(d, NULL, "===");
	doc_text(d, NULL, "99.9 stays");
	doc_code(d, "```` ` ```\n");
	doc_rig_expect(d, DOC_FORM_MARKDOWN, "\n12\\. twelve\n", "\n\\- minus\n", "\n\\===\n",
		       "\n`````\n```` ` ```\n`````\n", NULL);
	doc_free(d);
}

/* Markdown may be shown on a terminal, too. */
TEST(markdown__hostile_texts__no_escape_sequence)
{
	struct doc *d = doc_rig_new();

	fill_hostile(d);
	doc_rig_expect_not(d, DOC_FORM_MARKDOWN, "\033");
	doc_free(d);
}

TEST(markdown__underscores__only_between_words_escaped)
{
	struct doc *d = doc_rig_new();

	doc_text(d, NULL, "a tls_handshake_1, _b_ and c_");
	doc_rig_expect(d, DOC_FORM_MARKDOWN, "a tls_handshake_1, \\_b\\_ and c\\_\n", NULL);
	doc_free(d);
}

TEST(markdown__empty_cells_and_tables__shown)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t = doc_table(d, "t", "Empty");

	doc_text(d, NULL, "%s", "");
	doc_code(d, "");
	doc_column(t, "A", NULL, false);
	doc_rig_expect(d, DOC_FORM_MARKDOWN, "**Empty**\n\n| A |\n| --- |\n| nothing |\n", NULL);
	doc_column(t, "", NULL, true);
	doc_row(t, DOC_PLAIN);
	doc_rig_expect(d, DOC_FORM_MARKDOWN, "| A |  |\n| --- | --: |\n|  |  |\n", NULL);
	doc_free(d);
}

TEST(text__every_block__in_order)
{
	struct doc *d = doc_rig_new();

	doc_rig_fill(d);
	doc_rig_expect(d, DOC_FORM_TEXT, "Title\n\n", "Question? \xe2\x9c\x93 Answer\n  Detail\n",
		       "\nFirst\n=====\nHeading\n",
		       "text 1\n", "\nnote 0\n", "\n  badge\n", "\n\xe2\x9c\x93 note 1\n",
		       "\n  \xe2\x9c\x93 badge: meaning\n", "\n! note 2\n",
		       "\n\xe2\x9c\x97 note 3\n", "\n  item 1\n  item 2\n", "\n    code\n    \tmore\n",
		       "\n  run.json: everything\n",
		       "\nCaption\n  Step       Time\n               ns\n  step 0        \xe2\x80\x93\n\xe2\x9c\x93 "
		       "step 1  1,234.5\n", "Caption\n", NULL);
	doc_rig_expect_not(d, DOC_FORM_TEXT, "svg");
	doc_rig_expect_not(d, DOC_FORM_TEXT, " \n");
	doc_free(d);
}

TEST(text__hostile_texts__as_they_are_without_escape_sequences)
{
	struct doc *d = doc_rig_new();

	fill_hostile(d);
	doc_rig_expect(d, DOC_FORM_TEXT, "<script>alert(1)</script>\"'&`|*_[x](y) @all #1 http://a ", NULL);
	doc_rig_expect_not(d, DOC_FORM_TEXT, "\033");
	doc_free(d);
}

TEST(text__tables__columns_aligned_and_titles_broken)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t = doc_table(d, "t", NULL);

	doc_column(t, "Name", NULL, false);
	doc_column(t, "n of all", "1/s", true);
	doc_column(t, "What to do", NULL, false);
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "nofile");
	doc_number(t, 1048576, 0);
	doc_cell(t, "raise it");
	doc_row(t, DOC_PLAIN);
	doc_cell(t, "<\xe2\x80\x93>");
	doc_number(t, 5, 0);
	doc_cell(t, "%s", "");
	doc_rig_expect(d, DOC_FORM_TEXT, "                n  What\n"
		       "               of  to\n"
		       "Name          all  do\n"
		       "              1/s\n"
		       "nofile  1,048,576  raise it\n"
		       "<\xe2\x80\x93>             5\n", NULL);
	doc_free(d);
}

TEST(text__long_tables__cut_with_where_the_rest_is)
{
	struct doc *d = doc_rig_new();
	struct doc_table *t = doc_table(d, "many", NULL);

	doc_column(t, "n", NULL, true);
	for (int i = 1; i <= 67; i++) {
		doc_row(t, DOC_PLAIN);
		doc_number(t, i, 0);
	}
	doc_rig_expect(d, DOC_FORM_TEXT, "\n64\nand 3 rows more, in tables/many.csv\n", NULL);
	doc_rig_expect_not(d, DOC_FORM_TEXT, "\n65\n");
	doc_table(d, "none", "No columns");
	doc_rig_expect_not(d, DOC_FORM_TEXT, "No columns");
	t = doc_table(d, "empty", "Empty");
	doc_column(t, "A", NULL, false);
	doc_rig_expect(d, DOC_FORM_TEXT, "\nEmpty\nA\nnothing\n", NULL);
	doc_free(d);
}

TEST(forms__a_full_disk__eio)
{
	struct doc *d = doc_rig_new();
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	doc_rig_fill(d);
	assert_int_equal(doc_write_html(d, full), -EIO);
	clearerr(full);
	assert_int_equal(doc_write_markdown(d, full), -EIO);
	clearerr(full);
	assert_int_equal(doc_write_text(d, full), -EIO);
	fclose(full);
	doc_free(d);
}
