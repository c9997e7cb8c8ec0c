#!/bin/bash
# Clients with a connection on each of several RDMA devices: transfers are striped over them, by size, and arrive
# unchanged; a rail that fails is dropped, and what was in flight on it arrives over the others.
# rails: 4

. tests/soft_roce/lib.sh

for rail in 0 1 2 3; do
    if ! rdma link | grep -q "^link rxe$rail/1 state ACTIVE .*netdev rampart$rail"; then
        skip "clients on four devices" "there is no rxe$rail on rampart$rail (see scripts/softroce vm --rails)"
        finish
    fi
done

# Prints how many packets a device has sent.
sent() { # RAIL
    cat "/sys/class/infiniband/rxe$1/ports/1/hw_counters/sent_pkts"
}

# Makes a run with its own server: all clients held, none failed, every byte unchanged.
stripes() { # NAME RUN "OPTIONS" [CONDITION...]
    local name=$1 run=$2 options=$3
    shift 3
    # shellcheck disable=SC2086  # options and their values
    load "$run" own --server-threads 1 --threads 1 $options
    end_of "$run" 240
    matches "$name: comes to its end" "$status" '^[014]$'
    ((status < 2 || status == 4)) || cat "${logs[$run]}"
    holds "$name" "$run" '.run.status == "completed"' '[.steps[].failures[]] == []' \
        '[.steps[] | .target_clients - (.attempted, .connected_held)] | unique == [0]' \
        '[.steps[] | .throughput_bytes_per_s > 0] | all' '[.steps[].rails.dropped] | unique == [0]' \
        '[.steps[].verified | .corrupt, .server_corrupt] | unique == [0]' \
        '[.steps[].validity[]] - ["not_steady", "too_short", "generator_saturated", "littles_law_violated",
          "server_and_generator_share_the_machine"] == []' "$@"
}

# ---- by size

devices=rxe0,rxe1,rxe2,rxe3
before=()
for rail in 0 1 2 3; do
    before[rail]=$(sent $rail)
done
stripes "duplex: none below 16 KiB, so 32 KiB goes by two rails and 48 KiB by three" sizes \
    "--workload duplex --steps 2 --device $devices --message-size 1,16k,32k,48k,64k,1M --iterations 4 --log-level debug" \
    '[.steps[].rails | .available, .used] == [4, 1, 4, 1, 4, 2, 4, 3, 4, 4, 4, 4]' \
    '[.steps[].verified.checked >= 4] | all' '[.steps[].psn_verified] | unique == [8]' \
    '[.steps[].psns | .exchanged, .distinct] | unique == [16]'
for line in 'inline: 64 bytes, the largest message, of up to 220 (--inline)' \
    'doorbells: up to 16 sends of a connection share one (--post-list)' \
    'rails reduced from 4 to 2 for 32768 bytes (--stripe-min 16384)' \
    'rails: all 4 carry a part of each 65536 bytes (--stripe-min 16384)'; do
    matches "the log says what was chosen: $line" "$(grep -cF "worker 0: $line" "${logs[sizes]}")" '^[16]$'
done
stripes "duplex: with --stripe-min 8k, 32 KiB goes by four rails" cut \
    "--workload duplex --steps 2 --device $devices --message-size 32k --iterations 4 --stripe-min 8k" \
    'one.rails.used == 4' '.config.stripe_min_bytes == 8192'
for rail in 0 1 2 3; do
    is "rail $rail carried some of it" "$(($(sent $rail) - before[rail] > 1000))" 1
done
for operation in write read send; do
    checked='[.steps[].verified.checked >= 2] | all'
    [[ $operation != send ]] || checked='[.steps[].verified.server_checked >= 2] | all'
    stripes "large by $operation: all as sent" large-$operation \
        "--workload large --operation $operation --steps 2 --device $devices --message-size 64k,3000001 --iterations 2" \
        '[.steps[].rails.used] == [4, 4]' "$checked"
done
stripes "large on one device of several" single "--workload large --steps 2 --device rxe2 --iterations 4" \
    'one.rails == {available: 1, used: 1, dropped: 0}'

# ---- several queue pairs on each rail

for way in cm oob; do
    stripes "four queue pairs of each client ($way): one TLS connection, all as sent" "qps-$way" \
        "--workload large --connect $way --qps 4 --steps 3 --device rxe0 --message-size 64k,1M --iterations 8" \
        '[.steps[].queue_pairs | .per_client, .measured] | unique == [4, 12]' \
        '[.steps[].queue_pairs | 0 < .fastest_mean_ns and .fastest_mean_ns <= .mean_ns and
          .mean_ns <= .slowest_mean_ns] | all' '[.steps[].rails.used] | unique == [1]' \
        '[.steps[].connect_ns | .total, .tls_handshake, .psn_exchange | .count] | unique == [3]' \
        '[.steps[].handshakes] | unique == [{full: 3, resumed: 0}]' '[.steps[].psn_verified] | unique == [12]' \
        '[.steps[].psns | .exchanged, .distinct] | unique == [24]' \
        '[.steps[].server_after.events.tls_shared] == [9, 18]' \
        '[.steps[].fairness.clients] | unique == [3]'
done
stripes "duplex: two queue pairs on each of two rails" qps-duplex \
    "--workload duplex --qps 2 --steps 2 --device rxe0,rxe1 --message-size 1M --inflight 4 --iterations 8" \
    'one.rails == {available: 2, used: 2, dropped: 0}' 'one.queue_pairs | .per_client == 2 and .measured == 8'

# ---- a device that is removed under both ends

# The run waits up to 40 s for the server's objects on that device; tests of other devices run in the meantime.

load removed own --server-threads 1 --threads 1 --device rxe2,rxe3 --steps 3 --warmup 0.1 --duration 8 \
    --workload large --inflight 1
begins_measuring removed
# The command returns only when nobody has the device open any more: rxe waits for that.
start removal timeout 300 rdma link delete rxe3

# ---- a rail that fails

server_options=(--threads 1 --windows on --max-clients 8 --region-size 16M --message-size 64k --credits 16)
start_server first --device rxe0 "${server_options[@]}"
first=$host
remember_start first
server_ports=(--tls-port "${port[first]}" --rdma-port 0)
start_server second --device rxe1 "${server_options[@]}"
both=$first,$host

# The second server is killed while clients are sending: all their transfers must end.
fails_over() { # RUN "OPTIONS"
    local run=$1
    # shellcheck disable=SC2086  # options and their values
    host=$both load "$run" first --steps 3 --threads 1 --warmup 0.1 --duration 8 $2
    host=$first reaches first 240 'clients.connected=3'
    host=${both#*,} reaches second 240 'clients.connected=3'
    begins_measuring "$run"
    kill -KILL "${pid[second]}"
    end_of second 240
    end_of "$run" 240
    matches "$run: comes to its end without a rail" "$status" '^[014]$'
    holds "$run: every client goes on with the other rail, nothing is lost or wrong" "$run" '.run.status == "completed"' \
        'one.connected_held == 3' 'one.dropped == 0' 'one.failed == 0' 'one.rails.dropped == 3' \
        'one.throughput_bytes_per_s > 0' 'one.verified | .corrupt == 0 and .server_corrupt == 0' \
        'one.validity | index("rails_dropped") != null and index("replies_missing") == null' \
        '[one.failures[].count] | add == 3'
    is "$run: it is said once, with the rail and why" \
        "$(grep -cE 'client [0-9]+ drops rail 1 \(rxe1\) in .*: .*; it goes on with 1 of 2' "${logs[$run]}")" 1
    host=$first all_back "$run: the rail that is left has everything back" first
    start_server second --device rxe1 "${server_options[@]}"
}

fails_over write "--workload large --message-size 1M --inflight 1"
fails_over send "--workload large --message-size 1M --operation send --chunk 60k"
fails_over duplex "--workload duplex --message-size 1M"

# ---- a rail that is not there

kill -KILL "${pid[second]}"
end_of second 240
host=$both load absent first --steps 3 --threads 1 --iterations 3 --workload large --inflight 1
end_of absent 240
holds "a rail that cannot be connected: all clients go on without" absent 'one.connected_held == 3' \
    'one.rails == {available: 2, used: 2, dropped: 3}' 'one.throughput_bytes_per_s > 0' 'one.verified.corrupt == 0' \
    '[one.failures[].code] | unique == ["errno:ECONNREFUSED"]'
host=$first all_back "and everything comes back" first

gives "as many servers as devices" 2 '^performance_test: --server and --device: give as many of one' \
    "${bin}performance_test" --workload large --server a,b --device rxe0
gives "rails are for what stripes" 2 '^performance_test: --device, --server: several rails need' \
    "${bin}performance_test" --device rxe0,rxe1
gives "a device that is not there" 3 'rxe9: no such RDMA device' \
    "${bin}performance_test" --device rxe0,rxe9 --workload large --output "$results"
host=$first stop_server first

# ---- the end of the run whose device was removed

end_of removed 240
matches "removal: the run comes to its end" "$status" '^[014]$'
holds "removal: every client goes on with the other device, nothing is lost or wrong" removed \
    '.run.status == "completed"' 'one.connected_held == 3' 'one.dropped == 0' 'one.rails.dropped == 3' \
    'one.throughput_bytes_per_s > 0' 'one.verified | .corrupt == 0 and .server_corrupt == 0' \
    'one.validity | index("replies_missing") == null'
is "removal: it is said, with the device" "$(grep -c 'client [0-9]* drops rail 1 (rxe3)' "${logs[removed]}")" 1
end_of removal 240
is "removal: the device is gone" "$status" 0
finish
