/* Runs a grid of emulated CUDA threads: each is a fiber, resumed in a random order by seed, until
 * it waits at a barrier or a collective call of its warp. Some blocks run simultaneously, as on a
 * device, so that blocks of a grid that share work each get some.
 *
 * A fault of a kernel (threads of a warp that disagree, threads that wait forever) ends the program
 * with a line that names the thread and the call at which it waits. */
#ifndef SLC_EMULATION_SCHEDULER_H
#define SLC_EMULATION_SCHEDULER_H

#include "device_code.h"

#include <cstddef>
#include <functional>

/* Runs all blocks to their ends; `random` returns the next number of the seeded order. */
void slc_grid_run(dim3 grid,
                  dim3 block,
                  size_t shared_bytes,
                  const std::function<void()> &body,
                  const std::function<unsigned(unsigned below)> &random);

/* "emulation: ..." to standard error, then abort(). */
[[noreturn]] void slc_emulation_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
