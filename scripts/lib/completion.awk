# Prints the completion of a program for bash or zsh (scripts/make-man). Input: the options of the program, and of each
# of its subcommands, separated by tabs.
# Variables: program, shell; before each file: subcommand (empty for the program itself) and operands, the words that
# may follow it, or DIR.

function quoted(s) {
    gsub(/'/, "'\\''", s)
    return "'" s "'"
}

# The first sentence, as the text of an option in zsh.
function explanation(s) {
    sub(/\.( .*)?$/, "", s)
    gsub(/`/, "", s)
    gsub(/[][\\]/, "\\\\&", s)
    return s
}

# What bash completes.
function words(values, files) {
    return (values ? " words='" values "'" : "") (files ? " files=" files : "")
}

BEGIN { FS = "\t" }

FNR == 1 {
    command[++n] = subcommand
    allowed[n] = operands
    subcommands = subcommands (subcommand == "" ? "" : (subcommands == "" ? "" : " | ") subcommand)
}
$1 == "#" { next }
{
    sub(/,.*/, "", $1) # the short name
    values = ""
    if ($3 ~ /^[a-z0-9-]+(, [a-z0-9-]+)* or [a-z0-9-]+$/ && $3 !~ / more$/) {
        values = $3
        gsub(/, | or /, " ", values)
    } else if ($2 ~ /\|/) { # auto|off|BYTES
        m = split($2, alternative, "|")
        for (i = 1; i <= m; i++)
            if (alternative[i] ~ /^[a-z]+$/)
                values = values (values ? " " : "") alternative[i]
    }
    files = $2 ~ /FILE/ ? "-f" : $2 ~ /DIR/ ? "-d" : ""
    names[n] = names[n] (names[n] ? " " : "") "--" $1
    key = "'" command[n] " --" $1 "'"
    if (values || files)
        cases[n] = cases[n] "    " key ")" words(values, files) " ;;\n"
    else if ($2 != "")
        without[n] = without[n] (without[n] ? " | " : "") key
    action = files == "-f" ? "_files" : files == "-d" ? "_files -/" : values ? "(" values ")" : " "
    gsub(/:/, "\\:", $2)
    arguments[n] = arguments[n] " \\\n        " quoted("--" $1 ($2 == "" ? "" : "=") "[" explanation($5) "]" \
        ($2 == "" ? "" : ":" $2 ":" action))
}

function print_bash(    i) {
    printf "# Completion of %s for bash.\n_%s() {\n", program, program
    print "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} subcommand= words= files="
    print "    # The = of --NAME=VALUE is a word of its own."
    print "    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi"
    if (subcommands)
        print "    case ${COMP_WORDS[1]} in\n    " subcommands \
            ") ((COMP_CWORD == 1)) || subcommand=${COMP_WORDS[1]} ;;\n    esac"
    print "    case \"$subcommand $prev\" in"
    for (i = 1; i <= n; i++)
        printf "%s    %s) ;;\n", cases[i], without[i]
    for (i = 1; i <= n; i++)
        printf "    '%s '*)%s ;;\n", command[i], \
            (allowed[i] == "DIR" ? words(names[i], "-d") : words(names[i] (allowed[i] ? " " : "") allowed[i], ""))
    print "    esac"
    print "    mapfile -t COMPREPLY < <(compgen $files -W \"$words\" -- \"$cur\")"
    print "    [[ ! $files ]] || compopt -o filenames"
    printf "}\ncomplete -F _%s %s\n", program, program
}

function print_zsh(    i) {
    printf "#compdef %s\n# Completion of %s for zsh.\nlocal subcommand\n", program, program
    if (subcommands)
        print "case $words[2] in\n" subcommands \
            ") ((CURRENT == 2)) || { subcommand=$words[2]; shift words; ((CURRENT--)) } ;;\nesac"
    print "case $subcommand in"
    for (i = 1; i <= n; i++)
        printf "'%s') _arguments%s%s ;;\n", command[i], arguments[i], (allowed[i] == "" ? "" : \
            " \\\n        '*:" (allowed[i] == "DIR" ? "DIR:_files -/" : "word:(" allowed[i] ")") "'")
    print "esac"
}

END {
    if (shell == "bash")
        print_bash()
    else
        print_zsh()
}
