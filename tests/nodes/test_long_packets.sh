#!/bin/bash
# Forged packets from the other machine to a client's queue pair: with guessed sequence numbers, with the expected one,
# and from another address; and guessed keys. A client beside it notices nothing. The attacker gets the numbers from the
# kernel's list, in place of one who sees the traffic.
# nodes: 2

. tests/soft_roce/lib.sh
. tests/nodes/lib.sh

packets=${RAMPART_PACKETS:-10000}

# Sets $qpn (the server's queue pair for a client) and $psn (the sequence number of that client's next packet).
look_at() { # NAME
    local thread
    while read -r qpn psn thread; do
        [[ ! -e /proc/${pid[$1]}/task/$thread ]] || return 0
    done < <(rdma -j res show qp | jq -r '.[] | select(.state == "RTS") | "\(.rqpn) \(."sq-psn") \(.pid)"')
    not_ok "the queue pair of '$1' is found" "$(rdma res show qp)"
    finish
}

# Prints a counter of the server's device.
device_count() { # COUNTER
    on_peer "cat /sys/class/infiniband/*/ports/1/hw_counters/$1"
}

forge() { # MODE=ARGUMENT [OPTIONS...]
    local mode=$1
    shift
    limit=120 gives "$mode${*:+ ($*)}" 0 "${mode%%=*}=[0-9,]*: [0-9]+ sent" "$programs/rogue" "${tls_options[@]}" "$@" "$host" \
        "${port[main]}" "$mode"
}

still_there() { # NAME
    local lines
    lines=$(wc -l <"${logs[$1]}")
    wait_until 60 has_more_lines "$1" $((lines + 5)) || not_ok "'$1' goes on" "$(tail -n 3 "${logs[$1]}")"
}

# shellcheck disable=SC2317  # wait_until calls it
has_more_lines() { # NAME LINES
    (($(wc -l <"${logs[$1]}") > $2))
}

start_peer_server main --threads 1 --max-clients 16 --region-size 4096 --probe-interval 5
remember_start main
start_ping bystander main --interval 0.05
start_ping victim main --interval 0.05

# ---- an attacker who knows the queue pair number, but no sequence number

look_at victim
out_of_order=$(device_count out_of_seq_request) repeated=$(device_count duplicate_request)
forge "packets-guess=$qpn,$packets"
forge "packets-guess-write=$qpn,$packets"
still_there victim
judged=$(($(device_count out_of_seq_request) + $(device_count duplicate_request) - out_of_order - repeated))
is "guessed sequence numbers reach the server's device, which refuses them ($judged of $((2 * packets)) counted)" \
    $((judged > packets / 10)) 1
loses_nothing "guessed sequence numbers: the victim lost nothing" victim
counted "guessed sequence numbers: the server saw nothing of them" main failures.traffic.protocol:bad_message=0

# ---- an attacker who knows both

start_ping victim main --interval 600
look_at victim
forge "packets-exact=$qpn,$psn" --source 10.77.0.3
pause 1
counted "the exact number from another address: refused by the device" main failures.traffic.protocol:bad_message=0 \
    clients.connected=2
loses_nothing "the exact number from another address: the victim lost nothing" victim

start_ping victim main --interval 600
look_at victim
forge "packets-exact=$qpn,$psn"
ends "the exact number and address: the victim's connection ends" victim 30 1 'closed_by_peer'
counted "the exact number and address: the server knows why" main failures.traffic.protocol:bad_message=1

start_ping victim main --interval 600
look_at victim
forge "packets-exact-write=$qpn,$psn"
# The server's device does not report this; the probe finds it.
ends "a WRITE with the exact number and a guessed key: the victim's connection ends" victim 60 1 'closed_by_peer|wc:'

# ---- an attacker who connects, and knows the address of a victim's region and all but 8 bits of its key

limit=300 gives "each key that a neighbour's region may have is refused" 0 'region-guess=256: 256 of 256 refused: remote_access' \
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" region-guess=256

still_there bystander
loses_nothing "a client beside the victim lost nothing" bystander
serves "a new client is served" main
limit=60 all_back "everything is back" main
finish
