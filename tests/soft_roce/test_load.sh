#!/bin/bash
# performance_test against a server: 10, 100 and 1,000 clients connected at once without a failure; the open loop; and what
# becomes of both when one of them is killed or told to stop while they connect and while they send.
# alone
# shellcheck disable=SC2317  # what looks unreachable is called by name

. tests/soft_roce/lib.sh

# Conditions on values of a run.json.
run_says() { # NAME RUN TERM...
    local name=$1 file=$tmp/$2.json text
    shift 2
    if text=$("$programs/stats" --file "$file" "$@" 2>&1); then ok "$name"; else not_ok "$name" "$text"; fi
}

run_value() { # RUN PATH
    "$programs/stats" --file "$tmp/$1.json" "$2"
}

# ---- 10, 100, 1,000

# What other programs read of the server: CPU time in ms, context switches.
cpu_ms_of() { # PID
    sed 's/.*) //' "/proc/$1/stat" | awk -v ticks="$(getconf CLK_TCK)" '{ printf "%d\n", 1000 * ($12 + $13) / ticks }'
}
switches_of() { # PID
    cat "/proc/$1"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'
}
# The sum of the last figures of arrays of the server's samples, times UNIT.
series_end() { # RUN UNIT NAME...
    local run=$1 unit=$2 name
    shift 2
    for name; do
        run_value "$run" "resources_series.server.$name" | tr -d '[] \n' | tr ',' '\n' | grep -v null | tail -1
        echo
    done | awk -v unit="$unit" '{ n += $1 * unit } END { printf "%d\n", n }'
}
nearly() { # NAME VALUE EXPECTED PER_CENT: at most so much less, or a little more
    if (($2 * 100 >= $3 * (100 - $4) && $2 * 100 <= $3 * 105)); then ok "$1"; else not_ok "$1" "$2, not $3"; fi
}

start_server main --threads 2 --max-clients 1000 --verify --session-timeout 10
remember_start main
cpu_ms=$(cpu_ms_of "${pid[main]}")
switches=$(switches_of "${pid[main]}")
floor=5 load ramp main --steps 10,100,1000 --warmup 0.5 --duration 1.5
for n in 10 100 1000; do
    limit=90 counted "the server counts $n clients connected at once" main clients.connected=$n
done
# Sockets of the last handshakes may still be there.
descriptors=$(find "/proc/${pid[main]}/fd" -mindepth 1 | wc -l)
threads=$(find "/proc/${pid[main]}/task" -mindepth 1 -maxdepth 1 | wc -l)
end_of ramp 60
# On software RDMA connection times are shown and not judged.
is "the ramp ends by itself, all criteria that are judged are met" "$status" 0
((status == 0)) || cat "${logs[ramp]}"
is "no client was lost" "$(grep -cE 'FAIL .*(success|stability)| failed at ' "${logs[ramp]}")" 0
for i in 0 1 2; do
    n=$((10 ** (i + 1)))
    step=steps.$i
    run_says "$n clients: all held, none failed, all PSNs read back" ramp $step.target_clients=$n \
        $step.attempted=$n $step.connected_peak=$n $step.connected_held=$n $step.server_connected=$n \
        $step.failed=0 $step.dropped=0 $step.psn_verified=$n "$step.connect_ns.total.count=$n" \
        "$step.throughput_msgs_per_s>=10" "$step.response_ns.count>=$n"
    is "$n clients: no failures by stage" "$(run_value ramp $step.failures)" '[]'
    run_says "$n clients: Little's law holds within 5 %" ramp "$step.littles_law_residual>=-0.05" \
        "$step.littles_law_residual<=0.05"
    validity=$(run_value ramp $step.validity)
    is "$n clients: nothing against the step's validity" \
        "$(grep -oE 'littles_law|server_counts|pools_|replies_|clock_hole|step_timeout|not_measured' <<<"$validity")" ""
done
holds "connection times are not judged, whatever they are" ramp \
    '[.verdict[] | select(.result == "not_judged") | .criterion] | unique == ["connection time p50", "connection time p99"]' \
    '[.verdict[] | select(.result == "not_judged")] | length == 6' \
    '[.verdict[] | select(.criterion == "connection time p50") | .measured | test("^not judged .(emulated CPU|software RDMA): ")]
      | all'
holds "5 clients connect alone before the first step, and 5 after the last" ramp \
    '[.floor[] | .tried, .connected, .connect_ns.total.count] | unique == [5]' '[.floor[].failures[]] == []' \
    'three.follow_up == {"tried": 5, "connected": 5}' 'one.follow_up == null' \
    '.floor.before.connect_ns.total.p50 < three.connect_ns.total.p50' \
    '[.floor[].connect_ns, .steps[].connect_ns | .psn_generate.p50 > 0 and .psn_generate.p50 < .psn_exchange.p50] | all' \
    '[.steps[].server_stages_ns.psn_generate.count >= 10] | all'
matches "both are on the screen, with the longest stage" "$(<"${logs[ramp]}")" \
    'one at a time +[0-9.]+ +- +1.0  [a-z_]+ [0-9.]+ .[0-9]+ %.*10 clients +[0-9.]+ .*1000 clients .*alone afterwards'
counted "the server saw as many, and read back their PSNs" main events.established=1120 \
    events.psn_verified=1120 events.closed.peer_left=1120 events.closed.failed=0 events.receive_shortfalls=0
all_back "after the ramp everything is back" main
holds "on one machine there is no wire: the device's packets are known, bytes on a network are not" ramp \
    '[.steps[].network | .server, .generator | .loopback] | all' \
    '[.steps[].network | .server, .generator | .bytes_out, .bytes_in, .used_ratio] | unique == [null]' \
    '[.steps[] | (.throughput_msgs_per_s * .measured_s) as $n | .network | .server, .generator | .packets_out >= 1.8 * $n] | all'

# ---- open loop

for arrival in even poisson; do
    moves "open loop, $arrival: the rate that was asked for, and the times apart" open-$arrival \
        "--workload echo --steps 10 --rate 400 --arrival $arrival --duration 4" \
        'one.throughput_msgs_per_s >= 360' 'one.throughput_msgs_per_s <= 440' 'one.response_ns.count >= 1000' \
        'one.service_ns.count == one.response_ns.count' 'one.schedule_lag_ns.count == one.response_ns.count' \
        'one.response_ns.mean >= one.service_ns.mean'
done
moves "open loop: more than there is room for is late, not lost, and waits in its response time" overload \
    "--workload echo --steps 2 --rate-per-client 500000 --inflight 4" 'one.sent_late >= 100' \
    'one.response_ns.p50 > 2 * one.service_ns.p50'

moves "a sweep of offered rates: a step each, with the load that was asked for" sweep \
    "--workload echo --clients 4 --rate 100-400:3 --duration 2" '[.steps[].offered_per_s] == [100, 200, 400]' \
    '[.steps[] | .throughput_msgs_per_s / .offered_per_s | . >= 0.9 and . <= 1.1] | all' \
    '[.steps[].histograms.response] | unique | length == 3' '.analysis.offered_load.slo_rate == null' \
    '.analysis.offered_load.curves | length == 1' '.config.rates_per_s == [100, 200, 400]'
moves "--find-rate: nothing breaks up to the most, which is confirmed" find-rate \
    "--workload echo --clients 4 --find-rate --rate 100-200 --slo mean<20s --duration 1" \
    '.analysis.offered_load.slo_rate.per_s == 200' '.analysis.offered_load.slo_rate.confirmed' \
    '.verdict[-1].criterion == "rate"' '.analysis.capacity.slo_capacity.clients == null'

# ---- the generator is killed

load connecting main --steps 300
reaches main 60 'clients.connected>=60'
kill -KILL "${pid[connecting]}"
end_of connecting 5
is "kill -9 while connecting: the generator is gone" "$status" 137
mapfile -t seen < <(stats main events.established)
is "kill -9 while connecting: in the middle of it" "$((seen[0] > 1120 && seen[0] < 1420))" 1
limit=60 all_back "kill -9 while connecting: the server notices all, everything is back" main

load sending main --steps 50 --duration 60 --inflight 8
reaches main 60 clients.connected=50
mapfile -t seen < <(stats main events.messages_in)
limit=30 counted "50 clients send" main "events.messages_in>=$((seen[0] + 5000))"
kill -KILL "${pid[sending]}"
end_of sending 5
limit=60 all_back "kill -9 while sending: the server notices all, everything is back" main
serves "kill -9 while sending: the server serves" main

# ---- the generator is interrupted

load interrupted main --steps 20 --warmup 0 --duration 60
reaches main 60 clients.connected=20
mapfile -t seen < <(stats main events.messages_in)
reaches main 60 "events.messages_in>=$((seen[0] + 2000))"
kill -INT "${pid[interrupted]}"
ends "SIGINT: the generator drains and ends with 130, soon" interrupted 20 130 'interrupted: draining, results are kept'
run_says "SIGINT: what was measured is kept, and no client failed" interrupted run.exit_status=130 \
    steps.0.connected_held=20 steps.0.failed=0 steps.0.dropped=0 'steps.0.throughput_msgs_per_s>=10'
is "SIGINT: run.json says why" "$(run_value interrupted run.status) $(run_value interrupted run.stop_reason)" \
    'aborted aborted'
all_back "SIGINT: everything is back" main

# ---- the server is told to stop, and is killed

load bereft main --steps 20 --warmup 0 --duration 8
reaches main 60 clients.connected=20
mapfile -t seen < <(stats main events.messages_in)
reaches main 60 "events.messages_in>=$((seen[0] + 2000))"
stop_server main
end_of bereft 60
is "SIGTERM of the server: the generator ends with 1, a criterion failed" "$status" 1
run_says "SIGTERM of the server: all clients say draining" bereft steps.0.dropped=20 \
    steps.0.failures.traffic.draining=20 steps.0.connected_peak=20 steps.0.connected_held=0
is "SIGTERM of the server: run.json says so" "$(run_value bereft run.stop_reason)" server_lost

start_server doomed --threads 2 --max-clients 100
load orphaned doomed --steps 20 --warmup 0 --duration 8
reaches doomed 60 clients.connected=20 'events.messages_in>=2000'
kill -KILL "${pid[doomed]}"
end_of doomed 5
end_of orphaned 60
is "kill -9 of the server: the generator ends with 1, a criterion failed" "$status" 1
run_says "kill -9 of the server: all clients noticed" orphaned steps.0.dropped=20 steps.0.connected_held=0
matches "kill -9 of the server: failures by stage and code" "$(run_value orphaned steps.0.failures)" \
    '"stage":"traffic","code":"(closed_by_peer|wc:[a-z_]+)","count":[0-9]+'

# ---- a disk that is full

load cut own --steps 2 --warmup 0 --duration 0.3 --trace /dev/full
ends "a file that cannot be written: a line, and exit status 3" cut 60 3 'cannot write /dev/full: No space left'
holds "a file that cannot be written: run.json says so, and has the step" cut .run.files_incomplete \
    '.run.exit_status == 3' 'one.response_ns.count >= 10'
# run.json has room below the limit of a file's size, the page has not. Who ignores SIGXFSZ gets an error instead.
limit=60 gives "a report that cannot be written: a line, and exit status 3" 3 'no report: .*report.html' \
    bash -c 'trap "" XFSZ; ulimit -f 80; exec "$@"' - "${bin}performance_test" --environment native --quiet \
    --output "$results" --name page --steps 2 --warmup 0 --duration 0.3
is "a report that cannot be written: run.json says so" \
    "$(jq -c '.run | [.files_incomplete, .exit_status]' "$results"/*-page/run.json)" '[true,3]'

# ---- a server of the generator's own ends with it

load own own --steps 10 --warmup 0 --duration 60
server_of() {
    pgrep -P "${pid[own]}" -x rdma_server >"$tmp/child"
}
wait_until 60 server_of
child=$(<"$tmp/child")
kill -KILL "${pid[own]}"
end_of own 5
child_is_gone() {
    ! kill -0 "$child" 2>/dev/null
}
if [[ $child ]] && wait_until 60 child_is_gone; then
    ok "a killed generator takes its own server with it"
else
    not_ok "a killed generator takes its own server with it" "server '$child' is still there"
fi
finish
