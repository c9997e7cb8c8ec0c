/* SPDX-License-Identifier: BSD-2-Clause */
/* The sources and libraries that this program was built with. BUILD_* come from the Makefile. */
#include "common/base/build_info.h"

#include <string.h>

#include <ev.h>
#include <openssl/crypto.h>
#include <zlib.h>

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

json_t *build_info_json(void)
{
	size_t n = strlen(BUILD_COMMIT);
	const char *dirty_mark = "-dirty";
	int dirty = n > 6 && strcmp(&BUILD_COMMIT[n - 6], dirty_mark) == 0;

	return json_pack("{s:s, s:s%, s:b, s:s, s:s, s:{s:s, s:s, s:s, s:s}}",
			 "version", RAMPART_VERSION, "git_commit", BUILD_COMMIT, dirty ? n - 6 : n,
			 "dirty", dirty, "compiler", "gcc " __VERSION__, "flags", BUILD_FLAGS, "libraries",
			 "openssl", build_info_openssl(), "jansson", jansson_version_str(), "zlib",
			 zlibVersion(), "libev", LIBEV_VERSION);
}
