#!/bin/bash
# Attacks by others must not delay a connected client's messages. On one shard, one client sends all the time, and one
# attack follows another (by strangers, control sessions and clients over sockets), with a quiet time before each. Under
# each attack the client's 99th percentile may be at most twice that of the quiet times. Other load on the machine can
# only raise it, so each attack has three tries.
# alone

. tests/soft_roce/lib.sh

quiet_s=0.8
attacks=(key-updates=1000 control-key-updates=1000 client-hellos=150@100 requests=400 control-flood=1 mark-flood=1
    record-deaf-crowd=24 record-sips)
cut_off=0

start_server main --threads 1 --max-clients 64 --session-timeout 2 --transports rdma,tcp --message-size 64k --probe-interval 2
remember_start main
start_bystander main

quiet_time() {
    local from
    from=$(bystander_at)
    pause $quiet_s
    collect "$from" quiet
}

# Runs an attack and writes the client's round trips meanwhile to $tmp/ATTACK.
under() { # ATTACK
    local from as=rdma wanted=0
    from=$(bystander_at)
    rm -f "$tmp/$1"
    [[ $1 != record-* ]] || as=tcp
    start attacker "$programs/rogue" --transport $as --timeout 30 "${tls_options[@]}" "$host" "${port[main]}" "$1"
    if [[ $1 == *crowd* ]]; then
        # Other attacks cover the handshakes. Measure only while the crowd stays connected and when it leaves.
        wait_until 60 has_line_or_gone attacker '24 clients' || not_ok "$1 begins" "$(<"${logs[attacker]}")"
        from=$(bystander_at)
        pause $quiet_s
        kill -KILL "${pid[attacker]}"
        wanted=137
    fi
    end_of attacker 60
    [[ $1 != *crowd* ]] || pause $quiet_s
    collect "$from" "$1"
    ((status == wanted)) || not_ok "attack $1" "$(<"${logs[attacker]}")"
    [[ $1 != *key-updates* ]] || cut_off=$((cut_off + 1))
    [[ $1 != record-sips ]] || has_line "${logs[attacker]}" 'record-sips: closed' ||
        not_ok "a client that reads its answers too slowly is cut off" "$(<"${logs[attacker]}")"
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
# Count instead of reading the log: if the crowd's clients are cut off first, further cuts are not logged for 10 s.
counted "a client that reads its answers too slowly is cut off, by name" main 'failures.traffic.protocol:not_receiving>=1'
serves "a new client is served" main
loses_nothing "the client that was there all the time lost nothing" bystander
all_back "after the attacks everything is back" main
stop_server main
finish
