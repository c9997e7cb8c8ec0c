# shellcheck shell=bash
# Helpers of the launchers' tests: an etcd, and the command that a launcher starts once for each of three hosts. The
# command is tests/cluster/joiner, a host of a run without load: it joins with the code of performance_test, passes
# barriers, and needs no RDMA device. Launcher, hosts and etcd run on one machine.
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

# Prints a free port. If another process takes it first, the listener that wanted it fails with a message.
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

# Waits until the process listens on the port.
await_port() { # NAME PORT
    wait_until 60 listens_or_gone "$@" && listens "$2" && return
    not_ok "'$1' listens at port $2" "$(cat "${logs[$1]}")"
    finish
}

# Starts an etcd for this test and sets $etcd to its address.
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

# Sets $command, which is the same for every host of run NAME.
prepare() { # NAME JOINER_OPTIONS...
    [[ ${etcd:-} ]] || start_etcd
    command=("$joiner" "etcd://$etcd/$1" load "$hosts" "${@:2}")
}

# Prints the hosts' lines that begin with WORD; a launcher may have put a prefix before them.
said() { # NAME WORD
    tr -d '\r' <"${logs[$1]}" | sed -nE "s/^([a-z0-9]+: )?($2( .*)?)\$/\2/p"
}

# shellcheck disable=SC2317  # wait_until calls it
have_said() { # NAME WORD COUNT
    (($(said "$1" "$2" | wc -l) >= $3)) || is_gone "$1"
}

# Checks that the launcher ends with status 0, and that its three processes were the hosts of one run.
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

# Kills one host of a run that does not end by itself.
kill_one() { # NAME
    local killed
    wait_until 120 have_said "$1" start $hosts || not_ok "run '$1' begins" "$(cat "${logs[$1]}")"
    killed=$(pgrep -f -- "^$joiner etcd://$etcd/$1 " | head -n 1)
    kill -9 "$killed"
}

# Checks that the two other hosts reported the same host as lost before they ended.
others_name_it() { # NAME
    matches "$1: the two others name it" "$(said "$1" '(lost|out)' | grep -oE '\(rank [0-2]\) is lost' | sort | uniq -c)" \
        '^ *2 \(rank [0-2]\) is lost$'
}
