#!/usr/bin/env bash
# Tests deploy/systemd/rampart-server.service with the RDMA device: a systemd in namespaces of its own starts, reloads,
# watches, restarts and stops the server.
# shellcheck disable=SC2317  # what looks unreachable is called by name

. tests/soft_roce/lib.sh
for command in /lib/systemd/systemd systemctl nsenter; do
    command -v "$command" >/dev/null || { not_ok "systemd is there" "$command is missing" && finish; }
done

unit=deploy/systemd/rampart-server.service
gives "systemd finds no mistake in the unit" 0 '^$' systemd-analyze verify --man=no "$unit"
gives "systemd rates its exposure at 1.5 of 10 at most" 0 'exposure level.*OK' \
    systemd-analyze security --offline=true --threshold=15 "$unit"

# Units in /run take precedence over those of the system. Only what this machine cannot have is replaced: the paths, the
# units that bring up a network, and the time until a server that hangs is ended.
units=/run/systemd/system
log=/run/rampart.log
config=/run/rampart.conf
cp deploy/systemd/server.conf "$config"
chmod 644 "$config"
mkdir -p "$units/rampart-server.service.d"
cp "$unit" "$units"
cat >"$units/rampart-server.service.d/test.conf" <<END
[Unit]
DefaultDependencies=no
After=
Wants=
[Service]
ExecStart=
ExecStart=$(sed -n "s|^ExecStart=/usr/bin/|$PWD/|; s|--config /etc/rampart/server.conf|--config $config|p" "$unit")
LoadCredential=
LoadCredential=server.pem:$PWD/$certs/server.pem
LoadCredential=server.key:$PWD/$certs/server.key
EnvironmentFile=
EnvironmentFile=-/run/rampart.options
StandardError=append:$log
WatchdogSec=6
END
printf '[Unit]\nDefaultDependencies=no\n' >"$units/rampart-test.target"
# systemd takes this control group, and mounts have to reach its services.
cat >"$tmp/init" <<END
mount --make-rshared / && mount -t proc proc /proc && umount -l /sys/fs/cgroup &&
    mount -t cgroup2 cgroup /sys/fs/cgroup || exit
exec env container=rampart /lib/systemd/systemd --unit=rampart-test.target --log-target=console
END
start systemd unshare --pid --mount --cgroup --fork --kill-child bash "$tmp/init"

wait_until 60 pgrep -P "${pid[systemd]}" >/dev/null
inside=(nsenter -t "$(pgrep -P "${pid[systemd]}")" --pid --mount --cgroup)
property() { # NAME
    "${inside[@]}" systemctl show --value -p "$1" rampart-server
}
has_property() { # NAME EXTENDED_REGEX
    [[ $(property "$1") =~ $2 ]]
}
reaches_property() { # WHAT NAME EXTENDED_REGEX
    if wait_until 240 has_property "$2" "$3"; then ok "$1"; else
        not_ok "$1" "$2 is '$(property "$2")', wanted /$3/; $(tail -n 3 "$log")"
    fi
}
is_up() {
    [[ $("${inside[@]}" systemctl is-system-running 2>/dev/null) =~ running|degraded ]]
}
# Starts the service with options; `systemctl start` returns when the server has said that it is ready.
starts() { # WHAT STATUS OPTIONS
    echo "RAMPART_OPTIONS=\"$3\"" >/run/rampart.options
    : >"$log"
    "${inside[@]}" systemctl reset-failed rampart-server 2>/dev/null
    gives "$1" "$2" '' "${inside[@]}" systemctl start rampart-server
}

wait_until 240 is_up || { not_ok "systemd runs" "$(cat "${logs[systemd]}")" && finish; }
host=$(ip -4 -o address show dev rampart0 | sed -n 's/.* inet \([0-9.]*\)\/.*/\1/p')
port[service]=7471

starts "the service starts" 0 "--max-clients 64"
serves "a client gets its reply as soon as systemd says that the service runs" service
server=$(pgrep -x rdma_server)
is "it has no user, capability or further system call that it does not need" \
    "$(awk '/^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):/ { print $1, ($1 == "Uid:" ? ($2 > 1000) : $2) }' \
        "/proc/$server/status" | xargs)" \
    "Uid: 1 CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2"
start_ping holder service --interval 0.1
reaches_property "the status says how many clients there are" StatusText '^1 clients connected'
gives "systemctl reload succeeds" 0 '' "${inside[@]}" systemctl reload rampart-server
if wait_until 240 has_line "$log" 'SIGHUP: certificates were read again'; then ok "the certificates are read again"; else
    not_ok "the certificates are read again" "$(cat "$log")"
fi
reaches_property "the service is active after a reload" ActiveState '^active$'
loses_nothing "a client keeps its connection" holder

kill -KILL "$server"
reaches_property "a server that was killed is started again" NRestarts '^1$'
reaches_property "and serves" ActiveState '^active$'
serves "a client gets its reply again" service
kill -STOP "$(pgrep -x rdma_server)"
reaches_property "a server that stands still is ended by the watchdog and started again" NRestarts '^2$'
reaches_property "and serves again" ActiveState '^active$'
serves "a client gets its reply once more" service
gives "the service stops" 0 '' "${inside[@]}" systemctl stop rampart-server
is "it ended in order" "$(property Result) $(tail -n 1 "$log")" "success rdma_server: info: stopped"

starts "an unknown option: the service does not start" 1 --nonsense
is "it is not tried again, and the log names the option" \
    "$(property ActiveState) $(property NRestarts) $(grep -c -- '--nonsense' "$log")" "failed 0 1"
echo 'max-clients = 0' >"$config"
starts "an error in the configuration file: the service does not start" 1 ""
is "it is not tried again, and the log names the file and the line" \
    "$(property ActiveState) $(property NRestarts) $(grep -c -- "$config:1: --max-clients: 0" "$log")" "failed 0 1"
cp deploy/systemd/server.conf "$config"
echo '[Service]
LimitMEMLOCK=64K' >"$units/rampart-server.service.d/limit.conf"
"${inside[@]}" systemctl daemon-reload
starts "too little locked memory: the service does not start" 1 "--max-clients 10000"
is "it is not tried again, and the log says what to raise" \
    "$(property ActiveState) $(property NRestarts) $(grep -c 'ulimit -l' "$log")" "failed 0 1"

kill -KILL "${pid[systemd]}"
end_of systemd 60
finish
