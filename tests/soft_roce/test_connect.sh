#!/bin/bash
# What performance_test says of connecting: clients that do nothing else, stage by stage, with resumed TLS
# sessions; a step in which only some clients send; and two servers at once.

. tests/soft_roce/lib.sh

# What the server counted in the second step alone.
difference() { # PATH
    echo "(two.server_after.$1 - one.server_after.$1)"
}

refuses() { # WHAT SERVER TEXT OPTIONS...
    local name=$1 server=$2 text=$3
    shift 3
    gives "$name" 3 "^performance_test: $text\$" "${bin}performance_test" "${tls_options[@]}" --server "$host" \
        --tls-port "${port[$server]}" --quiet --output "$results" "$@"
}

start_server main --threads 2 --max-clients 64 --verify --session-timeout 8
remember_start main

# ---- clients that only connect, and clients that only wait

mapfile -t seen < <(stats main events.messages_in)
loads connect main --workload connect --steps 20 --warmup 0 --duration 0.3
holds "--workload connect: every stage but a first reply was timed, and no message after it" connect \
    'one.connect_ns.first_reply.count == 0' \
    '[one.connect_ns[] | .count] - [20] == [0, 0]' 'one.response_ns.count == 0' \
    'one.throughput_msgs_per_s == null' 'one.active == 0' 'one.fairness == null'
holds "neither --phased nor --churn was given, and nothing resumed: null" connect \
    'one.phase_ns_per_connection == null' 'one.churn == null' 'one.connect_resumed_ns == null' \
    'one.handshakes == {"full": 20, "resumed": 0}' 'one.connect_full_ns == (one.connect_ns | del(.psn_generate))'
counted "--workload connect: the server got no message" main events.messages_in="${seen[0]}"

loads idle main --workload idle --steps 20 --warmup 0 --duration 0.3
holds "--workload idle: every client had its first reply, and none measured" idle \
    '[one.connect_ns | del(.socket_connect)[] | .count] | unique == [20]' 'one.response_ns.count == 0' \
    'one.throughput_msgs_per_s == null' 'one.active == 0'
counted "--workload idle: the server got one message of each client" main events.messages_in=$((seen[0] + 20))

# ---- some send, the others are there

loads active main --active 7 --steps 30 --warmup 0.3 --duration 1.5
holds "--active 7 of 30: 7 are counted, Jain's index is one of 7" active 'one.active == 7' \
    'one.fairness.clients == 7' 'one.fairness.jain_index >= 1 / 7 - 1e-9' \
    'one.fairness.jain_index <= 1 + 1e-9' 'one.fairness.slowest_msgs_per_s > 0' \
    '(one.fairness | .slowest_msgs_per_s <= .fastest_msgs_per_s) == true'
# The messages under way at a time are as many as clients send: with 30, the residual would be -3.
holds "--active 7 of 30: by Little's law 7 sent" active 'one.littles_law_residual >= -0.25' \
    'one.littles_law_residual <= 0.25'

# ---- all in one stage

all_stages='["tcp_connect","tls_handshake","psn_exchange","addr_resolve","route_resolve","qp_setup","rdma_connect"'
phases_add_up() { # RUN STAGES
    holds "run '$1': each phase has its time, and together they are the time of connecting" "$1" \
        "[one.phase_ns_per_connection | keys_unsorted[]] == $2" 'one.phase_ns_per_connection | all(. > 0) == true' \
        '((one.phase_ns_per_connection | add) * one.attempted / 1e9 - one.connect_wall_s | fabs) <=
            0.05 * one.connect_wall_s + 0.1'
    # The server counts from the accept, which in a phase of its own came before the first handshake.
    holds "run '$1': at the server, handshakes waited for all others'" "$1" \
        'one.server_stages_ns.tls_accept.count == one.attempted' \
        'one.server_stages_ns.tls_accept.max >= 0.5 * one.phase_ns_per_connection.tls_handshake * one.attempted'
}

loads phased own --phased --steps 20 --warmup 0 --duration 0.3
phases_add_up phased "$all_stages,\"first_reply\"]"
holds "a server of performance_test's own has patience with phases, and offers no resumption unasked" phased \
    'one.server_after.events.closed.failed == 0' '.server_config.tls_resume == false' \
    'one.server_after.events.tickets == 0' '.server_config.max_handshakes >= 40'
loads phased_connect main --phased --workload connect --connect-concurrency 4 --steps 20 --warmup 0 --duration 0.3
phases_add_up phased_connect "$all_stages]"

start_server narrow --threads 1 --max-clients 64 --max-handshakes 8 --session-timeout 5
refuses "--phased: a server that cannot have all TLS connections open is refused" narrow \
    "--phased has 9 TLS connections open at once, which is more than the server's --max-handshakes allow \(8\)" \
    --phased --steps 9
loads fits narrow --phased --steps 8 --warmup 0 --duration 0.3

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

loads resumed main --tls-resume --repeat 2 --steps 20 --warmup 0 --duration 0.3
resumes resumed 20
gives "a ticket is good for the server that gave it" 0 'ticket: a ticket, resumed handshake, granted' \
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" ticket
gives "and not for another with the same certificate" 0 'ticket=[0-9]+: a ticket, full handshake, granted' \
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" "ticket=${port[narrow]}"

start_server off --threads 1 --max-clients 16 --tls-resume off --session-timeout 2
refuses "--tls-resume: a server that has it off is refused" off '--tls-resume: the server has --tls-resume off' \
    --tls-resume --steps 5
gives "--tls-resume off: who asks for a ticket gets none" 0 'ticket: no ticket, full handshake, granted' \
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[off]}" ticket
counted "--tls-resume off: nothing is counted" off events.tickets=0 events.handshakes_resumed=0

# A ticket is good for two rotations at most: the time it was made in, and the next.
start_server rotating --threads 1 --max-clients 16 --ticket-rotation 1
loads rotated rotating --tls-resume --repeat 2 --steps 10 --warmup 0 --duration 2.2
holds "tickets from before two rotations are not accepted: full handshakes, new tickets" rotated \
    'one.handshakes == {"full": 10, "resumed": 0}' 'two.handshakes == {"full": 10, "resumed": 0}' \
    "$(difference events.tickets) == 10" 'one.fairness.clients == 10'

# ---- several servers at once

# What the servers say of themselves must be what run.json says of each.
start_server left --threads 1 --max-clients 20 --verify
start_server right --threads 1 --max-clients 64 --verify
targets=$host:${port[left]},$host:${port[right]}

established() { # both servers' count
    printf '%s %s' "$(stats left events.established)" "$(stats right events.established)"
}

deals() { # DEAL CLIENTS_LEFT CLIENTS_RIGHT; "-": any number
    local before after left right run=deal-$1
    read -ra before < <(established)
    loads "$run" own "${tls_options[@]}" --targets "$targets" --deal "$1" --threads 3 --steps 30 --warmup 0.2 --duration 0.5
    read -ra after < <(established)
    left=$((after[0] - before[0])) right=$((after[1] - before[1]))
    [[ $2 == - ]] || is "--deal $1: clients of each server, by its own count" "$left $right" "$2 $3"
    holds "--deal $1: run.json says of each server what that server counts" "$run" \
        "[one.servers[].target] == (\"$targets\" / \",\")" "[one.servers[].clients] == [$left, $right]" \
        "[one.servers[].connected_held] == [$left, $right]" "[one.servers[].server_connected] == [$left, $right]" \
        "[one.servers[] | .server_after.events.established - .server_before.events.established] == [$left, $right]" \
        "[one.servers[].connect_total_ns.count] == [$left, $right]" '[one.servers[].server_pools] == ["restored", "restored"]'
    holds "--deal $1: the servers' figures add up to the step's" "$run" 'one.server_connected == 30' \
        'one.response_ns.count == ([one.servers[].response_ns.count] | add)' \
        '(one.throughput_msgs_per_s / ([one.servers[].throughput_msgs_per_s] | add) - 1 | fabs) < 1e-6' \
        'one.resources.server.rss_bytes == ([one.servers[].resources.rss_bytes] | add)' \
        '(one.messages_total.server - one.messages_total.generator | fabs) <= 0' \
        'one.resources.server.window_s == null' '.environment.server == null' '[.servers[].config.max_clients] == [20, 64]'
}

deals round-robin 15 15
deals first 20 10
deals random - -
holds "each of several servers has worker threads of its own" deal-first '.config.threads == 3' '.config.deal == "first"'
gives "more than one server has room for, by name" 3 "$host:${port[left]}: the first step of 25 clients is more than .*--max-clients 20" \
    "${bin}performance_test" "${tls_options[@]}" --targets "$targets" --steps 50 --quiet --report off --output "$results"

start_run killed own "${tls_options[@]}" --targets "$targets" --steps 30 --warmup 0.2 --duration 60 --sample-interval 0
begins_measuring killed
kill -9 "${pid[right]}"
end_of right 10
end_of killed 60
holds "one of two servers is killed: the step ends, is kept, and the run says which" killed '.run.stop_reason == "server_lost"' \
    "(.run.stop_detail | startswith(\"$host:${port[right]}: \"))" 'one.measured_s < 50' 'one.servers[0].connected_held == 15' \
    'one.servers[1].connected_held == 0' 'one.servers[1].dropped == 15' 'one.servers[0].resources.window_s > 0' \
    'one.servers[1].resources.window_s == null' 'one.hard_failure.reason == "server_lost"'
counted "the other server is without clients again" left clients.connected=0 pools.admitted=0
stop_server left

all_back "after all runs everything is back" main
tls_options+=(--cert "$certs/client.pem" --key "$certs/client.key")
start_server auth --threads 2 --max-clients 32 --client-auth require --verify
loads authorized auth --tls-resume --repeat 2 --steps 10 --warmup 0 --duration 0.3
resumes authorized 10
counted "--client-auth require: no handshake failed" auth events.closed.failed=0
finish
