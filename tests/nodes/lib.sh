#!/bin/bash
# Two machines on a wire, for scripts that say so in a line `# nodes: 2` (tests/soft_roce/run.sh). The script runs on
# node 1, after tests/soft_roce/lib.sh and this file; node 2 runs this file, which carries out what on_peer says. The two talk through files in a folder that
# both see (RAMPART_EXCHANGE), so that the wire may be cut.
# shellcheck disable=SC2154  # those of soft_roce/lib.sh

exchange=${RAMPART_EXCHANGE:?run it with tests/soft_roce/run.sh}

# Runs a command line on node 2, in one shell for all of them, which has the functions of soft_roce/lib.sh; its output, and its
# status. Within $limit seconds.
on_peer() { # WORDS...
    local n=1 at status
    while [[ -e $exchange/$n.command ]]; do
        n=$((n + 1))
    done
    at=$exchange/$n
    printf '%s\n' "$*" >"$at.tmp"
    mv "$at.tmp" "$at.command"
    if ! wait_until "${limit:-60}" test -e "$at.status"; then
        not_ok "node 2 carries out '$*'" "no answer"
        finish
    fi
    cat "$at.output"
    read -r status <"$at.status"
    return "$status"
}

# What start_server does, on node 2: afterwards $host and ${port[NAME]} are those of node 2's server.
start_peer_server() { # NAME OPTIONS...
    local name=$1 text
    text=$(on_peer "start_server $* >&2; echo \"\$host \${port[$name]}\"")
    read -r host "port[$name]" < <(tail -n 1 <<<"$text")
    [[ ${port[$name]} ]] || { not_ok "server '$name' on node 2" "$text" && finish; }
}

# netem on what a node sends: rules as of tc-netem(8); none ends it. Its own queue must not lose packets, too.
netem_on() { # on_peer|eval RULE...
    local run=$1
    shift
    $run "tc qdisc del dev rampart0 root 2>/dev/null; [ -z '$*' ] || tc qdisc add dev rampart0 root netem limit 100000 $*"
}

# The same on both, so on requests and replies alike.
netem() { # RULE...
    { netem_on eval "$@" && netem_on on_peer "$@"; } || not_ok "netem $*" "tc refused it"
}

# After a run: every client is accounted for, and for a reason that a wire can give; every message of those that stayed
# was answered once and as it was sent. How many stayed is shown, since that is the wire's.
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

[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0
# Node 2.
. tests/soft_roce/lib.sh
server_ports+=(--bind "10.77.0.$RAMPART_NODE")
for ((n = 1; ; n++)); do
    at=$exchange/$n
    until [[ -e $at.command ]]; do
        pause 0.1
    done
    eval "$(<"$at.command")" >"$at.output" 2>&1
    echo $? >"$at.done"
    mv "$at.done" "$at.status"
done
