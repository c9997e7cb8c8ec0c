/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of common/base/log.c. stderr is a datagram socket while a line is written, so that every
 * write is seen as one message; between log_start and log_stop it is a pipe. */
#include "tests/unit/helpers/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "common/base/log.h"

static int pair[2] = { -1, -1 }, saved_stderr;

static int set_up(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair);
}

static int tear_down(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	unsetenv("JOURNAL_STREAM");
	log_init("prog", LOG_LVL_INFO);
	log_set_format(LOG_FMT_TEXT);
	return 0;
}

static void capture(void)
{
	saved_stderr = dup(STDERR_FILENO);
	dup2(pair[1], STDERR_FILENO);
}

static void release(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
}

/* The next write, as a string; NULL if there was none. */
static const char *next_write(void)
{
	static char text[4096];
	ssize_t n = recv(pair[0], text, sizeof(text) - 1, 0);

	if (n < 0) {
		assert_int_equal(errno, EAGAIN);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

#define LOG_TEST(f) TEST_WITH(f, set_up, tear_down)

LOG_TEST(write__each_level__prefix_and_one_write)
{
	log_init("prog", LOG_LVL_DEBUG);
	capture();
	log_error("no %s %d", "luck", 3);
	log_warn("w");
	log_info("i");
	log_debug("d");
	release();
	assert_string_equal(next_write(), "prog: no luck 3\n");
	assert_string_equal(next_write(), "prog: warn: w\n");
	assert_string_equal(next_write(), "prog: info: i\n");
	assert_string_equal(next_write(), "prog: debug: d\n");
	assert_null(next_write());
}

LOG_TEST(write__below_the_threshold__nothing)
{
	for (int level = LOG_LVL_ERROR; level <= LOG_LVL_DEBUG; level++) {
		int lines = 0;

		log_init("prog", (enum log_level)level);
		capture();
		log_error("e");
		log_warn("w");
		log_info("i");
		log_debug("d");
		release();
		while (next_write())
			lines++;
		assert_int_equal(lines, level + 1);
		assert_true(log_enabled((enum log_level)level));
		assert_int_equal(log_enabled(LOG_LVL_DEBUG), level == LOG_LVL_DEBUG);
	}
}

LOG_TEST(debug__not_enabled__arguments_not_evaluated)
{
	int n = 0;

	log_init("prog", LOG_LVL_INFO);
	log_debug("%d", ++n);
	assert_int_equal(n, 0);
}

LOG_TEST(write__longer_than_a_line__cut_with_its_newline)
{
	char text[3000];
	const char *got;

	log_init("prog", LOG_LVL_INFO);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	capture();
	log_error("%s", text);
	release();
	got = next_write();
	assert_non_null(got);
	assert_in_range(strlen(got), 1000, 1024);
	assert_int_equal(got[strlen(got) - 1], '\n');
	assert_memory_equal(got, "prog: xxx", 9);
	assert_int_equal(strspn(got + 6, "x"), strlen(got) - 7);
	assert_null(next_write());
}

/* A text from a peer cannot begin a line of its own, nor control the terminal. */
LOG_TEST(write__control_characters__shown)
{
	log_init("prog", LOG_LVL_INFO);
	capture();
	log_error("refused: %s", "no\n\033[2J\xc2\x9b\xff");
	release();
	assert_string_equal(next_write(), "prog: refused: no\\x0a\\x1b[2J\\x9b\\xff\n");
	assert_null(next_write());
}

/* Every length around the limit: a newline at the end, and nothing lost before it must be. */
LOG_TEST(write__every_length_up_to_the_limit__whole)
{
	char text[1100];
	size_t longest = 0;

	log_init("p", LOG_LVL_INFO);
	for (size_t n = 990; n < sizeof(text); n++) {
		const char *got;

		memset(text, 'y', n);
		text[n] = '\0';
		capture();
		log_error("%s", text);
		release();
		got = next_write();
		assert_non_null(got);
		assert_int_equal(got[strlen(got) - 1], '\n');
		if (strlen(got) == n + 4)
			longest = n;
	}
	assert_true(longest >= 1000);
}

LOG_TEST(write__program_name_too_long__no_overrun)
{
	char name[1500];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	log_init(name, LOG_LVL_INFO);
	capture();
	log_error("text");
	release();
	next_write();
	assert_null(next_write());
}

static const uint32_t shard = 3, connection = 17;
static const struct log_fields fields = { .shard = &shard, .connection = &connection, .peer = "192.0.2.1:7",
					  .reason = "timeout", .advice = "say \"more\"" };

LOG_TEST(json__fields__one_object_a_line)
{
	const char *line;
	json_t *o;

	log_init("prog", LOG_LVL_INFO);
	log_set_format(LOG_FMT_JSON);
	capture();
	log_event(LOG_LVL_WARN, &fields, "client \"%s\" failed\n\x1b", "x");
	log_error("e");
	log_always("a");
	release();
	line = next_write();
	assert_non_null(line);
	assert_int_equal(line[strlen(line) - 1], '\n');
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	o = json_loads(line, 0, NULL);
	assert_non_null(o);
	assert_int_equal(json_object_size(o), 9);
	/* 2026-11-27T16:40:00.123456Z */
	assert_int_equal(json_string_length(json_object_get(o, "time")), 27);
	assert_string_equal(json_string_value(json_object_get(o, "level")), "warn");
	assert_string_equal(json_string_value(json_object_get(o, "program")), "prog");
	assert_string_equal(json_string_value(json_object_get(o, "message")), "client \"x\" failed\\x0a\\x1b");
	assert_int_equal(json_integer_value(json_object_get(o, "shard")), 3);
	assert_int_equal(json_integer_value(json_object_get(o, "connection")), 17);
	assert_string_equal(json_string_value(json_object_get(o, "peer")), "192.0.2.1:7");
	assert_string_equal(json_string_value(json_object_get(o, "reason")), "timeout");
	assert_string_equal(json_string_value(json_object_get(o, "advice")), "say \"more\"");
	json_decref(o);
	for (int i = 0; i < 2; i++) {
		o = json_loads(next_write(), 0, NULL);
		assert_int_equal(json_object_size(o), 4);
		assert_string_equal(json_string_value(json_object_get(o, "level")), i ? "notice" : "error");
		json_decref(o);
	}
	assert_null(next_write());
}

LOG_TEST(logfmt__fields__quoted_where_needed)
{
	char *got;

	log_init("prog", LOG_LVL_INFO);
	log_set_format(LOG_FMT_LOGFMT);
	capture();
	log_event(LOG_LVL_WARN, &fields, "no\nluck");
	release();
	got = strchr(next_write(), ' ');
	assert_string_equal(got, " level=warn program=prog message=\"no\\\\x0aluck\" shard=3 connection=17 "
			    "peer=192.0.2.1:7 reason=timeout advice=\"say \\\"more\\\"\"\n");
	assert_null(next_write());
}

/* The message is cut, and the fields stay. */
LOG_TEST(json_and_logfmt__too_long__message_cut)
{
	char text[3000];

	log_init("prog", LOG_LVL_INFO);
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 3);
	for (int format = LOG_FMT_JSON; format <= LOG_FMT_LOGFMT; format++) {
		const char *line;
		json_t *o;

		log_set_format((enum log_format)format);
		capture();
		log_event(LOG_LVL_WARN, &fields, "%s\"", text);
		release();
		line = next_write();
		assert_non_null(line);
		assert_in_range(strlen(line), 500, 1024);
		assert_int_equal(line[strlen(line) - 1], '\n');
		assert_non_null(strstr(line, "timeout"));
		if (format == LOG_FMT_JSON) {
			o = json_loads(line, 0, NULL);
			assert_non_null(o);
			assert_int_equal(json_object_size(o), 9);
			json_decref(o);
		}
	}
}

LOG_TEST(journal__each_level__its_priority)
{
	static const char *const begins[] = { "<5>prog: n\n", "<3>prog: e\n", "<4>prog: warn: w\n",
					      "<6>prog: info: i\n", "<7>prog: debug: d\n" };
	char stream[64];
	struct stat st;

	capture();
	fstat(STDERR_FILENO, &st);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init("prog", LOG_LVL_DEBUG);
	log_always("n");
	log_error("e");
	log_warn("w");
	log_info("i");
	log_debug("d");
	setenv("JOURNAL_STREAM", "1:2", 1);	/* stderr was redirected to something else */
	log_init("prog", LOG_LVL_DEBUG);
	log_error("e");
	release();
	for (int i = 0; i < 5; i++)
		assert_string_equal(next_write(), begins[i]);
	assert_string_equal(next_write(), "prog: e\n");
	assert_null(next_write());
}

/* Between log_start and log_stop. */

#define FLOOD 100000
#define FLOOD_SLEEPS_MAX 10	/* of a thread that writes so many lines: it may sleep for other reasons than the
				 * reader */
#define THREADS_MAX 4

static bool reader_stalls;
static _Atomic long flood_sleeps;	/* how often the last thread that flooded the log gave up the processor */
static double patience_s;	/* how long log_stop would wait for its thread */

/* In place of libc's, for log_stop: while the reader stalls, its thread cannot end, and it is not waited for. */
int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *deadline)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	patience_s = (double)(deadline->tv_sec - now.tv_sec) + (double)(deadline->tv_nsec - now.tv_nsec) / 1e9;
	return reader_stalls ? pthread_tryjoin_np(thread, result) : pthread_join(thread, result);
}

struct pipe_log {
	int fds[2], saved;
	pthread_t reader;
	unsigned next[THREADS_MAX];	/* the lowest number that may follow, by thread */
	unsigned lines;
	unsigned long long dropped;	/* as the log says */
};

/* stderr is a pipe that nobody reads. */
static void stall(struct pipe_log *p)
{
	memset(p, 0, sizeof(*p));
	assert_int_equal(pipe(p->fds), 0);
	p->saved = dup(STDERR_FILENO);
	dup2(p->fds[1], STDERR_FILENO);
	close(p->fds[1]);
	log_init("prog", LOG_LVL_INFO);
}

static void *read_to_the_end(void *arg)
{
	struct pipe_log *p = arg;
	FILE *in = fdopen(p->fds[0], "r");
	char line[200];

	while (fgets(line, sizeof(line), in)) {
		unsigned thread, number;
		unsigned long long n;

		if (sscanf(line, "prog: line %u of %u", &number, &thread) == 2) {
			p->next[thread] = number >= p->next[thread] ? number + 1 : UINT32_MAX;
			p->lines++;
		} else if (sscanf(line, "prog: warn: %llu log lines were dropped", &n) == 1 && n) {
			p->dropped += n;
		} else {
			p->lines += FLOOD;
		}
	}
	fclose(in);
	return NULL;
}

static void read_again(struct pipe_log *p)
{
	assert_int_equal(pthread_create(&p->reader, NULL, read_to_the_end, p), 0);
}

/* All that was written is read. */
static void end(struct pipe_log *p)
{
	dup2(p->saved, STDERR_FILENO);
	close(p->saved);
	pthread_join(p->reader, NULL);
	for (int i = 0; i < THREADS_MAX; i++)
		assert_true(p->next[i] < UINT32_MAX);
}

static long sleeps_of_this_thread(void)
{
	struct rusage u;

	assert_int_equal(getrusage(RUSAGE_THREAD, &u), 0);
	return u.ru_nvcsw;
}

static void *flood(void *arg)
{
	long before = sleeps_of_this_thread();

	for (unsigned i = 0; i < FLOOD; i++)
		log_error("line %u of %u", i, (unsigned)(uintptr_t)arg);
	flood_sleeps = sleeps_of_this_thread() - before;
	return NULL;
}

TEST(start__reader_stalls__no_writer_waits_and_the_dropped_are_counted)
{
	struct pipe_log p;
	pthread_t thread;

	alarm(60);	/* a thread that waits never ends */
	stall(&p);
	log_start();
	assert_int_equal(pthread_create(&thread, NULL, flood, NULL), 0);
	pthread_join(thread, NULL);
	read_again(&p);
	log_stop();
	end(&p);
	alarm(0);
	assert_in_range(flood_sleeps, 0, FLOOD_SLEEPS_MAX);
	assert_true(p.dropped > 0);
	assert_true(p.lines >= 1024);
	assert_int_equal(p.lines + p.dropped, FLOOD);
}

TEST(start__several_threads__each_in_its_order)
{
	pthread_t threads[THREADS_MAX];
	struct pipe_log p;

	stall(&p);
	log_start();
	read_again(&p);
	for (uintptr_t i = 0; i < THREADS_MAX; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, flood, (void *)i), 0);
	for (int i = 0; i < THREADS_MAX; i++)
		pthread_join(threads[i], NULL);
	log_stop();
	end(&p);
	assert_true(p.lines >= 1024);
	assert_int_equal(p.lines + p.dropped, THREADS_MAX * FLOOD);
}

TEST(stop__lines_logged_before__all_written)
{
	struct pipe_log p;

	stall(&p);
	log_start();
	for (unsigned i = 0; i < 1000; i++)
		log_error("line %u of 0", i);
	log_stop();
	log_error("line 1000 of 0");	/* by the caller itself, behind the others */
	read_again(&p);
	end(&p);
	assert_int_equal(p.lines, 1001);
	assert_int_equal(p.next[0], 1001);
	assert_int_equal(p.dropped, 0);
}

TEST(stop__reader_stalls__ends_and_nobody_waits_afterwards)
{
	struct pipe_log p;

	alarm(60);
	stall(&p);
	log_start();
	flood(NULL);
	reader_stalls = true;
	log_stop();
	reader_stalls = false;
	flood((void *)1);
	read_again(&p);
	log_stop();
	end(&p);
	alarm(0);
	assert_true(patience_s > 0 && patience_s < 5);
	assert_in_range(flood_sleeps, 0, FLOOD_SLEEPS_MAX);
	assert_true(p.lines >= 1024 && p.dropped >= FLOOD);
}
