/* What this program was built from and with. */
#ifndef RAMPART_COMMON_BUILD_INFO_H
#define RAMPART_COMMON_BUILD_INFO_H

#include <jansson.h>

/* "0.1.0 (abc1234, gcc 12.2.0)"; static text. */
const char *build_info_text(void);

/* {version, git_commit, dirty, compiler, flags, libraries{}}; NULL when out of memory. */
json_t *build_info_json(void);

#endif
