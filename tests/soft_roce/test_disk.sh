#!/bin/bash
# A full disk: a run is refused in advance, with the numbers; during a run the figures are still shown, and no missing
# file is claimed to exist. The disk is a small tmpfs that only this script sees.

if [[ ! ${RAMPART_OWN_MOUNTS:-} ]]; then
    own=(unshare --mount)
    ((EUID == 0)) || own+=(--map-root-user)
    RAMPART_OWN_MOUNTS=1 exec "${own[@]}" "$0"
fi
. tests/soft_roce/lib.sh

disk=$tmp/disk
results=$disk
mkdir "$disk"
if ! mount -t tmpfs -o size=256k rampart "$disk"; then
    not_ok "a small disk is made" "see above"
    finish
fi
run=("${bin}performance_test" --environment native --quiet --threads 1 --server-threads 1 --output "$disk" --warmup 0)

gives "a disk without room: refused in one line with the numbers" 3 \
    '^performance_test: cannot make a results folder in [^ ]*: No space left on device: 0.26 MB are free there, and the run.s files need about 0.[0-9]+ MB; name another with --output$' \
    "${run[@]}" --name none --steps 2 --duration 0.3
is "a disk without room: nothing is left on it" "$(find "$disk" -mindepth 1)" ""

# Fill the disk as soon as clients connect.
mount -o remount,size=4m "$disk"
start full "${run[@]}" --name full --steps 2,4 --duration 1
wait_until 240 has_begun full || not_ok "the run begins" "$(<"${logs[full]}")"
head -c 8m /dev/zero >"$disk/filler" 2>/dev/null
ends "a disk that fills up: exit status 3 and the reason" full 60 3 \
    'cannot write [^ ]*: No space left on device; the run.s files are incomplete'
text=$(<"${logs[full]}")
matches "a disk that fills up: the table has both steps" "$text" \
    $'clients  held .*\n      2     2 .*\n      4     4 .*Verdict'
matches "a disk that fills up: the last line does not claim results" "$(tail -n 1 "${logs[full]}")" \
    '^Results: incomplete, [^ ]*: No space left on device$'
is "a disk that fills up: no file is empty or half" "$(find "$disk" -type f '(' -size 0 -o -name '*.tmp' ')')" ""
is "a disk that fills up: no error of another name" "$(grep -c 'Input/output' "${logs[full]}")" 0

rm -r "${disk:?}"/*
gives "figures that stdout does not take: exit status 3" 3 \
    '^performance_test: cannot write to stdout: No space left on device$' \
    bash -c 'exec "$@" >/dev/full' - "${run[@]}" --name mute --steps 2 --duration 0.3
umount "$disk"
finish
