#!/bin/bash
# Clients that come and go: all of them come back, more come at once than the server accepts, and it does not answer for
# a while. RDMA does not matter here, so this uses TCP; test_churn.sh has what needs RDMA.
# here

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

# ---- clients leave and come back

start_server main --threads 2 --max-clients 40 --verify
remember_start main
# All clients are always leaving or coming, more than may connect at once. test_connector.c checks their order.
loads turns main --churn 100000 --cycles 1500 --tls-resume --steps 40 --connect-concurrency 8 --warmup 0
holds "--churn as fast as can be: all come back" turns 'one.churn.cycles >= 1500' 'one.churn.cycles_failed == 0'

# ---- more at once than the server takes

start_server narrow --threads 1 --max-clients 128 --max-handshakes 4 --session-timeout 5
loads storm narrow --workload connect --steps 100 --connect-concurrency 100 --warmup 0 --duration 0.2

# The server stops before most of the 20 clients (two a second) connect, so some time out. In the end all connect.
load stalled narrow --workload connect --steps 20 --connect-rate 2 --timeout 1 --connect-retries 1000 --warmup 0 \
    --duration 0.2 --log-level debug
kill -STOP "${pid[narrow]}"
wait_until 240 has_line_or_gone stalled 'failed at .*: timeout' || not_ok "a client's stage times out" "it does not"
kill -CONT "${pid[narrow]}"
end_of stalled 240
holds "a server that did not answer for a while has all clients in the end (status $status)" stalled \
    '.run.status == "completed"' '[one | .connected_held, .server_connected, .failed, .dropped] == [20, 20, 0, 0]' \
    'one.failures == []' 'one.validity - ["clock_hole"] == []'
holds "their attempts that failed are counted, by stage and code" stalled 'one.retries >= 1' \
    'one.retries == ([one.retried[].count] | add)' '[one.retried[] | .code == "timeout"] | any == true'
stop_server narrow

all_back "after churn everything is back" main
finish
