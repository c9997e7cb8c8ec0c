#!/bin/bash
# Runs the tests over real RDMA connections: on this machine's device if there is an active one, else each
# script in a micro-VM with Soft-RoCE. (usage and softroce_script need no device and run here.) A script
# that wants several devices says so in a line `# rails: N`.
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
(($# > 0)) || set -- usage psn client security load connect churn capacity data rails stripe softroce_script
limit_s=600
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$(dirname "$totals")"
rm -f "$totals"

export RAMPART_BIN=${RAMPART_BIN:-./} RAMPART_B=${RAMPART_B:-build/release}
if scripts/softroce status >/dev/null 2>&1; then
    where=native
else
    where=vm
fi

run_one() { # SCRIPT
    local rails
    if [[ $where == native || $1 == */test_usage.sh || $1 == */test_softroce_script.sh ]]; then
        timeout -k 5 $limit_s "$1"
    else
        rails=$(sed -n 's/^# rails: //p' "$1")
        scripts/softroce vm --timeout $limit_s --rails "${rails:-1}" --env RAMPART_BIN --env RAMPART_B \
            --env RAMPART_TIMES -- "$1"
    fi
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

passed=0 failed=0 skipped=0
for name in "$@"; do
    echo "== $name ($where)"
    run_one "tests/soft_roce/test_$name.sh" </dev/null | tee "$scratch/$name.log"
    add_tally "$name" "${PIPESTATUS[0]}" "$scratch/$name.log"
done
echo "Soft-RoCE: $passed passed, $failed failed, $skipped skipped"
echo "$passed $failed $skipped" >"$totals"
((failed == 0 && passed > 0))
