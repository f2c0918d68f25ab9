/* The test harness: CUnit tests reported as TAP, with skips, seeds and canaries.
 *
 * Each test file is a suite that lists its tests; the program of the folder runs a suite by name.
 *
 *     SLC_SUITE(plan)
 *     {
 *         static const struct slc_test tests[] = { {"what it shows", test_function}, .. };
 *
 *         return slc_test_main("engine: plan", tests, SLC_COUNT(tests), argc, argv);
 *     }
 *
 * `PROGRAM SUITE [NAME]` runs the tests of a suite, or those whose name contains NAME; `PROGRAM`
 * lists its suites; the name of the only suite can be omitted. SLC_TEST_SEED sets the seed of
 * slc_test_seed(), which is printed so that a failure can be reproduced. A file that needs a
 * program of its own has a main instead. */
#ifndef SLC_TEST_H
#define SLC_TEST_H

#include "base/error/error.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLC_COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct slc_test {
    const char *name;
    void (*run)(void);
};

/* Runs the tests, or those whose name contains argv[1]. Returns the program's exit status. */
int slc_test_main(
    const char *suite, const struct slc_test *tests, size_t count, int argc, char **argv);

/* Registers a suite. `run` gets its name as argv[0], followed by the remaining arguments. */
void slc_suite_add(const char *name, int (*run)(int argc, char **argv));

/* clang-format off */
#define SLC_SUITE(name)                                                                            \
    static int suite_##name(int argc, char **argv);                                                \
    __attribute__((constructor)) static void add_suite_##name(void)                                \
    {                                                                                              \
        slc_suite_add(#name, suite_##name);                                                        \
    }                                                                                              \
    static int suite_##name(int argc, char **argv)
/* clang-format on */

/* Marks the running test as skipped, with the reason; the test must then return. */
void slc_test_skip(const char *reason);

/* Seed of this run: SLC_TEST_SEED or 1. */
uint64_t slc_test_seed(void);

/* True if SLC_TEST_FULL is set: run all cases, however long they take. */
bool slc_test_full(void);

/* True if SLC_TEST_QUICK is 1 or 2 and SLC_TEST_FULL is unset: a sanitizer build, several times
 * slower, in which a test may run a part of its cases. Every kind of case must remain: the build
 * finds memory and threading errors; the run without sanitizers covers more cases. */
bool slc_test_quick(void);

/* True if SLC_TEST_QUICK is 2 and SLC_TEST_FULL is unset: a ThreadSanitizer build, twenty times
 * slower. Cases that differ only in numbers may be omitted; every interaction of threads must
 * remain. */
bool slc_test_threads_only(void);

/* A new empty folder for the running test, removed when the program ends. Never NULL. */
const char *slc_test_folder(void);

/* Asserts success and prints the error record otherwise. */
#define SLC_ASSERT_OK(call, err) slc_test_assert_ok((call), (err), #call, __FILE__, __LINE__)
void slc_test_assert_ok(enum slc_status status,
                        const struct slc_error *err,
                        const char *text,
                        const char *file,
                        unsigned line);

/* Asserts that `call` fails with `want` and that the message contains `part`. */
#define SLC_ASSERT_FAILS(call, want, err, part)                                                    \
    slc_test_assert_fails((call), (want), (err), (part), #call, __FILE__, __LINE__)
void slc_test_assert_fails(enum slc_status status,
                           enum slc_status want,
                           const struct slc_error *err,
                           const char *part,
                           const char *text,
                           const char *file,
                           unsigned line);

#endif
