# shellcheck shell=bash
# One run of the micro-VM of scripts/softroce on the host's side: job, QEMU, streams, signals, exit status. Sourced by
# scripts/softroce, which has die and note, parses the options and sets: top, cpus, memory_mib, rails, nodes, node,
# netem, accel, icount, keep, tty, time_limit_s, extra_append and guest_env; softroce-image.sh sets kernel, kernel_dir
# and initrd, softroce-nodes.sh children and others_status. softroce-guest is the guest's side and lists the lines that
# both sides exchange.
#
# Descriptors: 3 the caller's stdin (tty=1: the terminal), 7 to QEMU's monitor (softroce-nodes.sh), 8 to the guest's
# control port, 9 from it.

# shellcheck disable=SC2154,SC2054  # set elsewhere, see above; commas are QEMU's

boot_limit_s=180

# Quotes words for any POSIX shell.
quoted() {
    printf "'%s'" "${1//\'/\'\\\'\'}"
}

# Chooses what the guest sees read-write: the checkout if the caller is in it, otherwise the current directory. A
# checkout below a directory that the guest covers must be shared even if it is only read.
choose_shares() {
    share_top='' share_top_options=rw,cache=mmap share_cwd=''
    case $cwd/ in
    "$top"/*)
        share_top=$top
        ;;
    //) ;;
    *)
        share_cwd=$cwd
        case $top/ in
        "$cwd"/*) ;;
        /tmp/* | /var/tmp/* | /run/* | /dev/*)
            share_top=$top
            share_top_options=ro,cache=loose
            ;;
        esac
        ;;
    esac
}

# Sets shares: the directories of --share that the guest does not see read-write already.
choose_more_shares() {
    local dir
    shares=()
    for dir in "${caller_shares[@]}"; do
        [[ $share_cwd && $dir/ == "$share_cwd"/* ]] && continue
        [[ $share_top && $share_top_options == rw* && $dir/ == "$share_top"/* ]] && continue
        shares+=("$dir")
    done
}

# Writes config for the guest's init, command for the shell that becomes the command, and terminal, which stands between
# the two if there is one.
write_job() {
    local entry
    {
        printf 'SOFTROCE_TOP=%s\n' "$(quoted "$share_top")"
        printf 'SOFTROCE_TOP_OPTIONS=%s\n' "$share_top_options"
        printf 'SOFTROCE_CWD=%s\n' "$(quoted "$share_cwd")"
        printf 'SOFTROCE_SHARES=%s\n' "${#shares[@]}"
        for entry in "${!shares[@]}"; do
            printf 'SOFTROCE_SHARE_%s=%s\n' "$entry" "$(quoted "${shares[entry]}")"
        done
        printf 'SOFTROCE_RAILS=%s\n' "$rails"
        printf 'SOFTROCE_NODES=%s\n' "$nodes"
        printf 'SOFTROCE_NODE=%s\n' "$node"
        printf 'SOFTROCE_NETEM=%s\n' "$(quoted "${netem[node]:-${netem[0]:-}}")"
        printf 'SOFTROCE_KERNEL=%s\n' "$(quoted "$kernel_dir")"
        printf 'SOFTROCE_STDIN=%s\n' "$use_stdin"
        printf 'SOFTROCE_TTY=%s\n' "$tty"
    } >"$scratch/job/config"
    {
        for entry in "${guest_env[@]}"; do
            printf 'export %s=%s\n' "${entry%%=*}" "$(quoted "${entry#*=}")"
        done
        printf 'cd %s || exit 126\n' "$(quoted "$cwd")"
        if [[ $1 != */* ]]; then
            # shellcheck disable=SC2016  # it is the guest that expands this
            printf 'command -v -- %s >/dev/null || { echo %s >&2; exit 127; }\n' \
                "$(quoted "$1")" "$(quoted "$me: $1: command not found")"
        fi
        printf 'exec'
        for entry in "$@"; do
            printf ' %s' "$(quoted "$entry")"
        done
        printf '\n'
    } >"$scratch/job/command"
    ((!tty)) || write_terminal
}

# script(1) makes the terminal in the guest; session gives it the size of the caller's.
write_terminal() {
    local size
    size=$(stty size <&3) || size='24 80'
    printf 'stty rows %s cols %s\nexec /bin/sh /run/softroce/job/command\n' "${size% *}" "${size#* }" \
        >"$scratch/job/session"
    {
        printf 'export PATH=%s TERM=%s SHELL=/bin/sh\n' "$(quoted "$PATH")" "$(quoted "${TERM:-dumb}")"
        printf 'exec script -qefc "exec /bin/sh /run/softroce/job/session" /dev/null\n'
    } >"$scratch/job/terminal"
}

share() { # TAG DIRECTORY OPTIONS
    local readonly=
    [[ $3 != ro* ]] || readonly=,readonly=on
    # With security model "none" files belong to the user that runs QEMU, root or not.
    qemu+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap$readonly"
        -device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}

port() { # NUMBER NAME CHARDEV
    qemu+=(-chardev "$3" -device "virtserialport,nr=$1,chardev=$2,name=$2")
}

qemu_arguments() {
    local dir=${scratch//,/,,}
    # An oops in the tested kernel ends the machine instead of hanging it. The clock is the TSC, so that programs read
    # it without entering the kernel.
    local append=(console=ttyS0 quiet panic=-1 oops=panic acpi=noirq nokaslr mitigations=off no_timer_check
        tsc=reliable clocksource=tsc random.trust_cpu=on nowatchdog rcupdate.rcu_cpu_stall_suppress=1
        cryptomgr.notests ${extra_append:+"$extra_append"})
    qemu=(qemu-system-x86_64 -name rampart-vm -nodefaults -no-user-config -display none -no-reboot
        -machine pc,vmport=off -rtc base=utc,clock=host -smp "$cpus" -m "$memory_mib"
        -kernel "$kernel" -initrd "$initrd" -append "${append[*]}"
        -chardev "file,id=console,path=$dir/console" -serial chardev:console
        -device virtio-rng-pci -device virtio-serial-pci)
    if [[ $accel == kvm ]]; then
        qemu+=(-accel kvm -cpu host)
    else
        # The guest works faster without these features, which are slow to emulate: it would copy byte by byte (erms),
        # use wide vectors (avx, pclmulqdq), walk a fifth level of page tables (la57), and have each access to program
        # memory checked (smap, smep).
        qemu+=(-accel tcg -cpu max,-erms,-avx,-avx2,-pclmulqdq,-la57,-smap,-smep)
        # An instruction takes 2^shift ns. While the guest is idle, its clock follows the host's.
        ((!icount)) || qemu+=(-icount shift=2)
    fi
    port 1 ctl "pipe,id=ctl,path=$dir/ctl"
    port 2 out "file,id=out,path=$dir/out"
    port 3 err "file,id=err,path=$dir/err"
    ((!use_stdin)) || port 4 in "stdio,id=in,signal=off"
    share host / ro
    share job "$scratch/job" ro
    [[ ! $share_top ]] || share top "$share_top" "$share_top_options"
    [[ ! $share_cwd ]] || share cwd "$share_cwd" rw
    local i
    for i in "${!shares[@]}"; do
        share "share$i" "${shares[i]}" rw
    done
    ((nodes == 1)) || wire_arguments
}

# Runs "$@" shielded from the terminal's signals, which the script passes on itself; it dies with the script, even if
# that is killed.
detached() {
    exec setsid setpriv --pdeathsig KILL "$@" 3<&- 7>&- 8>&- 9>&-
}

# cat, not QEMU, has the caller's descriptors, because QEMU would make them non-blocking. /proc/PID/io shows how much
# cat has passed on. The relays are disowned, so that the shell does not announce their end; QEMU is disowned before it
# is killed, because its exit status is wanted if it ends by itself.
start_streams() {
    local qemu_stdin=/dev/null
    detached cat <"$scratch/out" &
    out_relay=$!
    detached cat <"$scratch/err" >&2 &
    err_relay=$!
    # Read-write, because opening only one direction of a FIFO waits for the other side.
    exec 8<>"$scratch/ctl.in" 9<>"$scratch/ctl.out"
    ((!use_stdin)) || qemu_stdin=$scratch/in
    detached "${qemu[@]}" <"$qemu_stdin" >"$scratch/qemu.log" 2>&1 &
    qemu_pid=$!
    if ((use_stdin)); then
        detached cat <&3 >"$scratch/in" 2>/dev/null &
        in_relay=$!
    fi
    # shellcheck disable=SC2086  # an empty one is to vanish
    disown $out_relay $err_relay $in_relay
}

alive() {
    kill -0 "$1" 2>/dev/null
}

# Kills those of "$@" that are children of this shell: the process id of a child that ended long ago may belong to
# another process now.
kill_children() {
    local pid stat
    for pid in "$@"; do
        # Not `read`, which reads nothing in a trap that has interrupted another `read`.
        stat=$(<"/proc/$pid/stat") && [[ ${stat##*) } == ?" $BASHPID "* ]] && kill -KILL "$pid"
    done 2>/dev/null
}

# If the reader of a stream is gone, tells the command and discards its further output.
check_readers() {
    # Without QEMU the relays have ended, and opening a FIFO again would wait for ever.
    alive "$qemu_pid" || return
    if [[ $out_relay ]] && ! alive "$out_relay"; then
        out_relay=''
        detached cat <>"$scratch/out" >/dev/null &
        disown
        echo "hangup out" >&8
    fi
    if [[ $err_relay ]] && ! alive "$err_relay"; then
        err_relay=''
        detached cat <>"$scratch/err" >/dev/null &
        disown
        echo "hangup err" >&8
    fi
}

# Ends the run if one of its limits has passed.
check_limits() {
    if ((time_limit_s > 0 && SECONDS >= time_limit_s)); then
        note "timed out after $time_limit_s s; the micro-VM was killed"
        exit 124
    elif [[ $stage != started ]] && ((SECONDS >= boot_limit_s)); then
        console_tail
        note "the micro-VM did not boot within $boot_limit_s s"
        exit 3
    elif ((ack_deadline_s > 0 && SECONDS >= ack_deadline_s)); then
        note "the micro-VM does not answer; it was killed"
        exit "$signal_status"
    fi
}

# Waits until relay $1 has passed on $2 bytes, unless its reader is gone.
drain() {
    local written
    while [[ $1 ]] && alive "$1"; do
        written=$(sed -n 's/^wchar: //p' "/proc/$1/io" 2>/dev/null)
        ((${written:-0} < $2)) || break
        check_limits
        sleep 0.01
    done
}

# Passes the first signal to the command, which may take its time to end. A second one ends the run; one within half a
# second counts as the first again, because timeout(1) signals both the process and its group.
on_signal() { # NAME STATUS
    local now_ms=$((${EPOCHREALTIME/[^0-9]/} / 1000))
    if [[ $stage != started ]]; then
        exit "$2"
    elif ((signal_at_ms == 0)); then
        signal_at_ms=$now_ms
        signal_status=$2
        ack_deadline_s=$((SECONDS + 10))
        echo "signal $1" >&8
    elif ((now_ms - signal_at_ms > 500)); then
        note "second signal: the micro-VM was killed"
        exit "$2"
    fi
}

on_resize() {
    local size
    if ((tty)) && [[ $stage == started ]] && size=$(stty size <&3 2>/dev/null); then
        echo "size $size" >&8
    fi
}

console_tail() {
    note "the end of its console:"
    tail -n 15 "$scratch/console" >&2
}

# QEMU has ended by itself, which is always an error.
explain_end() {
    local panic status
    wait "$qemu_pid" 2>/dev/null
    status=$?
    ((status <= 128)) || status="signal $((status - 128))"
    panic=$(grep -m 1 -o 'Kernel panic.*' "$scratch/console")
    if [[ $panic ]]; then
        console_tail
        note "the guest's kernel failed: $panic"
    elif ((node > 1)) && [[ $stage == started ]]; then
        note "the micro-VM is gone, as if its power had failed; the other nodes go on"
        exit 0
    elif [[ -s $scratch/console ]]; then
        console_tail
        note "the micro-VM ended by itself (QEMU: $status)"
    else
        note "QEMU ended by itself ($status): $(tail -n 1 "$scratch/qemu.log")"
    fi
    [[ $stage == started ]] || exit 3
    exit 125
}

# Waits, two seconds at most, for all of "$@" to end.
await_end() {
    local tries pid
    for ((tries = 0; tries < 200; tries++)); do
        for pid in "$@"; do
            alive "$pid" && sleep 0.01 && continue 2
        done
        break
    done
}

# Ends all started processes, however the script ends.
cleanup() {
    trap '' INT TERM HUP WINCH USR1 USR2
    [[ ! $qemu_pid ]] || disown "$qemu_pid" 2>/dev/null
    # shellcheck disable=SC2086
    kill_children $qemu_pid $in_relay
    ((node > 1)) || drop_nodes
    # Without QEMU the other relays reach end of file; a relay with a stopped reader remains.
    # shellcheck disable=SC2086
    await_end $qemu_pid $in_relay $out_relay $err_relay
    [[ ! $saved_terminal ]] || stty "$saved_terminal" <&3
    if ((keep)); then
        note "kept $scratch"
    else
        rm -rf "$scratch"
    fi
}

follow() {
    local word a b c part line='' status
    while alive "$qemu_pid"; do
        check_limits
        check_readers
        check_nodes
        # A read that times out within a line has consumed the beginning, so keep that.
        if ! IFS= read -r -t 0.25 part <&9; then
            line+=$part
            continue
        fi
        read -r word a b c <<<"$line$part"
        line=''
        case $word in
        ready)
            stage=ready
            echo "time $EPOCHREALTIME" >&8
            ;;
        reached) on_reached ;;
        started)
            stage=started
            ((!tty)) || { saved_terminal=$(stty -g <&3) && stty raw -echo <&3; }
            ;;
        ack) ack_deadline_s=0 ;;
        cable) set_cables "$a" ;;
        fail)
            note "$a $b $c"
            exit 3
            ;;
        exit)
            drain "$out_relay" "$b"
            drain "$err_relay" "$c"
            if ((a == 137)) && grep -q 'Out of memory' "$scratch/console"; then
                note "the guest ran out of memory and killed the command; see --memory"
            fi
            # Not 0 if another node has failed.
            status=$((others_status == 0 ? a : others_status))
            ((${#children[@]} == 0)) || end_nodes
            exit $((status == 0 ? others_status : status))
            ;;
        esac
    done
    explain_end
}

# Runs "$@" in the guest. Does not return: the script exits with the status of the command.
run_vm() {
    stage=boot ack_deadline_s=0 signal_at_ms=0 signal_status=0 SECONDS=0
    qemu_pid='' out_relay='' err_relay='' in_relay='' saved_terminal=''
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/softroce.XXXXXX") || die 3 "cannot make a scratch directory"
    trap cleanup EXIT
    if ((node == 1)); then
        trap 'on_signal INT 130' INT
        trap 'on_signal TERM 143' TERM
        trap 'on_signal HUP 129' HUP
        trap on_resize WINCH
    else
        trap_node
    fi
    mkdir "$scratch/job"
    mkfifo "$scratch"/{ctl.in,ctl.out,out,err,in}
    choose_shares
    choose_more_shares
    write_job "$@"
    qemu_arguments
    start_streams
    follow
}
