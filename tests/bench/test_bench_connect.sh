#!/bin/bash
# Tests of scripts/bench-connect: its arithmetic and its reading of recorded output; its way through the pairs, with
# stand-ins for the programs that need a device; and tls_handshakes, which needs none.
#
# The folder samples/ contains what cmtime (rdma-core 44) printed for 20 connections, for 20 to a port where nobody
# listens, and for 3 to an address without a route.
# shellcheck disable=SC2016  # a $ in single quotes is jq's

bench="bench-connect"
. tests/bench/lib.sh

handshakes=$PWD/${RAMPART_B:-build/release}/bench/tls_handshakes

# ---- statistics

computes "statistics" '[null,7,2,2.5,{"median":3,"min":1,"max":9,"runs":3},0.5,null,null,null]' '[
    ([] | median), ([7] | median), ([3,1,2] | median), ([4,1,3,2] | median), ([9,null,1,3] | spread),
    ratio(1; 2), ratio(null; 2), ratio(1; null), ratio(1; 0)]' -n
computes "ratios of a pair" \
    '[{"rdma_to_cmtime":0.5,"oob_to_cmtime":0.25,"full_oob_to_full":0.75,"full_to_sum":1.5,'\
'"resumed_to_sum":0.25},[null,null,null,null,null]]' '[
    ({rdma: 2, oob: 1, cmtime: 4, bare: 4, full: 12, full_oob: 9, resumed: 2} | ratios),
    ({full: 1, rdma: 1, oob: 1, bare: 1} | ratios | [.[]])]' -n
computes "numbers in the table" '["12.35","0.996","-","0.0","1,234,567","10,000","100","7"]' '[
    (12.345 | fixed(2)), (0.9961 | fixed(3)), (null | fixed(1)), (0 | fixed(1)),
    (1234567, 10000, 100, 7 | thousands)]' -n
# The ratio of the medians would be 1; the median of the ratios is 2.
computes "ratios are taken pair by pair; a target holds at 10,000 only" '[2,1,4,0.45,false,null,null]' '
    def p($rdma; $cmtime):
        pair(1; []; {rdma: {us_per_connection: $rdma}, cmtime: {us_per_connection: $cmtime}});
    {counts: []} | with_pair(10000; p(4; 1)) | with_pair(10000; p(2; 2)) | with_pair(10000; p(2; 1)) |
    with_pair(10; p(1; 2)) | .counts[0].ratios.rdma_to_cmtime as $r |
    [$r.median, $r.min, $r.max, $r.target, $r.met, (.counts[1].ratios.rdma_to_cmtime | .target, .met)]' -n
computes "PASS and miss" '["PASS","miss"]' '
    def p($rdma): {counts: []} | with_pair(10000; pair(1; []; {rdma: {us_per_connection: $rdma},
        cmtime: {us_per_connection: 10}})) | [.counts[0] | count_table(1)] | join(" ") | scan("PASS|miss");
    [p(4.5), p(4.6)]' -n

# ---- cmtime's output

cmtime_says() { # NAME WANTED [SED SCRIPT] [SAMPLE] [COUNT]
    sed "${3:-}" "$samples/cmtime_${4:-good}.txt" >"$tmp/cmtime.txt"
    computes "cmtime: $1" "$2" 'try cmtime_side($n) catch {error: .}' -R -s --argjson n "${5:-20}" \
        "$tmp/cmtime.txt"
}

cmtime_says "the sum of the last column of five rows" '{"us_per_connection":2700.9,"steps_us":{'\
'"create_id":21.85,"resolve_addr":275.9,"resolve_route":66.1,"create_qp":382.45,"connect":1954.6}}'
cmtime_says "columns that touch are told apart" '{"error":"cmtime'\''s figures are not of 20 connections"}' \
    's/^connect .*/connect      :       39.09       0.001000000000.00    1954.60/'
cmtime_says "a rejection is a failure" \
    '{"error":"cmtime said: event: RDMA_CM_EVENT_REJECTED, error: 8"}' '' rejected
cmtime_says "an address without a route is a failure" \
    '{"error":"cmtime said: failure getting addr: Network is unreachable"}' '' unreachable 3
cmtime_says "a table without its text" '{"error":"cmtime'\''s figures are not of 3 connections"}' '/failure/d' \
    unreachable 3
cmtime_says "a table of another number" '{"error":"cmtime'\''s figures are not of 21 connections"}' '' good 21
cmtime_says "a step of no time" '{"error":"cmtime'\''s figures are not of 20 connections"}' \
    's/^create qp .*/create qp    :        0.00       0.00       0.00       0.00/'
cmtime_says "no table" '{"error":"cmtime said: no table"}' '/^step/,$d'
cmtime_says "nothing" '{"error":"cmtime said: no table"}' d
cmtime_says "a table that ends early" '{"error":"cmtime'\''s table is another one"}' '/^connect /,$d'
cmtime_says "a garbled row" '{"error":"cmtime'\''s table is another one"}' 's/^connect .*/connect      : nan/'
{ echo "libibverbs: Warning: no driver for x" && cat "$samples/cmtime_good.txt"; } >"$tmp/cmtime.txt"
computes "cmtime: a warning about another device is no failure" 2700.9 'cmtime_side(20).us_per_connection' -R -s \
    "$tmp/cmtime.txt"

# ---- the way through, with stand-ins for the programs that need a device

mkdir "$tmp/bin" "$tmp/b" "$tmp/b/bench"
ln -s "$handshakes" "$tmp/b/bench/tls_handshakes"
{
    stand_in_performance_test
    cat <<'END_OF_STAND_IN'
resumed=$([[ ! $resume ]] && echo 0 || cat "$here/resumed" 2>/dev/null || echo "$steps")
jq --argjson n "$steps" --argjson repeat $repeat --argjson resumed "$resumed" '
    .steps = [range($repeat) | {target_clients: $n, connected_held: $n, connect_wall_s: ($n * (. + 1) / 1000),
        handshakes: (if . == 0 then {full: $n, resumed: 0} else {full: ($n - $resumed), resumed: $resumed} end),
        phase_ns_per_connection: {tls_handshake: 9, addr_resolve: 1e5, route_resolve: 2e5, qp_setup: 3e5,
            rdma_connect: 4e5, qp_exchange: 5e5}}]' <<<"$run" >"$json"
exit 1
END_OF_STAND_IN
} >"$tmp/bin/performance_test"
cat >"$tmp/bin/cmtime" <<'END_OF_STAND_IN'
#!/bin/bash
here=${0%/bin/*}
case $1 in
-h) cat "$here/usage" 2>/dev/null ;;
-b)
    echo "link rxe0/1 cm-idn 0 state LISTEN ps TCP pid $$ comm cmtime src-addr $2:$4 dst-addr 0.0.0.0:0" \
        >"$here/listening"
    exec tail -f /dev/null
    ;;
-s)
    sample=good
    failures=$(<"$here/failures")
    if ((failures > 0)) && [[ $* == *'-c 20' ]]; then
        sample=rejected
        echo $((failures - 1)) >"$here/failures"
    fi
    cat "$here/samples/cmtime_$sample.txt"
    ;;
esac
END_OF_STAND_IN
echo 'cat "${0%/bin/*}/listening"' >"$tmp/bin/rdma"
chmod +x "$tmp"/bin/*
ln -s "$samples" "$tmp/samples"

run=(env RAMPART_BIN="$tmp/bin/" RAMPART_B="$tmp/b" PATH="$tmp/bin:$PATH" scripts/bench-connect
    --environment native --counts 20 --output "$tmp/results")

reset() { # CMTIME FAILURES
    rm -rf "$tmp"/{results,calls,hang,hanging,resumed,usage}
    echo "$1" >"$tmp/failures"
}

reset 2
gives "two pairs with two cmtime failures" 0 'Fewer than 5 pairs.*
  rampart, full handshakes +1000.0   1000.0 - 1000.0
.*
  RDMA part / cmtime +0.370   0.370 - 0.370
  out of band / cmtime +0.296   0.296 - 0.296
  full, out of band / full +1.000   1.000 - 1.000
.*repeated because they failed: 2
Results: ' "${run[@]}" --pairs 2
from_json "figures of each side" '[1000,2000,1000,1000,800,2700.9]' \
    '.counts[0].pairs[0].us_per_connection | [.full, .resumed, .full_oob, .rdma, .oob, .cmtime]'
from_json "even pairs are turned round" '[["rampart","bare_resumed"],["bare_resumed","rampart"]]' \
    '[.counts[0].pairs[].order | [first, last]]'
from_json "repeats are counted with their pair" '["completed",2,[2,0],[]]' \
    '[.status, .cmtime_repeats, [.counts[0].pairs[].cmtime_repeats], .failures]'
from_json "it ended" true '.ended_at >= .started_at'
prints_what_it_writes

reset 3
echo 19 >"$tmp/resumed"
gives "sides that fail" 1 'FAILED: 20 connections, pair 1, cmtime: cmtime said' "${run[@]}" --pairs 1
from_json "a failed side has no figure, and no ratio" '["failed",["resumed","cmtime"],null,null,1,null,null,1000,true]' \
    '[.status, [.failures[].side], (.counts[0].ratios[].median), .counts[0].us_per_connection.full.median,
      (.failures[0].why == "19 of 20 handshakes were resumed")]'

# The stand-ins for cmtime and tls_handshakes have no figures of 10,000 connections, so these sides fail.
reset 0
rm "$tmp/b/bench/tls_handshakes"
printf '#!/bin/sh\necho {}\n' >"$tmp/b/bench/tls_handshakes"
chmod +x "$tmp/b/bench/tls_handshakes"
gives "10,000 connections have 3 pairs at most" 1 '10,000 connections, us per connection +median   range \(3 pairs\)' \
    "${run[@]}" --counts 10000 --pairs 4
from_json "no more are measured" '[4,3]' '[.config.pairs, (.counts[0].pairs | length)]'
ln -sfn "$handshakes" "$tmp/b/bench/tls_handshakes"

# The first five calls are the probe and the four runs of pair 1, so the sixth is the first run of pair 2.
reset 0
interrupted 6 'pair 2 of 2' "${run[@]}" --pairs 2
from_json "what was measured is kept" '["interrupted",1]' '[.status, (.counts[0].pairs | length)]'

reset 0
echo '[-q base_qpn]' >"$tmp/usage"
gives "another cmtime" 3 'rdma-core 52' "${run[@]}"
reset 0
enters_vm 8G --counts 30,20
gives "no programs" 3 'performance_test is missing' \
    env RAMPART_BIN=/nonexistent/ PATH="$tmp/bin:$PATH" scripts/bench-connect
uses_wrongly '--counts 10,' '--counts 10,10' '--counts 0' '--pairs 0' '--pairs' '--environment here' 'now'

# ---- tls_handshakes

gives "tls_handshakes: full" 0 '"handshakes_done":40,"handshakes_failed":0.*"resumed":false.*TLSv1.3 .* X25519' \
    "$handshakes" --handshakes 40 --concurrency 7 --certs "$certs"
gives "tls_handshakes: resumed" 0 '"handshakes_done":40,"handshakes_failed":0.*"resumed":true' \
    "$handshakes" --handshakes 40 --resume --certs "$certs"
mkdir "$tmp/certs"
cp "$certs"/server.* "$tmp/certs"
cp "$certs/server.pem" "$tmp/certs/ca.pem"
gives "tls_handshakes: an unknown issuer" 1 'certificate verify failed.*"handshakes_done":0' \
    "$handshakes" --handshakes 3 --certs "$tmp/certs"
gives "tls_handshakes: time is up" 1 'timed out after 1 s' \
    "$handshakes" --handshakes 1000000 --timeout 1 --certs "$certs"
gives "tls_handshakes: no certificates" 3 'make certs' "$handshakes" --certs "$tmp/nowhere"
gives "tls_handshakes: wrong use" 2 'allowed: 1 to 500' "$handshakes" --concurrency 501

[[ ! ${TALLY:-} ]] || echo "$passed $failed $skipped" >"$TALLY"
finish
