#!/bin/bash
# What performance_test reports about connecting: clients that only connect, stage by stage, with resumed TLS sessions;
# and a step in which only some clients send. In tests/loopback/, test_targets.sh has several servers at once, and
# test_sessions.sh the limits of TLS sessions.

. tests/soft_roce/lib.sh

# Prints how much a server's counter grew in the second step alone.
difference() { # PATH
    echo "(two.server_after.$1 - one.server_after.$1)"
}

start_server main --threads 2 --max-clients 64 --verify --session-timeout 8
remember_start main

# ---- clients that only connect, and clients that only wait

mapfile -t seen < <(stats main events.messages_in)
loads connect main --workload connect --steps 10 --warmup 0 --duration 0.3
holds "--workload connect: every stage but a first reply was timed, and no message after it" connect \
    'one.connect_ns.first_reply.count == 0' \
    '[one.connect_ns[] | .count] - [10] == [0, 0, 0]' 'one.response_ns.count == 0' \
    'one.throughput_msgs_per_s == null' 'one.active == 0' 'one.fairness == null'
holds "neither --phased nor --churn was given, and nothing resumed: null" connect \
    'one.phase_ns_per_connection == null' 'one.churn == null' 'one.connect_resumed_ns == null' \
    'one.handshakes == {"full": 10, "resumed": 0}' 'one.connect_full_ns == (one.connect_ns | del(.psn_generate))'
counted "--workload connect: the server got no message" main events.messages_in="${seen[0]}"

loads idle main --workload idle --steps 10 --warmup 0 --duration 0.3
holds "--workload idle: every client had its first reply, and none measured" idle \
    '[one.connect_ns | del(.socket_connect, .qp_exchange)[] | .count] | unique == [10]' 'one.response_ns.count == 0' \
    'one.throughput_msgs_per_s == null' 'one.active == 0'
counted "--workload idle: the server got one message of each client" main events.messages_in=$((seen[0] + 10))

# ---- some clients send, the others only stay connected

loads active main --active 7 --steps 20 --warmup 0.2 --duration 0.8
holds "--active 7 of 20: 7 are counted, Jain's index is one of 7" active 'one.active == 7' \
    'one.fairness.clients == 7' 'one.fairness.jain_index >= 1 / 7 - 1e-9' \
    'one.fairness.jain_index <= 1 + 1e-9' 'one.fairness.slowest_msgs_per_s > 0' \
    '(one.fairness | .slowest_msgs_per_s <= .fastest_msgs_per_s) == true'
# One message per sending client is in flight; if all 20 sent, the residual would be about -2.
holds "--active 7 of 20: by Little's law 7 sent" active 'one.littles_law_residual | fabs <= 0.25'

# ---- all clients in one stage

all_stages='["tcp_connect","tls_handshake","psn_exchange","addr_resolve","route_resolve","qp_setup","rdma_connect"'
phases_add_up() { # RUN STAGES
    holds "run '$1': each phase has its time, and together they are the time of connecting" "$1" \
        "[one.phase_ns_per_connection | keys_unsorted[]] == $2" 'one.phase_ns_per_connection | all(. > 0) == true' \
        '((one.phase_ns_per_connection | add) * one.attempted / 1e9 - one.connect_wall_s | fabs) <=
            0.05 * one.connect_wall_s + 0.1'
    # The server's time starts at accept, which --phased puts into a phase before the first handshake.
    holds "run '$1': at the server, handshakes waited for all others'" "$1" \
        'one.server_stages_ns.tls_accept.count == one.attempted' \
        'one.server_stages_ns.tls_accept.max >= 0.5 * one.phase_ns_per_connection.tls_handshake * one.attempted'
}

loads phased own --phased --steps 10 --warmup 0 --duration 0.3
phases_add_up phased "$all_stages,\"first_reply\"]"
holds "a server of performance_test's own has patience with phases, and offers no resumption unasked" phased \
    'one.server_after.events.closed.failed == 0' '.server_config.tls_resume == false' \
    'one.server_after.events.tickets == 0' '.server_config.max_handshakes >= 20'
loads phased_connect main --phased --workload connect --connect-concurrency 4 --steps 10 --warmup 0 --duration 0.3
phases_add_up phased_connect "$all_stages]"

# ---- resumed TLS sessions

resumes() { # RUN CLIENTS
    holds "run '$1': the first time all handshakes are full, on both sides" "$1" \
        "one.handshakes == {\"full\": $2, \"resumed\": 0}" "one.connect_full_ns.total.count == $2" \
        'one.connect_resumed_ns == null' "one.server_stages_ns.tls_accept.count == $2" \
        'one.server_stages_ns.tls_accept_resumed.count == 0'
    holds "run '$1': the second time all are resumed, on both sides" "$1" \
        "two.handshakes == {\"full\": 0, \"resumed\": $2}" 'two.connect_full_ns == null' \
        "[two.connect_resumed_ns | .total.count, .tls_handshake.count] == [$2, $2]" \
        'two.server_stages_ns.tls_accept.count == 0' "two.server_stages_ns.tls_accept_resumed.count == $2" \
        "$(difference events.handshakes_full) == 0" "$(difference events.handshakes_resumed) == $2"
    holds "run '$1': each grant came with a ticket, each connection with PSNs of its own" "$1" \
        "$(difference events.tickets) == $2" "$(difference events.psn_verified) == $2" "two.psn_verified == $2"
    holds "run '$1': the server's shards add up" "$1" \
        '([two.server_after.shards[].handshakes_full] | add) == two.server_after.events.handshakes_full' \
        '([two.server_after.shards[].handshakes_resumed] | add) == two.server_after.events.handshakes_resumed'
}

loads resumed main --tls-resume --repeat 2 --steps 10 --warmup 0 --duration 0.3
resumes resumed 10
# ---- at the end

all_back "after all runs everything is back" main
tls_options+=(--cert "$certs/client.pem" --key "$certs/client.key")
start_server auth --threads 2 --max-clients 32 --client-auth require --verify
loads authorized auth --tls-resume --repeat 2 --steps 5 --warmup 0 --duration 0.3
resumes authorized 5
counted "--client-auth require: no handshake failed" auth events.closed.failed=0
finish
