#!/bin/bash
# What strangers can do to the messages of a client that is connected: one shard, one client that sends all the time, and
# one attack after another, with quiet times between. The client's 99th percentile under each attack is at most
# twice that of the quiet times.
# alone

. tests/soft_roce/lib.sh

rounds=2
interval_ms=4
quiet_s=0.8
declare -A times=()

# Attacks, and how much of each in a round.
attacks=(key-updates=1000 control-key-updates=1000 client-hellos=150@100 requests=400 control-flood=1)

start_server main --threads 1 --max-clients 64
remember_start main
start_ping bystander main --interval 0.00$interval_ms

# The round trips, in us, of the lines from $1 on go to $tmp/KIND. For one that took long the messages count that
# were not sent meanwhile: each would have waited for the rest of it.
collect() { # FROM_LINE KIND
    tail -n "+$1" "${logs[bystander]}" | sed -n 's/.* time=\([0-9.]*\) us$/\1/p' |
        awk -v step=$((interval_ms * 1000)) '{ for (t = $1; t > 0; t -= step) print t }' >>"$tmp/$2"
}

lines() {
    wc -l <"${logs[bystander]}"
}

percentile() { # KIND PERCENT
    sort -n "$tmp/$1" | awk -v p="$2" '{ v[NR] = $1 } END { i = int(NR * p / 100 + 0.999999); print int(v[i < 1 ? 1 : i]) }'
}

for ((round = 1; round <= rounds; round++)); do
    for attack in "${attacks[@]}"; do
        from=$(lines)
        pause $quiet_s
        collect $((from + 1)) quiet
        from=$(lines)
        start attacker "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" "$attack"
        end_of attacker 60
        collect $((from + 1)) "$attack"
        ((status == 0)) || not_ok "attack $attack" "$(<"${logs[attacker]}")"
        used+=("${attack%%=*}")
    done
done
quiet=$(percentile quiet 99)
printf '# quiet: p50 %d us, p99 %d us, max %d us, %d messages\n' "$(percentile quiet 50)" "$quiet" \
    "$(percentile quiet 100)" "$(wc -l <"$tmp/quiet")"
for attack in "${attacks[@]}"; do
    p99=$(percentile "$attack" 99)
    text="p50 $(percentile "$attack" 50) us, p99 $p99 us, max $(percentile "$attack" 100) us, $(wc -l <"$tmp/$attack") messages"
    if ((p99 <= 2 * quiet)); then
        ok "$attack: $text"
    else
        not_ok "$attack: p99 within twice that of the quiet times, $quiet us" "$text"
    fi
done
counted "clients that send key updates are cut off, by name" main \
    failures.tls_handshake.tls:too_many_records=0 "failures.psn_exchange.tls:too_many_records=$((2 * rounds))"
matches "and the log says so" "$(<"${logs[main]}")" 'cut 10\.[0-9.]+:[0-9]+ off: it sent more than 8 records without data'
serves "a new client is served" main
loses_nothing "the client that was there all the time lost nothing" bystander
all_back "after the attacks everything is back" main
stop_server main
finish
