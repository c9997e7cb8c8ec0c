#!/bin/bash
# Sets the machine's clock under load: an hour on, an hour back, a year on. Deadlines, quarantines and measured times
# use clocks that nobody can set; certificates are judged by the one that is set.
# shellcheck disable=SC2016,SC2317  # words of jq and of node 2; what looks unreachable is called by name

. tests/soft_roce/lib.sh

if [[ ! ${RAMPART_VM:-} ]]; then
    skip "the clock is set" "that is for a micro-VM's clock only"
    finish
fi

# Moves the clock by this many seconds.
set_clock_by() { # SECONDS
    date -s "@$(($(date +%s) + $1))" >/dev/null || not_ok "the clock is set by $1 s" "see above"
}
# Prints the seconds since boot, because bash's own count follows the clock.
uptime_s() {
    local up
    read -r up _ </proc/uptime
    echo "${up%.*}"
}
hour=3600 day=86400 year=$((365 * 86400))
# The certificates were made a moment ago, so an hour earlier they would not be valid yet. Move on first.
set_clock_by $day

start_server main --threads 2 --max-clients 64 --verify --session-timeout 8 --ticket-rotation 60
remember_start main
use_client main

# ---- a run, a ping and a session that nobody uses

start_ping bystander main --interval 0.05
load run main --steps 20 --threads 1 --warmup 0 --duration 1h --churn 2 --tls-resume
wait_until 60 has_line "$results"/*-run/events.ndjson '"measuring"' || not_ok "the run measures" "$(<"${logs[run]}")"
begun=$(uptime_s)
for by in $hour -$hour -$hour $hour $year; do
    set_clock_by "$by"
    before=$(stats main events.established)
    limit=30 counted "the clock is set by $by s: clients come and go as before" main "events.established>=$((before + 4))"
    serves "the clock is set by $by s: a new client is served" main
done
passed_s=$(($(uptime_s) - begun))
kill -INT "${pid[run]}"
end_of run 120
is "the clock is set: the run ends when told to" "$status" 130
holds "the clock is set: no client is lost, nothing fires early or late" run 'one.connected_held == 20' \
    '[one | .failed, .dropped] == [0, 0]' 'one.failures == []' \
    '[one.verified | .corrupt, .server_corrupt] == [0, 0]' 'one.verified.checked >= 1000' 'one.churn.cycles_failed == 0' \
    'one.churn.cycles >= 20' 'one.validity | contains(["replies_missing"]) | not' 'one.clock_late_ns < 600e9'
holds "the clock is set: measured times are those that passed" run "one.measured_s >= $passed_s - 5 and one.measured_s <= $passed_s + 10" \
    'one.resources.server.window_s | . == null or (. > 0 and . < 600)' 'one.response_ns.max < 60e9' \
    '((.run.ended_at | sub("\\.[0-9]+Z"; "Z") | fromdate) - (.run.started_at | sub("\\.[0-9]+Z"; "Z") | fromdate)) as $s |
        $s >= one.measured_s - 1 and $s < one.measured_s + 240'
loses_nothing "the clock is set: a client that was there all the time loses nothing" bystander
limit=60 all_back "the clock is set: everything is back" main

# ---- a session that nobody uses ends after its real time, whatever the clock says

for by in $hour -$hour; do
    before=$(stats main failures.rdma_connect.timeout)
    begun=$(uptime_s)
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" vanish >/dev/null || not_ok "a session" "rogue vanish"
    set_clock_by "$by"
    counted "the clock is set by $by s: a session that waits is not ended by that" main 'pools.sessions>=1' \
        failures.rdma_connect.timeout="$before"
    limit=30 counted "the clock is set by $by s: it ends when its time is over" main pools.sessions=0 pools.psns_in_use=0 \
        failures.rdma_connect.timeout=$((before + 1))
    is "the clock is set by $by s: that were 8 s" "$(($(uptime_s) - begun >= 7))" 1
done

# ---- certificates

start_ping bystander main --interval 0.05
set_clock_by $((3 * year))
gives "certificates have expired: a client does not trust the server" 1 'certificate:10: certificate has expired' "${rdma_client[@]}" --count 1 \
    "$host" ping
kill -HUP "${pid[main]}"
wait_until 60 has_line "${logs[main]}" 'has expired .*: renew it and send SIGHUP' ||
    not_ok "the server warns at SIGHUP" "$(tail -n 3 "${logs[main]}")"
set_clock_by $((-3 * year - year - 3 * day))
gives "certificates are not valid yet: a client does not trust the server" 1 'certificate:9: certificate is not yet valid' "${rdma_client[@]}" \
    --count 1 "$host" ping
set_clock_by $((3 * day))
loses_nothing "certificates: who is connected stays" bystander
limit=60 all_back "certificates: everything is back" main
serves "the clock is right again: a client is served" main
stop_server main
finish
