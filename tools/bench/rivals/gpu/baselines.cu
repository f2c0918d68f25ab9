/* The baselines by their names, and their launches; see baselines.h. */
#include "tools/bench/rivals/gpu/baselines_impl.h"

#include <string.h>

/* Shared memory of a block without cudaFuncSetAttribute. */
static const uint32_t shared_bytes_usual = 48 << 10;

static const char *const names[] = {
    "blco-registers",  "blco-stash",   "blco",          "blco-queues", "blco-code-registers",
    "blco-code-stash", "blco-code",    "amped",         "genten-a",    "genten-b",
    "genten-c",        "atomic-fiber", "atomic-nonzero"};

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

/* ---- what the papers say */

struct slc_gpu_genten_blocking slc_gpu_genten_blocking(enum slc_gpu_kernel kernel, uint32_t rank)
{
    static const struct {
        uint32_t rank_first;
        struct slc_gpu_genten_blocking blocking;
    } table4[] = {{1, {1, 1}},    {2, {2, 2}},    {3, {2, 4}},    {4, {4, 4}},   {5, {4, 8}},
                  {8, {8, 8}},    {9, {8, 16}},   {17, {8, 24}},  {25, {8, 32}}, {48, {16, 48}},
                  {49, {16, 64}}, {96, {32, 96}}, {97, {32, 128}}};
    struct slc_gpu_genten_blocking blocking = {1, 1};

    if (kernel == SLC_GPU_GENTEN_EACH) {
        while (blocking.columns < rank && blocking.columns < 32) {
            blocking.columns *= 2;
        }
        blocking.vector = blocking.columns < 16 ? blocking.columns : 16;
        return blocking;
    }
    for (size_t k = 0; k < sizeof table4 / sizeof table4[0] && table4[k].rank_first <= rank; k++) {
        blocking = table4[k].blocking;
    }
    return blocking;
}

uint32_t slc_gpu_clusters(const struct slc_gpu_machine *machine)
{
    /* Multiprocessors of a complete cluster, from an architecture on: GA100, GA102, AD102, GH100,
     * GB100, GB202. */
    static const struct {
        unsigned architecture, multiprocessors;
    } chips[] = {{80, 16}, {86, 12}, {89, 12}, {90, 18}, {100, 20}, {120, 16}};
    unsigned each = chips[0].multiprocessors;

    for (size_t k = 0; k < sizeof chips / sizeof chips[0]; k++) {
        each = chips[k].architecture <= machine->architecture ? chips[k].multiprocessors : each;
    }
    return machine->multiprocessors > each ? (machine->multiprocessors + each - 1) / each : 1;
}

enum slc_gpu_kernel slc_gpu_baseline_chosen(enum slc_gpu_kernel kernel,
                                            const struct slc_gpu_mttkrp *job,
                                            const struct slc_gpu_machine *machine)
{
    /* BLCO, section 5.3. */
    const bool stash = job->output.rows < machine->multiprocessors;

    switch (kernel) {
    case SLC_GPU_BLCO:
    case SLC_GPU_BLCO_QUEUES:
        return stash ? SLC_GPU_BLCO_STASH : SLC_GPU_BLCO_REGISTERS;
    case SLC_GPU_BLCO_CODE:
        return stash ? SLC_GPU_BLCO_CODE_STASH : SLC_GPU_BLCO_CODE_REGISTERS;
    default:
        return kernel;
    }
}

/* ---- options */

static bool is_code(enum slc_gpu_kernel chosen)
{
    return chosen == SLC_GPU_BLCO_CODE_REGISTERS || chosen == SLC_GPU_BLCO_CODE_STASH;
}

bool slc_baseline_has_stash(enum slc_gpu_kernel chosen)
{
    return chosen == SLC_GPU_BLCO_STASH || chosen == SLC_GPU_BLCO_CODE_STASH;
}

static uint32_t coarsening_of(const struct slc_gpu_lists_options *options,
                              enum slc_gpu_kernel chosen)
{
    return options->coarsening > 0 ? options->coarsening : slc_baseline_has_stash(chosen) ? 2 : 1;
}

static uint32_t work_group_of(const struct slc_gpu_lists_options *options,
                              enum slc_gpu_kernel chosen)
{
    return is_code(chosen) ? +SLC_WARP : options->work_group > 0 ? options->work_group : 256;
}

uint32_t slc_baseline_group_nnz(const struct slc_gpu_lists_options *options,
                                enum slc_gpu_kernel chosen)
{
    return work_group_of(options, chosen) * coarsening_of(options, chosen);
}

/* Rows of a stash: as chosen, but no more than its shared memory holds. */
static uint32_t stash_rows_of(const struct slc_gpu_lists_options *all,
                              bool code,
                              const struct slc_gpu_mttkrp *job,
                              const struct slc_gpu_machine *machine)
{
    const uint32_t tags = code ? +SLC_WARP : 1;
    const uint32_t row_bytes = job->rank * sizeof(double) + tags * sizeof(uint32_t);
    const size_t tile_bytes = slc_baseline_blco_shared_bytes(job->order, all->work_group);
    const uint32_t half = machine->shared_bytes / 2;
    const uint32_t shared = code || half < shared_bytes_usual ? shared_bytes_usual : half;
    const uint64_t rows_max = (shared - tile_bytes) / row_bytes;
    uint64_t rows = all->stash_rows > 0 ? all->stash_rows : code ? 4 : job->output.rows;

    rows = rows < rows_max ? rows : rows_max;
    return rows > 0 ? static_cast<uint32_t>(rows) : 1;
}

struct slc_gpu_lists_options slc_baseline_options_of(const struct slc_gpu_lists_options *options,
                                                     enum slc_gpu_kernel chosen,
                                                     const struct slc_gpu_mttkrp *job,
                                                     const struct slc_gpu_machine *machine)
{
    const bool code = is_code(chosen);
    struct slc_gpu_lists_options all = *options;

    all.coarsening = coarsening_of(options, chosen);
    all.work_group = work_group_of(options, chosen);
    all.copies = all.copies > 0 ? all.copies : slc_gpu_clusters(machine);
    all.index_bits = all.index_bits > 0 ? all.index_bits : 64;
    all.queues = all.queues > 0 ? all.queues : +SLC_BLCO_QUEUES_MAX;
    all.block_nnz = all.block_nnz > 0 ? all.block_nnz : +SLC_BLCO_BLOCK_NNZ;
    all.partition_rows = all.partition_rows > 0 ? all.partition_rows : 1;
    if (slc_baseline_has_stash(chosen)) {
        all.stash_rows = stash_rows_of(&all, code, job, machine);
    }
    return all;
}

/* ---- launches */

struct slc_baseline_copies slc_baseline_copies_of(const struct slc_gpu_forms *forms,
                                                  const struct slc_gpu_mttkrp *job,
                                                  const struct slc_gpu_lists_options *all)
{
    return {forms->copies, all->copies, job->output.rows * job->output.pitch};
}

uint64_t slc_baseline_copies_bytes(const struct slc_baseline_copies *copies)
{
    return copies->count * copies->elements * sizeof(double);
}

/* A run of BLCO. */
struct blco_run {
    enum slc_gpu_kernel chosen;
    const struct slc_gpu_mttkrp *job;
    const struct slc_gpu_lists_options *all;
    struct slc_baseline_copies copies;
};

static cudaError_t
launch_blco(const void *context, const struct slc_gpu_blco_part *part, cudaStream_t stream)
{
    const struct blco_run *run = static_cast<const struct blco_run *>(context);

    switch (run->chosen) {
    case SLC_GPU_BLCO_STASH:
        return slc_baseline_blco_stash(part, run->job, &run->copies, run->all, stream);
    case SLC_GPU_BLCO_CODE_STASH:
        return slc_baseline_blco_code_stash(part, run->job, &run->copies, run->all, stream);
    default:
        return slc_baseline_blco_registers(part, run->job, nullptr, run->all, stream);
    }
}

static cudaError_t run_blco(const struct slc_gpu_forms *forms,
                            const struct blco_run *run,
                            bool queues,
                            cudaStream_t stream)
{
    const struct slc_gpu_blco *blco = queues ? &forms->queues.blco : &forms->blco;
    const struct slc_gpu_blco_map *map =
        slc_gpu_blco_find_map(blco, run->all->work_group * run->all->coarsening);
    const bool copies = slc_baseline_has_stash(run->chosen);
    const uint64_t bytes = slc_baseline_copies_bytes(&run->copies);
    cudaError_t error = cudaSuccess;

    if (blco->blocks == nullptr || map == nullptr || (copies && forms->copies_bytes < bytes)) {
        return cudaErrorInvalidValue;
    }
    if (blco->nnz == 0) {
        return cudaSuccess;
    }
    if (copies) {
        error = cudaMemsetAsync(forms->copies, 0, bytes, stream);
    }
    if (error == cudaSuccess && queues) {
        error = slc_gpu_blco_queues_run(&forms->queues, map, launch_blco, run, stream);
    } else if (error == cudaSuccess) {
        const struct slc_gpu_blco_part part = slc_gpu_blco_whole(blco, map);

        error = launch_blco(run, &part, stream);
    }
    if (error == cudaSuccess && copies) {
        error = slc_baseline_blco_merge(run->job, &run->copies, stream);
    }
    return error;
}

cudaError_t slc_gpu_baseline_run(enum slc_gpu_kernel kernel,
                                 const struct slc_gpu_forms *forms,
                                 const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_lists_options *options,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream)
{
    const enum slc_gpu_kernel chosen = slc_gpu_baseline_chosen(kernel, job, machine);
    const struct slc_gpu_lists_options all = slc_baseline_options_of(options, chosen, job, machine);
    const struct blco_run run = {chosen, job, &all, slc_baseline_copies_of(forms, job, &all)};

    if (forms->list.order != job->order || !slc_baseline_is_prepared(forms, kernel, job->mode)) {
        return cudaErrorInvalidValue;
    }
    if (forms->list.nnz == 0) {
        return cudaSuccess;
    }
    switch (chosen) {
    case SLC_GPU_BLCO_REGISTERS:
    case SLC_GPU_BLCO_STASH:
    case SLC_GPU_BLCO_CODE_REGISTERS:
    case SLC_GPU_BLCO_CODE_STASH:
        return run_blco(forms, &run, kernel == SLC_GPU_BLCO_QUEUES, stream);
    case SLC_GPU_AMPED:
        return slc_baseline_amped(&forms->partitioned, job, machine, stream);
    case SLC_GPU_GENTEN_EACH:
        return slc_baseline_genten_each(&forms->coo, job, stream);
    case SLC_GPU_GENTEN_TILES:
        return slc_baseline_genten_tiles(&forms->coo, job, stream);
    case SLC_GPU_GENTEN_PERMUTED:
        return slc_baseline_genten_permuted(&forms->coo, job, stream);
    case SLC_GPU_ATOMIC_FIBER:
        return slc_baseline_atomic_fiber(&forms->fibers, job, stream);
    case SLC_GPU_ATOMIC_NONZERO:
        return slc_baseline_atomic_nonzero(&forms->fibers, job, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
