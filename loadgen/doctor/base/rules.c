/* SPDX-License-Identifier: BSD-2-Clause */
/* See rules.h. A text becomes chains of rules; then the chains are walked as the kernel would (nft(8), iptables(8)). */
#include "loadgen/doctor/base/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/doctor/base/rule.h"

#define CHAINS_MAX 1024
#define RULES_MAX 16384
#define DEPTH_MAX 16	/* the kernel's own limit of nftables */
#define STEPS_MAX 50000
#define NONE (-1)

struct chain {
	struct rules_where name;
	bool base;	/* what the kernel begins with, for packets that come in */
	bool drops;	/* its policy */
	int first, last;	/* its rules, or NONE */
};

struct rules {
	struct rules_port ports[RULES_PORTS_MAX];
	unsigned n_ports;
	struct chain *chains;
	struct rule *rules;
	int n_chains, n_rules;
	/* while reading: where a line is */
	char family[16], table[CHAIN_NAME_MAX];
	int chain;	/* NONE: in none */
	bool any_table, foreign;
};

/* --- lines --- */

static int find_chain(const struct rules *all, const struct rules_where *like, const char *name)
{
	for (int i = 0; i < all->n_chains; i++) {
		const struct rules_where *w = &all->chains[i].name;

		if (strcmp(w->chain, name) == 0 && strcmp(w->table, like->table) == 0 &&
		    strcmp(w->family, like->family) == 0)
			return i;
	}
	return NONE;
}

static int add_chain(struct rules *all, const char *name)
{
	struct chain *c;

	if (all->n_chains == CHAINS_MAX)
		return -EFBIG;
	c = &all->chains[all->n_chains];
	*c = (struct chain) { .first = NONE, .last = NONE };
	memcpy(c->name.family, all->family, sizeof(c->name.family));
	memcpy(c->name.table, all->table, sizeof(c->name.table));
	if (snprintf(c->name.chain, sizeof(c->name.chain), "%s", name) >= (int)sizeof(c->name.chain))
		return -EFBIG;
	all->chain = all->n_chains++;
	return 0;
}

static struct rule *add_rule(struct rules *all, int chain, const struct words *w)
{
	struct chain *c = &all->chains[chain];
	struct rule *r;

	if (all->n_rules == RULES_MAX)
		return NULL;
	r = &all->rules[all->n_rules];
	*r = (struct rule) { .next = NONE, .ports = (1u << all->n_ports) - 1, .more = w->cut };
	*(c->last == NONE ? &c->first : &all->rules[c->last].next) = all->n_rules;
	c->last = all->n_rules++;
	return r;
}

static void keep(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text);
}

/* "type filter hook input priority filter; policy drop;" */
static void nft_base(struct rules *all, struct words *w)
{
	struct chain *c = &all->chains[all->chain];

	while (w->at < w->n) {
		const char *word = words_next(w);

		if (strcmp(word, "hook") == 0) {
			const char *hook = words_next(w);

			c->base = strcmp(hook, "input") == 0 || strcmp(hook, "prerouting") == 0 ||
				  strcmp(hook, "ingress") == 0;
		} else if (strcmp(word, "policy") == 0) {
			c->drops = strncmp(words_next(w), "drop", 4) == 0;
		}
	}
}

static bool is_of_ip(const char *family)
{
	return strcmp(family, "ip") == 0 || strcmp(family, "ip6") == 0 || strcmp(family, "inet") == 0 ||
	       strcmp(family, "netdev") == 0;
}

static int nft_line(struct rules *all, struct words *w)
{
	struct rule *r;

	if (w->n == 4 && strcmp(w->v[0], "table") == 0) {
		keep(all->family, sizeof(all->family), w->v[1]);
		keep(all->table, sizeof(all->table), w->v[2]);
		all->chain = NONE;
		return 0;
	}
	if (w->n == 3 && strcmp(w->v[0], "chain") == 0)
		return is_of_ip(all->family) ? add_chain(all, w->v[1]) : 0;
	if (strcmp(w->v[0], "}") == 0)
		all->chain = NONE;
	if (all->chain == NONE)
		return 0;	/* sets and the like */
	if (strcmp(w->v[0], "type") == 0 && w->n > 2 && strcmp(w->v[2], "hook") == 0) {
		nft_base(all, w);
		return 0;
	}
	r = add_rule(all, all->chain, w);
	if (r)
		rule_read_nft(all->ports, all->n_ports, w, r);
	return r ? 0 : -EFBIG;
}

static int iptables_line(struct rules *all, struct words *w)
{
	struct rules_where here = { .family = "" };
	const char *name = w->v[0];
	struct rule *r;
	int ret, chain;

	if (name[0] == '#') {
		for (unsigned i = 0; i < w->n; i++)
			all->foreign |= strcmp(w->v[i], "(nf_tables)") == 0;
		return 0;
	}
	if (name[0] == '*') {
		keep(all->table, sizeof(all->table), name + 1);
		all->any_table = true;
		return 0;
	}
	if (name[0] == ':' && w->n > 1) {
		ret = add_chain(all, name + 1);
		if (!ret) {
			struct chain *c = &all->chains[all->chain];

			c->base = strcmp(name, ":INPUT") == 0 || strcmp(name, ":PREROUTING") == 0;
			c->drops = strcmp(w->v[1], "DROP") == 0;
		}
		return ret;
	}
	if (strcmp(name, "-A") != 0 || w->n < 2)
		return 0;
	memcpy(here.table, all->table, sizeof(here.table));
	chain = find_chain(all, &here, w->v[1]);
	if (chain == NONE)
		return 0;
	w->at = 2;
	r = add_rule(all, chain, w);
	if (r)
		rule_read_iptables(all->ports, all->n_ports, w, r);
	return r ? 0 : -EFBIG;
}

static int read_lines(struct rules *all, FILE *in, enum rules_format format)
{
	struct words w;
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	while (!ret && getline(&line, &size, in) >= 0) {
		words_split(line, &w);
		if (w.n)
			ret = format == RULES_NFT ? nft_line(all, &w) : iptables_line(all, &w);
	}
	free(line);
	if (!ret && format == RULES_IPTABLES && (!all->any_table || all->foreign))
		ret = -ENODATA;
	return ret;
}

int rules_read(FILE *in, enum rules_format format, const struct rules_port *ports, unsigned n, struct rules **out)
{
	struct rules *all = calloc(1, sizeof(*all));
	int ret = -ENOMEM;

	*out = NULL;
	if (!all)
		return -ENOMEM;
	all->chain = NONE;
	all->n_ports = n < RULES_PORTS_MAX ? n : RULES_PORTS_MAX;
	memcpy(all->ports, ports, all->n_ports * sizeof(*ports));
	all->chains = calloc(CHAINS_MAX, sizeof(*all->chains));
	all->rules = calloc(RULES_MAX, sizeof(*all->rules));
	if (all->chains && all->rules)
		ret = read_lines(all, in, format);
	if (ret) {
		rules_free(all);
		return ret;
	}
	*out = all;
	return 0;
}

void rules_free(struct rules *r)
{
	if (!r)
		return;
	free(r->chains);
	free(r->rules);
	free(r);
}

/* --- the way of a packet --- */

struct way {
	const struct rules *all;
	unsigned port;
	unsigned steps;
	bool may_accept, may_drop;	/* a rule that looks at more */
};

static enum verdict walk(struct way *w, int chain, unsigned depth);

/* What the rule does with the packet, if it is for it. */
static enum verdict apply(struct way *w, const struct chain *c, const struct rule *r, unsigned depth)
{
	enum verdict v;
	int to;

	if (r->verdict != JUMPS && r->verdict != GOES_TO)
		return r->verdict;
	to = find_chain(w->all, &c->name, r->target);
	if (to == NONE) {
		/* A target that is not known here may do anything. */
		w->may_accept = w->may_drop = true;
		return GOES_ON;
	}
	v = walk(w, to, depth + 1);
	return v == GOES_ON && r->verdict == GOES_TO ? RETURNS : v;
}

/* ACCEPTS, DROPS, or GOES_ON: the chain has come to its end. */
static enum verdict walk(struct way *w, int chain, unsigned depth)
{
	const struct chain *c = &w->all->chains[chain];

	if (depth > DEPTH_MAX) {
		w->may_accept = w->may_drop = true;
		return GOES_ON;
	}
	for (int i = c->first; i != NONE; i = w->all->rules[i].next) {
		const struct rule *r = &w->all->rules[i];
		enum verdict v;

		if (!(r->ports >> w->port & 1))
			continue;
		if (++w->steps > STEPS_MAX) {
			w->may_accept = w->may_drop = true;
			return GOES_ON;
		}
		v = apply(w, c, r, depth);
		if (r->more) {
			w->may_accept |= v == ACCEPTS || v == RETURNS;
			w->may_drop |= v == DROPS || v == RETURNS;
		} else if (v == RETURNS) {
			return GOES_ON;
		} else if (v != GOES_ON) {
			return v;
		}
	}
	return GOES_ON;
}

enum rules_verdict rules_ask(const struct rules *r, unsigned port, struct rules_where *where, bool *more)
{
	enum rules_verdict worst = RULES_ACCEPT;

	*where = (struct rules_where) { .family = "" };
	*more = false;
	for (int i = 0; i < r->n_chains; i++) {
		const struct chain *c = &r->chains[i];
		struct way w = { .all = r, .port = port };
		enum rules_verdict now = RULES_ACCEPT;
		enum verdict v;

		if (!c->base)
			continue;
		v = walk(&w, i, 0);
		if (v == DROPS || (v == GOES_ON && c->drops))
			now = w.may_accept ? RULES_MAYBE : RULES_DROP;
		*more |= w.may_drop;
		if (now > worst) {
			worst = now;
			*where = c->name;
		}
	}
	return worst;
}
