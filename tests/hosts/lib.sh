# shellcheck shell=bash
# Runs on several load hosts, which are processes on one machine and meet in a real etcd. Scripts that start in the top
# folder source this file after tests/soft_roce/lib.sh.
# shellcheck disable=SC2154  # those of soft_roce/lib.sh

command -v etcd >/dev/null || { not_ok "etcd is installed" "scripts/install-deps --tests installs it" && finish; }

# $shared: options that all hosts have in common; $own: those that each host needs itself.
lease_s=${lease_s:-5}
shared=(--lease "$lease_s" --verify)
own=(--ca "$certs/ca.pem" --quiet --report off)

# Starts the leader, with results in $tmp/NAME. Sets $url, by which the others join.
lead() { # NAME HOSTS SERVER OPTIONS...
    local name=$1 hosts=$2 targets=(--server "$host" --tls-port "${port[$3]:-0}")
    [[ ${port[$3]:-} ]] || targets=(--targets "$3")
    shift 3
    start "$name" "${bin}performance_test" --lead --hosts "$hosts" "${targets[@]}" --output "$tmp/$name" "${shared[@]}" "${own[@]}" "$@"
    wait_until 60 has_line_or_gone "$name" "--join 'etcd" || not_ok "'$name' leads" "$(<"${logs[$name]}")"
    url=$(sed -n "s/.*--join '\(.*\)'/\1/p" "${logs[$name]}")
}

join() { # NAME OPTIONS...
    local name=$1
    shift
    start "$name" "${bin}performance_test" --lease "$lease_s" --join "$url" --output "$tmp/$name" "${own[@]}" "$@"
}

# Prints the run.json of each run in a host's folder, oldest first, without those that the leader keeps of its members.
runs_of() { # NAME
    find "$tmp/$1" -name run.json -not -path '*/hosts/*' -printf '%T@ %p\n' | sort -n | cut -d' ' -f2-
}
