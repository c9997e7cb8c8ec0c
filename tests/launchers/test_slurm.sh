#!/usr/bin/env bash
# Slurm: this test runs its own munged, slurmctld and three slurmd on one machine, without system units. `srun -N3`
# starts the three hosts of a run.
# here

# shellcheck source=tests/launchers/lib.sh
. "$(dirname "$0")/lib.sh"
needs munged slurmctld slurmd srun sinfo

# Slurm only counts these nodes: their real resources are ignored (config_overrides).
write_config() {
    local node controller_port
    controller_port=$(free_port)
    cat >"$tmp/slurm.conf" <<END
ClusterName=rampart
SlurmctldHost=$(hostname)($host)
SlurmctldPort=$controller_port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$tmp/munge.socket
StateSaveLocation=$tmp/slurm.state
SlurmdSpoolDir=$tmp/slurm.%n
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=5
PropagateResourceLimits=ALL
END
    for node in a b c; do
        printf 'NodeName=%s NodeHostname=%s NodeAddr=%s Port=%s CPUs=1 State=UNKNOWN\n' $node "$(hostname)" "$host" \
            "$(free_port)"
    done >>"$tmp/slurm.conf"
    printf 'PartitionName=all Nodes=a,b,c Default=YES State=UP\n' >>"$tmp/slurm.conf"
    # Use cgroup/v1, because cgroup/v2 would ask systemd for a scope.
    printf 'CgroupPlugin=cgroup/v1\n' >"$tmp/cgroup.conf"
    mkdir -p "$tmp/slurm.state"
}

start_munge() {
    (umask 077 && head -c 1024 /dev/urandom >"$tmp/munge.key")
    start munged munged --foreground --force --key-file "$tmp/munge.key" --socket "$tmp/munge.socket" \
        --pid-file "$tmp/munge.pid" --seed-file "$tmp/munge.seed" --log-file "$tmp/munge.log"
    wait_until 60 test -S "$tmp/munge.socket" || not_ok "munged listens" "$(cat "${logs[munged]}")"
}

# shellcheck disable=SC2317  # wait_until calls it
all_idle() {
    [[ $(sinfo --noheader --format '%D %T' 2>/dev/null) == '3 idle' ]]
}

start_slurm() {
    local node
    start slurmctld slurmctld -D
    for node in a b c; do
        start "slurmd-$node" slurmd -D -N $node
    done
    wait_until 120 all_idle && return
    not_ok "three nodes are idle" "$(sinfo 2>&1; tail -n 3 "${logs[slurmctld]}" "${logs[slurmd-a]}")"
    finish
}

prepare slurm
# Slurm's daemons do not talk over loopback addresses, so use another address of this machine.
read -r host _ < <(hostname -I)
export SLURM_CONF=$tmp/slurm.conf
write_config
start_munge
start_slurm

# The hosts inherit the limits of the shell that calls srun, unless told otherwise.
limits() { # SRUN_OPTIONS...
    (ulimit -S -l 64 && srun -N3 -n3 --chdir=/ "$@" bash -c 'ulimit -S -l') | sort -u
}
is "PropagateResourceLimits=ALL: locked memory is limited as for the caller" "$(limits)" 64
is "--propagate=NONE: locked memory is limited as for slurmd" "$(limits --propagate=NONE)" "$(ulimit -S -l)"

start slurm srun -N3 -n3 --chdir="$PWD" "${command[@]}"
launched slurm

prepare killed --barriers 0 --lease-s 2
start killed srun -N3 -n3 --chdir="$PWD" "${command[@]}"
kill_one killed
ends "a host that is killed ends srun, with its status" killed 120 137 'Killed'
others_name_it killed
is "the job is over" "$(squeue --noheader)" ''
finish
