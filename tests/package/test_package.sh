#!/bin/bash
# The Debian packages: built twice with the same bytes, without complaint of lintian, and in a clean system installed,
# tried, upgraded and purged with nothing left. The RPM packages: built twice, installed and removed. Needs root, and the packages of scripts/install-deps --packages.
#
# Usage: tests/package/test_package.sh TALLY    TALLY gets "passed failed skipped". Exit status: 0 all passed, else 1.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

tally=$1 passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"; echo "$passed $failed 0" >"$tally"' EXIT
log=$work/log

# The command must succeed.
check() { # NAME COMMAND...
    if "${@:2}" >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok - package: $1"
    else
        failed=$((failed + 1))
        echo "not ok - package: $1"
        tail -n 15 "$log" | sed 's/^/#   /'
    fi
}

same_bytes() { # KIND
    local package
    for package in "$work"/one/*."$1"; do
        cmp "$package" "$work/two/${package##*/}" || return
    done
}

# The SBOM names each program of the package with its hash, and each package that it depends on.
sbom_is_true() { # PACKAGE
    local root=$work/unpacked/$1 sbom file
    sbom=$root/usr/share/doc/$1/$1.spdx.json
    mkdir -p "$work/unpacked"
    dpkg-deb -R "$work/one/$1"_*.deb "$root" && [[ $(jq -r .spdxVersion "$sbom") == SPDX-2.3 ]] || return
    for file in "$root"/usr/bin/*; do
        [[ $(jq -r --arg f "./usr/bin/${file##*/}" '.files[] | select(.fileName == $f).checksums[] |
            select(.algorithm == "SHA256").checksumValue' "$sbom") == "$(sha256sum <"$file" | cut -d' ' -f1)" ]] || return
    done
    for file in libssl3 libev4 librdmacm1; do
        jq -e --arg n $file 'any(.packages[]; .name | startswith($n))' "$sbom" || return
    done
}

root=$work/root
# With /proc, where programs find their own path, and a loopback interface of its own.
inside() {
    # shellcheck disable=SC2016  # the inner shell expands it
    unshare --mount --net sh -c 'ip link set lo up && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

files_of_system() {
    (cd "$root" && find etc usr lib var -xdev ! -path 'var/lib/dpkg/*' ! -path 'var/log/*' ! -path 'var/cache/*' \
        ! -path 'etc/*-' | sort)
}

install_debs() { # FOLDER
    mkdir -p "$root/debs" && rm -f "$root"/debs/* && cp "$1"/rampart*.deb "$root/debs" &&
        inside sh -c 'dpkg -i /debs/rampart_*.deb /debs/rampart-server_*.deb'
}

# The same packages with a higher version.
make_newer() {
    local deb name
    mkdir "$work/newer"
    for deb in "$work"/one/rampart_*.deb "$work"/one/rampart-server_*.deb; do
        name=${deb##*/}
        dpkg-deb -R "$deb" "$work/newer/tree" &&
            sed -i 's/^Version: .*/&.newer/' "$work/newer/tree/DEBIAN/control" &&
            dpkg-deb --root-owner-group -b "$work/newer/tree" "$work/newer/$name" || return
        rm -rf "$work/newer/tree"
    done
}

mkdir -p build
check "the packages are built" scripts/make-packages deb "$work/one"
((failed == 0)) || exit 1
check "and again, in another folder" scripts/make-packages deb "$work/two"
check "with the same bytes" same_bytes deb
check "lintian has nothing to say" lintian --pedantic --allow-root --fail-on error,warning,info,pedantic --tag-display-limit 0 "$work"/one/*.changes
check "the server's SBOM is true" sbom_is_true rampart-server
check "the load generator's SBOM is true" sbom_is_true rampart

depends=$(for deb in "$work"/one/rampart_*.deb "$work"/one/rampart-server_*.deb; do dpkg-deb -f "$deb" Depends; done |
    tr ',' '\n' | sed 's/ *(.*//; s/^ *//' | sort -u | paste -sd,)
check "a clean system is made" mmdebstrap --quiet --variant=apt --include="$depends,openssl,ibverbs-providers" bookworm "$root"
files_of_system >"$work/before"
check "both packages are installed" install_debs "$work/one"
check "the unit is where systemd looks for it" test -f "$root/lib/systemd/system/rampart-server.service"
check "it is not started by itself" test ! -e "$root/etc/systemd/system/multi-user.target.wants/rampart-server.service"
check "man pages and suites are there" test -e "$root/usr/share/man/man8/rdma_server.8.gz" -a \
    -e "$root/usr/share/man/man1/performance_test-plan.1.gz" -a -e "$root/usr/share/rampart/suites/fabric.json"
cp deploy/debian/tests/smoke "$root/smoke"
check "its options are a configuration file" test -f "$root/etc/rampart/server.conf"
check "10 clients are served" inside env AUTOPKGTEST_TMP=/tmp bash /smoke
own_server() {
    cp "$root"/tmp/server.{pem,key} "$root/etc/rampart" && cp "$root/tmp/server.pem" "$root/etc/rampart/ca.pem" &&
        inside sh -c 'performance_test --transport tcp --steps 10 --duration 1 --report off \
            --output /tmp/own --json /tmp/own.json; [ $? != 3 ]' &&
        jq -e '.steps[0].connected_held == 10' "$root/tmp/own.json" && rm "$root"/etc/rampart/*.{pem,key}
}
check "a server of performance_test finds its certificates in /etc/rampart" own_server
check "a newer version is made" make_newer
check "and installed over it" install_debs "$work/newer"
check "10 clients are served again" inside sh -c 'mkdir /tmp/again && AUTOPKGTEST_TMP=/tmp/again bash /smoke'
check "both are purged" inside dpkg --purge rampart rampart-server
files_of_system >"$work/after"
check "nothing is left" diff "$work/before" "$work/after"
# ---- RPM, as far as a system without RPM packages shows it: no dependencies, no scripts

in_rpm_root() {
    rpm --root "$work/rpm-root" --dbpath /var/lib/rpm --nodeps --noscripts "$@"
}

has_all_files() {
    for file in usr/bin/performance_test usr/bin/rdma_client usr/bin/rdma_server etc/rampart/server.conf \
        usr/lib/systemd/system/rampart-server.service usr/share/rampart/suites/fabric.json \
        usr/share/rampart/monitoring/rampart.rules.yml usr/share/man/man8/rdma_server.8; do
        compgen -G "$work/rpm-root/$file*" || { echo "$file is missing"; return 1; }
    done
}

check "RPM packages are built" scripts/make-packages rpm "$work/one"
check "and again, in another folder" scripts/make-packages rpm "$work/two"
check "with the same bytes" same_bytes rpm
check "they need the libraries" sh -c 'rpm -qp --requires "$0"/one/rampart-server-*.rpm | grep -q librdmacm' "$work"
mkdir "$work/rpm-root"
check "both are installed in an empty folder" in_rpm_root -i "$work"/one/*.rpm
check "with all their files" has_all_files
check "and removed" in_rpm_root -e rampart rampart-server
check "with nothing left" test -z "$(find "$work/rpm-root" -type f ! -path '*/var/lib/rpm/*')"
echo "package: $passed passed, $failed failed"
((failed == 0))
