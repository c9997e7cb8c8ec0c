# How a page writes a recorded figure: the functions that the words of docs/figures.tsv may use. Included with
# `jq -L scripts/lib` by scripts/check-figures. Anything but a number is an error that names the function, so that a
# field that a newer run lacks cannot become the word null in a page.
include "bench";

def number($function): if type == "number" then . else error("\($function) of \(tojson), which is no number") end;

# With separators of thousands, and exactly $n decimals: 1234.5 | decimals(2) is "1,234.50".
def decimals_of($n; $function):
  number($function) as $x |
  ($x | fabs | fixed($n) | split(".") | .[0] |= thousands | join(".")) |
  if $x < 0 and test("[1-9]") then "-" + . else . end;

def decimals($n): decimals_of($n; "decimals");
def count: decimals_of(0; "count");
# A share: 0.153 | percent is "15".
def percent: number("percent") * 100 | count;

# Nanoseconds to milliseconds and microseconds, and bytes to KiB and MiB: numbers, for `decimals`.
def ms: number("ms") / 1000000;
def us: number("us") / 1000;
def kib: number("kib") / 1024;
def mib: number("mib") / 1048576;

# Input: what a line's words became. Several values of an expression, or none, would make several texts, or none.
def only_text: if length == 1 then .[0] else error("an expression has \(length) values instead of one") end;

# Of run.json: the first step that missed the objective with as many clients as the upper end of the capacity.
def first_missed:
  .analysis.capacity.slo_capacity.high as $n | first(.steps[] | select(.target_clients == $n and .probe.slo == "fail"));
# The most clients that were held, if nobody failed in any step.
def most_without_failure:
  if all(.steps[]; .failed == 0 and .dropped == 0) then [.steps[].connected_held] | max
  else error("clients failed") end;
# The share of the machine's CPUs that were busy while a step was measured.
def cpu_busy: .resources.machine | .busy_s / (.busy_s + .idle_s);
# Servers for twice the clients of the capacity, of each of which $headroom per cent stay free.
def servers_for_twice($headroom):
  .analysis.capacity.slo_capacity.low as $n |
  ($n * (100 - $headroom) / 100 | floor) as $each | (2 * $n / $each | ceil) as $servers |
  { servers: $servers, clients_each: (2 * $n / $servers | ceil) };
# The planned figure of a resource, divided by what was used.
def planned_over_used($resource; $side): first(.plan.rows[] | select(.resource == $resource and .side == $side)).ratio;

# Of suite.json: how many figures of the comparison of an entry were better, and how many worse.
def compared($entry):
  [.entries[] | select(.name == $entry).comparison.points[].candidates[].rows[].verdict] as $verdicts |
  {n: ($verdicts | length), better: ($verdicts | map(select(. == "improvement")) | length),
   worse: ($verdicts | map(select(. == "regression")) | length)};
