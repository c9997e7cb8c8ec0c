#!/bin/bash
# What performance_test does around the data path, so over TCP: a line for each operation (--trace), messages that are joined in an
# open loop and while clients come and go, and a suite of runs. test_data.sh has the data path over RDMA.
# here

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

serving+=(--max-clients 32)
start_server data --threads 1 --credits 64 --message-size 64k --verify

# ---- sizes, repetitions, raw times

at=data
moves "--trace: a line for each operation; every size in every repetition" traced \
    "--workload echo --steps 2 --message-size 64,100 --repeat 2 --duration 0.3 --trace $tmp/trace.csv" \
    '[.steps[] | [.repetition, .message_bytes]] == [[1, 64], [1, 100], [2, 64], [2, 100]]' \
    '[.analysis.repetitions[] | .bytes, .messages_per_s.runs] == [64, 2, 100, 2]'
is "--trace: as many lines as were measured" "$(($(wc -l <"$tmp/trace.csv") - 1))" \
    "$(jq '[.steps[].response_ns.count] | add' "$tmp/traced.json")"
is "--trace: nothing ends before it is sent, nor is sent before it is due" \
    "$(tail -n +2 "$tmp/trace.csv" | awk -F, 'NF != 8 || $6 > $7 || $7 > $8' | wc -l)" 0

# ---- several messages in a record

at=
moves "--coalesce: the open loop waits for nothing, and joins what is due together" joined-open \
    "--workload small --steps 2 --coalesce 16 --rate 100-1000000:2 --inflight 40 --duration 1" \
    'one.throughput_msgs_per_s / one.sends_per_s < 1.5' 'one.throughput_msgs_per_s >= 80' \
    'two.throughput_msgs_per_s / two.sends_per_s > 1.5' 'two.service_ns.count == two.response_ns.count' \
    '.server_config.credits == 40'
moves "--coalesce: clients come and go" joined-churn \
    "--workload small --steps 10 --coalesce 16 --churn 10 --cycles 5" 'one.churn.cycles_failed == 0'

# ---- a suite of two runs and a comparison of two keys

cat >"$tmp/two.json" <<'END'
{ "schema_version": 1, "name": "two", "title": "Two runs and a comparison",
  "version": "2.1", "defaults": { "steps": 1, "duration": "300ms", "warmup": "100ms", "server-threads": 1, "threads": 1, "verify": true, "transport": "tcp" },
  "entries": [
    { "name": "ping", "title": "Pings", "options": { "workload": "pingpong", "message-size": [1, 64] } },
    { "name": "echo", "title": "Echoes", "options": { "message-size": "64k" } },
    { "name": "settings", "title": "Two keys", "options": { "workload": "small", "message-size": 1000, "repeat": 2,
      "compare": ["poll=event,adaptive", "coalesce=1,16"] } } ] }
END
start suite "${bin}performance_test" "${over[@]}" --environment native --suite "$tmp/two.json" --quiet --output "$tmp/suite"
# 1 and 4: connecting takes longer than a criterion allows, or there are too few connections to tell.
end_of suite 400
matches "--suite: it ends by itself" "$status" '^[014]$'
suite=("$tmp"/suite/*-suite-two)
suite_says() { # NAME CONDITION
    is "--suite: $1" "$(jq "$2" "${suite[0]}/suite.json" 2>&1)" true
}
suite_says "all entries, in their order" '[.entries[] | .id + " " + .status] ==
    ["two-ping ran", "two-echo ran", "two-settings ran"] and .status == "completed"'
suite_says "its build is known" '(.build.git_commit | type) == "string"'
is "--suite: the build ID is that of the program" "$(jq -r .build.build_id "${suite[0]}/suite.json")" \
    "$(readelf -n "${bin}performance_test" | sed -n 's/.*Build ID: //p')"
is "--suite: the file has its name, version and hash" "$(jq -r '.files[] | "\(.name) \(.version) \(.sha256)"' "${suite[0]}/suite.json")" \
    "two 2.1 $(sha256sum "$tmp/two.json" | cut -d' ' -f1)"
is "--suite: whole numbers have no fraction" "$(grep -c '"message_bytes": [0-9]*\.' "${suite[0]}/suite.json")" 0
suite_says "one server for the runs, others for the comparison" '[.entries[].server] == [1, 1, null]'
is "--suite: the server is the same process" \
    "$(jq -s '[.[].steps[].server_before.started_ns] | length == 3 and (unique | length) == 1' "${suite[0]}"/*-two-{ping,echo}/run.json)" true
# Name the two runs instead of using a glob: if both start within the same second, the glob sorts them by name, not by start time.
is "--suite: the figures are those of the runs" "$(jq -c '[.entries[0, 1].steps[] | .response_p50_ns, .throughput_bytes_per_s]' \
    "${suite[0]}/suite.json")" "$(jq -sc '[.[].steps[] | .response_ns.p50, .throughput_bytes_per_s]' \
    "${suite[0]}"/*-two-ping/run.json "${suite[0]}"/*-two-echo/run.json)"
suite_says "all combinations of two keys" '[.entries[2].comparison.alternatives[].name] ==
    ["poll=event,coalesce=1", "poll=event,coalesce=16", "poll=adaptive,coalesce=1", "poll=adaptive,coalesce=16"] and
    ([.entries[2].comparison.points[].candidates[].rows[] | select(.metric == "throughput_msgs_per_s") | .run.value > 0] ==
    [true, true, true])'
is "--suite: each run of the comparison has a folder, in the order of the rounds" \
    "$(jq -rs 'sort_by(.run.started_at) | [.[].run.id | sub(".*settings-"; "")] | join(" ")' "${suite[0]}"/*-two-settings-*/run.json)" \
    "1-1 1-2 1-3 1-4 2-4 2-3 2-2 2-1"
is "--suite: a chapter for each entry, which leads to the run's report" \
    "$(grep -c '<section id="\(summary\|two-\(ping\|echo\|settings\)\)"' "${suite[0]}/report.html") $(grep -o \
        'href="./[^"]*-two-ping/report.html"' "${suite[0]}/report.html" | wc -l)" "4 1"

# ---- does this need RDMA?

start need "${bin}performance_test" "${tls_options[@]}" "${steal[@]}" --environment native --compare transport=tcp,tls --slo 'p99<10s' \
    --price 0.04 --steps 2,4 --repeat 3 --duration 0.3 --warmup 0.1 --threads 1 --quiet --output "$tmp/need"
end_of need 200
need_says() { # NAME CONDITION
    is "--compare with --slo: $1" "$(jq -s ".[0].entries[0].comparison.need as \$need | .[1:] as \$runs | $2" \
        "$tmp"/need/*/suite.json "$tmp"/need/*/*/run.json 2>&1)" true
}
need_says "the rounds that met the objective are those of the runs" 'all($need.alternatives[]; .name as $name | all(.steps[];
    . as $tally | .met_rounds == ([$runs[] | select(.config.transport == $name) | .steps[] |
        select(.target_clients == $tally.clients and all(.slo[]; .result == "pass") and
        (.validity - ["clock_hole", "replies_stalled", "cpu_stolen", "cpu_throttled"] | length) == (.validity | length))] | length)))'
need_says "the sentence follows from them, and a client has a cost" '($need.sentence | startswith("TCP and TLS are enough here:")) ==
    all($need.alternatives[]; .met_up_to_clients == 4) and all($need.alternatives[]; .cost_per_client_month > 0)'
gives "--price: only for a comparison" 2 '--price: needs --compare' "${bin}performance_test" --slo 'p99<1ms' --price 1

sed 's/"64k"/"2G"/' "$tmp/two.json" >"$tmp/wrong.json"
gives "a suite with a mistake: the entry is named" 2 \
    '^performance_test: --suite: entry two-echo: --message-size: 2147483648 is not allowed' \
    "${bin}performance_test" "${over[@]}" --environment native --suite "$tmp/wrong.json"
gives "--only: a name that the suite lacks" 2 "^performance_test: --only: 'nothing' is no entry of the suite; allowed: ping, echo, settings\$" \
    "${bin}performance_test" "${over[@]}" --environment native --suite "$tmp/two.json" --only ping,nothing
"${bin}performance_test" "${over[@]}" --environment native --suite "$tmp/two.json" --only two-settings --quiet --output "$tmp/only" \
    --json - --trace "$tmp/raw.csv" >"$tmp/only.json"
matches "--only, --json, --trace: it ends by itself" $? '^[014]$'
is "--json: suite.json of this entry" "$(jq -c '[.entries[].id]' "$tmp/only.json")" '["two-settings"]'
is "--trace: a file for each run" "$(ls "$tmp"/raw-two-settings-*.csv | wc -l)" 8
# ---- expectations

cat >"$tmp/expect.json" <<'END'
{ "schema_version": 1, "name": "expect", "title": "Expectations", "defaults": { "steps": 1, "duration": "300ms", "transport": "tcp" },
  "entries": [
    { "name": "small", "title": "Small", "options": { "message-size": 64 } },
    { "name": "again", "title": "Small again", "options": { "message-size": 64 }, "expect": [
      { "metric": "response_p50_ns", "of": "small", "max_percent": 1e6, "source": "Two runs on one machine." } ] } ] }
END
sed 's/1e6/0.1/' "$tmp/expect.json" >"$tmp/missed.json"
for verdict in expect missed; do
    "${bin}performance_test" "${over[@]}" --environment native --suite "$tmp/$verdict.json" --quiet --output "$tmp/$verdict" >"$tmp/$verdict.log"
    status=$?
done
is "expect: met" "$(jq -r '.entries[1].expectations[].verdict' "$tmp"/expect/*/suite.json)" met
is "expect: missed" "$(jq -r '.entries[1].expectations[].verdict' "$tmp"/missed/*/suite.json)" missed
is "expect: missed, which the exit status and the terminal say" "$status $(grep -c 'at most 0.1 % of entry small .* missed$' "$tmp/missed.log")" "1 1"
gives "report: makes that of a suite again" 0 'Suite report: ' "${bin}performance_test" report "${suite[0]}"

finish
