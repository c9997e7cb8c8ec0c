#!/bin/bash
# Packet sequence numbers: the devices were programmed with the PSNs that both sides agreed on, not with those of the
# connection manager, and no two connections share one.

. tests/soft_roce/lib.sh

runs=8
held=4

value() { # FILE NAME; from rdma_client's JSON, one value per line
    sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1"
}

start_server main --threads 2 --max-clients 256 --verify --session-timeout 8 --probe-interval 0
remember_start main
use_client main
for ((i = 0; i < held; i++)); do
    start "held$i" "${rdma_client[@]}" --verify --interval 60 "$host" ping
done
start raw "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" hold
for ((i = 0; i < held; i++)); do
    wait_until 240 has_line_or_gone "held$i" 'seq=1 '
done
wait_until 240 has_line_or_gone raw 'connected'
counted "$held clients and a raw one are connected, their PSNs read back by the server" main \
    clients.connected=$((held + 1)) events.psn_verified=$((held + 1)) pools.psns_in_use=$((2 * held + 2))

# ---- PSNs in the devices: `rdma resource` asks the kernel for other processes' QPs

declare -A rq=() sq=() peer=()
servers=()
[[ $(<"${logs[main]}") =~ \ device=([^ ]+) ]]
if [[ ! -e /sys/class/infiniband/${BASH_REMATCH[1]}/parent ]]; then
    skip "PSNs in the kernel's list of QPs" "only Soft-RoCE is known to show there what is in use"
elif ! command -v rdma >/dev/null; then
    skip "PSNs in the kernel's list of QPs" "the rdma program (package iproute2) is missing"
else
    while read -r lqpn rqpn rq_psn sq_psn thread; do
        rq[$lqpn]=$rq_psn sq[$lqpn]=$sq_psn peer[$lqpn]=$rqpn
        # The kernel names the thread that made the QP.
        [[ ! -e /proc/${pid[main]}/task/$thread ]] || servers+=("$lqpn")
    done < <(rdma resource show qp 2>/dev/null |
        sed -n 's/.* lqpn \([0-9]*\) rqpn \([0-9]*\) .* state RTS rq-psn \([0-9]*\) sq-psn \([0-9]*\) .* pid \([0-9]*\) .*/\1 \2 \3 \4 \5/p')
    is "the kernel lists the server's connected QPs" ${#servers[@]} $((held + 1))
    same=0
    for qpn in "${servers[@]}"; do
        other=${peer[$qpn]}
        [[ ${rq[$qpn]} == "${sq[$other]:-}" && ${sq[$qpn]} == "${rq[$other]:-}" ]] && same=$((same + 1))
    done
    is "both ends of each were programmed alike" $same $((held + 1))
    distinct=$(for qpn in "${servers[@]}"; do printf '%s\n' "${rq[$qpn]}" "${sq[$qpn]}"; done | sort -u | wc -l)
    is "no two have a PSN in common" "$distinct" $((2 * held + 2))
    # The raw client prints what was agreed over TLS. Since then one message was sent in each direction.
    raw=$(<"${logs[raw]}")
    if [[ $raw =~ server_qpn=([0-9]+)\ to=([0-9]+)\ from=([0-9]+) ]]; then
        qpn=${BASH_REMATCH[1]} agreed="${BASH_REMATCH[2]} ${BASH_REMATCH[3]}"
        holds="$(((${rq[$qpn]:--1} - 1) & 0xffffff)) $(((${sq[$qpn]:--1} - 1) & 0xffffff))"
        is "the server's QP has the PSNs that were agreed over TLS, one message later" "$holds" "$agreed"
    else
        not_ok "the raw client is connected" "$raw"
    fi
fi
kill -KILL "${pid[raw]}" 2>/dev/null
end_of raw 240

# ---- PSNs that both programs report and read back

good=0 psns=() tops=() why=
for ((i = 0; i < runs; i++)); do
    file=$tmp/info.$i
    if ! timeout 120 "${rdma_client[@]}" --verify --json "$host" info >"$file"; then
        why="run $i failed"
        continue
    fi
    ours=$(value "$file" client_psn) theirs=$(value "$file" server_psn) cm=$(value "$file" cm_psn)
    psns+=("$ours" "$theirs")
    tops+=($((ours >> 16)) $((theirs >> 16)))
    if [[ $(value "$file" psn_verified) == @(1|true) && $ours != "$theirs" && $ours != "$cm" && $theirs != "$cm" ]] &&
        ((ours >= 0 && ours < 1 << 24 && theirs >= 0 && theirs < 1 << 24)); then
        good=$((good + 1))
    else
        why="run $i: ours '$ours', theirs '$theirs', the CM's '$cm'"
    fi
done
is "$runs runs: read back as agreed, below 2^24, not the CM's${why:+ ($why)}" $good $runs
distinct=$(printf '%s\n' "${psns[@]}" | sort -u | wc -l)
# Only PSNs of the same few seconds must differ. With so few, two are equal by chance once in 60,000 times.
is "all PSNs of all runs are different" "$distinct" $((2 * runs))
distinct=$(printf '%s\n' "${tops[@]}" | sort -u | wc -l)
is "they come from the whole range: at least 6 different leading bytes of $((2 * runs))" $((distinct >= 6)) 1
established=$((held + 1 + runs))
counted "the server read back the PSNs of every connection too" main events.established=$established \
    events.psn_verified=$established failures.rdma_connect.protocol:psn_mismatch=0
for ((i = 0; i < held; i++)); do
    kill -INT "${pid[held$i]}"
    end_of "held$i" 240
    ((status == 0)) || not_ok "held client $i" "exit status $status: $(cat "${logs[held$i]}")"
done

gives "60 sessions at once share no PSN" 0 ': 60 sessions, 0 PSNs the same$' \
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" unique-psns=60
gives "a PSN in use is refused, and so is a resting one; another is then granted" 0 \
    'conflict: refused: psn_conflict, refused: psn_conflict, granted.*resting-psn: refused: psn_conflict' \
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" psn-conflict resting-psn
gives "the device holds to the PSN that was programmed: another one gets nothing through" 0 \
    'wrong-psn: wc: retry_exceeded' "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" wrong-psn
counted "conflicts are counted" main events.psn_conflicts=3 events.refused.psn_conflict=3
all_back "every PSN is free again" main
stop_server main
finish
