#!/bin/bash
# The network figures of the devices, the server and performance_test must equal what tcpdump sees at both ends of a
# wire: bytes and packets of SENDs, of READs and WRITEs by clients, of large transfers, and retransmissions.
# nodes: 2
# limit: 1500

. tests/soft_roce/lib.sh
. tests/nodes/lib.sh

allowed=0.02 # of a figure

# Checks that the second line of figures equals the first one within $allowed.
agrees() { # NAME "SEEN..." "SAID..."
    awk -v allowed=$allowed '{
        for (i = 1; i <= NF / 2; i++) {
            off = ($(i + NF / 2) - $i) / ($i > 0 ? $i : 1)
            printf("%s%s/%s (%+.2f %%)", (i > 1 ? ", " : ""), $(i + NF / 2), $i, 100 * off)
            wrong += !($i > 0 && $(i + NF / 2) != "null" && off <= allowed && off >= -allowed)
        }
        exit (wrong > 0) }' <<<"$2 $3" >"$tmp/agrees"
    # shellcheck disable=SC2181
    if (($? == 0)); then ok "$1: $(<"$tmp/agrees")"; else not_ok "$1" "$(<"$tmp/agrees")"; fi
}

# Prints figures of one side from a run's first step.
said() { # RUN SIDE NAME...
    local run=$1 side=$2 names
    shift 2
    names=$(printf '.%s,' "$@")
    jq -r --arg side "$side" ".steps[0].network[\$side] | [${names%,}] | map(tostring) | join(\" \")" "$tmp/$run.json"
}

# Prints by how much each of four figures grew from "BEFORE" to "AFTER".
growth() { # BEFORE AFTER
    awk '{ print $5 - $1, $6 - $2, $7 - $3, $8 - $4 }' <<<"$1 $2"
}

capture() { # NAME OPTIONS...
    local name=$1 here there from to words=(bytes_out bytes_in packets_out packets_in)
    shift
    start_capture && on_peer start_capture >/dev/null || not_ok "$name: tcpdump starts" "$(<"${logs[capture]}")"
    here=$(device_says) there=$(on_peer device_says)
    load "$name" main --steps "${clients:-4}" --warmup 0.5 --duration 3 "$@"
    end_of "$name" "${limit:-240}"
    [[ -s $tmp/$name.json ]] || not_ok "$name comes to its end" "$(<"${logs[$name]}")"
    here=$(growth "$here" "$(device_says)") there=$(growth "$there" "$(on_peer device_says)")
    { end_capture && on_peer end_capture; } >"$tmp/missed" || not_ok "$name: tcpdump misses nothing" "$(<"$tmp/missed")"
    agrees "$name: node 1's device" "$(on_wire @0 @4000000000)" "$here"
    agrees "$name: node 2's device" "$(limit=240 on_peer on_wire @0 @4000000000)" "$there"
    read -r from to < <(said "$name" generator began_at ended_at)
    agrees "$name: the generator" "$(on_wire "$from" "$to")" "$(said "$name" generator "${words[@]}")"
    read -r from to < <(said "$name" server began_at ended_at)
    agrees "$name: the server" "$(limit=240 on_peer on_wire "$from" "$to")" "$(said "$name" server "${words[@]}")"
}

command -v tcpdump >/dev/null || { not_ok "tcpdump is here" "scripts/install-deps --tests installs it" && finish; }
start_peer_server main --threads 1 --max-clients 64 --region-size 1M --message-size 64k --credits 4

for workload in echo write read; do
    capture "$workload" --workload "$workload" --message-size 4096
done
clients=2 capture large --workload large --message-size 262144

holds "bytes are the interface's, packets the device's, and nothing came back to its sender" echo \
    '[one.network | .server, .generator | .bytes_source] | unique == ["netdev"]' '[one.network | .server, .generator | .packets_source] | unique == ["rdma_counters"]' \
    '[one.network | .server, .generator | .loopback] | any == false' '[one.network | .server, .generator | .retransmits | type] | unique == ["number"]' \
    'one.resources.server.net_bytes == one.network.server.bytes_out + one.network.server.bytes_in'
for run in write read; do
    holds "$run: the server's payload has what clients moved without it" $run \
        'one.resources.server.payload_bytes >= 0.9 * one.throughput_msgs_per_s * one.measured_s * 4096' \
        'one.resources.server.payload_bytes < one.resources.server.net_bytes'
done

netem loss 2%
# With more than one packet in flight, those behind a lost one arrive out of sequence.
load lossy main --steps 4 --warmup 0.5 --duration 5 --message-size 1024 --inflight 4
end_of lossy 240
netem
holds "a wire that loses packets: some are sent again, and some come out of sequence" lossy \
    'one.network.server.retransmits + one.network.generator.retransmits > 0' \
    'one.network.server.out_of_sequence + one.network.generator.out_of_sequence > 0' \
    '[one.network | .server, .generator | .ports[].counters | has("completer_retry_err")] | all'

finish
