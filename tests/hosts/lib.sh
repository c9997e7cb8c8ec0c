# shellcheck shell=bash
# Runs on several load hosts that are processes of one machine and meet in a real etcd. Sourced after tests/soft_roce/lib.sh
# by scripts that start in the top folder.
# shellcheck disable=SC2154  # those of soft_roce/lib.sh

command -v etcd >/dev/null || { not_ok "etcd is installed" "scripts/install-deps --tests installs it" && finish; }

# What all hosts have in common, and what each has of its own.
lease_s=${lease_s:-5}
shared=(--lease "$lease_s" --verify)
own=(--ca "$certs/ca.pem" --quiet --report off)

# The leader, whose folder of results is $tmp/NAME; $url is what the others join by.
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

# run.json of each run in a host's folder, in the order in which they were made; those of members in the leader's folder are not
# among them.
runs_of() { # NAME
    find "$tmp/$1" -name run.json -not -path '*/hosts/*' -printf '%T@ %p\n' | sort -n | cut -d' ' -f2-
}
