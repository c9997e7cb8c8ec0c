#!/bin/bash
# scripts/check-figures on a made-up checkout: what agrees, and each defect that it must find, one at a time. And the
# functions with which docs/figures.tsv writes figures.
# here
# shellcheck disable=SC2016  # \(...) and backticks in single quotes are jq's and Markdown's

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

# A checkout of its own, whatever repository and settings of git this script runs with.
# shellcheck disable=SC2046  # these are words
unset $(git rev-parse --local-env-vars)
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=nobody GIT_AUTHOR_EMAIL=nobody@localhost
export GIT_COMMITTER_NAME=nobody GIT_COMMITTER_EMAIL=nobody@localhost
tmp=$(cd -P "$tmp" && pwd)
made=$tmp/made
run=results/first/run.json

commit_all() {
    git -C "$made" add -A && git -C "$made" commit -qm made
}

line() { # PAGE FILE WORDS
    printf '%s\t%s\t%s\n' "$@"
}

# ---- functions

is "figures: how pages write them" "$(jq -L scripts/lib -nc 'include "figures"; [
    (1234567, 999.5, 0 | count), (1234.5 | decimals(2)), (-1234.56 | decimals(1)), (-0.001 | decimals(2)),
    (1234567 | ms | decimals(3)), (1234567 | us | decimals(1)), (0.153 | percent), (1 | percent),
    (1536 | kib | decimals(1)), (1572864 | mib | decimals(1))]')" \
    '["1,234,567","1,000","0","1,234.50","-1,234.6","0.00","1.235","1,234.6","15","100","1.5","1.5"]'
is "figures: no function takes null" "$(jq -L scripts/lib -nrc 'include "figures"; null |
    (try count catch .), (try decimals(1) catch .), (try ms catch .), (try us catch .), (try percent catch .),
    (try kib catch .), (try mib catch .)' | sed 's/ of null, which is no number$//' | xargs)" \
    "count decimals ms us percent kib mib"

# ---- a checkout

mkdir -p "$made"/{docs,scripts/lib,results/first,results/compared,results/moved,results/suites}
git -C "$made" init -q
cp docs/{run,suite-results}.schema.json "$made/docs"
cp scripts/lib/bench.sh "$made/scripts/lib"
commit_all
built=$(git -C "$made" rev-parse --short=12 HEAD)
printf '| `%s` | a run |\n' first compared moved suites >"$made/results/README.md"
cat >"$made/README.md" <<'END_OF_PAGE'
A server held **10,000
  clients**: p50 was 15.3 ms, and the CPUs were 97 % busy.

<!-- results/first/console.txt -->

    $ make run
    10,000 clients

    PASS

It stopped after 15 s.
END_OF_PAGE
cat >"$made/docs/bench.md" <<'END_OF_PAGE'
The ratio was 0.70.
<!-- results/first/console.txt -->
```
starting server
PASS
```
END_OF_PAGE
printf '%s\n' '$ make run' 'starting server  ' '10,000 clients' '' 'PASS' 'done' >"$made/results/first/console.txt"
record() { # FILE SCHEMA_VERSION FIGURES
    jq -n --arg commit "$built" --argjson version "$2" --argjson figures "$3" \
        '{ schema_version: $version, build: { git_commit: $commit, dirty: false } } + $figures' >"$made/$1"
}
record $run "$(jq '.properties.schema_version.enum | max' docs/run.schema.json)" \
    '{ "held": 10000, "p50_ns": 15312345, "busy": 0.9712, "s": 15, "text": "null" }'
record results/suites/suite.json "$(jq '.properties.schema_version.const' docs/suite-results.schema.json)" '{}'
bench_version=$(grep -o 'schema_version: [0-9]*' scripts/lib/bench.sh | grep -o '[0-9]*$')
record results/compared/bench.json "$bench_version" '{ "ratio": 0.7 }'
record results/moved/bench.json "$bench_version" '{}'
{
    printf '# a comment\n\n'
    line README.md $run 'held **\(.held | count) clients**: p50 was \(.p50_ns | ms | decimals(1)) ms'
    line README.md $run 'CPUs were \(.busy | percent) % busy.'
    line README.md $run '\(.s | count) s'
    line docs/bench.md results/compared/bench.json 'ratio was \(.ratio | decimals(2))'
    line README.md results/first/console.txt console
    line docs/bench.md results/first/console.txt console
} >"$made/docs/figures.tsv"
commit_all

# Prints the exit status and the output of the script on a checkout, then has the checkout as it was.
judged() { # [CHECKOUT]
    scripts/check-figures "${1-$made}" 2>&1
    echo "exit status $?"
    git -C "$made" reset -q --hard && git -C "$made" clean -qfd
}

finds() { # NAME LINES
    is "$1" "$(judged)" "$2"$'\nexit status 1'
}

replaced() { # FILE SED_SCRIPT
    sed -i "$2" "$made/$1"
}

edited() { # RECORD FILTER
    jq "$2" "$made/$1" >"$tmp/edited" && mv "$tmp/edited" "$made/$1"
}

is "all agrees" "$(judged)" "exit status 0"
gives "wrong use: an option" 2 'unknown option' scripts/check-figures --write
gives "wrong use: two folders" 2 'name one folder' scripts/check-figures "$made" "$made"
gives "wrong use: a folder without figures" 2 'docs/figures.tsv is missing' scripts/check-figures "$made/docs"
gives "--help" 0 'PAGE    FILE    WORDS' scripts/check-figures --help

# ---- pages

replaced README.md 's/10,000$/10,001/'
finds "another figure in a page" "README.md should say: held **10,000 clients**: p50 was 15.3 ms ($run)"
replaced README.md 's/15 s/115 s/'
finds "a longer figure in a page, at its front" "README.md should say: 15 s ($run)"
replaced docs/bench.md 's/0.70/0.701/'
finds "a longer figure in a page, at its end" "docs/bench.md should say: ratio was 0.70 (results/compared/bench.json)"
edited $run '.busy = 0.5 | .s = 5'
finds "other figures in a run" "README.md should say: CPUs were 50 % busy. ($run)
README.md should say: 5 s ($run)"
edited $run '.p50_ns = null'
finds "null, to a function" "docs/figures.tsv:3: ms of null, which is no number: \
held **\\(.held | count) clients**: p50 was \\(.p50_ns | ms | decimals(1)) ms ($run)"
line README.md $run '\(.nothing) clients' >>"$made/docs/figures.tsv"
finds "null, written" "docs/figures.tsv:9: a value is null, or there is none: \\(.nothing) clients ($run)"

# ---- blocks of a console

replaced README.md 's/^    10,000 clients/    10,002 clients/'
finds "console: a line that was not printed" \
    "README.md: not in results/first/console.txt, or not in this order: 10,002 clients"
replaced docs/bench.md '/^PASS/d; s/^starting server/PASS\n&/'
finds "console: lines in another order" \
    "docs/bench.md: not in results/first/console.txt, or not in this order: starting server"
replaced README.md 's/^    PASS/&\n    PASS/'
finds "console: a line that was printed once" \
    "README.md: not in results/first/console.txt, or not in this order: PASS"
replaced README.md '/^<!--/d'
finds "console: no such comment" "README.md: no line <!-- results/first/console.txt -->"
replaced docs/bench.md '/^```/d'
finds "console: no block" "docs/bench.md: no code block below the line <!-- results/first/console.txt -->"

# ---- lines of figures.tsv

{
    line README.md $run
    printf 'README.md\t%s\ta\tb\n' $run
    line docs/none.md $run a
    line results/first/console.txt $run a
    line README.md results/none/run.json a
    line README.md results/../docs/run.schema.json a
    line README.md $run '\(.held | counted)'
    line README.md $run '\(.held'
    line README.md $run '\(.held, .s)'
    line README.md results/first/console.txt '\(.s)'
} >"$made/docs/figures.tsv"
printf 'README.md\t%s\t%s' $run '\(empty)' >>"$made/docs/figures.tsv"
columns="needs three columns with a tab between them: PAGE, FILE, WORDS"
told=$(judged)
is "lines that are wrong: one line for each" "$(sed -E '7,10s/: .*: /: (why): /' <<<"$told")" \
    "docs/figures.tsv:1: $columns
docs/figures.tsv:2: $columns
docs/figures.tsv:3: no such page: docs/none.md (allowed: README.md, docs/NAME.md, results/NAME/report.md)
docs/figures.tsv:4: no such page: results/first/console.txt (allowed: README.md, docs/NAME.md, results/NAME/report.md)
docs/figures.tsv:5: no such file is committed below results/: results/none/run.json
docs/figures.tsv:6: no such file is committed below results/: results/../docs/run.schema.json
docs/figures.tsv:7: (why): \\(.held | counted) ($run)
docs/figures.tsv:8: (why): \\(.held ($run)
docs/figures.tsv:9: (why): \\(.held, .s) ($run)
docs/figures.tsv:10: (why): \\(.s) (results/first/console.txt)
docs/figures.tsv:11: an expression has 0 values instead of one: \\(empty) ($run)
exit status 1"
matches "lines that are wrong: what jq says" "$told" \
    'counted/0 is not defined.*:8: syntax error.*:9: an expression has 2 values'
mkdir "$made/results/later"
cp "$made/$run" "$made/results/later"
line README.md results/later/run.json '\(.s | count) s' >>"$made/docs/figures.tsv"
finds "a run that is not committed" \
    "docs/figures.tsv:9: no such file is committed below results/: results/later/run.json"

# ---- recorded runs

stranger=$(git -C "$made" commit-tree -m stranger 'HEAD^{tree}')
for commit in "${stranger:0:12}" 000000000000; do
    edited $run ".build.git_commit = \"$commit\""
    finds "a run of commit $commit" "$run: recorded by commit $commit, which HEAD does not contain"
done
edited $run 'del(.build.git_commit)'
finds "a run of no commit" "$run: build.git_commit is null, not the 12 digits of a commit"
edited results/moved/bench.json '.build.dirty = true'
finds "a run of a changed checkout" \
    "results/moved/bench.json: build.dirty is true: record it with a build of a clean checkout"
for file in $run results/suites/suite.json results/compared/bench.json; do
    now=$(jq .schema_version "$made/$file")
    edited "$file" '.schema_version -= 1'
    finds "an old schema: $file" "$file: schema_version is $((now - 1)), today's is $now"
done
record results/first/other.json 1 '{}'
git -C "$made" add -A
finds "a record of an unknown kind" "results/first/other.json: schema_version is 1, today's is not known"
sed -i 's/moved/gone/' "$made/results/README.md"
finds "a folder that the table lacks, and a row without a folder" "results/moved: not in the table of results/README.md
results/README.md: nothing is committed in results/gone"
sed -i 's/gone/moved/' "$made/results/README.md"
echo '{' >"$made/$run"
matches "a damaged run" "$(judged)" $'\n'"$run: cannot be read: "
head -c 6000000 /dev/zero >"$made/results/first/large"
git -C "$made" add -A
matches "more than 6 MB" "$(judged)" '^results: the committed files have 600[0-9]{4} bytes \(allowed: 6000000\)
exit status 1$'
git clone -q --depth 1 "file://$made" "$tmp/shallow"
is "a clone without history" "$(judged "$tmp/shallow")" \
    "this clone lacks the history that has the commits of the recorded runs: git fetch --unshallow
exit status 1"
cp -r "$made" "$tmp/copy"
rm -rf "$tmp/copy/.git"
matches "no checkout" "$(judged "$tmp/copy")" "^$tmp/copy is not a git checkout, so [^"$'\n'"]*
exit status 1\$"
finish
