# What scripts/bench-connect reads, computes and prints (docs/bench.md). Included with `jq -L scripts/lib`.
# A figure that there is not is null; what is wrong with a program's output is raised with error.

def side_names: {
  full: "rampart, full handshakes",
  resumed: "rampart, resumed handshakes",
  rdma: "rampart, RDMA part alone",
  cmtime: "cmtime",
  bare: "bare OpenSSL",
  bare_resumed: "bare OpenSSL, resumed (in no ratio)"
};

# The targets hold at this many connections.
def target_connections: 10000;
def ratio_names: {
  rdma_to_cmtime: { name: "RDMA part / cmtime", target: 0.70 },
  full_to_sum: { name: "full / (cmtime + bare)", target: 1.00 },
  resumed_to_sum: { name: "resumed / (cmtime + bare)", target: 0.60 }
};

# ---- statistics

def median:
  sort | length as $n |
  if $n == 0 then null
  elif $n % 2 == 1 then .[($n - 1) / 2]
  else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

def spread: map(select(. != null)) | { median: median, min: min, max: max, runs: length };

def ratio($a; $b): if $a == null or $b == null or $b <= 0 then null else $a / $b end;

def sum($a; $b): if $a == null or $b == null then null else $a + $b end;

# Of one pair, from its us_per_connection.
def ratios: sum(.cmtime; .bare) as $both | {
  rdma_to_cmtime: ratio(.rdma; .cmtime),
  full_to_sum: ratio(.full; $both),
  resumed_to_sum: ratio(.resumed; $both)
};

# ---- what the programs print

def positive($what): if type == "number" and . > 0 then . else error("\($what) is \(.)") end;

def step_held($n):
  if .target_clients != $n or .connected_held != $n
  then error("held \(.connected_held) of \($n) clients" +
    (.failures[0] // null | if . then ": \(.stage) \(.code), \(.meaning)" else "" end))
  else . end;

def steps($count):
  if .run.status != "completed" then error("the run was \(.run.status): \(.run.stop_reason)")
  elif (.steps | length) != $count then error("\(.steps | length) steps instead of \($count)")
  else .steps end;

# Microseconds to the nanosecond.
def tidy: . * 1000 | round / 1000;

def wall_us($n): (.connect_wall_s | positive("connect_wall_s")) * 1000000 / $n | tidy;

# From run.json: the first repetition has full handshakes, the second resumed ones.
def full_side($n):
  steps(2)[0] | step_held($n) |
  if .handshakes.resumed > 0 then error("\(.handshakes.resumed) handshakes were resumed")
  else { us_per_connection: wall_us($n) } end;

def resumed_side($n):
  steps(2) | map(step_held($n)) | .[1] |
  if .handshakes.resumed != $n then error("\(.handshakes.resumed) of \($n) handshakes were resumed")
  else { us_per_connection: wall_us($n) } end;

def rdma_side($n):
  steps(1)[0] | step_held($n) | .phase_ns_per_connection // error("no phase_ns_per_connection") |
  { addr_resolve, route_resolve, qp_setup, rdma_connect } |
  with_entries(.value |= (positive("a phase's time") / 1000 | tidy)) |
  { us_per_connection: (add | tidy), phases_us: . };

# From tls_handshakes.
def bare_side($n; $resumed):
  if .handshakes_done != $n or .handshakes_failed != 0 or .resumed != $resumed
  then error("\(.handshakes_done) of \($n) handshakes were done")
  else { us_per_connection: ((.ns_per_handshake | positive("ns_per_handshake")) / 1000),
    cpu_us: (.cpu_ns_per_handshake / 1000) } end;

# cmtime's text, with its stderr. It goes on after an error and still prints a table, so that every line has to
# be a known one. A column is as wide as its figure: they may touch, but all have two decimals.
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

# A step that no connection took has the greatest minimum; one of other than $n connections, another quotient.
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

# Input: null. $sides: what each side gave, or {error}.
def pair($number; $order; $sides): {
  pair: $number, order: $order,
  us_per_connection: (side_names | with_entries(.value = $sides[.key].us_per_connection)),
  rdma_phases_us: $sides.rdma.phases_us,
  cmtime_steps_us: $sides.cmtime.steps_us,
  cmtime_repeats: ($sides.cmtime.repeats // 0),
  bare_cpu_us: $sides.bare.cpu_us,
  failures: [$sides | to_entries[] | select(.value.error) | { side: .key, why: .value.error }]
} | .ratios = (.us_per_connection | ratios);

def count_summary: .connections as $n |
  .us_per_connection = (. as $c | side_names |
    with_entries(.key as $side | .value = ($c.pairs | map(.us_per_connection[$side]) | spread))) |
  .ratios = (. as $c | ratio_names | with_entries(.key as $name |
    .value.target as $target |
    .value = ($c.pairs | map(.ratios[$name]) | spread) |
    .value.target = (if $n == target_connections then $target else null end) |
    .value.met = (if .value.target == null or .value.median == null then null
      else .value.median <= .value.target end)));

# Input: bench.json; adds a pair.
def with_pair($n; $pair):
  if any(.counts[]; .connections == $n) then . else .counts += [{ connections: $n, pairs: [] }] end |
  .counts |= map(if .connections == $n then .pairs += [$pair] | count_summary else . end) |
  .cmtime_repeats = ([.counts[].pairs[].cmtime_repeats] | add) |
  .failures = ([.counts[] | .connections as $n | .pairs[] | .pair as $p | .failures[] |
    { connections: $n, pair: $p, side, why }]);

# ---- bench.txt

def fixed($decimals):
  if . == null then "-"
  else pow(10; $decimals) as $p | (. * $p | round) as $r |
    "\($r / $p | floor)" +
    (if $decimals == 0 then "" else ".\("000000\($r % $p)"[-$decimals:])" end)
  end;

def left($width): . + " " * ($width - length) // .;
def right($width): " " * ($width - length) + . // .;
def thousands:
  tostring | [scan("(^[0-9]{1,3}|[0-9]{3})(?=([0-9]{3})*$)")[0]] | join(",");

# As performance_test's verdict has it.
def environment_words:
  (if .rdma_device.is_software then "software RDMA device" else "RDMA device" end) +
  " \(.rdma_device.name)" +
  (if .is_virtual_machine then ", in a virtual machine" else "" end) +
  (if .is_emulated_cpu then ", CPU emulated in software (\(.accelerator))" else "" end) +
  (if .is_emulated_cpu or .rdma_device.is_software then ": not hardware figures" else "" end);

def row($name; $decimals; $after):
  (if .median == null then "" else "\(.min | fixed($decimals)) - \(.max | fixed($decimals))" end) as $range |
  "  \($name | left(38))\(.median | fixed($decimals) | right(10))   \($range | left(21))\($after)" | sub(" +$"; "");

def some_pairs: if . == 1 then "1 pair" else "\(.) pairs" end;

def count_table($pairs):
  . as $c | side_names as $names | ratio_names as $ratios |
  "\(.connections | thousands) connections, us per connection       median   range",
  ($names | keys_unsorted[] | . as $side | $c.us_per_connection[$side] |
    row($names[$side]; 1; if .runs < $pairs then "\(.runs) of \($pairs | some_pairs)" else "" end)),
  ($ratios | keys_unsorted[] | . as $name | $c.ratios[$name] |
    row($ratios[$name].name; 3;
      if .target == null then "" elif .met == null then "target \(.target | fixed(2))"
      else "target \(.target | fixed(2))  \(if .met then "PASS" else "miss" end)" end)),
  "";

def table:
  "rampart beside cmtime and bare OpenSSL: \(.environment.description)",
  "Kernel \(.environment.kernel), \(.environment.cpu_model // "unknown CPU"), \(.environment.cores) cores. " +
    "\(.config.pairs | some_pairs), interleaved; ratios are taken in each pair.",
  (if .config.pairs < 5 then
    "Fewer than 5 pairs: these medians are no result, only a sign that everything runs." else empty end),
  "",
  (.config.pairs as $pairs | .counts[] | count_table([$pairs, (.pairs | length)] | min)),
  "cmtime runs repeated because they failed: \(.cmtime_repeats)",
  (.failures[] | "FAILED: \(.connections) connections, pair \(.pair), \(side_names[.side]): \(.why)"),
  (if .status == "completed" then empty else "Status: \(.status)" end);
