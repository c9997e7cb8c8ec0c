#!/bin/bash
# The workloads of performance_test: each moves data, every byte of it as sent, on one connection and on many, with
# each setting of the data path. (test_load.sh has the open loop, whose rates are judged.)

. tests/soft_roce/lib.sh

# For the runs that are not about what a run asks of its own server.
start_server data --threads 1 --max-clients 32 --credits 64 --message-size 64k --region-size 16M --windows on --verify

# ---- every workload, every byte checked

at=data
for workload in echo small read atomic mixed; do
    checked='[.steps[].verified.checked >= 20] | all'
    [[ $workload != small ]] || checked='[.steps[].verified.server_checked >= 20] | all'
    moves "$workload: 1 client and 20, all as sent" $workload "--workload $workload --steps 1,20" "$checked"
done
moves "write: 1 client and 20, with fewer completions, all as sent" write \
    "--workload write --steps 1,20 --signal-every 8 --inflight 32" '[.steps[].verified.checked >= 20] | all'
moves "pingpong: 1 client and 20, sizes doubled from 1 to 4, each client's 300 measured after 30, all as sent" pingpong \
    "--workload pingpong --steps 1,20 --message-size 1-4 --iterations 300" '[.steps[].verified.checked >= 20] | all' \
    '[.steps[].message_bytes] == [1, 2, 4, 1, 2, 4]' '.config.iterations == 300' '.config.warmup_iterations == 30' \
    '[.steps[].response_ns.count] == [300, 300, 300, 6000, 6000, 6000]' \
    '[.steps[] | .throughput_msgs_per_s * .measured_s - .response_ns.count | fabs < 2] | all'
holds "pingpong: half of the round trip beside it" pingpong \
    '[.steps[] | .response_ns.p99 - 2 * .one_way_ns.p99 | . >= 0 and . <= 1] | all' \
    '[.steps[] | .response_ns.mean / .one_way_ns.mean - 2 | fabs < 1e-6] | all'
moves "mixed: with atomics" mixture "--workload mixed --steps 4 --mix 3:2:1 --message-size 4k" \
    'one.verified.checked >= 20'
holds "mixed: rate and latency of each kind" mixture \
    '(one.kinds | map(.response_ns.count) | add) == one.response_ns.count' \
    'one.kinds.write.msgs_per_s / one.kinds.atomic.msgs_per_s | . > 2.5 and . < 3.5' \
    'one.kinds.atomic.bytes_per_s / one.kinds.atomic.msgs_per_s | round == 8' \
    'one.kinds.read.bytes_per_s / one.kinds.read.msgs_per_s | round == 4096'

at=
for operation in write write-imm read send; do
    checked='[.steps[].verified.checked >= 2] | all'
    [[ $operation != send ]] || checked='[.steps[].verified.server_checked >= 2] | all'
    moves "large by $operation: all as sent, as many as --iterations" large-$operation "--workload large \
        --operation $operation --steps 2 --message-size 64k,1000001 --inflight 1 --iterations 3 --trace $tmp/$operation.csv" \
        "$checked" 'one.message_bytes == 65536' 'two.message_bytes == 1000001' '[.steps[].response_ns.count] == [6, 6]' \
        'one.throughput_bytes_per_s / one.throughput_msgs_per_s | round == 65536'
    # Of both clients, with each size.
    is "large by $operation: the trace has the measured operations, after one of warm-up" "$(awk -F, \
        'NR > 1 { of[$2 "," $4] = of[$2 "," $4] $5 } END { for (i in of) printf "%s ", of[i] }' "$tmp/$operation.csv")" \
        '123 123 123 123 '
done
at=data
moves "duplex: both directions, all as sent, as many as --iterations in each" duplex \
    "--workload duplex --steps 2 --message-size 1M --inflight 2 --iterations 10 --warmup-iterations 0" \
    'one.streams.to_server.bytes_per_s > 0' 'one.streams.from_server.bytes_per_s > 0' \
    '(one.streams | map(.bytes_per_s) | add) - one.throughput_bytes_per_s | fabs < 1' 'one.verified.checked >= 2' \
    'one.response_ns.count == 40'
# Each direction has its own latency, and what waits in it for earlier operations: with 2 in flight, half of the time at most.
holds "duplex: latency, fairness and head-of-line share of each direction" duplex \
    '[one.streams[] | .response_ns.p50 > 0, .fairness.clients == 2, .head_of_line_ratio > 0, .head_of_line_ratio <= 0.5] | all' \
    '(one.streams | map(.response_ns.count) | add) == one.response_ns.count'
moves "duplex: small ones, many under way" duplex-small \
    "--workload duplex --steps 3 --message-size 1,100,5000 --inflight 16" '[.steps[].verified.checked >= 20] | all' \
    '[.steps[].streams.from_server.bytes_per_s > 0] | all'
moves "duplex: while clients come and go" duplex-churning \
    "--workload duplex --steps 4 --message-size 64k --churn 5 --cycles 3" 'one.churn.cycles_failed == 0'
at=
start_server shut --threads 1 --max-clients 4 --region-size 64k
gives "duplex: a server that writes to no windows: one line that says so" 3 \
    "^performance_test: the workload has the server write to its clients' memory.* --windows off\$" \
    "${bin}performance_test" "${tls_options[@]}" --server "$host" --tls-port "${port[shut]}" --quiet \
    --output "$results" --workload duplex --steps 1 --message-size 1k
gives "a workload that needs more credits than a client gets: one line with both numbers" 3 \
    "^performance_test: 17 messages in flight \(--inflight\) are more than the server's --credits 16\$" \
    "${bin}performance_test" "${tls_options[@]}" --server "$host" --tls-port "${port[shut]}" --quiet \
    --output "$results" --steps 1 --inflight 17
gives "a workload that needs a larger region: one line with both numbers" 3 \
    "^performance_test: the workload needs a region of [0-9]+ bytes, more than the server's --region-size 65536\$" \
    "${bin}performance_test" "${tls_options[@]}" --server "$host" --tls-port "${port[shut]}" --quiet \
    --output "$results" --workload write --steps 1 --message-size 1M
stop_server shut

gives "a request larger than the device moves: one line that says so" 3 \
    '--message-size: 16777216 bytes are more than device .* moves with one request' \
    "${bin}performance_test" --environment native --quiet --output "$results" --workload write --steps 1 \
    --message-size 16M

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

# ---- tags

moves "--message-auth: echo" tagged "--workload echo --steps 10 --message-size 32,64,4k --message-auth" \
    '[.steps[].verified.checked >= 10] | all'

# ---- several messages in a SEND

at=
# Of N joined messages each is checked; a SEND holds N, but where what ended was not a multiple.
joined='[.steps[] | .verified.server_checked >= 20, .sends_per_s < .throughput_msgs_per_s / 8] | all'
moves "--coalesce: 1 client and 20, all as sent" joined \
    "--workload small --steps 1,20 --message-size 64,1000 --coalesce 16" "$joined" '.config.coalesce == 16' \
    '.server_config.credits == 4' '.server_config.message_bytes == 16000'
moves "--coalesce: with tags, windows that are no multiple, and sizes that are odd" joined-odd \
    "--workload small --steps 20 --message-size 37,333 --coalesce 16 --inflight 50 --message-auth" \
    '[.steps[] | .verified.server_checked >= 20, .sends_per_s < .throughput_msgs_per_s / 6] | all' \
    '.server_config.credits == 4'
moves "--coalesce: one SEND holds the window" joined-window "--workload small --steps 3 --coalesce 64 --inflight 40" \
    '[.steps[] | .throughput_msgs_per_s / .sends_per_s | . > 39.9 and . < 40.1] | all' '.server_config.credits == 1'
moves "--coalesce: the open loop waits for nothing, and joins what is due together" joined-open \
    "--workload small --steps 2 --coalesce 16 --rate 100-1000000:2 --inflight 40 --duration 1" \
    'one.throughput_msgs_per_s / one.sends_per_s < 1.5' 'one.throughput_msgs_per_s >= 80' \
    'two.throughput_msgs_per_s / two.sends_per_s > 1.5' 'two.service_ns.count == two.response_ns.count' \
    '.server_config.credits == 40'
moves "--coalesce: clients come and go" joined-churn \
    "--workload small --steps 10 --coalesce 16 --churn 10 --cycles 5" 'one.churn.cycles_failed == 0'

# ---- settings, of both sides

# The least of each setting in one run, the most in another; those that spin on a processor apart.
least="--inline off --post-list 1 --signal-every 1 --cpu-list 0"
moves "$least" least "--workload small --steps 3 --message-size 64,1000 --duration 0.3 $least" '.analysis.not_taken == []' \
    '[.steps[].effective[].threads[].inline_wanted_bytes] | unique == [0]' \
    '[.steps[].effective[].requests_per_doorbell] | unique == [1]' 'one.effective.generator.signalled_ratio > 0.99' \
    '[.steps[].effective[].threads[] | .cpus, .cpu] | unique == [0, "0"]'
most="--inline 64 --post-list 64 --signal-every 16 --poll adaptive --spin 20us --path-mtu 256 --cq-depth 8192 --srq-depth 1300"
moves "$most, with tags" most "--workload small --steps 3 --message-size 64,1000 --duration 0.3 --message-auth $most" \
    '.analysis.not_taken == []' '[.steps[].effective[].threads[] | .inline_granted_bytes >= 64] | all' \
    'one.effective.generator.requests_per_doorbell > 1' \
    'one.effective.generator | .signalled_ratio < 0.9 and .signalled_ratio > 0' \
    '[.steps[].effective[].threads[].qp.path_mtu_bytes] | unique == [256]'
# So few messages that a thread that spins finds nothing most of the time, however the processors are shared.
moves "--poll busy" busy "--workload small --steps 3 --message-size 64,1000 --duration 0.5 --rate 300 --poll busy" \
    '.analysis.not_taken == []' 'one.effective.generator | .empty_polls > .completions and .polls > .empty_polls'
moves "--numa auto: Soft-RoCE has no NUMA node, so nothing changes, which is said" numa \
    "--workload small --steps 3 --message-size 64 --duration 0.3 --numa auto" \
    '[.steps[].effective[].threads[].device_numa_node] | unique == [null]' \
    '[.analysis.not_taken[] | .setting, .side] == ["--numa", "generator", "--numa", "server"]'
is "--numa auto: one warning line for each side" \
    "$(grep -c -- "--numa: .* the [a-z]* got any CPU: the device's NUMA node is not known" "${logs[numa]}")" 2
is "--numa auto without a node: threads may run where they may without it" \
    "$(jq -c '[.steps[0].effective[].threads[0].cpus]' "$tmp/numa.json")" \
    "$(jq -c '[.steps[0].effective[].threads[0].cpus]' "$tmp/most.json")"
thread=$(jq '.steps[0].effective.server.threads[0].tid' "$tmp/write.json")
is "effective: the server's thread may run where /proc says" \
    "$(jq -r '.steps[0].effective.server.threads[0].cpus' "$tmp/write.json")" \
    "$(awk '/^Cpus_allowed_list/ { print $2 }' "/proc/${pid[data]}/task/$thread/status")"
holds "effective: the queue pair has the defaults" write \
    '[one.effective[].threads[].qp | .ack_timeout_ns, .retry_count, .rnr_retry, .rnr_timer_ns] ==
     [268435456, 6, 7, 5120000, 268435456, 6, 7, 5120000]' '[.steps[].effective[].threads[].credits > 0] | all'
is "effective: the libraries that are loaded" "$(jq -r '.environment.server.libraries.openssl' "$tmp/write.json")" \
    "$(openssl version | sed 's/ *(.*//')"
at=data
moves "messages under way while clients come and go" churning \
    "--workload echo --steps 10 --churn 10 --cycles 5 --inflight 8" 'one.churn.cycles_failed == 0' 'one.churn.cycles >= 5'

# ---- a suite of two runs and a comparison of two keys

cat >"$tmp/two.json" <<'END'
{ "schema_version": 1, "name": "two", "title": "Two runs and a comparison",
  "defaults": { "steps": 1, "duration": "300ms", "warmup": "100ms", "server-threads": 1, "threads": 1, "verify": true },
  "entries": [
    { "name": "ping", "title": "Pings", "options": { "workload": "pingpong", "message-size": [1, 64] } },
    { "name": "write", "title": "Writes", "options": { "workload": "write", "message-size": "64k" } },
    { "name": "lacks", "title": "No such device", "options": { "workload": "duplex", "device": "@1,@8" } },
    { "name": "settings", "title": "Two keys", "options": { "workload": "small", "message-size": 1000, "repeat": 2,
      "compare": ["inline=off,4096", "post-list=1,16"] } } ] }
END
timeout -k 2 300 "${bin}performance_test" --environment native --suite "$tmp/two.json" --quiet --output "$tmp/suite" \
    >"$tmp/suite.out" 2>&1
# 4: an entry was skipped; 1: connecting takes longer than a criterion allows.
matches "--suite: it ends by itself" "$?" '^[14]$'
suite=("$tmp"/suite/*-suite-two)
suite_says() { # NAME CONDITION
    is "--suite: $1" "$(jq "$2" "${suite[0]}/suite.json" 2>&1)" true
}
suite_says "all entries, in their order" '[.entries[] | .id + " " + .status] ==
    ["two-ping ran", "two-write ran", "two-lacks skipped", "two-settings ran"] and .status == "completed"'
suite_says "one server for the runs, others for the comparison" '[.entries[].server] == [1, 1, null, null]'
is "--suite: the server is the same process" \
    "$(jq -s '[.[].steps[].server_before.started_ns] | length == 3 and (unique | length) == 1' "${suite[0]}"/*-two-*/run.json)" true
is "--suite: the figures are those of the runs" "$(jq -c '[.entries[0, 1].steps[] | .response_p50_ns, .bytes_per_s]' \
    "${suite[0]}/suite.json")" "$(jq -sc '[.[].steps[] | .response_ns.p50, .throughput_bytes_per_s]' "${suite[0]}"/*-two-*/run.json)"
suite_says "all combinations of two keys" '[.entries[3].comparison.alternatives[].name] ==
    ["inline=off,post-list=1", "inline=off,post-list=16", "inline=4096,post-list=1", "inline=4096,post-list=16"] and
    ([.entries[3].comparison.points[].candidates[].rows[] | select(.metric == "throughput_msgs_per_s") | .run.value > 0] ==
    [true, true, true])'
is "--suite: compare.json says the same" "$(jq -c . "${suite[0]}"/*-two-settings/compare.json)" \
    "$(jq -c '.entries[3].comparison' "${suite[0]}/suite.json")"
cp "${suite[0]}"/*-two-settings/*-1-3/run.json "$tmp/inline-4096.json"
holds "--inline 4096: Soft-RoCE grants 512, which is said" inline-4096 "${well[@]}" \
    '[.steps[].effective[].threads[] | .inline_wanted_bytes, .inline_granted_bytes] == [1000, 512, 1000, 512]' \
    '[.analysis.not_taken[] | .setting, .side, .asked, .got] ==
     ["--inline", "generator", "1000 bytes", "512 bytes", "--inline", "server", "1000 bytes", "512 bytes"]' \
    '[.steps[].verified | .corrupt, .server_corrupt] | unique == [0]'
is "--inline 4096: one warning line for each side, in each of two rounds of two alternatives" \
    "$(grep -c -- '--inline: 1000 bytes were asked for, the [a-z]* got 512 bytes' "$tmp/suite.out")" 8
is "--suite: a chapter for each entry, which leads to the run's report" \
    "$(grep -c '<section id="\(summary\|two-\(ping\|write\|lacks\|settings\)\)"' "${suite[0]}/report.html") $(grep -o \
        'href="./[^"]*-two-ping/report.html"' "${suite[0]}/report.html" | wc -l)" "5 1"
sed 's/"64k"/"2G"/' "$tmp/two.json" >"$tmp/wrong.json"
gives "a suite with a mistake: the entry is named" 2 \
    '^performance_test: --suite: entry two-write: --message-size: 2147483648 is not allowed' \
    "${bin}performance_test" --environment native --suite "$tmp/wrong.json"
gives "report: makes that of a suite again" 0 '# Suite report: ' "${bin}performance_test" report "${suite[0]}"

finish
