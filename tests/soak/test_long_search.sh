#!/bin/bash
# Searches on one machine agree: the intervals of four searches in a row against one server, of which each of the six
# pairs must overlap. The objective is the p50 of a step, so that chance decides probes with about as many clients.

. tests/soft_roce/lib.sh

options=(--threads 1 --floor 0)
start_server main --threads 1 --max-clients 64
search first main --steps 8 --duration 1 "${options[@]}"
end_of first 120
p50=$(jq '.steps[0].response_ns.p50 | floor' "$tmp/first.json")

for i in {1..4}; do
    search "s$i" main --find-capacity --clients 16 --duration 0.3 --slo "p50<${p50}ns" "${options[@]}"
    end_of "s$i" 300
    holds "search $i finds an interval (status $status)" "s$i" '.run.status == "completed"' \
        '.analysis.capacity.slo_capacity | .lower.clients >= 1 and .upper.clients > .lower.clients'
    printf '# %s; %d probes\n' "$(jq -r '.analysis.capacity.slo_capacity.reason' "$tmp/s$i.json")" \
        "$(jq '.steps | length' "$tmp/s$i.json")"
done
is "each two of them overlap" "$(jq -s 'map(.analysis.capacity.slo_capacity) | length == 4 and all(.low and .high) and
    (map(.low) | max) <= (map(.high) | min)' "$tmp"/s[1-4].json)" true
stop_server main
finish
