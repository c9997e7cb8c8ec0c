#!/bin/bash
# Three load hosts: in each round, at a random moment, a random host is killed or stopped, or the etcd in which they
# meet is killed. Every other host notices within the lease plus one second, names the lost host, and ends by itself
# with status 1; the server drops the clients. SEED and ROUNDS may be set; the seed is printed.
# limit: 2400

lease_s=${LEASE:-5}
# shellcheck source=tests/soft_roce/lib.sh
. tests/soft_roce/lib.sh
# shellcheck source=tests/hosts/lib.sh
. tests/hosts/lib.sh

rounds=${ROUNDS:-50}
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$seed
echo "seed $seed, $rounds rounds, a lease of $lease_s s"

etcds=0
ramp=(--steps "3,4,5" --repeat 20 --warmup 0.2 --duration 1 --rate 30 --floor 0 --threads 1 --sample-interval 0)
start_server main --threads 1 --max-clients 60 --probe-interval 2
use_client main
remember_start main

now_ms() {
    local t=${EPOCHREALTIME/[.,]/}
    echo $((t / 1000))
}

# Notes, in ms since the epoch, when each host first logged a line that matches; called every 50 ms.
declare -A said_at=()
have_said() { # REGEX NAME...
    local regex=$1 name all=0
    shift
    for name in "$@"; do
        [[ ${said_at[$name]:-} ]] && continue
        if has_line "${logs[$name]}" "$regex"; then said_at[$name]=$(now_ms); else all=1; fi
    done
    return $all
}

# Prints the phase that a host is in.
phase_of() { # NAME
    cat "$tmp/$1"/*/events.ndjson 2>/dev/null | grep -o '"phase":"[a-z ]*"' | tail -n 1 | cut -d'"' -f4
}

begun() { # NAME...; each has a folder of results
    (($(find "${@/#/$tmp/}" -name events.ndjson 2>/dev/null | wc -l) == $#))
}

# Starts an etcd, which several rounds use until it is killed. Its port is outside the kernel's ephemeral range.
start_etcd() {
    local url=http://$host:23790
    etcds=$((etcds + 1))
    start etcd etcd --name run --data-dir "$tmp/etcd.$etcds" --listen-client-urls "$url" --advertise-client-urls "$url" \
        --listen-peer-urls http://127.0.0.1:23791 --initial-advertise-peer-urls http://127.0.0.1:23791 \
        --initial-cluster run=http://127.0.0.1:23791 --log-level warn
    wait_until 60 answers 23790 || { not_ok "etcd answers" "$(<"${logs[etcd]}")" && finish; }
}

answers() { # PORT
    (exec {never}<>"/dev/tcp/$host/$1") 2>/dev/null
}

round() { # NUMBER
    local names=(k ka kb) how=$((RANDOM % 3)) victim=$((RANDOM % 3)) wait_ms=$((RANDOM % 5000)) others=() name phase regex t0 took
    local killed at why=''
    rm -rf "$tmp"/{k,ka,kb}
    said_at=()
    # In odd rounds the first host to come leads. In even rounds a given host leads, with its own etcd.
    if (($1 % 2)); then
        [[ ${pid[etcd]:-} ]] || start_etcd
        for name in "${names[@]}"; do
            start "$name" "${bin}performance_test" --cluster "etcd://$host:23790/round$1" --hosts 3 --server "$host" --tls-port "${port[main]}" \
                --output "$tmp/$name" "${shared[@]}" "${own[@]}" "${ramp[@]}"
        done
    else
        lead k 3 main "${ramp[@]}"
        join ka && join kb
    fi
    if ! wait_until 60 begun "${names[@]}"; then
        not_ok "round $1: all begin" "$(cat "${logs[k]}" "${logs[ka]}" "${logs[kb]}")"
        finish
    fi
    pause "$((wait_ms / 1000)).$(printf '%03d' $((wait_ms % 1000)))"
    phase=$(phase_of k)
    killed=${pid[${names[victim]}]}
    case $how in
    0 | 1)
        for name in "${names[@]}"; do
            [[ $name == "${names[victim]}" ]] || others+=("$name")
        done
        why=$((how ? 19 : 9)) # SIGSTOP, SIGKILL
        # If the leader is killed, its etcd dies too, and nobody is left to say which host is lost.
        regex='is lost|did not refresh its lease'
        ;;
    2)
        others=("${names[@]}") why=9
        if (($1 % 2)); then killed=${pid[etcd]}; else killed=$(pgrep -P "${pid[k]}" -x etcd); fi
        regex='did not refresh its lease in etcd .* etcd at'
        ;;
    esac
    t0=$(now_ms)
    kill -"$why" "$killed" || not_ok "round $1: the victim is there" "$phase: $(cat "${logs[k]}" "${logs[ka]}" "${logs[kb]}")"
    case $how in
    0) why="${names[victim]} killed" ;;
    1) why="${names[victim]} stopped" ;;
    2) why="etcd killed" ;;
    esac
    at=$((SECONDS + lease_s + 20))
    until have_said "$regex" "${others[@]}" || ((SECONDS > at)); do
        pause 0.05
    done
    for name in "${others[@]}"; do
        took=999999
        [[ ! ${said_at[$name]:-} ]] || took=$((said_at[$name] - t0))
        echo "$took $how $victim ${phase:-start}" >>"$tmp/times"
        ((took <= (lease_s + 1) * 1000)) || not_ok "round $1 ($why, $phase): $name notices within the lease and 1 s" "$took ms: $(<"${logs[$name]}")"
    done
    for name in "${others[@]}"; do
        end_of "$name" 40
        ((status == 1)) || not_ok "round $1 ($why, $phase): $name ends with status 1" "$status: $(<"${logs[$name]}")"
    done
    # A stopped host finds out that it was put out, and leaves.
    if ((how == 1)); then
        kill -CONT "$killed"
        end_of "${names[victim]}" 40
        ((status == 1)) || not_ok "round $1 ($why, $phase): it leaves when it goes on" "$status: $(<"${logs[${names[victim]}]}")"
    elif ((how == 0)); then
        end_of "${names[victim]}" 10
    fi
    ((how != 2 || $1 % 2 == 0)) || end_of etcd 10
    stats main --wait 60 clients.connected=0 clients.handshakes=0 >/dev/null || not_ok "round $1 ($why, $phase): the server has no clients" "$(stats main clients.connected)"
    echo "round $1: $why in \"$phase\": noticed after $(tail -n ${#others[@]} "$tmp/times" | cut -d' ' -f1 | paste -sd' ') ms"
}

: >"$tmp/times"
for ((i = 1; i <= rounds; i++)); do
    before=$failed
    round $i
    ((failed > before)) || ok "round $i"
done
sort -n "$tmp/times" | awk '{ v[NR] = $1 } END { printf "noticed after: least %d ms, median %d ms, p90 %d ms, most %d ms, of %d\n",
    v[1], v[int((NR + 1) / 2)], v[int(NR * 0.9 + 0.5)], v[NR], NR }'
for how in "0 killed" "1 stopped" "2 etcd"; do
    awk -v how="${how% *}" '$2 == how { print $1 }' "$tmp/times" | sort -n | awk -v what="${how#* }" '
        { v[NR] = $1 } END { if (NR) printf "  %s: median %d ms, most %d ms of %d\n", what, v[int((NR + 1) / 2)], v[NR], NR }'
done
all_back "after $rounds rounds everything is back" main
stop_server main
finish
