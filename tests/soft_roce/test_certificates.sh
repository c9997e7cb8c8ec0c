#!/bin/bash
# A running server's certificates: renewal at SIGHUP while clients stay, broken files, a revocation list, allowed names,
# tickets that end with the certificates they stand for, warnings, and the protection of keys in memory.

. tests/soft_roce/lib.sh

tls_options=(--ca "$certs/ca.pem" --cert "$bad_certs/named-client.pem" --key "$bad_certs/named-client.key")
files=$tmp/files
mkdir "$files"

install_files() { # SERVER_CERTIFICATE CA LIST
    cp "$1.pem" "$files/server.pem"
    cp "$1.key" "$files/server.key"
    cp "$2.pem" "$files/ca.pem"
    cp "$3.crl" "$files/list.crl"
}

reload() { # RELOADS FAILED_RELOADS, in total
    kill -HUP "${pid[main]}"
    wait_until 240 reloads_are "$@" || not_ok "SIGHUP is followed" "$(tail -n 3 "${logs[main]}")"
}

# Counts in the log, because not every client may ask for statistics.
# shellcheck disable=SC2317  # wait_until calls it
reloads_are() { # RELOADS FAILED_RELOADS
    [[ $(grep -c 'SIGHUP: certificates were read again' "${logs[main]}") == "$1" &&
        $(grep -c 'goes on with what it has' "${logs[main]}") == "$2" ]]
}

ping() { # OPTIONS...; sets the command
    command=("${bin}rdma_client" --tls-port "${port[main]}" --count 1 "$@" "$host" ping)
}

install_files "$certs/server" "$certs/ca" "$bad_certs/none"
server_files=(--cert "$files/server.pem" --key "$files/server.key" --ca "$files/ca.pem" --crl "$files/list.crl")
start_server main --threads 2 --max-clients 64 --session-timeout 2 --client-auth require \
    --allow-names 'other.example.org,*.example.org' --seccomp on --metrics 0
remember_start main
start_ping bystander main --interval 0.02
matches "the development CA is warned of" "$(<"${logs[main]}")" 'server.pem was signed by the development CA'
if ((EUID == 0)); then
    matches "root is warned of" "$(<"${logs[main]}")" 'warn: running as root'
fi

# From here on everything runs behind the system call filter, including the registration of memory.
is "all threads are behind the filter" "$(sed -n 's/^Seccomp:[[:space:]]*//p' "/proc/${pid[main]}"/task/*/status | sort -u)" 2
gives "a region is registered and written" 0 'bytes written at offset 0' "${bin}rdma_client" "${tls_options[@]}" \
    --tls-port "${port[main]}" "$host" write hello

matches "metrics are served, with the device's packets" "$(scrape main 2>&1)" \
    'rampart_server_port_packets_out_total\{device="[a-z0-9_]+"\} [1-9]'

# ---- names

serves "a client with an allowed name is served" main
ping --ca "$certs/ca.pem" --cert "$certs/client.pem" --key "$certs/client.key"
gives "one without is refused by name" 1 'not_allowed' "${command[@]}"
counted "and counted" main events.refused.not_allowed=1
gives "so is its control session" 3 'not_allowed' "$programs/stats" --ca "$certs/ca.pem" --cert "$certs/client.pem" \
    --key "$certs/client.key" "$host" "${port[main]}" uptime_s

# ---- renewal

install_files "$bad_certs/soon" "$certs/ca" "$bad_certs/none"
chmod 644 "$files/server.key"
reload 1 0
matches "a certificate that expires soon is warned of" "$(<"${logs[main]}")" 'server.pem expires in 5 days'
matches "and a key that others can read" "$(<"${logs[main]}")" 'server.key can be read by its group or by others'
counted "the report says when" main certificates.reloads=1 certificates.failed_reloads=0
matches "with its date" "$(stats main certificates.certificate_expires_at)" "^\"?$(date -ud '+5 days 1 hour' +%Y-%m-%dT)"
serves "a client is served" main

echo junk >"$files/server.pem"
reload 1 1
serves "after a broken file the old certificate is served" main
install_files "$certs/server" "$certs/ca" "$bad_certs/none"
cp "$bad_certs/soon.key" "$files/server.key"
reload 1 2
serves "nor is half of a pair taken" main

install_files "$bad_certs/other-server" "$certs/ca" "$bad_certs/none"
reload 2 2
ping "${tls_options[@]}"
gives "a certificate of another CA is shown from now on" 1 'tls_handshake: certificate:' "${command[@]}"
ping --ca "$bad_certs/other-ca.pem" "${tls_options[@]:2}"
gives "and accepted by who trusts that" 0 '0% loss' "${command[@]}"
install_files "$certs/server" "$certs/ca" "$bad_certs/none"
reload 3 2

# ---- the certificates that a session stands for

holds_ticket() { # NAME; waits for SIGUSR1 before it uses the ticket
    start "$1" "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" old-ticket
    wait_until 240 has_line_or_gone "$1" 'waiting' || not_ok "rogue '$1' takes a ticket" "$(<"${logs[$1]}")"
}

holds_ticket early
kill -USR1 "${pid[early]}"
ends "a ticket is good while nothing changed" early 240 0 'a ticket, resumed handshake, granted'
holds_ticket late
reload 4 2
kill -USR1 "${pid[late]}"
ends "a ticket of before the renewal is not" late 240 0 'a ticket, full handshake, granted'

# ---- a client is revoked

holds_ticket revoked
cp "$bad_certs/named.crl" "$files/list.crl"
serves "a list that was not read yet changes nothing" main
reload 5 2
kill -USR1 "${pid[revoked]}"
ends "nor does its ticket serve a revoked client" revoked 240 0 'tls: .*certificate revoked'
ping "${tls_options[@]}"
gives "a revoked client is refused" 1 'tls:certificate_revoked' "${command[@]}"
loses_nothing "a client that was there all the time lost nothing" bystander
cp "$bad_certs/none.crl" "$files/list.crl"
reload 6 2
serves "with the old list it is served again" main
ping --crl "$bad_certs/named.crl" "${tls_options[@]}"
gives "a client with a list takes a server that is not in it" 0 '0% loss' "${command[@]}"
all_back "everything is back" main

# ---- secrets in memory, and files that are watched

matches "no core file is left" "$(grep 'core file' "/proc/${pid[main]}/limits")" ' 0 +0 '
stop_server main

# As Kubernetes replaces a mounted secret: the files are found by way of a link to a directory.
mkdir "$files/old" "$files/new"
mv "$files/server.pem" "$files/server.key" "$files/old"
cp "$bad_certs/soon.pem" "$files/new/server.pem"
cp "$bad_certs/soon.key" "$files/new/server.key"
ln -s old "$files/data"
ln -s data/server.pem data/server.key "$files"
start_server watching --threads 1 --max-clients 8 --client-auth require --seccomp on --watch-certs
ln -s new "$files/data.new"
mv -T "$files/data.new" "$files/data"
wait_until 240 has_line "${logs[watching]}" 'watch-certs: certificates were read again' ||
    not_ok "a replaced link is noticed" "$(tail -n 3 "${logs[watching]}")"
matches "the new certificate is used" "$(<"${logs[watching]}")" $'server.pem expires in 5 days [^\n]*: renew it\n'
serves "a client is served" watching
stop_server watching

# Only in a micro-VM may another user be given access to the devices.
if [[ ${RAMPART_VM:-} ]] && ((EUID == 0)); then
    chmod 666 /dev/infiniband/*
    chmod 755 "$tmp"
    chown -R 65534 "$files"
    ulimit -l unlimited
    user_runs() { # NAME OPTIONS...
        local name=$1
        shift
        start "$name" setpriv --reuid 65534 --regid 65534 --clear-groups "${bin}rdma_server" "${server_ports[@]}" \
            "${server_files[@]:0:4}" --threads 1 --max-clients 8 "$@"
        wait_until 240 has_line_or_gone "$name" '^rdma_server ready:' || not_ok "'$name' becomes ready" "$(<"${logs[$name]}")"
    }
    user_runs closed
    matches "the server runs without root" "$(<"${logs[closed]}")" 'rdma_server ready:'
    is "and does not complain of it" "$(grep -c 'running as root' "${logs[closed]}")" 0
    is "others of its user cannot read its memory" "$(stat -c %U "/proc/${pid[closed]}/mem")" root
    stop_server closed
    user_runs open --core-dumps on
    is "unless they are let" "$(stat -c %u "/proc/${pid[open]}/mem")" 65534
    stop_server open
else
    skip "the server runs without root" "this is no micro-VM of our own"
fi
finish
