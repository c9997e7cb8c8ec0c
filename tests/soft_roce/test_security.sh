#!/bin/bash
# Attacks on the server, one after another: each is refused with its reason on the wire and counted, other clients
# notice nothing, a new client is served after each, and in the end the pools are complete again.

. tests/soft_roce/lib.sh

start_server main --threads 2 --max-clients 64 --handshake-timeout 2 --session-timeout 2 --verify
remember_start main
start_ping bystander main --interval 0.02

# These modes wait for the server's deadlines, so run them in parallel with the others.
slow_modes=(tcp-silence half-client-hello handshake-only never-establish)
start slow "$programs/rogue" --check "${tls_options[@]}" "$host" "${port[main]}" "${slow_modes[@]}"
start flood "$programs/rogue" --check "${tls_options[@]}" "$host" "${port[main]}" flood=64

attack main <<'END'
tcp-garbage             closed
frame-length-0          refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-length-7          refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-length-65         refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-length-4g         refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-reserved          refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-garbage           refused: bad_request: frame length: must be 8 to 64, reserved 0
frame-version-0         refused: bad_version: the server speaks wire version 3, the client 0: .*
frame-version-1         refused: bad_version: the server speaks wire version 3, the client 1: .*
frame-type-0            refused: bad_request: unexpected frame: send HELLO or CONTROL
frame-type-grant        refused: bad_request: unexpected frame: send HELLO or CONTROL
frame-type-report       refused: bad_request: unexpected frame: send HELLO or CONTROL
frame-type-255          refused: bad_request: unexpected frame: send HELLO or CONTROL
hello-length-20         refused: bad_request: HELLO length: must be 64
hello-message-15        refused: bad_request: HELLO message size: must be 16 to 1048576
hello-message-1m1       refused: bad_request: HELLO message size: must be 16 to 1048576
hello-message-1m        refused: unsupported: --message-size 4096: the client needs 1048576
hello-depth-0           refused: bad_request: HELLO queue depth: must be 1 to 1024
hello-depth-1025        refused: bad_request: HELLO queue depth: must be 1 to 1024
hello-features          refused: bad_request: HELLO features: bits 0 to 9 are known.*
hello-psn               refused: bad_request: HELLO psn: must be below 2\^24.*
hello-region-unasked    refused: bad_request: HELLO region size: must be 0 to 2\^31; 0 without the feature
hello-window-alone      refused: bad_request: HELLO window: size must be 1 to 2\^31, with a region; all 0 without the feature
hello-window-unasked    refused: bad_request: HELLO window: size must be 1 to 2\^31, with a region; all 0 without the feature
hello-window-empty      refused: bad_request: HELLO window: size must be 1 to 2\^31, with a region; all 0 without the feature
hello-qp-unasked        refused: bad_request: HELLO queue pair: number 2 to 2\^24 - 2, MTU 1 to 5; all 0 without the feature
hello-qp-none           refused: bad_request: HELLO queue pair: number 2 to 2\^24 - 2, MTU 1 to 5; all 0 without the feature
early-data              refused
hello-truncated         (closed|tls: tlsv1 alert decode error)
hello-byte-by-byte      granted
hello-after-grant       closed
control-after-grant     closed
control-after-more      refused: bad_request: unexpected frame: another HELLO was announced
hello-without-end       refused: bad_request: HELLO features: bit 9 is allowed in 7 HELLOs of a TLS connection, after 7 grants
vanish                  granted
psn-conflict            refused: psn_conflict, refused: psn_conflict, granted
endless-conflict        closed after 16 times psn_conflict
resting-psn             refused: psn_conflict: this PSN is in use: draw another
control-length-10       refused: bad_request: CONTROL length: must be 12
control-0               refused: bad_request: CONTROL request: must be 1 to 4
control-5               refused: bad_request: CONTROL request: must be 1 to 4
control-reserved        refused: bad_request: CONTROL interval: must be 100 to 60000 ms with WATCH, else 0
watch-0                 refused: bad_request: CONTROL interval: must be 100 to 60000 ms with WATCH, else 0
watch-65535             refused: bad_request: CONTROL interval: must be 100 to 60000 ms with WATCH, else 0
control-pipelined=100   closed after 16 reports
control-pipelined=10    done after 10 reports
hello-in-control        refused: bad_request: unexpected frame: a control session takes only CONTROL
push-own                refused: unsupported: --windows off: the client needs the server to write to its memory
END

attack main <<END
request-right           accepted
request-wrong-session   rejected: bad_session
request-wrong-hmac      rejected: bad_hmac
request-wrong-key       rejected: bad_hmac
request-wrong-qpn       rejected: bad_hmac
request-wrong-kind      rejected: bad_request
request-wrong-version   rejected: bad_request
request-wrong-length    rejected: bad_request
request-cut             rejected: bad_hmac
request-no-data         rejected: bad_request
request-garbage         rejected: bad_request
second-try              rejected: bad_hmac, rejected: bad_session
replay                  rejected: bad_session, the first connection works
same-session-twice      1 accepted, 1 rejected: bad_session
expired                 rejected: bad_session
wrong-port=${rdma_ports[main]} rejected: bad_session, then accepted at the right port
other-address           rejected: bad_address
stolen-qpn              rejected: CM reason 10
wrong-psn               wc: retry_exceeded
END

mapfile -t seen < <(stats main events.established events.psn_verified)
is "the PSNs of every connection are read back" "$((seen[1] >= seen[0] && seen[0] > 60))" 1

attack_messages main ', disconnected'
counted "what is wrong with messages is counted" main failures.traffic.protocol:bad_message=12 \
    failures.traffic.protocol:credits_exceeded=2 failures.traffic.wc:local_qp_operation=3

ends "attack slow ones" slow 240 0 "^tcp-silence: closed
half-client-hello: closed
handshake-only: closed
never-establish: given up$"
ends "attack flood" flood 240 0 '^flood=64: 64 connections
flood=64: closed$'
used+=("${slow_modes[@]}" flood)

counted "timeouts are counted by stage" main failures.tls_handshake.timeout=66 \
    failures.psn_exchange.timeout=1 'failures.rdma_connect.timeout>=5'
terms=()
for code in "${!refusals[@]}"; do
    terms+=("events.refused.$code=${refusals[$code]}")
done
counted "the server counted every refusal the attackers saw: ${terms[*]#events.refused.}" main "${terms[@]}"
is "refusals of every kind were seen" "${#refusals[@]}" 7

# Of the 256 alerts, 0 ends the stream, 90 (user_canceled) is ignored, and 16 are usual.
attack main <<'END'
alerts                  256 handshakes closed
END
counted "alerts that a peer makes up share one row" main failures.tls_handshake.tls:other=238 \
    failures.tls_handshake.tls:unknown_ca=1
is "a peer cannot fill the table of failures" "$(($(stats main failures | jq length) < 100))" 1

loses_nothing "a client that was there all the time lost nothing" bystander
# Servers that the client must not trust.
ping=("${bin}rdma_client" --tls-port "${port[main]}" --count 1)
gives "the client refuses a server of another CA" 1 'tls_handshake: certificate:' \
    "${ping[@]}" --ca "$bad_certs/other-ca.pem" "$host" ping
gives "the client refuses a server of another name" 1 'tls_handshake: certificate:62' \
    "${ping[@]}" --ca "$certs/ca.pem" --server-name elsewhere.example "$host" ping
gives "the client takes the name that the certificate has" 0 '0% loss' \
    "${ping[@]}" --ca "$certs/ca.pem" --server-name localhost "$host" ping
counted "the server counts who did not trust it, after all those alerts too" main \
    failures.tls_handshake.tls:unknown_ca=2
serves "a new client is served" main
all_back "after all attacks everything is back" main
stop_server main
# Allowed are the warnings at start about running as root and about the certificate.
is "the server complained of nothing of its own" \
    "$(grep -vE '^rdma_server( ready:|: info: |: warn: (running as root|certificate .* was signed by the development CA), )' \
        "${logs[main]}")" ""

# ---- one-sided memory and pushes, on one shard, so that memory is reused; client certificates

tls_options+=(--cert "$certs/client.pem" --key "$certs/client.key")
start_server auth --threads 1 --max-clients 8 --max-handshakes 8 --handshake-timeout 2 --session-timeout 2 \
    --client-auth require --message-size 100 --windows on
remember_start auth
attack_regions auth
attack auth <<'END'
message-beyond-grant    (wc: remote_(operation|invalid_request), )?disconnected
END
attack_pushes auth disconnected
# Two are the refused pushes; immediate data with a wrong key adds another, unless the attacker's goodbye is read first.
counted "what is wrong with pushes and immediate data is counted" auth 'failures.traffic.protocol:bad_message>=9' \
    failures.traffic.protocol:credits_exceeded=1 'failures.traffic.wc:remote_access>=2'

anonymous=(--ca "$certs/ca.pem")
ping=("${bin}rdma_client" --tls-port "${port[auth]}" --count 1)
gives "client certificate: the right one is accepted" 0 '0% loss' "${ping[@]}" "${tls_options[@]}" "$host" ping
gives "client certificate: none is refused" 1 'tls:certificate_required' \
    "${ping[@]}" "${anonymous[@]}" "$host" ping
gives "client certificate: of another CA is refused" 1 'tls:unknown_ca' \
    "${ping[@]}" "${anonymous[@]}" --cert "$bad_certs/other-client.pem" --key "$bad_certs/other-client.key" \
    "$host" ping
gives "client certificate: a server's is refused" 1 'tls:unsupported_certificate' \
    "${ping[@]}" "${anonymous[@]}" --cert "$certs/server.pem" --key "$certs/server.key" "$host" ping
gives "client certificate: an expired one is not even loaded" 3 'old-client.pem has expired' \
    "${ping[@]}" "${anonymous[@]}" --cert "$bad_certs/old-client.pem" --key "$bad_certs/old-client.key" \
    "$host" ping
gives "client certificate: a control session needs one too" 3 'certificate_required' \
    "$programs/stats" "${anonymous[@]}" "$host" "${port[auth]}" uptime_s
openssl_client() { # OPTIONS...
    timeout 60 openssl s_client -connect "$host:${port[auth]}" -CAfile "$certs/ca.pem" "$@" </dev/null 2>&1
}
matches "client certificate: an expired one is refused" "$(openssl_client -alpn rampart/3 -ign_eof \
    -cert "$bad_certs/old-client.pem" -key "$bad_certs/old-client.key")" 'alert certificate expired'
for version in tls1 tls1_1 tls1_2; do
    matches "$version is refused" "$(openssl_client -$version -cipher DEFAULT@SECLEVEL=0 -alpn rampart/3)" \
        'alert protocol version'
done
matches "who has no group in common is refused" "$(openssl_client -groups ffdhe3072 -alpn rampart/3)" \
    'alert handshake failure'
matches "another ALPN protocol is refused" "$(openssl_client -alpn h2)" 'alert no application protocol'
openssl_client -ign_eof -cert "$certs/client.pem" -key "$certs/client.key" >"$tmp/no-alpn"
counted "failed handshakes are counted by what was wrong" auth failures.tls_handshake.certificate:10=1 \
    'failures.tls_handshake.tls:no_application_protocol=1'

# ---- programs of the previous version, played by OpenSSL: each end reports the version that the other speaks

# The old version's HELLO: 40 bytes, version 2, messages of 64 bytes, depth 4, PSN 0x123456.
printf '\0\0\0\x28\x02\x01\0\0\0\0\0\x40\0\x04\0\0\0\x12\x34\x56\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >"$tmp/hello-before"
matches "a client of wire version 2 is refused in its own version, with words that name both" \
    "$(timeout 60 openssl s_client -quiet -connect "$host:${port[auth]}" -CAfile "$certs/ca.pem" -alpn rampart/2 \
        -cert "$certs/client.pem" -key "$certs/client.key" <"$tmp/hello-before" 2>/dev/null | od -An -v -c | tr -d ' \n')" \
    '002003.*004.*theserverspeakswireversion3,theclient2:bothneedprogramsofthesameversion'
start before openssl s_server -rev -accept "$host:0" -naccept 2 -alpn rampart/2 -tls1_3 -cert "$certs/server.pem" -key "$certs/server.key"
wait_until 240 has_line "${logs[before]}" '^ACCEPT' || not_ok "a server of wire version 2" "$(cat "${logs[before]}")"
port[before]=$(sed -n 's/^ACCEPT.*://p' "${logs[before]}")
gives "rdma_client says that a server speaks wire version 2" 1 \
    'tls_handshake: tls:no_application_protocol.*the server speaks wire version 2, this client 3: both need programs' \
    "${bin}rdma_client" "${tls_options[@]}" --tls-port "${port[before]}" "$host" ping
gives "performance_test says so before any client connects" 3 \
    'tls_handshake: tls:no_application_protocol: the server speaks wire version 2, this client 3' \
    "${bin}performance_test" "${tls_options[@]}" --output "$results" --name before --server "$host" \
    --tls-port "${port[before]}" --steps 2 --quiet
end_of before 240

# ---- floods: more connections than there is room for, while others want to be served

start flood "$programs/rogue" "${tls_options[@]}" "$host" "${port[auth]}" flood=20
wait_until 240 has_line "${logs[flood]}" '20 connections' || not_ok "the flood starts" "$(cat "${logs[flood]}")"
serves "a client is served although silent connections fill --max-handshakes" auth --timeout 60
ends "the flood's connections are closed" flood 240 0 'closed'

start controls "$programs/rogue" "${tls_options[@]}" "$host" "${port[auth]}" hold-controls=72
wait_until 240 has_line "${logs[controls]}" 'reports' || not_ok "the control flood starts" "$(cat "${logs[controls]}")"
used+=(hold-controls)
matches "control sessions beyond the limit are refused" "$(<"${logs[controls]}")" \
    '64 reports, 8 times refused: busy, 0 unanswered'
serves "a client is served although somebody holds all control sessions" auth
kill -KILL "${pid[controls]}"
end_of controls 240
all_back "after attacks on memory, certificates and floods everything is back" auth
stop_server auth

# ---- certificates of the server, seen by the client

tls_options=(--ca "$certs/ca.pem")
server_files=(--cert "$bad_certs/elsewhere.pem" --key "$bad_certs/elsewhere.key")
start_server elsewhere --threads 1 --max-clients 8
ping=("${bin}rdma_client" --tls-port "${port[elsewhere]}" --count 1 --ca "$certs/ca.pem")
gives "the client refuses a certificate for another name" 1 'tls_handshake: certificate:64' \
    "${ping[@]}" "$host" ping
gives "the client takes it under that name" 0 '0% loss' "${ping[@]}" --server-name elsewhere.example "$host" ping
kill -TERM "${pid[elsewhere]}"
end_of elsewhere 240
gives "a server with an expired certificate does not start" 3 'expired.pem has expired; renew it' \
    "${bin}rdma_server" --cert "$bad_certs/expired.pem" --key "$bad_certs/expired.key"
gives "nor with one that is not valid yet" 3 'future.pem is not valid yet' \
    "${bin}rdma_server" --cert "$bad_certs/future.pem" --key "$bad_certs/future.key"

# These modes are used by test_psn, test_churn and test_connect.
used+=(unique-psns hold dies-in-error dies-without-qp asks-while-full ticket)
# By test_certificates.
used+=(old-ticket)
# By test_strangers.
used+=(key-updates control-key-updates client-hellos requests control-flood mark-flood)
# By test_stale.
used+=(keep-ids claim claim-next)
# By test_breaks.
used+=(outstanding never-stops)
# By test_credits.
used+=(unsolicited-flood echo-flood never-receives)
# By test_crowd.
used+=(crowd-silent crowd-half crowd-drip crowd-grants crowd-chains crowd-busy)
# By tests/nodes/test_long_packets.
used+=(packets-guess packets-guess-write packets-exact packets-exact-write)
# By tests/soak.
used+=(canary)
# By test_sockets.
mapfile -t -O ${#used[@]} used < <("$programs/rogue" modes | grep -E '^(record|proof)-')
unused=$(comm -23 <("$programs/rogue" modes | sort) <(printf '%s\n' "${used[@]}" | sort -u))
is "every attack was made" "$unused" ""
finish
