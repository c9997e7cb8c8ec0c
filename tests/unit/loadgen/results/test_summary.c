/* Unit tests of loadgen/results/summary.c: texts of a server on the terminal. */
#include "tests/unit/helpers/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/config/config.h"
#include "loadgen/results/summary.h"

#define HOSTILE "bad\033]0;title\007\n\xc2\x9b" "31m"
#define SHOWN	"bad\\x1b]0;title\\x07"

/* What a server said last, a device's name, and what follows from its reports. */
static void print__texts_of_a_server__control_characters_shown(void **state)
{
	static struct loadgen_config cfg;
	struct outcome oc;
	json_t *run = json_pack("{s:[{s:i, s:[s], s:[{s:i, s:s, s:s, s:s}]}], s:[{s:s, s:i, s:s, s:s, s:s}]}", "steps",
				"target_clients", 10, "validity", HOSTILE, "failures", "count", 3, "stage", HOSTILE, "code",
				HOSTILE, "meaning", HOSTILE, "verdict", "result", "fail", "clients", 10, "criterion", HOSTILE,
				"measured", HOSTILE, "required", HOSTILE);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int shown = 0;

	(void)state;
	assert_non_null(run);
	assert_non_null(out);
	cfg.steps.n = 1;
	cfg.steps.v[0] = cfg.clients = 10;
	outcome_init(&oc, &cfg);
	outcome_stop(&oc, STOP_SERVER_LOST, HOSTILE);
	summary_print(&oc, run, HOSTILE, out);
	fclose(out);
	assert_null(strpbrk(text, "\033\007\x9b"));
	for (const char *at = text; (at = strstr(at, SHOWN)); at++)
		shown++;
	assert_int_equal(shown, 9);
	outcome_clear(&oc);
	json_decref(run);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(print__texts_of_a_server__control_characters_shown),
	};

	return cmocka_run_group_tests_name("loadgen_summary", tests, NULL, NULL);
}
