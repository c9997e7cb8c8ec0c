#!/bin/bash
# A server on two RDMA devices: each rail works independently, and continues when the other one fails.
# rails: 2

. tests/soft_roce/lib.sh

rails=(10.77.0.1 10.78.0.1)
for rail in 0 1; do
    if ! rdma link | grep -q "^link rxe$rail/1 state ACTIVE .*netdev rampart$rail"; then
        skip "a server on two devices" "there is no rxe$rail on rampart$rail (see scripts/softroce vm --rails)"
        finish
    fi
done

# Prints the text after NAME= in the ready line.
ready() { # SERVER NAME
    sed -nE "s/^rdma_server ready: .*\<$2=([^ ]*).*/\1/p" "${logs[$1]}"
}

# ---- both at work

start_server main --threads 2 --device rxe0,rxe1 --verify
is "both rails have an address, and the same port" "$(ready main tls)" \
    "${rails[0]}:${port[main]},${rails[1]}:${port[main]}"
is "both devices are named" "$(ready main device)" rxe0,rxe1
is "two shards on each rail" "$(ready main shards)" 4
is "each shard has an RDMA port" "$(tr , '\n' <<<"${rdma_ports[main]}" | sort -u | wc -l)" 4
remember_start main
for host in "${rails[@]}"; do
    serves "ping over $host" main
    serves "ping over $host, out of band" main --connect oob
done
for rail in 0 1; do
    host=${rails[rail]}
    use_client main
    gives "the client at $host is on that rail" 0 "rdma  *$host:.*device  *rxe$rail " \
        "${rdma_client[@]}" "$host" info
done
for rail in 0 1; do
    host=${rails[rail]} start_ping "ping$rail" main --interval 0.01
done
host=${rails[0]} counted "two clients at once, one on each rail" main clients.connected=2 pools.qp.in_use=2 \
    pools.admitted=2
loses_nothing "the first loses nothing" ping0
loses_nothing "the second loses nothing" ping1
host=${rails[1]} all_back "pools are restored on both rails" main
host=${rails[0]} counted "and either answers for all" main 'events.established>=4' 'events.psn_verified>=4'

# ---- limits apply to each rail

start_server few --threads 1 --max-clients 1 --device rxe1,rxe0
is "rails come in the order given" "$(ready few tls)" "${rails[1]}:${port[few]},${rails[0]}:${port[few]}"
for rail in 0 1; do
    host=${rails[rail]} start_ping "only$rail" few --interval 3600
done
for host in "${rails[@]}"; do
    use_client few
    gives "--max-clients 1 is one client on each rail: no more at $host" 1 'refused:full' "${rdma_client[@]}" \
        --count 1 "$host" ping
done
# The server stops while clients are connected.
kill -TERM "${pid[few]}"
ends "a server with a client on each rail drains and ends" few 240 0 'stopped'
for rail in 0 1; do
    end_of "only$rail" 240
done
stop_server main

# ---- ports and addresses

server_ports=(--tls-port 17471 --rdma-port 18000)
start_server fixed --threads 2 --bind "${rails[1]},${rails[0]}"
is "addresses alone say which devices" "$(ready fixed device)" rxe1,rxe0
is "RDMA ports follow the first over all rails" "${rdma_ports[fixed]}" 18000,18001,18002,18003
stop_server fixed
start_server second --device rxe1
gives "a port that is taken on the second rail only" 3 "cannot listen on ${rails[1]}:17471 .*another" \
    "${bin}rdma_server" --tls-port 17471 --rdma-port 0 "${server_files[@]}" --device rxe0,rxe1
stop_server second
server_ports=(--tls-port 0 --rdma-port 0)

refused() { # STATUS REGEX OPTIONS...
    local status=$1 regex=$2
    shift 2
    gives "refused: $*" "$status" "^rdma_server: ${regex}[^"$'\n'"]*\$" \
        "${bin}rdma_server" "${server_files[@]}" "$@"
}
refused 2 "--device: 'rxe0,rxe0' has a name twice; allowed: 1 to 8 different names" --device rxe0,rxe0
refused 2 "--device: 'rxe0,' has an empty name" --device rxe0,
refused 3 '--device rxe7: no such RDMA device' --device rxe0,rxe7
refused 3 "--device rxe1: address ${rails[0]} belongs to rxe0" \
    --device rxe1,rxe0 --bind "${rails[0]},${rails[1]}"
ip address add 10.78.0.2/16 dev rampart1
refused 3 '--bind: two addresses belong to device rxe1' --bind "${rails[1]},10.78.0.2"
ip address delete 10.78.0.2/16 dev rampart1

# ---- a rail that fails

start_server broken --threads 2 --device rxe0,rxe1
for rail in 0 1; do
    host=${rails[rail]} start_ping "held$rail" broken --interval 0.05
done
# The command returns only when nobody has the device open any more, at the server's end: rxe waits for that.
start removal timeout 60 rdma link delete rxe1
wait_until 240 has_line "${logs[broken]}" 'rail 1 \(rxe1\) failed: the other rails go on serving'
is "a device that is removed is said once" "$(grep -c 'rail . .* failed' "${logs[broken]}")" 1
host=${rails[0]}
counted "what the failed rail's client held is given back" broken clients.connected=1 pools.admitted=1 \
    pools.psns_in_use=2 pools.qp.in_use=1
serves "the other rail goes on" broken
loses_nothing "its client loses nothing" held0
gives "the failed rail's TLS port is closed" 1 'refused' \
    bash -c "LC_ALL=C; exec 3<>/dev/tcp/${rails[1]}/${port[broken]}"
kill -TERM "${pid[broken]}"
ends "a failed rail is a failure at the end" broken 240 1 'stopped'
kill "${pid[held1]}" 2>/dev/null
end_of held1 240
end_of removal 240
is "the device can be removed" $status 0

rdma link add rxe1 type rxe netdev rampart1
start_server alone --threads 2 --device rxe1
start removal timeout 60 rdma link delete rxe1
ends "a server whose only rail fails stops and says so" alone 240 1 'a shard failed: stopping.*stopped'
end_of removal 240
finish
