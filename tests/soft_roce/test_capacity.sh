#!/bin/bash
# Finding capacity: objectives of a ramp, a search that finds where a server refuses, one that survives the end of its own
# server, and one against a server that does not come back.
# shellcheck disable=SC2317  # what looks unreachable is called by name

. tests/soft_roce/lib.sh

# A run against a server (or own), in the background.
search() { # NAME SERVER|own OPTIONS...
    local name=$1 server=$2
    shift 2
    if [[ $server != own ]]; then
        set -- --server "$host" --tls-port "${port[$server]}" --ca "$certs/ca.pem" --server-name localhost "$@"
    fi
    start "$name" "${bin}performance_test" --environment native --quiet --report off --output "$tmp" --name "$name" \
        --json "$tmp/$name.json" --warmup 0.1 "$@"
}

run_says() { # NAME RUN TERM...
    local name=$1 file=$tmp/$2.json text
    shift 2
    if text=$("$programs/stats" --file "$file" "$@" 2>&1); then ok "$name"; else not_ok "$name" "$text"; fi
}

run_value() { # RUN PATH
    "$programs/stats" --file "$tmp/$1.json" "$2"
}

events_of() { # NAME
    cat "$tmp"/*-"$1"/events.ndjson 2>/dev/null
}

# ---- objectives of a ramp

gives "--slo: a term that is not known" 2 "'p99' is not allowed; allowed: " "${bin}performance_test" --slo p99
gives "--find-capacity with --steps" 2 '--find-capacity and --steps' "${bin}performance_test" --find-capacity --steps 10

# Connection times are not judged on software RDMA; an objective is.
search met own --steps 2 --duration 1 --slo 'p50<10s,errors<=0,connect_max<60s'
ends "--slo: a ramp that meets it" met 60 0 'PASS +2 clients: SLO .*p50<10s'
is "--slo: each term is in run.json" \
    "$(for i in 0 1 2; do run_value met steps.0.slo.$i.metric; run_value met steps.0.slo.$i.result; done | tr '\n' ' ')" \
    'response_p50 pass errors pass connect_max pass '
run_says "--slo: a ramp says what it knows of capacity" met analysis.capacity.slo_capacity.clients=2
search missed own --steps 2 --duration 1 --slo 'p50<1us'
ends "--slo: a ramp that misses it ends with 1" missed 60 1 'FAIL +2 clients: SLO .*p50<1us'
search undecided own --steps 2 --duration 0.5 --slo 'lag_p99<10s'
ends "--slo: without a sample it is inconclusive" undecided 60 4 'unknown'

# ---- where a server refuses

start_server full --threads 2 --max-clients 14
search refused full --find-capacity --clients 40 --duration 0.3 --slo 'errors<1%'
ends "a search finds where the server is full" refused 240 0 'first hard failure +15 .*refused:full.*confirmed'
run_says "it names both boundaries" refused analysis.capacity.slo_capacity.clients=14 \
    analysis.capacity.slo_capacity.high=15 analysis.capacity.first_hard_failure.clients=15 \
    analysis.capacity.first_hard_failure.low=14
is "and the resource, and whose it is" \
    "$(run_value refused analysis.capacity.first_hard_failure.failure.resource) $(run_value refused analysis.capacity.first_hard_failure.failure.side)" \
    'max_clients server'
is "both were confirmed" \
    "$(run_value refused analysis.capacity.slo_capacity.confirmed) $(run_value refused analysis.capacity.first_hard_failure.confirmed)" \
    'true true'
is "the run is complete, and says why it ended" "$(run_value refused run.status) $(run_value refused run.stop_reason)" \
    'completed error_rate'
serves "the server was not harmed" full

# ---- what was planned is what is used

# With RAMPART_PLAN=N (and RAMPART_PLAN_OPTIONS) for N clients (docs/capacity.md, "Before the run").
planned=(--clients "${RAMPART_PLAN:-100}" --workload echo --connect-concurrency 16)
# shellcheck disable=SC2206  # options and their values
planned+=(${RAMPART_PLAN_OPTIONS:-})
declare -A peaks=([server]=0 [generator]=0)
peak() { # NAME VALUE
    (($2 <= peaks[$1])) || peaks[$1]=$2
}
# What the run uses for a moment only, until the run has ended: descriptors, to peaks[], and the two ports of each TCP
# connection, which rests for 60 s, to a file.
watch_run() { # NAME
    local server='' fds looked=-1
    until is_gone "$1"; do
        [[ $server ]] || server=$(pgrep -P "${pid[$1]}" -x rdma_server)
        fds=("/proc/${pid[$1]}/fd"/*)
        peak generator ${#fds[@]}
        fds=("/proc/${server:-none}/fd"/*)
        peak server ${#fds[@]}
        if ((SECONDS > looked)); then
            looked=$SECONDS
            cat /proc/net/tcp >>"$tmp/tcp.used"
        fi
        pause 0.02
    done
    cat /proc/net/tcp >>"$tmp/tcp.used"
}
# Of the connections in USED that are not in BEFORE: with how many others the port that most of them have was connected,
# which is the server's.
ports_used() { # BEFORE USED
    awk '
        $4 != "0A" && split($2, local, ":") == 2 && split($3, remote, ":") == 2 && !seen[local[2], remote[2]]++ && NR != FNR {
            if (!with[local[2], remote[2]]++) n[local[2]]++
            if (!with[remote[2], local[2]]++) n[remote[2]]++
        }
        END { for (port in n) if (n[port] > most) most = n[port]; print most + 0 }' "$1" "$2"
}

gives "plan: the clients fit, in words" 0 "${planned[1]} clients fit\\." \
    "${bin}performance_test" plan --environment native "${planned[@]}" --json "$tmp/plan.json"
cat /proc/net/tcp >"$tmp/tcp.before"
search used own --steps "${planned[1]}" "${planned[@]:2}" --duration 2
watch_run used
end_of used 10
# It is complete; how fast it was is not looked at.
matches "and a run connects them" "$status $(run_value used steps.0.connected_held)" "^[014] ${planned[1]}\$"
# Descriptors and ports are those seen in /proc, resident memory of the generator and memory of the kernel are of /proc, too,
# read by the programs; verbs are counted by the programs.
jq -n --argjson server_fds "${peaks[server]}" --argjson generator_fds "${peaks[generator]}" \
    --argjson ports "$(ports_used "$tmp/tcp.before" "$tmp/tcp.used")" \
    --slurpfile run "$tmp/used.json" --slurpfile plan "$tmp/plan.json" '
    $run[0].steps[-1].resources as $r
    | def row($resource; $side; $used):
        ($plan[0].rows[] | select(.resource == $resource and .side == $side) | .needed) as $planned
        | {resource: $resource, side: $side, planned: $planned, used: $used,
           close: ($used != null and ($planned - $used | fabs) <= 0.15 * $used)};
    [
        (("server", "generator") as $side
         | ("qps", "cqs", "mrs", "threads", "pinned_bytes", "rss_bytes") as $resource
         | row($resource; $side; $r[$side][$resource])),
        row("fds"; "server"; $server_fds),
        row("fds"; "generator"; $generator_fds),
        row("ports"; "generator"; $ports),
        row("kernel_bytes"; "both"; $r.server.machine_kernel_bytes)
    ]
' >"$tmp/compared.json"
while read -r close what; do
    is "planned within 15 %: $what" "$close" true
done < <(jq -r '.[] | "\(.close) \(.resource) of \(.side): planned \(.planned), used \(.used)"' "$tmp/compared.json")
is "every resource was compared" "$(jq -c '[length, all(.used != null)]' "$tmp/compared.json")" '[16,true]'

planned_with() { # NAME STATUS REGEX OPTIONS...
    local name=$1 status=$2 regex=$3
    shift 3
    # Two hundred descriptors: enough to look, not to serve.
    gives "plan: $name" "$status" "$regex" bash -c 'ulimit -n 200; exec "$@"' plan \
        "${bin}performance_test" plan --environment native "$@"
}
planned_with "what is short, and what to set" 1 \
    'Short: descriptors, checked at start \(server\); set: ulimit -Hn [0-9]+' --clients 10
planned_with "a server that runs has its own limits" 1 \
    'Short: clients \(--max-clients\) \(server\); set: rdma_server --max-clients 40' \
    "${tls_options[@]}" --server-name localhost --server "$host" --tls-port "${port[full]}" --clients 40
planned_with "a server that does not answer cannot be known" 3 'the server could not be asked: .*ECONNREFUSED' \
    "${tls_options[@]}" --server-name localhost --server "$host" --tls-port 1 --clients 40

# ---- its own server dies

search survivor own --find-capacity --clients 10 --duration 6 --slo 'errors<1%'
in_phase() { # NAME
    events_of survivor | grep -q "\"phase\": *\"$1\""
}
wait_until 60 in_phase connecting || not_ok "the search connects" "$(cat "${logs[survivor]}")"
pgrep -P "${pid[survivor]}" -x rdma_server >"$tmp/child"
wait_until 60 in_phase measuring || not_ok "the search measures" "$(cat "${logs[survivor]}")"
kill -KILL "$(<"$tmp/child")"
ends "a search whose server is killed goes on with another" survivor 180 0 'SLO capacity +at least 10'
run_says "the probe that lost it is told as what broke" survivor steps.0.connected_held=0
is "by name and side" \
    "$(run_value survivor steps.0.hard_failure.resource) $(run_value survivor steps.0.hard_failure.side)" 'server server'

# ---- another one's server dies

search bereft full --find-capacity --clients 12 --duration 20 --slo 'errors<1%'
reaches full 60 clients.connected=10
kill -KILL "${pid[full]}"
end_of full 5
ends "a search that lost its server ends inconclusive" bereft 120 4 'not confirmed'
is "and says why" "$(run_value bereft run.stop_reason)" server_lost
finish
