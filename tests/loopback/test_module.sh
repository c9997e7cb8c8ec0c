#!/bin/bash
# scripts/softroce on kernels without rdma_rxe: which package has it, and what `up --install` does. Kernels, package
# lists and this machine's files are made up; nothing is installed.
# here
# shellcheck disable=SC2016  # the fakes expand it

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

machine=$tmp/machine
fakes=$tmp/fakes
mkdir "$fakes"
export machine

fake() { # NAME: a program, whose text is on stdin; it logs its calls
    { printf '#!/bin/bash\necho "%s $*" >>"$machine/calls"\n' "$1" && cat; } >"$fakes/$1"
    chmod +x "$fakes/$1"
}
fake uname <<<'cat "$machine/release"'
# -n -q NAME looks for the module; otherwise it is loaded.
fake modprobe <<'END_OF_FAKE'
[[ ${*: -1} == rdma_rxe ]] || exit 0
[[ -e $machine/has-module ]] || exit 1
[[ $1 == -n ]] || mkdir -p "$machine/sys/module/rdma_rxe"
END_OF_FAKE
for manager in apt-get dnf; do
    fake $manager <<'END_OF_FAKE'
[[ $1 == install ]] || exit 0
grep -qx "${*: -1}" "$machine/packages" || exit 1
[[ ! -e $machine/good ]] || touch "$machine/has-module"
END_OF_FAKE
done
fake apt-cache <<<'grep -qx "$2" "$machine/packages"'
fake ip <<<'exit 0'
fake rdma <<'END_OF_FAKE'
[[ "$1 $2" == 'link add' ]] || exit 0
mkdir -p "$machine/sys/class/infiniband/rxe0/ports/1"
echo '4: ACTIVE' >"$machine/sys/class/infiniband/rxe0/ports/1/state"
END_OF_FAKE

# A machine with a distribution (ID and ID_LIKE of os-release), a kernel and its CONFIG_RDMA_RXE (m, n, or - if the
# configuration is not there). Its repositories have the packages named, and they have the module.
make_machine() { # ID ID_LIKE RELEASE CONFIG [PACKAGE...]
    rm -rf "$machine"
    mkdir -p "$machine"/{etc,proc/self,boot,run,sys}
    printf 'ID=%s\nID_LIKE="%s"\nPRETTY_NAME="Made Up"\n' "$1" "$2" >"$machine/etc/os-release"
    echo "$3" >"$machine/release"
    printf 'CapBnd:\t000001ffffffffff\n' >"$machine/proc/self/status"
    touch "$machine/proc/modules" "$machine/good"
    case $4 in
    m) echo 'CONFIG_RDMA_RXE=m' ;;
    n) echo '# CONFIG_RDMA_RXE is not set' ;;
    esac >"$machine/boot/config-$3"
    [[ $4 != - ]] || rm "$machine/boot/config-$3"
    printf '%s\n' "${@:5}" >"$machine/packages"
}

softroce=(env SOFTROCE_ROOT="$machine" PATH="$fakes:$PATH" scripts/softroce)

# ---- which package

apt='apt-get update && apt-get install -y'
while IFS='|' read -r id like release config status wanted; do
    make_machine "$id" "$like" "$release" "$config"
    got=$("${softroce[@]}" module 2>&1)
    is "module: $id, $release, configuration $config" "$? $got" "$status $wanted"
done <<END
ubuntu|debian|6.14.0-1015-aws|m|0|$apt linux-modules-extra-6.14.0-1015-aws && modprobe rdma_rxe
ubuntu|debian|6.8.0-1031-gcp|m|0|$apt linux-modules-extra-6.8.0-1031-gcp && modprobe rdma_rxe
ubuntu|debian|6.8.0-1031-azure|-|0|$apt linux-modules-extra-6.8.0-1031-azure && modprobe rdma_rxe
ubuntu|debian|6.11.0-1012-azure|n|3|kernel 6.11.0-1012-azure was built without rdma_rxe: apt-get install -y linux-generic, and reboot into that kernel
linuxmint|ubuntu debian|6.8.0-45-generic|m|0|$apt linux-modules-extra-6.8.0-45-generic && modprobe rdma_rxe
debian||6.1.0-13-cloud-amd64|n|3|kernel 6.1.0-13-cloud-amd64 was built without rdma_rxe: apt-get install -y linux-image-amd64, and reboot into that kernel
debian||6.12.9+bpo-cloud-arm64|-|3|kernel 6.12.9+bpo-cloud-arm64 was built without rdma_rxe: apt-get install -y linux-image-arm64, and reboot into that kernel
debian||6.1.0-13-amd64|m|0|$apt linux-image-6.1.0-13-amd64 && modprobe rdma_rxe
fedora||6.11.4-301.fc41.x86_64|m|0|dnf install -y kernel-modules-extra-6.11.4-301.fc41.x86_64 && modprobe rdma_rxe
rocky|rhel centos fedora|5.14.0-427.13.1.el9_4.x86_64|m|0|dnf install -y kernel-modules-extra-5.14.0-427.13.1.el9_4.x86_64 && modprobe rdma_rxe
rhel|fedora|5.14.0-70.13.1.el9_0.x86_64|n|3|kernel 5.14.0-70.13.1.el9_0.x86_64 was built without rdma_rxe
alpine||6.6.58-0-lts|m|3|kernel 6.6.58-0-lts has no module rdma_rxe, and no package of Made Up that has it is known here
END
printf 'CapBnd:\t00000000a80425fb\n' >"$machine/proc/self/status"
is "module: a container" "$("${softroce[@]}" module)" \
    "no module may be loaded here (CAP_SYS_MODULE is missing, as in a container): modprobe rdma_rxe on the host"
rm "$machine/proc/modules"
is "module: a kernel without modules" "$("${softroce[@]}" module)" "kernel 6.6.58-0-lts loads no modules"
make_machine debian '' 6.1.0-13-amd64 m
touch "$machine/has-module"
is "module: it is there" "$("${softroce[@]}" module)" "modprobe rdma_rxe"

# ---- up, and up --install

if ((EUID != 0)); then
    skip "up --install" "it needs root"
    finish
fi
aws=6.14.0-1015-aws
make_machine ubuntu debian $aws m linux-modules-extra-$aws
gives "up without the module names package and option" 3 \
    "kernel $aws has no module rdma_rxe, but package linux-modules-extra-$aws has it: scripts/softroce up --install" \
    "${softroce[@]}" up
is "up alone installs nothing" "$(grep -c '^apt-get' "$machine/calls")" 0
gives "netns --check says what is missing" 3 "^kernel $aws has no module rdma_rxe" "${softroce[@]}" netns --check
gives "up --install installs the package, and goes on" 0 'rxe0 port 1: ACTIVE' "${softroce[@]}" up --install
is "up --install renews apt's lists first" \
    "$(grep -oE '^(apt-get [a-z]+|rdma link add)' "$machine/calls" | xargs)" "apt-get update apt-get install rdma link add"
gives "down removes it" 0 '' "${softroce[@]}" down
is "down unloads the module" "$(grep -c '^modprobe -q -r rdma_rxe' "$machine/calls")" 1

make_machine fedora '' 6.11.4-301.fc41.x86_64 m kernel-modules-extra-6.11.4-301.fc41.x86_64
gives "up --install with dnf" 0 'rxe0 port 1: ACTIVE' "${softroce[@]}" up --install

make_machine ubuntu debian $aws m linux-modules-extra-6.14.0-1016-aws
gives "up --install: the package of a replaced kernel is gone" 3 'apt has no package .*full-upgrade, and reboot' \
    "${softroce[@]}" up --install
make_machine fedora '' 6.11.4-301.fc41.x86_64 m
gives "up --install: dnf fails" 3 'dnf install -y kernel-modules-extra-[^ ]* failed' "${softroce[@]}" up --install
make_machine ubuntu debian $aws m linux-modules-extra-$aws
rm "$machine/good"
gives "up --install: a package without the module" 3 "is installed, but has no rdma_rxe for kernel $aws" \
    "${softroce[@]}" up --install
make_machine debian '' 6.1.0-13-cloud-amd64 n linux-image-amd64
gives "up --install: another kernel is not installed" 3 'apt-get install -y linux-image-amd64, and reboot' \
    "${softroce[@]}" up --install
is "up --install: another kernel: apt is not called" "$(grep -c '^apt-get' "$machine/calls")" 0
finish
