#!/bin/bash
# Clients whose messages go over TCP and over TLS, beside RDMA at one server: rdma_client's commands, the workloads of
# performance_test, what is refused, and what is left when clients and servers end.

. tests/soft_roce/lib.sh

start_server main --threads 1 --max-clients 100 --verify --probe-interval 5
remember_start main
use_client main

# ---- rdma_client

for t in tcp tls; do
    client=("${rdma_client[@]}" --transport "$t")
    gives "$t: ping" 0 '3 messages sent, 3 replies, 0% loss' "${client[@]}" --count 3 --interval 0.01 "$host" ping
    gives "$t: the largest message" 0 '4096 bytes from .*0% loss' \
        "${client[@]}" --count 2 --interval 0 --message-size 4k "$host" ping
    gives "$t: a message beyond the server's --message-size" 1 'psn_exchange: refused:unsupported.*--message-size' \
        "${client[@]}" --count 1 --message-size 4097 "$host" ping
    gives "$t: send" 0 '^over a socket$' "${client[@]}" "$host" send 'over a socket'
    gives "$t: info says that there are no packet sequence numbers" 0 \
        "TLSv1.3 .*$t +.*without packet sequence numbers.*stages \(us\) .*socket_connect=" "${client[@]}" "$host" info
    gives "$t: info as JSON has null where there is nothing" 0 '"client_psn": null.*"device": null' \
        "${client[@]}" --json "$host" info
    for command in 'write x' read; do
        # shellcheck disable=SC2086  # a command and its text
        gives "$t: $command needs a region" 2 "^rdma_client: --transport $t has no one-sided region; .* needs rdma$" \
            "${client[@]}" "$host" $command
    done
done
all_back "after the commands everything is back" main

# ---- performance_test

no_psns='[.steps[].psn_verified] | unique == [null]'
for t in tcp tls; do
    at=main moves "$t: echoes of 10 and 100 clients" $t-echo "--transport $t --steps 10,100 --duration 1" "$no_psns" \
        ".config.transport == \"$t\"" '.environment.clients.rdma_device == null' '.environment.server.rdma_device != null' \
        "[.steps[].connect_ns.socket_connect.count > 0] | unique == [$([[ $t == tcp ]] && echo true || echo false)]" \
        '[.steps[].connect_ns | .rdma_connect.count, .qp_setup.count] | unique == [0]'
    at=main moves "$t: pingpong" $t-pingpong "--transport $t --workload pingpong --steps 2"
    at=main moves "$t: small messages that share records" $t-small \
        "--transport $t --workload small --coalesce 8 --inflight 16 --steps 4 --message-size 64"
    moves "$t: large buffers in messages" $t-large \
        "--transport $t --workload large --operation send --message-size 1M --chunk 256k --steps 2 --iterations 4"
    at=main moves "$t: tags, an open loop" $t-tags "--transport $t --message-auth --rate 200 --steps 4"
    moves "$t: both directions at once" $t-duplex "--transport $t --workload duplex --steps 2 --message-size 1M --iterations 4" \
        'one.streams.to_server.bytes_per_s > 0' 'one.streams.from_server.bytes_per_s > 0'
    at=main loads $t-phased main --transport $t --workload connect --phased --steps 30
    holds "$t: --phased: a barrier before each stage that there is" $t-phased \
        "[one.phase_ns_per_connection | keys_unsorted[]] == [\"tcp_connect\", \"tls_handshake\", \"psn_exchange\"$(
            [[ $t == tcp ]] && echo ', "socket_connect"')]"
    loads $t-churn main --transport $t --churn 20 --cycles 60 --tls-resume --steps 20 --warmup 0
    holds "$t: --churn: all came back, with their TLS sessions" $t-churn 'one.churn.cycles >= 60' \
        'one.churn.cycles_failed == 0' 'one.handshakes.full == 20'
done
moves "tcp: sockets that are tuned, and messages sent without copies" tcp-tuned \
    "--transport tcp --tcp tuned,zerocopy=64k --workload large --operation send --message-size 1M --chunk 256k --steps 2 --iterations 4" \
    '.config.tcp.zerocopy_bytes == 65536' '.server_config.tcp.zerocopy_bytes == 65536' \
    '[.steps[].effective[].threads[].tcp | select(.) | .zerocopy] | unique == [true]' \
    '[.steps[].effective[].threads[].tcp | select(.) | .nodelay, .ktls] | unique == [false, true]'
counted "no packet sequence number was read or drawn" main events.psn_verified=0 events.psn_conflicts=0 events.closed.failed=0
all_back "after the runs everything is back" main
gives "a workload that needs the server's memory is refused" 2 \
    '^performance_test: --transport tcp: --workload write reads and writes .* only rdma can; allowed: echo, pingpong' \
    "${bin}performance_test" "${tls_options[@]}" --server "$host" --transport tcp --workload write

# ---- beside each other

gives "--compare: RDMA, TCP and TLS in turns" 0 'of rdma and tcp: .*ahead' "${bin}performance_test" "${tls_options[@]}" \
    --environment native --server "$host" --tls-port "${port[main]}" --compare transport=rdma,tcp,tls --repeat 2 --threads 1 \
    --steps 20 --message-size 64,4k --warmup 0.1 --duration 0.4 --quiet --output "$results" --name beside
beside=("$results"/*-beside)
is "--compare: each has its figures, and the stages that it has" \
    "$(jq -c '[.points[0].figures[] | [.name, .response_p50_ns > 0, .throughput_msgs_per_s > 0, .server_rss_bytes_per_client > 0,
        .connect_stages.tls_handshake > 0, .connect_stages.socket_connect > 0, .connect_stages.rdma_connect > 0]]' "$beside/compare.json")" \
    '[["rdma",true,true,true,true,false,true],["tcp",true,true,true,true,true,false],["tls",true,true,true,true,false,false]]'
is "--compare: of each two one is ahead at the smallest size" \
    "$(jq -c '[(.sizes | length), ([.sizes[].ahead[0].from_bytes] | unique)]' "$beside/compare.json")" '[6,[null]]'
matches "--compare: the report says that software RDMA is no adapter" "$(<"$beside/report.md")" \
    'RDMA here is software .*nothing here is a statement on adapters'

# ---- which are served

start_server rdma --threads 1 --transports rdma
use_client rdma
for t in tcp tls; do
    gives "a server without $t refuses it" 1 "psn_exchange: refused:unsupported.*--transports of the server leaves $t out" \
        "${rdma_client[@]}" --transport $t --count 1 "$host" ping
done
serves "and serves RDMA" rdma
stop_server rdma
with_rdma=$host
start_server sockets --threads 1 --transports tcp,tls --bind "$host"
for t in tcp tls; do
    serves "a server without RDMA serves $t" sockets --transport $t
done
use_client sockets
gives "and refuses RDMA" 1 'psn_exchange: refused:unsupported.*--transports of the server leaves rdma out' \
    "${rdma_client[@]}" --count 1 "$host" ping
stop_server sockets
host=$with_rdma

# ---- ends

for t in tcp tls; do
    load $t-killed main --transport $t --steps 50 --duration 60 --inflight 4
    reaches main 60 clients.connected=50
    mapfile -t seen < <(stats main events.messages_in)
    limit=30 counted "$t: 50 clients send" main "events.messages_in>=$((seen[0] + 2000))"
    kill -KILL "${pid[$t-killed]}"
    end_of $t-killed 5
    all_back "$t: kill -9 while sending: everything is back" main
done
counted "clients that were killed have left" main events.closed.failed=0
for t in tcp tls; do
    start_ping $t-told main --transport $t --interval 0.01
done
load bereft main --transport tls --steps 20 --warmup 0 --duration 20
reaches main 60 clients.connected=22
stop_server main
end_of bereft 60
is "SIGTERM of the server: the generator ends with 1, a criterion failed" "$status" 1
holds "SIGTERM of the server: all clients say draining" bereft 'one.dropped == 20' \
    '[one.failures[] | .stage, .code, .count] == ["traffic", "draining", 20]'
for t in tcp tls; do
    ends "$t: ping says that the server stopped" $t-told 20 1 'draining'
done
finish
