#!/bin/bash
# What performance_test leaves for CI systems, over TCP: the test cases of --junit, of runs, suites and doctor, which must agree
# with the verdict and the exit status; and the summaries that it appends for GitHub.
# here
# shellcheck disable=SC2317  # what looks unreachable is called by name

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

# Only some of the runs append to it.
summary=$tmp/summary.md

# Reads a JUnit file with a parser that refuses what is not XML. Prints "NAME TESTS FAILURES ERRORS SKIPPED" of each suite,
# and `wrong` behind it if these are not the counts of its cases or two cases have one name.
counts() { # FILE
    python3 - "$1" <<'END_OF_PROGRAM'
import sys
import xml.etree.ElementTree as tree

root = tree.parse(sys.argv[1]).getroot()
names = ("tests", "failures", "errors", "skipped")
sums = [0, 0, 0]
for suite in root:
    cases = suite.findall("testcase")
    found = [len(cases)] + [len(suite.findall("testcase/" + kind)) for kind in ("failure", "error", "skipped")]
    said = [int(suite.get(name)) for name in names]
    unique = len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    sums = [a + b for a, b in zip(sums, said)]
    print(suite.get("name"), *said, *([] if said == found and unique else ["wrong"]))
if [int(root.get(name)) for name in names[:3]] != sums:
    print("wrong sums")
END_OF_PROGRAM
}

# The same line as the verdict in run.json says it. ERRORS further cases are errors.
counts_of_verdict() { # NAME ERRORS
    jq -r --arg name "$1" --argjson errors "$2" '[.verdict[].result] |
        [$name, length + $errors, (map(select(. == "fail")) | length), $errors,
            (map(select(. == "inconclusive" or . == "not_judged")) | length)] | join(" ")' "$tmp/$1.json"
}

# Waits for the end of a run and compares its file with run.json and with the exit status that is wanted.
agrees() { # NAME STATUS ERRORS
    end_of "$1" 240
    is "$1: exit status, here and in run.json" "$status $(jq .run.exit_status "$tmp/$1.json")" "$2 $2"
    is "$1: as many cases of each result as in the verdict" "$(counts "$tmp/$1.xml" 2>&1)" "$(counts_of_verdict "$1" "$3")"
}

has_case() { # WHAT FILE EXTENDED_REGEX
    is "$1" "$(tr '\n' ' ' <"$tmp/$2.xml" | sed 's|</testcase>|&\n|g' | grep -cE "$3")" 1
}

short=(--steps 1 --duration 0.3 --warmup 0.1 --threads 1)

# ---- runs

GITHUB_STEP_SUMMARY=$summary start_run passed own "${short[@]}" --slo 'errors<1%' --junit "$tmp/passed.xml"
agrees passed 0 0
has_case "passed: an objective, with its figures" passed \
    'classname="passed\.1 client, 64 bytes" name="SLO errors&lt;1%" time="[0-9.]+"><system-out>measured: 0 % wanted: errors&lt;1%<'

GITHUB_STEP_SUMMARY=$summary start_run failed own "${short[@]}" --slo 'p99<1ns' --junit "$tmp/failed.xml"
agrees failed 1 0
has_case "failed: measured and wanted" failed '<failure message="measured [0-9.]+ .?s, wanted p99&lt;1ns">'
is "two summaries are in the file, one behind the other" "$(grep '^# ' "$summary" | paste -sd ' ')" "# passed # failed"
matches "a summary has the verdict, what failed first" "$(<"$summary")" \
    $'# failed\n.*, 1 failed, .*\n\n.*result \\|\n[-| ]*\n\\| . failed \\| 1 client, 64 bytes \\| SLO p99&lt;1ns \\| [0-9.]+ .?s \\| p99&lt;1ns \\| failed \\|'

# Idle clients have no round trips.
start_run unknown own "${short[@]}" --workload idle --slo 'p99<1s' --junit "$tmp/unknown.xml"
agrees unknown 4 0
has_case "unknown: skipped, with the reason" unknown 'name="SLO p99&lt;1s".*<skipped message="inconclusive: unknown: too few samples"/>'

start_run cut own "${short[@]}" --trace /dev/full --junit "$tmp/cut.xml"
agrees cut 3 1
has_case "cut: a file that was lost is an error" cut '<error message="a file could not be written">'

load aborted own --steps 1 --warmup 0 --duration 600 --junit "$tmp/aborted.xml"
begins_measuring aborted
kill -INT "${pid[aborted]}"
agrees aborted 130 1
has_case "aborted: an error" aborted 'name="end" .*<error message="aborted: '

start_server main --threads 1
load bereft main --steps 1 --warmup 0 --duration 600 --junit "$tmp/bereft.xml"
begins_measuring bereft
stop_server main
agrees bereft 1 1
has_case "bereft: the lost server is an error beside the verdict" bereft 'name="end" .*<error message="server_lost: '

run=("${bin}performance_test" "${over[@]}" "${steal[@]}" --environment native --quiet --output "$results")
gives "a file in no folder: refused before anything runs" 3 "^performance_test: --junit $tmp/no/x.xml: No such file [^"$'\n'"]*\$" \
    "${run[@]}" "${short[@]}" --junit "$tmp/no/x.xml"
gives "a folder in place of the file: refused" 3 "^performance_test: --junit $tmp: Is a directory; [^"$'\n'"]*\$" \
    "${run[@]}" "${short[@]}" --junit "$tmp"
gives "a summary that cannot be written: a warning, and the exit status of the run" 0 \
    "no summary in GITHUB_STEP_SUMMARY $tmp/no/x.md: No such file" env "GITHUB_STEP_SUMMARY=$tmp/no/x.md" "${run[@]}" "${short[@]}"

# ---- suites

cat >"$tmp/suite.json" <<'END'
{ "schema_version": 1, "name": "ci", "title": "For CI",
  "defaults": { "steps": 1, "duration": "300ms", "warmup": "100ms", "server-threads": 1, "threads": 1 },
  "entries": [
    { "name": "small", "title": "Small", "options": { "message-size": 64 } },
    { "name": "again", "title": "Again", "options": { "message-size": 64 }, "expect": [
      { "metric": "response_p50_ns", "max": 1e12, "source": "Any machine is as fast." },
      { "metric": "response_p99_ns", "max": 1, "source": "No machine is as fast." },
      { "metric": "churn_away_p50_ns", "max": 1, "source": "No client leaves." } ] },
    { "name": "two", "title": "Two", "options": { "workload": "small", "repeat": 2, "compare": "poll=event,adaptive" } } ] }
END
GITHUB_STEP_SUMMARY=$summary gives "suite: an expectation that was missed fails it" 1 '' "${run[@]}" --suite "$tmp/suite.json" \
    --name ci --junit "$tmp/ci.xml"
# shellcheck disable=SC2086  # the runs are a pattern
criteria() { # RUNS EXPECTATIONS
    jq -s "([.[].verdict[]] | length) + $2" "$results"/*-ci/*-ci-$1/run.json
}
is "suite: a suite for each entry, with a case for each criterion of its runs and each expectation" \
    "$(counts "$tmp/ci.xml" 2>&1 | sed -E 's/^([^ ]+ [0-9]+)( [0-9]+){3}/\1/' | paste -sd ,)" \
    "ci-small $(criteria small 0),ci-again $(criteria again 3),ci-two $(criteria 'two-*' 0)"
has_case "suite: the expectation that was missed" ci \
    '"ci-again\.1 client, 64 bytes" name="expected response_p99_ns".*<failure message="measured .*, wanted at most 1 ns"'
has_case "suite: the one that is not known" ci \
    'name="expected churn_away_p50_ns".*<skipped message="unknown: the figure is not known"/>'
has_case "suite: a criterion of a round" ci '"ci-two\.adaptive, round 2, 1 client'
is "suite: one summary for all of its runs" "$(grep -c '^# ' "$summary") $(grep -c '^# ci$' "$summary")" "3 1"

start halted "${run[@]}" --suite "$tmp/suite.json" --only small,two --duration 600 --name halted --junit "$tmp/halted.xml"
first_measures() {
    is_gone halted || grep -qs '"measuring"' "$results"/*-halted/*-ci-small/events.ndjson
}
wait_until 60 first_measures
kill -INT "${pid[halted]}"
end_of halted 60
is "suite: interrupted, an error, and what was not reached is skipped" "$status $(counts "$tmp/halted.xml" 2>&1 | paste -sd ,)" \
    "130 ci-small 1 0 1 0,ci-two 1 0 0 1"

# ---- doctor

"${bin}performance_test" doctor --json >"$tmp/doctor.json"
wanted=$?
GITHUB_STEP_SUMMARY=$summary gives "doctor: its exit status stays" "$wanted" '' "${bin}performance_test" doctor \
    --junit "$tmp/doctor.xml"
is "doctor: as many cases of each result as findings" "$(counts "$tmp/doctor.xml" 2>&1)" "$(jq -r '[.findings[].status] |
    "doctor \(length) \(map(select(. == "wrong")) | length) 0 \(map(select(. == "unknown")) | length)"' "$tmp/doctor.json")"
is "doctor: a summary" "$(grep -c '^# doctor$' "$summary")" 1
gives "doctor: a file in no folder: refused" 3 \
    "^performance_test doctor: --junit $tmp/no/x.xml: No such file [^"$'\n'"]*\$" \
    "${bin}performance_test" doctor --junit "$tmp/no/x.xml"
finish
