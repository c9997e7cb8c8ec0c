/* Where files that come with the programs are found. */
#ifndef RAMPART_COMMON_PATHS_H
#define RAMPART_COMMON_PATHS_H

#include <stddef.h>

/* Writes the path of `relative` below the folder of the running program. 0 or -ENAMETOOLONG. */
int path_beside_program(const char *relative, char *out, size_t size)
	__attribute__((warn_unused_result));

/* Makes every missing folder of `path`. 0 or -errno. */
int path_make_dirs(const char *path) __attribute__((warn_unused_result));

#endif
