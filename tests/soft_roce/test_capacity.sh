#!/bin/bash
# Capacity over RDMA: a short search; planned use compared with real use; and the shortages that a plan names.

. tests/soft_roce/lib.sh

# ---- a search (test_search.sh has those that find a limit)

start_server full --threads 2 --max-clients 14
search found full --find-capacity --clients 10 --duration 0.2 --workload idle --slo 'errors<1%'
ends "a search over RDMA finds that a server takes all clients" found 240 0 'objective met .SLO. +at least 10 .* yes '
run_says "it says how many" found analysis.capacity.slo_capacity.clients=10
serves "the server was not harmed" full

# ---- the use that was planned is the use that is seen

# RAMPART_PLAN=N (and RAMPART_PLAN_OPTIONS) plans for N clients (docs/capacity.md, "Before the run").
planned=(--clients "${RAMPART_PLAN:-100}" --workload echo --connect-concurrency 16)
# shellcheck disable=SC2206  # options and their values
planned+=(${RAMPART_PLAN_OPTIONS:-})
declare -A peaks=([server]=0 [generator]=0)
peak() { # NAME VALUE
    (($2 <= peaks[$1])) || peaks[$1]=$2
}
# Watches short-lived resources until the run has ended: descriptors go to peaks[]; the two ports of each TCP
# connection, which rest for 60 s, go to a file.
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
# Looks at connections that are in USED but not in BEFORE. Prints how many peers the port with the most peers had; that
# is the server's port.
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
search used own --steps "${planned[1]}" "${planned[@]:2}" --duration 2 --step-timeout 240
watch_run used
end_of used 300
# The run is complete; its speed does not matter.
matches "and a run connects them" "$status $(run_value used steps.0.connected_held)" "^[014] ${planned[1]}\$"
# run.json has the use beside its own plan. Descriptors and ports were seen in /proc, because samples are too rare for a
# short peak.
jq -n --argjson server_fds "${peaks[server]}" --argjson generator_fds "${peaks[generator]}" \
    --argjson ports "$(ports_used "$tmp/tcp.before" "$tmp/tcp.used")" \
    --slurpfile run "$tmp/used.json" --slurpfile plan "$tmp/plan.json" '
    def row($resource; $side; $used):
        ($plan[0].rows[] | select(.resource == $resource and .side == $side) | .needed) as $planned
        | {resource: $resource, side: $side, planned: $planned, used: $used};
    [
        ($run[0].plan.rows[] | select(.resource != "fds" and .side != "both" and .used != null)
         | {resource, side, planned: .needed, used}),
        row("fds"; "server"; $server_fds),
        row("fds"; "generator"; $generator_fds),
        row("ports"; "generator"; $ports),
        ($run[0].plan.rows[] | select(.resource == "kernel_bytes") | {resource, side, planned: .needed, used})
    ]
    | map(.close = (.used != null and (.planned - .used | fabs) <= 0.15 * .used))
' >"$tmp/compared.json"
while read -r close what; do
    is "planned within 15 %: $what" "$close" true
done < <(jq -r '.[] | "\(.close) \(.resource) of \(.side): planned \(.planned), used \(.used)"' "$tmp/compared.json")
is "the plan in run.json is that of plan" \
    "$(jq -c '[.plan.rows[] | select(.resource == "qps") | [.side, .needed]]' "$tmp/used.json")" \
    "$(jq -c '[.rows[] | select(.resource == "qps") | [.side, .needed]]' "$tmp/plan.json")"
is "every resource was compared" "$(jq -c '[length, all(.used != null)]' "$tmp/compared.json")" '[16,true]'

planned_with() { # NAME STATUS REGEX OPTIONS...
    local name=$1 status=$2 regex=$3
    shift 3
    # 200 descriptors are enough to run the plan, but not to serve.
    gives "plan: $name" "$status" "$regex" bash -c 'ulimit -n 200; exec "$@"' plan \
        "${bin}performance_test" plan --environment native "$@"
}
planned_with "what is short, and what to set" 1 \
    'Too few or too little: descriptors, checked at start \(server\); remedy: ulimit -Hn [0-9]+' --clients 10
planned_with "a server that runs has its own limits" 1 \
    'Too few or too little: clients \(--max-clients\) \(server\); remedy: rdma_server --max-clients 40' \
    "${tls_options[@]}" --server-name localhost --server "$host" --tls-port "${port[full]}" --clients 40
planned_with "a server that does not answer cannot be known" 3 'the server could not be asked: .*ECONNREFUSED' \
    "${tls_options[@]}" --server-name localhost --server "$host" --tls-port 1 --clients 40

finish
