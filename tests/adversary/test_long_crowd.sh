#!/bin/bash
# What others do to a client that is connected, the bystander, and to clients that come one after the other. From another
# address, everything at once for a minute: connections that are silent, half, slow or busy, sessions that are not used, control
# sessions, key updates, ClientHellos and connection requests; before that 10,000 connection requests that guess sessions. Then
# six clients READ as much as they can of their regions. All clients get in, and the bystander loses nothing.
# alone
# limit: 1200

. tests/soft_roce/lib.sh

greedy=10.77.0.2 # the attacker's, beside the one that the clients and the server have
seconds=${RAMPART_CROWD_S:-60}
# The floods come last: what begins under them begins late.
attacks=(crowd-grants hold-controls=70 crowd-silent=1100 crowd-half=500 crowd-drip=200 crowd-busy=24 key-updates=1000
    client-hellos=1000000@50 requests=1000000@100:PORT)

# Clients one after the other for so long, a message each; the time of each, in ms, goes to $tmp/KIND-clients, and what the bystander
# felt to $tmp/KIND.
clients_come() { # SECONDS KIND
    local end=$((SECONDS + $1)) begun from
    from=$(bystander_at)
    came=0 in=0
    while ((SECONDS < end)); do
        begun=$(date +%s%N)
        came=$((came + 1))
        if timeout 30 "${bin}rdma_client" "${tls_options[@]}" --tls-port "${port[main]}" --count 1 "$host" ping \
            >"$tmp/client.log" 2>&1; then
            in=$((in + 1))
            echo $((($(date +%s%N) - begun) / 1000000)) >>"$tmp/$2-clients"
        else
            sed 's/^/# /' "$tmp/client.log"
        fi
    done
    collect "$from" "$2"
}

# For the reader: how late a client's messages are depends on who else has this machine's processors.
says_tail() { # KIND
    printf '# connected client: %s; %s\n' "$(tail_of "$1" us)" "$(tail_of quiet us)"
}

# The attacker's own work would be another machine's: it has the processor's time that nobody else wants.
rogue() { # NAME MODE...
    local name=$1
    shift
    start "$name" nice -n 19 "$programs/rogue" "${tls_options[@]}" --timeout 60 --source $greedy "$host" "${port[main]}" "$@"
}

attack_begins() { # MODE
    local modes=("$1")
    # Each of them is cut off at once.
    [[ $1 != key-updates* ]] || for ((i = 0; i < 100 * seconds; i++)); do modes+=("$1"); done
    rogue "$1" "${modes[@]/%:PORT/:${rdma_ports[main]%%,*}}"
    wait_until 60 has_line "${logs[$1]}" '(connections|granted|reports|begun|closed)' || not_ok "$1 begins" "$(<"${logs[$1]}")"
}

# Six clients that do nothing but READ for 5 s, 8 MiB with each request. The server may take them for dead.
large_reads() { # REQUESTS_AT_ONCE
    local from
    from=$(bystander_at)
    start "readers-$1" "${bin}performance_test" "${tls_options[@]}" --environment native --quiet --report off \
        --output "$results" --server "$host" --tls-port "${port[regions]}" --threads 1 --warmup 0 --duration 5 \
        --workload read --message-size 8388600 --inflight "$1" --steps 6
    end_of "readers-$1" 180
    matches "six clients READ $1 times 8 MiB at once, and come to their end" "$status" '^[014]$'
    collect "$from" "reads-$1"
    says_tail "reads-$1"
    reaches regions 60 clients.connected=1 clients.closing=0 pools.qp.quarantined=0
}

start_server main --threads 2 --max-clients 64
interface=$(ip -o addr show to "$host" | awk '{ print $2; exit }')
if [[ $host != 10.77.0.1 ]] || ! { ip addr add $greedy/32 dev "$interface" 2>/dev/null || [[ $(ip -o addr show to $greedy) ]]; }; then
    skip "one address tries everything" "a second address ($greedy beside 10.77.0.1) needs the micro-VM"
    stop_server main
    finish
fi
remember_start main
start_bystander main
clients_come 10 quiet
is "every client gets in when nobody else is there" $in $came

from=$(bystander_at)
rogue requests requests=10000
ends "10,000 connection requests that guess a session: all are refused" requests 300 0 'requests=10000: 10000 rejected, 0 lost'
collect "$from" requests
says_tail requests
counted "10,000 connection requests: each is counted" main 'events.refused.bad_session>=10000'

for attack in "${attacks[@]}"; do
    attack_begins "$attack"
done
clients_come "$seconds" crowded
for kind in quiet crowded; do
    printf '# clients that come, %s\n' "$(tail_of $kind-clients ms)"
done
is "every client of another address gets in while one address tries everything for $seconds s" $in $came
gives "the operator of another address is answered" 0 '^[0-9.]+$' "$programs/stats" "${tls_options[@]}" "$host" \
    "${port[main]}" uptime_s
report=$(stats main clients events failures pools resources shards)
is "reports name no client" "$([[ $report == *tcp_accepted* && $report != *$greedy* ]] && echo none)" none
printf '# cut off for their records: %s, connection requests refused: %s, failed handshakes: %s\n' \
    "$(stats main failures.psn_exchange.tls:too_many_records)" "$(stats main events.refused.bad_session)" \
    "$(stats main failures.tls_handshake | jq -c .)"
for attack in "${attacks[@]}"; do
    kill -KILL "${pid[$attack]}"
    end_of "$attack" 10
done
clients_come 10 quiet
says_tail crowded
loses_nothing "the client that was there all the time lost nothing" bystander
limit=60 all_back "everything is back" main
stop_server main

# ---- large READs, which the device answers by itself

start_server regions --threads 1 --max-clients 8 --region-size 64M
start_bystander regions
rm "$tmp/quiet"
pause 2
collect 0 quiet
large_reads 1
large_reads 8
loses_nothing "six clients READ 64 MiB at once: the client beside them lost nothing" bystander
serves "a new client is served" regions
stop_server regions
finish
