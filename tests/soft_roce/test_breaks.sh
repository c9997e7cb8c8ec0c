#!/bin/bash
# Interruptions: a server that is told to stop with requests outstanding, a control session that breaks during a
# measurement, and a generator or server that stands still for a while.

. tests/soft_roce/lib.sh

# ---- a server is told to stop

start_server late --threads 1 --max-clients 4 --credits 128
start outstanding "$programs/rogue" "${tls_options[@]}" "$host" "${port[late]}" outstanding
wait_until 240 has_line "${logs[outstanding]}" connected || not_ok "128 credits" "$(<"${logs[outstanding]}")"
# The server's device keeps working while its process stands still.
kill -STOP "${pid[late]}"
kill -USR1 "${pid[outstanding]}"
wait_until 240 has_line "${logs[outstanding]}" '128 acknowledged' || not_ok "128 echoes" "$(<"${logs[outstanding]}")"
kill -TERM "${pid[late]}"
kill -CONT "${pid[late]}"
ends "SIGTERM: every echo that was acknowledged is answered, then comes a goodbye" outstanding 20 0 \
    '128 answered, goodbye'
ends "SIGTERM: the server ends when its clients have left" late 4 0 stopped

start_server patient --threads 1 --max-clients 4 --drain-timeout 1
start endless "$programs/rogue" "${tls_options[@]}" "$host" "${port[patient]}" never-stops
wait_until 240 has_line "${logs[endless]}" connected || not_ok "the endless one" "$(<"${logs[endless]}")"
kill -USR1 "${pid[endless]}"
kill -TERM "${pid[patient]}"
ends "SIGTERM: a client that never stops is cut off at the deadline" patient 6 0 stopped
ends "SIGTERM: it was told" endless 20 0 'was told goodbye'

# ---- the control session of a measurement breaks

start_server main --threads 2 --max-clients 100 --session-timeout 10
start relay "$programs/relay" "$host" "${port[main]}"
wait_until 240 has_line "${logs[relay]}" 'port [0-9]+' || not_ok "the relay starts" "$(<"${logs[relay]}")"
port[relay]=$(sed -n 's/relay: port //p' "${logs[relay]}")

load cut relay --steps 20 --warmup 0 --duration 2.5
begins_measuring cut
kill -USR1 "${pid[relay]}"
# The other of the two connections watches the server's resources.
wait_until 240 has_line "${logs[relay]}" '^relay: 2 cut' || not_ok "a RST" "$(<"${logs[relay]}")"
end_of cut 240
is "RST on the control session: the run ends by itself" "$status" 0
holds "RST on the control session: it is made again, and the run knows all" cut \
    '.run.status == "completed"' '.run.stop_reason == "max_reached"' '.run.control_reconnects == 1' \
    'one.server_pools == "restored"' 'one.connected_held == 20' '[one | .failed, .dropped] == [0, 0]' \
    'one.failures == []' 'one.resources.server.window_s > 0' 'one.server_stages_ns == null' \
    '[.verdict[] | select(.result != "pass") | .result + " " + .criterion[:15]] - ["not_judged connection time"] == []'

# Each probe of a search asks the server for statistics before and after it.
load search relay --workload echo --clients 4 --find-rate --rate 100-200 --slo 'mean<20s' --warmup 0 --duration 1.5
begins_measuring search
kill -USR1 "${pid[relay]}"
# shellcheck disable=SC2016 # for eval
wait_until 240 eval '(($(grep -c "^relay: 2 cut" "${logs[relay]}") == 2))' || not_ok "a RST during a search" "$(<"${logs[relay]}")"
end_of search 240
holds "RST on the control session: a search goes on to what it looks for (status $status)" search \
    '.run.status == "completed"' '.run.control_reconnects == 1' \
    '.run.exit_status == if .analysis.offered_load.slo_rate.confirmed then 0 else 4 end' \
    '.analysis.offered_load.slo_rate | .per_s == 200 and .lower.met == .lower.tries and .lower.tries >= 5' '[.steps[] | .failed, .dropped] | unique == [0]'

load lost relay --steps 20 --warmup 0 --duration 2.5
begins_measuring lost
kill -KILL "${pid[relay]}"
end_of relay 240
end_of lost 240
is "nobody listens any more: the server is lost" "$status $(jq -r .run.stop_reason "$tmp/lost.json")" '1 server_lost'
holds "nobody listens any more: what is not known is called so" lost 'one.server_pools == "unknown"' \
    'one.connected_held == 20' '[one | .failed, .dropped] == [0, 0]' \
    '[.verdict[] | select(.result == "fail")] == []' \
    '[.verdict[] | select(.criterion == "server'"'"'s pools after the step") | .result] == ["inconclusive"]'

# ---- a process stands still

stands_still() { # RUN PID SECONDS; the process stops in the middle of the measured time
    begins_measuring "$1"
    pause 0.5
    kill -STOP "$2"
    pause "$3"
    kill -CONT "$2"
    end_of "$1" 240
}

report=on load asleep main --steps 10 --warmup 0 --duration 3
stands_still asleep "${pid[asleep]}" 2
holds "SIGSTOP of the generator: named, and nothing passes for sure" asleep '.run.status == "completed"' \
    '[one.validity[] | select(. == "clock_hole")] == ["clock_hole"]' 'one.clock_late_ns > 1e9' \
    '[.verdict[] | select(.criterion == "measurement") | .result] | unique == ["inconclusive"]' \
    '.run.exit_status == 4'
matches "SIGSTOP of the generator: said on the screen" "$(<"${logs[asleep]}")" \
    'measurement clock_hole: the generator did not run for [0-9.]+ s'
matches "SIGSTOP of the generator: said in the report" "$(cat "$results"/*-asleep/report.md)" 'the generator stood still'

load stalled main --steps 10 --warmup 0 --duration 5
stands_still stalled "${pid[main]}" 2
holds "SIGSTOP of the server: named, and in the highest latency" stalled '.run.status == "completed"' \
    '[one.validity[] | select(. == "replies_stalled")] == ["replies_stalled"]' 'one.reply_stall_ns > 1e9' \
    'one.response_ns.max > 1e9' '[.verdict[] | select(.criterion == "measurement") | .result] == ["inconclusive"]'
finish
