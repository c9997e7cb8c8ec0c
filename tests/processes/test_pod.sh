#!/bin/bash
# A pod with half a CPU and 512 MiB, made of a control group in which this script runs: default threads, the plan, the
# memory floor and doctor take its limits for the machine's, and a step that the quota slowed down has its flag.

. tests/soft_roce/lib.sh

cgroups=/sys/fs/cgroup
outside=$cgroups$(sed -n 's/^0:://p' /proc/self/cgroup)
pod=$cgroups/pod-$$
leave_pod() {
    clean_up
    echo $$ >"$outside/cgroup.procs"
    rmdir "$pod"
}
if ! { echo '+cpu +memory +pids' >$cgroups/cgroup.subtree_control && mkdir "$pod" && trap leave_pod EXIT &&
    echo '50000 100000' >"$pod/cpu.max" && echo 512M >"$pod/memory.max" && echo 300 >"$pod/pids.max" &&
    echo $$ >"$pod/cgroup.procs"; } 2>/dev/null; then
    skip "limits of a control group" "this machine has no cgroup2 with cpu, memory and pids that this user may change"
    finish
fi

limits='{"version":2,"cpus":0.5,"memory_bytes":536870912,"pids":300}'
matches "doctor names the limits" "$("${bin}performance_test" doctor)" \
    'version 2\): CPUs 0.5, memory 512 MiB, processes and threads 300'

"${bin}performance_test" plan --environment native "${over[@]}" --clients 50 \
    --json "$tmp/plan.json" >"$tmp/plan.txt" 2>&1
holds "the plan has the pod's memory and CPUs" plan '.server.threads == 1' \
    "[.rows[] | select(.resource == \"memory_bytes\") | .limit < $((512 << 20)) and .limit > $((200 << 20))] == [true]"

start_server main --max-clients 50 --region-size 0
ack_timeout=1s run_to_end pod main --steps 10 --warmup 0.5 --duration 5 --step-timeout 300
holds "a shard, a worker, and the limits of both sides in run.json" pod \
    '.server_config.threads == 1' '.config.threads == 1' \
    "[.environment[].cgroup] == [$limits, $limits]"
holds "the step says that the quota of both sides was used up" pod \
    'one.validity | contains(["cpu_throttled"])' 'one.validity | contains(["cpu_stolen"]) | not' \
    '[one.resources.server, one.resources.generator | .cgroup_throttled_s > 0.05] | all' \
    '.resources_series.generator.cgroup_throttled_s | last > 0.05'

start_run floor main --steps 5 --duration 60 --memory-floor 99
end_of floor 240
holds "--memory-floor is a share of the pod's memory" floor '.run.stop_reason == "memory_floor"' \
    '.run.stop_detail | test("of its memory left, [0-9]+ of 512 MiB")'
stop_server main
finish
