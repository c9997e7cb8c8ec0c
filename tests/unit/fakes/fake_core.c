/* SPDX-License-Identifier: BSD-2-Clause */
/* Failure switch, rule book and object count of the fakes. See fake_core.h. */
#include "tests/unit/fakes/fake_core.h"

#include "tests/unit/helpers/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/fakes/fake_objects.h"
#include "tests/unit/fakes/fake_rdmacm.h"
#include "tests/unit/fakes/fake_verbs.h"

#define KINDS_MAX 16

int (*fake_fault)(const char *name);
static unsigned calls_left;
static int call_err;
static const char *next_name, *failed;
static int next_err;
static unsigned violations;
static char first_violation[300];
static struct {
	const char *kind;
	int n;
} kinds[KINDS_MAX];

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

int fake_lock(void)
{
	return pthread_mutex_lock(&lock);
}

void fake_unlock(const int *guard)
{
	(void)guard;
	pthread_mutex_unlock(&lock);
}

void fake_reset(void)
{
	calls_left = violations = 0;
	next_name = failed = NULL;
	memset(kinds, 0, sizeof(kinds));
	fake_verbs_reset();
	fake_rdmacm_reset();
}

void fake_fail_at(unsigned k, int err)
{
	calls_left = k;
	call_err = err;
	failed = NULL;
}

void fake_fail_next(const char *name, int err)
{
	next_name = name;
	next_err = err;
	failed = NULL;
}

const char *fake_failed(void)
{
	return failed;
}

int fake_fails(const char *name)
{
	if (next_name && strcmp(name, next_name) == 0) {
		next_name = NULL;
		failed = name;
		return next_err;
	}
	if (calls_left && --calls_left == 0) {
		failed = name;
		return call_err;
	}
	return fake_fault ? fake_fault(name) : 0;
}

void fake_violation(const char *fmt, ...)
{
	char text[sizeof(first_violation)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "rule broken: %s\n", text);
	if (violations++ == 0)
		memcpy(first_violation, text, sizeof(text));
}

void fake_count(const char *kind, int change)
{
	size_t i = 0;

	while (i < KINDS_MAX && kinds[i].kind && strcmp(kinds[i].kind, kind) != 0)
		i++;
	assert_true(i < KINDS_MAX);
	kinds[i].kind = kind;
	kinds[i].n += change;
}

unsigned fake_objects(void)
{
	int n = 0;

	for (size_t i = 0; i < KINDS_MAX; i++)
		n += kinds[i].n;
	return (unsigned)n;
}

void fake_note_left(void)
{
	for (size_t i = 0; i < KINDS_MAX; i++)
		if (kinds[i].n)
			fake_violation("%d of %s left", kinds[i].n, kinds[i].kind);
}

void fake_check(void)
{
	fake_async_check();
	if (violations)
		fail_msg("%u rules broken, first: %s", violations, first_violation);
	for (size_t i = 0; i < KINDS_MAX; i++)
		if (kinds[i].n)
			fail_msg("%d of %s left", kinds[i].n, kinds[i].kind);
}
