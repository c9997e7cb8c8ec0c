# shellcheck shell=bash
# Builds the boot files of the micro-VM of scripts/softroce once, below build/: the kernel, the initramfs, and whether
# KVM works. Sourced by scripts/softroce, which has die, note, here and build.
# shellcheck disable=SC2154  # those

# Modules loaded before the host's files are mounted, while the boot continues, in this order. Their dependencies are
# found automatically.
base_modules=(virtio_pci virtio_console 9pnet_virtio 9p virtio_rng)
rdma_modules=(crc32_generic crc32c_generic dummy rdma_rxe rdma_ucm)
# Further modules for one of several nodes.
wire_modules=(virtio_net)

find_programs() {
    local item
    # The guest runs the programs of this host.
    [[ $(uname -m) == x86_64 ]] || die 3 "the micro-VM needs an x86-64 host; this one is $(uname -m)"
    for item in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static modprobe:kmod cpio:cpio \
        rdma:iproute2 setsid:util-linux setpriv:util-linux flock:util-linux; do
        command -v "${item%%:*}" >/dev/null ||
            die 3 "${item%%:*} is missing: install package ${item#*:} (make deps)"
    done
    [[ -r /proc/self/io ]] || die 3 "this kernel has no /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING)"
}

# Sets kernel (the file to boot), kernel_dir, kernel_version and initrd, and builds what is missing.
prepare_image() {
    local key
    { mkdir -p "$build/softroce" && [[ -w $build/softroce ]]; } 2>/dev/null ||
        die 3 "cannot write to $build/softroce, where the kernel and the initramfs are kept"
    kernel_dir=$("$here/install-deps" --kernel "$build/kernel") || exit 3
    kernel_version=$(<"$kernel_dir/version")
    key=$({
        printf '%s\n' "$kernel_version" "$(command -v busybox)"
        cat "$here/lib/softroce-guest" "$here/lib/softroce-image.sh"
    } | sha256sum | cut -c 1-16)
    initrd=$build/softroce/initrd-$key
    kernel=$build/softroce/vmlinux-$kernel_version
    if [[ ! -f $initrd || ! -f $kernel ]]; then
        (
            flock 9
            [[ -f $kernel ]] || unpack_kernel "$kernel_dir/vmlinuz" "$kernel"
            [[ -f $initrd ]] || build_initrd "$initrd"
        ) 9>"$build/softroce/.lock" || exit 3
    fi
}

# Little-endian number of $3 bytes at offset $2 of file $1.
number_at() {
    od -An -v "-tu$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

# A bzImage unpacks itself, which takes seconds under emulation. QEMU can boot its content (PVH) directly; if that
# cannot be extracted, the bzImage is used. Offsets: Documentation/x86/boot.rst in Linux.
unpack_kernel() {
    local image=$1 out=$2 start length magic unpack
    start=$((($(number_at "$image" 497 1) + 1) * 512 + $(number_at "$image" 584 4)))
    length=$(number_at "$image" 588 4)
    magic=$(od -An -v -tx1 -j "$start" -N 4 "$image" | tr -d ' ')
    case $magic in
    fd377a58) unpack=(xz -dc --single-stream) ;;
    28b52ffd) unpack=(zstd -dcq) ;;
    1f8b*) unpack=(gzip -dcq) ;;
    *) unpack=(false) ;;
    esac
    # The payload ends with its unpacked size, which these programs report as garbage, so the ELF header decides.
    tail -c +$((start + 1)) "$image" | head -c "$length" | "${unpack[@]}" >"$out.tmp" 2>/dev/null
    if [[ $(od -An -v -tx1 -N 4 "$out.tmp" | tr -d ' ') != 7f454c46 ]]; then
        cp "$image" "$out.tmp" || die 3 "cannot write to $build/softroce"
    fi
    mv "$out.tmp" "$out"
}

# Copies modules and their dependencies to directory $1, each once, and lists them in file $1/$2.
copy_modules() {
    local dir=$1 list=$2 module paths path name
    shift 2
    for module in "$@"; do
        # -C: ignore the host's blacklists and options, which are not meant for the guest.
        paths=$(modprobe -C /dev/null -d "$kernel_dir" -S "$kernel_version" --show-depends "$module") ||
            die 3 "kernel $kernel_version has no module $module"
        while read -r _ path; do
            name=${path##*/}
            name=${name%.ko*}.ko
            [[ $path == *.ko* && ! -e $dir/$name ]] || continue
            case $path in
            *.xz) xz -dc "$path" ;;
            *.zst) zstd -dcq "$path" ;;
            *) cat "$path" ;;
            esac >"$dir/$name.tmp" || die 3 "cannot unpack $path"
            # Without the marker at its end a module counts as unsigned, which saves the time to verify it.
            head -c -28 "$dir/$name.tmp" >"$dir/$name"
            rm "$dir/$name.tmp"
            printf '%s\n' "$name"
        done <<<"$paths" >>"$dir/$list"
    done
}

build_initrd() {
    local out=$1 applet
    # A killed run may have left this; nobody uses it, because the caller holds the lock.
    rm -rf "$build/softroce"/tmp.*
    work=$(mktemp -d "$build/softroce/tmp.XXXXXX") || die 3 "cannot write to $build/softroce"
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    mkdir "$work"/{bin,dev,proc,sys,newroot,modules}
    cp "$(command -v busybox)" "$work/bin/busybox"
    # Without a libc only a static busybox runs.
    if ldd "$work/bin/busybox" >/dev/null 2>&1; then
        die 3 "this busybox is not a static one: install package busybox-static (make deps)"
    fi
    while read -r applet; do
        [[ $applet == busybox ]] || ln -s busybox "$work/bin/$applet"
    done < <(busybox --list)
    cp "$here/lib/softroce-guest" "$work/init"
    chmod 755 "$work/init" "$work/bin/busybox"
    copy_modules "$work/modules" base "${base_modules[@]}"
    copy_modules "$work/modules" rdma "${rdma_modules[@]}"
    copy_modules "$work/modules" wire "${wire_modules[@]}"
    # Not compressed, because under emulation unpacking takes longer than reading.
    (cd "$work" && find . | cpio --quiet -o -H newc -R 0:0) >"$out.tmp" || die 3 "cpio failed"
    find "$build/softroce" -maxdepth 1 -name 'initrd-*' ! -name '*.tmp' -mmin +1440 -delete
    mv "$out.tmp" "$out"
    rm -rf "$work"
    trap - EXIT INT TERM
}

# True if KVM boots this kernel: even with /dev/kvm the guest may hang or QEMU abort. Tested once per boot of the host
# and user.
kvm_works() {
    local cache console
    [[ -r /dev/kvm && -w /dev/kvm ]] || return 1
    cache=$build/softroce/kvm-$(cat /proc/sys/kernel/random/boot_id)-$EUID
    if [[ ! -f $cache ]]; then
        [[ ! -t 2 ]] || note "finding out once whether KVM works (5 s at most)"
        console=$(mktemp "$build/softroce/probe.XXXXXX") || die 3 "cannot write to $build/softroce"
        # The braces also hide the shell's own message about an abort.
        {
            timeout -s KILL 5 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
                -machine pc -accel kvm -cpu host -m 512 -serial "file:$console" -kernel "$kernel" \
                -initrd "$initrd" -append "console=ttyS0 quiet panic=-1 acpi=noirq softroce.probe" </dev/null
        } >/dev/null 2>&1
        if grep -qs 'probe passed' "$console"; then echo yes; else echo no; fi >"$console.answer"
        rm -f "$console" "$build/softroce"/kvm-*-"$EUID"
        mv "$console.answer" "$cache"
    fi
    [[ $(<"$cache") == yes ]]
}
