#!/bin/bash
# kill -9 of 100 of 1,000 clients in each phase of a connection: the other 900 lose nothing, and the server gets back
# what the dead ones held. Ten generators of 100 clients share one server; nine survive all of it.
# alone
# transports
# limit: 1500

. tests/soft_roce/lib.sh

survivors=9
all=$((survivors * 100))
# Queue pairs and PSNs of each client; over sockets there are none.
[[ $transport == rdma ]] && qps=1 psns=2 || qps=0 psns=0
# Messages that a generator must have checked: in a micro-VM (RDMA) it lives for minutes, otherwise for seconds.
[[ $transport == rdma ]] && checked=500 || checked=20
[[ ${RAMPART_CONNECT:-cm} == cm ]] || stage=qp-exchange

# ---- 900 clients that stay

start_server main --threads 2 --max-clients 1100 --verify --session-timeout 20 --probe-interval 5
remember_start main
for ((i = 1; i <= survivors; i++)); do
    load live$i main --steps 100 --threads 1 --warmup 0 --duration 1h --rate 20
    reaches main 120 clients.connected=$((i * 100))
done
counted "$all clients of $survivors generators are connected" main clients.connected=$all
read -ra buffers <<<"${start_values[main]}"
settled=("clients.connected=$all" clients.handshakes=0 clients.closing=0 pools.sessions=0 "pools.admitted=$all"
    "pools.qp.in_use=$((qps * all))" pools.qp.quarantined=0 "pools.psns_in_use=$((psns * all))" pools.regions_in_use=0 "${buffers[@]}")
limit=60 counted "the server holds what they need and no more" main "${settled[@]}"

# ---- 100 clients that are killed

# Starts a generator of 100 clients.
start_victim() { # NAME OPTIONS...
    local name=$1
    shift
    load "$name" main --steps 100 --threads 1 --warmup 0 --duration 1h "$@"
}

kill_victim() { # NAME
    kill -KILL "${pid[$1]}"
    end_of "$1" 10
}

# Waits for a condition on the server's counters, in a control session opened beforehand, because the clients'
# handshakes would hold up a new one. OTHERS: the number of other control sessions, two per generator.
watch() { # CONDITION OTHERS
    start watch "$programs/stats" "${tls_options[@]}" --wait 180 "$host" "${port[main]}" "$1"
    reaches main 60 "clients.control>=$(($2 + 2))"
}

has_come() { # CONDITION
    wait "${pid[watch]}" || not_ok "within 180 s: $1" "$(<"${logs[watch]}")"
    unset "pid[watch]"
}

# Checks that every accepted connection still exists, or ended once and with a reason.
is_accounted() { # NAME
    local v
    mapfile -t v < <(stats main events.tcp_accepted events.closed clients.connected clients.control)
    is "$1: every connection is there or was counted with the reason of its end" "${v[0]}" \
        "$(jq -n --argjson closed "${v[1]}" "[\$closed[]] | add - (\$closed.handed_over // 0) + ${v[2]} + ${v[3]}")"
}

# Prints what the server counted between two of its reports.
reasons() { # REPORT_BEFORE REPORT_AFTER
    jq -rn --argjson a "$1" --argjson b "$2" '
        ($b.events.closed | to_entries | map(.value -= ($a.events.closed[.key] // 0)) | map(select(.value > 0)) |
            map("\(.value) \(.key)") | join(", ")) + "; failures: " +
        ([$b.failures[] | . as $f | .count -= ([$a.failures[] | select(.stage == $f.stage and .code == $f.code) | .count] | add // 0) |
            select(.count > 0) | "\(.count) \(.stage) \(.code)"] | join(", "))'
}

report() {
    local v
    mapfile -t v < <(stats main events failures)
    printf '{"events": %s, "failures": %s}\n' "${v[@]}"
}

grown() { # REPORT_BEFORE REPORT_AFTER EVENT
    jq -n --argjson a "$1" --argjson b "$2" "\$b.events.$3 - \$a.events.$3"
}

# Kills a generator when COUNTER has grown by BY. It must die in the phase: afterwards COUNTER may have grown by at most
# UPTO, and that of the next phase not at all. If the generator was faster, try again.
dies_in() { # PHASE COUNTER BY UPTO NEXT_COUNTER OPTIONS...
    local phase=$1 counter=$2 by=$3 upto=$4 next=$5 before after begun try n
    shift 5
    for try in 1 2 3 4 5; do
        before=$(report)
        n=$(jq ".events.$counter" <<<"$before")
        watch "events.$counter>=$((n + by))" $((2 * survivors))
        start_victim "$phase-$try" "$@"
        has_come "$phase"
        kill_victim "$phase-$try"
        begun=$SECONDS
        limit=60 counted "kill -9 of 100 of 1,000 clients in $phase: the server has back what they held" main "${settled[@]}"
        after=$(report)
        printf '# %s: within %d s; %s\n' "$phase" $((SECONDS - begun)) "$(reasons "$before" "$after")"
        is_accounted "$phase"
        (($(grown "$before" "$after" "$counter") > upto || $(grown "$before" "$after" "$next") > 0)) || break
    done
    is "kill -9 in $phase: it was in the middle of that" "$(($(grown "$before" "$after" "$counter") <= upto &&
        $(grown "$before" "$after" "$next") == 0))" 1
}

# With --phased all clients pass each stage together, so the server's counters tell the stage. All make their TLS
# handshakes at once; the other two stages are short, so few clients are in them at a time, and the rest waits before
# them. A generator's control session needs a handshake too, as does each look at the counters.
dies_in tls-handshakes handshakes_full 30 10000 granted --phased --connect-concurrency 100
case $transport in
    rdma)
        dies_in psn-exchange granted 1 99 established --phased --connect-concurrency 2
        dies_in "${stage:-rdma-connect}" established 1 99 messages_corrupt --phased --connect-concurrency 2
        ;;
    tcp)
        dies_in psn-exchange granted 1 99 established --phased --connect-concurrency 2
        dies_in socket-connect established 1 99 messages_corrupt --phased --connect-concurrency 2
        ;;
    # Over TLS a client is connected as soon as it has its GRANT.
    tls) dies_in psn-exchange granted 1 99 messages_corrupt --phased --connect-concurrency 2 ;;
esac

# Kills live clients with all their messages in flight.
dies_live() {
    local before after begun messages
    before=$(report)
    messages=$(jq .events.messages_in <<<"$before")
    start_victim live --connect-concurrency 100 --inflight 8
    reaches main 120 clients.connected=$((all + 100)) "events.messages_in>=$((messages + 5000))"
    kill_victim live
    begun=$SECONDS
    limit=60 counted "kill -9 of 100 of 1,000 clients that send: the server has back what they held" main "${settled[@]}"
    after=$(report)
    printf '# live: within %d s; %s\n' $((SECONDS - begun)) "$(reasons "$before" "$after")"
    is_accounted live
}
dies_live

# Kills clients while they leave. The counter is watched from before; if the generator was faster, try again. Over
# sockets all of them leave within a millisecond, too fast for a look at the counters.
dies_leaving() {
    local before after begun try last=
    for try in 1 2 3 4 5; do
        before=$(report)
        start_victim "leaving-$try" --connect-concurrency 100
        reaches main 120 clients.connected=$((all + 100))
        watch "clients.connected<=$((all + 99))" $((2 * (survivors + 1)))
        kill -INT "${pid[leaving-$try]}"
        has_come leaving
        kill_victim "leaving-$try"
        last=$(tail -n 1 "$results"/*-leaving-$try/events.ndjson)
        begun=$SECONDS
        limit=60 counted "kill -9 of 100 of 1,000 clients that leave: the server has back what they held" main "${settled[@]}"
        after=$(report)
        printf '# leaving: within %d s; %s\n' $((SECONDS - begun)) "$(reasons "$before" "$after")"
        is_accounted leaving
        [[ $transport == rdma ]] || return
        ((status != 137)) || [[ $last != *disconnecting* ]] || break
    done
    matches "kill -9 while clients leave: it was in the middle of that" "$status $last" '^137 .*disconnecting'
}
dies_leaving

# ---- the clients that stayed

for ((i = 1; i <= survivors; i++)); do
    kill -INT "${pid[live$i]}"
done
for ((i = 1; i <= survivors; i++)); do
    ends "generator $i ends when told to" live$i 90 130 'interrupted: draining'
    holds "generator $i: its 100 clients lost nothing" live$i 'one.connected_held == 100' \
        '[one | .failed, .dropped] == [0, 0]' 'one.failures == []' "one.verified.checked >= $checked" \
        '[one.verified | .corrupt, .server_corrupt] == [0, 0]' 'one.validity | contains(["replies_missing"]) | not'
done
limit=60 all_back "when all have left everything is back" main

# ---- clients that are killed while the server stops

start_victim last --connect-concurrency 100 --inflight 8
reaches main 120 clients.connected=100
load told main --steps 100 --threads 1 --warmup 0 --duration 1h
reaches main 120 clients.connected=200
wait_until 60 has_line "$results"/*-told/events.ndjson '"measuring"' || not_ok "run 'told' measures" "$(<"${logs[told]}")"
kill -TERM "${pid[main]}"
kill_victim last
ends "kill -9 of half the clients of a server that stops: it stops in order" main 20 0 stopped
end_of told 60
holds "kill -9 of half the clients of a server that stops: the others are told" told 'one.dropped == 100' \
    '[one.failures[] | select(.code == "draining") | .count] == [100]' 'one.verified.corrupt == 0'
finish
