# Reads, computes and prints the figures of scripts/bench-connect (docs/bench.md). Included with `jq -L scripts/lib`. A
# missing figure is null; error is raised for invalid output of a program.
include "bench";

def side_names: {
  full: "rampart, full handshakes",
  resumed: "rampart, resumed handshakes",
  full_oob: "rampart, full, out of band",
  rdma: "rampart, RDMA part alone",
  oob: "rampart, RDMA part, out of band",
  cmtime: "cmtime",
  bare: "bare OpenSSL",
  bare_resumed: "bare OpenSSL, resumed (in no ratio)"
};

# The number of connections at which the targets apply.
def target_connections: 10000;
def ratio_names: {
  rdma_to_cmtime: { name: "RDMA part / cmtime", target: 0.45 },
  oob_to_cmtime: { name: "out of band / cmtime", target: 0.30 },
  full_oob_to_full: { name: "full, out of band / full", target: 0.80 },
  full_to_sum: { name: "full / (cmtime + bare)", target: 1.00 },
  resumed_to_sum: { name: "resumed / (cmtime + bare)", target: 0.60 }
};

# ---- arithmetic

def sum($a; $b): if $a == null or $b == null then null else $a + $b end;

# The ratios of one pair, from its us_per_connection.
def ratios: sum(.cmtime; .bare) as $both | {
  rdma_to_cmtime: ratio(.rdma; .cmtime),
  oob_to_cmtime: ratio(.oob; .cmtime),
  full_oob_to_full: ratio(.full_oob; .full),
  full_to_sum: ratio(.full; $both),
  resumed_to_sum: ratio(.resumed; $both)
};

# ---- what the programs print

# Rounds microseconds to nanoseconds.
def wall_us($n): (.connect_wall_s | positive("connect_wall_s")) * 1000000 / $n | tidy;

# Reads run.json: the first repetition has full handshakes, the second, if there is one, resumed ones.
def full_step($n):
  .[0] | step_held($n) |
  if .handshakes.resumed > 0 then error("\(.handshakes.resumed) handshakes were resumed")
  else { us_per_connection: wall_us($n) } end;

def full_side($n): steps(2) | full_step($n);
def full_oob_side($n): steps(1) | full_step($n);

def resumed_side($n):
  steps(2) | map(step_held($n)) | .[1] |
  if .handshakes.resumed != $n then error("\(.handshakes.resumed) of \($n) handshakes were resumed")
  else { us_per_connection: wall_us($n) } end;

def phases_side($n; phases):
  steps(1)[0] | step_held($n) | .phase_ns_per_connection // error("no phase_ns_per_connection") |
  phases |
  with_entries(.value |= (positive("a phase's time") / 1000 | tidy)) |
  { us_per_connection: (add | tidy), phases_us: . };

def rdma_side($n): phases_side($n; { addr_resolve, route_resolve, qp_setup, rdma_connect });
def oob_side($n): phases_side($n; { qp_setup, qp_exchange });

# Reads the output of tls_handshakes.
def bare_side($n; $resumed):
  if .handshakes_done != $n or .handshakes_failed != 0 or .resumed != $resumed
  then error("\(.handshakes_done) of \($n) handshakes were done")
  else { us_per_connection: ((.ns_per_handshake | positive("ns_per_handshake")) / 1000),
    cpu_us: (.cpu_ns_per_handshake / 1000) } end;

# Reads the output of cmtime with its stderr. cmtime continues after an error and still prints a table, so every line
# must be a known one. A column is as wide as its figure: columns may touch, but all figures have two decimals.
def cmtime_known:
  test("^(creating id|resolving address|resolving route|creating qp|connecting|disconnecting|destroying id)$") or
  test("^(libibverbs|librdmacm): Warning");

def cmtime_rows:
  capture("^(?<step>[a-z ]*[a-z]) *: *(?<total_ms>[0-9]+\\.[0-9]{2}) *(?<max_ms>[0-9]+\\.[0-9]{2}) *" +
    "(?<min_us>[0-9]+\\.[0-9]{2}) *(?<us>[0-9]+\\.[0-9]{2})$") |
  { key: (.step | gsub(" "; "_")),
    value: { total_ms: (.total_ms | tonumber), max_ms: (.max_ms | tonumber), min_us: (.min_us | tonumber),
      us: (.us | tonumber) } };

def cmtime_steps: ["create_id", "resolve_addr", "resolve_route", "create_qp", "connect"];
def cmtime_other_steps: ["disconnect", "destroy"];

# A step that no connection reached has the largest minimum; one of other than $n connections, another quotient.
def cmtime_row($n):
  if .us <= 0 or .max_ms <= 0 or .min_us >= 999999999 or .min_us > .max_ms * 1000 + 10 or
    ((.total_ms * 1000 / $n - .us) | fabs) > .us * 0.01 + 10 / $n + 0.02
  then error("cmtime's figures are not of \($n) connections") else .us end;

def cmtime_side($n):
  split("\n") | map(rtrimstr("\r") | select(. != "")) |
  (map(test("^step +total ms +max ms +min us +us / conn$")) | index(true)) as $header |
  if $header == null
  then error("cmtime said: \(map(select(cmtime_known | not)) | .[0] // "no table")") else . end |
  (.[:$header] | map(select(cmtime_known | not))) as $unknown |
  if $unknown != [] then error("cmtime said: \($unknown[0])") else .[$header + 1:] end |
  map([cmtime_rows] | .[0]) |
  if map(.key) != cmtime_steps + cmtime_other_steps then error("cmtime's table is another one") else . end |
  from_entries | [to_entries[] | select(.key | IN(cmtime_steps[])) | .value |= cmtime_row($n)] | from_entries |
  { us_per_connection: (add | tidy), steps_us: . };

# ---- bench.json

# Input: the figures of the programs.
def progress:
  to_entries[] | side_names[.key] + ": " + (.value.error // "\(.value.us_per_connection | fixed(1)) us");

# Input: null. $sides: the figures of each side, or {error}.
def pair($number; $order; $sides): {
  pair: $number, order: $order,
  us_per_connection: (side_names | with_entries(.value = $sides[.key].us_per_connection)),
  rdma_phases_us: $sides.rdma.phases_us,
  oob_phases_us: $sides.oob.phases_us,
  cmtime_steps_us: $sides.cmtime.steps_us,
  cmtime_repeats: ($sides.cmtime.repeats // 0),
  bare_cpu_us: $sides.bare.cpu_us,
  failures: [$sides | to_entries[] | select(.value.error) | { side: .key, why: .value.error }]
} | .ratios = (.us_per_connection | ratios);

def count_summary: .connections as $n |
  .us_per_connection = (. as $c | side_names |
    with_entries(.key as $side | .value = ($c.pairs | map(.us_per_connection[$side]) | spread))) |
  .ratios = (. as $c | ratio_names | with_entries(.key as $name |
    (if $n == target_connections then .value.target else null end) as $target |
    .value = ($c.pairs | map(.ratios[$name]) | spread | judged($target; false))));

# Input: bench.json; adds a pair.
def with_pair($n; $pair):
  if any(.counts[]; .connections == $n) then . else .counts += [{ connections: $n, pairs: [] }] end |
  .counts |= map(if .connections == $n then .pairs += [$pair] | count_summary else . end) |
  .cmtime_repeats = ([.counts[].pairs[].cmtime_repeats] | add) |
  .failures = ([.counts[] | .connections as $n | .pairs[] | .pair as $p | .failures[] |
    { connections: $n, pair: $p, side, why }]);

# ---- bench.txt

# $pairs: what --pairs says. Fewer were measured with many connections, or if the run was interrupted.
def count_table($pairs):
  (.pairs | length) as $measured |
  . as $c | side_names as $names | ratio_names as $ratios |
  ("\(.connections | thousands) connections, us per connection" | left(40)) + ("median" | right(10)) + "   range" +
    (if $measured < $pairs then " (\($measured | some_pairs))" else "" end),
  ($names | keys_unsorted[] | . as $side | $c.us_per_connection[$side] | figure_row($names[$side]; 1; $measured)),
  ($ratios | keys_unsorted[] | . as $name | $c.ratios[$name] | ratio_row($ratios[$name].name; "")),
  "";

def table:
  heading("rampart beside cmtime and bare OpenSSL"),
  (.config.pairs as $pairs | .counts[] | count_table($pairs)),
  "cmtime runs repeated because they failed: \(.cmtime_repeats)",
  (.failures[] | "FAILED: \(.connections) connections, pair \(.pair), \(side_names[.side]): \(.why)"),
  status_line;
