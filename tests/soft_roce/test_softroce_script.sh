#!/bin/bash
# Tests scripts/softroce: what it takes into the micro-VM and brings back, and how it ends. Boots the VM several times,
# sometimes in parallel; takes about half a minute on an idle machine.
# shellcheck disable=SC2016  # much here is for the guest to expand
set -uo pipefail
# Job control, because without it a script's background jobs ignore SIGINT.
set -m

here=$(cd -P "$(dirname "$0")/../.." && pwd -P)
cd "$here" || exit 1
softroce=$here/scripts/softroce
passed=0 failed=0
mkdir -p build
work=$(mktemp -d "$here/build/test_softroce.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# check NAME COMMAND...: passes if the command succeeds; otherwise the command's output is the reason.
check() {
    local name=$1
    shift
    if "$@" >"$work/why" 2>&1; then
        passed=$((passed + 1))
        echo "ok - $name"
    else
        failed=$((failed + 1))
        echo "not ok - $name: $* $(tr '\n' ' ' <"$work/why")"
    fi
}

is() { # GOT WANTED
    [[ $1 == "$2" ]] || { printf 'got "%s", wanted "%s"' "$1" "$2" && false; }
}

contains() { # FILE TEXT
    grep -qF -- "$2" "$1" || { printf 'no "%s" in: ' "$2" && tail -n 20 "$1" && false; }
}

# await SECONDS COMMAND...: waits until the command succeeds.
await() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.05
    done
}

gone() { # PID...
    local pid
    for pid in "$@"; do
        # A zombie counts as ended: only its parent has not collected it.
        ! grep -qs '^State:[[:space:]]*[^Z]' "/proc/$pid/status" || return 1
    done
}

test_usage() {
    local case_ status
    for case_ in 'vm --cpus 0 true|1 to 64' 'vm --cpus|needs a value' 'vm --icount --cpus 2 true|allowed: --cpus 1' \
        'vm --icount --nodes 2 true|not allowed with --nodes' 'vm --memory lots true|8192M' \
        'vm --memory 8 true|8192M' 'vm --rails 0 true|1 to 8' 'vm --rails 9 true|1 to 8' \
        'vm --nodes 17 true|1 to 16' 'vm --nodes|needs a value' 'vm --on 2 true true|--nodes 2' \
        'vm --nodes 3 --on 4 true true|1 to 3' 'vm --on two true true|1 to 16' 'vm --on 2|a node and a command' \
        'vm --nodes 2 --netem lossy true|tc-netem(8)' 'vm --nodes 2 --netem 3: true|tc-netem(8)' \
        'vm --timeout soon true|1 and more' 'vm --accel fast true|auto, kvm, tcg' \
        'vm --env 1x=2 true|NAME=VALUE' 'vm --nonsense true|--memory' 'vm --tty true|terminal' \
        'up nonsense|--netdev IF' 'netns true|netns --' 'netns --|a command' \
        'netns --check x|no other argument' 'module x|no argument' 'down nonsense|no argument' 'sideways|status' \
        '|status'; do
        # shellcheck disable=SC2086  # these are words
        "$softroce" ${case_%%|*} </dev/null >"$work/out" 2>"$work/err"
        status=$?
        check "usage: '${case_%%|*}' is refused" is $status 2
        check "usage: '${case_%%|*}' says what is allowed" contains "$work/err" "${case_#*|}"
        check "usage: '${case_%%|*}' takes one line" is "$(wc -l <"$work/err")" 1
    done
    "$softroce" vm --nodes 2 --netem '3:loss 1%' true </dev/null 2>"$work/err"
    check "--netem for a node that is not there: status" is $? 2
    check "--netem for a node that is not there: message" contains "$work/err" "1 to 2"
    "$softroce" vm --memory 9000G true </dev/null 2>"$work/err"
    check "more memory than there is: status" is $? 3
    check "more memory than there is: message" contains "$work/err" "not enough memory"
    "$softroce" --help >"$work/out"
    check "help: status" is $? 0
    check "help: on stdout" contains "$work/out" "--timeout N"
}

# Tests almost everything that one boot can show. The guest prints key=value lines, which are checked here.
test_one_boot() {
    local value started_at
    cat >"$work/probe.sh" <<'END'
value() { echo "$1=$2"; }
value cwd "$(pwd)"
value given "$GIVEN"
value passed "$PASSED"
value unlisted "${UNLISTED-unset}"
value home "$HOME"
value vm "$RAMPART_VM"
value accelerator "$RAMPART_ACCELERATOR"
value files "$(ulimit -n)/$(ulimit -Hn)"
value locked "$(ulimit -l)"
value clock "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
value arguments "$#:$1:$2"
value skew "$(date +%s)"
value root "$(touch /etc/softroce-test 2>&1)"
value tmp "$(echo x >/tmp/x && cat /tmp/x)"
value input "$(cat)"
value cpus "$(nproc)"
value memory "$(awk '$1 == "MemTotal:" { print int($2 / 1024) }' /proc/meminfo)"
echo "from the guest" >written
cp "$(type -P true)" program && ./program && value exec yes
ibv_devinfo -d rxe0 >devinfo
rping -s -a 10.77.0.1 -C 3 >/dev/null 2>&1 &
server=$!
tries=0
until rdma resource show cm_id | grep -q LISTEN; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || break
    sleep 0.05
done
rping -c -a 10.77.0.1 -C 3 >rping.out 2>&1
value rping_client $?
wait $server
value rping_server $?
echo "to stderr" >&2
sleep 1000 &
exit 37
END
    cd "$work" || exit 1
    started_at=$(date +%s)
    printf 'line 1\nline 2' | UNLISTED=1 PASSED="it's here" "$softroce" vm --timeout 300 --memory 1G --cpus 2 \
        --env PASSED --env "GIVEN=a  'b\"
c=d" --env NOT_SET_ANYWHERE -- bash ./probe.sh 'two words' '$HOME' >"$work/out" 2>"$work/err"
    check "exit status is the command's" is $? 37
    cd "$here" || exit 1
    value() { sed -n "s/^$1=//p" "$work/out"; }
    check "stderr arrives on stderr, alone" is "$(cat "$work/err")" "to stderr"
    check "stdout has nothing of stderr" is "$(grep -c stderr "$work/out")" 0
    check "boot messages are not on stdout" is "$(head -n 1 "$work/out" | cut -c 1-4)" "cwd="
    check "the command runs in the same directory" is "$(value cwd)" "$work"
    check "--env NAME=VALUE, to the byte" is "$(grep -A 1 '^given=' "$work/out")" "given=a  'b\"
c=d"
    check "--env NAME" is "$(value passed)" "it's here"
    check "other variables stay out" is "$(value unlisted)" unset
    check "HOME is passed" is "$(value home)" "$HOME"
    check "RAMPART_VM" is "$(value vm)" 1
    check "RAMPART_ACCELERATOR" grep -qE '^accelerator=(tcg|kvm)$' "$work/out"
    check "arguments stay as they are" is "$(value arguments)" '2:two words:$HOME'
    check "stdin arrives, with its end" is "$(grep -A 1 '^input=' "$work/out")" 'input=line 1
line 2'
    check "a million descriptors" is "$(value files)" 1048576/1048576
    check "memory can be locked" is "$(value locked)" unlimited
    check "the clock is the processor's, read without a system call" grep -qE '^clock=tsc' "$work/out"
    value=$(value skew)
    check "the guest's clock is the host's" test $((value - started_at)) -ge 0 -a \
        $((value - started_at)) -le $(($(date +%s) - started_at))
    check "the rest of the host is read-only" contains "$work/out" "Read-only file system"
    check "and was not written to" test ! -e /etc/softroce-test
    check "/tmp is the guest's own" is "$(value tmp)" x
    check "--cpus" is "$(value cpus)" 2
    value=$(value memory)
    check "--memory" test "${value:-0}" -gt 800 -a "${value:-0}" -le 1024
    check "what the guest writes is on the host" is "$(cat "$work/written" 2>&1)" "from the guest"
    check "and belongs to the caller" is "$(stat -c %u "$work/written" 2>&1)" "$(id -u)"
    check "programs run from the working directory" is "$(value exec)" yes
    check "the RDMA port is active" contains "$work/devinfo" PORT_ACTIVE
    check "the path MTU is 4096" grep -qE 'active_mtu:[[:space:]]*4096' "$work/devinfo"
    check "rping: client" is "$(value rping_client)" 0
    check "rping: server" is "$(value rping_server)" 0
}

# Three machines at once must not disturb each other.
test_streams() {
    local bytes=20000000 first second third
    head -c $bytes /dev/urandom >"$work/random"
    "$softroce" vm --timeout 300 -- tee /dev/stderr <"$work/random" >"$work/copy.out" \
        2>"$work/copy.err" &
    first=$!
    "$softroce" vm --timeout 300 -- sh -c 'i=0; while [ $i -lt 200 ]; do echo x; i=$((i + 1)); done' \
        </dev/null >"$work/short" 2>/dev/null &
    second=$!
    "$softroce" vm --timeout 300 -- sh -c 'yes; echo "yes ended with $?" >&2' </dev/null \
        2>"$work/yes" | head -n 1 >"$work/head" &
    third=$!
    wait $first
    check "20 MB through: status" is $? 0
    check "20 MB through stdin and stdout, to the byte" cmp "$work/random" "$work/copy.out"
    check "20 MB through stderr, to the byte" cmp "$work/random" "$work/copy.err"
    wait $second
    check "200 short writes: all there" is "$(wc -l <"$work/short")" 200
    wait $third
    check "a reader that goes away" is "$(cat "$work/head")" y
    check "is SIGPIPE for the command" contains "$work/yes" "yes ended with 141"
    rm -f "$work/random" "$work/copy.out" "$work/copy.err"
}

# Each rail has a device in a network of its own; the host's name belongs to the first one.
test_rails() {
    local rail
    "$softroce" vm --timeout 300 --rails 2 -- sh -c 'rdma link; ip -o address show; getent hosts rampart-vm;
        cat /sys/class/net/rampart*/mtu' </dev/null >"$work/out" 2>"$work/err"
    check "--rails 2: status" is $? 0
    check "--rails 2: two active devices" is "$(grep -c ' state ACTIVE ' "$work/out")" 2
    for rail in 0 1; do
        check "--rails 2: rxe$rail on rampart$rail" grep -qE "rxe$rail/1 state ACTIVE .*netdev rampart$rail" \
            "$work/out"
        check "--rails 2: address of rampart$rail" contains "$work/out" "10.7$((7 + rail)).0.1/16"
    done
    check "--rails 2: the host's name" grep -qE '^10\.77\.0\.1[[:space:]]+rampart-vm' "$work/out"
    check "--rails 2: jumbo frames on both" is "$(grep -cx 9000 "$work/out")" 2
}

# Two machines on a wire: packets cross it, and netem and a pulled cable work.
test_nodes() {
    local node
    mkdir "$work/nodes"
    cat >"$work/nodes/node.sh" <<'END'
cd "${0%/*}" || exit 1
echo "said by $RAMPART_NODE"
exec >"out.$RAMPART_NODE"
hostname
printenv RAMPART_NODE RAMPART_NODES RAMPART_PEER
cat /sys/class/net/rampart0/mtu
cat
rdma link
tc qdisc show dev rampart0
if [ "$RAMPART_NODE" = 2 ]; then
    trap 'echo "told to end"; exit 0' TERM
    rping -s -a 10.77.0.2 -C 3 &
    wait $!
    echo "rping: $?" && touch served
    while :; do sleep 0.1; done
fi
until rping -c -a "$RAMPART_PEER" -C 3; do sleep 0.1; done
until [ -e served ]; do sleep 0.1; done
tc qdisc add dev rampart0 root netem loss 100%
busybox ping -q -c 1 -W 1 rampart-node2 >/dev/null || echo "all is lost"
tc qdisc del dev rampart0 root
echo off >/run/softroce/cable
until rdma link | grep -q 'state DOWN'; do sleep 0.1; done
busybox ping -q -c 1 -W 1 rampart-node2 >/dev/null || echo "the cable is pulled"
echo on >/run/softroce/cable
until rdma link | grep -q 'state ACTIVE' && busybox ping -q -c 1 -W 1 rampart-node2 >/dev/null; do sleep 0.1; done
echo "the cable is back"
exit 5
END
    TMPDIR=$work "$softroce" vm --timeout 300 --nodes 2 --netem '2:delay 1ms' --memory 700M --cpus 1 -- sh "$work/nodes/node.sh" \
        <<<"for node 1" >"$work/out" 2>"$work/err"
    check "--nodes 2: the status is node 1's" is $? 5
    for node in 1 2; do
        check "--nodes 2: name and environment of node $node" is "$(head -n 5 "$work/nodes/out.$node" | tr '\n' ' ')" \
            "rampart-node$node $node 2 10.77.0.$((3 - node)) 9000 "
        check "--nodes 2: node $node has an active device" grep -q 'rxe0/1 state ACTIVE' "$work/nodes/out.$node"
    done
    check "--nodes 2: stdout is node 1's" is "$(<"$work/out")" "said by 1"
    check "--nodes 2: what node 2 says is on stderr, with its name" is "$(grep -x 'node 2: said by 2' "$work/err")" \
        "node 2: said by 2"
    check "--netem 2:...: node 2 has it" contains "$work/nodes/out.2" "netem"
    check "--netem 2:...: node 1 has not" is "$(grep -c netem "$work/nodes/out.1")" 0
    check "--nodes 2: stdin is node 1's" contains "$work/nodes/out.1" "for node 1"
    check "--nodes 2: and not node 2's" is "$(grep -c "for node 1" "$work/nodes/out.2")" 0
    check "--nodes 2: rping over the wire" contains "$work/nodes/out.2" "rping: 0"
    check "--nodes 2: netem" contains "$work/nodes/out.1" "all is lost"
    check "--nodes 2: a cable is pulled" contains "$work/nodes/out.1" "the cable is pulled"
    check "--nodes 2: and put back" contains "$work/nodes/out.1" "the cable is back"
    check "--nodes 2: node 2 is told to end after node 1" contains "$work/nodes/out.2" "told to end"
    check "--nodes 2: nothing is left in the scratch directory" is "$(find "$work" -maxdepth 1 -name 'softroce.*')" ''
}

# Node 3 loses power, which does not end the others; then node 2 fails, which does. Then a script is killed.
test_nodes_end() {
    local script ours
    "$softroce" vm --timeout 300 --nodes 3 --memory 600M \
        --on 1 'trap "echo terminated; exit 0" TERM; while :; do sleep 0.1; done' \
        --on 2 'while busybox ping -q -c 1 -W 1 rampart-node3 >/dev/null; do sleep 0.1; done
            busybox ping -q -c 1 -W 5 rampart-node1 >/dev/null && exit 9' \
        -- sh -c 'echo b >/proc/sysrq-trigger' </dev/null >"$work/out" 2>"$work/err"
    check "--nodes 3: node 2 fails: its status" is $? 9
    check "--nodes 3: node 2 fails: node 1 is told to end" contains "$work/out" terminated
    check "--nodes 3: node 2 fails: it is said" contains "$work/err" "node 2 ended with status 9"
    check "--nodes 3: node 3 has lost its power: it is said" contains "$work/err" \
        "node 3: softroce: the micro-VM is gone, as if its power had failed"
    check "--nodes 3: node 3 has lost its power: no failure" is "$(grep -c 'node 3 ended with' "$work/err")" 0
    : >"$work/out"
    TMPDIR=$work "$softroce" vm --timeout 300 --nodes 2 --memory 700M --cpus 1 --on 2 'sleep 1000' -- \
        sh -c 'echo ready; sleep 1000' </dev/null >"$work/out" 2>"$work/err" &
    script=$!
    await 90 grep -q ready "$work/out"
    ours=$(descendants $script)
    kill -KILL $script
    wait $script 2>/dev/null
    # shellcheck disable=SC2086  # these are words
    check "--nodes 2: a killed script takes both machines and the wire with it" await 10 gone $ours
}

descendants() { # PID
    local pid
    for pid in $(children "$1"); do
        echo "$pid"
        descendants "$pid"
    done
}

# Prints the children of script $1, QEMU among them.
children() {
    cat "/proc/$1/task/$1/children"
}

test_endings() {
    local script status ours
    cat >"$work/stoppable.sh" <<'END'
trap 'echo interrupted; exit 9' INT
trap 'echo terminated; exit 8' TERM
echo ready
while :; do sleep 0.1; done
END
    : >"$work/out"
    "$softroce" vm --timeout 300 -- bash "$work/stoppable.sh" </dev/null >"$work/out" 2>"$work/err" &
    script=$!
    check "output comes while the command runs" await 60 grep -q ready "$work/out"
    ours=$(children $script)
    kill -INT $script
    wait $script
    check "SIGINT: the command decides the status" is $? 9
    check "SIGINT: what it says then arrives" contains "$work/out" interrupted
    # shellcheck disable=SC2086  # these are words
    check "nothing is left running" gone $ours

    # A second signal ends a command that ignores the first.
    : >"$work/out"
    "$softroce" vm --timeout 300 -- sh -c 'trap "" TERM; echo ready; sleep 1000' </dev/null >"$work/out" \
        2>"$work/err" &
    script=$!
    await 60 grep -q ready "$work/out"
    ours=$(children $script)
    kill -TERM $script
    # Within half a second, another signal counts as the same one.
    sleep 0.7
    kill -TERM $script
    wait $script
    check "second signal: status" is $? 143
    # shellcheck disable=SC2086
    check "second signal: nothing is left running" gone $ours

    : >"$work/out"
    # Set TMPDIR, because a killed script leaves its scratch directory.
    TMPDIR=$work "$softroce" vm --timeout 300 -- sh -c 'echo ready; sleep 1000' </dev/null >"$work/out" \
        2>"$work/err" &
    script=$!
    await 60 grep -q ready "$work/out"
    ours=$(children $script)
    kill -KILL $script
    wait $script 2>/dev/null
    # shellcheck disable=SC2086
    check "a killed script takes QEMU with it" await 5 gone $ours

    "$softroce" vm --timeout 300 -- sh -c 'kill -KILL $$' </dev/null 2>"$work/err" &
    script=$!
    "$softroce" vm --timeout 3 -- sleep 1000 </dev/null 2>"$work/timeout"
    check "--timeout: status" is $? 124
    check "--timeout: message" contains "$work/timeout" "timed out after 3 s"
    wait $script
    check "a command that a signal ends" is $? 137

    "$softroce" vm --timeout 300 -- sh -c 'echo c >/proc/sysrq-trigger' </dev/null 2>"$work/panic" &
    script=$!
    "$softroce" vm --timeout 300 -- no-such-command </dev/null 2>"$work/err"
    check "a command that is not there: status" is $? 127
    check "a command that is not there: message" contains "$work/err" "no-such-command: command not found"
    wait $script
    check "a kernel panic: status" is $? 125
    check "a kernel panic: message" contains "$work/panic" "the guest's kernel failed: Kernel panic"
}

# With only the script's own tools in PATH, every package that is found by its command must be reported as missing.
test_install_deps() {
    local name case_ status
    mkdir "$work/bin"
    for name in bash apt-get dpkg-query dnf rpm; do
        ! command -v $name >/dev/null || ln -s "$(command -v $name)" "$work/bin"
    done
    # The script also looks in /usr/sbin, which on some systems is /usr/bin.
    if [[ ! /usr/sbin -ef /usr/bin ]]; then
        PATH=$work/bin scripts/install-deps --check --tests >"$work/out" 2>&1
        check "install-deps --check --tests: something is missing" is $? 1
        for name in nodejs npm chromium clang; do
            check "install-deps --check --tests: $name" grep -qx $name "$work/out"
        done
        PATH=$work/bin scripts/install-deps --check >"$work/out" 2>&1
        check "install-deps --check: not what only tests need" is "$(grep -cxE 'nodejs|npm|chromium|clang' "$work/out")" 0
    fi
    for case_ in '--nonsense' '--check nonsense' '--kernel' '--check --kernel x' '--kernel x --check'; do
        # shellcheck disable=SC2086  # these are words
        scripts/install-deps $case_ >"$work/out" 2>"$work/err"
        status=$?
        check "install-deps $case_: is refused" is $status 2
        check "install-deps $case_: takes one line" is "$(wc -l <"$work/err")" 1
    done
}

test_usage
test_install_deps
test_one_boot
test_rails
test_nodes
test_nodes_end
test_streams
test_endings
echo "$passed passed, $failed failed, 0 skipped"
((failed == 0))
