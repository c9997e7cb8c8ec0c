#!/bin/bash
# The workloads of performance_test: each moves data, every byte unchanged, on one connection and on many, with each
# setting of the data path. (test_load.sh has the open loop, whose rates are judged.)

. tests/soft_roce/lib.sh

# This server is for runs that do not test what a run asks of its own server.
start_server data --threads 1 --max-clients 32 --credits 64 --message-size 64k --region-size 16M --windows on --verify

# ---- every workload, every byte checked

at=data
for workload in echo small read atomic mixed; do
    checked='[.steps[].verified.checked >= 20] | all'
    [[ $workload != small ]] || checked='[.steps[].verified.server_checked >= 20] | all'
    moves "$workload: 1 client and 8, all as sent" $workload "--workload $workload --steps 1,8" "$checked"
done
ack_timeout='' moves "write: 1 client and 8, with fewer completions, all as sent" write \
    "--workload write --steps 1,8 --signal-every 8 --inflight 32" '[.steps[].verified.checked >= 20] | all'
moves "pingpong: 1 client and 8, sizes doubled from 1 to 4, each client's 300 measured after 30, all as sent" pingpong \
    "--workload pingpong --steps 1,8 --message-size 1-4 --iterations 300" '[.steps[].verified.checked >= 20] | all' \
    '[.steps[].message_bytes] == [1, 2, 4, 1, 2, 4]' '.config.iterations == 300' '.config.warmup_iterations == 30' \
    '[.steps[].response_ns.count] == [300, 300, 300, 2400, 2400, 2400]' \
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
    # The trace has lines of both clients, for each size.
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
# Each direction has its own latency and head-of-line share, which with 2 in flight is at most half.
holds "duplex: latency, fairness and head-of-line share of each direction" duplex \
    '[one.streams[] | .response_ns.p50 > 0, .fairness.clients == 2, .head_of_line_ratio > 0, .head_of_line_ratio <= 0.5] | all' \
    '(one.streams | map(.response_ns.count) | add) == one.response_ns.count'
moves "duplex: small ones, many under way" duplex-small \
    "--workload duplex --steps 3 --message-size 1,100,5000 --inflight 16" '[.steps[].verified.checked >= 20] | all' \
    '[.steps[].streams.from_server.bytes_per_s > 0] | all'
moves "duplex: while clients come and go" duplex-churning \
    "--workload duplex --steps 4 --message-size 64k --churn 10 --cycles 3" 'one.churn.cycles_failed == 0'
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

# ---- several messages in a SEND

at=
# Each of the N joined messages is checked. A SEND holds N, except if a batch ends with fewer.
joined='[.steps[] | .verified.server_checked >= 20, .sends_per_s < .throughput_msgs_per_s / 8] | all'
moves "--message-auth: echo" tagged "--workload echo --steps 8 --message-size 32,64,4k --message-auth" \
    '[.steps[].verified.checked >= 8] | all'
moves "--coalesce: 1 client and 8, all as sent" joined \
    "--workload small --steps 1,8 --message-size 64,1000 --coalesce 16" "$joined" '.config.coalesce == 16' \
    '.server_config.credits == 4' '.server_config.message_bytes == 16000'
moves "--coalesce: with tags, windows that are no multiple, and sizes that are odd" joined-odd \
    "--workload small --steps 8 --message-size 37,333 --coalesce 16 --inflight 50 --message-auth" \
    '[.steps[] | .verified.server_checked >= 20, .sends_per_s < .throughput_msgs_per_s / 6] | all' \
    '.server_config.credits == 4'
moves "--coalesce: one SEND holds the window" joined-window \
    "--workload small --steps 3 --coalesce 64 --inflight 40 --iterations 400" \
    '[.steps[] | .throughput_msgs_per_s / .sends_per_s | . > 39.9 and . < 40.1] | all' '.server_config.credits == 1'
at=data
moves "messages under way while clients come and go" churning \
    "--workload echo --steps 8 --churn 10 --cycles 5 --inflight 8" 'one.churn.cycles_failed == 0' 'one.churn.cycles >= 5'
at=

# ---- a suite (test_suite.sh has one of several runs and a comparison)

cat >"$tmp/two.json" <<'END'
{ "schema_version": 1, "name": "two", "title": "A run, and one that is skipped",
  "defaults": { "steps": 1, "duration": "300ms", "warmup": "100ms", "server-threads": 1, "threads": 1, "verify": true },
  "entries": [
    { "name": "write", "title": "Writes", "options": { "workload": "write", "message-size": "64k" } },
    { "name": "lacks", "title": "No such device", "options": { "workload": "duplex", "device": "@1,@8" } } ] }
END
gives "--suite: an entry that wants more devices than there are is skipped, which the exit status says" 4 '' \
    "${bin}performance_test" --environment native --suite "$tmp/two.json" --quiet --output "$tmp/suite"
is "--suite: the other entry ran" "$(jq -c '[.status, [.entries[] | .id + " " + .status]]' "$tmp"/suite/*-suite-two/suite.json)" \
    '["completed",["two-write ran","two-lacks skipped"]]'

# ---- settings, on both sides

# The least of each setting in one run, the most in another; the settings that occupy a CPU run separately.
least="--inline off --post-list 1 --signal-every 1 --cpu-list 0"
moves "$least" least "--workload small --steps 3 --message-size 64,1000 $least" '.analysis.not_taken == []' \
    '[.steps[].effective[].threads[].inline_wanted_bytes] | unique == [0]' \
    '[.steps[].effective[].requests_per_doorbell] | unique == [1]' 'one.effective.generator.signalled_ratio > 0.99' \
    '[.steps[].effective[].threads[] | .cpus, .cpu] | unique == [0, "0"]'
most="--inline 64 --post-list 64 --signal-every 16 --poll adaptive --spin 20us --path-mtu 256 --cq-depth 8192 --srq-depth 1300"
moves "$most, with tags" most "--workload small --steps 3 --message-size 64,1000 --message-auth $most" \
    '.analysis.not_taken == []' '[.steps[].effective[].threads[] | .inline_granted_bytes >= 64] | all' \
    'one.effective.generator.requests_per_doorbell > 1' \
    'one.effective.generator | .signalled_ratio < 0.9 and .signalled_ratio > 0' \
    '[.steps[].effective[].threads[].qp.path_mtu_bytes] | unique == [256]'
# The rate is so low that a spinning thread usually finds nothing, however the CPUs are shared.
moves "--poll busy" busy "--workload small --steps 3 --message-size 64,1000 --duration 0.5 --rate 300 --poll busy" \
    '.analysis.not_taken == []' 'one.effective.generator | .empty_polls > .completions and .polls > .empty_polls'
moves "--numa auto, --relaxed-ordering on: Soft-RoCE has neither node nor PCI bus, so nothing changes, which is said" numa \
    "--workload small --steps 3 --message-size 64 --numa auto --relaxed-ordering on" \
    '[.steps[].effective[].threads[].device_numa_node] | unique == [null]' \
    '[.analysis.not_taken[] | .setting + " " + .side] ==
     ["--relaxed-ordering generator", "--numa generator", "--relaxed-ordering server", "--numa server"]' \
    '[.steps[].effective[].threads[].relaxed_ordering] | unique == [false]'
moves "--inline 4096: Soft-RoCE grants 512, which is said" inline-4096 \
    "--workload small --steps 1 --message-size 1000 --inline 4096" \
    '[.steps[].effective[].threads[] | .inline_wanted_bytes, .inline_granted_bytes] == [1000, 512, 1000, 512]' \
    '[.analysis.not_taken[] | .setting, .side, .asked, .got] ==
     ["--inline", "generator", "1000 bytes", "512 bytes", "--inline", "server", "1000 bytes", "512 bytes"]'
is "--inline 4096: one warning line for each side" \
    "$(grep -c -- '--inline: asked for 1000 bytes, the [a-z]* got 512 bytes' "${logs[inline-4096]}")" 2
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
finish
