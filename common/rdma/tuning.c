/* Settings of the data path. See tuning.h. */
#include "common/rdma/tuning.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

#define POST_LIST 16
#define ACK_TIMEOUT_NS (268 * NS_PER_MS)	/* CM_ACK_TIMEOUT, about */

const char *const tuning_mtu_names[] = { "auto", "256", "512", "1024", "2048", "4096", NULL };

static uint64_t ack_timeout_ns(uint8_t exponent)
{
	return UINT64_C(4096) << exponent;
}

void tuning_defaults(struct tuning *t)
{
	t->inline_text = "auto";
	t->post_list = POST_LIST;
	t->ack_timeout_ns = ACK_TIMEOUT_NS;
	t->retry_count = CM_RETRIES;
}

static int complain(char *err, size_t size, const char *option, const char *value, const char *allowed)
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
		return complain(err, err_size, "inline", t->inline_text, "auto, off, or 0 to 4096 bytes");
	t->inline_bytes = (uint32_t)n;
	return 0;
}

/* Reads the number of a CPU at *p and moves *p behind it. False if there is none, or it is too large. */
static bool take_cpu(const char **p, unsigned long *cpu)
{
	char *end;

	if (**p < '0' || **p > '9')
		return false;
	*cpu = strtoul(*p, &end, 10);
	*p = end;
	return *cpu < CPU_SETSIZE;
}

static bool take_range(struct tuning *t, const char **p)
{
	unsigned long first, last;

	if (!take_cpu(p, &first))
		return false;
	last = first;
	if (**p == '-') {
		++*p;
		if (!take_cpu(p, &last) || last < first)
			return false;
	}
	for (; first <= last; first++) {
		if (t->n_cpus == TUNING_CPUS_MAX)
			return false;
		t->cpus[t->n_cpus++] = (uint16_t)first;
	}
	return true;
}

static int check_cpus(struct tuning *t, char *err, size_t err_size)
{
	const char *p = t->cpu_list;

	t->n_cpus = 0;
	while (p) {
		if (!take_range(t, &p) || (*p && *p != ','))
			return complain(err, err_size, "cpu-list", t->cpu_list,
					"numbers and ranges of CPUs, comma-separated, such as 0,2,4-7");
		p = *p ? p + 1 : NULL;
	}
	return 0;
}

static void derive_retry(struct tuning *t)
{
	t->retry = (struct cm_retry){ .count = (uint8_t)t->retry_count };
	while (ack_timeout_ns(t->retry.ack_timeout) < t->ack_timeout_ns)
		t->retry.ack_timeout++;
}

uint64_t tuning_ack_timeout_ns(const struct tuning *t)
{
	return ack_timeout_ns(t->retry.ack_timeout);
}

int tuning_check(struct tuning *t, char *err, size_t err_size)
{
	int ret = check_inline(t, err, err_size);

	derive_retry(t);
	return ret ? ret : check_cpus(t, err, err_size);
}

enum ibv_mtu tuning_mtu(const struct tuning *t)
{
	static const enum ibv_mtu mtus[] = { 0, IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096 };

	return mtus[t->path_mtu];
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
		return "--realtime needs root, CAP_SYS_NICE or a limit (ulimit -r)";
	if (t->n_cpus && ret == EINVAL)
		return "not all CPUs of --cpu-list are there, or may be used: `taskset -p $$` says which";
	return "see the limits of processes and memory (ulimit -a)";
}

int tuning_start_thread(const struct tuning *t, uint32_t index, pthread_t *out, void *(*run)(void *), void *arg,
			char *err, size_t err_size)
{
	pthread_attr_t attr;
	int ret = pthread_attr_init(&attr);

	if (ret)
		return -ret;
	if (t->n_cpus)
		ret = set_cpu(&attr, t->cpus[index % t->n_cpus]);
	if (!ret && t->realtime)
		ret = set_realtime(&attr);
	if (!ret)
		ret = pthread_create(out, &attr, run, arg);
	pthread_attr_destroy(&attr);
	if (ret)
		snprintf(err, err_size, "cannot start a thread: %s; %s", strerror(ret), advice(t, ret));
	return -ret;
}
