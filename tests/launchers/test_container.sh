#!/usr/bin/env bash
# Tests the image of deploy/Containerfile over real RDMA: rdma_server runs in a podman container made from its files, as
# the image's user, with /dev/infiniband and the machine's network; one client is outside, another one inside.
# tests/launchers/make-image has left the image in build/launchers/rootfs.
# limit: 900

# shellcheck source=tests/launchers/lib.sh
. "$(dirname "$0")/lib.sh"
needs podman crun ip
rootfs=$PWD/build/launchers/rootfs
if [[ ! -x $rootfs/usr/bin/rdma_server ]]; then
    not_ok "the image is there" "missing: tests/launchers/make-image build/launchers"
    finish
fi

# The keys must be readable for the image's user, as an operator would mount them.
mkdir "$tmp/tls"
cp "$certs"/*.pem "$certs/server.key" "$tmp/tls"
chown -R 10000:10000 "$tmp/tls"

# Sets in_container, the prefix that runs a command in a container. The image's files are read-only.
container() { # NAME MEMLOCK_BYTES
    in_container=(podman --root "$tmp/storage" --runroot "$tmp/run" --storage-driver vfs --runtime crun
        --cgroup-manager cgroupfs run --name "$1" --cgroups=disabled --network host --device /dev/infiniband
        --ulimit "memlock=$2:$2" --read-only --user 10000:10000 --cap-drop all --security-opt no-new-privileges
        --volume "$tmp/tls:/tls:ro" --rootfs "$rootfs")
}

files=(--cert /tls/server.pem --key /tls/server.key --ca /tls/ca.pem)
address=$(ip -4 -o address show dev rampart0 2>/dev/null | sed -n 's/.* inet \([0-9.]*\)\/.*/\1/p')

container small $((8 * 1024 * 1024))
limit=120 gives "with 8 MiB of locked memory the server says what it needs" 3 'ulimit -l' "${in_container[@]}" \
    rdma_server --bind "$address" --max-clients 10000 "${files[@]}"

container server -1
start server "${in_container[@]}" rdma_server --bind "$address" "${server_ports[@]}" --max-clients 64 "${files[@]}"
if ! wait_until 120 has_line_or_gone server '^rdma_server ready:' || is_gone server; then
    not_ok "a server in a container becomes ready" "$(cat "${logs[server]}")"
    finish
fi
[[ $(grep '^rdma_server ready:' "${logs[server]}") =~ tls=([^ ]*):([0-9]+) ]]
host=${BASH_REMATCH[1]} port[server]=${BASH_REMATCH[2]}
is "it runs as the image's user" "$(ps -C rdma_server -o uid= | tr -d ' ')" 10000
serves "a client outside gets its reply" server
loads outside server --clients 20 --duration 1 --warmup 0.2

container client -1
limit=120 gives "a client in another container gets its reply" 0 '1 messages sent, 1 replies, 0% loss' "${in_container[@]}" \
    rdma_client --ca /tls/ca.pem --tls-port "${port[server]}" --count 1 "$host" ping
stop_server server
finish
