#!/bin/bash
# Processes hold queue pair numbers in their host's connection manager; honest clients of that host must still connect,
# with other numbers. On one machine both ends share the connection manager, so a claimed number blocks the server's
# queue pairs as well as those of other clients.
# shellcheck disable=SC2317  # what looks unreachable is called by name

. tests/soft_roce/lib.sh

start_server main --threads 1 --max-clients 32 --region-size 0
remember_start main
use_client main
rogue=("$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}")

holds_numbers() { # NAME LINE MODE
    start "$1" "${rogue[@]}" "$3"
    { wait_until 240 has_line_or_gone "$1" "$2" && ! is_gone "$1"; } || not_ok "'$3' holds numbers" "$(<"${logs[$1]}")"
}
lets_go() { # NAME
    kill -KILL "${pid[$1]}"
    end_of "$1" 240
}

# ---- clients that are cut off keep their CM ids and answer no disconnect

holds_numbers keeper '6 cut off' keep-ids=6
reaches main 240 clients.closing=0 pools.qp.quarantined=0
for i in 1 2 3 4 5 6 7 8; do
    # The kernel repeats a request that met a stale number only after 6 s, so the timeout is shorter.
    serves "client $i is served while others of its host keep their CM ids" main --timeout 5
done
counted "no number that a client may hold was given to another" main failures.rdma_connect.cm:stale=0 \
    events.refused.bad_session=0
lets_go keeper

# ---- the client's connection manager holds the number of the server's next queue pair

qpn=$("${rdma_client[@]}" --json "$host" info | jq .server_qpn)
holds_numbers claimer 'accepted' "claim=$qpn"
reaches main 240 pools.qp.quarantined=0
limit=40 gives "a server's number that is held: the client connects again by itself" 0 \
    'number is stale: connecting again.*0% loss' "${rdma_client[@]}" --log-level info --count 1 "$host" ping
counted "both sides call it stale" main failures.rdma_connect.cm:stale=1 failures.rdma_connect.refused:stale=1 \
    events.refused.stale=1 events.refused.bad_session=0
lets_go claimer

# ---- the server's connection manager holds the number of the client's next queue pair

holds_numbers claimer '[1-9] accepted' claim-next=6
limit=40 gives "a client's number that is held: the client connects again by itself" 0 \
    'number is stale: connecting again.*0% loss' "${rdma_client[@]}" --log-level info --count 1 "$host" ping
lets_go claimer

# ---- a live client's number is claimed: the kernel ends its connection, and it comes back

numbers_of() { # NAME; prints the numbers of the process's connected queue pairs
    local number thread
    # The "pid" that rdma prints is the thread that made the queue pair.
    while read -r number thread; do
        [[ ! -e /proc/${pid[$1]}/task/$thread ]] || echo "$number"
    done < <(rdma -j res show qp | jq -r '.[] | select(.state == "RTS") | "\(.lqpn) \(.pid)"')
}
start_ping victim main --interval 0.02 --reconnect 30
holds_numbers claimer 'rejected: CM reason 10' "claim=$(numbers_of victim)"
wait_until 240 has_line "${logs[victim]}" 'connected again after' ||
    not_ok "the client whose number was claimed is back" "$(tail -n 3 "${logs[victim]}")"
lets_go claimer
has_more_than() { # NAME LINES
    (($(wc -l <"${logs[$1]}") > $2))
}
wait_until 240 has_more_than victim "$(($(wc -l <"${logs[victim]}") + 10))"
loses_nothing "the client whose number was claimed goes on where it was" victim
matches "it says how long it was without a connection" "$(tail -n 4 "${logs[victim]}")" \
    '1 outages, without a connection for [0-9.]+ s \(longest [0-9.]+ s\), [01] messages sent again'
is "its messages were answered once each, in order" "$(grep -o 'seq=[0-9]*' "${logs[victim]}" |
    awk -F= '$2 != ++n { print "after", n - 1, "came", $2; exit }')" ""
reaches main 240 clients.connected=0 clients.closing=0

# ---- a server that is gone for a while

start_ping patient main --interval 0.02 --reconnect 60
stop_server main
wait_until 240 has_line "${logs[patient]}" 'connecting again in' ||
    not_ok "a client notices that its server stopped" "$(tail -n 3 "${logs[patient]}")"
server_ports=(--tls-port "${port[main]}" --rdma-port 0)
start_server again --threads 1 --max-clients 32 --region-size 0
wait_until 240 has_line "${logs[patient]}" 'connected again after' ||
    not_ok "the client is back at the new server" "$(tail -n 3 "${logs[patient]}")"
loses_nothing "a client outlives its server" patient

# ---- performance_test: every connection is cut once, and comes back

server_ports=(--tls-port 0 --rdma-port 0)
load cut again --steps 4 --threads 1 --inflight 4 --warmup 0.2 --duration 15 --reconnect 30
wait_until 240 has_line "$results"/*-cut/events.ndjson '"measuring"'
mapfile -t numbers < <(numbers_of cut)
is "all its connections are found" "${#numbers[@]}" 4
for i in "${!numbers[@]}"; do
    start "claimer$i" "$programs/rogue" "${tls_options[@]}" "$host" "${port[again]}" "claim=${numbers[$i]}"
done
for i in "${!numbers[@]}"; do
    wait_until 240 has_line_or_gone "claimer$i" 'rejected: CM reason 10' ||
        not_ok "claim $i cuts a connection" "$(<"${logs[claimer$i]}")"
done
end_of cut 90
for i in "${!numbers[@]}"; do
    kill -KILL "${pid[claimer$i]}"
    end_of "claimer$i" 240
done
holds "connections that were cut come back, and nothing that was acknowledged is lost or wrong" cut \
    '.run.status == "completed"' 'one.outages.lost >= 4' 'one.outages.ended == one.outages.lost' \
    'one.outages.attempts >= one.outages.ended' \
    'one.outages.outage_ns.count == one.outages.ended' 'one.outages.outage_ns.max < 10e9' 'one.dropped == 0' \
    'one.connected_held == 4' 'one.verified.corrupt == 0' 'one.verified.server_corrupt == 0' 'one.failures == []' \
    'one.validity | contains(["outages"])'
stop_server again
finish
