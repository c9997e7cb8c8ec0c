#!/bin/bash
# Wrong use of the three programs: exit status 2, and one line that names the argument and the allowed values. Needs no
# RDMA device; without one, the programs must say what to do about that.

. tests/soft_roce/lib.sh

wrong() { # REGEX PROGRAM ARGUMENTS...
    local regex=$1 program=$2
    shift 2
    gives "wrong use: $program $*" 2 "^$program: ${regex}[^"$'\n'"]*\$" "$bin$program" "$@"
}

for program in rdma_server rdma_client performance_test; do
    gives "$program --help" 0 "^Usage: $program .*--log-level LEVEL.*Exit status: 0 " "$bin$program" --help all
    gives "$program --version" 0 "^$program [0-9]" "$bin$program" --version
    wrong '--polll: unknown option; did you mean --poll\?' $program --polll
    wrong "--poll: sometimes is not allowed; allowed: event, busy or adaptive" $program --poll=sometimes
    wrong '--tls-port: 65536 is not allowed; allowed: [01] to 65535' $program --tls-port 65536
    wrong '--ca: ' $program --ca
    wrong '--verify: ' $program --verify --verify
done
wrong '--max-clients: 0 is not allowed; allowed: 1 to 200000' rdma_server --max-clients 0
wrong '--credits: ' rdma_server --credits ten
wrong "--bind: 'here' is not an IPv4 or IPv6 address" rdma_server --bind here
wrong '--bind: 0.0.0.0 is not allowed' rdma_server --bind 0.0.0.0
wrong "--device: 'a,,b' has an empty name; allowed: 1 to 8 different names" rdma_server --device a,,b
wrong "--device: 'a,b,c,d,e,f,g,h,i' has too many names; allowed: 1 to 8" rdma_server --device a,b,c,d,e,f,g,h,i
wrong "--bind: '::1,::1' has a name twice" rdma_server --bind ::1,::1
wrong '--device and --bind: the lists have 2 and 1 entries; allowed: an address for each device' \
    rdma_server --device a,b --bind 10.77.0.1
wrong '--rdma-port: .*ports above 65535' rdma_server --threads 4 --rdma-port 65534
wrong '--cert: needs --key' rdma_server --cert x
wrong 'now: no operands are taken' rdma_server now
wrong 'HOST is missing' rdma_client
wrong 'a command is missing; allowed: ping, send, write, read, info' rdma_client 10.77.0.1
wrong "'pong' is not a command" rdma_client 10.77.0.1 pong
wrong 'send and write take one TEXT' rdma_client 10.77.0.1 send
wrong 'this command takes no operand' rdma_client 10.77.0.1 info now
wrong '--count cannot be combined with info' rdma_client --count 3 10.77.0.1 info
wrong '--key: needs --cert' rdma_client --key x 10.77.0.1 info
wrong '--clients: 0 is not allowed; allowed: 1 to 100000' performance_test --clients 0
wrong '--steps: ' performance_test --steps 10,,20
wrong '--clients: cannot be combined with --steps' performance_test --steps 10 --clients 20
wrong '(--tls-port|--server)' performance_test --tls-port 99
wrong '--duration: ' performance_test --duration -3
wrong "--name: 'a/b' is not allowed" performance_test --name a/b
wrong '--workload: x is not allowed; allowed: echo, pingpong, small, .*connect or idle' performance_test --workload x
wrong '--active: 0 is not allowed; allowed: 1 to 100000' performance_test --active 0
wrong '--active: cannot be combined with this --workload' performance_test --active 5 --workload idle
wrong '--active: cannot be combined with this --workload' performance_test --active 5 --workload connect
wrong '--message-size: 15 is not allowed with --workload echo; allowed: 16 to 1048576' performance_test --message-size 64,15
wrong "--mix: '1:2' is not allowed" performance_test --workload mixed --mix 1:2
wrong '--mix: needs --workload mixed' performance_test --mix 1:2:3
wrong '--rate: cannot be combined with --rate-per-client' performance_test --rate 1 --rate-per-client 1
wrong "--inline: 'on' is not allowed; allowed: auto, off" performance_test --inline on
wrong "--cpu-list: '1-' is not allowed" rdma_server --cpu-list 1-
wrong "--server-cpu-list: '1-' is not allowed" performance_test --server-cpu-list 1-
wrong '--cpu-list: cannot be combined with --numa auto' rdma_server --cpu-list 1 --numa auto
wrong "--compare: 'inline' is not allowed" performance_test --compare inline
wrong '--compare: clients cannot be compared' performance_test --compare clients=1,2
wrong "--compare: --inline: 'x' is not allowed" performance_test --compare inline=off,x
wrong '--compare: cannot be combined with --inline' performance_test --compare inline=off,auto --inline off
wrong '--compare-set: give it two to 8 times' performance_test --compare-set a:inline=off
wrong '--compare: 64 combinations in 5 rounds are too many runs; allowed: 64 combinations and 200 runs' performance_test \
    --compare post-list=1,2,3,4,5,6,7,8 --compare signal-every=0,1,2,3,4,5,6,7
wrong '--trace-max: needs --trace' performance_test --trace-max 5
wrong '--cycles: needs --churn' performance_test --cycles 10
wrong '--cycles: needs --churn' performance_test --cycles 10 --churn 0
wrong '--cycles: 0 is not allowed; allowed: 1 to 1000000000' performance_test --churn 5 --cycles 0
wrong '--churn: -1 is not a whole number; allowed: 0 to 1000000' performance_test --churn -1
wrong '--churn: 1000001 is not allowed; allowed: 0 to 1000000' performance_test --churn 1000001
wrong '--connect-retries: 1001 is not allowed; allowed: 0 to 1000' performance_test --connect-retries 1001
wrong '--phased: value given; allowed: no value' performance_test --phased=yes
wrong '--tls-resume: value given; allowed: no value' performance_test --tls-resume=on
wrong '--ticket-rotation: 0 is not allowed; allowed: 1s to 24h' rdma_server --ticket-rotation 0
printf 'cert = a\n' >"$tmp/needs.conf"
wrong "$tmp/needs.conf:1: --cert: needs --key" rdma_server --config "$tmp/needs.conf"
printf '# comment\nmax-clients = 0\n' >"$tmp/value.conf"
wrong "$tmp/value.conf:2: --max-clients: 0 is not allowed; allowed: 1 to 200000" rdma_server --config "$tmp/value.conf"
wrong '--config: /: cannot read it: not a regular file' rdma_server --config /
# Every commented option of the example is one. The last line shows that the lines before it were read.
{ sed -n 's/^#\([a-z]\)/\1/p' deploy/systemd/server.conf; echo nonsense; } >"$tmp/example.conf"
wrong "$tmp/example.conf:$(wc -l <"$tmp/example.conf"): nonsense: unknown option \(see --help\)" \
    rdma_server --config "$tmp/example.conf"
wrong '--ticket-rotation: 25h is not allowed; allowed: 1s to 24h' rdma_server --ticket-rotation 25h
wrong '--tls-resume: maybe is not allowed; allowed: off or on' rdma_server --tls-resume maybe
while read -r program option value; do
    wrong "$option: given twice" "$program" "$option" ${value:+"$value"} "$option" ${value:+"$value"}
done <<'END'
performance_test --workload idle
performance_test --active 5
performance_test --churn 5
performance_test --cycles 5
performance_test --connect-retries 5
performance_test --phased
performance_test --tls-resume
rdma_server --tls-resume off
rdma_server --ticket-rotation 60
END

if [[ ! -e /sys/class/infiniband ]] || [[ ! $(ls /sys/class/infiniband) ]]; then
    no_device='no RDMA device.*scripts/softroce'
    gives "no RDMA device: rdma_server says what to do" 3 "$no_device" "${bin}rdma_server" "${server_files[@]}"
    gives "no RDMA device: rdma_client says what to do" 3 "$no_device" \
        "${bin}rdma_client" "${tls_options[@]}" 127.0.0.1 ping
    gives "no RDMA device: performance_test says what to do" 3 "$no_device" \
        "${bin}performance_test" --environment native --output "$tmp/results"
fi

# ---- scripts/check is told to end while tests run on both of its sides

mkdir -p "$tmp/tree/scripts"
cp scripts/check "$tmp/tree/scripts"
cat >"$tmp/tree/Makefile" <<'END'
# A test like any other: a shell that waits for what it started.
check-soft-roce check-bench:
	@sleep 600 & echo $$$$ $$! >$@.tmp && mv $@.tmp $@.pids; wait
.DEFAULT:
	@:
END

# True if no process is left that a target of that Makefile started.
# shellcheck disable=SC2317  # wait_until calls it
ended() { # TARGET
    local pids
    read -ra pids <"$tmp/tree/$1.pids" && ! kill -0 "${pids[0]}" 2>/dev/null && ! kill -0 "${pids[1]}" 2>/dev/null
}

start check "$tmp/tree/scripts/check"
for target in check-soft-roce check-bench; do
    wait_until 60 test -e "$tmp/tree/$target.pids" || not_ok "scripts/check runs $target" "$(<"${logs[check]}")"
done
kill -TERM "${pid[check]}"
ends "scripts/check: SIGTERM ends it" check 60 143 '== Soft-RoCE'
for target in check-soft-roce check-bench; do
    if wait_until 10 ended $target; then
        ok "scripts/check: SIGTERM ends $target, too"
    else
        not_ok "scripts/check: SIGTERM ends $target, too" "processes $(<"$tmp/tree/$target.pids") are left"
    fi
done
finish
