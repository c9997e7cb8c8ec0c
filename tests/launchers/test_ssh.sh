#!/usr/bin/env bash
# Tests the ssh loop of docs/launchers.md exactly as printed, with this test's own sshd on 127.0.0.1. Three names of
# this machine serve as the three hosts.
# here

# shellcheck source=tests/launchers/lib.sh
. "$(dirname "$0")/lib.sh"
sshd=$(command -v sshd)
needs sshd ssh ssh-keygen

start_sshd() {
    local sshd_port
    sshd_port=$(free_port)
    # sshd needs this directory for privilege separation; the system normally creates it at boot.
    ((EUID != 0)) || mkdir -p /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$tmp/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$tmp/user_key"
    cat >"$tmp/sshd_config" <<END
Port $sshd_port
ListenAddress 127.0.0.1
HostKey $tmp/host_key
AuthorizedKeysFile $tmp/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
END
    cat >"$tmp/ssh_config" <<END
Host load1 load2 load3
HostName 127.0.0.1
Port $sshd_port
User $(id -un)
IdentityFile $tmp/user_key
IdentitiesOnly yes
UserKnownHostsFile $tmp/known_hosts
GlobalKnownHostsFile /dev/null
HostKeyAlias load
END
    printf 'load %s\n' "$(<"$tmp/host_key.pub")" >"$tmp/known_hosts"
    start sshd "$sshd" -D -e -f "$tmp/sshd_config"
    await_port sshd "$sshd_port"
}

# Extracts the script from the documentation, and puts this test's ssh into its PATH.
printed_script() {
    sed -n '/^## ssh$/,/^## /{/^    #!/,/^$/p}' docs/launchers.md | sed 's/^    //' >"$tmp/on-hosts"
    mkdir "$tmp/path"
    printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$tmp/ssh_config" >"$tmp/path/ssh"
    chmod 755 "$tmp/path/ssh" "$tmp/on-hosts"
}

prepare ssh
start_sshd
printed_script
start ssh env PATH="$tmp/path:$PATH" "$tmp/on-hosts" load1,load2,load3 "${command[@]}"
launched ssh
is "output names its host" "$(grep -oE '^load[123]: ' "${logs[ssh]}" | sort -u | tr -d '\n')" 'load1: load2: load3: '

prepare killed --barriers 0 --lease-s 2
start killed env PATH="$tmp/path:$PATH" "$tmp/on-hosts" load1,load2,load3 "${command[@]}"
kill_one killed
ends "a host that is killed ends the loop, with ssh's status" killed 120 255 'load[123]: exit status 255'
others_name_it killed

prepare stopped --barriers 0
start stopped env PATH="$tmp/path:$PATH" "$tmp/on-hosts" load1,load2,load3 "${command[@]}"
wait_until 120 have_said stopped start $hosts || not_ok "run 'stopped' begins" "$(cat "${logs[stopped]}")"
kill -TERM "${pid[stopped]}"
ends "the loop ends when it is told to" stopped 60 143 ''
if wait_until 60 nobody_of stopped; then ok "and its hosts with it"; else not_ok "and its hosts with it" "some still run"; fi

# A host that fails is named, and its status is the script's.
# shellcheck disable=SC2016  # the hosts' shell is to expand it
start one_fails env PATH="$tmp/path:$PATH" "$tmp/on-hosts" load1,load2 \
    bash -c 'mkdir "$0/first" 2>/dev/null || exit 3' "$tmp"
ends "a host's exit status is the loop's" one_fails 60 3 'load[12]: exit status 3'
finish
