#!/bin/bash
# Runs the tests over real RDMA connections: on this machine's device if there is an active one, else each
# script in a micro-VM with Soft-RoCE. (usage and softroce_script need no device and run here.)
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
(($# > 0)) || set -- usage psn client security load softroce_script
limit_s=420
scratch=build/tests-soft-roce
mkdir -p "$scratch" "$(dirname "$totals")"
rm -f "$totals"

export RAMPART_BIN=${RAMPART_BIN:-./} RAMPART_B=${RAMPART_B:-build/release}
if scripts/softroce status >/dev/null 2>&1; then
    where=native
else
    where=vm
fi

run_one() { # SCRIPT TALLY
    if [[ $where == native || $1 == */test_usage.sh || $1 == */test_softroce_script.sh ]]; then
        TALLY=$2 timeout -k 5 $limit_s "$1"
    else
        scripts/softroce vm --timeout $limit_s --env TALLY="$2" --env RAMPART_BIN --env RAMPART_B \
            --env RAMPART_TIMES -- "$1"
    fi
}

passed=0 failed=0 skipped=0
for name in "$@"; do
    test=tests/soft_roce/test_$name.sh
    tally=$scratch/$name.tally
    rm -f "$tally"
    echo "== $name ($where)"
    run_one "$test" "$tally" </dev/null
    status=$?
    if read -r p f s 2>/dev/null <"$tally"; then
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        ((status == 0 || f > 0)) || { echo "not ok - test_$name: exit status $status" && failed=$((failed + 1)); }
    else
        echo "not ok - test_$name: did not come to its end (exit status $status)"
        failed=$((failed + 1))
    fi
done
echo "Soft-RoCE: $passed passed, $failed failed, $skipped skipped"
echo "$passed $failed $skipped" >"$totals"
((failed == 0 && passed > 0))
