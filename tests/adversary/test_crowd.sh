#!/bin/bash
# One address takes everything there is (connections, sessions, control sessions); seven clients of another address must
# still get in promptly.

. tests/soft_roce/lib.sh

greedy=10.77.0.2 # the attacker's address, in addition to that of the clients and the server
how=() # further options of the clients and the attacker

# Starts seven clients at once, each with one message. One that is told `busy` tries again, as the protocol says: a
# session is taken back only when it is half a second old. Sets $in (how many got in) and $slowest_ms.
seven() { # SERVER
    local i
    in=0 slowest_ms=0
    for i in {1..7}; do
        start honest$i bash -c 'begun=$(date +%s%N)
            while out=$("$@" 2>&1); status=$?; [[ $out == *refused:busy* ]]; do echo "busy"; done
            echo "$out"
            ((status == 0)) && echo "took $((($(date +%s%N) - begun) / 1000000)) ms"' _ \
            "${bin}rdma_client" "${tls_options[@]}" --tls-port "${port[$1]}" "${how[@]}" --count 1 "$host" ping
    done
    for i in {1..7}; do
        end_of honest$i 240
        if ((status == 0)) && [[ $(<"${logs[honest$i]}") =~ took\ ([0-9]+)\ ms ]]; then
            in=$((in + 1))
            ((BASH_REMATCH[1] <= slowest_ms)) || slowest_ms=${BASH_REMATCH[1]}
        fi
    done
}

# While the attacker runs, seven clients must get in, at most $late_ms later than twice the time that they took alone.
crowded() { # SERVER MODE SAYS
    local text
    start greedy "$programs/rogue" "${tls_options[@]}" "${how[@]}" --source $greedy "$host" "${port[$1]}" "$2"
    wait_until 240 has_line_or_gone greedy "$3" || not_ok "$2 begins" "$(<"${logs[greedy]}")"
    seven "$1"
    text="$in of 7 clients get in, the slowest after $slowest_ms ms"
    if ((in == 7 && slowest_ms <= 2 * alone_ms + late_ms)); then
        ok "$2${how[*]+ ${how[*]}} from one address, $text (alone $alone_ms ms)"
    else
        not_ok "$2 from one address" "$text; alone $alone_ms ms"
    fi
    kill -KILL "${pid[greedy]}"
    end_of greedy 240
    # The next attack finds the server empty: sessions that were taken have expired.
    reaches "$1" 90 pools.sessions=0
}

start_server main --threads 2 --max-clients 64 --handshake-timeout 30 --session-timeout 30
interface=$(ip -o addr show to "$host" | awk '{ print $2; exit }')
if [[ $host != 10.77.0.1 ]] || ! { ip addr add $greedy/32 dev "$interface" 2>/dev/null || [[ $(ip -o addr show to $greedy) ]]; }; then
    skip "one address takes all there is" "a second address ($greedy beside 10.77.0.1) needs the micro-VM"
    stop_server main
    finish
fi
remember_start main
seven main
is "seven clients get in when nobody else is there" $in 7
alone_ms=$slowest_ms
# It takes at most a second until a connection counts as silent; the rest is for slow machines.
late_ms=3000

crowded main crowd-silent=4000 '4000 connections'
crowded main crowd-half=1100 '1100 connections'
crowded main crowd-drip=1100 '1100 connections'
crowded main crowd-grants '[1-9][0-9]* granted'
crowded main crowd-chains '[1-9][0-9]* granted'
how=(--connect oob)
crowded main crowd-grants '[1-9][0-9]* granted'
crowded main crowd-chains '[1-9][0-9]* granted'
how=()
counted "what made room is counted" main 'events.closed.crowded_out>=100' events.refused.full
counted "sessions that followed another on its TLS connection are counted" main 'events.tls_shared>=14'

start greedy "$programs/rogue" "${tls_options[@]}" --source $greedy "$host" "${port[main]}" hold-controls=70
wait_until 240 has_line_or_gone greedy 'reports' || not_ok "hold-controls begins" "$(<"${logs[greedy]}")"
matches "one address gets 64 control sessions" "$(<"${logs[greedy]}")" '64 reports, 6 times refused: busy, 0 unanswered'
gives "control sessions: another address is answered" 0 '^[0-9.]+$' "$programs/stats" "${tls_options[@]}" "$host" \
    "${port[main]}" uptime_s
kill -KILL "${pid[greedy]}"
end_of greedy 240
all_back "everything is back" main
stop_server main

# The crowd takes all places, and more of it waits.
start_server few --threads 1 --max-handshakes 8 --max-clients 64
seven few
alone_ms=$slowest_ms
crowded few crowd-busy=24 'psn_conflict'
stop_server few

start_server strict --threads 2 --max-clients 64 --max-per-address 3
start three "$programs/rogue" "${tls_options[@]}" --source $greedy "$host" "${port[strict]}" unique-psns=5
end_of three 240
matches "--max-per-address: the fourth session of an address is refused" "$(<"${logs[three]}")" \
    'refused: full: this address has as many clients as --max-per-address allows'
serves "--max-per-address: another address is served" strict
stop_server strict
finish
