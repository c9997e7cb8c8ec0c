/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of the data path. See tuning.h. */
#include "common/rdma/tuning.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/opts.h"
#include "common/host/cpu_list.h"
#include "common/rdma/ep.h"

const char *const tuning_mtu_names[] = { "auto", "256", "512", "1024", "2048", "4096", NULL };

const char *const tuning_numa_names[] = { "off", "auto", NULL };
const char *const tuning_relaxed_names[] = { "auto", "on", "off", NULL };

static uint64_t ack_timeout_ns(uint8_t exponent)
{
	return UINT64_C(4096) << exponent;
}

#define AT(field) offsetof(struct tuning, field)

void tuning_defaults(struct tuning *t)
{
	static const struct opt options[] = {
		TUNING_OPT_ACK_TIMEOUT(AT), TUNING_OPT_INLINE(AT), TUNING_OPT_NUMA(AT), TUNING_OPT_PATH_MTU(AT),
		TUNING_OPT_POST_LIST(AT), TUNING_OPT_RELAXED_ORDERING(AT), TUNING_OPT_RETRY_COUNT(AT),
		TUNING_OPT_RNR_RETRY(AT),
		TUNING_OPT_RNR_TIMER(AT), TUNING_OPT_SIGNAL_EVERY(AT),
	};
	static const struct opts_spec spec = { .opts = options, .n_opts = sizeof(options) / sizeof(options[0]) };

	opts_defaults(&spec, t);
	t->traffic_class = t->dscp = t->service_level = t->gid_index = TUNING_NOT_SET;
}

static int tuning_error(char *err, size_t size, const char *option, const char *value, const char *allowed)
{
	snprintf(err, size, "--%s: '%s' is not allowed; allowed: %s", option, value, allowed);
	return -EINVAL;
}

static int check_inline(struct tuning *t, char *err, size_t err_size)
{
	char *end;
	unsigned long n;

	t->inline_bytes = TUNING_INLINE_AUTO;
	if (strcmp(t->inline_text, "auto") == 0)
		return 0;
	t->inline_bytes = 0;
	if (strcmp(t->inline_text, "off") == 0)
		return 0;
	n = strtoul(t->inline_text, &end, 10);
	if (t->inline_text[0] < '0' || t->inline_text[0] > '9' || *end || n > TUNING_INLINE_MAX)
		return tuning_error(err, err_size, "inline", t->inline_text, "auto, off, or 0 to 4096 bytes");
	t->inline_bytes = (uint32_t)n;
	return 0;
}

int tuning_read_cpus(const char *option, const char *text, uint16_t cpus[TUNING_CPUS_MAX], uint32_t *n, char *err,
		     size_t err_size)
{
	if (!cpu_list_parse(text, cpus, TUNING_CPUS_MAX, n))
		return 0;
	return tuning_error(err, err_size, option, text,
			    "numbers and ranges of CPUs, comma-separated, such as 0,2,4-7");
}

static int check_cpus(struct tuning *t, char *err, size_t err_size)
{
	t->n_cpus = 0;
	return t->cpu_list ? tuning_read_cpus("cpu-list", t->cpu_list, t->cpus, &t->n_cpus, err, err_size) : 0;
}

/* The code of the shortest time that is at least `ns`. Times rise from code 1 to 31; code 0 is the longest. */
static uint8_t rnr_code(uint64_t ns)
{
	uint8_t code = 1;

	while (code < 32 && cm_rnr_timer_ns(code) < ns)
		code++;
	return code & 31;
}

static void derive_retry(struct tuning *t)
{
	t->retry = (struct cm_retry){ .count = (uint8_t)t->retry_count };
	while (ack_timeout_ns(t->retry.ack_timeout) < t->ack_timeout_ns)
		t->retry.ack_timeout++;
	t->retry.rnr_count_plus_1 = (uint8_t)(t->rnr_retry + 1);
	t->retry.rnr_timer_plus_1 = rnr_code(t->rnr_timer_ns) + 1;
}

/* DSCP is the upper 6 bits of the traffic class (RFC 2474, 3). */
static void derive_fabric(struct tuning *t)
{
	uint64_t traffic_class = t->dscp != TUNING_NOT_SET ? t->dscp << 2 : t->traffic_class;

	t->fabric = (struct cm_fabric){
		.has_traffic_class = traffic_class != TUNING_NOT_SET, .traffic_class = (uint8_t)traffic_class,
		.has_service_level = t->service_level != TUNING_NOT_SET, .service_level = (uint8_t)t->service_level,
		.has_gid_index = t->gid_index != TUNING_NOT_SET, .gid_index = (uint8_t)t->gid_index,
	};
}

uint64_t tuning_ack_timeout_ns(const struct tuning *t)
{
	return ack_timeout_ns(t->retry.ack_timeout);
}

int tuning_check(struct tuning *t, char *err, size_t err_size)
{
	int ret = check_inline(t, err, err_size);

	derive_retry(t);
	derive_fabric(t);
	return ret ? ret : check_cpus(t, err, err_size);
}

enum ibv_mtu tuning_mtu(const struct tuning *t)
{
	static const enum ibv_mtu mtus[] = { 0, IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096 };

	return mtus[t->path_mtu];
}

static json_t *if_set(bool is_set, uint8_t value)
{
	return is_set ? json_integer(value) : json_null();
}

json_t *tuning_json(const struct tuning *t)
{
	const struct cm_fabric *f = &t->fabric;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:s?, s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
		"inline_bytes", (json_int_t)t->inline_bytes,
		"post_list", (json_int_t)t->post_list, "signal_every", (json_int_t)t->signal_every, "srq_depth",
		(json_int_t)t->srq_depth, "cq_depth", (json_int_t)t->cq_depth, "path_mtu",
		tuning_mtu_names[t->path_mtu],
		"cpu_list", t->cpu_list, "numa", tuning_numa_names[t->numa], "realtime", t->realtime,
		"relaxed_ordering", tuning_relaxed_names[t->relaxed_ordering],
		"ack_timeout_ns", (json_int_t)tuning_ack_timeout_ns(t),
		"retry_count", (json_int_t)t->retry_count, "rnr_retry", (json_int_t)t->rnr_retry, "rnr_timer_ns",
		(json_int_t)cm_rnr_timer_ns(rnr_code(t->rnr_timer_ns)), "traffic_class",
		if_set(f->has_traffic_class, f->traffic_class), "service_level",
		if_set(f->has_service_level, f->service_level), "gid_index", if_set(f->has_gid_index, f->gid_index));
}

static int set_cpu(pthread_attr_t *attr, unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return pthread_attr_setaffinity_np(attr, sizeof(set), &set);
}

static int set_realtime(pthread_attr_t *attr)
{
	struct sched_param param = { .sched_priority = 1 };
	int ret = pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);

	if (!ret)
		ret = pthread_attr_setschedpolicy(attr, SCHED_FIFO);
	return ret ? ret : pthread_attr_setschedparam(attr, &param);
}

static const char *advice(const struct tuning *t, int ret)
{
	if (t->realtime && ret == EPERM)
		return "--realtime needs root, CAP_SYS_NICE or a limit of at least 1 (ulimit -r)";
	if (t->n_cpus && ret == EINVAL)
		return "some CPUs of --cpu-list do not exist, or may not be used: `taskset -p $$` shows those that may";
	return "see the limits on processes and memory (ulimit -a)";
}

int tuning_start_thread(const struct tuning *t, const char *role, uint32_t index, const cpu_set_t *beside,
			pthread_t *out, void *(*run)(void *), void *arg, char *err, size_t err_size)
{
	char name[16];
	pthread_attr_t attr;
	int ret = pthread_attr_init(&attr);

	if (ret) {
		snprintf(err, err_size, "cannot start a thread: %s", strerror(ret));
		return -ret;
	}
	if (t->n_cpus)
		ret = set_cpu(&attr, t->cpus[index % t->n_cpus]);
	else if (t->numa != TUNING_NUMA_OFF && beside)
		ret = pthread_attr_setaffinity_np(&attr, sizeof(*beside), beside);
	if (!ret && t->realtime)
		ret = set_realtime(&attr);
	if (!ret)
		ret = pthread_create(out, &attr, run, arg);
	pthread_attr_destroy(&attr);
	snprintf(name, sizeof(name), "%s %u", role, index);
	if (!ret)
		pthread_setname_np(*out, name);
	if (ret)
		snprintf(err, err_size, "cannot start a thread: %s; %s", strerror(ret), advice(t, ret));
	return -ret;
}
