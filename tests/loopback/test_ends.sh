#!/bin/bash
# How a run of performance_test ends when it is interrupted, when its server is told to stop, when a disk is full, and
# when it is killed while it has a server of its own. The transport does not matter here, so this uses TCP. test_load.sh
# has the ends that an RDMA connection notices differently.
# here
# shellcheck disable=SC2317  # what looks unreachable is called by name

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

start_server main --threads 2 --max-clients 64 --verify
remember_start main

# ---- the generator is interrupted

load interrupted main --steps 20 --warmup 0 --duration 600
reaches main 240 clients.connected=20
mapfile -t seen < <(stats main events.messages_in)
reaches main 240 "events.messages_in>=$((seen[0] + 2000))"
kill -INT "${pid[interrupted]}"
ends "SIGINT: the generator drains and ends with 130, soon" interrupted 240 130 'interrupted: draining, results are kept'
run_says "SIGINT: what was measured is kept, and no client failed" interrupted run.exit_status=130 \
    steps.0.connected_held=20 steps.0.failed=0 steps.0.dropped=0 'steps.0.throughput_msgs_per_s>=10'
is "SIGINT: run.json says why" "$(run_value interrupted run.status) $(run_value interrupted run.stop_reason)" \
    'aborted aborted'
all_back "SIGINT: everything is back" main

# ---- the server is told to stop, and is killed

load bereft main --steps 20 --warmup 0 --duration 600
reaches main 240 clients.connected=20
mapfile -t seen < <(stats main events.messages_in)
reaches main 240 "events.messages_in>=$((seen[0] + 2000))"
stop_server main
end_of bereft 240
is "SIGTERM of the server: the generator ends with 1, a criterion failed" "$status" 1
run_says "SIGTERM of the server: all clients say draining" bereft steps.0.dropped=20 \
    steps.0.failures.traffic.draining=20 steps.0.connected_peak=20 steps.0.connected_held=0
is "SIGTERM of the server: run.json says so" "$(run_value bereft run.stop_reason)" server_lost

# ---- a disk that is full

load cut own --steps 2 --warmup 0 --duration 0.3 --trace /dev/full
ends "a file that cannot be written: a line, and exit status 3" cut 240 3 'cannot write /dev/full: No space left'
holds "a file that cannot be written: run.json says so, and has the step" cut .run.files_incomplete \
    '.run.exit_status == 3' 'one.response_ns.count >= 10'
# The file size limit has room for run.json, but not for the page. A process that ignores SIGXFSZ gets an error instead.
limit=60 gives "a report that cannot be written: a line, and exit status 3" 3 'no report: .*report.html' \
    bash -c 'trap "" XFSZ; ulimit -f 80; exec "$@"' - "${bin}performance_test" "${over[@]}" --environment native --quiet \
    --output "$results" --name page --steps 2 --warmup 0 --duration 0.3
is "a report that cannot be written: run.json says so" \
    "$(jq -c '.run | [.files_incomplete, .exit_status]' "$results"/*-page/run.json)" '[true,3]'

limit=60 gives "a server that cannot write to stdout: a line, and exit status 3" 3 'cannot write the ready line to stdout: No space left' \
    bash -c 'exec "$@" >/dev/full' - "${bin}rdma_server" "${server_ports[@]}" "${server_files[@]}" "${serving[@]}"

# ---- the generator's own server ends with it

load own own --steps 10 --warmup 0 --duration 60
server_of() {
    pgrep -P "${pid[own]}" -x rdma_server >"$tmp/child"
}
wait_until 240 server_of
child=$(<"$tmp/child")
kill -KILL "${pid[own]}"
end_of own 240
child_is_gone() {
    ! kill -0 "$child" 2>/dev/null
}
if [[ $child ]] && wait_until 240 child_is_gone; then
    ok "a killed generator takes its own server with it"
else
    not_ok "a killed generator takes its own server with it" "server '$child' is still there"
fi
finish
