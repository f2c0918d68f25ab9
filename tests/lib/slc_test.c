/* TAP over CUnit: CUnit runs and records assertions, its handlers print one TAP point per test with
 * the failed assertions as diagnostics. */
#include "slc_test.h"

#include <CUnit/TestRun.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *suite_name;
static const char *skip_reason;
static unsigned point;
static unsigned failed_points;
static char folder[64];
static clock_t test_start;
static unsigned folder_count;
static char subfolder[96];

void slc_test_skip(const char *reason)
{
    skip_reason = reason;
}

uint64_t slc_test_seed(void)
{
    const char *text = getenv("SLC_TEST_SEED");

    return text ? strtoull(text, NULL, 0) : 1;
}

bool slc_test_full(void)
{
    return getenv("SLC_TEST_FULL") != NULL;
}

/* Speed level of the tests: 0 (all cases), 1 or 2 (fewest). */
static unsigned quickness(void)
{
    const char *quick = getenv("SLC_TEST_QUICK");

    if (quick == NULL || slc_test_full()) {
        return 0;
    }
    return strcmp(quick, "1") == 0 ? 1 : strcmp(quick, "2") == 0 ? 2 : 0;
}

bool slc_test_quick(void)
{
    return quickness() >= 1;
}

bool slc_test_threads_only(void)
{
    return quickness() == 2;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_folder(void)
{
    if (folder[0] != '\0') {
        (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
}

const char *slc_test_folder(void)
{
    if (folder[0] == '\0') {
        (void)snprintf(folder, sizeof folder, "/tmp/slc-test-XXXXXX");
        if (!mkdtemp(folder)) {
            perror("mkdtemp");
            exit(99);
        }
        (void)atexit(remove_folder);
    }
    (void)snprintf(subfolder, sizeof subfolder, "%s/%u", folder, folder_count++);
    if (mkdir(subfolder, 0700) != 0) {
        perror(subfolder);
        exit(99);
    }
    return subfolder;
}

static void print_diagnostic(const char *text)
{
    printf("# ");
    for (; *text; text++) {
        putchar(*text == '\n' ? ' ' : *text);
    }
    putchar('\n');
    (void)fflush(stdout); /* flush, so that a later crash does not lose this line */
}

void slc_test_assert_ok(enum slc_status status,
                        const struct slc_error *err,
                        const char *text,
                        const char *file,
                        unsigned line)
{
    if (status != SLC_OK && err) {
        char message[2048];

        (void)slc_error_format(err, NULL, message, sizeof message);
        print_diagnostic(message);
    }
    CU_assertImplementation(status == SLC_OK, line, text, file, "", CU_FALSE);
}

void slc_test_assert_fails(enum slc_status status,
                           enum slc_status want,
                           const struct slc_error *err,
                           const char *part,
                           const char *text,
                           const char *file,
                           unsigned line)
{
    bool as_wanted = status == want;

    if (as_wanted && err) {
        as_wanted = err->status == want && (!part || strstr(err->message, part) != NULL);
    }
    if (!as_wanted) {
        char message[2048];

        (void)snprintf(message, sizeof message, "wanted %s%s%s, got %s: %s", slc_status_name(want),
                       part ? " with " : "", part ? part : "", slc_status_name(status),
                       err ? err->message : "");
        print_diagnostic(message);
    }
    CU_assertImplementation(as_wanted, line, text, file, "", CU_FALSE);
}

/* Prints the time of a slow test, so that the tests that make the check long can be found. */
static void print_time(void)
{
    const clock_t now = clock();
    const double seconds = (double)(now - test_start) / CLOCKS_PER_SEC;

    if (seconds >= 1.0) {
        printf("# %.1f s of processor time:\n", seconds);
    }
    test_start = now;
}

static void test_complete(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord first)
{
    bool failed = false;

    (void)suite;
    for (CU_pFailureRecord failure = first; failure; failure = failure->pNext) {
        char message[1024];

        (void)snprintf(message, sizeof message, "%s:%u: %s",
                       failure->strFileName ? failure->strFileName : "?", failure->uiLineNumber,
                       failure->strCondition ? failure->strCondition : "?");
        print_diagnostic(message);
        failed = true;
    }
    point++;
    failed_points += failed;
    print_time();
    printf("%sok %u - %s: %s%s%s\n", failed ? "not " : "", point, suite_name, test->pName,
           skip_reason && !failed ? " # SKIP " : "", skip_reason && !failed ? skip_reason : "");
    skip_reason = NULL;
    (void)fflush(stdout);
}

int slc_test_main(
    const char *suite, const struct slc_test *tests, size_t count, int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    CU_pSuite registered;

    suite_name = suite;
    if (CU_initialize_registry() != CUE_SUCCESS) {
        return 99;
    }
    registered = CU_add_suite(suite, NULL, NULL);
    for (size_t i = 0; registered && i < count; i++) {
        if ((!only || strstr(tests[i].name, only)) &&
            !CU_add_test(registered, tests[i].name, tests[i].run)) {
            return 99;
        }
    }
    printf("# seed %llu (SLC_TEST_SEED)\n1..%u\n", (unsigned long long)slc_test_seed(),
           registered ? registered->uiNumberOfTests : 0);
    CU_set_test_complete_handler(test_complete);
    test_start = clock();
    (void)CU_run_all_tests();
    CU_cleanup_registry();
    return failed_points > 0;
}
