#!/bin/bash
# performance_test against a server: 10, 100 and 200 clients connected at once without a failure; an open loop; and what
# happens to either program when the other is killed while clients connect and while they send.
# shellcheck disable=SC2317  # what looks unreachable is called by name

. tests/soft_roce/lib.sh

# ---- 10, 100 and 200 clients

start_server main --threads 2 --max-clients 200 --verify
remember_start main
floor=5 load ramp main --steps 10,100,200 --warmup 0.3 --duration 3
for n in 10 100 200; do
    limit=240 counted "the server counts $n clients connected at once" main clients.connected=$n
done
end_of ramp 240
# Connection times on software RDMA are shown but not judged.
is "the ramp ends by itself, all criteria that are judged are met" "$status" 0
((status == 0)) || cat "${logs[ramp]}"
is "no client was lost" "$(grep -cE 'FAIL .*(success|stability)| failed at ' "${logs[ramp]}")" 0
i=0
for n in 10 100 200; do
    step=steps.$i
    i=$((i + 1))
    run_says "$n clients: all held, none failed, all PSNs read back" ramp $step.target_clients=$n \
        $step.attempted=$n $step.connected_peak=$n $step.connected_held=$n $step.server_connected=$n \
        $step.failed=0 $step.dropped=0 $step.psn_verified=$n "$step.connect_ns.total.count=$n" \
        "$step.throughput_msgs_per_s>=10" "$step.response_ns.count>=$n"
    is "$n clients: no failures by stage" "$(run_value ramp $step.failures)" '[]'
    run_says "$n clients: Little's law holds within 5 %" ramp "$step.littles_law_residual>=-0.05" \
        "$step.littles_law_residual<=0.05"
    validity=$(run_value ramp $step.validity)
    is "$n clients: nothing against the step's validity" \
        "$(grep -oE 'littles_law|server_counts|pools_|replies_|step_timeout|not_measured' <<<"$validity")" ""
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
matches "both are in the report, with the longest stage" "$("${bin}performance_test" report "$results"/*-ramp)" \
    'before the first step +5 +5 .* [a-z_]+ +[0-9.]+ +[0-9]+ .* 1[.]0.*among 10 clients +10 .*among 200 clients +200 .*after the last step +5 '
counted "the server saw as many, and read back their PSNs" main events.established=320 \
    events.psn_verified=320 events.closed.peer_left=320 events.closed.failed=0 events.receive_shortfalls=0
all_back "after the ramp everything is back" main
holds "on one machine there is no wire: the device's packets are known, bytes on a network are not" ramp \
    '[.steps[].network | .server, .generator | .loopback] | all' \
    '[.steps[].network | .server, .generator | .bytes_out, .bytes_in, .used_ratio] | unique == [null]' \
    '[.steps[] | (.throughput_msgs_per_s * .measured_s) as $n | .network | .server, .generator | .packets_out >= 1.8 * $n] | all'

# ---- the closed loop with a total, and the open loop (test_schedule.sh has the rest of both)

moves "READs with --total-inflight: 4 are in flight with 2 clients and with 8, and all clients take turns" total \
    "--workload read --steps 2,8 --total-inflight 4 --duration 1" \
    '[.steps[].littles_law_residual | fabs < 0.05] | all' '[.steps[].fairness.jain_index > 0.95] | all'

moves "open loop over RDMA: nothing is sent before it is due, and what is late waits in its response time" open \
    "--workload echo --steps 10 --rate 200 --duration 3" 'one.throughput_msgs_per_s <= 1.3 * one.offered_per_s' \
    'one.response_ns.count >= 100' 'one.service_ns.count == one.response_ns.count' \
    'one.schedule_lag_ns.count == one.response_ns.count' 'one.response_ns.mean >= one.service_ns.mean'

# ---- the generator is killed

# The server frees the sessions of killed clients when --session-timeout expires. The ramp above uses another server,
# because on a busy machine its clients may need more than 5 s from GRANT to RDMA connection.
start_server hasty --threads 2 --max-clients 120 --session-timeout 5
remember_start hasty
load connecting hasty --steps 120
reaches hasty 240 'clients.connected>=20'
kill -KILL "${pid[connecting]}"
end_of connecting 240
is "kill -9 while connecting: the generator is gone" "$status" 137
mapfile -t seen < <(stats hasty events.established)
is "kill -9 while connecting: in the middle of it" "$((seen[0] < 120))" 1
all_back "kill -9 while connecting: the server notices all, everything is back" hasty
stop_server hasty

load sending main --steps 30 --duration 60 --inflight 8
reaches main 240 clients.connected=30
mapfile -t seen < <(stats main events.messages_in)
counted "30 clients send" main "events.messages_in>=$((seen[0] + 2000))"
kill -KILL "${pid[sending]}"
end_of sending 240
all_back "kill -9 while sending: the server notices all, everything is back" main
serves "kill -9 while sending: the server serves" main

# ---- the server is killed

start_server doomed --threads 2 --max-clients 100
load orphaned doomed --steps 20 --warmup 0 --duration 60
reaches doomed 240 clients.connected=20 'events.messages_in>=1000'
kill -KILL "${pid[doomed]}"
end_of doomed 240
end_of orphaned 240
is "kill -9 of the server: the generator ends with 1, a criterion failed" "$status" 1
run_says "kill -9 of the server: all clients noticed" orphaned steps.0.dropped=20 steps.0.connected_held=0
matches "kill -9 of the server: failures by stage and code" "$(run_value orphaned steps.0.failures)" \
    '"stage":"traffic","code":"(closed_by_peer|wc:[a-z_]+)","count":[0-9]+'

finish
