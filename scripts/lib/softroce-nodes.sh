# shellcheck shell=bash
# Two micro-VMs on one wire (scripts/softroce vm --nodes 2). Node 1 is the script's own machine, with the caller's
# streams and signals. Node 2 is a child of the script that runs a machine of its own in the same way
# (softroce-vm.sh); the two exchange signals only:
#   SIGUSR1 to node 2: its command gets SIGTERM      SIGUSR2 to node 2: end at once
# Sourced by scripts/softroce, which sets nodes, node, node2_command, command and rails.
# shellcheck disable=SC2154,SC2034,SC2054  # those; what softroce-vm.sh reads; commas are QEMU's

wires='' node2='' node2_status=0 node2_limit_s=10

# Without COMMAND node 1 has a shell, and node 2 is just there.
choose_node2_command() {
    if [[ $node2_command ]]; then
        node2_argv=(sh -c "$node2_command")
    elif ((${#command[@]} > 0)); then
        node2_argv=("${command[@]}")
    else
        node2_argv=(sleep infinity)
    fi
}

# A socket in the file system, so that no port is taken and no other user can join. Descriptor 7 is QEMU's monitor.
wire_arguments() {
    local rail role=off
    ((node == 2)) || role=on
    mkfifo "$scratch"/monitor.{in,out}
    exec 7<>"$scratch/monitor.in"
    qemu+=(-chardev "pipe,id=monitor,path=${scratch//,/,,}/monitor" -mon "chardev=monitor,mode=readline")
    for ((rail = 0; rail < rails; rail++)); do
        qemu+=(-netdev "stream,id=wire$rail,server=$role,addr.type=unix,addr.path=${wires//,/,,}/$rail"
            -device "virtio-net-pci,netdev=wire$rail,mac=52:54:00:77:0$rail:0$node,romfile=")
    done
}

set_cables() { # on|off
    local rail
    [[ $1 == on || $1 == off ]] || return 0
    for ((rail = 0; nodes > 1 && rail < rails; rail++)); do
        echo "set_link wire$rail $1" >&7
    done
}

start_node2() {
    qemu-system-x86_64 -netdev help 2>/dev/null | grep -qx stream ||
        die 3 "this QEMU has no network sockets in the file system: --nodes 2 needs QEMU 7.2 or newer"
    wires=$(mktemp -d "${TMPDIR:-/tmp}/softroce.XXXXXX") || die 3 "cannot make a scratch directory"
    run_node2 </dev/null &
    node2=$!
}

# In a process of its own, which $$ still calls by the name of node 1's.
run_node2() {
    node=2 stage=boot me="$me: node 2" tty=0 use_stdin=0 time_limit_s=0
    exec 3</dev/null
    trap_node2
    # Node 1's QEMU makes the wires.
    until [[ -S $wires/$((rails - 1)) ]]; do
        check_other_node
        sleep 0.05
    done
    collect_environment
    run_vm "${node2_argv[@]}"
}

# What the caller's terminal or timeout(1) send to the whole process group is node 1's to hear of.
trap_node2() {
    trap : INT TERM HUP
    trap 'on_signal TERM 143' USR1
    trap 'exit 143' USR2
}

# Node 1: if node 2 has failed, its status counts, and the command here is told to end. Node 2: ends without node 1.
check_other_node() {
    if ((node == 2)); then
        alive $$ || { rm -rf "$wires" && exit 143; }
    elif [[ $node2 ]] && ! alive "$node2"; then
        wait "$node2"
        node2_status=$?
        node2=''
        ((node2_status != 0)) || return 0
        note "node 2 ended with status $node2_status"
        # Unless the caller has told it already.
        [[ $stage == started && $signal_at_ms != 0 ]] || on_signal TERM "$node2_status"
    fi
}

# Node 1's command has ended: node 2's is told to. Sets node2_status.
end_node2() {
    local end=$((SECONDS + node2_limit_s))
    kill -USR1 "$node2" 2>/dev/null
    while alive "$node2"; do
        if ((SECONDS >= end)); then
            note "node 2's command did not end within $node2_limit_s s of SIGTERM; its micro-VM was killed"
            node2_status=124
            return
        fi
        check_limits
        sleep 0.05
    done
    wait "$node2"
    node2_status=$?
    node2=''
    if ((node2_status == 143)); then
        node2_status=0
    elif ((node2_status != 0)); then
        note "node 2 ended with status $node2_status"
    fi
}

# At the end of node 1's script.
drop_node2() {
    if [[ $node2 ]]; then
        kill -USR2 "$node2" 2>/dev/null
        await_end "$node2"
        ! kill -KILL "$node2" 2>/dev/null || wait "$node2" 2>/dev/null
    fi
    [[ ! $wires ]] || rm -rf "$wires"
}
