/*
 * Runs a grid of emulated CUDA threads: each a fiber, resumed in an order that a seed draws, until
 * it meets others at a barrier or a collective call of its warp. Some blocks run at the same time,
 * as on a device; so those of a grid that share work get some of it each.
 *
 * A fault of a kernel (threads of a warp that disagree, threads that wait for ever) ends the
 * program with a line that says which thread waits for what.
 */
#ifndef SLC_EMULATION_SCHEDULER_H
#define SLC_EMULATION_SCHEDULER_H

#include "device_code.h"

#include <cstddef>
#include <functional>

/* Runs all blocks to their ends; `random` gives the next number of the order's. */
void slc_grid_run(dim3 grid,
                  dim3 block,
                  size_t shared_bytes,
                  const std::function<void()> &body,
                  const std::function<unsigned(unsigned below)> &random);

/* "emulation: ..." to standard error, then abort(). */
[[noreturn]] void slc_emulation_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
