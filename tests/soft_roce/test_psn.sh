#!/bin/bash
# Packet sequence numbers: what both sides agreed on is what the devices were programmed with, it is not what
# the connection manager would have chosen, and no two connections share any.

. tests/soft_roce/lib.sh

runs=12
held=6

value() { # FILE NAME; of rdma_client's JSON, which has a line for each
    sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1"
}

start_server main --threads 2 --max-clients 256 --verify --session-timeout 8
remember_start main
use_client main
for ((i = 0; i < held; i++)); do
    start "held$i" "${rdma_client[@]}" --verify --interval 0.2 "$host" ping
done
for ((i = 0; i < held; i++)); do
    wait_until 20 has_line_or_gone "held$i" 'seq=2 '
done
counted "$held clients are held connected, their PSNs read back by the server" main clients.connected=$held \
    events.psn_verified=$held pools.psns_in_use=$((2 * held))

good=0 psns=() tops=() why=
for ((i = 0; i < runs; i++)); do
    file=$tmp/info.$i
    if ! timeout 20 "${rdma_client[@]}" --verify --json "$host" info >"$file"; then
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
# Only those of a few seconds must differ; by chance, two of so few are the same once in 60,000 times.
is "all PSNs of all runs are different" "$distinct" $((2 * runs))
distinct=$(printf '%s\n' "${tops[@]}" | sort -u | wc -l)
is "they come from the whole range: at least 8 different leading bytes of $((2 * runs))" $((distinct >= 8)) 1
established=$((held + runs))
counted "the server read back the PSNs of every connection too" main events.established=$established \
    events.psn_verified=$established failures.rdma_connect.protocol:psn_mismatch=0
for ((i = 0; i < held; i++)); do
    kill -INT "${pid[held$i]}"
    end_of "held$i" 10
    ((status == 0)) || not_ok "held client $i" "exit status $status: $(cat "${logs[held$i]}")"
done

gives "100 sessions at once share no PSN" 0 ': 100 sessions, 0 PSNs the same$' \
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" unique-psns=100
gives "a PSN in use is refused, and so is a resting one; another is then granted" 0 \
    'conflict: refused: psn_conflict, refused: psn_conflict, granted.*resting-psn: refused: psn_conflict' \
    "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" psn-conflict resting-psn
gives "the device holds to the PSN that was programmed: another one gets nothing through" 0 \
    'wrong-psn: wc: retry_exceeded' "$programs/rogue" "${tls_options[@]}" "$host" "${port[main]}" wrong-psn
counted "conflicts are counted" main events.psn_conflicts=3 events.refused.psn_conflict=3
all_back "every PSN is free again" main
stop_server main
finish
