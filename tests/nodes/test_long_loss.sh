#!/bin/bash
# 1,000 clients through a wire that delays by 1 ms and loses 1 % in each direction. It runs alone, because beside
# another micro-VM the machines stand still for seconds and lose connections at the default --ack-timeout.
# nodes: 2
# alone

. tests/soft_roce/lib.sh
. tests/nodes/lib.sh

start_peer_server main --threads 1 --max-clients 1200 --verify
remember_start main
netem delay 1ms loss 1%
load many main --steps 1000 --warmup 0 --duration 10 --message-size 1024 --connect-concurrency 64 --step-timeout 300
end_of many 400
netem
is_honest "1,000 clients through 1 % loss" many '.run.status == "completed"' 'one.verified.server_corrupt == 0'
holds "1,000 clients through 1 % loss: all are held" many 'one.connected_held == 1000' 'one.failures == []'
limit=90 all_back "1,000 clients through 1 % loss: the server has everything back" main
finish
