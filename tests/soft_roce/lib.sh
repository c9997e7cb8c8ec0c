# shellcheck shell=bash
# Helpers of the tests over a real RDMA device. Sourced by the test scripts, which run.sh starts in the top folder of a
# machine (or micro-VM) that has one.
#
# A check prints `ok - NAME` or `not ok - NAME: WHY` and is counted; `finish` prints the tally as the last line, and a
# script that ends without it has failed. Tests wait for conditions, with a limit in seconds. Started processes are
# killed by their process id at the end.

# shellcheck disable=SC2034  # much of this is for the scripts that source it

set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin # rdma(8)
unset GITHUB_STEP_SUMMARY NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID # what tests run is no part of the job that runs them

bin=${RAMPART_BIN:-./}
programs=${RAMPART_B:-build/release}/tests/adversary
certs=build/certs
bad_certs=${RAMPART_B:-build/release}/tests/soft_roce/certs
script=$(basename "$0" .sh)

# Sets host_s: seconds by the host's clock. A micro-VM's clock may count instructions (scripts/softroce --icount).
look_at_clock() {
    host_s=$EPOCHSECONDS
    [[ ! ${RAMPART_VM:-} ]] || read -r host_s </sys/class/rtc/rtc0/since_epoch
}
look_at_clock
begun_s=$host_s

tmp=$(mktemp -d)
passed=0 failed=0 skipped=0 last_ended=
declare -A pid=() port=() rdma_ports=() metrics=() logs=() start_values=()
host=
tls_options=(--ca "$certs/ca.pem")
# The transport of clients: RAMPART_TRANSPORT, in scripts with a line `# transports` (run.sh). A script with a line
# `# here` may set it to tcp or tls before it sources this file. Servers with tcp and tls only have no device.
transport=${RAMPART_TRANSPORT:-rdma}
# With RAMPART_CONNECT=oob clients over RDMA connect out of band.
over=() serving=()
[[ ${RAMPART_CONNECT:-cm} == cm || $transport != rdma ]] || over=(--connect oob)
if [[ $transport != rdma ]]; then
    over=(--transport "$transport")
    serving=(--transports "$transport")
    # Several machines have addresses of their own (tests/nodes/lib.sh).
    [[ ${RAMPART_NODE:-} ]] || serving+=(--bind 127.0.0.1)
fi
# A descriptor that never becomes readable, to wait without starting a process.
mkfifo "$tmp/never"
exec {never}<>"$tmp/never"

clean_up() {
    local name
    for name in "${!pid[@]}"; do
        kill -9 "${pid[$name]}" 2>/dev/null
    done
    wait 2>/dev/null
    rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- checks

ok() { # NAME
    passed=$((passed + 1))
    [[ ! ${RAMPART_TIMES:-} ]] || look_at_clock
    printf 'ok - %s: %s\n' "$script" "$1${RAMPART_TIMES:+ ($((host_s - begun_s)) s)}"
}

# Prints the check and its reason, then the last lines (unless shown already) of the log of every running process and of
# the one that ended last.
declare -A shown=() # sizes of logs, by name
not_ok() { # NAME WHY
    local name size
    failed=$((failed + 1))
    printf 'not ok - %s: %s: %s\n' "$script" "$1" "${2//$'\n'/ | }"
    for name in "${!pid[@]}" $last_ended; do
        size=$(stat -c %s "${logs[$name]}" 2>/dev/null)
        [[ $size != "${shown[$name]:-0}" ]] || continue
        shown[$name]=$size
        tail -n 5 "${logs[$name]}" | sed "s/^/# log of $name: /"
    done
}

skip() { # NAME WHY
    skipped=$((skipped + 1))
    printf 'skip - %s: %s: %s\n' "$script" "$1" "$2"
}

finish() {
    look_at_clock
    printf '%s took %d s\n' "$script" $((host_s - begun_s))
    printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
    ((failed == 0))
    exit
}

is() { # NAME GOT WANTED
    if [[ $2 == "$3" ]]; then ok "$1"; else not_ok "$1" "got '$2', wanted '$3'"; fi
}

matches() { # NAME GOT EXTENDED_REGEX
    if [[ $2 =~ $3 ]]; then ok "$1"; else not_ok "$1" "got '$2', wanted /$3/"; fi
}

# The command must end with STATUS within $limit seconds, and its output, which goes to $output, must match.
gives() { # NAME STATUS EXTENDED_REGEX COMMAND...
    local name=$1 wanted=$2 regex=$3 status
    shift 3
    output=$(timeout -k 2 "${limit:-300}" "$@" 2>&1)
    status=$?
    if ((status != wanted)); then
        not_ok "$name" "exit status $status, not $wanted: $output"
    elif [[ ! $output =~ $regex ]]; then
        not_ok "$name" "said '$output', wanted /$regex/"
    else
        ok "$name"
    fi
}

# ---- waiting

pause() { # SECONDS; for the loops that look for a condition
    read -rt "$1" <&"$never"
}

# Waits until a command succeeds; after the limit, names it on stderr.
wait_until() { # LIMIT_S COMMAND...
    local limit_s=$1 end=$((SECONDS + $1))
    shift
    until "$@"; do
        if ((SECONDS > end)); then
            echo "# waited $limit_s s in vain for: $*" >&2
            return 1
        fi
        pause 0.1
    done
    return 0
}

# A process that has exited but was not waited for counts as gone too, because bash may notice late.
is_gone() { # NAME
    local line
    ! read -r line 2>/dev/null <"/proc/${pid[$1]}/stat" || [[ ${line##*) } == Z* ]]
}

has_line() { # FILE EXTENDED_REGEX
    grep -qE -- "$2" "$1" 2>/dev/null
}

# ---- processes

# Starts a program in the background; its output goes to ${logs[NAME]}. NAME is free again after end_of.
start() { # NAME COMMAND...
    local name=$1
    shift
    # With two processes of one name, the first would run for ever.
    if [[ ${pid[$name]:-} ]]; then
        not_ok "start '$name'" "another process has that name"
        finish
    fi
    logs[$name]=$tmp/$name.log
    rm -f "${logs[$name]}" # what the last one of that name said
    # Restores SIGINT, which background jobs ignore, even if this script ignores it too.
    env --default-signal=INT "$@" >"${logs[$name]}" 2>&1 &
    pid[$name]=$!
}

# Waits for the end of a process and sets $status. Kills it if it does not end in time; $status is then 124.
end_of() { # NAME LIMIT_S
    status=124
    if wait_until "$2" is_gone "$1"; then
        wait "${pid[$1]}" 2>/dev/null
        status=$?
    else
        # Shows where the process hangs: the state of each thread and its kernel function.
        (cd "/proc/${pid[$1]}/task" && grep -H . ./*/stat ./*/wchan ./*/stack) >>"${logs[$1]}" 2>/dev/null
        kill -9 "${pid[$1]}"
        wait "${pid[$1]}" 2>/dev/null
        status=124
    fi
    unset "pid[$1]"
    last_ended=$1
}

# A process must end with STATUS and its output must match.
ends() { # WHAT NAME LIMIT_S STATUS EXTENDED_REGEX
    local text
    end_of "$2" "$3"
    text=$(cat "${logs[$2]}")
    if ((status != $4)); then
        not_ok "$1" "exit status $status, not $4: $text"
    elif [[ ! $text =~ $5 ]]; then
        not_ok "$1" "said '$text', wanted /$5/"
    else
        ok "$1"
    fi
}

# Interrupts a ping, which must have got replies to all messages except perhaps the last.
loses_nothing() { # WHAT NAME [SIGNAL]
    local text regex='([0-9]+) messages sent, ([0-9]+) replies'
    kill "-${3:-INT}" "${pid[$2]}"
    end_of "$2" 60
    text=$(tail -n 4 "${logs[$2]}")
    if ((status == 0)) && [[ $text =~ $regex ]] && ((BASH_REMATCH[1] - BASH_REMATCH[2] <= 1)); then
        ok "$1"
    else
        not_ok "$1" "exit status $status: $text"
    fi
}

# ---- servers

server_ports=(--tls-port 0 --rdma-port 0)
server_files=(--cert "$certs/server.pem" --key "$certs/server.key" --ca "$certs/ca.pem")

# Starts rdma_server, on free ports unless $server_ports says otherwise, and waits until it is ready.
start_server() { # NAME OPTIONS...
    local name=$1 line
    shift
    start "$name" "${bin}rdma_server" "${server_ports[@]}" "${server_files[@]}" "${serving[@]}" "$@"
    if ! wait_until 60 has_line_or_gone "$name" '^rdma_server ready:' || is_gone "$name"; then
        not_ok "server '$name' becomes ready" "$(cat "${logs[$name]}")"
        finish
    fi
    line=$(grep '^rdma_server ready:' "${logs[$name]}")
    # With several rails, the address of the first; the port is the same on all.
    [[ $line =~ tls=([^ ,]*):([0-9]+)(,[^ ]*)?\ rdma_ports=([0-9,]+)\  ]]
    host=${BASH_REMATCH[1]}
    port[$name]=${BASH_REMATCH[2]}
    rdma_ports[$name]=${BASH_REMATCH[4]}
    [[ ! $line =~ \ metrics=(.*) ]] || metrics[$name]=${BASH_REMATCH[1]}
}

has_line_or_gone() { # NAME EXTENDED_REGEX
    has_line "${logs[$1]}" "$2" || is_gone "$1"
}

# Prints the metrics of a server with --metrics; ACCEPT is a header's value.
scrape() { # SERVER [ACCEPT]
    python3 -c 'import sys, urllib.request
request = urllib.request.Request("http://" + sys.argv[1] + "/metrics", headers={"Accept": sys.argv[2]})
sys.stdout.write(urllib.request.urlopen(request, timeout=60).read().decode())' "${metrics[$1]}" "${2:-*/*}"
}

stats() { # SERVER [OPTIONS...] TERM...
    local server=$1 options=()
    shift
    while [[ $1 == --* ]]; do
        options+=("$1")
        [[ $1 != --wait ]] || { options+=("$2") && shift; }
        shift
    done
    "$programs/stats" "${tls_options[@]}" "${options[@]}" "$host" "${port[$server]}" "$@"
}

# Checks that conditions on a server's statistics hold soon.
counted() { # NAME SERVER TERM...
    local name=$1 server=$2 text
    shift 2
    if text=$(stats "$server" --wait "${limit:-240}" "$@" 2>&1); then
        ok "$name"
    else
        not_ok "$name" "$text; failures: $(stats "$server" failures 2>&1 | tr -d ' \n')"
    fi
}

# Waits for conditions on a server's statistics, before a further check.
reaches() { # SERVER LIMIT_S TERM...
    local server=$1 limit=$2 text
    shift 2
    text=$(stats "$server" --wait "$limit" "$@" 2>&1) || not_ok "server '$server' reaches within $limit s: $*" "$text"
}

# Remembers the current resources of a server, for all_back.
remember_start() { # SERVER
    local values
    mapfile -t values < <(stats "$1" pools.buffers.posted pools.buffers.free pools.buffers.total)
    start_values[$1]="pools.buffers.posted=${values[0]} pools.buffers.free=${values[1]}"
    is "server '$1': every buffer is accounted for" "$((values[0] + values[1]))" "${values[2]}"
}

all_back() { # NAME SERVER
    local terms
    read -ra terms <<<"${start_values[$2]}"
    limit=${limit:-240} counted "$1" "$2" "${terms[@]}" clients.connected=0 clients.handshakes=0 clients.closing=0 \
        pools.qp.in_use=0 pools.qp.quarantined=0 pools.psns_in_use=0 pools.sessions=0 \
        pools.regions_in_use=0 pools.admitted=0
}

# Sends SIGTERM: the server must end soon with status 0.
stop_server() { # NAME
    kill -TERM "${pid[$1]}"
    ends "server '$1' stops in order when told to" "$1" 120 0 'stopped'
}

# ---- clients

# The command for `gives` and `start` that runs rdma_client against a server; more options and "$host", the
# command and its text follow.
use_client() { # SERVER
    rdma_client=("${bin}rdma_client" "${tls_options[@]}" "${over[@]}" --tls-port "${port[$1]}")
}

# Checks that a single ping gets a reply.
serves() { # NAME SERVER OPTIONS...
    local name=$1 server=$2
    shift 2
    gives "$name" 0 '1 messages sent, 1 replies, 0% loss' "${bin}rdma_client" "${tls_options[@]}" "${over[@]}" \
        --tls-port "${port[$server]}" --count 1 "$@" "$host" ping
}

# Starts a ping that runs until it is ended, and waits for its first reply.
start_ping() { # NAME SERVER OPTIONS...
    local name=$1 server=$2
    shift 2
    start "$name" "${bin}rdma_client" "${tls_options[@]}" "${over[@]}" --tls-port "${port[$server]}" "$@" "$host" ping
    { wait_until 60 has_line_or_gone "$name" 'seq=1 ' && ! is_gone "$name"; } ||
        not_ok "ping '$name' starts" "$(cat "${logs[$name]}")"
}

# ---- what a client that is connected feels: the round trips of the ping 'bystander'

# Starts the bystander, which sends every 4 ms.
start_bystander() { # SERVER
    start_ping bystander "$1" --interval 0.004
}

# The number of lines that the bystander has printed so far.
bystander_at() {
    wc -l <"${logs[bystander]}"
}

# Adds the round trips (us) of the lines after the first FROM to $tmp/KIND. A slow round trip also counts for the
# messages that could not be sent meanwhile: each would have waited for the rest of it.
collect() { # FROM KIND
    tail -n "+$(($1 + 1))" "${logs[bystander]}" | sed -n 's/.* time=\([0-9.]*\) us$/\1/p' |
        awk '{ for (t = $1; t > 0; t -= 4000) printf "%.0f\n", t }' >>"$tmp/$2"
}

# A percentile of the numbers in $tmp/KIND.
percentile() { # KIND PERCENT
    sort -n "$tmp/$1" | awk -v p="$2" '{ v[NR] = $1 } END { i = int(NR * p / 100 + 0.999999); print int(v[i < 1 ? 1 : i]) }'
}

tail_of() { # KIND UNIT
    printf '%s p50 %d, p99 %d, max %d %s of %d' "$1" "$(percentile "$1" 50)" "$(percentile "$1" 99)" \
        "$(percentile "$1" 100)" "$2" "$(wc -l <"$tmp/$1")"
}

# ---- hostile clients

# Refusals and rejections that rogues saw, by code; and the modes that have been run.
declare -A refusals=()
used=()

# Runs modes of the rogue, which makes a correct connection after each (--check). Lines of stdin: MODE[=ARG], and the
# expected answer as an extended regular expression; both are matched as a whole.
attack() { # SERVER ROGUE_OPTIONS...
    local server=$1 mode regex modes=() regexes=() got out i line
    local -A said=()
    shift
    while read -r mode regex; do
        modes+=("$mode")
        regexes+=("$regex")
        used+=("${mode%%=*}")
    done
    out=$(timeout -k 2 300 "$programs/rogue" --check "${tls_options[@]}" "$@" "$host" "${port[$server]}" \
        "${modes[@]}" 2>&1)
    while read -r line; do
        mode=${line%%:*}
        said[$mode]+="${said[$mode]:+; }${line#*: }"
    done <<<"$out"
    for i in "${!modes[@]}"; do
        mode=${modes[$i]}
        got=${said[$mode]:-}
        if [[ $got =~ ^(${regexes[$i]})$ ]]; then
            ok "attack $mode: $got"
        else
            not_ok "attack $mode" "got '${got:-nothing: $out}', wanted /${regexes[$i]}/"
        fi
    done
    count_refusals "$out"
}

# Wrong messages. ENDS follows the status of a message that the device refuses, because the server disconnects then.
attack_messages() { # SERVER ENDS ROGUE_OPTIONS...
    attack "$1" "${@:3}" <<END
message-type-0          disconnected
message-reply           disconnected
message-flags           disconnected
message-says-longer     disconnected
message-says-shorter    disconnected
message-cut             disconnected
message-empty           disconnected
message-beyond-grant    wc: remote_(operation|invalid_request)$2
message-huge            wc: remote_(operation|invalid_request)$2
joined-says-longer      disconnected
joined-cut              disconnected
joined-echo             disconnected
joined-asking           disconnected
joined-many             disconnected
credits                 disconnected
immediate-credits       disconnected
immediate-beyond-grant  wc: remote_(operation|invalid_request)$2
END
}

# One-sided requests within and beyond the attacker's memory.
attack_regions() { # SERVER ROGUE_OPTIONS...
    attack "$@" <<'END'
region-own              wc: success
region-read-over-end    wc: remote_access
region-write-over-end   wc: remote_access
region-read-before      wc: remote_access
region-write-before     wc: remote_access
region-read-at-end      wc: remote_access
region-key-plus-1       wc: remote_access
region-key-of-next      wc: remote_access
region-read-too-much    wc: remote_access
region-atomic           wc: success
region-atomic-at-end    wc: remote_access
region-atomic-unaligned (wc: remote_(access|invalid_request)|no completion)
region-read-other       wc: remote_access, the owner's data is safe
region-write-other      wc: remote_access, the owner's data is safe
region-atomic-other     wc: remote_access, the owner's data is safe
region-read-without     wc: remote_(access|invalid_request), the owner's data is safe
region-write-without    wc: remote_(access|invalid_request), the owner's data is safe
region-immediate        disconnected
region-immediate-other  wc: remote_access, the owner's data is safe
region-immediate-without wc: remote_(access|invalid_request), the owner's data is safe
region-guess=4          4 of 4 refused: remote_access
region-left             wc: remote_access
region-zeroed           the same memory, all zero
END
}

# Pushes. REGEX: how one ends that the attacker's own device refuses.
attack_pushes() { # SERVER REGEX ROGUE_OPTIONS...
    attack "$1" "${@:3}" <<END
push-own                pushed, the data is there
push-over-region-end    disconnected
push-far-from-region    disconnected
push-over-window-end    disconnected
push-far-from-window    disconnected
push-nothing            disconnected
push-too-much           disconnected
push-wrong-key          $2
push-outside-memory     $2
push-without-window     disconnected
push-cut                disconnected
push-credits            disconnected
END
}

# Adds up the refusals and rejections a rogue saw, by code.
count_refusals() { # TEXT
    local code
    while read -r code; do
        refusals[$code]=$((${refusals[$code]:-0} + 1))
    done < <(grep -oE '(refused|rejected): [a-z_]+' <<<"$1" | sed 's/.*: //')
    if [[ $1 =~ closed\ after\ ([0-9]+)\ times\ psn_conflict ]]; then
        refusals[psn_conflict]=$((${refusals[psn_conflict]:-0} + BASH_REMATCH[1]))
    fi
}

# ---- runs of performance_test

results=$tmp/results

# True if the clients of a run begin to connect. The initial state of the server is known then: others may use it.
has_begun() { # NAME
    grep -qs '"connecting"' "$results"/*-"$1"/events.ndjson || is_gone "$1"
}

# The machine that runs the tests may lose CPU time to others; with this, what a run finds does not depend on that.
steal=(--max-steal 100)

# Starts performance_test against a server, or with one of its own; run.json goes to $tmp/NAME.json. With report=on in
# front of the call the run makes its report; with floor=5 clients connect one at a time before the first step and after
# the last.
start_run() { # NAME SERVER|own OPTIONS...
    local name=$1 server=$2 target=(--environment native)
    shift 2
    [[ $server == own ]] || target=("${tls_options[@]}" --server "$host" --tls-port "${port[$server]}")
    start "$name" "${bin}performance_test" "${target[@]}" "${over[@]}" "${steal[@]}" --quiet --verify --report "${report:-off}" --floor "${floor:-0}" \
        --output "$results" --name "$name" --json "$tmp/$name.json" "$@"
}

# Starts a run and waits until its clients begin to connect.
load() { # NAME SERVER|own OPTIONS...
    start_run "$@"
    wait_until 60 has_begun "$1" || not_ok "run '$1' begins" "$(<"${logs[$1]}")"
}

measures() { # NAME; the run's clients send, and are measured, or it has ended
    grep -qs '"measuring"' "$results"/*-"$1"/events.ndjson || is_gone "$1"
}

begins_measuring() { # NAME
    wait_until 240 measures "$1" || not_ok "run '$1' measures" "$(<"${logs[$1]}")"
}

# Conditions for a run without failures. Connection times are not judged on software RDMA; over sockets they are, but a
# slow machine may miss them, so their verdict is ignored, whatever it is. All other criteria must pass. Validity flags that a busy
# machine can cause are allowed; test_breaks.sh tests clock_hole.
well=('.run.status == "completed"' '[.steps[].failures[]] == []'
    '[.steps[] | .target_clients - (.attempted, .connected_held, .server_connected)] | unique == [0]'
    '[.steps[] | .failed, .dropped] | unique == [0]' '[.steps[] | .psn_verified != null and .psn_verified < .target_clients] | any == false'
    '[.verdict[] | select(.result != "pass") | .result + " " + .criterion[:15]] -
      ["not_judged connection time", if .config.transport == "rdma" then empty else
        "fail connection time", "inconclusive connection time" end] == []'
    '[.steps[].validity[]] - ["not_steady", "too_short", "generator_saturated", "littles_law_violated",
      "clients_come_and_go", "behind_schedule", "clock_hole", "cpu_stolen", "cpu_throttled",
      "server_and_generator_share_the_machine"] == []')

# Runs performance_test to its end, within $limit seconds. False, after a failed check, if it does not end with status
# 0. Over sockets statuses 1 and 4 are accepted, because connection times may cause them: they fail, or are too few to
# tell. `well` finds all other criteria that did not pass.
run_to_end() { # NAME SERVER|own OPTIONS...
    # Nothing should fail in these runs, so the ACK timeout tolerates a peer that waits two seconds for a processor.
    # `ack_timeout=` in front of the call keeps the program's default.
    local ack=${ack_timeout-1s}
    local patient=(--ack-timeout "$ack")
    [[ $ack && $transport == rdma && " $* " != *' --ack-timeout '* && " $* " != *transport* && " $* " != *--suite* ]] || patient=()
    # Steps may also take long to connect.
    [[ " $* " == *' --step-timeout '* ]] || patient+=(--step-timeout 300)
    start_run "$@" "${patient[@]}"
    end_of "$1" "${limit:-300}"
    ((${#over[@]} == 0 || (status != 1 && status != 4))) || status=0
    ((status == 0)) || not_ok "run '$1' comes to its end" "exit status $status: $(<"${logs[$1]}")"
    return $((status != 0))
}

# Runs performance_test and checks that all went well.
loads() { # NAME SERVER|own OPTIONS...
    run_to_end "$@" &&
        holds "run '$1': all clients held, none failed, PSNs read back, server's pools restored" "$1" "${well[@]}"
}

# Starts a search, or another run without --verify, in the background.
search() { # NAME SERVER|own OPTIONS...
    local name=$1 server=$2
    shift 2
    if [[ $server != own ]]; then
        set -- --server "$host" --tls-port "${port[$server]}" --ca "$certs/ca.pem" --server-name localhost "$@"
    fi
    start "$name" "${bin}performance_test" --environment native --quiet --report off --output "$tmp" --name "$name" \
        --json "$tmp/$name.json" --warmup 0.1 "${over[@]}" "${steal[@]}" "$@"
}

# Checks conditions on values of a run.json.
run_says() { # NAME RUN TERM...
    local name=$1 file=$tmp/$2.json text
    shift 2
    if text=$("$programs/stats" --file "$file" "$@" 2>&1); then ok "$name"; else not_ok "$name" "$text"; fi
}

run_value() { # RUN PATH
    "$programs/stats" --file "$tmp/$1.json" "$2"
}

# Checks conditions in jq's language on a run.json. `one`, `two` and `three` are the first steps.
holds() { # NAME RUN CONDITION...
    local name=$1 file=$tmp/$2.json defs='def one: .steps[0]; def two: .steps[1]; def three: .steps[2];' all text i why=''
    shift 2
    all=$(printf '(%s),' "$@")
    # The numbers of the failed conditions, or the error in a condition or in the file.
    if ! text=$(jq -c "$defs [${all%,}] | map(. == true) | indices(false)" "$file" 2>&1); then
        why=$text
    elif [[ $text != '[]' ]]; then
        for i in ${text//[^0-9]/ }; do
            i=${*:i+1:1}
            why+="not $i but $(jq -c "$defs ${i%% [=<>]*}" "$file" 2>/dev/null | head -c 500); "
        done
        [[ $why ]] || why="jq said '$text'"
    fi
    if [[ ! $why ]]; then ok "$name"; else not_ok "$name" "$why"; fi
}

# Makes a run with one thread and checks that all went well, something moved, nothing was corrupt, and the conditions
# hold. The server is that of $at, with one thread too; without $at (which takes twice as long) the run has its own.
# Unless the options differ, it measures 100 operations per client, as many on a slow machine as on a fast one.
moves() { # NAME RUN "OPTIONS" [CONDITION...]
    local name=$1 run=$2 options=$3
    shift 3
    [[ $options =~ --(iterations|duration|cycles) ]] || options+=" --iterations 100"
    [[ $options == *--iterations* ]] || options+=" --warmup 0.1"
    [[ ${at:-} ]] || options+=" --server-threads 1"
    # shellcheck disable=SC2086  # options and their values
    run_to_end "$run" "${at:-own}" --threads 1 $options && holds "$name" "$run" "${well[@]}" \
        '[.steps[] | .throughput_msgs_per_s > 0] | all' '[.steps[].verified | .corrupt, .server_corrupt] | unique == [0]' "$@"
}
