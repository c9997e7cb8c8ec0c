/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that join a run through a real etcd: ranks, the common start, and what they print when one of them is
 * killed or stopped. ROUNDS=100 in the environment makes more rounds. */
#include "tests/unit/helpers/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "loadgen/cluster/etcd/etcd_http.h"
#include "loadgen/cluster/etcd/etcd_json.h"

#define WAIT_NS		(60 * NS_PER_S)
#define JOINERS_MAX	64
#define LEASE_S		"2"	/* for tests that lose a host */
#define LONG_LEASE_S	"40"	/* for tests that must not lose one, even if this machine seldom lets a joiner run */

static char folder[] = "/tmp/rampart-joiners-XXXXXX", program[512];
static pid_t etcd, joiners[JOINERS_MAX];
static char url[96];
static unsigned port, runs;

static pid_t spawn(char *const argv[], const char *output)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (chdir(folder) || !freopen(output, "w", stdout) || !freopen("errors", "a", stderr))
		_exit(126);
	execvp(argv[0], argv);
	_exit(127);
}

static int start_etcd(void **state)
{
	char client[64];
	char *argv[] = { "etcd", "--name", "r", "--data-dir", "data", "--listen-client-urls", client,
		"--advertise-client-urls", client, "--listen-peer-urls", "unix://peer:0",
		"--initial-advertise-peer-urls", "unix://peer:0", "--initial-cluster", "r=unix://peer:0",
		"--heartbeat-interval", "50", "--election-timeout", "250", "--log-level", "error", NULL };

	(void)state;
	assert_non_null(mkdtemp(folder));
	port = 20000 + (unsigned)getpid() % 10000;
	snprintf(client, sizeof(client), "http://127.0.0.1:%u", port);
	etcd = spawn(argv, "etcd.log");
	return etcd < 0;
}

static int stop_etcd(void **state)
{
	char command[128];
	int found;

	(void)state;
	kill(etcd, SIGKILL);
	waitpid(etcd, NULL, 0);
	/* A joiner whose expected exit status is 1 may have been ended by a sanitizer instead. */
	snprintf(command, sizeof(command), "! grep -E 'Sanitizer|runtime error' %s/errors", folder);
	found = system(command);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) || found;
}

/* Starts the joiners of a new run. The first one leads, so that the tests know the leader. */
static void start(unsigned n, char *lease_s, char *barriers, unsigned hours_apart)
{
	char hosts[8], name[16], output[16], shift[32], old[64];

	snprintf(url, sizeof(url), "etcd://127.0.0.1:%u/run%u", port, ++runs);
	snprintf(hosts, sizeof(hosts), "%u", n);
	for (unsigned i = 0; i < n; i++) {
		char *argv[] = { program, url, name, hosts, "--lease-s", lease_s, "--barriers", barriers,
			i ? "--joins" : "--leads", shift, NULL };

		snprintf(name, sizeof(name), "host%u", i);
		snprintf(shift, sizeof(shift), "--shift-s=%u", i * hours_apart * 3600);
		snprintf(output, sizeof(output), "o%u", i);
		snprintf(old, sizeof(old), "%s/%s", folder, output);
		unlink(old);	/* lines of an earlier run must not count */
		joiners[i] = spawn(argv, output);
	}
}

/* Finds the joiner's line that begins with `word`, waiting for it if `wait`; false if there is none. */
static bool find_line(unsigned i, const char *word, char line[1024], bool wait)
{
	uint64_t end = clock_now_ns() + WAIT_NS;
	char path[64];

	snprintf(path, sizeof(path), "%s/o%u", folder, i);
	do {
		FILE *f = fopen(path, "r");
		bool found = false;

		while (f && !found && fgets(line, 1024, f))
			found = !strncmp(line, word, strlen(word)) && strchr(line, '\n');
		if (f)
			fclose(f);
		if (found)
			return true;
		usleep(5000);
	} while (wait && clock_now_ns() < end);
	return false;
}

static void assert_ends_with(unsigned i, int wanted)
{
	uint64_t end = clock_now_ns() + WAIT_NS;
	char command[128];
	int status;

	while (waitpid(joiners[i], &status, WNOHANG) == 0) {
		if (clock_now_ns() > end)
			fail_msg("joiner %u hangs", i);
		usleep(2000);
	}
	status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	if (status == wanted)
		return;
	snprintf(command, sizeof(command), "cat %s/o%u >&2", folder, i);
	fail_msg("joiner %u ended with %d instead of %d%s", i, status, wanted,
		 system(command) ? "" : "; its output is above");
}

/* Checks a whole run: each rank exists once, epochs are equal, all start and end. Prints join time and skew. */
static void check_run(unsigned n, bool print)
{
	bool has[JOINERS_MAX] = { false };
	unsigned long long epoch, first_epoch = 0, ms, most_ms = 0, at, first = UINT64_MAX, last = 0;
	char line[1024];

	start(n, LONG_LEASE_S, "2", 0);
	for (unsigned i = 0; i < n; i++) {
		unsigned rank, hosts;

		assert_ends_with(i, 0);
		assert_true(find_line(i, "joined", line, false));
		assert_int_equal(sscanf(line, "joined %u %u %llu %*s %llu", &rank, &hosts, &epoch, &ms), 4);
		assert_int_equal(hosts, n);
		assert_true(rank < n && !has[rank] && (i || !rank));
		has[rank] = true;
		assert_true(!i || epoch == first_epoch);
		first_epoch = epoch;
		most_ms = ms > most_ms ? ms : most_ms;
		assert_true(find_line(i, "start", line, false));
		assert_int_equal(sscanf(line, "start %llu", &at), 1);
		first = at < first ? at : first;
		last = at > last ? at : last;
		assert_true(find_line(i, "over", line, false));
		assert_false(find_line(i, "bad", line, false));
	}
	if (print)
		print_message("%u joiners: joined and sealed within %llu ms; planned starts are %.3f ms apart\n", n,
			      most_ms, (double)(last - first) / 1e6);
}

static void rounds(unsigned n, unsigned wanted)
{
	const char *more = getenv("ROUNDS");
	unsigned count = more ? (unsigned)atoi(more) : wanted;

	for (unsigned i = 0; i < count; i++)
		check_run(n, i + 1 == count);
}

static void rounds__3_joiners__ranks_once(void **state)
{
	(void)state;
	rounds(3, 5);
}

static void rounds__8_joiners__ranks_once(void **state)
{
	(void)state;
	rounds(8, 2);
}

static void rounds__64_joiners__ranks_once(void **state)
{
	(void)state;
	check_run(64, true);
}

/* Checks that every survivor names the lost host in its line. */
static void survivors_name(unsigned lost, unsigned n, uint64_t since_ns)
{
	char line[1024], name[16];

	snprintf(name, sizeof(name), "host%u ", lost);
	for (unsigned i = 0; i < n; i++) {
		if (i == lost)
			continue;
		assert_ends_with(i, 1);
		assert_true(find_line(i, lost ? "lost" : "out", line, false));
		assert_non_null(strstr(line, name));
	}
	print_message("host%u lost: the survivors named it and ended after %.2f s, with a lease of " LEASE_S " s\n",
		      lost, (double)(clock_now_ns() - since_ns) / NS_PER_S);
}

static void kill__member_or_leader__survivors_name_it(void **state)
{
	char line[1024];

	(void)state;
	for (unsigned lost = 0; lost < 2; lost++) {
		uint64_t since;

		start(3, LEASE_S, "0", 0);
		for (unsigned i = 0; i < 3; i++)
			assert_true(find_line(i, "start", line, true));
		since = clock_now_ns();
		kill(joiners[lost], SIGKILL);
		survivors_name(lost, 3, since);
		assert_ends_with(lost, -SIGKILL);
	}
}

static void stop__member_comes_back__it_is_out(void **state)
{
	char line[1024];
	uint64_t since;

	(void)state;
	start(3, LEASE_S, "0", 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(find_line(i, "start", line, true));
	since = clock_now_ns();
	kill(joiners[2], SIGSTOP);
	survivors_name(2, 3, since);
	kill(joiners[2], SIGCONT);
	assert_ends_with(2, 1);
	assert_true(find_line(2, "out", line, false));
}

/* Writes arrivals at barriers that nobody announced, in the name of the host with rank 2. */
static void write_bogus_arrivals(const char *uuid, unsigned n)
{
	struct etcd_target target = { .patience_ns = 10 * NS_PER_S };
	struct etcd_http *http = NULL;
	struct etcd_answer a;
	char root[64], key[128];

	snprintf(target.name, sizeof(target.name), "127.0.0.1:%u", port);
	snprintf(target.base, sizeof(target.base), "http://127.0.0.1:%u/v3/", port);
	snprintf(root, sizeof(root), "/rampart/run%u/", runs);
	assert_int_equal(etcd_http_new(&target, NULL, &http), 0);
	for (unsigned i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%s/up/at/bogus-%u.2", uuid, i);
		etcd_ask(http, "kv/put", json_pack("{s:o, s:o}", "key", etcd_key(root, key),
			 "value", etcd_bytes("-", 1)), "", 10 * NS_PER_S, &a);
		assert_int_equal(a.outcome, ETCD_OK);
	}
	etcd_http_free(http);
}

static void hostile__barriers_without_end__put_out_by_name_on_all(void **state)
{
	char line[1024], uuid[64];
	unsigned bad = 0;

	(void)state;
	start(3, LONG_LEASE_S, "0", 0);
	for (unsigned i = 0; i < 3; i++) {
		unsigned rank;

		assert_true(find_line(i, "start", line, true));
		assert_true(find_line(i, "joined", line, false));
		assert_int_equal(sscanf(line, "joined %u %*u %*u %63s", &rank, uuid), 2);
		bad = rank == 2 ? i : bad;
	}
	write_bogus_arrivals(uuid, 40);
	for (unsigned i = 0; i < 3; i++) {
		assert_ends_with(i, 1);
		if (i == bad) {
			assert_true(find_line(i, "out", line, false));
			assert_non_null(strstr(line, "puts this host out: it is at more than 32 barriers"));
		} else if (find_line(i, "lost", line, false)) {
			assert_non_null(strstr(line, "(rank 2) is put out of the run: it is at more than 32 barriers"));
		} else {
			/* The leader ended before it could tell this host. */
			assert_int_not_equal(i, 0);
			assert_true(find_line(i, "out", line, false));
		}
	}
}

static void clocks__hours_apart__start_together(void **state)
{
	char line[1024];
	long long at, first = INT64_MAX, last = 0;

	(void)state;
	start(2, LONG_LEASE_S, "2", 5);
	for (unsigned i = 0; i < 2; i++)
		assert_ends_with(i, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(find_line(i, "start", line, false));
		assert_int_equal(sscanf(line, "start %lld", &at), 1);
		first = at < first ? at : first;
		last = at > last ? at : last;
	}
	/* The difference is not hours, only the error of the offset, which depends on how busy the machine is. */
	assert_true(last - first < (long long)NS_PER_S);
	print_message("clocks 5 h apart: planned starts are %.3f ms apart\n", (double)(last - first) / 1e6);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds__3_joiners__ranks_once),
		cmocka_unit_test(rounds__8_joiners__ranks_once),
		cmocka_unit_test(rounds__64_joiners__ranks_once),
		cmocka_unit_test(kill__member_or_leader__survivors_name_it),
		cmocka_unit_test(stop__member_comes_back__it_is_out),
		cmocka_unit_test(hostile__barriers_without_end__put_out_by_name_on_all),
		cmocka_unit_test(clocks__hours_apart__start_together),
	};
	char here[256] = "", *slash;

	(void)argc;
	snprintf(program, sizeof(program), "%s%s%.200s", argv[0][0] == '/' ? "" : getcwd(here, sizeof(here)),
		 argv[0][0] == '/' ? "" : "/", argv[0]);
	slash = strrchr(program, '/');
	snprintf(slash + 1, sizeof(program) - (size_t)(slash + 1 - program), "joiner");
	return cmocka_run_group_tests(tests, start_etcd, stop_etcd);
}
