/* SPDX-License-Identifier: BSD-2-Clause */
/* The sources and libraries that this program was built with. Any thread. */
#ifndef RAMPART_COMMON_BUILD_INFO_H
#define RAMPART_COMMON_BUILD_INFO_H

#include <jansson.h>

/* Version, commit and compiler, such as "0.1.0 (commit abc1234, gcc 12.2.0)". The text is static. */
const char *build_info_text(void);

/* Version of the OpenSSL library that is loaded. The text is static. */
const char *build_info_openssl(void);

/* The object `build` of run.json: {version, git_commit, dirty, build_id, compiler, flags, libraries{openssl, jansson,
 * zlib, libev}}. build_id is the linker's hash of the running program, which `readelf -n` shows and strip(1) keeps;
 * null if it was linked without. The caller owns the reference; NULL if memory runs out. */
json_t *build_info_json(void) __attribute__((warn_unused_result));

#endif
