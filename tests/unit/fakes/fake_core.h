/* SPDX-License-Identifier: BSD-2-Clause */
/* Common to the fakes of libibverbs and librdmacm: making a call fail, and noticing misuse.
 *
 * Linked instead of the libraries, whose functions any thread may call: they take one lock. What a test calls itself
 * (fake_...) is for one thread at a time. A test calls fake_reset first and fake_check last.
 */
#ifndef RAMPART_TESTS_UNIT_FAKE_CORE_H
#define RAMPART_TESTS_UNIT_FAKE_CORE_H

/* Everything as new: no objects, no records, default device. */
void fake_reset(void);

/* Makes the k-th fallible call from now on fail with `err` (once); 0 never. */
void fake_fail_at(unsigned k, int err);
/* Makes the next call of the function `name` fail (once). */
void fake_fail_next(const char *name, int err);
/* Name of the call that was made to fail, or NULL if none was yet. */
const char *fake_failed(void);

/* Fails the test if any object was left, or any rule of the libraries was broken since fake_reset:
 * destroyed in the wrong order, queues overflowed, events not acked, ... */
void fake_check(void);
/* Objects that exist now, of both libraries. */
unsigned fake_objects(void);
/* Notes each kind of object of which some are left as a broken rule. */
void fake_note_left(void);
/* Asked at every fallible call, if it is not NULL: the errno it is to fail with, or 0. */
extern int (*fake_fault)(const char *name);

/* For the fakes: holds the lock to the end of the function. It may be held already. */
#define FAKE_GUARD __attribute__((cleanup(fake_unlock), unused)) int fake_guard_ = fake_lock()
int fake_lock(void);
void fake_unlock(const int *guard);

/* For the fakes: the errno this call of `name` is to fail with, or 0. */
int fake_fails(const char *name);
/* For the fakes: notes a broken rule. */
void fake_violation(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* For the fakes: an object of this kind was made (+1) or is gone (-1). */
void fake_count(const char *kind, int change);

#endif
