# Reads, computes and prints the figures of scripts/bench-data (docs/bench.md). Included with `jq -L scripts/lib`. A
# missing figure is null; error is raised for invalid output of a program.
include "bench";

# ---- the tests
#
# A figure is named by its run and its field there; a test needs the runs that its figures name. A ratio is that of the
# best figures of the two sides; it is good below its target, or above with at_least.

def round_trip($how): "64 bytes there and back, \($how), us";

# $modes: the modes of perftest.
def by_mode($rampart; $perftest; $modes; $field; $target):
  def key($side; $mode): "\($side)_\($mode).\($field)";
  { event: "by events", busy: "busy polling" } as $words |
  ($modes | map({ ("\($rampart)_\(.)"):
    { name: $words[.], of: [key($rampart; .)], to: [key($perftest; .)] } }) | add) +
  { ($rampart): { name: "better of both", target: $target,
    of: [key($rampart; "event", "busy")], to: [key($perftest; $modes[])] } } |
  map_values(.at_least = true);

# The same with several messages of rampart in a SEND, which perftest does not offer: only for comparison.
def joined($rampart; $perftest; $field):
  by_mode($rampart; $perftest; ["event", "busy"]; $field; null) |
  map_values(.name = "joined, \({ "better of both": "better", "busy polling": "busy" }[.name] // .name)");

def tests: {
  lat_spin: {
    title: round_trip("busy polling"), decimals: 1,
    figures: {
      "pingpong_busy.p50_us": "rampart, p50",
      "send_lat_busy.p50_us": "ib_send_lat, p50",
      "pingpong_busy.p99_9_us": "rampart, p99.9",
      "send_lat_busy.p99_9_us": "ib_send_lat, p99.9",
      "ucx_lat.p50_us": "ucx_perftest tag_lat, p50",
      "fi_lat.mean_us": "fi_pingpong, mean",
      "qperf_lat.mean_us": "qperf rc_lat, mean" },
    ratios: {
      lat_spin: { name: "p50", of: ["pingpong_busy.p50_us"], to: ["send_lat_busy.p50_us"], target: 1.05 },
      lat_spin_p99_9: { name: "p99.9", of: ["pingpong_busy.p99_9_us"], to: ["send_lat_busy.p99_9_us"],
        target: 1.00 } } },
  lat_event: {
    title: round_trip("by events"), decimals: 1,
    figures: { "pingpong_event.p50_us": "rampart, p50", "send_lat_event.p50_us": "ib_send_lat -e, p50" },
    ratios: {
      lat_event: { name: "p50", of: ["pingpong_event.p50_us"], to: ["send_lat_event.p50_us"], target: 0.90 } } },
  read_lat: {
    title: "RDMA READ of 64 bytes, busy polling, us", decimals: 1,
    figures: { "read_busy.p50_us": "rampart, p50", "read_lat_busy.p50_us": "ib_read_lat, p50" },
    ratios: { read_lat: { name: "p50", of: ["read_busy.p50_us"], to: ["read_lat_busy.p50_us"] } } },
  write_lat: {
    title: round_trip("by WRITE"), decimals: 1,
    figures: {
      "pingpong_busy.p50_us": "rampart, by messages, p50",
      "write_lat_busy.p50_us": "ib_write_lat, p50" },
    ratios: { write_lat: { name: "p50", of: ["pingpong_busy.p50_us"], to: ["write_lat_busy.p50_us"] } } },
  small_1: {
    title: "64 bytes one way, messages/s", decimals: 0,
    figures: {
      "small_1_event.msgs_per_s": "rampart, by events",
      "send_bw_event.msgs_per_s": "ib_send_bw -e, best setting",
      "small_1_busy.msgs_per_s": "rampart, busy polling",
      "send_bw_busy.msgs_per_s": "ib_send_bw, best setting",
      "small_1_joined_event.msgs_per_s": "rampart, 16 in a SEND, by events",
      "small_1_joined_busy.msgs_per_s": "rampart, 16 in a SEND, busy polling",
      "ucx_bw.msgs_per_s": "ucx_perftest tag_bw",
      "qperf_bw.msgs_per_s": "qperf rc_bw" },
    ratios: (by_mode("small_1"; "send_bw"; ["event", "busy"]; "msgs_per_s"; 1.30) +
      joined("small_1_joined"; "send_bw"; "msgs_per_s")) },
  small_100: {
    title: "64 bytes one way, 100 clients, messages/s", decimals: 0,
    figures: {
      "small_100_event.msgs_per_s": "rampart, by events",
      "send_bw_event.msgs_per_s": "ib_send_bw -e, one client",
      "small_100_busy.msgs_per_s": "rampart, busy polling",
      "send_bw_busy.msgs_per_s": "ib_send_bw, one client",
      "small_100_joined_event.msgs_per_s": "rampart, 16 in a SEND, by events",
      "small_100_joined_busy.msgs_per_s": "rampart, 16 in a SEND, busy polling" },
    ratios: (by_mode("small_100"; "send_bw"; ["event", "busy"]; "msgs_per_s"; 1.50) +
      joined("small_100_joined"; "send_bw"; "msgs_per_s")) },
  large_write: {
    title: "WRITE of 1 MiB, MB/s", decimals: 1,
    figures: {
      "large_write_event.mb_per_s": "rampart, by events",
      "large_write_busy.mb_per_s": "rampart, busy polling",
      "write_bw_busy.mb_per_s": "ib_write_bw, best setting",
      "ucx_write.mb_per_s": "ucx_perftest ucp_put_bw",
      "qperf_write.mb_per_s": "qperf rc_rdma_write_bw" },
    ratios: by_mode("large_write"; "write_bw"; ["busy"]; "mb_per_s"; 1.00) },
  large_read: {
    title: "READ of 1 MiB, MB/s", decimals: 1,
    figures: {
      "large_read_event.mb_per_s": "rampart, by events",
      "read_bw_event.mb_per_s": "ib_read_bw -e, best setting",
      "large_read_busy.mb_per_s": "rampart, busy polling",
      "read_bw_busy.mb_per_s": "ib_read_bw, best setting" },
    ratios: by_mode("large_read"; "read_bw"; ["event", "busy"]; "mb_per_s"; 1.00) },
  duplex: {
    title: "1 MiB both ways at once, MB/s", decimals: 1,
    figures: {
      "duplex_event.mb_per_s": "rampart, by events",
      "duplex_busy.mb_per_s": "rampart, busy polling",
      "write_both_busy.mb_per_s": "ib_write_bw -b, best setting" },
    ratios: by_mode("duplex"; "write_both"; ["busy"]; "mb_per_s"; 1.00) },
  cpu: {
    title: "CPU time of who receives 64 bytes, us", decimals: 2,
    figures: {
      "small_1_event.server_cpu_us": "rampart's server, by events",
      "send_bw_event.server_cpu_us": "ib_send_bw -e, best setting" },
    ratios: {
      cpu: { name: "user and system", of: ["small_1_event.server_cpu_us"], to: ["send_bw_event.server_cpu_us"],
        target: 1.00 } } },
  tcp_lat: {
    title: "64 bytes there and back over TCP, us", decimals: 1, beside: "sockperf",
    figures: {
      "tcp_pingpong.p50_us": "rampart, p50",
      "sockperf_epoll.p50_us": "sockperf by epoll, p50",
      "sockperf_block.p50_us": "sockperf by recvfrom, p50",
      "tcp_pingpong.p99_us": "rampart, p99",
      "sockperf_epoll.p99_us": "sockperf by epoll, p99",
      "sockperf_block.p99_us": "sockperf by recvfrom, p99" },
    ratios: {
      tcp_lat_epoll: { name: "by epoll", of: ["tcp_pingpong.p50_us"], to: ["sockperf_epoll.p50_us"], target: 1.10 },
      tcp_lat: { name: "by recvfrom", of: ["tcp_pingpong.p50_us"], to: ["sockperf_block.p50_us"], target: 1.10 } } },
  tcp_large: {
    title: "1 MiB one way over TCP, MB/s", decimals: 1, beside: "iperf3",
    figures: { "tcp_large.mb_per_s": "rampart", "iperf3_tcp.mb_per_s": "iperf3 -l 1M" },
    ratios: { tcp_large: { name: "MB/s", of: ["tcp_large.mb_per_s"], to: ["iperf3_tcp.mb_per_s"], target: 0.90,
      at_least: true } } },
  tls_large: {
    title: "1 MiB one way over TLS, MB/s", decimals: 1, beside: "bare OpenSSL",
    figures: { "tls_large.mb_per_s": "rampart", "openssl_tls.mb_per_s": "SSL_write and SSL_read" },
    ratios: { tls_large: { name: "MB/s", of: ["tls_large.mb_per_s"], to: ["openssl_tls.mb_per_s"], target: 0.90,
      at_least: true } } },
  tcp_cpu: {
    title: "CPU time of who answers 64 bytes, us", decimals: 2, beside: "sockperf",
    figures: {
      "tcp_pingpong.server_cpu_us": "rampart's server",
      "sockperf_epoll.server_cpu_us": "sockperf's server by epoll",
      "sockperf_block.server_cpu_us": "sockperf's server by recvfrom" },
    ratios: {
      tcp_cpu_epoll: { name: "by epoll", of: ["tcp_pingpong.server_cpu_us"], to: ["sockperf_epoll.server_cpu_us"],
        target: 1.10 },
      tcp_cpu: { name: "by recvfrom", of: ["tcp_pingpong.server_cpu_us"], to: ["sockperf_block.server_cpu_us"],
        target: 1.10 } } }
};

# The runs that the named tests need, in the order of their figures.
def runs_of($names):
  reduce (tests[$names[]].figures | keys_unsorted[] | split(".")[0]) as $run
    ([]; if index([$run]) then . else . + [$run] end);

# ---- arithmetic

# Input: the figures of the runs of a pair.
def figure($key): getpath($key | split("."));

# If one mode is unknown, the best of both is unknown.
def best($keys; $at_least):
  [figure($keys[])] | if any(. == null) then null elif $at_least then max else min end;

def ratios($names):
  . as $sides | [tests[$names[]].ratios] | add |
  map_values(. as $r | $sides | ratio(best($r.of; $r.at_least); best($r.to; $r.at_least)));

# ---- what the programs print

# Reads run.json. CPU time is that of the server per operation.
def rampart_side($n):
  steps(1)[0] | step_held($n) |
  (.throughput_msgs_per_s | positive("throughput_msgs_per_s")) as $rate |
  (.streams // {} | if . == {} then null else [.[].bytes_per_s] | add end) as $both_ways |
  .resources.server as $server |
  { p50_us: (.response_ns.p50 | if . == null then . else . / 1000 | tidy end),
    p99_us: (.response_ns.p99 | if . == null then . else . / 1000 | tidy end),
    p99_9_us: (.response_ns.p99_9 | if . == null then . else . / 1000 | tidy end),
    msgs_per_s: ($rate | tidy),
    mb_per_s: (($both_ways // .throughput_bytes_per_s) / 1000000 | tidy),
    server_cpu_us: ($server | if .cpu_user_s == null or .window_s == null then null
      else (.cpu_user_s + .cpu_system_s) * 1000000 / ($rate * .window_s) | tidy end) };

def words: [scan("[^ \t\r]+")] | join(" ");

# perftest's table has one row below a header, which must be the known one, because its columns have changed before.
# Ruler lines are skipped.
def perftest_row($program; $header; $size; $n):
  split("\n") | map(words | select(test("^[-*]*$") | not)) |
  (map(startswith("#bytes ")) | index(true)) as $at |
  if $at == null then error("\($program) said: \(.[-1] // "nothing")")
  elif .[$at] != $header then error("\($program)'s table is another one: \(.[$at])")
  else .[$at + 1:] end |
  if length != 1 then error("\($program)'s table has \(length) rows: \(.[-1] // "nothing")") else .[0] end |
  . as $row | [split(" ")[] | select(test("^[0-9]+(\\.[0-9]+)?$")) | tonumber] |
  if length != ($header | [scan("\\[|#")] | length) or .[0] != $size or .[1] != $n
  then error("\($program)'s row is another one: \($row)") else . end;

# perftest counts CPU cycles and measures their number per second: its figures must fit into the time that its client
# took.
def fits($program; $us; $elapsed_us):
  if $us > $elapsed_us * 1.02 then error("\($program) ran for \($elapsed_us) us, but says \($us | round)")
  else . end;

# Half round trips, except for READ, where they are whole ones.
def latency_side($program; $size; $n; $elapsed_us):
  perftest_row($program;
    "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] 99% percentile[usec] " +
      "99.9% percentile[usec]"; $size; $n) |
  (if $program == "ib_read_lat" then 1 else 2 end) as $parts |
  (.[5] | positive("t_avg[usec]")) as $mean |
  { p50_us: ((.[4] | positive("t_typical[usec]")) * $parts | tidy),
    mean_us: ($mean * $parts | tidy),
    p99_us: (.[7] * $parts | tidy),
    p99_9_us: (if $n < 2995 then null else .[8] * $parts | tidy end),
    iterations_per_s: (1000000 / ($mean * $parts) | tidy) } |
  fits($program; $mean * $parts * $n; $elapsed_us);

# A MB of perftest is 2^20 bytes. With -b its figures are the sum of both ends.
def bandwidth_side($program; $size; $n; $elapsed_us):
  perftest_row($program; "#bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]"; $size; $n) |
  (.[4] | positive("MsgRate[Mpps]")) as $rate |
  { msgs_per_s: ($rate * 1000000 | tidy),
    mb_per_s: ((.[3] | positive("BW average[MB/sec]")) * 1.048576 | tidy),
    iterations_per_s: ($rate * 1000000 | tidy) } |
  fits($program; $n / $rate; $elapsed_us);

# $cpu: user and system time of the server in s, as text; $start: the same of a run of few iterations, taken as the time
# for starting.
def perftest_side($program; $size; $n; $elapsed_us; $cpu; $start):
  (if $program | endswith("_lat") then latency_side($program; $size; $n; $elapsed_us)
   else bandwidth_side($program; $size; $n; $elapsed_us) end) |
  .iterations = $n |
  .server_cpu_s = ([$cpu | scan("[0-9.]+") | tonumber] | if length == 2 then add | tidy else null end) |
  .server_cpu_us = (
    if .server_cpu_s == null or $start.server_cpu_s == null or $n <= $start.iterations then null
    else (.server_cpu_s - $start.server_cpu_s) * 1000000 / ($n - $start.iterations) |
      if . > 0 then tidy else null end
    end);

# The programs without a ratio. $options: their options as text.

def lines: split("\n") | map(words | select(. != ""));

# Reads the last row of the CSV. Latencies are half round trips; a MB is 2^20 bytes.
def ucx_side($options; $cpu):
  lines |
  if .[-2] != "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr"
  then error("ucx_perftest said: \(.[-1] // "nothing")") else .[-1] / "," | map(tonumber) end |
  if $options | test("_lat")
  then { p50_us: (.[1] * 2 | tidy), mean_us: (.[3] * 2 | tidy), iterations_per_s: (500000 / .[3]) }
  else { msgs_per_s: .[7], mb_per_s: (.[5] * 1.048576 | tidy), iterations_per_s: .[7] } end;

# usec/xfer is half a round trip.
def fi_side($options; $cpu):
  lines |
  if .[0] != "bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec" or length != 2
  then error("fi_pingpong said: \(.[-1] // "nothing")")
  else (.[1] / " " | .[6] | tonumber | positive("usec/xfer")) as $us |
    { mean_us: ($us * 2 | tidy), iterations_per_s: (500000 / $us) } end;

# Latencies are one way, bandwidths in bytes.
def qperf_side($options; $cpu):
  (lines | [.[] | capture("^(latency|bw) = (?<figure>[0-9.]+) (?<unit>ns|us|ms|bytes/sec)$")]) as $found |
  if ($found | length) != 1 then error("qperf said: \(lines[-1] // "nothing")") else $found[0] end |
  (.figure | tonumber | positive("qperf's figure")) as $figure |
  if .unit == "bytes/sec"
  then ($options | capture("-m (?<size>[0-9]+)").size | tonumber) as $size |
    { msgs_per_s: ($figure / $size | tidy), mb_per_s: ($figure / 1000000 | tidy) }
  else { mean_us: ($figure * 2 / { ns: 1000, us: 1, ms: 0.001 }[.unit] | tidy) } end;

# Round trips (--full-rtt). CPU time is that of the whole server: starting is short, and it sleeps until stopped.
def sockperf_side($options; $cpu):
  (lines | [.[] | capture("---> percentile (?<at>[0-9.]+) = (?<us>[0-9.]+)$") | { (.at): (.us | tonumber) }] | add // {}) as $at |
  (lines | [.[] | capture("Total Run.*ReceivedMessages=(?<n>[0-9]+)").n | tonumber][0]) as $n |
  if $at["50.000"] == null or ($n // 0) == 0 then error("sockperf said: \(lines[-1] // "nothing")") else . end |
  { p50_us: ($at["50.000"] | tidy), p99_us: ($at["99.000"] | tidy),
    server_cpu_us: ([$cpu | scan("[0-9.]+") | tonumber] | if length == 2 and add > 0 then add * 1000000 / $n | tidy else null end) };

# Figures of the receiver.
def iperf3_side($options; $cpu):
  ([fromjson?] | if length == 1 then .[0] else error("iperf3 said no JSON") end) |
  if .error then error("iperf3 said: \(.error)") else { mb_per_s: (.end.sum_received.bits_per_second / 8000000 | tidy) } end;

def openssl_side($options; $cpu):
  (lines | [.[] | capture("^bytes_per_s=(?<figure>[0-9]+) cipher=TLS_AES_128_GCM_SHA256$").figure | tonumber]) as $found |
  if ($found | length) != 1 then error("tls_bytes said: \(lines[-1] // "nothing")")
  else { mb_per_s: ($found[0] / 1000000 | tidy) } end;

# Input: the figures of a perftest with each setting. A failed setting is reported and cannot be the best.
def best_setting:
  . as $all | map(select(.error | not)) |
  if . == [] then { error: $all[0].error }
  else (if .[0].msgs_per_s then max_by(.msgs_per_s) else .[0] end) end |
  .settings = $all;

# ---- bench.json

def headline:
  [ (.p50_us | if . then "p50 \(fixed(1)) us" else empty end),
    (.mean_us | if . then "mean \(fixed(1)) us" else empty end),
    (.msgs_per_s | if . then "\(fixed(0)) messages/s" else empty end),
    (.mb_per_s | if . then "\(fixed(1)) MB/s" else empty end),
    (.setting // "" | if . != "" then "with \(.)" else empty end) ] | join(", ");

# Input: the figures of runs.
def progress: to_entries[] | .key + ": " + (.value | .error // headline);

# Input: null. $sides: the figures of each run, or {error}.
def pair($number; $order; $sides; $names): {
  pair: $number, order: $order, sides: $sides,
  ratios: ($sides | ratios($names)),
  failures: [$sides | to_entries[] | .key as $run | .value |
    if .settings then .settings[] else . end | select(.error) |
    { run: ($run + (.setting // "" | if . != "" then " \(.)" else . end)), why: .error }],
  repeats: ([$sides[] | if .settings then .settings[] else . end | .repeats // 0] | add)
};

# Input: bench.json. Adds a pair, and computes anew what follows from all pairs.
def with_pair($pair):
  .pairs += [$pair] |
  .pairs as $pairs | .config.tests as $names |
  .figures = ([tests[$names[]].figures | keys_unsorted[]] | unique |
    map({ key: ., value: (. as $key | $pairs | map(.sides | figure($key)) | spread) }) | from_entries) |
  .ratios = ([tests[$names[]].ratios] | add | with_entries(.key as $name | .value |= (
    . as $r | $pairs | map(.ratios[$name]) | spread | judged($r.target; $r.at_least // false) |
    .at_least = ($r.at_least // false)))) |
  .failures = [.pairs[] | .pair as $n | .failures[] | { pair: $n, run, why }] |
  .repeats = ([.pairs[].repeats] | add);

# ---- bench.txt

def test_table($name; $pairs):
  . as $all | tests[$name] as $test |
  (.config | .rampart + .perftest + .others) as $ran |
  "\($test.title | left(43)) median   range",
  ($test.figures | to_entries[] | select($ran[.key | split(".")[0]]) | .value as $words |
    $all.figures[.key] | figure_row($words; $test.decimals; $pairs)),
  ($test.ratios | to_entries[] | .value.name as $words | $all.ratios[.key] |
    ratio_row("rampart / \($test.beside // "perftest"), \($words)"; if .at_least then ">= " else "<= " end)),
  "";

# How often each setting was the best.
def best_settings:
  [.pairs[].sides | to_entries[] | select((.value.settings // [] | length) > 1 and (.value.error | not)) |
    { run: .key, setting: .value.setting }] | group_by(.run)[] |
  "  \(.[0].run): " + (group_by(.setting) | sort_by(-length) |
    map("\(.[0].setting | if . == "" then "none" else . end) (\(length | some_pairs))") | join(", "));

def table:
  heading("rampart beside other programs"),
  (.config.path_mtu_bytes | if . then "Path MTU \(.), runs" else "Runs" end) +
    " of \(.config.duration_s) s. PASS and miss are of the median.",
  "",
  ([.config.pairs, (.pairs | length)] | min) as $pairs |
  (if $pairs > 0 then test_table(.config.tests[]; $pairs) else empty end),
  ([best_settings] | if . != [] then "Best settings of perftest:", .[], "" else empty end),
  (.left_out | to_entries | sort_by(.key)[] | "Left out: \(.key): \(.value)"),
  "Runs repeated because they failed: \(.repeats)",
  (.failures[] | "FAILED: pair \(.pair), \(.run): \(.why)"),
  status_line;
