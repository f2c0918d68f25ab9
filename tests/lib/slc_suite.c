/* Main program of a folder of tests: runs one of the suites linked into it. */
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUITES = 128 };

static struct suite {
    const char *name;
    int (*run)(int argc, char **argv);
} suites[SUITES];

static size_t suite_count;

void slc_suite_add(const char *name, int (*run)(int argc, char **argv))
{
    if (suite_count == SUITES) {
        (void)fprintf(stderr, "more than %d suites in one program\n", (int)SUITES);
        exit(99);
    }
    suites[suite_count++] = (struct suite){name, run};
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < suite_count; i++) {
        if (strcmp(suites[i].name, argv[1]) == 0) {
            return suites[i].run(argc - 1, argv + 1);
        }
    }
    if (suite_count == 1) {
        return suites[0].run(argc, argv);
    }
    (void)fprintf(stderr, "usage: %s SUITE [PART OF A TEST'S NAME]\nsuites:\n", argv[0]);
    for (size_t i = 0; i < suite_count; i++) {
        (void)fprintf(stderr, "  %s\n", suites[i].name);
    }
    return 99;
}
