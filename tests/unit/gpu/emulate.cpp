/* Controls the emulated device for tests in C. */
#include "emulate.h"

#include "cuda_runtime.h"

void emulate(unsigned seed)
{
    const struct slc_emulation emulation = {1, (size_t)1 << 28, (size_t)160 << 10, 3, seed};

    slc_emulation_set(&emulation);
}

void emulate_end(void)
{
    slc_emulation_reset();
}

void emulate_refuse(unsigned long long k)
{
    slc_emulation_refuse(k);
}

unsigned long long emulate_refusable(void)
{
    return slc_emulation_refusable();
}
