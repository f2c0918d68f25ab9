/*
 * Assertions that stay on in release builds: the states of the pipeline are asserted at every
 * change, and a pipeline in a wrong state would compute wrong numbers silently. For programmer
 * errors only.
 */
#ifndef SLC_ENGINE_ASSERT_H
#define SLC_ENGINE_ASSERT_H

#include "base/log.h"

#include <stdlib.h>

#define SLC_ASSERT(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            slc_log(SLC_LOG_WARNING, "internal error: %s does not hold (%s:%d)", #condition,       \
                    __FILE__, __LINE__);                                                           \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
