#!/bin/bash
# One address tries everything at once for a minute: connections that are silent, half or slow, sessions that it does not use,
# PSNs in use asked for again and again, control sessions, and handshakes as fast as it can. Clients of another address come
# one after the other meanwhile: all of them get in.
# alone

. tests/soft_roce/lib.sh

greedy=10.77.0.2 # the attacker's, beside the one that the clients and the server have
seconds=${RAMPART_CROWD_S:-60}
attacks=(crowd-grants hold-controls=70 crowd-silent=1100 crowd-half=500 crowd-drip=200
    crowd-busy=24)

# Clients one after the other for so long, a message each; the time of each, in ms, goes to $tmp/KIND.
clients_come() { # SECONDS KIND
    local end=$((SECONDS + $1)) begun
    came=0 in=0
    while ((SECONDS < end)); do
        begun=$(date +%s%N)
        came=$((came + 1))
        if timeout 30 "${bin}rdma_client" "${tls_options[@]}" --tls-port "${port[main]}" --count 1 "$host" ping \
            >"$tmp/client.log" 2>&1; then
            in=$((in + 1))
            echo $((($(date +%s%N) - begun) / 1000000)) >>"$tmp/$2"
        else
            sed 's/^/# /' "$tmp/client.log"
        fi
    done
}

percentile() { # KIND PERCENT
    sort -n "$tmp/$1" | awk -v p="$2" '{ v[NR] = $1 } END { i = int(NR * p / 100 + 0.999999); print v[i < 1 ? 1 : i] }'
}

start_server main --threads 2 --max-clients 64
interface=$(ip -o addr show to "$host" | awk '{ print $2; exit }')
if [[ $host != 10.77.0.1 ]] || ! { ip addr add $greedy/32 dev "$interface" 2>/dev/null || [[ $(ip -o addr show to $greedy) ]]; }; then
    skip "one address tries everything" "a second address ($greedy beside 10.77.0.1) needs the micro-VM"
    stop_server main
    finish
fi
remember_start main
clients_come 10 alone
is "every client gets in when nobody else is there" $in $came
for attack in "${attacks[@]}"; do
    start "$attack" "$programs/rogue" "${tls_options[@]}" --source $greedy "$host" "${port[main]}" "$attack"
    wait_until 60 has_line "${logs[$attack]}" '(connections|granted|reports)' || not_ok "$attack begins" "$(<"${logs[$attack]}")"
done
clients_come "$seconds" crowded
for kind in alone crowded; do
    printf '# %s: %d clients, p50 %d ms, p99 %d ms, max %d ms\n' $kind "$(wc -l <"$tmp/$kind")" "$(percentile $kind 50)" \
        "$(percentile $kind 99)" "$(percentile $kind 100)"
done
is "every client of another address gets in while one address tries everything for $seconds s" $in $came
gives "the operator of another address is answered" 0 '^[0-9.]+$' "$programs/stats" "${tls_options[@]}" "$host" \
    "${port[main]}" uptime_s
for attack in "${attacks[@]}"; do
    kill -KILL "${pid[$attack]}"
    end_of "$attack" 10
done
limit=60 all_back "everything is back" main
stop_server main
finish
