#!/bin/bash
# performance_test doctor in eleven situations: it finds what is wrong with the machine, and the command that it prints
# mends it when pasted into a shell. Finally performance_test runs without a device.
# shellcheck disable=SC2016,SC2317  # some is for another shell to expand, some is called by name

. tests/soft_roce/lib.sh

# Runs doctor as another user without capabilities. The last answer is in $tmp/found.json.
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all)
doctor() { # [COMMAND...]: in front of it
    "$@" "${bin}performance_test" doctor --json >"$tmp/found.json" 2>&1
}
of() { # CHECK FIELD: of all findings of that kind, one per line
    jq -r --arg check "$1" ".findings[] | select(.check == \$check) | .$2" "$tmp/found.json"
}
is_mended() { # CHECK STATUS [COMMAND...]
    doctor "${@:3}"
    jq -e . "$tmp/found.json" >/dev/null && [[ $(of "$1" status) != *"$2"* ]]
}

# Doctor must report STATUS of CHECK, and WHAT, and no longer after its mends were pasted into root's shell.
mends() { # NAME CHECK STATUS WHAT [COMMAND...]
    local name=$1 check=$2 mend
    doctor "${@:5}"
    if [[ $(of "$check" status) != *"$3"* || ! $(of "$check" what) =~ $4 ]]; then
        not_ok "$name: found" "$(<"$tmp/found.json")"
        return
    fi
    ok "$name: found"
    while read -r mend; do
        output=$(bash -c "$mend" 2>&1) || not_ok "$name: '$mend' succeeds" "$output"
    done < <(of "$check" mend | grep -v '^null$')
    if wait_until 20 is_mended "$check" "$3" "${@:5}"; then ok "$name: mended"; else not_ok "$name: mended" "$mend: $(<"$tmp/found.json")"; fi
}

ulimit -l unlimited
netdev=$(</sys/class/infiniband/*/ports/1/gid_attrs/ndevs/0)
device=$(basename /sys/class/infiniband/*)
mtu=$(<"/sys/class/net/$netdev/mtu")

doctor
is "rxe up: nothing is wrong" "$(jq -c '[.findings[] | select(.status == "wrong" or .status == "unknown")]' "$tmp/found.json")" '[]'
gives "rxe up: a line for each check, and status 0" 0 'fine .*'"$device"' port 1' "${bin}performance_test" doctor
for check in modules driver gid gid-type hugepages numa; do
    is "rxe up: $check is fine" "$(of $check status | sort -u)" fine
done
is "rxe up: its GIDs, with addresses and types" "$(of gid-type what | grep -cE 'GIDs .*[0-9.]+ RoCE v2')" 1
is "rxe up: what its interface does not show" "$(of pause what)" "$netdev: not shown by this driver"

# ---- the way to a server

start_server main --threads 1 --session-timeout 2
way=(--server "$host" --ping 0.3)
both=("${way[@]}" --tls-port "${port[main]}")
gives "a server: TLS, the path and a ping over each transport are fine" 0 \
    'fine +ping-rdma .* none lost.*fine +path-mtu .*fine +tls .*TLSv1.3.*fine +ping-tcp .* none lost.*fine +ping-tls .* none lost' \
    "${bin}performance_test" doctor "${both[@]}" --ca "$certs/ca.pem"
gives "a CA that did not sign its certificate" 1 'wrong +tls .*certificate' \
    "${bin}performance_test" doctor "${both[@]}" --ca "$bad_certs/other-ca.pem"
start_server only --threads 1 --transports rdma
gives "a server of one transport: the others are notes" 0 'fine +ping-rdma.*note +ping-tcp .*unsupported.*note +ping-tls .*unsupported' \
    "${bin}performance_test" doctor "${way[@]}" --tls-port "${port[only]}" --ca "$certs/ca.pem"
stop_server only
stop_server main
gives "nobody listens" 1 'wrong +tls .*ECONNREFUSED.*wrong +ping-tcp .*ECONNREFUSED' \
    "${bin}performance_test" doctor "${both[@]}" --ca "$certs/ca.pem"

# ---- this machine

ip link set "$netdev" down
gives "rxe down: status 1" 1 'wrong .*'"$device"' port 1' "${bin}performance_test" doctor
mends "rxe down" link wrong 'port 1'
ip link set "$netdev" mtu 1280
mends "wrong MTU" mtu wrong '1280'
ip link set "$netdev" mtu "$mtu"

mapfile -t addresses < <(ip -4 -o address show dev "$netdev" | awk '{ print $4 }')
ip -4 address flush dev "$netdev"
ip -6 address add 2001:db8::1/64 dev "$netdev" nodad
mends "IPv6 only" gid note 'no IPv4 address'
ip -6 address flush dev "$netdev" scope global
ip -4 address flush dev "$netdev"
mends "link-local only" gid wrong 'no IPv4 address'
ip -4 address flush dev "$netdev"
mends "no RoCE v2 GID with an address" gid-type wrong 'no RoCE v2 GID is an IP address'
ip -4 address flush dev "$netdev"
for address in "${addresses[@]}"; do
    ip address add "$address" dev "$netdev"
done

chmod 0600 /dev/infiniband/rdma_cm /dev/infiniband/uverbs*
mends "no permission on /dev/infiniband" access wrong 'Permission denied' "${nobody[@]}"

# Here the limit of the shell itself is mended.
text=$("${nobody[@]}" bash -c '
    ulimit -S -l 64
    found=$("$0" doctor --json)
    jq -r ".findings[] | select(.check == \"memlock\") | .status + \": \" + .what" <<<"$found"
    eval "$(jq -r ".findings[] | select(.check == \"memlock\") | .mend" <<<"$found")"
    "$0" doctor --json | jq -r ".findings[] | select(.check == \"memlock\") | .status"' "${bin}performance_test" 2>&1)
is "memlock 64 KiB: found, and mended" "$text" $'wrong: 64 KiB may be locked\nfine'

# Two mends, one after the other: the second is offered only after the first.
config=/sys/kernel/config/rdma_cm
doctor
[[ -d $config ]] || bash -c "$(of dscp mend)"
mends "no DSCP" dscp note 'no default was set'
is "no DSCP: what was set" "$(of dscp what)" "$device port 1: packets have DSCP 26 (a default_roce_tos of 104)"
echo 0 >"$config/$device/ports/1/default_roce_tos"
mends "a DSCP of 0" dscp note 'packets have DSCP 0'
rmdir "$config/$device"

huge=/sys/kernel/mm/transparent_hugepage/enabled
before=$(sed 's/.*\[\(.*\)\].*/\1/' $huge)
echo madvise >$huge
mends "no transparent huge pages" thp note 'madvise'
echo "$before" >$huge

"$(</proc/sys/kernel/modprobe)" nf_tables
gives "packets may be filtered: a note that names the ports, and status 0" 0 'note +firewall +nftables (and iptables )?may .*TCP port 7471 .*UDP port 4791' \
    "${bin}performance_test" doctor

rdma link delete "$device"
mends "no RDMA" device wrong 'no RDMA device'

# ---- no device, but root and rdma_rxe: performance_test runs in a network namespace, and takes it away

rdma link delete rxe0
ip -o address >"$tmp/network"
# Nothing is left: no device, no namespace but the first, and the network as it was.
is_clean() {
    [[ ! $(ls /sys/class/infiniband) && $(lsns -n -t net | wc -l) == 1 ]] && ip -o address | cmp -s - "$tmp/network"
}
is_left_clean() { # NAME
    if wait_until 60 is_clean; then
        ok "$1: nothing is left"
    else
        not_ok "$1: nothing is left" "$(ls /sys/class/infiniband; lsns -t net; ip -o address | diff - "$tmp/network")"
    fi
}
gives "netns: stdin and exit status pass through" 7 '^in$' scripts/softroce netns -- sh -c 'cat; exit 7' <<<in
is_left_clean "netns"
run=("${bin}performance_test" --steps 5 --verify --report off --output "$results")
gives "no RDMA: a network namespace" 0 'running over Soft-RoCE in a network namespace .* --environment vm' \
    "${run[@]}" --warmup 0.2 --duration 1 --json "$tmp/namespace.json"
holds "no RDMA: all clients were there" namespace 'one.connected_held == 5' 'one.psn_verified == 5' 'one.failures == []' \
    '.environment.clients.rdma_device.name == "rxe0"'
is_left_clean "no RDMA: a run"
for signal in INT:130 KILL:137; do
    wanted=${signal#*:} signal=${signal%:*}
    start "$signal" "${run[@]}" --name "$signal" --duration 600
    begins_measuring "$signal"
    kill "-$signal" "${pid[$signal]}"
    end_of "$signal" 60
    is "no RDMA: SIG$signal: exit status" "$status" "$wanted"
    is_left_clean "no RDMA: SIG$signal"
done
finish
