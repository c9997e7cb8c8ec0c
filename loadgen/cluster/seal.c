/* SPDX-License-Identifier: BSD-2-Clause */
#include "loadgen/cluster/seal.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/json_at.h"
#include "common/base/utf8.h"

void seal_add(json_t *hosts, const struct candidate *c)
{
	char name[HOST_NAME_BYTES];

	entry_show_name(c->entry, name);
	json_array_append_new(hosts, json_pack("{s:s, s:I, s:s}", "id", c->id, "created", (json_int_t)c->created, "name", name));
}

static bool uuid_is_good(const char *uuid)
{
	return uuid && host_id_is_good(uuid);
}

static bool read_host(const json_t *one, const struct sealed_host *before, size_t count, struct sealed_host *h)
{
	const char *id = json_text_at(one, "id"), *name = json_text_at(one, "name");

	if (!id || !host_id_is_good(id) || !json_is_integer(json_object_get(one, "created")))
		return false;
	for (size_t k = 0; k < count; k++)
		if (!strcmp(before[k].id, id))
			return false;
	memcpy(h->id, id, sizeof(h->id));
	h->created = json_integer_value(json_object_get(one, "created"));
	utf8_show(name ? name : "?", h->name, sizeof(h->name));
	return true;
}

struct sealed_host *seal_read(const json_t *seal, char uuid[RUN_UUID_BYTES], uint32_t *count)
{
	const json_t *list = json_object_get(seal, "hosts"), *one;
	const char *said = json_text_at(seal, "uuid");
	size_t i, n = json_array_size(list);
	struct sealed_host *hosts;

	if (!uuid_is_good(said) || n < 1 || n > CLUSTER_HOSTS_MAX)
		return NULL;
	hosts = calloc(n, sizeof(*hosts));
	if (!hosts)
		return NULL;
	json_array_foreach(list, i, one) {
		if (!read_host(one, hosts, i, &hosts[i])) {
			free(hosts);
			return NULL;
		}
	}
	*count = (uint32_t)n;
	memcpy(uuid, said, strlen(said) + 1);
	return hosts;
}
