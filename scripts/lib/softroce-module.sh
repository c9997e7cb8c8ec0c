# shellcheck shell=bash
# Finds out whether this kernel has the module rdma_rxe, and how it gets it: only this file knows the packages of the
# distributions. scripts/softroce sources it and has die, note and root; root is "" except in tests, where it is the
# folder with the files of a made-up machine.
# shellcheck disable=SC2154  # scripts/softroce sets root

# True if this kernel's configuration can be read and leaves rdma_rxe out: no package has the module for it then.
kernel_lacks_rxe() {
    local file
    for file in "$root/boot/config-$release" "$root/lib/modules/$release/config" "$root/proc/config.gz"; do
        [[ -r $file ]] || continue
        ! grep -q '^CONFIG_RDMA_RXE=' < <(zcat -f "$file")
        return
    done
    return 1
}

# True if processes here may load modules: bit 16 of the bounding set is CAP_SYS_MODULE.
may_load_modules() {
    local bounds
    bounds=$(sed -n 's/^CapBnd:[[:space:]]*//p' "$root/proc/self/status" 2>/dev/null)
    ((16#${bounds:-ffffffff} >> 16 & 1))
}

# True if the module is loaded, or modprobe finds it in a file or in the kernel, and may load it.
module_is_there() { # NAME
    [[ -e $root/sys/module/$1 ]] || { may_load_modules && modprobe -n -q "$1" 2>/dev/null; }
}

# Sets package, which has rdma_rxe for the running kernel, and installer, the command that installs packages; or else
# reason, why there is none, and remedy, what to do about it. The package of Fedora depends on the other modules'.
find_package() {
    local id='' like='' name='this system' other=''
    release=$(uname -r) package='' installer='' reason='' remedy=''
    # shellcheck disable=SC1091
    [[ ! -r $root/etc/os-release ]] ||
        IFS='|' read -r id like name < <(. "$root/etc/os-release" &&
            echo "${ID:-}|${ID_LIKE:-}|${PRETTY_NAME:-this system}")
    if [[ ! -e $root/proc/modules ]]; then
        reason="kernel $release loads no modules"
        return
    elif ! may_load_modules; then
        reason="no module may be loaded here (CAP_SYS_MODULE is missing, as in a container)"
        remedy="modprobe rdma_rxe on the host"
        return
    fi
    case " $id $like " in
    *' ubuntu '*)
        installer='apt-get install -y' package=linux-modules-extra-$release other=linux-generic
        ;;
    *' debian '*)
        installer='apt-get install -y' package=linux-image-$release other=linux-image-${release##*-}
        [[ $release != *-cloud-* ]] || package=''
        ;;
    *' fedora '* | *' rhel '*)
        installer='dnf install -y' package=kernel-modules-extra-$release
        ;;
    *)
        reason="kernel $release has no module rdma_rxe, and no package of $name that has it is known here"
        return
        ;;
    esac
    [[ $package ]] && ! kernel_lacks_rxe && return
    package=''
    reason="kernel $release was built without rdma_rxe"
    [[ ! $other ]] || remedy="$installer $other, and reboot into that kernel"
}

# Prints the command with which this kernel gets rdma_rxe, or why there is none (status 3).
module() {
    if module_is_there rdma_rxe; then
        echo "modprobe rdma_rxe"
        return
    fi
    find_package
    if [[ ! $package ]]; then
        echo "$reason${remedy:+: $remedy}"
        return 3
    fi
    [[ $installer != apt-get* ]] || printf 'apt-get update && '
    echo "$installer $package && modprobe rdma_rxe"
}

# Installs the package that has rdma_rxe for this kernel. Needs root.
install_module() {
    local words
    find_package
    [[ $package ]] || explain_missing_module
    read -ra words <<<"$installer"
    note "installing $package"
    if [[ $installer == apt-get* ]]; then
        apt-get update -qq
        apt-cache show "$package" >/dev/null 2>&1 ||
            die 3 "apt has no package $package, because it keeps those of current kernels only:" \
                "apt-get full-upgrade, and reboot (or use: scripts/softroce vm)"
        words=(env DEBIAN_FRONTEND=noninteractive "${words[@]}" --no-install-recommends)
    fi
    # stdout is for the answers of this script, such as that of `status`, not for the package manager's output.
    "${words[@]}" "$package" >&2 || die 3 "${words[*]} $package failed"
    module_is_there rdma_rxe ||
        die 3 "$package is installed, but has no rdma_rxe for kernel $release (or use: scripts/softroce vm)"
}

# Loads rdma_rxe and what its devices need. Sets loaded: 1 if rdma_rxe was not there before.
load_modules() {
    loaded=''
    if [[ ! -e $root/sys/module/rdma_rxe ]]; then
        modprobe -q rdma_rxe 2>/dev/null || explain_missing_module
        loaded=1
    fi
    # Without crc32 the link cannot be added. If it is built in, there is nothing to load.
    modprobe -q crc32_generic 2>/dev/null
    modprobe -q rdma_ucm 2>/dev/null
    return 0
}

explain_missing_module() {
    ! module_is_there rdma_rxe || die 3 "kernel $(uname -r) refuses to load its module rdma_rxe (dmesg says why)"
    find_package
    [[ ! $package ]] || die 3 "kernel $release has no module rdma_rxe, but package $package has it:" \
        "scripts/softroce up --install installs that (or use: scripts/softroce vm)"
    die 3 "$reason${remedy:+: $remedy} (or use: scripts/softroce vm)"
}
