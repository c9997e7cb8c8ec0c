#!/bin/bash
# One run on two load hosts and against a server, each on its own machine: README's two commands, counts that agree to
# the message, marked packets, a lossy wire, and a host that is killed or cut off in each phase of a step.
# nodes: 3
# limit: 1800

# shellcheck source=tests/soft_roce/lib.sh
. tests/soft_roce/lib.sh
# shellcheck source=tests/nodes/lib.sh
. tests/nodes/lib.sh

# Prints README's command for the leader or for the others, adapted to two hosts.
readme() { # HOST OPTIONS...
    local line
    line=$(sed -n "s/^ *$1\\\$ \.\///p" README.md)
    line=${line/--hosts 4/--hosts 2}
    line=${line/192.0.2.10/$host}
    line=${line/--clients 40000/--clients 400}
    shift
    echo "$line --tls-port ${port[main]} $*"
}

own="--ca $certs/ca.pem --quiet --output $exchange"

# Starts the leader on node 2; sets $url. The shells of nodes 2 and 3 keep their processes under the run's name.
leads() { # NAME COMMAND...
    local name=$1
    shift
    limit=120 on_node 2 "start $name ./$* $own/$name
        wait_until 100 has_line_or_gone $name \"--join 'etcd\"; cat \"\${logs[$name]}\"" >"$tmp/$name.said"
    url=$(sed -n "s/.*--join '\(.*\)'/\1/p" "$tmp/$name.said")
    [[ $url ]] || not_ok "'$name' leads" "$(<"$tmp/$name.said")"
}

# Starts the other host on node 3.
joins() { # NAME COMMAND...
    local name=$1
    shift
    tell_node 3 "start $name ./$* $own/$name.member"
}

# Waits for the leader's or the other host's end; sets its $status and $text.
ends_on() { # NODE NAME LIMIT_S
    text=$(limit=$(($3 + 60)) on_node "$1" "end_of $2 $3; cat \"\${logs[$2]}\"; (exit \$status)")
    status=$?
    text=${text//$'\n'/ | }
}

run_of() { # NAME
    cp "$exchange/$1"/*/run.json "$tmp/$1.json"
}

shared="--verify --report off --lease 10 --threads 1 --floor 0"

lead_and_join() { # NAME OPTIONS...
    local name=$1
    shift
    leads "$name" "performance_test --lead --hosts 2 --server $host --tls-port ${port[main]} $shared $*"
    joins "$name" "performance_test --join '$url' --lease 10"
}

start_server main --bind 10.77.0.1 --threads 1 --max-clients 512 --verify --probe-interval 5
remember_start main

# ---- README's two commands

before=$(stats main events.messages_in)
leads first "$(readme host1 "--verify --threads 1 --lease 20")"
joins first "$(readme host2..4 | sed "s|'etcd:.*'|'$url'|; s| --tls-port.*||") --lease 20"
ends_on 2 first 900
is "README's commands on two hosts: exit status" "$status" 0
[[ $status == 0 ]] || echo "# $text"
ends_on 3 first 60
is "README's commands: the other host's exit status" "$status" 0
run_of first
holds "400 clients of two machines, 200 each: all held, none failed, nothing corrupt" first '.run.status == "completed"' \
    '.steps[-1].target_clients == 400' '.steps | all(.connected_held == .target_clients and .failed == 0 and .dropped == 0)' \
    '[.hosts[].steps[-1].share] == [200, 200]' '[.hosts[].steps[-1].own.connected_held] == [200, 200]' \
    '[.steps[].verified | .corrupt, .server_corrupt] | unique == [0]' '.steps[-1].server_connected == 400'
holds "the server's count, the sum of the hosts and the merged counts are equal to the message" first \
    '.steps | all(.messages_total.generator == .messages_total.server)' \
    '([.hosts[].steps[].own.messages_total.generator] | add) == ([.steps[].messages_total.generator] | add)' \
    '([.hosts[].steps[].own.response_ns.count] | add) == ([.steps[].response_ns.count] | add)'
counted=$(($(stats main events.messages_in) - before))
is "and the server's own statistics have the same" \
    "$(jq "([.steps[].messages_total.server] | add) as \$n | \$n <= $counted and \$n >= 0.5 * $counted" "$tmp/first.json")" true
jq -r '.steps[] | "# \(.target_clients) clients: \(.messages_total.generator) messages of the hosts, \(.messages_total.server) at the server, " +
    "start skew \(.hosts_skew.start_skew_ns / 1e6 * 1000 | round / 1000) ms"' "$tmp/first.json"
is "one report, with both hosts" "$(grep -c 'id="hosts"' "$exchange"/first/*/report.html)" 1
limit=90 all_back "README's commands: the server has everything back" main

# ---- marked packets from both hosts

start_capture
lead_and_join marked --steps 8 --duration 2 --dscp 46
ends_on 2 marked 120
is "--dscp of the leader: exit status" "$status" 0
end_capture || not_ok "all packets are captured" "$(<"${logs[capture]}")"
# The queue pair number is in bytes 6 to 8 of the base transport header (IBTA 9.2), behind 8 of UDP; 1 is the CM's.
for node in 2 3; do
    is "--dscp 46 of the leader: packets of node $node" "$(tcpdump -nn -v -r "$tmp/wire.pcap" \
        "src host 10.77.0.$node and udp dst port 4791 and not (udp[13] = 0 and udp[14:2] = 1)" 2>/dev/null |
        grep -oE 'tos 0x[0-9a-f]+' | sort -u | tr '\n' ' ')" "tos 0xb8 "
done
ends_on 3 marked 60

# ---- one host's wire loses packets

on_node 3 "tc qdisc add dev rampart0 root netem limit 100000 delay 1ms loss 1%"
lead_and_join lossy --steps 20 --duration 10
ends_on 2 lossy 240
ends_on 3 lossy 60
on_node 3 "tc qdisc del dev rampart0 root"
run_of lossy
is_honest "1 % of one host's packets are lost" lossy '.run.status == "completed"' '.hosts | all(.lost == null)'
limit=90 all_back "a wire that loses packets: the server has everything back" main

# ---- a host is killed in each phase

# shellcheck disable=SC2016  # node 3's shell expands it
phase_is='grep -qs "\"phase\":\"$phase\"\|\"phase\": \"$phase\"" '
for phase in connecting "warming up" measuring draining disconnecting; do
    name=killed_${phase// /_}
    lead_and_join "$name" --steps 20,20,20 --connect-rate 10 --warmup 3 --duration 3
    told=$(limit=120 on_node 3 "phase='$phase'
        wait_until 100 eval '$phase_is $exchange/$name.member/*/events.ndjson' || echo it was never there; kill -KILL \"\${pid[$name]}\"; end_of $name 5")
    is "node 3's host is '$phase'" "$told" ""
    killed=$EPOCHREALTIME
    limit=60 on_node 2 "wait_until 50 has_line \"\${logs[$name]}\" 'rank 1\\) is lost'" >/dev/null
    noticed=$(awk -v a="$killed" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    ends_on 2 "$name" 60
    is "a host is killed while '$phase': the leader's exit status" "$status" 1
    run_of "$name"
    holds "a host is killed while '$phase': it is named, what was measured is kept" "$name" '.run.stop_reason == "host_lost"' \
        '.run.stop_detail | test("rank 1")' '[.hosts[] | select(.lost) | .rank] == [1]'
    echo "# killed while '$phase': noticed after $noticed s (lease 10 s)"
    is "a host is killed while '$phase': noticed within the lease and 2 s" "$(awk -v s="$noticed" 'BEGIN { print s < 12 }')" 1
done
limit=120 all_back "after five kills the server has everything back" main

# ---- a cable is pulled

lead_and_join cut --steps 20 --duration 60
limit=120 on_node 3 "phase=measuring; wait_until 100 eval '$phase_is $exchange/cut.member/*/events.ndjson'; echo off >/run/softroce/cable"
pulled=$EPOCHREALTIME
limit=60 on_node 2 "wait_until 50 has_line \"\${logs[cut]}\" 'rank 1\\) is lost'" >/dev/null
echo "# cable pulled: noticed after $(awk -v a="$pulled" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s (lease 10 s)"
ends_on 2 cut 60
is "one host's cable is pulled: the leader's exit status" "$status" 1
ends_on 3 cut 60
is "the host whose cable is pulled ends by itself" "$status" 1
is "and says why, and who leads" "$(grep -c 'did not refresh its lease.*rank 0' <<<"$text")" 1
on_node 3 "echo on >/run/softroce/cable; wait_until 60 grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state"
limit=120 all_back "after the cable the server has everything back" main

# ---- it goes on without a host

lead_and_join patient --steps 20,20 --duration 20 --on-host-loss continue
limit=120 on_node 3 "phase=measuring; wait_until 100 eval '$phase_is $exchange/patient.member/*/events.ndjson'
    kill -KILL \"\${pid[patient]}\"; end_of patient 5" >/dev/null
ends_on 2 patient 120
run_of patient
holds "--on-host-loss continue: both steps, marked" patient '.run.status == "completed"' '.steps | length == 2' \
    '.steps | all(.validity | index("host_lost_continued") != null)' '.steps[1].connected_held == 10'
limit=120 all_back "after a loss that was borne the server has everything back" main
stop_server main
finish
