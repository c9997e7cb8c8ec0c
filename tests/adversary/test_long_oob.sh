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

attack main --connect oob <<'END'
message-type-0          disconnected
message-reply           disconnected
message-flags           disconnected
message-says-longer     disconnected
message-says-shorter    disconnected
message-cut             disconnected
message-empty           disconnected
message-beyond-grant    wc: remote_(operation|invalid_request)
message-huge            wc: remote_(operation|invalid_request)
joined-says-longer      disconnected
joined-cut              disconnected
joined-echo             disconnected
joined-asking           disconnected
joined-many             disconnected
credits                 disconnected
immediate-credits       disconnected
immediate-beyond-grant  wc: remote_(operation|invalid_request)
END
counted "what is wrong with messages is counted" main failures.traffic.protocol:bad_message=12 \
    failures.traffic.protocol:credits_exceeded=2 failures.traffic.wc:local_qp_operation=3
loses_nothing "a client that was there all the time lost nothing" bystander
all_back "after all attacks everything is back" main
stop_server main

# ---- one-sided memory and pushes

start_server memory --threads 1 --max-clients 32 --handshake-timeout 2 --session-timeout 5 \
    --probe-interval 1 --message-size 100 --windows on
remember_start memory
attack memory --connect oob <<'END'
region-own              wc: success
region-read-over-end    wc: remote_access
region-write-over-end   wc: remote_access
region-read-before      wc: remote_access
region-write-before     wc: remote_access
region-read-at-end      wc: remote_access
region-key-plus-1       wc: remote_access
region-key-of-next      wc: remote_access
region-read-too-much    wc: remote_access
region-atomic           wc: success
region-atomic-at-end    wc: remote_access
region-atomic-unaligned (wc: remote_(access|invalid_request)|no completion)
region-read-other       wc: remote_access, the owner's data is safe
region-write-other      wc: remote_access, the owner's data is safe
region-atomic-other     wc: remote_access, the owner's data is safe
region-read-without     wc: remote_(access|invalid_request), the owner's data is safe
region-write-without    wc: remote_(access|invalid_request), the owner's data is safe
region-immediate        disconnected
region-immediate-other  wc: remote_access, the owner's data is safe
region-immediate-without wc: remote_(access|invalid_request), the owner's data is safe
region-guess=4          4 of 4 refused: remote_access
region-left             wc: remote_access
region-zeroed           the same memory, all zero
END
attack memory --connect oob <<'END'
push-own                pushed, the data is there
push-over-region-end    disconnected
push-far-from-region    disconnected
push-over-window-end    disconnected
push-far-from-window    disconnected
push-nothing            disconnected
push-too-much           disconnected
push-wrong-key          (disconnected|wc: flushed)
push-outside-memory     (disconnected|wc: flushed)
push-without-window     disconnected
push-cut                disconnected
push-credits            disconnected
END
serves "a new client is served" memory --connect oob
all_back "after attacks on memory everything is back" memory
stop_server memory
finish
