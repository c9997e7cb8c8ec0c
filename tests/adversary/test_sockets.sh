#!/bin/bash
# Attacks on a server whose clients come over TCP and TLS: those on the bootstrap, and those on records, proofs and messages. Each is
# refused or ended for its reason, other clients notice nothing, a new one is served after each, and everything is back.
# here

. tests/soft_roce/lib.sh
host=127.0.0.1

start_server main --threads 2 --transports tcp,tls --bind $host --max-clients 64 --handshake-timeout 2 --session-timeout 2 \
    --credits 4 --probe-interval 1
remember_start main
for t in tcp tls; do
    start_ping bystander-$t main --transport $t --interval 0.02
done

# Those that wait for the server's deadlines, at once with the others.
start slow "$programs/rogue" --transport tcp --check "${tls_options[@]}" $host "${port[main]}" \
    tcp-silence half-client-hello handshake-only proof-none proof-part
for t in tcp tls; do
    start deaf-$t "$programs/rogue" --transport $t --timeout 6 --check "${tls_options[@]}" $host "${port[main]}" record-deaf
done

for t in tcp tls; do
    attack main --transport $t <<'END'
tcp-garbage             closed
frame-length-0          refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-length-4g         refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-reserved          refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-garbage           refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-version-0         refused: bad_version: the server speaks wire version 3, the client 0: .*
frame-type-255          refused: bad_request: unexpected frame: send HELLO or CONTROL
hello-length-20         refused: bad_request: HELLO length: must be 64
hello-message-1m1       refused: bad_request: HELLO message size: must be 16 to 1048576
hello-message-1m        refused: unsupported: --message-size 4096: the client needs 1048576
hello-depth-0           refused: bad_request: HELLO queue depth: must be 1 to 1024
hello-features          refused: bad_request: HELLO features: .*
hello-psn               refused: bad_request: HELLO psn: .*
hello-region-unasked    refused: bad_request: HELLO region size: must be 0 to 2\^31; 0 without the feature
hello-window-unasked    refused: bad_request: HELLO window: size must be 1 to 2\^31, with a region; all 0 without the feature
early-data              refused
hello-truncated         (closed|tls: tlsv1 alert decode error)
hello-byte-by-byte      granted
vanish                  granted
control-length-10       refused: bad_request: CONTROL length: must be 12
control-pipelined=100   closed after 16 reports
hello-in-control        refused: bad_request: unexpected frame: a control session takes only CONTROL
record-long             closed
record-kind             closed
record-reserved         closed
record-imm              closed
record-proof-again      closed
record-empty            closed
record-message-type     closed
record-message-length   closed
record-push-region      closed
record-push-huge        closed
record-flood            closed
record-bye-and-more     closed
record-drip             answered
record-half             nothing
record-reset            nothing
record-end              closed
END
done
counted "what is wrong with records and messages is counted by its reason" main failures.traffic.protocol:bad_frame=10 \
    failures.traffic.protocol:bad_message=10 failures.traffic.protocol:credits_exceeded=2

attack main --transport tcp <<'END'
hello-after-grant       closed
control-after-grant     closed
proof-right             proven
proof-hmac              rejected: bad_hmac
proof-session           rejected: bad_session
proof-kind              rejected: bad_request
proof-length            rejected: bad_request
proof-garbage           rejected: bad_request
proof-early             answered
proof-early-wrong       rejected: bad_hmac
proof-twice             rejected: bad_session
proof-other-address=127.0.0.2 rejected: bad_address
END
attack main --transport tls <<'END'
key-updates=1000        closed
control-key-updates=1000 closed
record-key-updates=1000 closed
END
for t in tcp tls; do
    ends "attack record-deaf over $t" deaf-$t 40 0 '^record-deaf: full$'
done
used+=(proof-none proof-part proof-crowd record-deaf record-deaf-crowd)
# For test_strangers.
used+=(record-sips)
is "every attack over sockets was made" \
    "$(comm -23 <("$programs/rogue" modes | grep -E '^(record|proof)-' | sort) <(printf '%s\n' "${used[@]}" | sort -u))" ""
ends "attack slow ones" slow 40 0 '^tcp-silence: closed
half-client-hello: closed
handshake-only: closed
proof-none: closed
proof-part: closed$'
counted "timeouts are counted by stage" main failures.tls_handshake.timeout=2 failures.psn_exchange.timeout=1 \
    'failures.socket_connect.timeout>=4' failures.traffic.timeout=2
counted "a client's key updates are counted by stage" main failures.traffic.tls:too_many_records=1 \
    failures.psn_exchange.tls:too_many_records=2
terms=()
for code in "${!refusals[@]}"; do
    terms+=("events.refused.$code=${refusals[$code]}")
done
counted "the server counted every refusal the attackers saw: ${terms[*]#events.refused.}" main "${terms[@]}"
for t in tcp tls; do
    loses_nothing "$t: the client that was there all along lost nothing" bystander-$t
done
all_back "everything is back" main
stop_server main

# ---- clients that make the server use its buffers, and leave

start_server large --threads 2 --transports tcp,tls --bind $host --max-clients 32 --message-size 1M --tcp send-buffer=64k
remember_start large
start_ping small large --transport tcp --interval 0.02
resident() { # of the server, MiB
    awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/${pid[large]}/status"
}
shrank() { # no more than 16 MiB above what it was
    (($(resident) <= before + 16))
}
before=$(resident)
start deaf "$programs/rogue" --transport tcp "${tls_options[@]}" $host "${port[large]}" record-deaf-crowd=24
wait_until 60 has_line_or_gone deaf '24 clients that do not read'
held=$(resident)
is "24 clients that do not read make the server hold 200 MiB and more" "$((held >= before + 200))" 1
kill -KILL "${pid[deaf]}"
end_of deaf 10
wait_until 10 shrank || not_ok "10 s after they left their memory is given back" "$before, $held, $(resident) MiB"
loses_nothing "the client that was there all along lost nothing" small
all_back "everything is back" large
stop_server large

# ---- one address takes all the room that there is before proofs; clients of another one get in

start_server narrow --threads 1 --transports tcp,tls --bind $host --max-clients 64 --max-handshakes 16 --handshake-timeout 30
remember_start narrow
start greedy "$programs/rogue" --transport tcp --source 127.0.0.2 "${tls_options[@]}" $host "${port[narrow]}" proof-crowd=200
wait_until 60 has_line_or_gone greedy '200 connections'
counted "one address with 200 connections that show nothing" narrow 'events.closed.crowded_out>=184'
for i in {1..7}; do
    serves "a client of another address gets in ($i)" narrow --transport tcp
done
kill -KILL "${pid[greedy]}"
end_of greedy 10
all_back "the crowd was killed: everything is back" narrow

# ---- kill -9 of the server

for t in tcp tls; do
    start_ping patient-$t narrow --transport $t --interval 0.02 --reconnect 60
done
kill -KILL "${pid[narrow]}"
end_of narrow 10
for t in tcp tls; do
    wait_until 60 has_line "${logs[patient-$t]}" 'connecting again in' ||
        not_ok "$t: a client notices that its server was killed" "$(tail -n 3 "${logs[patient-$t]}")"
done
server_ports=(--tls-port "${port[narrow]}" --rdma-port 0)
start_server again --threads 1 --transports tcp,tls --bind $host --max-clients 64
for t in tcp tls; do
    wait_until 60 has_line "${logs[patient-$t]}" 'connected again after' ||
        not_ok "$t: the client is back at the new server" "$(tail -n 3 "${logs[patient-$t]}")"
    loses_nothing "$t: a client outlives its server's kill -9" patient-$t
done
stop_server again
finish
