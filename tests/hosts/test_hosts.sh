#!/bin/bash
# One run on several load hosts, which are processes on one machine and meet in a real etcd: one run.json contains what
# all of them did, and a lost host is named.

# shellcheck source=tests/soft_roce/lib.sh
. tests/soft_roce/lib.sh

need() {
    command -v etcd >/dev/null || { not_ok "etcd is installed" "install it with scripts/install-deps --tests" && finish; }
}

# $shared: options that all hosts have in common; $own: those that each host needs itself.
lease=10
shared=(--lease "$lease" --verify --report off --warmup 0.2)
own=(--ca "$certs/ca.pem" --quiet)

lead() { # NAME HOSTS OPTIONS...; sets $url
    local name=$1 hosts=$2
    shift 2
    start "$name" "${bin}performance_test" --lead --hosts "$hosts" --server "$host" --tls-port "${port[main]}" --output "$tmp/$name" \
        "${shared[@]}" "${own[@]}" "$@"
    wait_until 60 has_line_or_gone "$name" "--join 'etcd" || not_ok "'$name' leads" "$(<"${logs[$name]}")"
    url=$(sed -n "s/.*--join '\(.*\)'/\1/p" "${logs[$name]}")
}

join() { # NAME OPTIONS...
    local name=$1
    shift
    start "$name" "${bin}performance_test" --join "$url" --output "$tmp/$name" --lease $lease "${own[@]}" "$@"
}

run_of() { # LEADER
    echo "$tmp/$1"/*/run.json
}

says() { # NAME LEADER CONDITION...
    cp "$(run_of "$2")" "$tmp/$2.json"
    holds "$@"
}

is_measuring() { # NAME
    grep -qs '"measuring"' "$tmp/$1"/*/events.ndjson
}

need
start_server main --threads 2 --max-clients 120 --probe-interval 2
use_client main
remember_start main

# ---- one host

mkdir "$tmp/no_etcd"
printf '#!/bin/sh\ntouch %s/etcd_was_started\n' "$tmp" >"$tmp/no_etcd/etcd"
chmod +x "$tmp/no_etcd/etcd"
PATH=$tmp/no_etcd:$PATH start alone "${bin}performance_test" --hosts 1 --server "$host" --tls-port "${port[main]}" --steps 2 --duration 0.2 \
    --output "$tmp/alone" "${own[@]}" --report off
end_of alone 120
is "--hosts 1: a run as without it, and no etcd" \
    "$status,$(jq -c '[.hosts, .config.hosts // 1, .steps[0].connected_held]' "$(run_of alone)"),$(find "$tmp" -name etcd_was_started)" '0,[null,1,2],'

# ---- two hosts, two steps

before=$(stats main events.messages_in)
lead a 2 --steps 10,41 --duration 1
token=${url##*token=}
printf '%s\n' "$token" >"$tmp/token"
url=${url%%\?*} join b --token-file "$tmp/token"
is "a token from a file is no argument" "$(grep -cF -- "$token" "/proc/${pid[b]}/cmdline")" 0
ends "a member ends as the leader does" b 120 0 ''
ends "the leader ends well" a 60 0 'Results: '
says "both steps: all clients of both hosts are held, and verified" a '.run.status == "completed"' \
    '[.steps[] | .target_clients, .connected_held, .failed, .dropped] == [10, 10, 0, 0, 41, 41, 0, 0]' \
    '[.steps[].verified | .corrupt, .server_corrupt] | unique == [0]' '[.steps[].server_connected] == [10, 41]' \
    '[.steps[].server_pools] | unique == ["restored"]'
says "each host has its share" a '[.hosts[].steps[].share] == [5, 21, 5, 20]' '[.hosts[].lost] | unique == [null]'
says "what all acknowledged is what the server counted, to the message" a \
    '.steps | all(.messages_total.generator == .messages_total.server)' \
    '([.hosts[].steps[] | select(.step == 1) | .own.response_ns.count] | add) == two.response_ns.count' \
    '([.hosts[].steps[].own.messages_total.generator] | add) == ([.steps[].messages_total.generator] | add)'
counted=$(($(stats main events.messages_in) - before))
says "and what the server's own statistics say" a "([.steps[].messages_total.server] | add) <= $counted"
says "skew and clocks are known" a '[.steps[].hosts_skew.limit_ns] | unique == [100000000]' \
    '.hosts[1].clock.error_ns > 0' '.steps | all((.hosts_skew.start_skew_ns > .hosts_skew.limit_ns) == (.validity | index("skew") != null))'
is "a member's files come along" "$(find "$tmp"/a/*/hosts/1-* -name run.json -o -name '*.hlog' | wc -l)" 5
is "nothing has the token" "$(grep -rlF -- "$token" "$tmp/a" "$tmp/b" | wc -l)" 0
all_back "after a run on two hosts everything is back" main

# ---- a host with other settings is refused

lead picky 2 --steps 4 --duration 0.5
RAMPART_TOKEN=${url##*token=} url=${url%%\?*} join picky_b --message-size 128
ends "a member (its token is in the environment) with another option is refused, and told which" picky_b 60 3 '--message-size 128 is given on the joining host and not on the leader'
join picky_b --allow-server 192.0.2.1
ends "a host that may not load the server leaves" picky_b 60 3 '--allow-server does not allow'
end_of picky 60
is "the leader names who left" "$(grep -q "left: the leader's run loads" "${logs[picky]}" && echo named),$status" "named,1"

lead port 2 --steps 4 --duration 0.5
join port_b --allow-server "$host:1"
ends "a host that may load the server on another port only leaves" port_b 60 3 "port ${port[main]}, which --allow-server does not allow"
end_of port 60

# ---- a server that this host's CA does not vouch for

mkdir "$tmp/other"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=another CA' -keyout "$tmp/other/key.pem" \
    -out "$tmp/other/ca.pem" 2>/dev/null
lead unproved 2 --steps 4 --duration 0.5
start unproved_b "${bin}performance_test" --join "$url" --output "$tmp/unproved_b" --lease $lease --ca "$tmp/other/ca.pem" --quiet
ends "a host whose CA does not prove the server leaves" unproved_b 60 1 'is not proved by this host'
end_of unproved 60
is "the leader names who left, and why" "$(grep -q 'left: the server .* is not proved by this host' "${logs[unproved]}" && echo named),$status" \
    "named,1"
is "and no client of it has connected" "$(jq '.steps[0].connected_held // 0' "$(run_of unproved)")" 0

# ---- losses

lead lossy 3 --steps 30 --duration 60 --on-host-loss stop
join lossy_b
join lossy_c
wait_until 60 is_measuring lossy_c || not_ok "three hosts measure" "$(<"${logs[lossy]}")"
kill -KILL "${pid[lossy_c]}"
end_of lossy_c 5
ends "a lost host ends the run: the leader names it" lossy 60 1 'host_lost: .*rank'
ends "so does another member" lossy_b 60 1 'is lost'
says "what was measured is kept" lossy '.run.stop_reason == "host_lost"' 'one.response_ns.count > 0' \
    '[.hosts[] | select(.lost) | .rank] | length == 1'

lead headless 2 --steps 20 --duration 60
join headless_b
wait_until 60 is_measuring headless_b || not_ok "two hosts measure" "$(<"${logs[headless]}")"
kill -KILL "${pid[headless]}"
end_of headless 5
ends "a member whose leader is lost ends, and names it" headless_b 60 1 'the leader, host .* \(rank 0\)'

lead patient 2 --steps 20 --duration 20 --on-host-loss continue
join patient_b
wait_until 60 is_measuring patient_b || not_ok "two hosts measure" "$(<"${logs[patient]}")"
kill -STOP "${pid[patient_b]}"
end_of patient 60
is "--on-host-loss continue: the step ends in its time" "$(jq -r '.steps[0].validity | index("host_lost_continued") != null' "$(run_of patient)")" true
kill -CONT "${pid[patient_b]}"
ends "a host that was stopped for too long leaves" patient_b 30 1 'lease'

reaches main 30 clients.connected=0
all_back "after losses everything is back" main
stop_server main
finish
