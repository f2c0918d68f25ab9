/* Assertions about calls of the public API, which has its own error record. */
#ifndef SLC_TEST_API_H
#define SLC_TEST_API_H

#include "slc_test.h"

#include <sluice/experimental.h>
#include <sluice/sluice.h>

#include <stdio.h>
#include <string.h>

/* Initializes options and reports before a call: zero except struct_bytes. */
#define FRESH(variable)                                                                            \
    (variable) = (__typeof__(variable))                                                            \
    {                                                                                              \
        .struct_bytes = sizeof(variable)                                                           \
    }

/* Resets the error record. */
static inline void api_clear(struct sluice_error *err)
{
    *err = (struct sluice_error)SLUICE_ERROR_INIT;
}

/* Asserts success and prints the error record otherwise. */
#define API_OK(call, err) api_assert((call), SLUICE_OK, (err), "", #call, __FILE__, __LINE__)
/* Asserts that `call` fails with `want` and that the message contains `part`. */
#define API_FAILS(call, want, err, part)                                                           \
    api_assert((call), (want), (err), (part), #call, __FILE__, __LINE__)
/* Does the same as API_FAILS, and resets `err`. */
#define API_REFUSED(call, want, err, part)                                                         \
    do {                                                                                           \
        API_FAILS(call, want, err, part);                                                          \
        api_clear(err);                                                                            \
    } while (0)

#define REFUSED(call, want, part) API_REFUSED(call, want, &err, part)

static inline void api_assert(enum sluice_status status,
                              enum sluice_status want,
                              const struct sluice_error *err,
                              const char *part,
                              const char *call,
                              const char *file,
                              unsigned line)
{
    const bool met = status == want && (want == SLUICE_OK || strstr(err->message, part) != NULL);

    if (!met) {
        char text[2048];

        (void)sluice_error_format(err, text, sizeof text);
        printf("# %s:%u: %s is %s: %s\n", file, line, call, sluice_status_name(status), text);
    }
    CU_assertImplementation(met, line, call, file, "", CU_FALSE);
}

static inline struct sluice_model_info api_info(const struct sluice_model *model)
{
    struct sluice_error err = SLUICE_ERROR_INIT;
    struct sluice_model_info info = {.struct_bytes = sizeof info};

    API_OK(sluice_model_get_info(model, &info, &err), &err);
    return info;
}

/* Copies a factor into `to`, which has space for `count` numbers. */
static inline void
api_factor(const struct sluice_model *model, uint32_t mode, double *to, uint64_t count)
{
    struct sluice_error err = SLUICE_ERROR_INIT;

    API_OK(sluice_model_get_factor(model, mode, to, count, &err), &err);
}

#endif
