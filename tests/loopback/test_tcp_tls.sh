#!/bin/bash
# Clients over TCP and over TLS, at a server without a device: rdma_client's commands, the workloads of
# performance_test, and what is left when clients and servers end. test_transports.sh has them next to RDMA.
# here

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

serving=(--transports "tcp,tls" --bind 127.0.0.1)
start_server main --threads 1 --max-clients 100 --verify --probe-interval 5
remember_start main

# ---- rdma_client

for t in tcp tls; do
    over=(--transport "$t")
    use_client main
    client=("${rdma_client[@]}")
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

no_psns='[.steps[] | .psn_verified, .psns] + [.verdict[] | select(.criterion == "psns")] | unique == [null]'
for t in tcp tls; do
    over=(--transport "$t")
    at=main moves "$t: echoes of 10 and 100 clients" $t-echo "--steps 10,100 --duration 1" "$no_psns" \
        ".config.transport == \"$t\"" '.environment.clients.rdma_device == null' '.environment.server.rdma_device == null' \
        "[.steps[].connect_ns.socket_connect.count > 0] | unique == [$([[ $t == tcp ]] && echo true || echo false)]" \
        '[.steps[].connect_ns | .rdma_connect.count, .qp_setup.count] | unique == [0]'
    holds "$t: run.json has the plan beside what was used" $t-echo '.plan.clients == 100' \
        '[.plan.rows[] | select(.resource == "fds") | (.ratio - 1 | fabs) < 0.15] == [true, true]'
    gives "$t: plan --from takes the CPU time of a message from that run" 0 'CPUs +both +[0-9]+\.[0-9]+ ' \
        "${bin}performance_test" plan --environment native "${over[@]}" --clients 100 --from "$results"/*-"$t-echo"
    gives "$t: plan --from measure measures it with 100 of the planned clients" 0 'CPUs +both +[0-9]+\.[0-9]+ ' \
        "${bin}performance_test" plan --environment native "${over[@]}" --clients 1000 --from measure \
        --output "$results" --name "$t-plan"
    is "$t: plan --from measure keeps its run, which held 100 clients for 3 s" \
        "$(jq -c '[.config.duration_s, (.steps[] | .target_clients, .connected_held)]' "$results"/*-"$t-plan"/run.json)" \
        '[3,100,100]'
    at=main moves "$t: pingpong" $t-pingpong "--workload pingpong --steps 2"
    at=main moves "$t: small messages that share records" $t-small \
        "--workload small --coalesce 8 --inflight 16 --steps 4 --message-size 64"
    moves "$t: large buffers in messages" $t-large \
        "--workload large --operation send --message-size 1M --chunk 256k --steps 2 --iterations 4"
    at=main moves "$t: tags, an open loop" $t-tags "--message-auth --rate 200 --steps 4"
    moves "$t: both directions at once" $t-duplex "--workload duplex --steps 2 --message-size 1M --iterations 4" \
        'one.streams.to_server.bytes_per_s > 0' 'one.streams.from_server.bytes_per_s > 0'
    at=main loads $t-phased main --workload connect --phased --steps 30 --warmup 0 --duration 0.3
    holds "$t: --phased: a barrier before each stage that there is" $t-phased \
        "[one.phase_ns_per_connection | keys_unsorted[]] == [\"tcp_connect\", \"tls_handshake\", \"psn_exchange\"$(
            [[ $t == tcp ]] && echo ', "socket_connect"')]"
    loads $t-churn main --churn 50 --cycles 60 --tls-resume --steps 20 --warmup 0
    holds "$t: --churn: all came back, with their TLS sessions" $t-churn 'one.churn.cycles >= 60' \
        'one.churn.cycles_failed == 0' 'one.handshakes.full == 20'
done
over=(--transport tcp)
moves "tcp: sockets that are tuned, and messages sent without copies" tcp-tuned \
    "--tcp tuned,zerocopy=64k --workload large --operation send --message-size 1M --chunk 256k --steps 2 --iterations 4" \
    '.config.tcp.zerocopy_bytes == 65536' '.server_config.tcp.zerocopy_bytes == 65536' \
    '[.steps[].effective[].threads[].tcp | select(.) | .zerocopy] | unique == [true]' \
    '[.steps[].effective[].threads[].tcp | select(.) | .nodelay, .ktls] | unique == [false, true]'
counted "no packet sequence number was read or drawn" main events.psn_verified=0 events.psn_conflicts=0 events.closed.failed=0
all_back "after the runs everything is back" main
gives "a workload that needs the server's memory is refused" 2 \
    '^performance_test: --transport tcp: --workload write reads and writes .* only rdma can; allowed: echo, pingpong' \
    "${bin}performance_test" "${tls_options[@]}" --server "$host" --transport tcp --workload write

# ---- ends

for t in tcp tls; do
    over=(--transport "$t")
    load $t-killed main --steps 50 --duration 60 --inflight 4
    reaches main 240 clients.connected=50
    mapfile -t seen < <(stats main events.messages_in)
    counted "$t: 50 clients send" main "events.messages_in>=$((seen[0] + 2000))"
    kill -KILL "${pid[$t-killed]}"
    end_of $t-killed 60
    all_back "$t: kill -9 while sending: everything is back" main
done
counted "clients that were killed have left" main events.closed.failed=0
for t in tcp tls; do
    over=(--transport "$t")
    start_ping $t-told main --interval 0.01
done
load bereft main --steps 20 --warmup 0 --duration 600
reaches main 240 clients.connected=22
stop_server main
end_of bereft 240
is "SIGTERM of the server: the generator ends with 1, a criterion failed" "$status" 1
holds "SIGTERM of the server: all clients say draining" bereft 'one.dropped == 20' \
    '[one.failures[] | .stage, .code, .count] == ["traffic", "draining", 20]'
for t in tcp tls; do
    ends "$t: ping says that the server stopped" $t-told 240 1 'draining'
done
finish
