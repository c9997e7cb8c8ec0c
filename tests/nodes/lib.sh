#!/bin/bash
# Several machines on a wire, for scripts with a line `# nodes: N` (tests/soft_roce/run.sh). The script runs on node 1,
# after tests/soft_roce/lib.sh and this file; the other nodes run this file, which executes the commands that on_node
# sends. They communicate through files in a shared folder (RAMPART_EXCHANGE), so that the wire may be cut.
# shellcheck disable=SC2154  # those of soft_roce/lib.sh

exchange=${RAMPART_EXCHANGE:?run it with tests/soft_roce/run.sh}

# Sends a command line to a node. One shell there, with the functions of soft_roce/lib.sh, executes all of them in turn.
# Sets $at, the prefix of the files with the answer.
tell_node() { # NODE WORDS...
    local node=$1 n=1
    shift
    while [[ -e $exchange/$node.$n.command ]]; do
        n=$((n + 1))
    done
    at=$exchange/$node.$n
    printf '%s\n' "$*" >"$at.tmp"
    mv "$at.tmp" "$at.command"
}

# The same, then waits up to $limit seconds for its end. Prints its output and returns its status.
on_node() { # NODE WORDS...
    local at status
    tell_node "$@"
    if ! wait_until "${limit:-60}" test -e "$at.status"; then
        not_ok "node $1 carries out '${*:2}'" "no answer"
        finish
    fi
    cat "$at.output"
    read -r status <"$at.status"
    return "$status"
}

# For scripts with two nodes.
on_peer() { # WORDS...
    on_node 2 "$@"
}

# Runs start_server on node 2. Afterwards $host and ${port[NAME]} are those of its server.
start_peer_server() { # NAME OPTIONS...
    local name=$1 text
    text=$(on_peer "start_server $* >&2; echo \"\$host \${port[$name]}\"")
    read -r host "port[$name]" < <(tail -n 1 <<<"$text")
    [[ ${port[$name]} =~ ^[0-9]+$ ]] || { not_ok "server '$name' on node 2" "$text" && finish; }
}

# Sets tc-netem(8) rules for what a node sends, or none. The limit keeps netem's own queue from losing packets.
netem_on() { # on_peer|eval RULE...
    local run=$1
    shift
    $run "tc qdisc del dev rampart0 root 2>/dev/null; [ -z '$*' ] || tc qdisc add dev rampart0 root netem limit 100000 $*"
}

# The same on both nodes, so for requests and replies alike.
netem() { # RULE...
    { netem_on eval "$@" && netem_on on_peer "$@"; } || not_ok "netem $*" "tc refused it"
}

# Checks after a run that every client is accounted for, with reasons that a wire can cause, and that every message of
# the clients that stayed was answered once and unchanged. Prints how many stayed, which depends on the wire.
is_honest() { # NAME RUN [CONDITION...]
    local name=$1 run=$2
    shift 2
    if [[ ! -s $tmp/$run.json ]]; then
        not_ok "$name" "no run.json (status $status): $(<"${logs[$run]}")"
        return
    fi
    holds "$name: nothing is lost, doubled or changed unreported" "$run" \
        'one.verified.corrupt == 0' '(one.verified.server_corrupt // 0) == 0' 'one.verified.checked > 0' \
        'one.target_clients == one.connected_held + one.failed + one.dropped' \
        '([one.failures[].count] | add // 0) >= one.failed + one.dropped' \
        '(one.failed + one.dropped > 0) or (one.validity | contains(["replies_missing"]) | not)' \
        '[one.failures[].code | select(test("^(protocol|tls|certificate|wc:(local|remote))"))] == []' "$@"
    jq -r '.steps[0] | "  \(.connected_held) of \(.target_clients) clients held, \(.verified.checked) messages checked, " +
        "retries \(.retries), failures \([.failures[] | "\(.count) \(.code)"] | join(", "))"' "$tmp/$run.json"
}

# ---- packets on the wire, for this node and, with on_peer, for node 2

# Makes tcpdump write the headers of all packets at this end to $tmp/wire.pcap, until end_capture.
start_capture() {
    start capture tcpdump -Z root -i rampart0 -s 96 -B 32768 -w "$tmp/wire.pcap"
    wait_until 30 has_line "${logs[capture]}" 'listening on'
}

# True if tcpdump has read all packets from the kernel, as it prints on SIGUSR1; when it ends it drops the rest.
capture_has_all() {
    local line
    kill -USR1 "${pid[capture]}"
    line=$(grep ' packets received by filter' "${logs[capture]}" | tail -n 1)
    [[ $line =~ ([0-9]+)\ packets\ captured,\ ([0-9]+)\ packets\ received ]] && ((BASH_REMATCH[1] == BASH_REMATCH[2]))
}

# Fails if tcpdump missed packets.
end_capture() {
    wait_until 60 capture_has_all || { cat "${logs[capture]}" && return 1; }
    kill -INT "${pid[capture]}"
    end_of capture 60
    has_line "${logs[capture]}" '^0 packets dropped by kernel' || { cat "${logs[capture]}" && false; }
}

# Prints "BYTES_OUT BYTES_IN RDMA_PACKETS_OUT RDMA_PACKETS_IN" of the capture from BEGIN to END (date(1) formats).
on_wire() { # BEGIN END
    local mac begin end
    mac=$(</sys/class/net/rampart0/address)
    begin=$(date -d "$1" +%s.%N) end=$(date -d "$2" +%s.%N)
    # Port 4791 is RoCE's (IBTA annex 17).
    tcpdump -nn -tt -e -q -r "$tmp/wire.pcap" 2>/dev/null | awk -v mac="$mac" -v begin="$begin" -v end="$end" '
        $1 + 0 >= begin + 0 && $1 + 0 < end + 0 && match($0, /length [0-9]+:/) {
            bytes = substr($0, RSTART + 7, RLENGTH - 8)
            way = $2 == mac ? 0 : 1
            all[way] += bytes
            rdma[way] += / > [0-9.]+\.4791: /
        }
        END { printf "%d %d %d %d\n", all[0], all[1], rdma[0], rdma[1] }'
}

# Prints "BYTES_OUT BYTES_IN PACKETS_OUT PACKETS_IN": bytes of the interface, packets of the RDMA device.
device_says() {
    local net=/sys/class/net/rampart0/statistics rdma=(/sys/class/infiniband/*/ports/1/hw_counters)
    echo "$(<$net/tx_bytes) $(<$net/rx_bytes) $(<"${rdma[0]}/sent_pkts") $(<"${rdma[0]}/rcvd_pkts")"
}

[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0
# The other nodes continue here.
. tests/soft_roce/lib.sh
server_ports+=(--bind "10.77.0.$RAMPART_NODE")
for ((n = 1; ; n++)); do
    at=$exchange/$RAMPART_NODE.$n
    until [[ -e $at.command ]]; do
        pause 0.1
    done
    eval "$(<"$at.command")" >"$at.output" 2>&1
    echo $? >"$at.done"
    mv "$at.done" "$at.status"
done
