# shellcheck shell=bash
# Helpers for the tests of the comparisons, on top of those of the Soft-RoCE tests. test_bench_*.sh source this file and
# set $bench to the name of the script under test. They need no device: stand-ins replace the programs that would.
# shellcheck disable=SC2034,SC2154  # some of this is for the scripts that source it; they set $bench

. tests/soft_roce/lib.sh

samples=$PWD/tests/bench/samples
scratch_before=$(echo build/"$bench".*)

computes() { # NAME WANTED FILTER [OPTIONS...] [FILE]
    local name=$1 wanted=$2 filter=$3
    shift 3
    is "$name" "$(jq -L scripts/lib -c "include \"bench\"; include \"$bench\"; $filter" "$@" 2>&1)" "$wanted"
}

from_json() { # NAME WANTED FILTER
    is "$1" "$(jq -c "$3" "$tmp"/results/*/bench.json 2>&1)" "$2"
}

# $output is the output of the script that `gives` ran.
prints_what_it_writes() {
    is "bench.txt is what was printed" "$(cat "$tmp"/results/*/bench.txt)" \
        "$(grep -v -e "^$bench: " -e '^Results: ' <<<"$output")"
}

# The stand-in for performance_test hangs in the call with this number, and the script is interrupted.
interrupted() { # CALL WHERE COMMAND...
    local where=$2
    echo "$1" >"$tmp/hang"
    shift 2
    start interrupted "$@"
    wait_until 20 test -s "$tmp/hanging"
    kill -INT "${pid[interrupted]}"
    ends "interrupted" interrupted 10 130 "$where"
    is "what it started is ended" "$(kill -0 "$(cat "$tmp/hanging")" 2>&1 | grep -c 'No such process')" 1
    is "no scratch folder is left" "$(echo build/"$bench".*)" "$scratch_before"
}

# Without a device the script runs itself in a micro-VM with its own options. Tests that in a copy of the scripts with a
# stand-in for softroce.
enters_vm() { # MEMORY OWN OPTIONS...
    local memory=$1 script=$tmp/copy/scripts/$bench
    shift
    mkdir -p "$tmp/copy/build/certs"
    touch "$tmp/copy/build/certs/server.key"
    cp -r scripts "$tmp/copy"
    printf '#!/bin/bash\necho "$@"\n' >"$tmp/copy/scripts/softroce"
    gives "a micro-VM gets the options" 0 "^$bench: running over Soft-RoCE in a micro-VM"$'\n'"vm --memory $memory \
--share $tmp/results --env RAMPART_BIN --env RAMPART_B -- $script --environment native --pairs 7 \
--output $tmp/results $*\$" \
        env RAMPART_BIN="$tmp/bin/" RAMPART_B="$tmp/b" PATH="$tmp/bin:$PATH" "$script" --environment vm \
        --output "$tmp/results" --pairs 7 "$@"
}

uses_wrongly() { # ARGUMENTS...; each one text of several words
    local arguments
    for arguments in "$@"; do
        # shellcheck disable=SC2086  # these are words
        gives "wrong use: $arguments" 2 "^$bench: [^"$'\n'']*$' "scripts/$bench" $arguments
    done
    gives "--help" 0 '--pairs N' "scripts/$bench" --help
}

# Prints the beginning of a stand-in for performance_test. It sets $here, and $steps, $json, $workload, $poll and others
# from the options of those names.
stand_in_performance_test() {
    cat <<'END_OF_STAND_IN'
#!/bin/bash
here=${0%/bin/*}
echo x >>"$here/calls"
if [[ $(wc -l <"$here/calls") == "$(cat "$here/hang" 2>/dev/null)" ]]; then
    echo $$ >"$here/hanging"
    exec tail -f /dev/null
fi
steps=10 json='' repeat=1 workload='' poll='' operation='' resume= coalesce=1
while (($#)); do
    case $1 in
    --steps) steps=$2 ;;
    --json) json=$2 ;;
    --repeat) repeat=$2 ;;
    --workload) workload=$2 ;;
    --poll) poll=$2 ;;
    --operation) operation=$2 ;;
    --coalesce) coalesce=$2 ;;
    --tls-resume) resume=1 ;;
    esac
    shift
done
run='{"run": {"status": "completed"}, "build": {"version": "0"}, "environment": {"clients": {
    "kernel": "6.1", "cores": 2, "is_emulated_cpu": false, "rdma_device": {"name": "rxe0",
    "address": "10.77.0.1", "is_software": true, "path_mtu_bytes": 4096}}}}'
END_OF_STAND_IN
}
