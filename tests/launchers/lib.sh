# shellcheck shell=bash
# Helpers of the launchers' tests: an etcd, and the command that a launcher starts once for each of three hosts. It is
# tests/cluster/joiner, a host of a run without load: it joins with the code of performance_test, passes barriers, and needs
# no RDMA device. Launcher, hosts and etcd are on one machine. Sourced by the test scripts.
# shellcheck disable=SC2034,SC2154  # variables of the scripts that source it, and of the library below

# shellcheck source=tests/soft_roce/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../soft_roce/lib.sh"
hosts=3
joiner=$(realpath "${RAMPART_B:-build/release}/tests/cluster/joiner")

needs() { # COMMAND...
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null && continue
        not_ok "$command is there" "missing: scripts/install-deps --launchers"
        finish
    done
}

listens() { # PORT
    [[ $(ss -Htln "sport = :$1") ]]
}

# A port that nobody has; the listener that wants it says so if another process is faster.
free_port() {
    local tried
    while :; do
        tried=$((20000 + RANDOM % 10000))
        listens $tried || break
    done
    echo $tried
}

listens_or_gone() { # NAME PORT
    listens "$2" || is_gone "$1"
}

# Waits until the process listens at the port.
await_port() { # NAME PORT
    wait_until 60 listens_or_gone "$@" && listens "$2" && return
    not_ok "'$1' listens at port $2" "$(cat "${logs[$1]}")"
    finish
}

# Sets $etcd, the address of an etcd of this test's own.
start_etcd() {
    local client peer
    needs etcd ss
    client=$(free_port) peer=$(free_port)
    start etcd etcd --data-dir "$tmp/etcd" --log-level error --listen-client-urls "http://127.0.0.1:$client" \
        --advertise-client-urls "http://127.0.0.1:$client" --listen-peer-urls "http://127.0.0.1:$peer" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer"
    await_port etcd "$client"
    etcd=127.0.0.1:$client
}

# Sets $command: what every host of run NAME runs, and nothing in it differs between them.
prepare() { # NAME JOINER_OPTIONS...
    [[ ${etcd:-} ]] || start_etcd
    command=("$joiner" "etcd://$etcd/$1" load "$hosts" "${@:2}")
}

# Lines of the hosts that begin with WORD; a launcher may write something in front of them.
said() { # NAME WORD
    tr -d '\r' <"${logs[$1]}" | sed -nE "s/^([a-z0-9]+: )?($2( .*)?)\$/\2/p"
}

# shellcheck disable=SC2317  # wait_until calls it
have_said() { # NAME WORD COUNT
    (($(said "$1" "$2" | wc -l) >= $3)) || is_gone "$1"
}

# The launcher ends with status 0, and its three processes were the hosts of one run.
launched() { # NAME
    ends "$1: the launcher ends with the run" "$1" 120 0 ''
    is "$1: ranks are 0 to 2, in one run" "$(said "$1" joined | sort | awk '{ printf "%s/%s ", $2, $3; runs[$5] }
        END { n = 0; for (r in runs) n++; print n }')" '0/3 1/3 2/3 1'
    is "$1: each host started with the others and came to the end" \
        "$(said "$1" start | wc -l) $(said "$1" over | wc -l)" '3 3'
}

# shellcheck disable=SC2317  # wait_until calls it
nobody_of() { # NAME
    ! pgrep -f -- "^$joiner etcd://$etcd/$1 " >/dev/null
}

# Kills one host of a run that goes on until it is ended.
kill_one() { # NAME
    local killed
    wait_until 120 have_said "$1" start $hosts || not_ok "run '$1' begins" "$(cat "${logs[$1]}")"
    killed=$(pgrep -f -- "^$joiner etcd://$etcd/$1 " | head -n 1)
    kill -9 "$killed"
}

# The two others said of one and the same host that it is lost, before they ended.
others_name_it() { # NAME
    matches "$1: the two others name it" "$(said "$1" '(lost|out)' | grep -oE '\(rank [0-2]\) is lost' | sort | uniq -c)" \
        '^ *2 \(rank [0-2]\) is lost$'
}
