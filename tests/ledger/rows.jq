# Makes rows of the ledger from the costs of one side (tests/ledger/cost.awk).
def figures: ["own", "libev", "openssl", "libc", "allocations", "openssl_allocations", "system_calls", "device_calls", "copied_bytes"];
def cents: . * 100 | round / 100;
# Leaves out functions below 0.2 % of the whole.
def largest($own): with_entries(select(.value >= $own / 500) | .value |= cents) | to_entries | sort_by(-.value) | from_entries;
def minus($a): to_entries | map(.value -= ($a[.key] // 0)) | from_entries;
# The minimum of several connections, figure by figure: unrelated work of the thread can only add to it.
def least: . as $all | .[0] | [paths(type == "number")] | reduce .[] as $p ({}; setpath($p; [$all[] | getpath($p) // 0] | min));

# The cost of one operation: the difference between the two runs, divided by the difference in their operations.
([.[] | select(.count > 0 and .state == "live")] | group_by([.transport, .run]) | .[] | sort_by(.count) as [$few, $more]
    | ($more.count - $few.count) as $n
    | (reduce figures[] as $f ({}; .[$f] = (($more[$f] - $few[$f]) / $n | cents))) as $costs
    | {row: "\($few.transport) \($few.run)", side: $side} + $costs
      + {functions: ($more.functions | minus($few.functions) | map_values(. / $n) | largest($costs.own))}),

# Connecting: each state before the connection is live, and all of them together.
([.[] | select(.count == 0 and (.state | IN("live", "closing", "dead", "free") | not))] | group_by([.transport, .run]) | .[]
    | (.[0] | "\(.transport) connect \(.run)") as $row
    | (group_by(.state) | sort_by(.[0].order) | map({state: .[0].state, cost: least})) as $states
    | ($states[] | {row: "\($row): \(.state)", side: $side} + (.cost as $c | reduce figures[] as $f ({}; .[$f] = $c[$f]))),
      ({row: $row, side: $side} + (reduce figures[] as $f ({}; .[$f] = ([$states[].cost[$f]] | add)))
       + {functions: (reduce $states[].cost.functions as $s ({}; reduce ($s | to_entries[]) as $e (.; .[$e.key] += $e.value))
                      | largest([.[]] | add))}))
