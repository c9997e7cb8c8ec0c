#!/bin/bash
# Runs the tests over real RDMA connections: on this machine's device if there is an active one, else each script in a
# micro-VM with Soft-RoCE, two at a time. (usage and softroce_script need no device and run here.) A script that wants
# several devices says so in a line `# rails: N`.
#
# Usage: tests/soft_roce/run.sh TOTALS [SCRIPT...]
#
# TOTALS gets one line, "passed failed skipped". Exit status: 0 all passed; 1 otherwise. A script that does
# not come to its end, or a machine on which nothing can be run, counts as failed.

set -u
cd "$(dirname "$0")/../.." || exit 1

if (($# == 0)); then
    echo "Usage: tests/soft_roce/run.sh TOTALS [SCRIPT...]" >&2
    exit 2
fi
totals=$1
shift
# Long ones first, so that the lanes end at about the same time.
(($# > 0)) || set -- data churn security load capacity stripe connect client psn rails softroce_script usage
limit_s=600
scratch=$(mktemp -d)
declare -A running=()
trap '[[ ! ${running[*]} ]] || kill "${running[@]}" 2>/dev/null; wait; rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$(dirname "$totals")"
rm -f "$totals"

export RAMPART_BIN=${RAMPART_BIN:-./} RAMPART_B=${RAMPART_B:-build/release}
if scripts/softroce status >/dev/null 2>&1; then
    where=native lanes=1
else
    where=vm lanes=2
fi

# Becomes the script, or the micro-VM that runs it, so that a signal reaches it.
become() { # SCRIPT
    local rails
    if [[ $where == native || $1 == */test_usage.sh || $1 == */test_softroce_script.sh ]]; then
        exec timeout -k 5 $limit_s "$1"
    fi
    rails=$(sed -n 's/^# rails: //p' "$1")
    exec scripts/softroce vm --timeout $limit_s --rails "${rails:-1}" --env RAMPART_BIN --env RAMPART_B \
        --env RAMPART_TIMES -- "$1"
}

# Adds up the tally in a script's last line; every other end is a failure.
add_tally() { # NAME STATUS LOG
    local regex='^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$'
    if [[ ! $(tail -n 1 "$3") =~ $regex ]]; then
        echo "not ok - test_$1: did not come to its end (exit status $2)"
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    skipped=$((skipped + BASH_REMATCH[3]))
    if (($2 != 0 && BASH_REMATCH[2] == 0)) || ((BASH_REMATCH[1] == 0)); then
        echo "not ok - test_$1: exit status $2, ${BASH_REMATCH[1]} passed"
        failed=$((failed + 1))
    fi
}

# Shows and counts the scripts that have ended.
collect() {
    local name status
    for name in "${!running[@]}"; do
        ! kill -0 "${running[$name]}" 2>/dev/null || continue
        wait "${running[$name]}"
        status=$?
        unset "running[$name]"
        echo "== $name ($where)"
        cat "$scratch/$name.log"
        add_tally "$name" $status "$scratch/$name.log"
    done
}

passed=0 failed=0 skipped=0
for name in "$@"; do
    while ((${#running[@]} >= lanes)); do
        wait -n
        collect
    done
    become "tests/soft_roce/test_$name.sh" </dev/null >"$scratch/$name.log" 2>&1 &
    running[$name]=$!
done
while ((${#running[@]} > 0)); do
    wait -n
    collect
done
echo "Soft-RoCE: $passed passed, $failed failed, $skipped skipped"
echo "$passed $failed $skipped" >"$totals"
((failed == 0 && passed > 0))
