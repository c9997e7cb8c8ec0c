#!/bin/bash
# Every mode of performance_test on two load hosts and, where noted, two servers. The hosts' counts must add up to the
# leader's, which must equal the servers'; each host's own run.json must agree with the leader's record of it.
# limit: 3600

# shellcheck source=tests/soft_roce/lib.sh
. tests/soft_roce/lib.sh
# No host may be lost here, however slow the machine is.
lease_s=60
# shellcheck source=tests/hosts/lib.sh
. tests/hosts/lib.sh

# Makes a run on two hosts; the member gets only the options that it needs itself.
hosts_run() { # NAME STATUS SERVER OPTIONS...
    local name=$1 wanted=$2
    shift 2
    rm -rf "${tmp:?}/$name" "${tmp:?}/${name}_b"
    lead "$name" 2 "$@"
    join "${name}_b"
    end_of "$name" "${limit:-300}"
    # On an emulated CPU, so few operations may leave some criteria unjudged (4).
    if ((status == wanted || (wanted == 0 && status == 4))); then ok "$name: the leader ends"; else
        not_ok "$name: the leader ends" "exit status $status: $(<"${logs[$name]}")"
    fi
    ends "$name: the member ends as the leader does" "${name}_b" 60 "$status" ''
    [[ $(runs_of "$name") ]] || { not_ok "$name: there are runs" "$(<"${logs[$name]}")" && return 1; }
}

# Lists what does not add up in a run of the leader. $hosts is .hosts.
# shellcheck disable=SC2016  # jq's variables
sound='
  [.steps | to_entries[] | .key as $i | .value as $all | [$hosts[] | .steps[] | select(.step == $i)] as $of |
    {shares: (([$of[].share] | add) == $all.target_clients),
     held: (([$of[].own.connected_held // 0] | add) == $all.connected_held),
     connected_at_server: ($all.server_connected == $all.target_clients),
     responses: (([$of[].own.response_ns.count // 0] | add) == $all.response_ns.count),
     attempted: (([$of[].own.attempted // 0] | add) == $all.attempted),
     checked: (([$of[].own.verified.checked // 0] | add) == $all.verified.checked),
     corrupt: ([$all.verified | .corrupt, (.server_corrupt // 0)] == [0, 0]),
     generator: (([$of[].own.messages_total.generator // 0] | add) == $all.messages_total.generator),
     server: ($all.messages_total.generator == $all.messages_total.server),
     cycles: (([$of[].own.churn.cycles // 0] | add) == ($all.churn.cycles // 0)),
     pools: ($all.server_pools == "restored")} |
    to_entries[] | select(.value | not) | "step \($i + 1): \(.key)"]'

adds_up() { # NAME [PARTS THAT THE MODE DOES NOT HAVE, AS AN EXTENDED REGEX]
    local name=$1 runs of_b i what wrong='' n=0
    mapfile -t runs < <(runs_of "$name")
    mapfile -t of_b < <(runs_of "${name}_b")
    is "$name: each host keeps as many runs" "${#of_b[@]}" "${#runs[@]}"
    for i in "${!runs[@]}"; do
        what=$(jq -r "(.hosts // []) as \$hosts | ${sound}[]" "${runs[$i]}" 2>&1 | grep -vE "${2:-^$}")
        [[ ! $what ]] || wrong+="${runs[$i]#"$tmp/"}: $what "
        n=$((n + $(jq '.steps | length' "${runs[$i]}")))
        # The member's own record is the same as the leader's record of it, and some of it exists.
        what=$(jq -nr --slurpfile a "${runs[$i]}" --slurpfile b "${of_b[$i]:-/dev/null}" '
            def figures: [.connected_held, .response_ns, .messages_total.generator, .verified.checked];
            [$a[0].hosts[1].steps[] | .own | select(. != null) | figures] == [$b[0].steps[] | select(.target_clients > 0) | figures]' 2>&1)
        [[ $what == true ]] || wrong+="${runs[$i]#"$tmp/"}: the member's own run.json differs: $what "
    done
    if [[ ! $wrong ]] && ((n > 0)); then
        ok "$name: ${#runs[@]} runs, $n steps: sums of the hosts are the merged figures and the server's"
    else
        not_ok "$name: the sums of $n steps are right" "$wrong"
    fi
}

says() { # NAME RUN CONDITION...
    cp "$(runs_of "$2" | head -n 1)" "$tmp/$2.json"
    holds "$@"
}

start_server main --threads 2 --max-clients 120 --probe-interval 2
use_client main
remember_start main

quick=(--warmup 0.1 --duration 0.5 --floor 0)

# ---- the open loop

hosts_run open 0 main --steps 11 --rate 300 "${quick[@]}" && adds_up open &&
    says "open: what was offered is of all hosts together" open 'one.offered_per_s == 300' \
        '([.hosts[].steps[0].own.offered_per_s] | add) - 300 | fabs < 1e-6' \
        'one.throughput_msgs_per_s < 1.5 * 300'

hosts_run sweep 0 main --steps 10 --rate 100-400:3 "${quick[@]}" && adds_up sweep &&
    says "sweep: each host has each rate" sweep '.steps[0].offered_per_s == 100 and .steps[2].offered_per_s == 400' \
        '[.hosts[].steps | length] == [3, 3]' '[.steps[].offered_per_s] as $all | [.hosts[0].steps[].own.offered_per_s] as $a |
         [.hosts[1].steps[].own.offered_per_s] as $b | [range(3) | $a[.] + $b[.] - $all[.] | fabs < 1e-6] | all'

hosts_run per_client 0 main --steps 9 --rate-per-client 20 "${quick[@]}" && adds_up per_client &&
    says "per_client: 20 a second for each client" per_client 'one.offered_per_s == 180' '[.hosts[].steps[0].own.offered_per_s] == [100, 80]'

limit=600 hosts_run find_rate 0 main --steps 6 --find-rate --rate 50-200 --slo 'p50<10s,errors<1%' "${quick[@]}" && adds_up find_rate &&
    says "find_rate: a rate is found" find_rate '.run.status == "completed"' '.analysis.offered_load.slo_rate | .at_least and .per_s == 200'

# ---- searches

limit=600 hosts_run capacity 0 main --clients 24 --find-capacity --slo 'p50<10s,errors<1%' "${quick[@]}" && adds_up capacity &&
    says "capacity: it is of all hosts" capacity '.analysis.capacity.slo_capacity | .at_least and .clients == 24' \
        '(.steps | length) as $n | [.hosts[].steps | length] == [$n, $n]'

limit=600 hosts_run too_much 1 main --clients 24 --find-capacity --slo 'p50<1us' "${quick[@]}" && adds_up too_much

# ---- clients that come and go; few that send

hosts_run churn 0 main --steps 12 --churn 20 --warmup 0.2 --duration 2 --floor 0 && adds_up churn 'connected_at_server|server$' &&
    says "churn: clients of both hosts came back" churn 'one.churn.cycles > 10' '[.hosts[].steps[0].own.churn.cycles > 0] | all'

hosts_run cycles 0 main --steps 7 --churn 30 --cycles 25 --floor 0 && adds_up cycles 'connected_at_server|server$' &&
    says "cycles: as many as were asked for" cycles 'one.churn.cycles >= 25'

hosts_run iterations 0 main --steps 5 --iterations 40 --floor 0 && adds_up iterations &&
    says "iterations: each client does as many" iterations 'one.response_ns.count == 200' '[.hosts[].steps[0].own.response_ns.count] == [120, 80]'

hosts_run active 0 main --steps 21 --active 5 "${quick[@]}" && adds_up active &&
    says "active: five of all send, each host has its part of them" active 'one.active == 5' \
        '([.hosts[].steps[0].own.active] | add) == 5' '[.hosts[].steps[0].own.validity | index("littles_law_violated")] == [null, null]'

hosts_run phased 0 main --steps 8 --phased "${quick[@]}" && adds_up phased

# ---- sizes, repetitions, clients one at a time

hosts_run sizes 0 main --steps 3,8 --message-size 64,512 --repeat 2 --warmup 0.1 --duration 0.5 --floor 2 && adds_up sizes &&
    says "sizes: all steps in their order" sizes '[.steps[] | [.target_clients, .message_bytes, .repetition]] | length == 8' \
        '[.hosts[].steps | length] == [8, 8]'

# There are fewer clients than hosts.
hosts_run single 0 main --steps 1 "${quick[@]}" && adds_up single &&
    says "single: the host without a client has no figures" single '[.hosts[].steps[0].share] == [1, 0]' '.hosts[1].steps[0].own == null'

# ---- comparisons and suites

hosts_run compared 0 main --steps 6 --compare signal-every=1,16 --repeat 2 "${quick[@]}" && adds_up compared
is "compared: two alternatives, two rounds" "$(runs_of compared | wc -l)" 4
is "compared: one table, of the leader" "$(grep -c 'From the baseline to the candidate' "${logs[compared]}" "${logs[compared_b]}" | sed 's/.*://' | paste -sd,)" 1,0

cat >"$tmp/small.json" <<'END'
{ "schema_version": 1, "name": "small", "title": "Small", "defaults": { "duration": 0.5, "warmup": 0.1, "floor": 0 },
  "entries": [
    { "name": "echo", "title": "Echoes", "options": { "workload": "echo", "steps": 5 } },
    { "name": "ramp", "title": "A ramp", "options": { "steps": "2,6", "message-size": [64, 256] } },
    { "name": "signal", "title": "Completions", "options": { "steps": 4, "compare": ["signal-every=1,16"], "repeat": 1 } },
    { "name": "search", "title": "A search", "options": { "clients": 8, "find-capacity": true, "slo": "p50<10s" } } ] }
END
limit=600 hosts_run suite 0 main --suite "$tmp/small.json" && adds_up suite
is "suite: every entry ran" "$(jq -r '[.entries[] | .status] | join(",")' "$tmp"/suite/*/suite.json)" ran,ran,ran,ran

# ---- two servers

start_server other --threads 1 --max-clients 60 --probe-interval 2
for deal in round-robin first random; do
    before=("$(stats main events.messages_in)" "$(stats other events.messages_in)")
    hosts_run "deal_$deal" 0 "$host:${port[main]},$host:${port[other]}" --deal $deal --steps 9,14 "${quick[@]}" && adds_up "deal_$deal" &&
        says "$deal: what the hosts did to each server is what it counted" "deal_$deal" \
            '[.steps[] | .servers | length] == [2, 2]' '.steps | all(([.servers[].clients] | add) == .target_clients)' \
            '.steps | all([.servers[] | .clients == .connected_held] | all)' \
            '.steps | all([.servers[] | .clients == .server_connected] | all)' '[.steps[].servers[].server_pools] | unique == ["restored"]'
    after=("$(stats main events.messages_in)" "$(stats other events.messages_in)")
    says "$deal: by the statistics of each, too" "deal_$deal" \
        "[.steps[].messages_total.server] | add <= $((after[0] + after[1] - before[0] - before[1]))" \
        "[$((after[0] - before[0])), $((after[1] - before[1]))] as \$n | [range(2) | \$n[.] > 0] | . == [true, \"$deal\" != \"first\"]"
done

all_back "everything is back" main
stop_server other
stop_server main
finish
