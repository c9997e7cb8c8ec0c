#!/bin/bash
# What strangers can do to the messages of a client that is connected: one shard, one client that sends all the time, and
# one attack after another, with quiet times between. The client's 99th percentile under each attack is at most
# twice that of the quiet times. What else the machine does only adds to it, so an attack has three tries to stay below.
# alone

. tests/soft_roce/lib.sh

quiet_s=0.8
attacks=(key-updates=1000 control-key-updates=1000 client-hellos=150@100 requests=400 control-flood=1)
cut_off=0

start_server main --threads 1 --max-clients 64 --session-timeout 2
remember_start main
start_bystander main

quiet_time() {
    local from
    from=$(bystander_at)
    pause $quiet_s
    collect "$from" quiet
}

# Its round trips are in $tmp/ATTACK afterwards.
under() { # ATTACK
    local from
    from=$(bystander_at)
    rm -f "$tmp/$1"
    start attacker "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" "$1"
    end_of attacker 60
    collect "$from" "$1"
    ((status == 0)) || not_ok "attack $1" "$(<"${logs[attacker]}")"
    [[ $1 != *key-updates* ]] || cut_off=$((cut_off + 1))
}

for try in 1 2 3; do
    for attack in "${attacks[@]}"; do
        quiet_time
        under "$attack"
    done
    quiet=$(percentile quiet 99)
    failed_ones=()
    for attack in "${attacks[@]}"; do
        p99=$(percentile "$attack" 99)
        text="$(tail_of "$attack" us); $(tail_of quiet us)"
        if ((p99 <= 2 * quiet)); then
            ok "$attack: p99 within twice that of quiet times: $text"
        elif ((try < 3)); then
            failed_ones+=("$attack")
            echo "# $attack, try $try: $text"
        else
            not_ok "$attack: p99 within twice that of quiet times" "$text"
        fi
    done
    attacks=("${failed_ones[@]}")
    ((${#attacks[@]} > 0)) || break
done
counted "clients that send key updates are cut off, by name" main \
    failures.tls_handshake.tls:too_many_records=0 "failures.psn_exchange.tls:too_many_records=$cut_off"
matches "and the log says so" "$(<"${logs[main]}")" 'cut 10\.[0-9.]+:[0-9]+ off: it sent more than 8 records without data'
serves "a new client is served" main
loses_nothing "the client that was there all the time lost nothing" bystander
all_back "after the attacks everything is back" main
stop_server main
finish
