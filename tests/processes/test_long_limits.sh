#!/bin/bash
# A process runs out of descriptors, locked memory or memory. At its start it is refused with the numbers; a running
# server refuses newcomers or lets them wait, connected clients lose nothing, and afterwards all is as before.
# transports
# shellcheck disable=SC2016,SC2317  # the words of a script; what looks unreachable is called by name

. tests/soft_roce/lib.sh

# Sets soft limits of a running program, because raising hard ones needs a privilege.
limits() { # NAME LIMIT=VALUE...
    local name=$1 limit
    shift
    for limit in "$@"; do
        prlimit --pid "${pid[$name]}" "--${limit%%=*}=${limit#*=}:" || not_ok "prlimit $limit" "see above"
    done
}

# Prints the CPU time that a process has used, in ticks: 100 are a second.
ticks_of() { # NAME
    local line
    read -r line <"/proc/${pid[$1]}/stat"
    read -ra line <<<"${line##*) }"
    echo $((line[11] + line[12]))
}

# Prints how busy a process is over 5 s, in percent of one CPU.
busy_percent() { # NAME
    local before
    before=$(ticks_of "$1")
    pause 5
    echo $((($(ticks_of "$1") - before) / 5))
}

lines_of() { # NAME EXTENDED_REGEX
    grep -cE -- "$2" "${logs[$1]}"
}

# Starts a client that tries for 3 s.
knocks() { # NAME STATUS EXTENDED_REGEX OPTIONS...
    local name=$1 status=$2 regex=$3
    shift 3
    limit=30 gives "$name" "$status" "$regex" "${bin}rdma_client" "${tls_options[@]}" "${over[@]}" --tls-port "${port[main]}" \
        --timeout 3 "$@"
}

# Starts a run of 10 clients that continues in the meantime.
start_live() { # NAME
    load "$1" main --steps 10 --threads 1 --warmup 0 --duration 1h --rate 100
    reaches main 60 clients.connected=10
}

live_lost_nothing() { # NAME
    local seen
    seen=$(stats main events.messages_in)
    reaches main 60 "events.messages_in>=$((seen + 100))"
    kill -INT "${pid[$1]}"
    end_of "$1" 90
    holds "$1: clients that were there lost nothing" "$1" 'one.connected_held == 10' '[one | .failed, .dropped] == [0, 0]' \
        'one.failures == []' 'one.verified.checked >= 100' '[one.verified | .corrupt, .server_corrupt] == [0, 0]' \
        'one.validity | contains(["replies_missing"]) | not'
}

# ---- descriptors at the start

server=("${bin}rdma_server" "${server_ports[@]}" "${server_files[@]}" "${serving[@]}" --threads 1 --max-clients 200 --max-handshakes 64)
text=$(bash -c 'ulimit -n 100; exec "$@"' - "${server[@]}" 2>&1)
[[ $text =~ need\ ([0-9]+)\; ]] || not_ok "a server with 100 descriptors says how many it needs" "$text"
needed=${BASH_REMATCH[1]}
gives "a server with one descriptor too few is refused with the numbers" 3 \
    "^rdma_server: the limit of open files \(ulimit -n\) is $((needed - 1)), but --threads 1 and --max-handshakes 64( and --max-clients 200)? need $needed; raise it" \
    bash -c "ulimit -n $((needed - 1)); exec \"\$@\"" - "${server[@]}"

# ---- descriptors of a running server

start_server main --threads 1 --max-clients 200 --max-handshakes 64 --verify
remember_start main
start_live descriptors
quiet=$(busy_percent main)
limits main nofile=$(($(find "/proc/${pid[main]}/fd" -mindepth 1 | wc -l)))
before=$(lines_of main 'cannot accept')
begun=$SECONDS
for i in 1 2 3 4 5 6 7 8; do
    start knock$i "${bin}rdma_client" "${tls_options[@]}" "${over[@]}" --tls-port "${port[main]}" --timeout 60 --count 1 "$host" ping
done
wait_until 60 has_line "${logs[main]}" 'cannot accept a connection on the TLS port: Too many open files; raise the limit of open files' ||
    not_ok "a server without descriptors says so" "$(tail -n 3 "${logs[main]}")"
short=$(busy_percent main)
lines=$(($(lines_of main 'cannot accept') - before)) took=$((SECONDS - begun + 1))
printf '# busy %d %% quiet, %d %% without descriptors; %d lines in %d s\n' "$quiet" "$short" $lines $took
is "without descriptors: a line a second at most" "$((lines >= 1 && lines <= took))" 1
is "without descriptors: nothing spins" "$((short <= quiet + 20))" 1
limits main nofile=4096
for i in 1 2 3 4 5 6 7 8; do
    ends "with descriptors again: client $i, which waited, is served" knock$i 60 0 '1 messages sent, 1 replies'
done
live_lost_nothing descriptors
limit=60 all_back "descriptors: everything is back" main

# ---- descriptors of a generator

# Over RDMA a client has a descriptor while it connects, over a socket as long as it is connected.
[[ $transport == rdma ]] && pace=(--connect-concurrency 60) || pace=(--connect-rate 20)
load few main --steps 60 --threads 1 "${pace[@]}" --warmup 0 --duration 1
limits few nofile=$(($(find "/proc/${pid[few]}/fd" -mindepth 1 | wc -l)))
end_of few 120
matches "a generator without descriptors comes to its end" "$status" '^[0134]$'
matches "a generator without descriptors says what is missing" "$(<"${logs[few]}")" 'Too many open files|EMFILE'
gives "a generator that has too few descriptors from the start is refused with the numbers" 3 \
    '^performance_test: the limit of open files \(ulimit -n\) is 40, --connect-concurrency needs [0-9]+; raise the limit' \
    bash -c 'ulimit -n 40; exec "$@"' - "${bin}performance_test" --environment native "${tls_options[@]}" --server "$host" \
    --tls-port "${port[main]}" --quiet --report off --output "$results" --steps 60 --threads 1 --connect-concurrency 60
limit=60 all_back "a generator without descriptors: the server has everything back" main

# ---- memory of a running server

start_live memory
# Over sockets, lack of memory may keep the control session away for longer than the 60 s that `load` waits for.
[[ $transport == rdma ]] && begin=load || begin=start_run
# 100 clients come to a server that can allocate only SPARE_KB more.
runs_short() { # RUN SPARE_KB EXTENDED_REGEX
    local run=$1 kb
    kb=$(awk '$1 == "VmData:" { print $2 }' "/proc/${pid[main]}/status")
    limits main data=$(((kb + $2) * 1024))
    "$begin" "$run" main --steps 100 --threads 1 --connect-retries 0 --warmup 0 --duration 1
    end_of "$run" 180
    matches "$2 KB of memory left: a generator comes to its end, and says why" "$status $(<"${logs[$run]}")" "$3"
    jq -r '.steps[0] // {} | "# '"$2"' KB left: \(.connected_peak // 0) of 100 connected; " +
        ([.failures[]? | "\(.count) \(.stage) \(.code)"] | join(", "))' "$tmp/$run.json"
    is "$2 KB of memory left: the server is there" "$(is_gone main; echo $?)" 1
}
runs_short hungry 1024 "^([04]|[1${over:+3}] .*(refused|timeout|closed|errno|10 ms))"
runs_short starving 0 '^([04]|[13] .*(refused|timeout|closed|errno|10 ms))'
limits main data=unlimited
serves "with memory again: a client is served" main
load fed main --steps 100 --threads 1 --warmup 0 --duration 1
end_of fed 120
holds "with memory again: 100 clients are served" fed 'one.connected_held == 100' 'one.failures == []' \
    'one.server_pools == "restored"'
live_lost_nothing memory
limit=60 all_back "memory: everything is back" main
stop_server main

# ---- locked memory, which only RDMA needs

[[ $transport == rdma ]] || finish
unlock=(setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock)
gives "a server that may lock too little is refused with the numbers" 3 \
    '^rdma_server: the limit of locked memory \(ulimit -l, bytes\) is 1048576, but --max-clients 200 needs [0-9]+; raise it' \
    "${unlock[@]}" prlimit --memlock=1048576:1048576 "${server[@]}"

# root may lock without limit unless it drops that capability.
mkdir "$tmp/bin"
printf '#!/bin/sh\nexec %s "$0.real" "$@"\n' "${unlock[*]}" >"$tmp/bin/rdma_server"
chmod +x "$tmp/bin/rdma_server"
ln -s "$(realpath "${bin}rdma_server")" "$tmp/bin/rdma_server.real"
bin=$tmp/bin/ start_server main --threads 1 --max-clients 200 --max-handshakes 64 --verify
remember_start main
start_live locked
limits main memlock="$(stats main resources.pinned_bytes)"
knocks "without memory to lock: a client that wants a region is told" 1 'refused' "$host" write text
knocks "without memory to lock: a client without a region is served" 0 '1 messages sent, 1 replies' --count 1 "$host" ping
limits main memlock=unlimited
knocks "with memory to lock again: a region is given" 0 '' "$host" write text
live_lost_nothing locked
limit=60 all_back "locked memory: everything is back" main
stop_server main
finish
