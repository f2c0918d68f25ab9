/* The baselines by their names, and what they need; see baselines.h. */
#include "gpu/baselines.h"

#include "gpu/baseline.h"

#include <string.h>

/* What a block has of shared memory without asking for more. */
static const uint32_t stash_bytes_max = 48 << 10;
/* What stands behind options that are 0. */
static const uint32_t stash_rows = 4, stash_coarsening = 16, stash_copies = 8;

static const char *const names[] = {"blco-registers", "blco-stash", "blco",
                                    "amped",          "genten-a",   "genten-b",
                                    "genten-c",       "fiber-rows", "fiber-elements"};

const char *slc_gpu_kernel_name(enum slc_gpu_kernel kernel)
{
    return static_cast<unsigned>(kernel) < SLC_GPU_KERNELS ? names[kernel] : "?";
}

enum slc_gpu_kernel slc_gpu_kernel_parse(const char *name)
{
    unsigned k = 0;

    while (k < SLC_GPU_KERNELS && strcmp(name, names[k]) != 0) {
        k++;
    }
    return static_cast<enum slc_gpu_kernel>(k);
}

/* The options with what stands behind 0. */
static struct slc_gpu_baseline_options filled(const struct slc_gpu_baseline_options *options,
                                              enum slc_gpu_kernel kernel,
                                              const struct slc_gpu_mttkrp *job)
{
    const uint32_t sum_bytes = sizeof(double);
    const uint32_t row_bytes = job->rank * sum_bytes + SLC_WARP * sizeof(uint32_t);
    const uint32_t tile_bytes = SLC_WARP * (sum_bytes + job->order * sizeof(uint32_t));
    const uint32_t rows_max = (stash_bytes_max - tile_bytes) / row_bytes;
    struct slc_gpu_baseline_options all = *options;

    if (all.coarsening == 0) {
        all.coarsening = kernel == SLC_GPU_BLCO_STASH ? stash_coarsening : 1;
    }
    all.stash_rows = all.stash_rows > 0 ? all.stash_rows : stash_rows;
    /* A row of the largest rank takes 32 KiB: there is room for one. */
    all.stash_rows = all.stash_rows < rows_max ? all.stash_rows : rows_max;
    all.copies = all.copies > 0 ? all.copies : stash_copies;
    all.index_bits = all.index_bits > 0 ? all.index_bits : 64;
    return all;
}

/* Which of BLCO's two. */
static enum slc_gpu_kernel resolved(enum slc_gpu_kernel kernel,
                                    const struct slc_gpu_mttkrp *job,
                                    const struct slc_gpu_machine *machine)
{
    if (kernel != SLC_GPU_BLCO) {
        return kernel;
    }
    return job->output.rows <= machine->multiprocessors ? SLC_GPU_BLCO_STASH
                                                        : SLC_GPU_BLCO_REGISTERS;
}

/* All copies of an output. */
static uint64_t copies_bytes(const struct slc_gpu_mttkrp *job, uint32_t copies)
{
    return job->output.rows * job->output.pitch * copies * sizeof(double);
}

/* Room for the copies of this job's output, where there is less. */
static cudaError_t make_room(struct slc_gpu_forms *forms, uint64_t bytes)
{
    cudaError_t error;

    if (forms->copies_bytes >= bytes) {
        return cudaSuccess;
    }
    (void)cudaFree(forms->copies);
    forms->copies = nullptr;
    forms->copies_bytes = 0;
    error = cudaMalloc(&forms->copies, bytes);
    forms->copies_bytes = error == cudaSuccess ? bytes : 0;
    return error;
}

cudaError_t slc_gpu_forms_prepare(struct slc_gpu_forms *forms,
                                  enum slc_gpu_kernel kernel,
                                  const struct slc_gpu_mttkrp *job,
                                  const uint64_t *dims,
                                  const struct slc_gpu_baseline_options *options,
                                  const struct slc_gpu_machine *machine,
                                  cudaStream_t stream)
{
    const enum slc_gpu_kernel chosen = resolved(kernel, job, machine);
    const struct slc_gpu_baseline_options all = filled(options, chosen, job);
    cudaError_t error = cudaSuccess;

    switch (chosen) {
    case SLC_GPU_BLCO_STASH:
    case SLC_GPU_BLCO_REGISTERS:
        if (chosen == SLC_GPU_BLCO_STASH) {
            error = make_room(forms, copies_bytes(job, all.copies));
        }
        if (error == cudaSuccess && forms->blco.blocks == nullptr) {
            error = slc_gpu_blco_create(&forms->blco, forms->coo, dims, all.index_bits, stream);
            if (error != cudaSuccess) {
                slc_gpu_blco_destroy(&forms->blco);
            }
        }
        return error;
    case SLC_GPU_GENTEN_PERMUTED:
        if (forms->coo->permutation[job->mode] == nullptr) {
            error = slc_gpu_coo_permute(forms->coo, job->mode, dims[job->mode], stream);
        }
        return error;
    case SLC_GPU_FIBER_ROWS:
    case SLC_GPU_FIBER_ELEMENTS:
        if (forms->fibers.found != nullptr) {
            return cudaSuccess;
        }
        error = slc_gpu_fibers_reserve(&forms->fibers, forms->coo->order, forms->coo->nnz);
        if (error == cudaSuccess) {
            error = slc_gpu_fibers_find(&forms->fibers, forms->coo, options->fiber_mode, stream);
        }
        if (error != cudaSuccess) {
            slc_gpu_fibers_destroy(&forms->fibers);
        }
        return error;
    default:
        return cudaSuccess;
    }
}

void slc_gpu_forms_destroy(struct slc_gpu_forms *forms)
{
    slc_gpu_blco_destroy(&forms->blco);
    slc_gpu_fibers_destroy(&forms->fibers);
    (void)cudaFree(forms->copies);
    forms->copies = nullptr;
    forms->copies_bytes = 0;
}

/* Whether prepare has made what the kernel takes. */
static bool is_prepared(const struct slc_gpu_forms *forms,
                        enum slc_gpu_kernel kernel,
                        const struct slc_gpu_mttkrp *job,
                        const struct slc_gpu_baseline_options *options)
{
    switch (kernel) {
    case SLC_GPU_BLCO_REGISTERS:
        return forms->blco.blocks != nullptr;
    case SLC_GPU_BLCO_STASH:
        return forms->blco.blocks != nullptr &&
               forms->copies_bytes >= copies_bytes(job, options->copies);
    case SLC_GPU_GENTEN_PERMUTED:
        return forms->coo->permutation[job->mode] != nullptr;
    case SLC_GPU_FIBER_ROWS:
    case SLC_GPU_FIBER_ELEMENTS:
        return forms->fibers.found != nullptr;
    default:
        return true;
    }
}

cudaError_t slc_gpu_baseline_run(enum slc_gpu_kernel kernel,
                                 const struct slc_gpu_forms *forms,
                                 const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_baseline_options *options,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream)
{
    const enum slc_gpu_kernel chosen = resolved(kernel, job, machine);
    const struct slc_gpu_baseline_options all = filled(options, chosen, job);

    if (forms->coo->order != job->order || !is_prepared(forms, chosen, job, &all)) {
        return cudaErrorInvalidValue;
    }
    if (forms->coo->nnz == 0) {
        return cudaSuccess;
    }
    switch (chosen) {
    case SLC_GPU_BLCO_REGISTERS:
        return slc_baseline_blco_registers(forms, job, &all, stream);
    case SLC_GPU_BLCO_STASH:
        return slc_baseline_blco_stash(forms, job, &all, stream);
    case SLC_GPU_AMPED:
        return slc_baseline_amped(forms->coo, job, machine, stream);
    case SLC_GPU_GENTEN_EACH:
        return slc_baseline_genten_each(forms->coo, job, stream);
    case SLC_GPU_GENTEN_TILES:
        return slc_baseline_genten_tiles(forms->coo, job, stream);
    case SLC_GPU_GENTEN_PERMUTED:
        return slc_baseline_genten_permuted(forms->coo, job, stream);
    case SLC_GPU_FIBER_ROWS:
        return slc_baseline_fiber_rows(&forms->fibers, job, stream);
    case SLC_GPU_FIBER_ELEMENTS:
        return slc_baseline_fiber_elements(&forms->fibers, job, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
