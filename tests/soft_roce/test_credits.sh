#!/bin/bash
# Clients that exceed their credits in any way, or receive nothing: they are ended for that reason, and no other client
# suffers, neither one that stays connected nor one that comes while they are there.

. tests/soft_roce/lib.sh

# Sends more to a sleeping shard than its shared receive queue holds (64 times 16 credits, plus 64), and stays.
start_server asleep --threads 1 --max-clients 64 --credits 16
remember_start asleep
start flood "$programs/rogue" "${tls_options[@]}" --timeout 20 "$host" "${port[asleep]}" unsolicited-flood
wait_until 240 has_line_or_gone flood 'messages each' || not_ok "the flood starts" "$(<"${logs[flood]}")"
serves "the first client that comes to a drained shard is served" asleep
ends "those who drained the shard are disconnected, all of them" flood 30 0 'unsolicited-flood: 40 clients, 40 messages each
unsolicited-flood: 40 disconnected$'
counted "as many are counted, for that reason, and nobody for another" asleep \
    failures.traffic.protocol:credits_exceeded=40 events.closed.failed=40 'events.device.srq_limit_reached>=1'

# The same with a client that sends now and then.
start_ping bystander asleep --interval 1
start flood "$programs/rogue" "${tls_options[@]}" --timeout 20 "$host" "${port[asleep]}" unsolicited-flood
ends "the same with a client that is connected all along" flood 240 0 'unsolicited-flood: 40 clients, 40 messages each
unsolicited-flood: 40 disconnected$'
serves "a client that comes afterwards is served" asleep
loses_nothing "the client that was there all along lost nothing" bystander
counted "every offender was counted" asleep failures.traffic.protocol:credits_exceeded=80 events.closed.failed=80
all_back "everything is back" asleep
stop_server asleep

start_server many --threads 1 --max-clients 16 --credits 128 --probe-interval 1
remember_start many
start_ping bystander many --interval 0.2
attack many <<END
echo-flood=${pid[many]}     2 clients, 1024 messages each; 2 disconnected
END
counted "more than a batch of completions in excess is seen" many failures.traffic.protocol:credits_exceeded=2
serves "a client that comes afterwards is served" many

start deaf "$programs/rogue" "${tls_options[@]}" --timeout 20 "$host" "${port[many]}" never-receives
ends "a client that sends and does not receive is disconnected" deaf 30 0 'never-receives: disconnected$'
counted "for that reason" many failures.traffic.protocol:not_receiving=1
loses_nothing "the client that was there all along lost nothing" bystander
all_back "everything is back" many
stop_server many
finish
