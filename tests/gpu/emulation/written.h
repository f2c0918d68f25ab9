/* Device memory, and which of its bytes were written since it was allocated. A kernel or a copy
 * that reads other bytes ends the program, as initcheck of compute-sanitizer reports them on a
 * device.
 *
 * Only builds without a sanitizer track the bytes: there, kernels are compiled with
 * -fsanitize=thread, and written.cpp has the functions that the compiler then calls for each
 * access, instead of ThreadSanitizer's. In other builds nothing is tracked. */
#ifndef SLC_EMULATION_WRITTEN_H
#define SLC_EMULATION_WRITTEN_H

#include <cstddef>

/* Returns memory aligned to 256 bytes, or NULL. Ownership: release with slc_written_release and the
 * same number of bytes. */
unsigned char *slc_written_allocate(size_t bytes);
void slc_written_release(unsigned char *memory, size_t bytes);

/* A copy or fill writes, or reads, the bytes. Memory of the host is ignored. The first function is
 * also for modules that emulate libraries (tests/unit/gpu/cusparse_stand_in.c). */
extern "C" __attribute__((visibility("default"))) void slc_written_mark(const void *memory,
                                                                        size_t bytes);
void slc_written_check(const void *memory, size_t bytes);

#endif
