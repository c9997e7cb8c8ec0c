#!/bin/bash
# Tests of scripts/bench-data: its arithmetic and its reading of recorded output, and its way through the pairs, with
# stand-ins for the programs that need a device.
#
# The folder samples/ contains what perftest 4.5, fi_pingpong 1.17 and qperf 0.4.11 printed over Soft-RoCE: ib_send_lat
# with 1,000 iterations, ib_send_bw with 6,400, the same with -e and -l 64, ib_read_bw -e with 64, and ib_send_lat where
# nobody listened.
# shellcheck disable=SC2016  # a $ in single quotes is jq's

bench="bench-data"
. tests/bench/lib.sh

# ---- arithmetic

computes "a test needs the runs that its figures name, each once" '["small_1_event","send_bw_event",10,7]' '
    runs_of(["cpu"]) + [(["small_1", "cpu", "read_lat"], ["small_100", "cpu"] | runs_of(.) | length)]' -n
computes "the better of both modes, if both are known" '[2,0.5,4,null,2]' '
    def sides($busy): {small_1_event: {msgs_per_s: 8}, small_1_busy: {msgs_per_s: 2},
        send_bw_event: {msgs_per_s: 4}, send_bw_busy: {msgs_per_s: $busy}} | ratios(["small_1"]);
    [(sides(4) | .small_1, .small_1_busy), (sides(1) | .small_1 * 2), (sides(null) | .small_1, .small_1_event)]' -n
computes "PASS and miss, below a target and above one" '["PASS","PASS","miss","PASS","PASS","miss"]' '
    def verdict($target; $at_least): {median: ., min: ., max: .} | judged($target; $at_least) | ratio_row("x"; "") |
        scan("PASS|miss");
    [(1.31, 1.3, 1.29 | verdict(1.3; true)), (1.04, 1.05, 1.06 | verdict(1.05; false))]' -n
computes "ratios are taken pair by pair" '[2,1,4,1.3,true,true]' '
    def p($ours; $theirs): pair(1; []; {small_1_event: {msgs_per_s: $ours}, small_1_busy: {msgs_per_s: 0},
        send_bw_event: {msgs_per_s: $theirs}, send_bw_busy: {msgs_per_s: 0}}; ["small_1"]);
    {config: {tests: ["small_1"]}, pairs: []} | with_pair(p(4; 1)) | with_pair(p(2; 2)) | with_pair(p(2; 1)) |
    .ratios.small_1 | [.median, .min, .max, .target, .at_least, .met]' -n
computes "a setting that failed is told of, and is not the best" \
    '["-l 16",2,["a -Q 1"],{"error":"no"},["a","a -Q 1"]]' '
    def failures: pair(1; []; {a: .}; ["cpu"]).failures | map(.run);
    def given($plain): [$plain + {setting: ""}, {setting: "-Q 1", error: "no"}];
    (given({msgs_per_s: 1}) + [{setting: "-l 16", msgs_per_s: 2}] | best_setting) as $one |
    (given({error: "no"}) | best_setting) as $none |
    [$one.setting, $one.msgs_per_s, ($one | failures), ($none | del(.settings)), ($none | failures)]' -n
computes "CPU time for each message, without that of starting" '[10,null,null]' '
    def cpu($text; $start):
        "#bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n64 1100 0.00 1.00 0.020000\n" |
        perftest_side("ib_send_bw"; 64; 1100; 100000; $text; $start).server_cpu_us;
    {iterations: 100, server_cpu_s: 0.3} as $start |
    [cpu("0.110 0.200\n"; $start), cpu(""; $start), cpu("0.1 0.2"; null)]' -n
computes "what is taken from run.json" \
    '{"p50_us":1.5,"p99_us":null,"p99_9_us":null,"msgs_per_s":1000,"mb_per_s":3,"server_cpu_us":250}' '
    {run: {status: "completed"}, steps: [{target_clients: 1, connected_held: 1, throughput_msgs_per_s: 1000,
        throughput_bytes_per_s: 9e9, streams: {write: {bytes_per_s: 1e6}, read: {bytes_per_s: 2e6}},
        response_ns: {p50: 1500, p99_9: null},
        resources: {server: {cpu_user_s: 0.4, cpu_system_s: 0.1, window_s: 2}}}]} | rampart_side(1)' -n

# ---- what the programs print

# $n and $us are the iterations of the client and the time that they took.
perftest_says() { # NAME WANTED PROGRAM SIZE SAMPLE [SED SCRIPT]
    sed "${6:-}" "$samples/perftest_$5.txt" >"$tmp/said.txt"
    computes "$3: $1" "$2" 'try (perftest_side($program; $size; $n; $us; ""; null) |
        del(.iterations, .iterations_per_s, .server_cpu_s, .server_cpu_us)) catch {error: .}' -R -s \
        --arg program "$3" --argjson size "$4" --argjson n "$n" --argjson us "${us:-500000}" "$tmp/said.txt"
}

n=1000
perftest_says "half round trips are doubled" '{"p50_us":44.94,"mean_us":49.6,"p99_us":241.62,"p99_9_us":null}' \
    ib_send_lat 64 lat
perftest_says "whole ones are not" '{"p50_us":22.47,"mean_us":24.8,"p99_us":120.81,"p99_9_us":null}' \
    ib_read_lat 64 lat
perftest_says "no table" '{"error":"ib_send_lat said: Data ex. method : Ethernet"}' ib_send_lat 64 lat \
    '/^ local/,$d'
perftest_says "no row" '{"error":"ib_send_lat'\''s table has 0 rows: nothing"}' ib_send_lat 64 lat '/^ 64 /d'
perftest_says "nobody listened" '{"error":"ib_send_lat said: Unable to open file descriptor for socket connection '\
'Unable to init the socket connection"}' ib_send_lat 64 refused
us=48000 perftest_says "more time than it ran" '{"error":"ib_send_lat ran for 48000 us, but says 49600"}' \
    ib_send_lat 64 lat
n=3000 perftest_says "a 99.9th percentile takes enough iterations" \
    '{"p50_us":44.94,"mean_us":49.6,"p99_us":241.62,"p99_9_us":389.54}' ib_send_lat 64 lat 's/^ 64 *1000/ 64 3000/'

n=6400
perftest_says "messages and bytes" '{"msgs_per_s":22707,"mb_per_s":1.458}' ib_send_bw 64 bw
perftest_says "with a post list and events" '{"msgs_per_s":28257,"mb_per_s":1.804}' ib_send_bw 64 list
n=64 us=2000000 perftest_says "MB are 2^20 bytes" '{"msgs_per_s":48,"mb_per_s":50.416}' ib_read_bw 1048576 read_events
perftest_says "a row of another size" \
    '{"error":"ib_send_bw'\''s row is another one: 64 6400 0.00 1.39 0.022707"}' ib_send_bw 128 bw
perftest_says "a figure that is none" \
    '{"error":"ib_send_bw'\''s row is another one: 64 6400 0.00 inf 0.022707"}' ib_send_bw 64 bw s/1.39/inf/
perftest_says "a rate of nothing" '{"error":"MsgRate[Mpps] is 0"}' ib_send_bw 64 bw s/0.022707/0.000000/
perftest_says "another table" '{"error":"ib_send_bw'\''s table is another one: #bytes #iterations BW peak[MiB/sec] '\
'BW average[MiB/sec] MsgRate[Mpps]"}' ib_send_bw 64 bw s/MB/MiB/g
perftest_says "two rows" '{"error":"ib_send_bw'\''s table has 2 rows: 64 6400 0.00 1.39 0.022707"}' ib_send_bw 64 bw \
    '/^ 64 /p'

computes "fi_pingpong: half round trips are doubled" '{"mean_us":77.38}' 'fi_side(""; "") | del(.iterations_per_s)' -R -s \
    "$samples/fi_pingpong.txt"
computes "fi_pingpong: nothing" '"fi_pingpong said: nothing"' 'try fi_side(""; "") catch .' -R -s /dev/null
computes "qperf: a latency is one way" '{"mean_us":47.2}' 'qperf_side("-m 64 rc_lat"; "")' -R -s "$samples/qperf_lat.txt"
computes "qperf: bytes" '{"msgs_per_s":27295,"mb_per_s":1.747}' 'qperf_side("-m 64 rc_bw"; "")' -R -s \
    "$samples/qperf_bw.txt"
computes "qperf: something else" '"qperf said: rc_bw:"' 'try ("rc_bw:\n" | qperf_side("-m 64"; "")) catch .' -n
ucx='iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
1000,7.099,7.176,7.176,8.51,8.51,139355,139355
'
computes "ucx_perftest: latency and bandwidth" \
    '[{"p50_us":14.198,"mean_us":14.352},{"msgs_per_s":139355,"mb_per_s":8.923}]' \
    '[ucx_side("-t tag_lat -s 64"; ""), ucx_side("-t tag_bw -s 64"; "")] | map(del(.iterations_per_s))' -R -s <<<"$ucx"

sockperf='sockperf: [Total Run] RunTime=2.001 sec; Warm up time=400 msec; SentMessages=98563; ReceivedMessages=98562
sockperf: ---> percentile 99.000 =   83.335
sockperf: ---> percentile 50.000 =   16.521
'
computes "sockperf: whole round trips, and the CPU time of its server" '{"p50_us":16.521,"p99_us":83.335,"server_cpu_us":10.146}' \
    'sockperf_side("-m 64"; "0.300 0.700\n")' -R -s <<<"$sockperf"
computes "sockperf: without CPU time" 'null' 'sockperf_side("-m 64"; "") | .server_cpu_us' -R -s <<<"$sockperf"
computes "sockperf: nothing" '"sockperf said: ERROR: bind"' 'try ("ERROR: bind\n" | sockperf_side(""; "")) catch .' -n
computes "iperf3: bytes of the receiver" '{"mb_per_s":2000}' \
    '{end: {sum_received: {bits_per_second: 16e9}, sum_sent: {bits_per_second: 17e9}}} | tojson | iperf3_side(""; "")' -n
computes "iperf3: an error, and no JSON" '["iperf3 said: no route","iperf3 said no JSON"]' \
    '[{error: "no route"} | tojson, "x" | try iperf3_side(""; "") catch .]' -n
computes "bare TLS: bytes, with the cipher of rampart" '[{"mb_per_s":704},"tls_bytes said: bytes_per_s=7 cipher=OTHER"]' \
    '["bytes_per_s=704000000 cipher=TLS_AES_128_GCM_SHA256\n", "bytes_per_s=7 cipher=OTHER\n" | try openssl_side(""; "") catch .]' -n

# ---- the way through, with stand-ins for the programs that need a device; they run for as long as they report

mkdir "$tmp/bin"
{
    stand_in_performance_test
    cat <<'END_OF_STAND_IN'
jq --argjson n "$steps" --argjson joined "$coalesce" --arg run "$workload $poll" '
    .steps = [{target_clients: $n, connected_held: $n,
        throughput_msgs_per_s: (if $n == 100 then 192000 elif $run == "small event" then 166400 else 64000 end * $joined),
        throughput_bytes_per_s: 1e9, streams: null,
        response_ns: {p50: (if $run == "pingpong event" then 8000 else 10000 end), p99_9: 15400},
        resources: {server: {cpu_user_s: 0.25, cpu_system_s: 0.5, window_s: 2}}}]' <<<"$run" >"$json"
exit 4
END_OF_STAND_IN
} >"$tmp/bin/performance_test"
# The stand-in reports 10 us per round trip, 64,000 messages a second and 600 MiB/s, and twice that with -l 16. The
# program named in $failing fails as often as $failures says.
cat >"$tmp/bin/ib_send_lat" <<'END_OF_STAND_IN'
#!/bin/bash
here=${0%/bin/*}
name=${0##*/}
if [[ " $* " != *' 10.77.0.1 '* ]]; then
    rm -f "$here/done"
    echo LISTEN >"$here/listening"
    trap 'rm -f "$here/listening"; exit 143' TERM
    until [[ -e $here/done ]]; do read -rt 0.01 <> <(:); done
    exit "$(cat "$here/server_status" 2>/dev/null || echo 0)"
fi
n=0 factor=1
[[ ! " $* " =~ \ -n\ ([0-9]+)\  ]] || n=${BASH_REMATCH[1]}
[[ $* != *'-l 16'* ]] || factor=2
case "$name $*" in
*_bw*1048576*) us=$((n * 10000 / 6)) sample=perftest_bw row="1048576 $n 0.00 600.00 0.000600" ;;
*_bw*) us=$((n * 125 / 8 / factor)) sample=perftest_bw row="64 $n 0.00 4.00 0.$((64 * factor + 1000))" ;;
*_lat\ *) us=$((n * 10)) sample=perftest_lat row="64 $n 4.00 9.00 5.00 5.00 1.00 6.00 7.00" ;;
fi_pingpong*) us=0 sample=fi_pingpong row='\0' ;;
qperf*) us=0 sample=qperf_${*: -1:1} sample=${sample/rc_} row='\0' ;;
esac
row=${row/0.1/0.}
read -rt "$(printf '%d.%06d' $((us / 1000000)) $((us % 1000000)))" <> <(:)
rm -f "$here/listening"
touch "$here/done"
if [[ " $name $* " == *" $(cat "$here/failing") "* ]] && (($(cat "$here/failures") > 0)); then
    echo $(($(cat "$here/failures") - 1)) >"$here/failures"
    cat "$here/samples/perftest_refused.txt" >&2
    exit 1
fi
sed "s/^ 64 .*/ $row/" "$here/samples/$sample.txt"
END_OF_STAND_IN
for name in ib_write_lat ib_read_lat ib_send_bw ib_write_bw ib_read_bw fi_pingpong qperf; do
    ln -s ib_send_lat "$tmp/bin/$name"
done
# Stand-ins for the programs over sockets: their server is stopped, or ends after its client.
mkdir "$tmp/bench"
cat >"$tmp/bin/sockperf" <<'END_OF_STAND_IN'
#!/bin/bash
here=${0%/*/*}
case " $* " in
*' server '* | *' -s '* | *' --serve '*)
    rm -f "$here/done"
    echo LISTEN >"$here/listening"
    trap 'rm -f "$here/listening"; exit 143' TERM
    until [[ -e $here/done ]]; do read -rt 0.01 <> <(:); done
    exit 0
    ;;
esac
rm -f "$here/listening"
touch "$here/done"
cat "$here/said_${0##*/}"
END_OF_STAND_IN
ln -s sockperf "$tmp/bin/iperf3"
ln -s ../bin/sockperf "$tmp/bench/tls_bytes"
printf '%s\n' "$sockperf" >"$tmp/said_sockperf"
echo '{"end":{"sum_received":{"bits_per_second":8e9}}}' >"$tmp/said_iperf3"
echo 'bytes_per_s=2000000000 cipher=TLS_AES_128_GCM_SHA256' >"$tmp/said_tls_bytes"
echo 'echo "no such transport" >&2; exit 1' >"$tmp/bin/ucx_perftest"
echo 'cat "${0%/bin/*}/listening" 2>/dev/null' >"$tmp/bin/ss"
chmod +x "$tmp"/bin/*
ln -s "$samples" "$tmp/samples"

run=(env RAMPART_BIN="$tmp/bin/" RAMPART_B="$tmp" PATH="$tmp/bin:$PATH" scripts/bench-data --environment native --duration 0.1
    --output "$tmp/results")

reset() { # WHAT FAILS, HOW OFTEN
    rm -rf "$tmp"/{results,calls,hang,hanging,listening,server_status}
    echo "$1" >"$tmp/failing"
    echo "$2" >"$tmp/failures"
}

reset ib_send_lat 2
limit=60 gives "two pairs with failures that do not stay" 0 'Fewer than 5 pairs.*
  rampart, p50 +10.0   10.0 - 10.0
  ib_send_lat, p50 +10.0 .*
  rampart, p99.9 +15.4 .*
  fi_pingpong, mean +77.4 .*
  rampart / perftest, p50 +1.000   1.000 - 1.000 +target <= 1.05  PASS
  rampart / perftest, p99.9 +1.100   1.100 - 1.100 +target <= 1.00  miss
.*
Left out: ucx_perftest: ucx_perftest.s server does not listen: no such transport
Runs repeated because they failed: 1
Results: ' "${run[@]}" --pairs 2 --tests lat_spin
from_json "it is complete" '["completed",true,[],2,["pingpong_busy","qperf_lat"],["qperf_lat","pingpong_busy"]]' \
    '[.status, .ended_at >= .started_at, .failures, (.pairs | length), (.pairs[].order | [first, last])]'
from_json "what ran is told" '[["lat_spin"],4096,"ib_send_lat -s 64",["ucx_perftest"]]' \
    '[.config.tests, .config.path_mtu_bytes, .config.perftest.send_lat_busy, (.left_out | keys)]'
prints_what_it_writes

reset '-l 16' 100
limit=120 gives "every test, with a setting that fails" 1 \
    'FAILED: pair 1, send_bw_busy -l 16: ib_send_bw ended with 1: Unable' \
    "${run[@]}" --pairs 1
from_json "those over sockets are compared with their own" '[10000,16.521,true,1,0.5]' \
    '[.figures["tcp_pingpong.p50_us"].median * 1000, .figures["sockperf_epoll.p50_us"].median,
      .ratios.tcp_lat.median < 1, .ratios.tcp_large.median, .ratios.tls_large.median]'
from_json "the others' best counts" '["failed",["send_bw_busy -l 16","send_bw_event -l 16"],64000,2.6,3]' \
    '[.status, ([.failures[].run] | sort), .figures["send_bw_busy.msgs_per_s"].median, .ratios.small_1.median,
      .ratios.small_100.median]'
from_json "joined messages have figures and ratios of their own" '[2662400,41.6,48,null,null]' \
    '[.figures["small_1_joined_event.msgs_per_s"].median] +
     [.ratios | .small_1_joined.median, .small_100_joined.median, .small_1_joined.target, .small_1_joined.met]'
from_json "all ratios are there" '[31,[]]' \
    '[(.ratios | length), [.ratios | to_entries[] | select(.value.median == null and (.key | test("cpu") | not)) | .key]]'
from_json "perftest's MB are 2^20 bytes" '[629.146,1000,1.589]' '[.figures["write_bw_busy.mb_per_s"].median,
    .figures["large_write_event.mb_per_s"].median, (.ratios.large_write.median * 1000 | round / 1000)]'
from_json "what a message costs the server" '2.254' '.figures["small_1_event.server_cpu_us"].median'

reset never 0
echo 3 >"$tmp/server_status"
limit=60 gives "a server that fails" 1 "FAILED: pair 1, send_lat_event: ib_send_lat.s server ended with 3" \
    "${run[@]}" --pairs 1 --tests lat_event
from_json "without its figure there is no ratio" '[null,null,8,2]' '[.ratios.lat_event | .median, .met] +
    [.figures["pingpong_event.p50_us"].median, .repeats]'

reset never 0
echo LISTEN >"$tmp/listening"
limit=60 gives "a port that is taken" 1 'FAILED: pair 1, send_lat_event: TCP port 18515 is taken' \
    "${run[@]}" --pairs 1 --tests lat_event

# The first two calls are the probe and pair 1, so the third is pair 2.
reset never 0
interrupted 3 'pair 2 of 2' "${run[@]}" --pairs 2 --tests lat_event
from_json "what was measured is kept" '["interrupted",1]' '[.status, (.pairs | length)]'

enters_vm 4G --tests cpu,small_1 --duration 0.5
reset never 0
gives "no programs" 3 'performance_test is missing' \
    env RAMPART_BIN=/nonexistent/ PATH="$tmp/bin:$PATH" scripts/bench-data
uses_wrongly '--tests lat' '--tests cpu,' '--tests cpu,cpu' '--tests' '--duration 0' '--duration 61' '--duration 1s' \
    '--pairs 0' 'now'

[[ ! ${TALLY:-} ]] || echo "$passed $failed $skipped" >"$TALLY"
finish
