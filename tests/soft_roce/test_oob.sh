#!/bin/bash
# Clients that connect out of band, without rdmacm: every kind of traffic, stages, both goodbyes, clients that die, and
# a server that has no RDMA port.

. tests/soft_roce/lib.sh

start_server main --threads 2 --max-clients 64 --credits 64 --message-size 64k --region-size 1M --windows on --verify \
    --connect oob --probe-interval 1 --ack-timeout 67ms
remember_start main

# ---- one client

serves "a client without rdmacm, its PSNs read back" main --connect oob --verify
use_client main
gives "a client with rdmacm is refused, with the option that says why" 1 \
    'refused:unsupported.*--connect of the server leaves cm out' "${rdma_client[@]}" --count 1 "$host" ping
# Each thread has an id that is bound to its device's address, and none that listens or connects.
is "the server has no RDMA port" "$(rdma resource show cm_id | grep 'state \(LISTEN\|CONNECT\)' | grep -c "pid ${pid[main]} ")" 0
start_ping here main --connect oob --interval 3600
is "rdmacm knows of no connection" "$(rdma resource show cm_id | grep -c 'state CONNECT')" 0
mapfile -t seen < <(stats main events.closed.peer_left)
loses_nothing "a client that leaves has said goodbye" here
counted "the server has heard it" main "events.closed.peer_left=$((seen[0] + 1))" events.closed.failed=0

# ---- stages

loads connect main --connect oob --workload connect --steps 10 --warmup 0 --duration 0.3
holds "every stage was timed, and none of rdmacm's" connect '.config.connect == "oob"' \
    '[one.connect_ns | .tcp_connect, .tls_handshake, .psn_exchange, .qp_setup, .qp_exchange, .total | .count] | unique == [10]' \
    '[one.connect_ns | .addr_resolve, .route_resolve, .rdma_connect, .first_reply | .count] | unique == [0]'
loads phased main --connect oob --phased --steps 10 --warmup 0 --duration 0.3
holds "--phased: all clients in one stage, and the next" phased \
    '[one.phase_ns_per_connection | keys_unsorted[]] == ["tcp_connect", "tls_handshake", "psn_exchange", "qp_setup", "qp_exchange"]'

# ---- traffic

at=main
moves "echo: all as sent, and the PSNs are nobody else's" echo "--connect oob --steps 1,8" '[.steps[].psn_verified] == [1, 8]'
moves "messages with tags" tags "--connect oob --steps 4 --message-auth"
moves "one-way messages" small "--connect oob --workload small --steps 4"
moves "mixed: one-sided requests on the region" mixed "--connect oob --workload mixed --steps 4 --mix 3:2:1 --message-size 4k" \
    'one.verified.checked >= 20'
moves "duplex: the server writes to the client's window" duplex "--connect oob --workload duplex --steps 2 --message-size 64k"
moves "clients that come and go" churn "--connect oob --steps 8 --churn 10 --cycles 20 --tls-resume" \
    'one.churn.cycles >= 20' 'one.churn.cycles_failed == 0'
at=

# ---- clients that die, and a server that stops

start_ping dies main --connect oob --interval 3600
mapfile -t seen < <(stats main events.closed.failed)
kill -KILL "${pid[dies]}"
end_of dies 60
counted "a client that is killed is noticed by the probe" main clients.connected=0 "events.closed.failed=$((seen[0] + 1))"
all_back "everything is back" main
start_ping told main --connect oob --interval 0.05
kill -TERM "${pid[main]}"
ends "SIGTERM: the client was told, and has answered" told 60 1 'draining'
ends "SIGTERM: the server ends when its client has left" main 20 0 'stopped'

# ---- beside clients with rdmacm

start_server both --threads 1 --max-clients 32
remember_start both
loads beside both --connect oob --steps 8 --warmup 0 --duration 0.5
serves "a client with rdmacm beside" both
serves "a client without it" both --connect oob
all_back "everything is back at a server for both" both
stop_server both

"${bin}performance_test" --environment native --workload connect --steps 6 --duration 0.1 --warmup 0 --repeat 2 \
    --compare connect=cm,oob --report off --quiet --output "$results" --name ways >"$tmp/ways.log" 2>&1 ||
    tail -n 3 "$tmp/ways.log"
is "each way has its stages, a rate, and the CPU time of both ends" "$(jq -c '.entries[0].comparison.points[0].figures |
    map(.connects_per_s > 0, .server_cpu_ns_per_connection > 1e5, .generator_cpu_ns_per_connection > 1e5,
    .connect_stages.rdma_connect != null, .connect_stages.qp_exchange != null)' "$results"/*-ways/suite.json)" \
    '[true,true,true,true,false,true,true,true,false,true]'

is "the terminal compares connections a second" "$(grep -cE 'oob +[0-9.]+ → [0-9.]+' "$tmp/ways.log")" 1

# ---- where there is no /dev/infiniband/rdma_cm, as in a container

for program in rdma_server rdma_client; do
    cat >"$tmp/without-$program" <<END
#!/bin/bash
[[ \${IN_MOUNTS:-} ]] || IN_MOUNTS=1 exec unshare --mount "\$0" "\$@"
d=\$(mktemp -d) && cp -a /dev/infiniband/uverbs* "\$d" && mount --bind "\$d" /dev/infiniband &&
    exec "$PWD/$bin$program" "\$@"
END
    chmod +x "$tmp/without-$program"
done
bin=$tmp/without-
start_server alone --threads 1 --max-clients 8 --connect oob
serves "without the connection manager" alone --connect oob
use_client alone
gives "a client with rdmacm says what it lacks" 3 'cannot open the RDMA device.*--connect oob needs no rdma_ucm' "${rdma_client[@]}" --count 1 "$host" ping
stop_server alone
finish
