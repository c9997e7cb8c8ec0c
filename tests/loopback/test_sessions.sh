#!/bin/bash
# TLS sessions of performance_test: more at once than a server accepts (--phased), and tickets of another server,
# tickets switched off, and tickets whose keys have rotated out. The transport does not matter, so this uses TCP.
# here

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

# Prints how much a server's counter grew in the second step alone.
difference() { # PATH
    echo "(two.server_after.$1 - one.server_after.$1)"
}

refuses() { # WHAT SERVER TEXT OPTIONS...
    local name=$1 server=$2 text=$3
    shift 3
    gives "$name" 3 "^performance_test: $text\$" "${bin}performance_test" "${tls_options[@]}" "${over[@]}" --server "$host" \
        --tls-port "${port[$server]}" --quiet --output "$results" "$@"
}

start_server main --threads 2 --max-clients 64

# ---- all in one stage

start_server narrow --threads 1 --max-clients 64 --max-handshakes 8 --session-timeout 5
refuses "--phased: a server that cannot have all TLS connections open is refused" narrow \
    "--phased has 9 TLS connections open at once, which is more than the server's --max-handshakes allow \(8\)" \
    --phased --steps 9
loads fits narrow --phased --steps 8 --warmup 0 --duration 0.3

# ---- tickets

gives "a ticket is good for the server that gave it" 0 'ticket: a ticket, resumed handshake, granted' \
    "$programs/rogue" "${over[@]}" "${tls_options[@]}" "$host" "${port[main]}" ticket
gives "and not for another with the same certificate" 0 'ticket=[0-9]+: a ticket, full handshake, granted' \
    "$programs/rogue" "${over[@]}" "${tls_options[@]}" "$host" "${port[main]}" "ticket=${port[narrow]}"

start_server off --threads 1 --max-clients 16 --tls-resume off --session-timeout 2
refuses "--tls-resume: a server that has it off is refused" off '--tls-resume: the server has --tls-resume off' \
    --tls-resume --steps 5
gives "--tls-resume off: who asks for a ticket gets none" 0 'ticket: no ticket, full handshake, granted' \
    "$programs/rogue" "${over[@]}" "${tls_options[@]}" "$host" "${port[off]}" ticket
counted "--tls-resume off: nothing is counted" off events.tickets=0 events.handshakes_resumed=0

# A ticket is valid in the rotation in which it was made and in the next one.
start_server rotating --threads 1 --max-clients 16 --ticket-rotation 1
loads rotated rotating --tls-resume --repeat 2 --steps 5 --warmup 0 --duration 2.2
holds "tickets from before two rotations are not accepted: full handshakes, new tickets" rotated \
    'one.handshakes == {"full": 5, "resumed": 0}' 'two.handshakes == {"full": 5, "resumed": 0}' \
    "$(difference events.tickets) == 5" 'one.fairness.clients == 5'
finish
