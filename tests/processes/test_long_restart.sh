#!/bin/bash
# A server that is killed under load and restarted on its port, with clients that come back (--reconnect); and a server
# and a generator that stand still for 90 s, while other clients come.
# transports
# limit: 1200
# shellcheck disable=SC2317  # what looks unreachable is called by name

. tests/soft_roce/lib.sh

server_options=(--threads 1 --max-clients 128 --verify)

# ---- kill -9 of the server, and another one in its place

# SECONDS: how long nobody listens. The measured time of 180 s exceeds all waits, so it cannot end before all clients
# are back. The kernel disconnects the clients of a killed server, except those connected out of band: they notice only
# when their retries fail, so their outage can be shorter than that time.
is_killed_for() { # RUN SECONDS
    local run=$1 ports least=">= ${2}e9"
    [[ ${RAMPART_CONNECT:-cm} != oob ]] || least='> 0'
    server_ports=(--tls-port 0 --rdma-port 0)
    start_server main "${server_options[@]}"
    load "$run" main --steps 100 --threads 1 --warmup 0.2 --duration 180 --inflight 4 --reconnect 120
    begins_measuring "$run"
    reaches main 60 'events.messages_in>=2000'
    ports=${port[main]}
    kill -KILL "${pid[main]}"
    end_of main 10
    pause "$2"
    server_ports=(--tls-port "$ports" --rdma-port 0)
    start_server main "${server_options[@]}"
    limit=110 counted "$run: all clients come back to the other server" main "events.established>=100"
    end_of "$run" 300
    matches "$run: the generator comes to its end" "$status" '^[014]$'
    holds "$run: every client was lost and came back, and the outage is measured" "$run" '.run.status == "completed"' \
        '.run.server_restarts == 1' 'one.outages.lost >= 100' 'one.outages.ended == one.outages.lost' \
        "one.outages.outage_ns.min $least" 'one.connected_held == 100' '[one | .failed, .dropped] == [0, 0]' \
        'one.failures == []' 'one.validity | contains(["outages"])'
    holds "$run: nothing that was acknowledged is lost or doubled" "$run" 'one.verified.checked >= 2000' \
        'one.verified.corrupt == 0' '(one.verified.server_corrupt // 0) == 0' \
        'one.validity | contains(["replies_missing"]) | not'
    holds "$run: no figure is made of two servers' counters" "$run" 'one.resources.server.window_s == null' \
        'one.server_pools != "not_restored"'
    jq -r '.steps[0] | "# \(.outages.lost) lost, \(.outages.ended) back, outage \(.outages.outage_ns.min / 1e9) to " +
        "\(.outages.outage_ns.max / 1e9) s, \(.outages.repeated) repeated, \(.verified.checked) checked"' "$tmp/$run.json"
    limit=60 counted "$run: the other server has everything back" main clients.connected=0 clients.closing=0 \
        pools.qp.in_use=0 pools.qp.quarantined=0 pools.psns_in_use=0 pools.sessions=0 pools.admitted=0
    stop_server main
}
is_killed_for restarted 0
is_killed_for away 5

# ---- server and generator stand still for 90 s

server_ports=(--tls-port 0 --rdma-port 0)
start_server main "${server_options[@]}"
start_server other "${server_options[@]}"
remember_start main
remember_start other
load stalled main --steps 20 --threads 1 --warmup 0.2 --duration 120
load asleep other --steps 20 --threads 1 --warmup 0.2 --duration 120
begins_measuring stalled
begins_measuring asleep
pause 1
stopped=$SECONDS
kill -STOP "${pid[main]}" "${pid[asleep]}"
pause 45
# Meanwhile one client comes and gives up; another one that comes later is served as soon as the server continues.
limit=20 gives "SIGSTOP of the server: a client that comes meanwhile says what it waited for" 1 'timeout' \
    "${bin}rdma_client" "${tls_options[@]}" "${over[@]}" --tls-port "${port[main]}" --timeout 5 --count 1 "$host" ping
pause $((stopped + 89 - SECONDS))
start late "${bin}rdma_client" "${tls_options[@]}" "${over[@]}" --tls-port "${port[main]}" --timeout 30 --count 1 "$host" ping
pause 1
kill -CONT "${pid[main]}" "${pid[asleep]}"
ends "SIGSTOP of the server: a client that waits is served when it goes on" late 40 0 '1 messages sent, 1 replies'
end_of stalled 120
matches "SIGSTOP of the server for 90 s: the generator comes to its end" "$status" '^[14]$'
holds "SIGSTOP of the server for 90 s: named, and in the highest latency; no client is lost" stalled \
    '.run.status == "completed"' 'one.reply_stall_ns > 80e9' 'one.response_ns.max > 80e9' \
    'one.validity | contains(["replies_stalled"])' 'one.connected_held == 20' '[one | .failed, .dropped] == [0, 0]' \
    'one.verified.corrupt == 0' '[.verdict[] | select(.criterion == "measurement") | .result] | unique == ["inconclusive"]'
end_of asleep 120
holds "SIGSTOP of the generator for 90 s: named; no client is lost" asleep '.run.status == "completed"' \
    'one.clock_late_ns > 80e9' 'one.validity | contains(["clock_hole"])' 'one.connected_held == 20' \
    '[one | .failed, .dropped] == [0, 0]' 'one.verified.corrupt == 0' \
    '[.verdict[] | select(.criterion == "measurement") | .result] | unique == ["inconclusive"]'
for server in main other; do
    limit=60 all_back "SIGSTOP: server '$server' has everything back" $server
    stop_server $server
done
finish
