#!/bin/bash
# Runs the tests over real RDMA connections: on this machine's device if there is an active one, otherwise in Soft-RoCE
# micro-VMs, two at a time with 12 GiB of free memory (RAMPART_LANES=N: N). Scripts state their needs in lines of their
# own: `# rails: N` several devices; `# nodes: N` several machines on a wire (tests/nodes/); `# alone` no other micro-VM
# at the same time, as it judges figures; `# limit: SECONDS` more than 10 minutes; `# here` no device: it runs on this
# machine, mostly with RAMPART_TRANSPORT=tcp. usage and softroce_script also run here. With RAMPART_TRANSPORT=tcp or
# tls, clients in scripts with a line `# transports` use that transport and need no device. With RAMPART_CONNECT=oob
# clients over RDMA connect without rdmacm.
#
# Usage: tests/soft_roce/run.sh TOTALS ["SCRIPT..."]...
#
# Scripts in one argument share a micro-VM. TOTALS gets one line, "passed failed skipped". Exit status: 0 all passed,
# otherwise 1. A script that ends early, or a machine that can run nothing, counts as failed.

set -u
cd "$(dirname "$0")/../.." || exit 1

if (($# == 0)); then
    echo 'Usage: tests/soft_roce/run.sh TOTALS ["SCRIPT..."]...' >&2
    exit 2
fi
totals=$1
shift
# Scripts in the order of their start, after those that run alone: long ones first, so that both lanes end together.
(($# > 0)) || set -- "data load connect doctor" "security churn client" stripe "capacity transports psn pod" oob softroce_script rails tcp_tls \
    service search targets suite schedule sessions turns ends module figures limit usage
limit_s=600
# A micro-VM needs 4 GiB.
lanes=${RAMPART_LANES:-$(awk '/^MemAvailable/ { print ($2 >= 12 * 1024 * 1024) ? 2 : 1 }' /proc/meminfo)}
mkdir -p build "$(dirname "$totals")"
rm -f "$totals"
# A folder in which a micro-VM can write too.
scratch=$(mktemp -d build/soft-roce.XXXXXX)
declare -A running=()
trap '[[ ! ${running[*]} ]] || kill "${running[@]}" 2>/dev/null; wait; rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

export RAMPART_BIN=${RAMPART_BIN:-./} RAMPART_B=${RAMPART_B:-build/release}
if scripts/softroce status >/dev/null 2>&1; then
    where=native
else
    where=vm
fi
passed=0 failed=0 skipped=0

add() { # PASSED FAILED SKIPPED
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
}

path_of() { # NAME
    local paths=(tests/*/"test_$1.sh")
    printf '%s\n' "${paths[0]}"
}

# Prints the value of a line `# WHAT` or `# WHAT: VALUE` in scripts. False if none has such a line.
wants() { # WHAT NAME...
    local what=$1 name paths=()
    shift
    for name in "$@"; do
        paths+=("$(path_of "$name")")
    done
    sed -n "s/^# $what\(: \|\$\)//p" "${paths[@]}" 2>/dev/null
    grep -qs "^# $what" "${paths[@]}"
}

# Longest time for all scripts together, in seconds.
limit_of() { # NAME...
    local name own sum=0
    for name in "$@"; do
        own=$(wants limit "$name")
        sum=$((sum + ${own:-$limit_s}))
    done
    echo $sum
}

# Runs a script here and adds the tally in its last line; a script without one has failed.
run_here() { # NAME
    local regex='^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$' log=${RAMPART_INNER:-$scratch}/$1.log status
    # In a micro-VM only the whole VM has a limit, as a guest cannot tell how long it waited for the host's CPU.
    local limited=(tests/limit "$(limit_of "$1")")
    [[ ! ${RAMPART_VM:-} ]] || limited=()
    echo "== $1"
    # In the background, because bash delays signals until a foreground command ends.
    "${limited[@]}" "$(path_of "$1")" </dev/null >"$log" 2>&1 &
    running[here]=$!
    wait "${running[here]}"
    status=$?
    unset "running[here]"
    cat "$log"
    if [[ ! $(tail -n 1 "$log") =~ $regex ]]; then
        echo "not ok - test_$1: did not come to its end (exit status $status)"
        add 0 1 0
        return
    fi
    add "${BASH_REMATCH[@]:1}"
    if ((status != 0 && BASH_REMATCH[2] == 0)) || ((BASH_REMATCH[1] == 0)); then
        echo "not ok - test_$1: exit status $status, ${BASH_REMATCH[1]} passed"
        add 0 1 0
    fi
}

# True for scripts that need no micro-VM: there is a device, they use none, or this is one of their machines.
runs_here() { # NAME
    [[ $1 == usage || $1 == softroce_script ]] || wants here "$1" >/dev/null ||
        { [[ ${RAMPART_TRANSPORT:-rdma} != rdma ]] && wants transports "$1" >/dev/null && ! wants nodes "$1" >/dev/null; } ||
        { [[ $where == native ]] && { [[ ${RAMPART_NODE:-} ]] || ! wants nodes "$1" >/dev/null; }; }
}

# Replaces itself by a micro-VM that runs this script with a device. It uses exec, so that signals reach the micro-VM.
become() { # NUMBER NAME...
    local own=$scratch/$1.totals rails n nodes=() machine=(--icount)
    export RAMPART_EXCHANGE=$PWD/$scratch/$1.exchange
    export RAMPART_INNER=$PWD/$scratch/$1.logs # one of several: its tally is not the last word
    mkdir "$RAMPART_INNER"
    shift
    ! runs_here "$1" || exec tests/soft_roce/run.sh "$own" "$*"
    # One processor, because emulating two that wake each other costs as much time as their work.
    ! wants alone "$@" >/dev/null || machine=()
    rails=$(wants rails "$@")
    if wants nodes "$@" >/dev/null; then
        mkdir "$RAMPART_EXCHANGE"
        n=$(wants nodes "$@")
        ((${#machine[@]} == 0)) || machine=(--cpus 1)
        nodes=(--nodes "$n" --env RAMPART_EXCHANGE)
        for ((; n > 1; n--)); do
            nodes+=(--on "$n" 'exec tests/nodes/lib.sh')
        done
    fi
    # The limit allows for slow hosts: it only ends tests that hang.
    exec tests/limit $((3 * $(limit_of "$@") + 60)) scripts/softroce vm --rails "${rails:-1}" "${machine[@]}" "${nodes[@]}" \
        --env RAMPART_BIN --env RAMPART_B --env RAMPART_TIMES --env RAMPART_INNER --env RAMPART_TRANSPORT --env RAMPART_CONNECT -- tests/soft_roce/run.sh "$own" "$*"
}

# Shows the output of ended jobs and counts their results.
collect() {
    local job p f s
    for job in "${!running[@]}"; do
        ! kill -0 "${running[$job]}" 2>/dev/null || continue
        unset "running[$job]"
        cat "$scratch/$job.log"
        if read -r p f s 2>/dev/null <"$scratch/$job.totals"; then
            add "$p" "$f" "$s"
        else
            tail -n 40 "$scratch/$job.logs"/*.log 2>/dev/null
            echo "not ok - the tests of micro-VM $job did not come to their end"
            add 0 1 0
        fi
    done
}

# Collects until at most LEFT jobs run.
await_jobs() { # LEFT
    while ((${#running[@]} > $1)); do
        wait -n
        collect
    done
}

# Starts a job as soon as there is room for it.
start_job() { # NAME...
    local alone=
    ! wants alone "$@" >/dev/null || alone=1
    jobs_started=$((jobs_started + 1))
    await_jobs $((alone ? 0 : lanes - 1))
    become $jobs_started "$@" </dev/null >"$scratch/$jobs_started.log" 2>&1 &
    running[$jobs_started]=$!
    [[ ! $alone ]] || await_jobs 0
}

jobs_started=0
for group in "$@"; do
    read -ra names <<<"$group"
    if { [[ $where == native ]] || (($# == 1)); } && runs_here "${names[0]}"; then
        for name in "${names[@]}"; do
            run_here "$name"
        done
    else
        start_job "${names[@]}"
    fi
done
await_jobs 0
[[ ${RAMPART_INNER:-} ]] || echo "Soft-RoCE ($where): $passed passed, $failed failed, $skipped skipped"
echo "$passed $failed $skipped" >"$totals"
((failed == 0 && passed > 0))
