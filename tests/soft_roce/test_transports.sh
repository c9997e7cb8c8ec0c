#!/bin/bash
# Clients over RDMA, TCP and TLS at one server: how they compare, and which of them a server serves or refuses.
# test_tcp_tls.sh has what clients do over TCP and TLS.

. tests/soft_roce/lib.sh

start_server main --threads 1 --max-clients 100 --verify
remember_start main
for t in tcp tls; do
    at=main moves "$t: echoes of 10 clients at a server with a device" $t-echo "--transport $t --steps 10" \
        '[.steps[].psn_verified] | unique == [null]' '.environment.clients.rdma_device == null' \
        '.environment.server.rdma_device != null'
done
counted "no packet sequence number was read or drawn" main events.psn_verified=0 events.psn_conflicts=0 events.closed.failed=0

# ---- side by side

gives "--compare: RDMA, TCP and TLS in turns" 0 'rdma against tcp: [a-z]+ has the shorter p50' "${bin}performance_test" "${tls_options[@]}" \
    --environment native --server "$host" --tls-port "${port[main]}" --compare transport=rdma,tcp,tls --repeat 2 --threads 1 \
    --steps 12 --message-size 64,4k --warmup 0.1 --duration 0.3 --slo 'p99<60s' --quiet --output "$results" --name beside
beside=("$results"/*-beside)
is "--compare: each has its figures, and the stages that it has" \
    "$(jq -c '.entries[0].comparison | [.points[0].figures[] | [.name, .response_p50_ns > 0, .throughput_msgs_per_s > 0, .server_rss_bytes_per_client > 0,
        .connect_stages.tls_handshake > 0, .connect_stages.socket_connect > 0, .connect_stages.rdma_connect > 0]]' "$beside/suite.json")" \
    '[["rdma",true,true,true,true,false,true],["tcp",true,true,true,true,true,false],["tls",true,true,true,true,false,false]]'
is "--compare: of each two one is ahead at the smallest size" \
    "$(jq -c '.entries[0].comparison.sizes | [length, ([.[].ahead[0].from_bytes] | unique)]' "$beside/suite.json")" '[6,[null]]'
is "--compare with --slo: whether this needs RDMA, of each size" \
    "$(jq -c '.entries[0].comparison.need | [.alternatives[] | [.name, .is_socket, .message_bytes, .cpu_ns_per_op > 0]], (.sentence | test("^64 bytes: .+\\. 4096 bytes: "))' \
        "$beside/suite.json" | tr '\n' ' ')" \
    '[["rdma",false,64,true],["tcp",true,64,true],["tls",true,64,true],["rdma",false,4096,true],["tcp",true,4096,true],["tls",true,4096,true]] true '
matches "--compare: the report says that software RDMA is no adapter" "$(<"$beside/report.md")" \
    'RDMA here is software .*these figures do not apply to adapters'

all_back "after the runs everything is back" main

# ---- transports that are served

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

finish
