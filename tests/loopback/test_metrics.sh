#!/bin/bash
# --metrics over TCP: figures of connected clients, both formats, what is no scrape, many connections at once; the same of
# a run, and its --metrics-textfile; docs/metrics.md, dashboard and alert rules, which name exported metrics only. And
# the server's --log-format.
# here

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

# The value of a sample, named with its labels.
value() { # FILE SAMPLE
    sed -n "s/^$2 //p" "$1"
}

free_port() {
    python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])'
}

# The table of docs/metrics.md, from the help and type of each metric; and the one that is there.
table() { # FILE
    printf '%s\n' '| metric | type | meaning |' '|---|---|---|'
    awk '$2 == "HELP" { help[$3] = substr($0, index($0, $4)) }
        $2 == "TYPE" { printf "| `%s` | %s | %s |\n", $3, $4, help[$3] }' "$1"
}
documented() { # PROGRAM
    sed -n "/^## $1/,/^## /p" docs/metrics.md | grep '^|'
}

start_server main --threads 2 --max-clients 64 --metrics 0
matches "the ready line says where metrics are" "${metrics[main]-}" '^127\.0\.0\.1:[0-9]+$'
for i in 1 2 3; do
    start_ping "client$i" main --interval 0.01
done
reaches main 60 clients.connected=3
gives "a refusal, to be counted" 1 refused "${bin}rdma_client" "${tls_options[@]}" --transport tls \
    --tls-port "${port[main]}" --count 1 "$host" ping
: >"/dev/tcp/$host/${port[main]}" # a connection that closes at once
counted "a failure, too" main failures.tls_handshake.closed_by_peer=1

scrape main >"$tmp/text"
is "clients, by state" "$(value "$tmp/text" 'rampart_server_clients{state="connected"}')" 3
is "a refusal, by code" "$(value "$tmp/text" 'rampart_server_refusals_total{code="unsupported"}')" 1
is "handshakes, full ones" "$(($(value "$tmp/text" 'rampart_server_tls_handshakes_total{kind="full"}') >= 4))" 1
is "messages come in" "$(($(value "$tmp/text" 'rampart_server_messages_total{direction="in"}') > 0))" 1
is "a stage's histogram has all of its handshakes" \
    "$(value "$tmp/text" 'rampart_server_stage_seconds_bucket{stage="tls_accept",le="+Inf"}')" \
    "$(value "$tmp/text" 'rampart_server_stage_seconds_count{stage="tls_accept"}')"
is "each shard's loop lag was measured" \
    "$(sed -n 's/^rampart_server_loop_lag_seconds_count{shard="[01]"} //p' "$tmp/text" | awk '$1 > 0' | wc -l)" 2
is "the certificate's expiry is that of the certificate" \
    "$(value "$tmp/text" 'rampart_server_certificate_expiry_timestamp_seconds{file="cert"}')" \
    "$(date -d "$(openssl x509 -noout -enddate -in "$certs/server.pem" | cut -d= -f2)" +%s)"
scrape main 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' >"$tmp/openmetrics"
is "OpenMetrics ends with its mark" "$(tail -n 1 "$tmp/openmetrics")" '# EOF'
is "both formats have the same samples" "$(grep -v '^#' "$tmp/openmetrics" | sed 's/ [^ ]*$//' | sort)" \
    "$(grep -v '^#' "$tmp/text" | sed 's/ [^ ]*$//' | sort)"
is "docs/metrics.md has the server's metrics" "$(documented rdma_server)" "$(table "$tmp/text")"

# What a scraper does not do: each is answered or closed, and none takes the place of one that scrapes.
gives "connections that are silent, unfinished, wrong or deaf do not stop a scrape" 0 '^served 10 of 10$' \
    python3 - "${metrics[main]}" <<'END_OF_PROGRAM'
import socket
import sys
import urllib.request

host, port = sys.argv[1].split(":")
kinds = [b"", b"GET /metrics HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00" * 900, b"GET /metrics HTTP/1.1\r\n\r\n", b"A" * 9000]
served = 0
for scrape in range(10):
    crowd = []
    for i in range(100):
        s = socket.create_connection((host, int(port)))
        crowd.append(s)
        try:
            s.sendall(kinds[i % len(kinds)])
        except OSError:
            pass  # the server has closed it already
    text = urllib.request.urlopen("http://%s:%s/metrics" % (host, port), timeout=10).read().decode()
    served += "rampart_server_uptime_seconds" in text
    for s in crowd:
        s.close()
print("served %d of 10" % served)
END_OF_PROGRAM

# Starts a Prometheus that scrapes the server and the run.
start_prometheus() {
    prometheus_at=127.0.0.1:$(free_port)
    cat >"$tmp/prometheus.yml" <<END
global: {scrape_interval: 500ms, evaluation_interval: 1s}
rule_files: ["$PWD/deploy/prometheus/rampart.rules.yml"]
scrape_configs:
  - job_name: rampart
    static_configs: [{targets: ["${metrics[main]}", "${metrics[run]}"]}]
END
    start prometheus prometheus --config.file "$tmp/prometheus.yml" --storage.tsdb.path "$tmp/tsdb" \
        --web.listen-address "$prometheus_at" --log.level warn
}

# Asks it each query of the dashboard; prints the queries that fail, and those that have no answer. Here are no ports of
# RDMA devices, no rate that a run offers, and perhaps no control group that could be throttled.
ask_dashboard() {
    python3 - "$prometheus_at" deploy/grafana/rampart.json <<'END_OF_PROGRAM'
import json
import sys
import urllib.parse
import urllib.request

for panel in json.load(open(sys.argv[2]))["panels"]:
    for target in panel.get("targets", []):
        query = target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*").replace("$run", ".*")
        url = "http://%s/api/v1/query?%s" % (sys.argv[1], urllib.parse.urlencode({"query": query}))
        try:
            result = json.load(urllib.request.urlopen(url, timeout=10))["data"]["result"]
        except Exception as e:
            print("%s: %s" % (query, e))
            continue
        if not result and not any(name in query for name in ("_port_", "_offered_", "_throttled_")):
            print("%s: no answer" % query)
END_OF_PROGRAM
}

dashboard_answers() {
    unanswered=$(ask_dashboard)
    [[ ! $unanswered ]]
}

if command -v promtool >/dev/null; then
    gives "promtool finds nothing in the text" 0 '^$' promtool check metrics <"$tmp/text"
    gives "promtool: the alert rules are right" 0 'SUCCESS' promtool check rules deploy/prometheus/rampart.rules.yml
    gives "promtool: each alert fires when it should" 0 'SUCCESS' \
        promtool test rules deploy/prometheus/rampart.test.yml
else
    skip "promtool" "is not installed (package prometheus)"
fi

# ---- a run

metrics[run]=127.0.0.1:$(free_port)
load run main --steps 5 --duration 1 --warmup 0.1 --threads 1 --metrics "${metrics[run]}" --metrics-textfile "$tmp/run.prom"
begins_measuring run
matches "a run is scraped while it measures" "$(scrape run 2>&1)" 'rampart_run_clients\{state="connected"\} 5'
end_of run 120
is "the run ends, whether its times met the criteria or not" "$((status < 2))" 1
is "the file has the last step's clients" "$(value "$tmp/run.prom" 'rampart_run_last_step_clients{state="held"}')" 5
is "and its response time, that of run.json" \
    "$(value "$tmp/run.prom" 'rampart_run_last_step_response_seconds{percentile="50"}' | awk '{ printf "%.0f", $1 * 1e9 }')" \
    "$(jq '.steps[-1].response_ns.p50' "$tmp/run.json")"
is "and the criteria that were met" "$(value "$tmp/run.prom" 'rampart_run_criteria{result="pass"}')" \
    "$(jq '[.verdict[].result | select(. == "pass")] | length' "$tmp/run.json")"
is "docs/metrics.md has the run's metrics" "$(documented performance_test)" "$(table "$tmp/run.prom")"
! command -v promtool >/dev/null || gives "promtool finds nothing in the file" 0 '^$' promtool check metrics <"$tmp/run.prom"
exported=$(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$tmp/text" "$tmp/run.prom" | sort)
used=$(grep -oh 'rampart_[a-z]*_[a-z_]*' deploy/prometheus/rampart.rules.yml deploy/grafana/rampart.json |
    sed -E 's/(_seconds)_(bucket|sum|count)$/\1/' | sort -u)
is "dashboard and alert rules name exported metrics only" "$(comm -23 <(echo "$used") <(echo "$exported"))" ''
is "and some of them" "$(($(wc -l <<<"$used") > 15))" 1
if command -v prometheus >/dev/null; then
    start_prometheus
    # The first repetition ends, and further ones go on until the dashboard has its answers.
    load watched main --steps 5 --repeat 60 --duration 1 --threads 1 --metrics "${metrics[run]}"
    if wait_until 120 dashboard_answers; then
        ok "a Prometheus that scrapes both answers every query of the dashboard"
    else
        not_ok "a Prometheus that scrapes both answers every query of the dashboard" "$unanswered"
    fi
    kill -INT "${pid[watched]}"
    end_of watched 60
    kill -TERM "${pid[prometheus]}"
    end_of prometheus 60
else
    skip "Prometheus" "is not installed"
fi
gives "a port that is none is named" 2 "^performance_test: --metrics: '9100x' is not allowed; allowed: PORT, " \
    "${bin}performance_test" --metrics 9100x --clients 1
gives "a file that cannot be written is named" 3 '^performance_test: --metrics-textfile /nowhere/file: No such file' \
    "${bin}performance_test" --environment native "${over[@]}" --metrics-textfile /nowhere/file --clients 1
for i in 1 2 3; do
    loses_nothing "client $i lost nothing" "client$i"
done
stop_server main

gives "a port that is in use is named" 3 '^rdma_server: --metrics: cannot listen at 127\.0\.0\.1:[0-9]+: Address already in use' \
    python3 - "${bin}rdma_server" "${server_ports[@]}" "${server_files[@]}" --transports tcp <<'END_OF_PROGRAM'
import socket
import subprocess
import sys

s = socket.create_server(("127.0.0.1", 0))
sys.exit(subprocess.run(sys.argv[1:] + ["--metrics", str(s.getsockname()[1])]).returncode)
END_OF_PROGRAM

# ---- logs for programs

start_server json --threads 1 --max-clients 4 --log-format json --log-level debug
serves "a server that logs JSON serves" json
stop_server json
is "each line on stderr is an object with time, level, program and message" \
    "$(grep -v '^rdma_server ready' "${logs[json]}" | jq -r 'select(.time and .level and .message) | .program' | sort -u)" \
    rdma_server
is "lines about a connection name it" "$(grep -v '^rdma_server ready' "${logs[json]}" |
    jq -r 'select(.message | test("-> LIVE$")) | "\(.shard) \(.connection)"')" "0 0"
finish
