#!/bin/bash
# A wire that loses, delays, repeats and damages packets, falls silent and is pulled: every loss must have a reason, and
# no message may be lost, doubled or changed without one. Messages have one packet each, because rxe becomes very slow
# when it must resend many.
# nodes: 2
# transports
# limit: 1200

. tests/soft_roce/lib.sh
. tests/nodes/lib.sh

through() { # NAME RULE OPTIONS...
    local name=$1 rule=$2
    shift 2
    # shellcheck disable=SC2086  # words of tc
    netem $rule
    load "$name" main --steps 8 --warmup 0 --duration 3 --message-size 1024 "$@"
    end_of "$name" "${limit:-120}"
    netem
    is_honest "$name ($rule)" "$name" '.run.status == "completed"' 'one.verified.server_corrupt == 0'
    stats main --wait 60 clients.connected=0 clients.closing=0 >/dev/null || not_ok "$name: the server is rid of them" "$(stats main clients)"
}

# shellcheck disable=SC2317  # called by name
has_port() { # STATE
    rdma link | grep -q " state $1 "
}

start_peer_server main --threads 1 --max-clients 1200 --verify
remember_start main

through clean ''
holds "a wire without faults loses nobody" clean 'one.connected_held == 8' 'one.failures == []'

for percent in 0.1 1 5; do
    through "loss-$percent" "delay 1ms loss $percent%"
    through "reorder-$percent" "delay 2ms reorder $percent% 50%"
    through "duplicate-$percent" "delay 1ms duplicate $percent%"
    through "corrupt-$percent" "delay 1ms corrupt $percent%"
done

# Silence and cuts during a measurement; afterwards the server serves as before.
start_cut() { # NAME SECONDS OPTIONS...
    local name=$1 seconds=$2
    shift 2
    load "$name" main --steps 8 --warmup 0 --duration "$seconds" --message-size 1024 "$@"
    reaches main 60 clients.connected=8
    pause 2
}

end_cut() { # NAME
    end_of "$1" 180
    # A server that answers nobody for 30 s may be taken for lost, if the run says so.
    is_honest "$1" "$1" '.run.status == "completed" or (.run.stop_reason | type) == "string"'
    serves "$1: the server serves afterwards" main
    limit=90 all_back "$1: and has everything back" main
}

start_cut silence 40
netem loss 100%
pause 30
netem
end_cut silence

# The same for clients that reconnect: all of them come back, and each operation that they had begun ends once.
start_cut returns 50 --reconnect 120
netem loss 100%
pause 30
netem
end_cut returns
holds "returns: every client is back, and the outage is measured" returns 'one.connected_held == 8' \
    'one.dropped == 0' 'one.outages.lost >= 8' 'one.outages.ended == one.outages.lost' 'one.outages.outage_ns.min >= 1e9'

start_cut pulled 15
echo off >/run/softroce/cable
wait_until 60 has_port DOWN || not_ok "pulled: the port is down" "$(rdma link)"
pause 3
echo on >/run/softroce/cable
wait_until 60 has_port ACTIVE || not_ok "pulled: the port is up again" "$(rdma link)"
end_cut pulled

# The server's cable is pulled: its port goes down, but not the clients'.
start_cut peer-pulled 15
on_peer "echo off >/run/softroce/cable; pause 3; echo on >/run/softroce/cable"
end_cut peer-pulled

finish
