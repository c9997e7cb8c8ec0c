#!/bin/bash
# Removes an RDMA device under load: the server's, the generator's, or both. Each program names the device and ends with
# its status, and nothing hangs; when the device is back, a new server on it serves. (test_rails.sh and test_stripe.sh
# remove one of several devices.)
# nodes: 2
# shellcheck disable=SC2016,SC2317  # words of jq and of node 2; what looks unreachable is called by name

. tests/soft_roce/lib.sh
. tests/nodes/lib.sh

# Starts a run of 20 clients against the server on node 2.
start_clients() { # NAME OPTIONS...
    load "$1" main --steps 20 --threads 1 --warmup 0 --duration 30 --message-size 1024 "${@:2}"
    begins_measuring "$1"
    pause 1
}

has_no_device() {
    [[ ! -e /sys/class/infiniband/rxe0 ]]
}

# ---- under the server

start_peer_server main --threads 2 --max-clients 64 --verify
start_clients server-side
on_peer 'start removal timeout 60 rdma link delete rxe0'
limit=40 on_peer 'end_of main 30; echo "status $status"; cat "${logs[main]}"' >"$tmp/server.log"
matches "the server's device goes: the server says which, and ends with 1" "$(<"$tmp/server.log")" \
    '^status 1'$'\n''.*RDMA device rxe0 was removed.*a shard failed: stopping.*stopped$'
is "the server's device goes: each shard says it once" "$(grep -c 'rxe0 was removed' "$tmp/server.log")" 2
limit=70 on_peer 'end_of removal 60; echo "status $status"' >"$tmp/removal.log"
is "the server's device goes: it can be removed" "$(<"$tmp/removal.log")" 'status 0'
end_of server-side 120
is "the server's device goes: the generator ends with 1" "$status" 1
is_honest "the server's device goes" server-side '.run.stop_reason == "server_lost"' 'one.dropped == 20'
on_peer 'rdma link add rxe0 type rxe netdev rampart0'
limit=60 start_peer_server main --threads 2 --max-clients 64 --verify
remember_start main
serves "the server's device is back: a new server serves" main

# ---- under the generator

start_clients client-side
start removal timeout 60 rdma link delete rxe0
end_of client-side 60
is "the generator's device goes: nothing that it measured is judged" "$status" 4
matches "the generator's device goes: it says which" "$(<"${logs[client-side]}")" \
    "RDMA device rxe0 was removed.*the generator's RDMA device rxe0 failed"
is_honest "the generator's device goes" client-side '.run.stop_reason == "generator_failed"' 'one.dropped == 20' \
    '[one.failures[] | .stage, .code, .count] == ["traffic", "errno:ENODEV", 20]'
end_of removal 70
is "the generator's device goes: it can be removed" "$status" 0
gives "no device: a client says so" 3 'device' "${bin}rdma_client" "${tls_options[@]}" --tls-port "${port[main]}" --count 1 \
    "$host" ping
rdma link add rxe0 type rxe netdev rampart0
limit=90 all_back "the generator's device goes: the server has everything back" main
serves "the generator's device is back: a client is served" main

# ---- with clients that try to come back

start_clients returns --reconnect 60
on_peer 'start removal timeout 60 rdma link delete rxe0; end_of main 30; end_of removal 60; echo "status $status"
    rdma link add rxe0 type rxe netdev rampart0; server_ports=(--tls-port '"${port[main]}"' --rdma-port 0 --bind 10.77.0.2)
    start_server main --threads 2 --max-clients 64 --verify' >"$tmp/returns.log"
end_of returns 180
is_honest "the server's device goes and comes back" returns '.run.status == "completed"' '.run.server_restarts == 1' \
    'one.connected_held == 20' 'one.outages.ended == one.outages.lost' 'one.outages.lost >= 20'
limit=90 all_back "the server's device went and came back: the server has everything back" main
finish
