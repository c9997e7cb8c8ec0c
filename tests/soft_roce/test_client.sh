#!/bin/bash
# Commands and exit statuses of rdma_client; servers that are full, drain or die; machines that cannot run it.
# shellcheck disable=SC2016,SC2317  # some is for another shell to expand, some is called by name

. tests/soft_roce/lib.sh

number='[0-9]+\.[0-9]'

# ---- commands

start_server main --threads 2 --max-clients 16 --verify --probe-interval 0.2
remember_start main
use_client main
gives "ping prints a line for each reply, and a summary" 0 \
    "seq=1 time=$number us.*seq=2 time=.*seq=3 time=.*3 messages sent, 3 replies, 0% loss" \
    "${rdma_client[@]}" --count 3 --interval 0.01 "$host" ping
gives "ping --quiet prints the summary only, with percentiles if there are enough samples" 0 \
    "^--- .*300 messages sent, 300 replies.*avg=$number max=$number p50=$number p99=$number" \
    "${rdma_client[@]}" --count 300 --interval 0 --quiet "$host" ping
gives "the largest message" 0 '4096 bytes from .*0% loss' \
    "${rdma_client[@]}" --count 2 --interval 0 --message-size 4k "$host" ping
gives "the smallest message, spinning" 0 '16 bytes from .*0% loss' \
    "${rdma_client[@]}" --count 2 --interval 0 --message-size 16 --poll busy "$host" ping
gives "a message beyond the server's --message-size" 1 'psn_exchange: refused:unsupported.*--message-size' \
    "${rdma_client[@]}" --count 1 --message-size 4097 "$host" ping
gives "send" 0 '^grüße  aus dem Norden$' "${rdma_client[@]}" "$host" send 'grüße  aus dem Norden'
gives "write reads back" 0 '^5 bytes written at offset 4091 and read back$' \
    "${rdma_client[@]}" --offset 4091 "$host" write hello
gives "write beyond the region's end" 2 'are not inside the region; allowed: 0 to 4096 together' \
    "${rdma_client[@]}" --offset 4092 "$host" write hello
gives "read beyond the region's end" 2 'are not inside the region' \
    "${rdma_client[@]}" --offset 4097 --length 1 "$host" read
gives "read: a new connection's region is zero" 0 '^00000ff0 ( 00){10}( {3}){6}  \|\.{10}\|$' \
    "${rdma_client[@]}" --offset 4080 --length 10 "$host" read
gives "info" 0 'TLSv1.3 TLS_.*rdma .*device .*psn .*read back from the device.*stages \(us\)  tcp_connect=' \
    "${rdma_client[@]}" --verify "$host" info
if [[ $bin == ./ ]]; then
    gives "the CA's default place is beside the program" 0 '0% loss' \
        "${bin}rdma_client" --tls-port "${port[main]}" --count 1 "$host" ping
fi

for signal in INT TERM; do
    start_ping "$signal" main --interval 0.01
    loses_nothing "ping ends with its summary on SIG$signal" "$signal" "$signal"
done
start_ping idle main --interval 60
counted "an idle client is probed and stays" main 'events.probes>=3' clients.connected=1
kill -KILL "${pid[idle]}"
end_of idle 240
counted "a client that was killed is noticed" main clients.connected=0 'events.closed.peer_left>=10'

# ---- servers that do not answer

kill -STOP "${pid[main]}"
gives "a server that does not answer: the time limit names the stage" 1 'tls_handshake: timeout' \
    "${rdma_client[@]}" --timeout 0.5 "$host" ping
start waiting "${rdma_client[@]}" --timeout 600 --log-level debug "$host" ping
wait_until 240 has_line "${logs[waiting]}" 'TCP_CONNECT -> TLS_HANDSHAKE' || not_ok "the client waits" "it does not"
kill -INT "${pid[waiting]}"
ends "interrupted before it is connected" waiting 240 130 ''
kill -CONT "${pid[main]}"
serves "the server goes on where it was stopped" main
# Only in a micro-VM may this test take the port down.
if [[ ${RAMPART_VM:-} ]]; then
    ip link set rampart0 down
    wait_until 240 has_line "${logs[main]}" 'RDMA device rxe0 reports port_err'
    is "a port that goes down is said once, whatever the number of threads" \
        "$(grep -c 'reports port_err' "${logs[main]}")" 1
    ip link set rampart0 up
    wait_until 240 has_line "${logs[main]}" 'RDMA device rxe0 reports port_active' ||
        not_ok "a port that comes back is said" "$(cat "${logs[main]}")"
    counted "and counted" main 'events.device.port_err>=1' 'events.device.port_active>=1'
    serves "clients are served when the port is back" main
else
    skip "a port that goes down is said" "this machine's port may be somebody else's"
fi
all_back "after all commands everything is back" main
old_port=${port[main]}
start_ping left main --interval 0.05
stop_server main
ends "a ping whose server drains says so" left 240 1 'traffic: draining.*--- .* replies'
gives "nobody listens" 1 'tcp_connect: errno:ECONNREFUSED.*is the server running' "${rdma_client[@]}" "$host" ping
gives "no such host" 1 'nosuch.invalid: .*; give a name or address' \
    "${bin}rdma_client" "${tls_options[@]}" nosuch.invalid ping

# ---- full, gone, draining

server_ports=(--tls-port "$old_port" --rdma-port 0)
start_server small --threads 1 --max-clients 1 --region-size 0 --drain-timeout 2
is "the port can be used again at once" "${port[small]}" "$old_port"
server_ports=(--tls-port 0 --rdma-port 0)
use_client small
gives "no regions here" 1 'refused:unsupported.*--region-size 0' "${rdma_client[@]}" "$host" write x
start_ping holder small --interval 0.05
gives "the server is full" 1 'psn_exchange: refused:full.*--max-clients' "${rdma_client[@]}" "$host" ping
counted "the refusal is counted" small events.refused.full=1 events.refused.unsupported=1 clients.connected=1
gives "the TLS port is taken" 3 'another program has this port: choose another with --tls-port' \
    "${bin}rdma_server" "${server_files[@]}" --threads 1 --tls-port "${port[small]}" --rdma-port 0
gives "the RDMA port is taken" 3 'another program has this port: choose another with --rdma-port' \
    "${bin}rdma_server" "${server_files[@]}" --threads 1 --tls-port 0 --rdma-port "${rdma_ports[small]}"
kill -INT "${pid[holder]}"
end_of holder 240
reaches small 240 pools.admitted=0
serves "room again once the client left" small
# A stopped client does not answer the server's goodbye.
start_ping frozen small --interval 0.05
kill -STOP "${pid[frozen]}"
kill -TERM "${pid[small]}"
wait_until 240 has_line "${logs[small]}" 'draining'
gives "a client that comes while the server drains" 1 '(tcp_connect: errno:ECONNREFUSED|refused:draining)' \
    "${rdma_client[@]}" --timeout 8 "$host" ping
ends "--drain-timeout bounds the draining" small 20 0 'stopped'
kill -CONT "${pid[frozen]}"
ends "the client that was stopped meanwhile ends" frozen 240 1 'traffic: '

start_server killed --threads 1 --max-clients 4
use_client killed
start_ping bereft killed --interval 0.02
kill -KILL "${pid[killed]}"
end_of killed 240
ends "a ping whose server was killed says so" bereft 240 1 'traffic: [a-z]+.*--- .* replies'

# ---- a server with a valid certificate that violates the protocol afterwards

modes=() reasons=() failed_proof='rdma_connect: protocol:bad_proof'
while read -r mode reason; do
    modes+=("$mode")
    reasons+=("$reason")
done <<END
good                1 replies, 0% loss
close               (psn_exchange|tls_handshake): (closed_by_peer|errno:ECONNRESET)
silence             psn_exchange: timeout
frame-length        psn_exchange: protocol:bad_frame
frame-version       psn_exchange: protocol:bad_frame
frame-type          psn_exchange: protocol:unexpected_frame
grant-psn           psn_exchange: protocol:bad_frame
grant-message       psn_exchange: protocol:bad_frame
grant-port          psn_exchange: protocol:bad_frame
grant-host          psn_exchange: protocol:redirected: the server at .* granted a connection to 192\.0\.2\.1:
refuse-escape       psn_exchange: refused:full: \?o
refuse-code         psn_exchange: refused:unknown
refuse-conflict     psn_exchange: refused:psn_conflict
reject-garbage      rdma_connect: cm:28
reject-code         rdma_connect: refused:unknown
proof-none          $failed_proof
proof-hmac          $failed_proof
proof-key           $failed_proof
proof-session       $failed_proof
proof-echoed        $failed_proof
other-psn           first_reply: wc:retry_exceeded
reply-type          first_reply: protocol:bad_message
reply-cut           first_reply: protocol:bad_message
reply-twice         (protocol:bad_message|reply 0 to message [0-9]+: its number is not what was sent)
reply-sequence      reply 2 to message 1: its number is not what was sent
reply-payload       reply 1 to message 1: its bytes are not what was sent
END
start impostor "$programs/impostor" "$host" "$certs/server.pem" "$certs/server.key" "${modes[@]}"
wait_until 240 has_line_or_gone impostor '^impostor ready'
[[ $(<"${logs[impostor]}") =~ ready:\ ([0-9]+) ]] || not_ok "the impostor starts" "$(<"${logs[impostor]}")"
port[impostor]=${BASH_REMATCH[1]:-1}
for i in "${!modes[@]}"; do
    options=()
    [[ ${modes[$i]} != silence ]] || options=(--timeout 2)
    gives "a server that cheats: ${modes[$i]}" $((i > 0)) "${reasons[$i]}" "${bin}rdma_client" \
        "${tls_options[@]}" --tls-port "${port[impostor]}" --count 1 "${options[@]}" "$host" ping
done
ends "a server that cheats is asked for another PSN 8 times" impostor 240 0 'refuse-conflict: 8 HELLOs'

# ---- an environment that cannot run it: exit status 3 and advice

echo 'not a certificate' >"$tmp/nonsense.pem"
server=("${bin}rdma_server" --tls-port 0 --rdma-port 0 --threads 1)
gives "no certificate" 3 'nowhere.pem does not exist; make development certificates with `make certs`' \
    "${server[@]}" --cert nowhere.pem --key "$certs/server.key"
gives "a certificate that is none" 3 'nonsense.pem is not usable PEM' \
    "${server[@]}" --cert "$tmp/nonsense.pem" --key "$certs/server.key"
gives "another certificate's key" 3 'private key .*client.key does not belong to certificate' \
    "${server[@]}" --cert "$certs/server.pem" --key "$certs/client.key"
ssl_key=$tmp/ed25519.key
openssl genpkey -algorithm ed25519 -out "$ssl_key" 2>/dev/null
gives "a key of another type" 3 'private key .*ed25519.key does not belong to certificate' \
    "${server[@]}" --cert "$certs/server.pem" --key "$ssl_key"
gives "no such device (server)" 3 '--device nosuch0: no such RDMA device' \
    "${server[@]}" "${server_files[@]}" --device nosuch0
gives "--bind: another machine's address" 3 "192.0.2.1 is not this machine's" \
    "${server[@]}" "${server_files[@]}" --bind 192.0.2.1
gives "--bind: an address without RDMA" 3 '127.0.0.1' "${server[@]}" "${server_files[@]}" --bind 127.0.0.1
few_files() {
    ulimit -n 256
    exec "$@"
}
export -f few_files
gives "too few descriptors" 3 'limit of open files \(ulimit -n\) is 256, but .* needs? ' \
    bash -c 'few_files "$@"' - "${server[@]}" "${server_files[@]}"
gives "no such device (client)" 3 '--device nosuch0' "${rdma_client[@]}" --device nosuch0 "$host" ping
gives "no CA (client)" 3 'CA certificate nowhere.pem does not exist' \
    "${bin}rdma_client" --ca nowhere.pem "$host" ping
gives "no such device (performance_test)" 3 'nosuch0' "${bin}performance_test" --device nosuch0 \
    --output "$tmp/results"
finish
