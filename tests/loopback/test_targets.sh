#!/bin/bash
# performance_test with several servers at once: which server gets which clients, what run.json says about each, and a
# server that is killed. The deal does not depend on the transport, so this uses TCP.
# here

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

# ---- several servers at once

# run.json must say the same about each server as the server itself.
start_server left --threads 1 --max-clients 20 --verify
start_server right --threads 1 --max-clients 64 --verify
targets=$host:${port[left]},$host:${port[right]}

established() { # the count of each server
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
    "${bin}performance_test" "${tls_options[@]}" "${over[@]}" --targets "$targets" --steps 50 --quiet --report off --output "$results"

start_run killed own "${tls_options[@]}" --targets "$targets" --steps 30 --warmup 0.2 --duration 60 --sample-interval 0
begins_measuring killed
kill -9 "${pid[right]}"
end_of right 240
end_of killed 240
holds "one of two servers is killed: the step ends, is kept, and the run says which" killed '.run.stop_reason == "server_lost"' \
    "(.run.stop_detail | startswith(\"$host:${port[right]}: \"))" 'one.measured_s < 50' 'one.servers[0].connected_held == 15' \
    'one.servers[1].connected_held == 0' 'one.servers[1].dropped == 15' 'one.servers[0].resources.window_s > 0' \
    'one.servers[1].resources.window_s == null' 'one.hard_failure.reason == "server_lost"'
counted "the other server is without clients again" left clients.connected=0 pools.admitted=0
stop_server left
finish
