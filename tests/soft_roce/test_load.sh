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

start_server main --threads 2 --max-clients 1000 --verify --session-timeout 10
remember_start main
load ramp main --steps 10,100,1000 --warmup 0.5 --duration 1.5
for n in 10 100 1000; do
    limit=90 counted "the server counts $n clients connected at once" main clients.connected=$n
done
end_of ramp 60
# Without KVM no connection takes less than a millisecond: that criterion may fail, nothing else.
matches "the ramp ends by itself (exit status 0, or 1 for a criterion)" "$status" '^[01]$'
((status < 2)) || cat "${logs[ramp]}"
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
counted "the server saw as many, and read back their PSNs" main events.established=1110 \
    events.psn_verified=1110 events.closed.peer_left=1110 events.closed.failed=0 events.receive_shortfalls=0
all_back "after the ramp everything is back" main

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

# ---- the generator is killed

load connecting main --steps 300
reaches main 60 'clients.connected>=60'
kill -KILL "${pid[connecting]}"
end_of connecting 5
is "kill -9 while connecting: the generator is gone" "$status" 137
mapfile -t seen < <(stats main events.established)
is "kill -9 while connecting: in the middle of it" "$((seen[0] > 1110 && seen[0] < 1410))" 1
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
    bash -c 'trap "" XFSZ; ulimit -f 48; exec "$@"' - "${bin}performance_test" --environment native --quiet \
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
