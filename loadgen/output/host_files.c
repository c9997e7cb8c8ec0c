/* SPDX-License-Identifier: BSD-2-Clause */
/* See host_files.h. */
#include "loadgen/output/host_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/utf8.h"
#include "loadgen/output/results.h"

#define FILES_MAX 4096	/* maximum number of files kept from one host */

/* Advances *p past digits and the text `behind` that follows them. False, with *p unchanged, if they are not there. */
static bool skip_number(const char **p, const char *behind)
{
	size_t n = strspn(*p, "0123456789");

	if (n < 1 || n > 20 || strncmp(*p + n, behind, strlen(behind)) != 0)
		return false;
	*p += n + strlen(behind);
	return true;
}

/* True for histogram names of step_files.c: step-00008-1-connect.hlog, step-00008-1-64B-500ps-response.hgrm. */
static bool is_histogram(const char *name)
{
	static const char *const ends[] = { "connect.hgrm", "connect.hlog", "response.hgrm", "response.hlog",
					    "service.hgrm", "service.hlog" };
	const char *p = name + strlen("step-");

	if (strncmp(name, "step-", strlen("step-")) != 0 || !skip_number(&p, "-") || !skip_number(&p, "-"))
		return false;
	(void)skip_number(&p, "B-");
	(void)skip_number(&p, "ps-");
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcmp(p, ends[i]) == 0)
			return true;
	return false;
}

/* True for the names of files that a member's run writes. Other names are refused, because a host could use them to
 * place a page or a program among the leader's results. */
static bool is_of_run(const char *name)
{
	return strcmp(name, "run.json") == 0 || strcmp(name, "events.ndjson") == 0 || is_histogram(name);
}

struct found {
	char name[132];
	off_t bytes;
};

static int by_size(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes ? 1 : strcmp(x->name, y->name);
}

/* Finds a run's regular files in a folder, the smallest first. Returns how many. */
static size_t find_files(DIR *dir, struct found *out, size_t max)
{
	const struct dirent *d;
	struct stat st;
	size_t n = 0;

	while (n < max && (d = readdir(dir))) {
		if (!is_of_run(d->d_name) || fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		snprintf(out[n].name, sizeof(out[n].name), "%.128s", d->d_name);
		out[n++].bytes = st.st_size;
	}
	qsort(out, n, sizeof(*out), by_size);
	return n;
}

/* The file's content; NULL if it cannot be read, or is not UTF-8 text. */
static json_t *text_of(int folder, const struct found *f)
{
	int fd = openat(folder, f->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *text = malloc((size_t)f->bytes + 1);
	json_t *o = NULL;
	ssize_t n;

	if (fd >= 0 && text) {
		n = pread(fd, text, (size_t)f->bytes, 0);
		if (n >= 0)
			o = json_stringn(text, (size_t)n);
	}
	if (fd >= 0)
		close(fd);
	free(text);
	return o;
}

json_t *host_files_read(const struct results *r)
{
	json_t *o = json_pack("{s:s, s:{}, s:[]}", "folder", results_dir(r), "files", "left");
	struct found *found = calloc(FILES_MAX, sizeof(*found));
	DIR *dir = opendir(results_dir(r));
	size_t used = 0, n = found && dir ? find_files(dir, found, FILES_MAX) : 0;

	for (size_t i = 0; o && i < n; i++) {
		json_t *text = used + (size_t)found[i].bytes <= HOST_FILES_MAX ? text_of(dirfd(dir), &found[i]) : NULL;

		if (text) {
			used += (size_t)found[i].bytes;
			json_object_set_new(json_object_get(o, "files"), found[i].name, text);
		} else {
			json_array_append_new(json_object_get(o, "left"), json_string(found[i].name));
		}
	}
	if (dir)
		closedir(dir);
	free(found);
	return o;
}

static int write_text(FILE *out, const void *arg)
{
	const json_t *text = arg;

	return fwrite(json_string_value(text), 1, json_string_length(text), out) == json_string_length(text) ? 0 : -EIO;
}

/* Makes the folder hosts/RANK-NAME, with '-' for characters unusual in file names. Returns a descriptor, or -errno. */
static int host_folder(const struct results *r, uint32_t rank, const char *host)
{
	int top = path_open_folder(results_dir(r)), all = -1, one = -1;
	char name[96];

	snprintf(name, sizeof(name), "%u-%.64s", rank, host);
	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			*p = '-';
	if (top < 0)
		return top;
	all = path_make_folder(top, "hosts");
	if (all >= 0)
		one = path_make_folder(all, name);
	close(top);
	if (all < 0)
		return all;
	close(all);
	return one;
}

/* Logs the files that are left out, as one line for each host. */
static void tell_left_out(uint32_t rank, const char *host, uint32_t n, const char *first)
{
	char name[64], shown[64];

	if (n)
		log_warn("left out %u of the files from host %s (rank %u), the first being '%s': only files that a run "
			 "writes are kept, at most %d of them and %d MiB in total", n,
			 utf8_show(host, name, sizeof(name)), rank, utf8_show(first, shown, sizeof(shown)), FILES_MAX,
			 HOST_FILES_MAX >> 20);
}

uint32_t host_files_write(struct results *r, uint32_t rank, const char *host, const json_t *files)
{
	json_t *texts = json_object_get(files, "files"), *text;
	int folder = json_is_object(texts) ? host_folder(r, rank, host) : -ENOENT, ret;
	const char *name, *first = NULL;
	uint32_t n = 0, left = 0;
	size_t used = 0;

	if (folder < 0)
		return 0;
	json_object_foreach(texts, name, text) {
		if (!is_of_run(name) || !json_is_string(text) || n == FILES_MAX ||
		    used + json_string_length(text) > HOST_FILES_MAX) {
			first = first ? first : name;
			left++;
			continue;
		}
		used += json_string_length(text);
		ret = path_write_in(folder, name, write_text, text);
		if (ret)
			results_lost(r, name, ret);
		n += !ret;
	}
	close(folder);
	tell_left_out(rank, host, left, first);
	return n;
}
