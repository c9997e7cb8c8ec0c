/* SPDX-License-Identifier: BSD-2-Clause */
/* A disk that is full. See full_disk.h. */
#include "tests/unit/helpers/full_disk.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t disk_room = -1;
int disk_full_errno = ENOSPC;

ssize_t write(int fd, const void *data, size_t bytes)
{
	if (disk_room >= 0 && fd > STDERR_FILENO) {
		if (disk_room == 0) {
			errno = disk_full_errno;
			return -1;
		}
		bytes = bytes < (size_t)disk_room ? bytes : (size_t)disk_room;
		disk_room -= (ssize_t)bytes;
	}
	return syscall(SYS_write, fd, data, bytes);
}
