# Common parts of the comparisons: statistics, reading run.json, rows of the table. Included with `jq -L scripts/lib` by
# scripts/bench-connect and scripts/bench-data, and by their own definitions. A missing figure is null; error is raised
# for invalid output of a program.

# ---- statistics

def median:
  sort | length as $n |
  if $n == 0 then null
  elif $n % 2 == 1 then .[($n - 1) / 2]
  else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

def spread: map(select(. != null)) | { median: median, min: min, max: max, runs: length };

def ratio($a; $b): if $a == null or $b == null or $b <= 0 then null else $a / $b end;

# Input: a spread of ratios. Says whether its median meets the target; null where there is none.
def judged($target; $at_least):
  .target = $target |
  .met = (if $target == null or .median == null then null
    elif $at_least then .median >= $target
    else .median <= $target end);

# ---- run.json

def positive($what): if type == "number" and . > 0 then . else error("\($what) is \(.)") end;

def steps($count):
  if .run.status != "completed" then error("the run was \(.run.status): \(.run.stop_reason)")
  elif (.steps | length) != $count then error("\(.steps | length) steps instead of \($count)")
  else .steps end;

def step_held($n):
  if .target_clients != $n or .connected_held != $n
  then error("held \(.connected_held) of \($n) clients" +
    (.failures[0] // null | if . then ": \(.stage) \(.code), \(.meaning)" else "" end))
  else . end;

# Rounds to three decimals.
def tidy: . * 1000 | round / 1000;

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

# Formatted like the verdict of performance_test.
def environment_words:
  (if .rdma_device == null then "no RDMA device" elif .rdma_device.is_software
   then "software RDMA device \(.rdma_device.name)" else "RDMA device \(.rdma_device.name)" end) +
  (if .is_virtual_machine then ", in a virtual machine" else "" end) +
  (if .is_emulated_cpu then ", CPU emulated in software (\(.accelerator))" else "" end) +
  (if .is_emulated_cpu or .rdma_device.is_software then ": not hardware figures" else "" end);

# Input: a spread.
def row($name; $decimals; $after):
  (if .median == null then "" else "\(.min | fixed($decimals)) - \(.max | fixed($decimals))" end) as $range |
  "  \($name | left(38))\(.median | fixed($decimals) | right(10))   \($range | left(21))\($after)" | sub(" +$"; "");

def some_pairs: if . == 1 then "1 pair" else "\(.) pairs" end;

def figure_row($name; $decimals; $pairs):
  row($name; $decimals; if .runs < $pairs then "\(.runs) of \($pairs | some_pairs)" else "" end);

# Input: a judged spread. $sign stands before the target.
def ratio_row($name; $sign):
  row($name; 3;
    if .target == null then ""
    else "target \($sign)\(.target | fixed(2))" +
      (if .met == null then "" elif .met then "  PASS" else "  miss" end)
    end);

# Input: bench.json.
def heading($title):
  "\($title): \(.environment.description)",
  "Kernel \(.environment.kernel), \(.environment.cpu_model // "unknown CPU"), \(.environment.cores) cores. " +
    "\(.config.pairs | some_pairs), interleaved; ratios are taken in each pair.",
  (if .config.pairs < 5 then
    "Fewer than 5 pairs: these medians are no result, only a sign that everything runs." else empty end),
  "";

def status_line: if .status == "completed" then empty else "Status: \(.status)" end;
