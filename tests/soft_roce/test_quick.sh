#!/bin/bash
# A short test of everything, for `make check-quick`: 10 and 100 clients with their report, and each kind of refusal by
# a server.

. tests/soft_roce/lib.sh

start_server main --ack-timeout 1s --threads 2 --max-clients 100 --region-size 0 --session-timeout 2 --verify
remember_start main
report=on loads ramp main --steps 10,100 --warmup 0.2 --duration 2
holds "10 and 100 clients: all PSNs read back, Little's law holds" ramp \
    '[.steps[] | .psn_verified - .target_clients] == [0, 0]' '([.steps[].littles_law_residual | fabs] | max) < 0.05'
holds "all PSNs are distinct and programmed, and a criterion says so" ramp \
    '[.steps[].psns | .exchanged, .distinct, .mismatches, .server_verified, .server_mismatches] ==
      [20, 20, 0, 10, 0, 200, 200, 0, 100, 0]' \
    '[.verdict[] | select(.criterion == "psns") | .result] == ["pass", "pass"]' \
    '[.verdict[] | select(.criterion == "psns") | .measured][1] | test("^200 PSNs, all distinct, [0-9]+ conflicts? redrawn, 200 read back$")'
is "the run ends with its report" "$(cd "$results"/*-ramp && ls report.html report.md | xargs)" "report.html report.md"

attack main <<'END'
frame-length-0          refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-version-1         refused: bad_version: the server speaks wire version 3, the client 1: .*
hello-message-1m        refused: unsupported: --message-size 4096: the client needs 1048576
psn-conflict            refused: psn_conflict, refused: psn_conflict, granted
request-wrong-session   rejected: bad_session
request-wrong-hmac      rejected: bad_hmac
other-address           rejected: bad_address
message-type-0          disconnected
END
all_back "after the refusals everything is back" main

# A connected client leaves no room; a dead one that is being torn down will soon leave room; a server that drains
# accepts nobody.
start_server small --threads 1 --max-clients 1 --drain-timeout 2 --probe-interval 1
rogue=("$programs/rogue" "${tls_options[@]}" --timeout 60 "$host" "${port[small]}")
start only "${rogue[@]}" dies-in-error
wait_until 240 has_line_or_gone only 'connected$'
start asks "${rogue[@]}" asks-while-full
reaches small 240 'events.refused.full>=1'
kill -USR1 "${pid[only]}"
ends "the server is full, then busy" asks 60 0 '^asks-while-full: refused: busy: clients are still leaving: try again$'
counted "both refusals are counted" small 'events.refused.full>=1' events.refused.busy=1
kill -KILL "${pid[only]}"
end_of only 240
limit=60 counted "the dead client's connection is torn down" small pools.admitted=0
start_ping holder small --interval 0.05
use_client small
kill -STOP "${pid[holder]}"
kill -TERM "${pid[small]}"
wait_until 240 has_line "${logs[small]}" 'draining'
gives "the server is draining" 1 '(tcp_connect: errno:ECONNREFUSED|refused:draining)' \
    "${rdma_client[@]}" --timeout 8 "$host" ping
ends "--drain-timeout bounds the draining" small 8 0 'stopped'
kill -KILL "${pid[holder]}"
end_of holder 240
stop_server main
finish
