#!/bin/bash
# Finding capacity: objectives of a ramp, a search that finds where a server refuses, a search that survives the end of
# its own server, and one whose server does not come back. The transport does not matter here, so this uses TCP.
# test_capacity.sh has a search over RDMA.
# here
# shellcheck disable=SC2317  # what looks unreachable is called by name

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

# ---- objectives of a ramp

gives "--slo: a term that is not known" 2 "'p99' is not allowed; allowed: " "${bin}performance_test" --slo p99
gives "--find-capacity with --steps" 2 '--find-capacity: cannot be combined with --steps' "${bin}performance_test" --find-capacity --steps 10

# Connection times are not judged on software RDMA, but objectives are.
search met own --steps 2 --duration 1 --slo 'p50<10s,errors<=0,connect_max<60s'
ends "--slo: a ramp that meets it" met 240 0 'PASS +2 clients: SLO .*p50<10s'
is "--slo: each term is in run.json" \
    "$(for i in 0 1 2; do run_value met steps.0.slo.$i.metric; run_value met steps.0.slo.$i.result; done | tr '\n' ' ')" \
    'response_p50 pass errors pass connect_max pass '
run_says "--slo: a ramp says what it knows of capacity" met analysis.capacity.slo_capacity.clients=2
search missed own --steps 2 --duration 1 --slo 'p50<1us'
ends "--slo: a ramp that misses it ends with 1" missed 240 1 'FAIL +2 clients: SLO .*p50<1us'
search undecided own --steps 2 --duration 0.5 --slo 'lag_p99<10s'
ends "--slo: without a sample it is inconclusive" undecided 240 4 'unknown'

# ---- the summary, and the whole report

start_server full --threads 2 --max-clients 14
report=on run_to_end brief full --steps 2,4 --warmup 0.1 --duration 0.5
matches "a run ends with one table, the verdict, and where its files are" "$(<"${logs[brief]}")" \
    $'clients +held +failed .*\n +2 +2 +0 .*\n +4 +4 +0 .*\nVerdict .*\nStopped: max_reached\nResults: .*\nReport: '
is "and says no more than 30 lines" "$(($(wc -l <"${logs[brief]}") <= 30))" 1
report=on run_to_end whole full --steps 2,4 --warmup 0.1 --duration 0.5 --details
is "--details: what report DIR prints" "$(sed '/^Results: /,$d' "${logs[whole]}")" \
    "$("${bin}performance_test" report "$results"/*-whole)"
stop_server full

# ---- where a server refuses

# Lower, upper and what is between are counted from the steps; between the ends no other number was tried.
# shellcheck disable=SC2016 # for jq
interval='[.steps[] | select(.validity - ["clock_hole", "replies_stalled"] == .validity)] as $steps | .analysis.capacity.slo_capacity as $c |
  def at($n): [$steps[] | select(.target_clients == $n) | .probe.slo == "pass" and (.probe.hard_failure | not)];
  [([$c.lower, $c.upper] | map(values) | all(.clients as $n | .unsteady ==
      ([$steps[] | select(.target_clients == $n and (.steady or .probe.hard_failure | not))] | length))),
   ($c.lower | [at(.clients) | length, all] == [.tries, true] and .met == .tries),
   ($c.upper | . == null or ([at(.clients) | length, any] == [.tries, false] and .missed == .tries)),
   ($c.between | all(.clients as $n | [at($n) | length, (map(select(.)) | length)]
      == ([$c.between[] | select(.clients == $n)][0] | [.tries, .met]))),
   ([$steps[].target_clients | select(. > $c.lower.clients and . < ($c.upper.clients // 1e9))] | unique)
      == [$c.between[].clients], $c.clients == $c.lower.clients and $c.high == $c.upper.clients] | all'

start_server full --threads 2 --max-clients 14
# Idle clients are steady at any duration, so that the result does not depend on how busy this machine is.
search refused full --find-capacity --clients 40 --duration 0.3 --workload idle --slo 'errors<1%'
ends "a search finds where the server is full" refused 240 0 'first hard failure +15 +14 +15 +[0-9]+ of [0-9]+ +yes .*refused:full'
run_says "it names both boundaries" refused analysis.capacity.slo_capacity.clients=14 \
    analysis.capacity.slo_capacity.high=15 analysis.capacity.first_hard_failure.clients=15 \
    analysis.capacity.first_hard_failure.low=14
is "and the resource, and whose it is" \
    "$(run_value refused analysis.capacity.first_hard_failure.failure.resource) $(run_value refused analysis.capacity.first_hard_failure.failure.side)" \
    'max_clients server'
# shellcheck disable=SC2016 # for jq
holds "the interval is what the steps say: 14 met it in each of 5 tries, 15 in none of 5, and the cap is the answer" refused \
    "$interval" '.analysis.capacity.slo_capacity | [.lower.met, .upper.missed, .between, .scatters] == [5, 5, [], false]' \
    '.analysis.capacity.slo_capacity.capped_by == "max_clients"' \
    '.verdict[-1].measured | contains("14 is the server'"'"'s own limit (--max-clients)")'
is "both were confirmed" \
    "$(run_value refused analysis.capacity.slo_capacity.confirmed) $(run_value refused analysis.capacity.first_hard_failure.confirmed)" \
    'true true'
is "the run is complete, and says why it ended" "$(run_value refused run.status) $(run_value refused run.stop_reason)" \
    'completed error_rate'
serves "the server was not harmed" full

# ---- the generator's own server dies

search survivor own --find-capacity --clients 11 --duration 2 --workload idle --slo 'errors<1%'
in_phase() { # NAME
    grep -qs "\"phase\": *\"$1\"" "$tmp"/*-survivor/events.ndjson
}
wait_until 240 in_phase connecting || not_ok "the search connects" "$(cat "${logs[survivor]}")"
pgrep -P "${pid[survivor]}" -x rdma_server >"$tmp/child"
wait_until 240 in_phase measuring || not_ok "the search measures" "$(cat "${logs[survivor]}")"
kill -KILL "$(<"$tmp/child")"
ends "a search whose server is killed goes on with another" survivor 180 0 'objective met .SLO. +at least 11'
holds "the probe that lost it was tried again and outvoted" survivor "$interval" '[.steps[] | select(.target_clients == 10)] | length >= 3'
run_says "the probe that lost it is told as what broke" survivor steps.0.connected_held=0
is "by name and side" \
    "$(run_value survivor steps.0.hard_failure.resource) $(run_value survivor steps.0.hard_failure.side)" 'server server'

# ---- another server dies

search bereft full --find-capacity --clients 12 --duration 20 --slo 'errors<1%'
reaches full 240 clients.connected=10
kill -KILL "${pid[full]}"
end_of full 240
ends "a search that lost its server ends inconclusive" bereft 120 4 'not confirmed'
is "and says why" "$(run_value bereft run.stop_reason)" server_lost
finish
