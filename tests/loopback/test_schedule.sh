#!/bin/bash
# When performance_test begins operations. The open loop: arrivals, overload, a sweep of offered rates, and the search
# for a rate; the closed loop with --total-inflight. None of it depends on the transport, so this uses TCP. test_load.sh
# has both loops over RDMA.
# here

RAMPART_TRANSPORT=tcp
. tests/soft_roce/lib.sh

for arrival in even poisson; do
    moves "open loop, $arrival: the rate that was asked for, and the times apart" open-$arrival \
        "--workload echo --steps 10 --rate 400 --arrival $arrival --duration 4" \
        'one.throughput_msgs_per_s >= 360' 'one.throughput_msgs_per_s <= 440' 'one.response_ns.count >= 1000' \
        'one.service_ns.count == one.response_ns.count' 'one.schedule_lag_ns.count == one.response_ns.count' \
        'one.response_ns.mean >= one.service_ns.mean'
done
moves "open loop: more than there is room for is late, not lost, and waits in its response time" overload \
    "--workload echo --steps 2 --rate-per-client 500000 --inflight 4 --iterations 2000" 'one.sent_late >= 100' \
    'one.response_ns.p50 > 2 * one.service_ns.p50'

moves "--total-inflight: 8 operations are in flight whatever the number of clients, and the clients take turns" total \
    "--workload echo --steps 1,4,16 --total-inflight 8 --duration 1" '.config.total_inflight == 8' \
    '[.steps[].littles_law_residual | fabs < 0.05] | all' '[.steps[].fairness.jain_index > 0.95] | all'

# A machine that is busy with other things may make the throughput uneven.
moves "a second has enough intervals to tell whether a step was steady" second \
    "--workload echo --steps 4 --rate 1000 --arrival even --duration 1" 'one.intervals | length >= 10' \
    'one.drift.throughput_ratio != null' \
    '(one.validity | index("too_short") == null) or one.drift.throughput_error_ratio > 0.25'
moves "a sweep of offered rates: a step each, with the load that was asked for" sweep \
    "--workload echo --clients 4 --rate 100-400:3 --duration 2" '[.steps[].offered_per_s] == [100, 200, 400]' \
    '[.steps[] | .throughput_msgs_per_s / .offered_per_s | . >= 0.9 and . <= 1.1] | all' \
    '[.steps[].throughput_msgs_per_s] | .[0] < .[1] and .[1] < .[2]' \
    '[.steps[].histograms.response] | unique | length == 3' '.analysis.offered_load.slo_rate == null' \
    '.analysis.offered_load.curves | length == 1' '.config.rates_per_s == [100, 200, 400]'
# A try meets a rate only if 95 % of the operations that were due have ended at its end. Of 2 s, 5 % are 100 ms: a pause
# that a busy machine may make. A try may be steady or not, so the rate may be confirmed or not.
run_to_end find-rate own --server-threads 1 --threads 1 --warmup 0.1 --workload echo --clients 4 --find-rate --rate 100-200 \
    --slo 'mean<20s' --duration 2
holds "--find-rate: nothing misses it up to the most, which is tried 5 times and more" find-rate '.run.status == "completed"' \
    '.analysis.offered_load.slo_rate | .per_s == 200 and .at_least and .upper == null and .between == []' \
    '.analysis.offered_load.slo_rate.lower | .per_s == 200 and .met == .tries and .tries >= 5' \
    '.analysis.offered_load.slo_rate | .confirmed == (.lower.tries - .lower.unsteady >= 5)' \
    '([.steps[] | select(.offered_per_s == 200)] | length) >= .analysis.offered_load.slo_rate.lower.tries' \
    '.verdict[-1].criterion == "rate"' '.analysis.capacity.slo_capacity.clients == null'
finish
