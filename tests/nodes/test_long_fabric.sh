#!/bin/bash
# Choices of a fabric's users, seen on the wire between two machines: the traffic class in both directions, by tcpdump;
# and machines with IPv6 addresses only, one global and the others link-local.
# nodes: 2

. tests/soft_roce/lib.sh
. tests/nodes/lib.sh

# Prints the traffic classes of one end's RDMA packets in the last capture, without the CM's own (queue pair 1).
classes() { # SOURCE
    # The queue pair number is in bytes 6 to 8 of the base transport header (IBTA 9.2), behind the UDP header of 8
    # bytes. With IPv6 count its 40 bytes too, because libpcap does not find UDP there.
    local ahead='udp[13] = 0 and udp[14:2] = 1'
    [[ $1 != *:* ]] || ahead='ip6[53] = 0 and ip6[54:2] = 1'
    marks "src host $1 and udp dst port 4791 and not ($ahead)"
}

# Prints the traffic classes of the packets that match a tcpdump filter.
marks() { # FILTER
    tcpdump -nn -v -r "$tmp/wire.pcap" "$1" 2>/dev/null | grep -oE '(tos|class) 0x[0-9a-f]+' | sed 's/.* //' | sort -u |
        tr '\n' ' '
}

# Makes a run and captures its packets.
on_wire_runs() { # NAME SERVER OPTIONS...
    start_capture
    loads "$@" --steps 4 --duration 1 --warmup 0.2 --threads 1
    end_capture || not_ok "all packets of '$1' are captured" "$(<"${logs[capture]}")"
}

# Stops node 2's server.
stop_peer() { # SERVER
    on_peer "stop_server $1" >/dev/null || not_ok "server '$1' on node 2 stops" "status $?"
}

# ---- traffic class

# Out of band the server does not learn the client's traffic class, because no connection request carries it.
way=${RAMPART_CONNECT:-cm}
answers=0xb8 answers_six='0xb8 ' of_both=[184]
[[ $way == cm ]] || answers=0x0 answers_six='' of_both=[0,184]

start_peer_server plain --threads 1 --max-clients 16
on_wire_runs unmarked plain
is "without options: requests are not marked" "$(classes 10.77.0.1)" "0x0 "
on_wire_runs marked plain --dscp 46
is "--dscp 46: requests are marked" "$(classes 10.77.0.1)" "0xb8 "
is "--dscp 46: answers of a server without the option are marked as the request, with rdmacm" \
    "$(classes 10.77.0.2)" "$answers "
is "--dscp 46: TLS is not marked" "$(marks tcp)" "0x0 "
holds "--dscp 46: both queue pairs have it, with rdmacm" marked \
    "[.steps[].effective[].threads[].qp.traffic_class] | unique == $of_both" '.analysis.not_taken == []'
stop_peer plain
start_peer_server other --threads 1 --max-clients 16 --traffic-class 40
on_wire_runs apart other --traffic-class 96
is "--traffic-class 96: requests" "$(classes 10.77.0.1)" "0x60 "
is "--traffic-class 40 of the server: answers" "$(classes 10.77.0.2)" "0x28 "
holds "--traffic-class: each queue pair has its own" apart \
    '[.steps[].effective | .generator, .server | .threads[0].qp.traffic_class] == [96, 40]' '.analysis.not_taken == []'
stop_peer other

# ---- IPv6

# shellcheck disable=SC2317  # wait_until calls it
has_gid() { # ADDRESS
    grep -qi "$1" /sys/class/infiniband/*/ports/1/gids/*
}
ip address add fd77::1/64 dev rampart0 nodad
on_peer "ip address add fd77::2/64 dev rampart0 nodad && ip -4 address flush dev rampart0"
ip -4 address flush dev rampart0
wait_until 30 has_gid 'fd77:0000:0000:0000:0000:0000:0000:0001' || not_ok "the device has the IPv6 address" "no GID"
on_peer "has_gid() { grep -qi \"\$1\" /sys/class/infiniband/*/ports/1/gids/*; }; wait_until 30 has_gid fd77:0000:0000:0000:0000:0000:0000:0002
    server_ports=(--tls-port 0 --rdma-port 0)"
start_peer_server six --threads 1 --max-clients 16
host=${host//[\[\]]/}
is "without IPv4 the server takes its IPv6 address" "$host" fd77::2
on_wire_runs six six --server-name localhost --dscp 46
holds "IPv6 only: messages" six 'one.throughput_msgs_per_s > 0' \
    '.environment[].rdma_device.address | test("^fd77::")' '.analysis.not_taken == []'
is "IPv6 only, --dscp 46: requests are marked" "$(classes fd77::1)" "0xb8 "
is "IPv6 only, --dscp 46: answers are marked as the request, with rdmacm" "$(classes fd77::2)" "$answers_six"
serves "IPv6 only: a ping of rdma_client" six --server-name localhost
[[ $way == oob ]] || serves "IPv6 only: a ping out of band" six --server-name localhost --connect oob
stop_peer six
moves "IPv6 only: a server of the run's own" alone "--steps 2" '.environment[].rdma_device.address | test("^fd77::1$")'
on_peer "server_ports=(--tls-port 0 --rdma-port 0 --bind \$(ip -6 -o address show dev rampart0 scope link |
    awk '{ print \$4 }' | cut -d/ -f1)%rampart0)"
start_peer_server link --threads 1 --max-clients 16
host=${host//[\[\]]/}
host=${host%%%*}%rampart0
loads link link --steps 4 --duration 1 --warmup 0.2 --threads 1 --server-name localhost
holds "link-local addresses: messages" link 'one.throughput_msgs_per_s > 0' \
    '.environment[].rdma_device.address | test("^fe80::")'
stop_peer link

finish
