#!/bin/bash
# Attacks of clients that connect out of band: on the proof, which is the first message, on the queue pair that a HELLO
# names, on messages, one-sided memory and pushes. A server that ends such a connection sends nothing, so "disconnected"
# means that it no longer acknowledges what the attacker sends.
# limit: 1200

. tests/soft_roce/lib.sh

# ---- proofs and messages

start_server main --threads 2 --max-clients 64 --handshake-timeout 2 --session-timeout 5 --probe-interval 1 --verify
remember_start main
start_ping bystander main --interval 0.02

attack main --connect oob <<'END'
request-right           accepted
request-wrong-session   disconnected
request-wrong-hmac      disconnected
request-wrong-key       disconnected
request-wrong-qpn       disconnected
request-wrong-kind      disconnected
request-wrong-version   disconnected
request-wrong-length    disconnected
request-cut             disconnected
request-no-data         disconnected
request-garbage         disconnected
expired                 disconnected
stolen-qpn              the thief gets nothing, the owner's connection works
wrong-psn               wc: retry_exceeded
resting-psn             refused: psn_conflict: this PSN is in use: draw another
END
counted "a first message that is not the right proof is counted" main failures.qp_exchange.protocol:bad_proof=10
gives "TLS from another address than the GID's is refused" 0 "^request-right: refused: bad_address: the GID is not the address" \
    "$programs/rogue" "${tls_options[@]}" --connect oob --source 127.0.0.2 "$host" "${port[main]}" request-right

attack_messages main '' --connect oob
counted "what is wrong with messages is counted" main failures.traffic.protocol:bad_message=12 \
    failures.traffic.protocol:credits_exceeded=2 failures.traffic.wc:local_qp_operation=3
loses_nothing "a client that was there all the time lost nothing" bystander
all_back "after all attacks everything is back" main
stop_server main

# ---- one-sided memory and pushes

start_server memory --threads 1 --max-clients 32 --handshake-timeout 2 --session-timeout 5 \
    --probe-interval 1 --message-size 100 --windows on
remember_start memory
attack_regions memory --connect oob
attack_pushes memory '(disconnected|wc: flushed)' --connect oob
serves "a new client is served" memory --connect oob
all_back "after attacks on memory everything is back" memory
stop_server memory
finish
