#!/bin/bash
# Clients that come and go: some leave and come back all the time, more come at once than the server takes, it
# does not answer for a while or has no room just then, and some die without a word.

. tests/soft_roce/lib.sh

# ---- clients leave and come back

start_server main --threads 2 --max-clients 40 --verify
remember_start main
mapfile -t at_start < <(stats main resources.mrs resources.cqs resources.fds)
# At 20 a second 130 cycles take longer than the 5.3 s for which a queue pair rests.
loads churn main --churn 20 --cycles 130 --tls-resume --steps 20 --warmup 0
holds "--churn 20 --cycles 130: all came back" churn 'one.churn.cycles >= 130' 'one.churn.cycles_failed == 0' \
    'one.churn.away_ns.count == one.churn.cycles' 'one.churn.rate_target_per_s == 20' 'one.measured_s >= 6' \
    'one.validity | contains(["clients_come_and_go"]) == true'
holds "--churn: who came back resumed, with PSNs and a queue pair of its own" churn \
    'one.handshakes.full == 20' 'one.handshakes.resumed >= one.churn.cycles' \
    'one.handshakes.full + one.handshakes.resumed == one.server_after.events.established' \
    'one.psn_verified == one.server_after.events.established' \
    'one.server_after.events.psn_verified == one.server_after.events.established' \
    'one.server_after.pools.qp.hits + one.server_after.pools.qp.misses == one.server_after.events.established'
holds "--churn: the queue pair pool's figures" churn 'one.churn.qp_pool_hits + one.churn.qp_pool_misses >= 100' \
    'one.churn.qp_pool_hit_ratio >= 0' 'one.churn.qp_pool_hit_ratio <= 1' 'one.churn.qp_pool_exhausted == 0'
# By the packet lifetime that the kernel assumes on Ethernet: 5.29 s, and 2.07 s since 6.2.
rest=5.2e9
[[ $(printf '6.2\n%s\n' "$(uname -r)" | sort -V | head -n 1) != 6.2 ]] || rest=2.0e9
holds "--churn: queue pairs rested for as long as their path asks and were used again" churn \
    'one.churn.qp_recycle_ns.count >= 1' "one.churn.qp_recycle_ns.min >= $rest" 'one.server_after.pools.qp.recycled >= one.churn.qp_recycle_ns.count'

# All are always on their way, more than may connect at once: whoever left first is to be back first.
loads turns main --churn 100000 --cycles 800 --tls-resume --steps 40 --connect-concurrency 8 --warmup 0
holds "--churn as fast as can be: nobody waits for long while others come and go" turns \
    'one.churn.cycles >= 800' 'one.churn.cycles_failed == 0' 'one.churn.away_ns.p99 <= 3 * one.churn.away_ns.p50'

# ---- more at once than the server takes

start_server narrow --threads 1 --max-clients 128 --max-handshakes 4 --session-timeout 5
loads storm narrow --workload connect --steps 100 --connect-concurrency 100 --warmup 0 --duration 0.2

# The server is stopped before most of 20 came in 4 s: they time out. Afterwards they are all there.
load stalled narrow --workload connect --steps 20 --connect-rate 5 --timeout 1 --connect-retries 1000 --warmup 0 \
    --duration 0.2 --log-level debug
kill -STOP "${pid[narrow]}"
wait_until 60 has_line_or_gone stalled 'failed at .*: timeout' || not_ok "a client's stage times out" "it does not"
kill -CONT "${pid[narrow]}"
end_of stalled 120
holds "a server that did not answer for a while has all clients in the end (status $status)" stalled \
    '.run.status == "completed"' '[one | .connected_held, .server_connected, .failed, .dropped] == [20, 20, 0, 0]' \
    'one.failures == []' 'one.validity == []'
holds "their attempts that failed are counted, by stage and code" stalled 'one.retries >= 1' \
    'one.retries == ([one.retried[].count] | add)' '[one.retried[] | .code == "timeout"] | any == true'
stop_server narrow

# ---- dead peers, and silent ones

# The retries end before the next probe would be due, so it is they that say why.
start_server probed --threads 2 --max-clients 32 --probe-interval 1 --ack-timeout 67ms
remember_start probed
load silent probed --workload connect --steps 10 --warmup 0 --duration 3600
reaches probed 60 clients.connected=10
start_ping quiet probed --interval 3600
for mode in dies-in-error dies-without-qp; do
    start $mode "$programs/rogue" "${tls_options[@]}" "$host" "${port[probed]}" $mode
done
reaches probed 60 clients.connected=13
mapfile -t seen < <(stats probed events.probes)
limit=60 counted "13 clients that say nothing are probed in several intervals, and stay" probed \
    "events.probes>=$((seen[0] + 2 * 13))" clients.connected=13 events.closed.failed=0
kill -USR1 "${pid[dies-in-error]}" "${pid[dies-without-qp]}"
for mode in dies-in-error dies-without-qp; do
    wait_until 60 has_line "${logs[$mode]}" 'dead$' || not_ok "$mode: it dies" "$(<"${logs[$mode]}")"
done
# Within three intervals, and half a second of retries; the rest is for a slow machine.
counted "two that died without a word are noticed by it, and counted with the reason" probed clients.connected=11 \
    failures.traffic.wc:retry_exceeded=2 events.closed.failed=2 events.closed.peer_left=0
counted "what they had is back, though they never answered the server's goodbye" probed clients.closing=0 \
    pools.qp.in_use=11 pools.admitted=11
mapfile -t seen < <(stats probed events.probes)
limit=60 counted "the others stay" probed "events.probes>=$((seen[0] + 11))" clients.connected=11
loses_nothing "a ping between whose messages there are many probes lost nothing" quiet
kill -INT "${pid[silent]}"
end_of silent 60
holds "a run of clients that never sent anything lost none (status $status)" silent '.run.exit_status == 130' \
    '[one | .connected_held, .failed, .dropped] == [10, 0, 0]' 'one.failures == []' 'one.validity == []'

# ---- no room while somebody is leaving

start_server single --threads 2 --max-clients 1 --probe-interval 1
rogue=("$programs/rogue" "${tls_options[@]}" --timeout 60 "$host" "${port[single]}")
start only "${rogue[@]}" dies-in-error
wait_until 60 has_line_or_gone only 'connected$'
start asks "${rogue[@]}" asks-while-full
reaches single 60 'events.refused.full>=1'
kill -USR1 "${pid[only]}"
ends "a server that waits for a dead client's goodbye is busy, not full" asks 60 0 \
    '^asks-while-full: refused: busy: clients are still leaving: try again$'
counted "both refusals are counted" single 'events.refused.full>=1' events.refused.busy=1
reaches single 60 pools.admitted=0
serves "and has room afterwards" single

# A generator meets the same: with another and one that dies, there is no room for its third client, who is not due
# before 2 s have passed. Until the server waits for the dead one's goodbye the generator is stopped: a hole in its clock.
start_server tight --threads 2 --max-clients 4 --probe-interval 1
rogue=("$programs/rogue" "${tls_options[@]}" "$host" "${port[tight]}")
start_ping other tight --interval 3600
start last "${rogue[@]}" dies-in-error
wait_until 60 has_line_or_gone last 'connected$'
load late tight --workload connect --steps 3 --threads 1 --connect-rate 1 --connect-retries 1000 --warmup 0 \
    --duration 0.2
kill -STOP "${pid[late]}"
kill -USR1 "${pid[last]}"
reaches tight 60 clients.closing=1
kill -CONT "${pid[late]}"
# The run waits until the server is as it found it: with two others.
reaches tight 60 'events.closed.peer_left>=3' clients.connected=1
start_ping heir tight --interval 3600
end_of late 60
# A machine on which this takes three seconds has room by then, and nobody is told to come again.
holds "clients that are told so come again, and are all there (status $status)" late '.run.status == "completed"' \
    '[one | .connected_held, .failed, .dropped] == [3, 0, 0]' 'one.failures == []' \
    'one.validity - ["server_counts_differ", "clock_hole"] == []' '[one.retried[] | .stage, .code] - ["psn_exchange", "refused:busy"] == []'
for name in dies-in-error dies-without-qp; do
    kill -KILL "${pid[$name]}"
    end_of $name 5
done
all_back "after deaths everything is back" probed
all_back "after churn everything is back" main
mapfile -t now < <(stats main resources.mrs resources.cqs resources.fds)
is "after churn there are as many MRs, CQs and descriptors as before" "${now[*]}" "${at_start[*]}"
finish
