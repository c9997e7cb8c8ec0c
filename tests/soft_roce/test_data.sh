#!/bin/bash
# The workloads of performance_test: each moves data, every byte of it as sent, on one connection and on many, with
# each setting of the data path. (test_load.sh has the open loop, whose rates are judged.)

. tests/soft_roce/lib.sh

# For the runs that are not about what a run asks of its own server.
start_server data --threads 1 --max-clients 32 --credits 64 --message-size 64k --region-size 16M --windows on --verify

# ---- every workload, every byte checked

at=data
for workload in echo pingpong small write read atomic mixed; do
    checked='[.steps[].verified.checked >= 20] | all'
    [[ $workload != small ]] || checked='[.steps[].verified.server_checked >= 20] | all'
    moves "$workload: 1 client and 20, all as sent" $workload "--workload $workload --steps 1,20" "$checked"
done
moves "mixed: with atomics" mixture "--workload mixed --steps 4 --mix 3:2:1 --message-size 4k" \
    'one.verified.checked >= 20'
at=

for operation in write read send; do
    checked='[.steps[].verified.checked >= 2] | all'
    [[ $operation != send ]] || checked='[.steps[].verified.server_checked >= 2] | all'
    moves "large by $operation: all as sent" large-$operation \
        "--workload large --operation $operation --steps 2 --message-size 64k,3000001 --inflight 1 --duration 2" "$checked" \
        'one.message_bytes == 65536' 'two.message_bytes == 3000001' \
        'one.throughput_bytes_per_s / one.throughput_msgs_per_s | round == 65536'
done
at=data
moves "duplex: both directions, all as sent" duplex \
    "--workload duplex --steps 2 --message-size 1M --inflight 2 --duration 2" \
    'one.streams.to_server.bytes_per_s > 0' 'one.streams.from_server.bytes_per_s > 0' \
    '(one.streams | map(.bytes_per_s) | add) - one.throughput_bytes_per_s | fabs < 1' 'one.verified.checked >= 2'
moves "duplex: small ones, many under way" duplex-small \
    "--workload duplex --steps 3 --message-size 1,100,5000 --inflight 16" '[.steps[].verified.checked >= 20] | all' \
    '[.steps[].streams.from_server.bytes_per_s > 0] | all'
moves "duplex: while clients come and go" duplex-churning \
    "--workload duplex --steps 4 --message-size 64k --churn 5 --duration 2" 'one.churn.cycles_failed == 0'
at=
start_server shut --threads 1 --max-clients 4 --region-size 64k
gives "duplex: a server that writes to no windows: one line that says so" 3 \
    "^performance_test: the workload has the server write to its clients' memory.* --windows off\$" \
    "${bin}performance_test" "${tls_options[@]}" --server "$host" --tls-port "${port[shut]}" --quiet \
    --output "$results" --workload duplex --steps 1 --message-size 1k
stop_server shut

gives "a request larger than the device moves: one line that says so" 3 \
    '--message-size: 16777216 bytes are more than device .* moves with one request' \
    "${bin}performance_test" --environment native --quiet --output "$results" --workload write --steps 1 \
    --message-size 16M

# ---- sizes

at=data
moves "sizes: one step each, doubled from 1 to 64" sizes "--workload pingpong --steps 1 --message-size 1-64" \
    '[.steps[].message_bytes] == [1, 2, 4, 8, 16, 32, 64]'
moves "sizes: every size in every repetition" repeated \
    "--workload echo --steps 2 --message-size 64,100 --repeat 2" \
    '[.steps[] | [.repetition, .message_bytes]] == [[1, 64], [1, 100], [2, 64], [2, 100]]' \
    '[.analysis.repetitions[] | .bytes, .messages_per_s.runs] == [64, 2, 100, 2]'

# ---- tags

moves "--message-auth: echo" tagged "--workload echo --steps 1,10 --message-size 32,64,4k --message-auth" \
    '[.steps[].verified.checked >= 10] | all'
moves "--message-auth: one-way" tagged-small "--workload small --steps 3 --message-size 64 --message-auth"

# ---- several messages in a SEND

at=
# Of N joined messages each is checked; a SEND holds N, but where what ended was not a multiple.
joined='[.steps[] | .verified.server_checked >= 20, .sends_per_s < .throughput_msgs_per_s / 8] | all'
moves "--coalesce: 1 client and 20, all as sent" joined \
    "--workload small --steps 1,20 --message-size 64,1000 --coalesce 16" "$joined" '.config.coalesce == 16' \
    '.server_config.credits == 4' '.server_config.message_bytes == 16000'
moves "--coalesce: with tags" joined-tagged \
    "--workload small --steps 1,20 --message-size 64,1000 --coalesce 16 --message-auth" "$joined"
moves "--coalesce: windows that are no multiple, and sizes that are odd" joined-odd \
    "--workload small --steps 3 --message-size 37,333 --coalesce 16 --inflight 50 --message-auth" \
    '[.steps[] | .sends_per_s < .throughput_msgs_per_s / 6] | all' '.server_config.credits == 4'
moves "--coalesce: one SEND holds the window" joined-window "--workload small --steps 3 --coalesce 64 --inflight 40" \
    '[.steps[] | .throughput_msgs_per_s / .sends_per_s | . > 39.9 and . < 40.1] | all' '.server_config.credits == 1'
moves "--coalesce: the open loop joins what is due together" joined-open \
    "--workload small --steps 2 --coalesce 16 --rate-per-client 500000 --inflight 40" \
    'one.throughput_msgs_per_s / one.sends_per_s > 1.5' 'one.service_ns.count == one.response_ns.count' \
    '.server_config.credits == 40'
moves "--coalesce: the open loop waits for nothing" joined-slow \
    "--workload small --steps 2 --coalesce 16 --rate 100 --duration 2" \
    'one.throughput_msgs_per_s / one.sends_per_s < 1.5' 'one.throughput_msgs_per_s >= 80'
moves "--coalesce: clients come and go" joined-churn \
    "--workload small --steps 10 --coalesce 16 --churn 10 --duration 2" 'one.churn.cycles_failed == 0'

# ---- raw times

at=data
moves "--trace: a line for each operation" traced "--workload echo --steps 2,4 --trace $tmp/trace.csv"
is "--trace: as many lines as were measured" "$(($(wc -l <"$tmp/trace.csv") - 1))" \
    "$(jq '[.steps[].response_ns.count] | add' "$tmp/traced.json")"
is "--trace: nothing ends before it is sent, nor is sent before it is due" \
    "$(tail -n +2 "$tmp/trace.csv" | awk -F, 'NF != 8 || $6 > $7 || $7 > $8' | wc -l)" 0

# ---- settings, of both sides

at=
n=0
for setting in "--inline off" "--inline 64" "--post-list 1" "--post-list 64" "--signal-every 1" "--signal-every 16" \
    "--path-mtu 256" "--poll busy" "--poll adaptive --spin 20us" "--cpu-list 0" "--cq-depth 8192" "--srq-depth 1300"; do
    n=$((n + 1))
    moves "$setting" setting-$n "--workload small --steps 3 --message-size 64,1000 --duration 0.3 $setting"
done
at=data
moves "--signal-every: writes" signals "--workload write --steps 3 --signal-every 8 --inflight 32"
moves "messages under way while clients come and go" churning \
    "--workload echo --steps 10 --churn 10 --inflight 8 --duration 2" 'one.churn.cycles_failed == 0' \
    'one.churn.cycles >= 5'

finish
