/* SPDX-License-Identifier: BSD-2-Clause */
/* See rule.h. */
#include "loadgen/doctor/base/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that somebody asks about. */
struct ports {
	const struct rules_port *v;
	unsigned n;
};

/* --- a line as words --- */

/* Blanks part words, but not in quotes, which are taken away. */
void words_split(char *line, struct words *w)
{
	w->n = w->at = 0;
	w->cut = false;
	for (char *p = line; *p;) {
		bool quoted;
		size_t n;

		p += strspn(p, " \t\r\n");
		if (!*p)
			return;
		if (w->n == WORDS_MAX) {
			w->cut = true;
			return;
		}
		quoted = *p == '"';
		p += quoted;
		n = strcspn(p, quoted ? "\"" : " \t\r\n");
		w->v[w->n++] = p;
		p += n;
		if (*p)
			*p++ = '\0';
	}
}

const char *words_next(struct words *w)
{
	return w->at < w->n ? w->v[w->at++] : "";
}

static bool next_is(struct words *w, const char *text)
{
	if (w->at == w->n || strcmp(w->v[w->at], text) != 0)
		return false;
	w->at++;
	return true;
}

/* --- what a rule looks at --- */

/* Whether `list`, such as "22", "22,7471", "7000-8000" or "7000:8000", has the port. *odd: something in it is no
 * number. */
static bool list_has(const char *list, unsigned port, bool *odd)
{
	while (*list) {
		char *end;
		unsigned long low = strtoul(list, &end, 10), high = low;

		if (end != list && (*end == '-' || *end == ':'))
			high = strtoul(end + 1, &end, 10);
		if (end == list || (*end && *end != ',')) {
			*odd = true;
			return false;
		}
		if (port >= low && port <= high)
			return true;
		list = *end ? end + 1 : end;
	}
	return false;
}

/* Keeps those of the rule's ports that are in the list that follows: a word, or several in braces. */
static void match_ports(const struct ports *all, struct words *w, struct rule *r)
{
	bool braces = next_is(w, "{"), odd = false;
	unsigned hit = 0;
	const char *word;

	do {
		word = words_next(w);
		if (braces && strcmp(word, "}") == 0)
			break;
		for (unsigned i = 0; i < all->n; i++)
			hit |= list_has(word, all->v[i].port, &odd) ? 1u << i : 0;
	} while (braces && *word);
	if (odd)
		r->more = true;	/* a set with a name, or "!=" */
	else
		r->ports &= hit;
}

static unsigned ports_of_protocol(const struct ports *all, const char *name)
{
	bool tcp = strcmp(name, "tcp") == 0 || strcmp(name, "6") == 0,
	     udp = strcmp(name, "udp") == 0 || strcmp(name, "17") == 0;
	unsigned bits = 0;

	for (unsigned i = 0; i < all->n; i++)
		bits |= (all->v[i].udp ? udp : tcp) ? 1u << i : 0;
	return bits;
}

/* One name or several in braces. */
static void match_protocols(const struct ports *all, struct words *w, struct rule *r)
{
	bool braces = next_is(w, "{"), odd = false;
	unsigned hit = 0;
	char name[16];

	do {
		snprintf(name, sizeof(name), "%s", words_next(w));
		if (braces && strcmp(name, "}") == 0)
			break;
		odd |= strcmp(name, "!=") == 0;
		name[strcspn(name, ",")] = '\0';
		hit |= ports_of_protocol(all, name);
	} while (braces && name[0]);
	if (odd)
		r->more = true;
	else
		r->ports &= hit;
}

/* A packet that is the first of its connection is "new". */
static void match_state(struct rule *r, const char *states)
{
	if (!strstr(states, "new") && !strstr(states, "NEW"))
		r->ports = 0;
}

/* What comes from other hosts does not come over lo. */
static void match_interface(struct rule *r, const char *name)
{
	if (strcmp(name, "lo") == 0)
		r->ports = 0;
	else
		r->more = true;
}

static void go_to(struct rule *r, enum verdict how, const char *target)
{
	r->verdict = how;
	/* A name that does not fit is found nowhere. */
	if (snprintf(r->target, sizeof(r->target), "%s", target) >= (int)sizeof(r->target))
		r->more = true;
}

/* --- nft --- */

static void skip_braces(struct words *w)
{
	int depth = 0;

	do {
		const char *word = words_next(w);

		depth += (strchr(word, '{') != NULL) - (strchr(word, '}') != NULL);
	} while (depth > 0 && w->at < w->n);
}

/* A map from states to verdicts: what it says of new connections is not read. */
static void nft_state_map(struct words *w, struct rule *r)
{
	bool has_new = false;

	for (unsigned i = w->at; i < w->n && strcmp(w->v[i], "}") != 0; i++)
		has_new |= strcmp(w->v[i], "new") == 0;
	if (has_new)
		r->more = true;
	else
		r->ports = 0;
	r->verdict = ACCEPTS;
	skip_braces(w);
}

/* "ct state established,related", "ct state { established, related }", "ct state vmap { ... }". */
static void nft_state(struct words *w, struct rule *r)
{
	char states[128] = "";

	if (next_is(w, "vmap")) {
		nft_state_map(w, r);
	} else if (next_is(w, "!=")) {
		r->more = true;
		words_next(w);
	} else if (next_is(w, "{")) {
		while (w->at < w->n && !next_is(w, "}"))
			snprintf(states + strlen(states), sizeof(states) - strlen(states), "%s", words_next(w));
		match_state(r, states);
	} else {
		match_state(r, words_next(w));
	}
}

static bool nft_verdict(const char *word, struct words *w, struct rule *r)
{
	if (strcmp(word, "accept") == 0) {
		r->verdict = ACCEPTS;
	} else if (strcmp(word, "drop") == 0 || strcmp(word, "reject") == 0) {
		r->verdict = DROPS;
		w->at = w->n;	/* "with icmpx admin-prohibited" */
	} else if (strcmp(word, "return") == 0) {
		r->verdict = RETURNS;
	} else if (strcmp(word, "jump") == 0 || strcmp(word, "goto") == 0) {
		r->more |= w->at < w->n && strcmp(w->v[w->at], "{") == 0;
		go_to(r, *word == 'j' ? JUMPS : GOES_TO, words_next(w));
	} else {
		return false;
	}
	return true;
}

/* True if the word, and what belongs to it, says nothing of which packets the rule is for. */
static bool nft_is_no_match(const char *word, struct words *w)
{
	if (strcmp(word, "counter") == 0) {
		if (next_is(w, "packets"))
			w->at += 3;
		return true;
	}
	if (strcmp(word, "log") == 0) {
		while (next_is(w, "prefix") || next_is(w, "level") || next_is(w, "flags") || next_is(w, "group"))
			w->at++;
		return true;
	}
	if (strcmp(word, "comment") == 0) {
		w->at++;
		return true;
	}
	return strcmp(word, "continue") == 0;
}

static void nft_port_match(const struct ports *all, const char *protocol, struct words *w, struct rule *r)
{
	if (strcmp(protocol, "th") != 0)
		r->ports &= ports_of_protocol(all, protocol);
	if (next_is(w, "dport"))
		match_ports(all, w, r);
	else
		r->more = true;
}

void rule_read_nft(const struct rules_port *ports, unsigned n_ports, struct words *w, struct rule *r)
{
	const struct ports asked = { .v = ports, .n = n_ports }, *all = &asked;

	while (w->at < w->n) {
		const char *word = words_next(w);

		if (nft_verdict(word, w, r) || nft_is_no_match(word, w))
			continue;
		if (strcmp(word, "tcp") == 0 || strcmp(word, "udp") == 0 || strcmp(word, "th") == 0)
			nft_port_match(all, word, w, r);
		else if ((strcmp(word, "meta") == 0 && next_is(w, "l4proto")) ||
			 (strcmp(word, "ip") == 0 && next_is(w, "protocol")) ||
			 (strcmp(word, "ip6") == 0 && next_is(w, "nexthdr")))
			match_protocols(all, w, r);
		else if (strcmp(word, "ct") == 0 && next_is(w, "state"))
			nft_state(w, r);
		else if (strcmp(word, "iif") == 0 || strcmp(word, "iifname") == 0)
			match_interface(r, words_next(w));
		else if (strcmp(word, "icmp") == 0 || strcmp(word, "icmpv6") == 0)
			r->ports = 0;
		else
			r->more = true;
	}
}

/* --- iptables --- */

/* A match module that is only named, or whose options are understood. */
static bool is_known_module(const char *name)
{
	static const char *const known[] = { "tcp", "udp", "multiport", "comment", "conntrack", "state" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i]) == 0)
			return true;
	return false;
}

static void iptables_target(struct words *w, struct rule *r, enum verdict how)
{
	const char *target = words_next(w);
	static const char *const go_on[] = { "LOG", "NFLOG",   "MARK",	 "CONNMARK", "TRACE",
					     "CT",  "NOTRACK", "TCPMSS", "DSCP",     "TOS" };

	if (strcmp(target, "ACCEPT") == 0)
		r->verdict = ACCEPTS;
	else if (strcmp(target, "DROP") == 0 || strcmp(target, "REJECT") == 0)
		r->verdict = DROPS;
	else if (strcmp(target, "RETURN") == 0)
		r->verdict = RETURNS;
	else
		go_to(r, how, target);
	for (size_t i = 0; i < sizeof(go_on) / sizeof(go_on[0]); i++)
		if (strcmp(target, go_on[i]) == 0)
			r->verdict = GOES_ON;
	w->at = w->n;	/* options of the target */
}

void rule_read_iptables(const struct rules_port *ports, unsigned n_ports, struct words *w, struct rule *r)
{
	const struct ports asked = { .v = ports, .n = n_ports }, *all = &asked;

	while (w->at < w->n) {
		const char *word = words_next(w);

		if (strcmp(word, "-p") == 0)
			match_protocols(all, w, r);
		else if (strcmp(word, "--dport") == 0 || strcmp(word, "--dports") == 0)
			match_ports(all, w, r);
		else if (strcmp(word, "--ctstate") == 0 || strcmp(word, "--state") == 0)
			match_state(r, words_next(w));
		else if (strcmp(word, "-i") == 0)
			match_interface(r, words_next(w));
		else if (strcmp(word, "-m") == 0)
			r->more |= !is_known_module(words_next(w));
		else if (strcmp(word, "--comment") == 0)
			words_next(w);
		else if (strcmp(word, "-j") == 0 || strcmp(word, "-g") == 0)
			iptables_target(w, r, word[1] == 'j' ? JUMPS : GOES_TO);
		else
			r->more = true;
		/* "! -i lo": what follows is turned round, which only `more` can say. */
		if (strcmp(word, "!") == 0)
			words_next(w);
	}
}
