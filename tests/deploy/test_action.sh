#!/bin/bash
# Runs the steps of deploy/github/action.yml in a clean system that has only what the README names: git and make. The
# system uses this machine's package sources and network. Needs root, mmdebstrap, and the Node packages of this folder.
#
# Prints a line for each check. Exit status: 0 all passed, else 1.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
root=$work/root
trap 'rm -rf "$work"' EXIT
failed=0

check() { # NAME COMMAND...
    if "${@:2}" >"$work/log" 2>&1; then
        echo "ok - action: $1"
    else
        failed=1
        echo "not ok - action: $1: $(tail -n 5 "$work/log" | tr '\n' '|')"
    fi
}

clean_system() {
    mmdebstrap --quiet --variant=apt --include=git,make,ca-certificates bookworm "$root" &&
        cp -a /etc/apt/. "$root/etc/apt/" && cp /etc/resolv.conf "$root/etc/" && cp -a /etc/ssl/certs "$root/etc/ssl/" &&
        cp -a /usr/local/share/ca-certificates "$root/usr/local/share/" &&
        mkdir -p "$root/action" "$root/workspace" "$root/runner" &&
        git ls-files -z | tar --null -T - -c | tar -x -C "$root/action"
}

# Prints the script of a step.
step() { # NUMBER
    (cd tests/deploy && node -e '
        const { parse } = require("yaml");
        const action = parse(require("fs").readFileSync("../../deploy/github/action.yml", "utf8"));
        console.log(action.runs.steps[process.argv[1]].run)' "$1")
}

# Variables of a runner, and what an earlier step added to the PATH.
in_system() { # SCRIPT
    # shellcheck disable=SC2016  # the inner shells expand it
    unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' "$root" \
        env -i PATH="$(cat "$root/runner/path" 2>/dev/null):/usr/sbin:/usr/bin:/sbin:/bin" LANG=C.UTF-8 HOME=/root \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} REF=v1/test \
        GITHUB_ACTION_PATH=/action/deploy/github GITHUB_PATH=/runner/path GITHUB_STEP_SUMMARY=/runner/summary MACHINE= \
        COMMAND='performance_test --clients 10 --duration 1' \
        sh -c 'cd /workspace && exec bash --noprofile --norc -eo pipefail -c "$0"' "$1"
}

check "a clean system is made" clean_system
check "the first step installs, builds and makes certificates" in_system "$(step 0)"
check "the version is what 'uses' names" in_system 'performance_test --version | grep v1-test'
check "the second step runs the command with an RDMA device" in_system "$(step 1)"
check "all clients were held over RDMA" jq -e '.steps[0].connected_held == 10 and .environment.server.rdma_device.name == "rxe0"' \
    "$root"/workspace/results/*/run.json
check "the report is in the workspace" test -s "$(echo "$root"/workspace/results/*/report.html)"
check "the job's page has a summary" grep -q 'success rate' "$root/runner/summary"
check "the command's exit status is the step's" in_system "COMMAND='exit 7'
($(step 1)) && exit 1 || [ \$? -eq 7 ]"
exit $failed
