#!/usr/bin/env bash
# mpirun only starts the three hosts of a run; they do not use MPI.
# here

# shellcheck source=tests/launchers/lib.sh
. "$(dirname "$0")/lib.sh"
needs mpirun

# There may be fewer CPUs than processes, and mpirun refuses to run as root unless told to.
launcher=(mpirun --oversubscribe -n 3)
((EUID != 0)) || launcher+=(--allow-run-as-root)

prepare mpirun
start mpirun "${launcher[@]}" "${command[@]}"
launched mpirun

# mpirun ends all ranks as soon as one fails, before the others can say which host is lost.
prepare killed --barriers 0 --lease-s 5
start killed "${launcher[@]}" "${command[@]}"
kill_one killed
ends "a host that is killed ends all, by mpirun" killed 60 137 'signal 9'
start one_fails "${launcher[@]}" bash -c '((OMPI_COMM_WORLD_RANK == 1)) && exit 3; exec sleep 600'
ends "one rank's exit status ends the others, and is mpirun's" one_fails 60 3 'non-zero'
finish
