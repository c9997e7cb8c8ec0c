# shellcheck shell=bash
# Several micro-VMs on one wire (scripts/softroce vm --nodes N). Node 1 is the script's own machine, with the caller's
# streams and signals. Each other node is a child of the script that runs a machine in the same way (softroce-vm.sh).
# The wire is a separate process. Parent and children exchange these signals,
#   SIGUSR1 to a child: its command gets SIGTERM      SIGUSR2: end at once
# and files in the folder `wires`: RAIL.NODE, a socket of the wire; reached.NODE, which exists once that node reaches
# all others. Sourced by scripts/softroce, which sets nodes, node, on_command, netem, command and rails.
# shellcheck disable=SC2154,SC2034,SC2054  # those; what softroce-vm.sh reads; commas are QEMU's

# children and prefixers: process ids by node. others_status: exit status of the first other node that failed.
wires='' hub='' others_status=0 others_limit_s=10
children=() prefixers=()

# Chooses the command of each node. Without COMMAND node 1 runs a shell, and the others run nothing.
choose_commands() {
    others_command=("${command[@]}")
    ((${#command[@]} > 0)) || others_command=(sleep infinity)
    [[ ! ${on_command[1]:-} ]] || command=(sh -c "${on_command[1]}")
}

# ---- the wire

# For each rail a hub that passes packets of one node to all others. The hub is a QEMU without a machine, so that the
# end or load of a node does not take the wire from the others. Each node has a stream to a socket in the file system:
# it takes no port, no other user can join, and data is kept until the other side accepts it.
start_wires() {
    local rail n
    qemu=(qemu-system-x86_64 -name rampart-wire -machine none -nodefaults -no-user-config -display none)
    for ((rail = 0; rail < rails; rail++)); do
        for ((n = 1; n <= nodes; n++)); do
            qemu+=(-netdev "stream,id=port$rail.$n,server=on,addr.type=unix,addr.path=${wires//,/,,}/$rail.$n"
                -netdev "hubport,id=hub$rail.$n,hubid=$rail,netdev=port$rail.$n")
        done
    done
    detached "${qemu[@]}" </dev/null >"$wires/log" 2>&1 &
    hub=$!
    disown
    until [[ -S $wires/$((rails - 1)).$nodes ]]; do
        alive "$hub" || die 3 "QEMU failed: $(tail -n 1 "$wires/log")"
        sleep 0.01
    done
}

mac_of() { # RAIL NODE
    printf '52:54:00:77:%02x:%02x' "$1" "$2"
}

# Descriptor 7 is the monitor of QEMU.
wire_arguments() {
    local rail
    mkfifo "$scratch"/monitor.{in,out}
    exec 7<>"$scratch/monitor.in"
    qemu+=(-chardev "pipe,id=monitor,path=${scratch//,/,,}/monitor" -mon "chardev=monitor,mode=readline")
    for ((rail = 0; rail < rails; rail++)); do
        qemu+=(-netdev "stream,id=wire$rail,server=off,addr.type=unix,addr.path=${wires//,/,,}/$rail.$node"
            -device "virtio-net-pci,netdev=wire$rail,mac=$(mac_of $rail "$node"),romfile=")
    done
}

set_cables() { # on|off
    local rail
    [[ $1 == on || $1 == off ]] || return 0
    for ((rail = 0; nodes > 1 && rail < rails; rail++)); do
        echo "set_link wire$rail $1" >&7
    done
}

# ---- the other nodes

start_nodes() {
    local n pipe
    qemu-system-x86_64 -netdev help 2>/dev/null | grep -qx stream ||
        die 3 "this QEMU has no network sockets in the file system: --nodes needs QEMU 7.2 or newer"
    wires=$(mktemp -d "${TMPDIR:-/tmp}/softroce.XXXXXX") || die 3 "cannot make a scratch directory"
    trap drop_nodes EXIT
    start_wires
    for ((n = 2; n <= nodes; n++)); do
        exec {pipe}> >(detached sed -u "s/^/node $n: /" >&2)
        prefixers[n]=$!
        run_node "$n" </dev/null >&"$pipe" 2>&1 {pipe}>&- &
        children[n]=$!
        exec {pipe}>&-
    done
}

# Runs in a process of its own, in which $$ is still the process id of node 1.
run_node() { # NODE
    node=$1 stage=boot tty=0 use_stdin=0 time_limit_s=0 children=()
    exec 3</dev/null
    trap_node
    [[ ! ${on_command[node]:-} ]] || others_command=(sh -c "${on_command[node]}")
    collect_environment
    run_vm "${others_command[@]}"
}

# Ignores signals that the caller's terminal or timeout(1) send to the whole process group: node 1 handles them.
trap_node() {
    trap : INT TERM HUP
    trap 'on_signal TERM 143' USR1
    trap 'exit 143' USR2
}

# This guest reaches all others; commands start when all guests report the same.
on_reached() {
    stage=reached
    : >"$wires/reached.$node"
}

all_reached() {
    local files=("$wires"/reached.*)
    ((${#files[@]} == nodes))
}

# Called between the lines of the guest.
check_nodes() {
    ((nodes > 1)) || return 0
    if [[ $stage == reached ]] && all_reached; then
        stage=go
        echo go >&8
    fi
    if ((node > 1)); then
        # The script was killed and could not end this node.
        alive $$ || { rm -rf "$wires" && exit 143; }
    else
        alive "$hub" || { note "the wire failed: $(tail -n 1 "$wires/log")" && exit 125; }
        check_children
    fi
}

# If another node has failed, its status becomes that of the run, and node 1's command is told to end.
check_children() {
    local n
    for n in "${!children[@]}"; do
        alive "${children[n]}" || reap_child "$n"
    done
    # Unless the caller has already told it to end.
    ((others_status == 0)) || [[ $stage == started && $signal_at_ms != 0 ]] || on_signal TERM $others_status
}

# Handles the end of a node. With `told`, status 143 (by SIGTERM) is no failure.
reap_child() { # NODE [told]
    local status
    wait "${children[$1]}"
    status=$?
    unset "children[$1]"
    ((status != 0)) && [[ $status != 143 || ${2:-} != told ]] || return 0
    note "node $1 ended with status $status"
    ((others_status != 0)) || others_status=$status
}

# After the end of node 1's command: tells the commands of the other nodes to end.
end_nodes() {
    local end=$((SECONDS + others_limit_s)) n
    kill -USR1 "${children[@]}" 2>/dev/null
    while ((${#children[@]} > 0)); do
        for n in "${!children[@]}"; do
            if ! alive "${children[n]}"; then
                reap_child "$n" told
            elif ((SECONDS >= end)); then
                note "node $n's command did not end within $others_limit_s s of SIGTERM; its micro-VM was killed"
                ((others_status != 0)) || others_status=124
            fi
        done
        ((SECONDS < end)) || return
        check_limits
        sleep 0.05
    done
}

# Called at the end of node 1's script.
drop_nodes() {
    if ((${#children[@]} > 0)); then
        kill -USR2 "${children[@]}" 2>/dev/null
        await_end "${children[@]}"
        ! kill -KILL "${children[@]}" 2>/dev/null || wait "${children[@]}" 2>/dev/null
    fi
    [[ ! $hub ]] || kill_children "$hub"
    await_end "${prefixers[@]}"
    [[ ! $wires ]] || rm -rf "$wires"
}
