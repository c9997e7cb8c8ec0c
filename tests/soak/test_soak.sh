#!/bin/bash
# One server runs the whole time, and actions come in rounds from a seeded sequence: a run of performance_test with
# random clients, sizes and workload; meanwhile attacks, foreign programs, kills, stops, SIGHUP, statistics, pauses.
# After each round everything that must come back is waited for, and the server's resources are sampled. A ping, a run
# of four clients and a canary stay connected throughout.
#
# Usage: test_soak.sh [MINUTES [SEED]] (make soak MINUTES=n SEED=n). The printed seed repeats the sequence.
# shellcheck disable=SC2317  # what looks unreachable is called by name

. tests/soft_roce/lib.sh

minutes=${1:-3}
seed=${2:-$((SRANDOM % 1000000))}
# By how much the last third of the samples may exceed the first. Descriptors, threads, completion queues and memory
# regions may not grow, because everything that took one has ended. Allocated memory may grow by 256 KiB, the size of 8
# of a soak's thousands of handshakes; threads cache no freed memory, which malloc would count. Resident memory is the
# allocator's highest use, with holes: it stops growing early, so its last third is compared with the second.
heap_slack=$((256 * 1024))
rss_slack=$((2 * 1024 * 1024))
limit=90 # for every check that waits
RANDOM=$seed
round=0 action=0
table=$tmp/table

# ---- the sequence: this shell alone draws random values, so they do not depend on how long actions take

draw() { # N; sets $drawn to 0 .. N-1
    drawn=$(((RANDOM * 32768 + RANDOM) % $1))
}

pick() { # WORD...; sets $picked
    draw $#
    shift $drawn
    picked=$1
}

between() { # LOW HIGH; sets $drawn
    local low=$1
    draw $(($2 - $1 + 1))
    drawn=$((drawn + low))
}

# ---- actions

say() { # TEXT; describes the next action
    action=$((action + 1))
    printf '# %4d s, action %d: %s\n' $SECONDS $action "$*"
}

# Ends the soak if a check has failed.
hold_on() {
    ((failed == 0)) || give_up
}

give_up() {
    printf '# seed %d, round %d, action %d; the server said:\n' "$seed" $round $action
    sed 's/^/# /' "${logs[main]}"
    finish
}

declare -A sizes=(
    [echo]="16 64 1000 4096 16384" [pingpong]="16 64 4096" [small]="20 64 200" [write]="1 64 4096 65536"
    [read]="1 64 4096 65536" [atomic]="8" [mixed]="8 4096" [large]="65536 100000" [duplex]="1 5000 65536"
)

# Starts a run of performance_test in the background. Sets $options and $run, its name.
begin_load() {
    local workload clients
    pick echo pingpong small write read atomic mixed large duplex connect idle
    workload=$picked
    between 1 24
    clients=$drawn
    options=(--workload "$workload" --steps "$clients" --warmup 0.1)
    between 1 4
    options+=(--duration "$drawn" --threads $((1 + drawn % 2)))
    if [[ ${sizes[$workload]:-} ]]; then
        # shellcheck disable=SC2086  # a list
        pick ${sizes[$workload]}
        options+=(--message-size "$picked")
    fi
    [[ $workload != small ]] || options+=(--inflight 8)
    draw 3
    [[ $drawn != 0 || $workload == connect ]] || options+=(--churn 20)
    draw 2
    ((drawn)) || options+=(--tls-resume)
    run=load$round
    say "performance_test ${options[*]}"
    # Attacks may make a client connect twice, and sessions may have expired while the server was stopped.
    load "$run" main "${options[@]}" --connect-retries 100 --timeout 20
}

# The run is killed, or it ends, and then nothing may be lost or changed.
end_load() {
    draw 4
    if ((drawn == 0)); then
        say "kill -9 of the run"
        kill -KILL "${pid[$run]}" 2>/dev/null
        end_of "$run" 10
        return
    fi
    say "end of the run"
    end_of "$run" 180
    # A criterion may fail or be inconclusive, because times are not judged here.
    if ((status > 1 && status != 4)); then
        not_ok "run '$run' comes to its end" "exit status $status: $(<"${logs[$run]}")"
    else
        holds "run '$run': all clients connected and stayed, nothing was corrupt" "$run" '.run.status == "completed"' \
            '[.steps[] | .failed, .dropped] | unique == [0]' '[.steps[].failures[]] == []' \
            '[.steps[].verified | .corrupt, .server_corrupt] | unique == [0]'
    fi
    rm -rf "$results"/*-"$run" "$tmp/$run.json"
}

# Modes that need an argument, and modes that must be killed; the other modes need no argument and end.
asked=(flood=64 client-hellos=60@100 requests=100 control-flood=1 key-updates=1000 control-key-updates=1000
    control-pipelined=100)
held=(crowd-silent=300 crowd-half=200 crowd-drip=200 crowd-grants crowd-busy hold-controls=70 keep-ids=4 claim-next=4 dies-in-error
    dies-without-qp hold old-ticket outstanding never-stops)
# Modes that need the numbers of a live connection, or more credits than this server grants; canary is no attack.
left_out=(claim packets-guess packets-guess-write packets-exact packets-exact-write echo-flood canary)

rogue() { # NAME OPTIONS... MODE...
    local name=$1
    shift
    start "$name" "$programs/rogue" "${tls_options[@]}" --timeout 30 "$@"
}

attacks() {
    local modes=() n
    between 2 8
    for ((n = drawn; n > 0; n--)); do
        pick "${brief[@]}"
        modes+=("$picked")
    done
    say "attacks: ${modes[*]}"
    rogue attacker --check "$host" "${port[main]}" "${modes[@]}"
    end_of attacker 240
    ((status == 0)) || not_ok "attacks have their answers" "exit status $status: $(<"${logs[attacker]}")"
}

# Starts an attack that goes on while others come and go; some come from another address, if there is one.
held_attack() {
    local from=()
    pick "${held[@]}"
    [[ ! ${greedy:-} || $picked != @(crowd|hold-c)* ]] || from=(--source "$greedy")
    say "$picked, killed after a while"
    rogue attacker "${from[@]}" "$host" "${port[main]}" "$picked"
    wait_until 60 has_line_or_gone attacker '^[a-z]' || not_ok "$picked begins" "it says nothing"
    [[ $picked != @(dies|outstanding|never)* ]] || kill -USR1 "${pid[attacker]}" 2>/dev/null
    serves "a client is served during $picked" main --timeout 30
    draw 20
    pause "$((drawn / 10)).$((drawn % 10))"
    kill -KILL "${pid[attacker]}" 2>/dev/null
    end_of attacker 10
}

single_clients() {
    local size
    pick 16 64 1000 4096 16384
    size=$picked
    say "rdma_client: pings of $size bytes, a text, its region"
    gives "pings" 0 '20 messages sent, 20 replies, 0% loss' "${rdma_client[@]}" --count 20 --interval 0.01 \
        --message-size "$size" "$host" ping
    gives "a text comes back" 0 "round $round" "${rdma_client[@]}" "$host" send "round $round"
    gives "a region keeps what is written" 0 'written at offset 0 and read back' "${rdma_client[@]}" "$host" write "round $round"
}

# Programs that do not know rampart's protocol.
foreign() {
    # shellcheck disable=SC2086  # ports
    pick ${rdma_ports[main]//,/ }
    say "rping"
    start rping timeout -k 2 30 rping -c -C 2 -a "$host" -p "$picked"
    end_of rping 40
    [[ $status != 0 && $(<"${logs[rping]}") == *REJECTED* ]] ||
        not_ok "rping is refused" "exit status $status: $(<"${logs[rping]}")"
}

reload() {
    local before
    before=$(stats main certificates.reloads)
    say "SIGHUP"
    kill -HUP "${pid[main]}"
    counted "certificates are read again" main certificates.reloads=$((before + 1)) certificates.failed_reloads=0
}

statistics() {
    local i
    say "control sessions, four at once"
    for i in {1..4}; do
        start "asks$i" "$programs/stats" "${tls_options[@]}" "$host" "${port[main]}" uptime_s
    done
    for i in {1..4}; do
        end_of "asks$i" 60
        ((status == 0)) || not_ok "statistics are answered" "exit status $status: $(<"${logs["asks$i"]}")"
    done
}

stops() {
    local who
    pick main "$run"
    who=$picked
    draw 15
    say "SIGSTOP of $who for $((drawn / 10)).$((drawn % 10)) s"
    kill -STOP "${pid[$who]}" 2>/dev/null # a run may have ended already
    pause "$((drawn / 10)).$((drawn % 10))"
    kill -CONT "${pid[$who]}" 2>/dev/null
}

rest() {
    draw 20
    say "a pause"
    pause "$((drawn / 10)).$((drawn % 10))"
}

# ---- checks

# Counts the kernel's objects of a KIND that threads of the server made.
objects_of_server() { # KIND
    local thread n=0
    while read -r thread; do
        [[ ! -e /proc/${pid[main]}/task/$thread ]] || n=$((n + 1))
    done < <(rdma -j res show "$1" | jq -r '.[].pid // empty')
    echo $n
}

# Waits until everything has come back except what the remaining clients hold; then adds a line to the table.
sample() {
    local v q c m try
    say "everything comes back"
    counted "round $round: everything is back" main clients.handshakes=0 clients.closing=0 pools.sessions=0 \
        pools.qp.quarantined=0 "clients.connected=$stay" "pools.qp.in_use=$stay" "pools.admitted=$stay" \
        "pools.psns_in_use=$((2 * stay))" pools.regions_in_use=1 "pools.buffers.posted=$posted" clients.control=3
    hold_on
    # Try again, because the pool may destroy queue pairs between the two readings.
    for try in 1 2 3 4 5; do
        mapfile -t v < <(stats main resources.heap_bytes resources.rss_bytes resources.pinned_bytes resources.fds \
            resources.threads resources.qps resources.cqs resources.mrs events.tcp_accepted events.established events.messages_in)
        q=$(objects_of_server qp) c=$(objects_of_server cq) m=$(objects_of_server mr)
        [[ "$q $c $m" != "${v[5]} ${v[6]} ${v[7]}" ]] || break
    done
    is "round $round: the kernel has the queue pairs, completion queues and regions that the server counts" \
        "$q $c $m" "${v[5]} ${v[6]} ${v[7]}"
    # A region is registered at its first use, and stays registered.
    echo "$round ${v[0]} $((v[1] - v[2])) ${v[3]} ${v[4]} $c $((m - (v[2] - slabs) / region_bytes)) $q $m ${v[8]} ${v[9]} \
        ${v[10]}" >>"$table"
    hold_on
}

# Compares a column's last third with its first, or with THIRD, by their medians.
is_flat() { # WHAT COLUMN SLACK [THIRD]
    local text
    text=$(awk -v c="$2" -v third="${4:-1}" '{ v[NR] = $c } function median(from, n,    i, k, t) {
            for (i = 0; i < n; i++) { t[i] = v[from + i]; for (k = i; k > 0 && t[k] < t[k - 1]; k--) {
                x = t[k]; t[k] = t[k - 1]; t[k - 1] = x } }
            return t[int((n - 1) / 2)] }
        END { n = int(NR / 3); printf "%d %d", median((third - 1) * n + 1, n), median(NR - n + 1, n) }' "$table")
    if ((${text% *} > 0 && ${text#* } - ${text% *} <= $3)); then
        ok "$1: third ${4:-1} ${text% *}, last third ${text#* }"
    else
        not_ok "$1 is known and grew by at most $3" "third ${4:-1} ${text% *}, last third ${text#* }"
    fi
}

# ---- the soak

printf '# seed %d, %d minutes\n' "$seed" "$minutes"
region_bytes=262144
GLIBC_TUNABLES=glibc.malloc.tcache_count=0 start_server main --threads 2 --max-clients 96 --message-size 16k --region-size $region_bytes --windows on --verify \
    --probe-interval 2 --handshake-timeout 5 --session-timeout 5
use_client main
interface=$(ip -o addr show to "$host" | awk '{ print $2; exit }')
if [[ $host == 10.77.0.1 ]]; then
    greedy=10.77.0.2
    [[ $(ip -o addr show to $greedy) ]] || ip addr add $greedy/32 dev "$interface" || greedy=
fi
mapfile -t brief < <("$programs/rogue" modes | grep -vxF "$(printf '%s\n' "${held[@]}" "${asked[@]}" "${left_out[@]}" | sed 's/=.*//')" |
    grep -vE '^(record|proof)-' | sed "s/^wrong-port\$/&=${rdma_ports[main]}/" | sort) # clients over sockets
brief+=("${asked[@]}")
mapfile -t v < <(stats main resources.pinned_bytes pools.buffers.posted)
slabs=${v[0]} posted=${v[1]}

rogue canary "$host" "${port[main]}" canary
wait_until 60 has_line_or_gone canary ' bytes$' || not_ok "the canary begins" "$(<"${logs[canary]}")"
start_ping bystander main --interval 0.05 --timeout 60
load constant main --workload echo --steps 4 --threads 1 --inflight 2 --message-size 2000 --rate-per-client 20 --warmup 0 \
    --duration 24h
stay=6
reaches main 60 clients.connected=$stay

# Use as much of everything as there will ever be, so that nothing may grow afterwards.
load widest main --workload write --steps 80 --message-size 64 --warmup 0 --duration 1 --connect-retries 100
end_of widest 180
((status <= 1 || status == 4)) || not_ok "80 clients" "exit status $status: $(<"${logs[widest]}")"
for mode in flood=300 hold-controls=64 crowd-half=200 crowd-grants; do
    rogue attacker "$host" "${port[main]}" $mode
    wait_until 60 has_line_or_gone attacker '^[a-z]'
    kill -KILL "${pid[attacker]}"
    end_of attacker 10
done
sample
rm -f "$table"

end=$((SECONDS + minutes * 60))
while ((SECONDS < end || round < 3)); do
    round=$((round + 1))
    begin_load
    hold_on
    between 2 5
    for ((n = drawn; n > 0; n--)); do
        pick attacks attacks held_attack held_attack single_clients foreign reload statistics stops stops rest
        $picked
        hold_on
    done
    end_load
    sample
done

columns="round heap_bytes rss_besides_pinned fds threads cqs mrs_besides_regions qps mrs accepted established messages"
{ echo "$columns" && cat "$table"; } | column -t | sed 's/^/# /'
is_flat "memory that is allocated" 2 $heap_slack
is_flat "resident memory besides message slabs and regions" 3 $rss_slack 2
is_flat "descriptors" 4 0
is_flat "threads" 5 0
is_flat "completion queues" 6 0
is_flat "memory regions besides the clients'" 7 0
# The pool destroys the queue pairs of a rush after nobody has needed them for a while.
is_flat "queue pairs" 8 64

kill -INT "${pid[constant]}"
end_of constant 60
holds "clients that sent all the time lost nothing, and got all as it was sent (status $status)" constant \
    '.run.exit_status == 130' '[one | .connected_held, .failed, .dropped] == [4, 0, 0]' 'one.failures == []' \
    '[one.verified | .corrupt, .server_corrupt] == [0, 0]' 'one.verified.checked > 100'
loses_nothing "a ping from the first round to the last lost nothing" bystander
kill -USR1 "${pid[canary]}"
ends "the canary's region is whole" canary 30 0 '[1-9][0-9]* looks, 0 bytes differ'
stay=0
counted "everything is back" main clients.connected=0 clients.closing=0 pools.qp.in_use=0 pools.qp.quarantined=0 \
    pools.psns_in_use=0 pools.sessions=0 pools.regions_in_use=0 pools.admitted=0
((failed == 0)) || give_up
stop_server main
# Allowed are occasional messages about peers, and that the shards of a stopped server published nothing.
is "the server complained of nothing of its own" "$(grep -vE \
    '^rdma_server( ready:|: info: |: warn: (running as root|certificate .* was signed by the development CA|TLS: cut |shard [0-9]+: closed a TCP connection|a shard was too busy to give its current figures))' \
    "${logs[main]}")" ""
finish
