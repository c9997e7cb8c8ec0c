# Prints a man page in man(7) macros (scripts/make-man). Input, each after its name:
#   part=help     the program's --help
#   part=rows     its options, separated by tabs; none: --help lists them all
#   part=shared   docs/options.md: the syntax of options, before its first chapter; what stands in the program's chapter
#                 after its options; and the environment variables
# Variables: name, section, date, version, and pages, all pages as NAME.SECTION.

# Text that roff shows as it is: quotes, dashes and carets that can be copied into a shell.
function literal(s) {
    gsub(/\\/, "\\(rs", s)
    gsub(/-/, "\\-", s)
    gsub(/'/, "\\(aq", s)
    gsub(/"/, "\\(dq", s)
    gsub(/`/, "\\(ga", s)
    gsub(/\^/, "\\(ha", s)
    gsub(/~/, "\\(ti", s)
    return s
}

function bold(s) {
    return "\\fB" literal(s) "\\fR"
}

function italic(s) {
    return "\\fI" literal(s) "\\fR"
}

# A line of text in which names of options and what stands between backticks are bold.
function text(s,    n, part, i, out) {
    n = split(s, part, "`")
    for (i = 1; i <= n; i++) {
        for (; i % 2 && match(part[i], /--[a-z][a-z0-9-]*/); part[i] = substr(part[i], RSTART + RLENGTH))
            out = out literal(substr(part[i], 1, RSTART - 1)) bold(substr(part[i], RSTART, RLENGTH))
        out = out (i % 2 ? literal(part[i]) : bold(part[i]))
    }
    return (out ~ /^\./ ? "\\&" : "") out "\n"
}

function item(tag, argument) {
    return ".TP\n" bold(tag) (argument == "" ? "" : " " italic(argument)) "\n"
}

# The program in bold, what stands for something else in italics.
function usage(s,    n, word, i, out) {
    sub(/^(Usage:)? */, "", s)
    match(s, index(s, command " ") == 1 ? "^" command : "^[^ ]+")
    out = bold(substr(s, 1, RLENGTH))
    n = split(substr(s, RLENGTH + 2), word, " ")
    for (i = 1; i <= n; i++)
        out = out " " (word[i] ~ /[A-Z]/ ? italic(word[i]) : literal(word[i]))
    return out "\n"
}

# "0 done, 1 failed" as a list.
function statuses(s,    out, end) {
    if (s !~ /^[0-9]/)
        return text(s)
    sub(/\.$/, "", s)
    while (match(s, /^[0-9]+ /)) {
        out = out item(substr(s, 1, RLENGTH - 1))
        s = substr(s, RLENGTH + 1)
        end = match(s, /[,;] [0-9]+ |$/)
        out = out text(substr(s, 1, end - 1))
        s = substr(s, end + 2)
    }
    return out
}

function end_paragraph() {
    if (summary == "")
        summary = paragraph
    if (paragraph != "" && of_option)
        options = options text(paragraph)
    else if (paragraph != "")
        description = description text(paragraph)
    paragraph = ""
}

# A line of the list "  NAME  text" or "NAME: text", without its indentation. Options go to their own section.
function begin_item(tag, rest) {
    end_paragraph()
    of_option = tag ~ /^--/
    match(tag, / |$/)
    tag = item(substr(tag, 1, RSTART - 1), substr(tag, RSTART + 1))
    if (of_option)
        options = options tag
    else
        description = description tag
    paragraph = rest
}

function print_section(title, body) {
    if (body != "")
        printf ".SH %s\n%s", title, body
}

function see_also(    n, page, i, out) {
    n = split(pages, page, " ")
    for (i = 1; i <= n; i++)
        if (page[i] != name "." section && page[i] !~ /^softroce/) { # which is not installed
            match(page[i], /\./)
            out = out (out ? ",\n" : "") ".BR " literal(substr(page[i], 1, RSTART - 1)) \
                " (" substr(page[i], RSTART + 1) ")"
        }
    return out "\n.PP\nFiles such as docs/options.md are in the source tree of rampart.\n"
}

BEGIN {
    command = name
    sub(/-/, " ", command)
    place = "usage"
}

part == "help" && place == "usage" {
    if (/^$/)
        place = "description"
    else
        synopsis = synopsis (synopsis ? ".br\n" : "") usage($0)
    next
}
part == "help" && /^(Common options|Options):/ { place = "options" } # the rows have them
part == "help" && sub(/^Exit status: /, "") {
    end_paragraph()
    place = "exit status"
}
part == "help" && place == "exit status" && !/^$/ { status = status (status ? " " : "") $0 }
part == "help" && place == "description" {
    if (/^$/) {
        end_paragraph()
        of_option = 0
        gap = description != ""
    } else if (/^  [^ ]/ && match(substr($0, 3), /   */)) {
        begin_item(substr($0, 3, RSTART - 1), substr($0, 2 + RSTART + RLENGTH))
    } else if ((gap || description == "") && match($0, /^[a-z]+: /)) {
        begin_item(substr($0, 1, RLENGTH - 2), substr($0, RLENGTH + 1))
    } else {
        if (gap)
            description = description ".PP\n"
        sub(/^ +/, "")
        paragraph = paragraph (paragraph == "" ? "" : " ") $0
    }
    if (!/^$/)
        gap = 0
}

part == "rows" {
    has_rows = 1
    split($0, cell, "\t")
    if (cell[1] == "#") {
        options = options ".SS " literal(cell[2]) "\n"
        next
    }
    note = cell[3] == "" ? "" : "Allowed: " cell[3] "."
    if (cell[2] != "" && cell[4] != "")
        note = note (note == "" ? "" : " ") "Default: " cell[4] "."
    options = options item("--" cell[1], cell[2]) text(cell[5]) (note == "" ? "" : ".br\n" text(note))
    reads_certs = reads_certs || cell[4] ~ /build\/certs/
}

part == "shared" && /^## / {
    chapter = substr($0, 4)
    after_options = 0
}
part == "shared" && /^<!-- end -->/ { after_options = 1 }
part == "shared" && /^Exit status/ { after_options = 0 } # --help has it
part == "shared" && !/^[#|<]/ && (!chapter || chapter == command && after_options) {
    if (!/^$/) {
        if (sub(/^    /, "")) # an example
            $0 = "`" $0 "`"
        lead = lead (lead == "" ? "" : " ") $0
    } else if (lead != "") {
        gsub(/\*\*/, "`", lead)
        if (chapter)
            notes = notes (notes ? ".PP\n" : "") text(lead)
        else if (lead ~ /build\/certs/)
            files = reads_certs ? text(lead) : ""
        else if (lead ~ /`--|^Numbers/)
            syntax = syntax (syntax ? ".PP\n" : "") text(lead)
        lead = ""
    }
}
part == "shared" && chapter == "Environment variables" && sub(/^\| `/, "") {
    match($0, /` \| /)
    variable = substr($0, 1, RSTART - 1)
    split(substr($0, RSTART + RLENGTH), cell, " [|] ")
    sub(/ \|$/, "", cell[2])
    if (index(", " cell[1] ",", ", " command ",") || cell[1] == "scripts/" command)
        environment = environment item(variable) text(cell[2])
}

END {
    end_paragraph()
    match(summary, /[.,:;]( |$)|$/)
    summary = tolower(substr(summary, 1, 1)) substr(summary, 2, RSTART - 2)
    printf ".TH %s %s %s \"rampart %s\"\n", literal(toupper(name)), section, date, version
    print ".ad l\n.nh" # neither wide gaps nor hyphens that are not in the text
    print_section("NAME", literal(name) " \\- " literal(summary) "\n")
    print_section("SYNOPSIS", synopsis)
    print_section("DESCRIPTION", description)
    print_section("OPTIONS", (has_rows ? syntax : "") options)
    print_section("EXIT STATUS", statuses(status))
    print_section("ENVIRONMENT", environment)
    print_section("FILES", files)
    print_section("NOTES", notes)
    print_section("SEE ALSO", see_also())
}
