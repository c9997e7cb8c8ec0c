# shellcheck shell=bash
# Common parts of the comparisons: options, entering a micro-VM, programs with a time limit, the results folder, pairs.
# Sourced by scripts/bench-connect and scripts/bench-data, never run by itself. bench.jq computes the figures.
#
# The sourcing script sets $me (its name, and that of lib/$me.jq), calls bench_main, and defines:
#   usage                      prints the help
#   own_options, parse_value   the names of its own options; the function that parses one: OPTION VALUE
#   inner_options              prints those options again, one word per line, for the run in the micro-VM
#   need_programs              ends with 3 if anything is missing
#   needs_device               true if the requested tests need an RDMA device
#   probe                      a small run of everything, not counted; begins with probe_rampart
#   first_results              prints the initial content of bench.json beyond the common part
#   run_program NAME [ARGS...] prints an object of sides: each with its figures, or {"error": why}
#   run_pairs                  runs all pairs, each with measure_pair and add_pair
# lib/$me.jq defines progress, which prints such an object as lines, and table, which makes bench.txt.
# shellcheck disable=SC2016  # a $ in single quotes is jq's
# shellcheck disable=SC2034,SC2154  # shared with the scripts that source this file

here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
top=${here%/*}
bin=${RAMPART_BIN:-$top/}
PATH=$PATH:/usr/sbin:/sbin # rdma(8), ss(8)
attempts=3

pairs=5
output=$top/results
memory=8G
environment=auto

# The running processes, the created files, and the place of the device.
child='' server='' scratch='' results='' address=''

die() {
    local status=$1
    shift
    printf '%s: %s\n' "$me" "$*" >&2
    exit "$status"
}

note() {
    printf '%s: %s\n' "$me" "$*" >&2
}

# jq with the definitions of lib/bench.jq and the script's own.
compute() { # FILTER [OPTIONS...] [FILE]
    local filter=$1
    shift
    jq -L "$here/lib" "include \"bench\"; include \"$me\"; $filter" "$@"
}

# ---- options

is_number() { # TEXT MAX
    [[ $1 =~ ^[1-9][0-9]{0,8}$ ]] && (($1 <= $2))
}

common_usage() {
    cat <<END_OF_USAGE
  --output DIR         parent of the results folder (results)
  --environment WHERE  native: on this machine's RDMA device; vm: in a Soft-RoCE micro-VM; auto: native if
                       there is an active device (auto)
  --memory SIZE        memory of the micro-VM ($memory)
  --help               this text

\`make $me\` builds what is needed and runs this; ARGS="--pairs 1" passes options. Results:
<DIR>/<UTC time>-$me/bench.json and bench.txt, updated after each pair.

Exit status: 0 everything ran, whether targets were met or not; 1 a program failed; 2 usage; 3 not possible
here (says why); 130, 143, 129 interrupted, with the results so far kept.
END_OF_USAGE
}

parse_common_value() { # OPTION VALUE
    case $1 in
    --pairs)
        is_number "$2" 1000 || die 2 "--pairs '$2' is not allowed (allowed: 1 to 1000)"
        pairs=$2
        ;;
    --output) output=$2 ;;
    --memory) memory=$2 ;;
    --environment)
        [[ $2 =~ ^(auto|native|vm)$ ]] ||
            die 2 "--environment '$2' is not allowed (allowed: auto, native, vm)"
        environment=$2
        ;;
    *) parse_value "$1" "$2" ;;
    esac
}

parse_options() {
    local known=" ${own_options[*]} --pairs --output --memory --environment "
    while (($# > 0)); do
        if [[ $1 == --help || $1 == -h ]]; then
            usage
            exit 0
        fi
        [[ $known == *" $1 "* ]] || die 2 "unknown argument '$1' (see --help)"
        [[ ${2:-} ]] || die 2 "$1 needs a value"
        parse_common_value "$1" "$2"
        shift 2
    done
}

# Parses a list of words without duplicates; sets list.
parse_list() { # OPTION TEXT
    [[ ,$2, != *,,* ]] || die 2 "$1 '$2' has a comma too many"
    IFS=, read -ra list <<<"$2"
    [[ ! $(printf '%s\n' "${list[@]}" | sort | uniq -d) ]] || die 2 "$1 '$2' names something twice"
}

# ---- where

need_commands() { # NAME...
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || die 3 "$name is missing; install it (make deps)"
    done
}

need_built() { # FILE...
    local name
    for name in "$@"; do
        [[ -x $name ]] || die 3 "$name is missing; build it (make $me does)"
    done
}

enter_vm() {
    local pass=() name own
    for name in RAMPART_BIN RAMPART_B; do
        [[ ! ${!name+set} ]] || pass+=(--env "$name")
    done
    mapfile -t own < <(inner_options)
    note "running over Soft-RoCE in a micro-VM"
    exec "$here/softroce" vm --memory "$memory" --share "$output" "${pass[@]}" -- "$here/$me" \
        --environment native --pairs "$pairs" --output "$output" "${own[@]}"
}

# ---- processes

# A descriptor that never becomes readable, to wait without starting a process.
pause() { # SECONDS
    read -rt "$1" <&"$never"
}

# Runs a program to its end, in the background so that signals are handled meanwhile. Returns its exit status, or 124
# when the time is up.
run_limited() { # SECONDS COMMAND...; redirect its output
    timeout -k 15 "$@" &
    child=$!
    wait "$child"
    local status=$?
    child=''
    return $status
}

stop() { # PID
    [[ $1 ]] || return 0
    kill -TERM "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}

stop_server() {
    stop "$server"
    server=''
}

# Waits until the started server listens.
await_server() { # PREDICATE...
    local end=$((SECONDS + 30))
    until "$@"; do
        ((SECONDS < end)) && kill -0 "$server" 2>/dev/null || return 1
        pause 0.05
    done
    return 0
}

# ---- figures of the programs

last_line() { # FILE...
    cat "$@" 2>/dev/null | grep -v '^[[:space:]]*$' | tail -n 1
}

failed() { # WHY
    jq -nc --arg why "$1" '{error: $why}'
}

# Prints the figure in a file, or the reason why there is none, which the filter raises.
figure() { # FILTER [OPTIONS...] FILE
    local filter=$1
    shift
    compute "try ($filter) catch {error: .}" -c "$@" 2>/dev/null || failed "its output cannot be read"
}

# On an emulated CPU, starting jq takes longer than many programs here, so this function avoids it if it can.
as_side() { # SIDE; reads what it gave, on one line
    local given
    read -r given
    printf '{"%s":%s}\n' "$1" "$given"
}

# A number in result, rounded down; 0 if there is none.
field() { # NAME
    if [[ $result =~ \"$1\":([0-9]+) ]]; then
        echo "${BASH_REMATCH[1]}"
    else
        echo 0
    fi
}

# Runs a function that sets result, and repeats it while that is an error. Reports the number of repeats, if any.
repeat_failed() { # NAME FUNCTION [ARGS...]
    local name=$1 repeats
    shift
    for ((repeats = 0; ; repeats++)); do
        "$@"
        stop_server
        [[ $result == *'"error"'* ]] || break
        note "$name failed: $(jq -r .error <<<"$result")"
        ((repeats < attempts - 1)) || break
    done
    ((repeats == 0)) || result="{\"repeats\":$repeats,${result#\{}"
}

# Exit statuses 1 and 4 are verdicts on figures, which do not matter here.
performance_test() { # SECONDS OPTIONS...; sets error
    local limit=$1 status
    shift
    error=''
    rm -f "$scratch/run.json"
    run_limited "$limit" "${bin}performance_test" --environment native --quiet --json "$scratch/run.json" \
        --output "$scratch/runs" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    rm -rf "$scratch/runs"
    if ((status != 0 && status != 1 && status != 4)) || [[ ! -s $scratch/run.json ]]; then
        error="performance_test ended with $status: $(last_line "$scratch/err")"
    fi
}

figure_of_run() { # FILTER [OPTIONS...]; uses error
    if [[ $error ]]; then
        failed "$error"
    else
        figure "$@" "$scratch/run.json"
    fi
}

# A small run that does not count: it shows the environment, and whether runs work at all.
probe_rampart() {
    local error over=tcp
    ! needs_device || over=rdma
    performance_test 300 --transport $over --steps 10 --duration 0.1 --warmup 0
    mv "$scratch/run.json" "$scratch/probe.json" 2>/dev/null
    [[ $over == rdma ]] || {
        [[ -s $scratch/probe.json ]] || die 3 "$error"
        return 0
    }
    address=$(jq -er .environment.clients.rdma_device.address "$scratch/probe.json" 2>/dev/null) ||
        die 3 "${error:-performance_test does not name an RDMA device}"
}

# ---- results

now_utc() {
    date -u +%Y-%m-%dT%H:%M:%SZ
}

# Applies the filter to bench.json and rewrites bench.txt; each file is replaced as a whole.
update() { # FILTER [OPTIONS...]
    compute "$@" "$results/bench.json" >"$results/bench.json.tmp" &&
        mv "$results/bench.json.tmp" "$results/bench.json" &&
        compute table -r "$results/bench.json" >"$results/bench.txt.tmp" &&
        mv "$results/bench.txt.tmp" "$results/bench.txt"
}

cannot_write() {
    die 3 "$results cannot be written to"
}

make_results() {
    local base n=1
    base=$output/$(date -u +%Y%m%dT%H%M%SZ)-$me
    results=$base
    mkdir -p "$output" || die 3 "$output cannot be made"
    until mkdir "$results" 2>/dev/null; do
        [[ -e $results ]] || die 3 "$results cannot be made"
        results=$base-$((++n))
    done
    jq -n --arg started_at "$(now_utc)" --argjson pairs "$pairs" --slurpfile run "$scratch/probe.json" \
        --slurpfile first <(first_results) '
        { schema_version: 1, started_at: $started_at, ended_at: null, status: "running",
          environment: $run[0].environment.clients, build: $run[0].build, config: { pairs: $pairs },
          failures: [] } * $first[0]' >"$results/bench.json" || cannot_write
    update '.environment.description = (.environment | environment_words)' || cannot_write
}

# ---- pairs

# Runs the programs, in the opposite order for even pairs. Sets order, and sides: the figures of each.
measure_pair() { # PAIR TITLE [ARGS...]
    local pair=$1 title=$2 program line
    shift 2
    order=("${programs[@]}")
    if ((pair % 2 == 0)); then
        order=()
        for program in "${programs[@]}"; do
            order=("$program" "${order[@]}")
        done
    fi
    sides=()
    for program in "${order[@]}"; do
        run_program "$program" "$@" >"$scratch/result"
        while read -r line; do
            note "$title, $line"
        done < <(compute progress -r "$scratch/result")
        sides+=("$(<"$scratch/result")")
    done
}

# Adds the result of measure_pair, which the filter gets as $order and $sides.
add_pair() { # FILTER [OPTIONS...]
    printf '%s\n' "${sides[@]}" >"$scratch/sides"
    printf '"%s"\n' "${order[@]}" >"$scratch/order"
    update "(\$side | add) as \$sides | $1" "${@:2}" --slurpfile side "$scratch/sides" \
        --slurpfile order "$scratch/order" || cannot_write
}

# Ends all started processes, however the script ends.
clean_up() {
    trap '' INT TERM HUP
    stop "$child"
    stop "$server"
    [[ ! $results || ! -e $results/bench.json ]] ||
        update '(if .status == "running" then .status = "interrupted" else . end) | .ended_at = $now' \
            --arg now "$(now_utc)"
    rm -rf "$scratch"
}

run_all() {
    mkdir -p "$top/build"
    scratch=$(mktemp -d "$top/build/$me.XXXXXX") || die 3 "$top/build cannot be written to"
    exec {never}<> <(:)
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
    probe
    make_results
    run_pairs
    update '.status = (if .failures == [] then "completed" else "failed" end)' || cannot_write
    cat "$results/bench.txt"
    printf 'Results: %s\n' "$results"
    jq -e '.failures == []' "$results/bench.json" >/dev/null
}

bench_main() { # OPTIONS...
    parse_options "$@"
    need_programs
    # A relative folder is relative to the caller's.
    mkdir -p "$output" || die 3 "$output cannot be made"
    output=$(cd -P "$output" && pwd -P)
    cd "$top" || exit 3
    if [[ $environment == auto ]]; then
        environment=native
        [[ ${RAMPART_VM:-} ]] || ! needs_device || "$here/softroce" status >/dev/null 2>&1 || environment=vm
    fi
    [[ $environment != vm ]] || enter_vm
    run_all
}
