/* SPDX-License-Identifier: BSD-2-Clause */
/* The sources and libraries that this program was built with. BUILD_* come from the Makefile. */
#include "common/base/build_info.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#undef EV_NONE	/* of elf.h; libev has another one */
#include <ev.h>
#include <openssl/crypto.h>
#include <zlib.h>

#include "common/base/utf8.h"
#include "common/base/version.h"

#define TEXT(x) #x
#define VERSION_TEXT(major, minor) TEXT(major) "." TEXT(minor)
#define LIBEV_VERSION VERSION_TEXT(EV_VERSION_MAJOR, EV_VERSION_MINOR)

const char *build_info_text(void)
{
	return RAMPART_VERSION " (commit " BUILD_COMMIT ", gcc " __VERSION__ ")";
}

const char *build_info_openssl(void)
{
	return OpenSSL_version(OPENSSL_VERSION);
}

/* The longest that linkers make is 20 bytes; --build-id=0x... may give another length. */
#define BUILD_ID_BYTES_MAX 32u
#define ALIGNED(n) (((n) + 3u) & ~3u)

struct build_id {
	char hex[2 * BUILD_ID_BYTES_MAX + 1];
};

/* Called by dl_iterate_phdr for the program itself, which comes first, and then no more. */
static int read_build_id(struct dl_phdr_info *program, size_t size, void *arg)
{
	struct build_id *id = arg;

	(void)size;
	for (int i = 0; i < program->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &program->dlpi_phdr[i];
		const uint8_t *note = (const uint8_t *)(program->dlpi_addr + ph->p_vaddr), *end = note + ph->p_memsz;

		while (ph->p_type == PT_NOTE && note + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)note;
			const uint8_t *name = note + sizeof(*head), *bytes = name + ALIGNED(head->n_namesz);

			if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == sizeof(ELF_NOTE_GNU) &&
			    memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 &&
			    head->n_descsz <= BUILD_ID_BYTES_MAX)
				utf8_hex(bytes, head->n_descsz, id->hex);
			note = bytes + ALIGNED(head->n_descsz);
		}
	}
	return 1;
}

json_t *build_info_json(void)
{
	struct build_id id = { "" };
	size_t n = strlen(BUILD_COMMIT);
	const char *dirty_mark = "-dirty";
	int dirty = n > 6 && strcmp(&BUILD_COMMIT[n - 6], dirty_mark) == 0;

	dl_iterate_phdr(read_build_id, &id);
	return json_pack("{s:s, s:s%, s:b, s:s?, s:s, s:s, s:{s:s, s:s, s:s, s:s}}",
			 "version", RAMPART_VERSION, "git_commit", BUILD_COMMIT, dirty ? n - 6 : n,
			 "dirty", dirty, "build_id", id.hex[0] ? id.hex : NULL, "compiler", "gcc " __VERSION__,
			 "flags", BUILD_FLAGS, "libraries",
			 "openssl", build_info_openssl(), "jansson", jansson_version_str(), "zlib",
			 zlibVersion(), "libev", LIBEV_VERSION);
}
