#!/bin/bash
# Clients that come and go over RDMA: some leave and come back all the time, some find a server that has no room yet,
# and some die silently. test_turns.sh has what does not depend on RDMA.

. tests/soft_roce/lib.sh

# ---- clients leave and come back

start_server main --threads 2 --max-clients 40 --verify
remember_start main
mapfile -t at_start < <(stats main resources.mrs resources.cqs resources.fds)
# 65 cycles at 10 a second take longer than the 5.3 s of a queue pair's quarantine. Afterwards the run waits 10 to 20 s
# until the server's pool of queue pairs has shrunk. The next tests run in the meantime, with other servers.
start_run churn main --churn 10 --cycles 65 --tls-resume --steps 10 --warmup 0

# ---- dead peers, and silent ones

# The retries are exhausted before the next probe is due, so they give the reason.
start_server probed --threads 2 --max-clients 32 --probe-interval 1 --ack-timeout 67ms
remember_start probed
load silent probed --workload connect --steps 10 --warmup 0 --duration 3600
reaches probed 240 clients.connected=10
start_ping quiet probed --interval 3600
for mode in dies-in-error dies-without-qp; do
    start $mode "$programs/rogue" "${tls_options[@]}" "$host" "${port[probed]}" $mode
done
reaches probed 240 clients.connected=13
mapfile -t seen < <(stats probed events.probes)
limit=240 counted "13 clients that say nothing are probed in several intervals, and stay" probed \
    "events.probes>=$((seen[0] + 2 * 13))" clients.connected=13 events.closed.failed=0
kill -USR1 "${pid[dies-in-error]}" "${pid[dies-without-qp]}"
for mode in dies-in-error dies-without-qp; do
    wait_until 240 has_line "${logs[$mode]}" 'dead$' || not_ok "$mode: it dies" "$(<"${logs[$mode]}")"
done
# Three intervals and half a second of retries are enough; the rest of the time limit is for slow machines.
counted "two that died without a word are noticed by it, and counted with the reason" probed clients.connected=11 \
    failures.traffic.wc:retry_exceeded=2 events.closed.failed=2 events.closed.peer_left=0
counted "what they had is back, though they never answered the server's goodbye" probed clients.closing=0 \
    pools.qp.in_use=11 pools.admitted=11
mapfile -t seen < <(stats probed events.probes)
limit=240 counted "the others stay" probed "events.probes>=$((seen[0] + 11))" clients.connected=11
loses_nothing "a ping between whose messages there are many probes lost nothing" quiet
kill -INT "${pid[silent]}"
end_of silent 240
holds "a run of clients that never sent anything lost none (status $status)" silent '.run.exit_status == 130' \
    '[one | .connected_held, .failed, .dropped] == [10, 0, 0]' 'one.failures == []' 'one.validity - ["clock_hole"] == []'

# ---- the clients that left and came back

end_of churn 300
holds "run 'churn': all clients held, none failed, PSNs read back, server's pools restored (status $status)" churn "${well[@]}"
holds "--churn 10 --cycles 65: all came back" churn 'one.churn.cycles >= 65' 'one.churn.cycles_failed == 0' \
    'one.churn.away_ns.count == one.churn.cycles' 'one.churn.rate_target_per_s == 10' 'one.measured_s >= 6' \
    'one.validity | contains(["clients_come_and_go"]) == true'
holds "--churn: who came back resumed, with PSNs and a queue pair of its own" churn \
    'one.handshakes.full == 10' 'one.handshakes.resumed >= one.churn.cycles' \
    'one.handshakes.full + one.handshakes.resumed == one.server_after.events.established' \
    'one.psn_verified == one.server_after.events.established' \
    'one.server_after.events.psn_verified == one.server_after.events.established' \
    'one.server_after.pools.qp.hits + one.server_after.pools.qp.misses == one.server_after.events.established'
holds "--churn: the queue pair pool's figures" churn 'one.churn.qp_pool_hits + one.churn.qp_pool_misses >= 65' \
    'one.churn.qp_pool_hit_ratio >= 0' 'one.churn.qp_pool_hit_ratio <= 1' 'one.churn.qp_pool_exhausted == 0'
# The quarantine follows the kernel's packet lifetime for Ethernet: 5.29 s, or 2.07 s since Linux 6.2.
rest=5.2e9
[[ $(printf '6.2\n%s\n' "$(uname -r)" | sort -V | head -n 1) != 6.2 ]] || rest=2.0e9
holds "--churn: queue pairs rested for as long as their path asks and were used again" churn \
    'one.churn.qp_recycle_ns.count >= 1' "one.churn.qp_recycle_ns.min >= $rest" 'one.server_after.pools.qp.recycled >= one.churn.qp_recycle_ns.count'

# ---- no room while another client is leaving

start_server single --threads 2 --max-clients 1 --probe-interval 1
rogue=("$programs/rogue" "${tls_options[@]}" --timeout 60 "$host" "${port[single]}")
start only "${rogue[@]}" dies-in-error
wait_until 240 has_line_or_gone only 'connected$'
start asks "${rogue[@]}" asks-while-full
reaches single 240 'events.refused.full>=1'
kill -USR1 "${pid[only]}"
ends "a server that waits for a dead client's goodbye is busy, not full" asks 240 0 \
    '^asks-while-full: refused: busy: clients are still leaving: try again$'
counted "both refusals are counted" single 'events.refused.full>=1' events.refused.busy=1
reaches single 240 pools.admitted=0
serves "and has room afterwards" single

# The same with a generator: another client and a dead one leave no room for its third client, which is due only after 2
# s. The generator is stopped until the server waits for the dead client's goodbye, which is a hole in its clock.
start_server tight --threads 2 --max-clients 4 --probe-interval 1
rogue=("$programs/rogue" "${tls_options[@]}" "$host" "${port[tight]}")
start_ping other tight --interval 3600
start last "${rogue[@]}" dies-in-error
wait_until 240 has_line_or_gone last 'connected$'
load late tight --workload connect --steps 3 --threads 1 --connect-rate 1 --connect-retries 1000 --warmup 0 \
    --duration 0.2
kill -STOP "${pid[late]}"
kill -USR1 "${pid[last]}"
reaches tight 240 clients.closing=1
kill -CONT "${pid[late]}"
# The run waits until the server is as the run found it, with two other clients.
reaches tight 240 'events.closed.peer_left>=3' clients.connected=1
start_ping heir tight --interval 3600
end_of late 240
# If this takes three seconds, there is room by then, and no client is told to try again.
holds "clients that are told so come again, and are all there (status $status)" late '.run.status == "completed"' \
    '[one | .connected_held, .failed, .dropped] == [3, 0, 0]' 'one.failures == []' \
    'one.validity - ["server_counts_differ", "clock_hole"] == []' '[one.retried[] | .stage, .code] - ["psn_exchange", "refused:busy"] == []'
for name in dies-in-error dies-without-qp; do
    kill -KILL "${pid[$name]}"
    end_of $name 240
done
all_back "after deaths everything is back" probed
all_back "after churn everything is back" main
mapfile -t now < <(stats main resources.mrs resources.cqs resources.fds)
is "after churn there are as many MRs, CQs and descriptors as before" "${now[*]}" "${at_start[*]}"
finish
