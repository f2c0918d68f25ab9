/* Finds baselines by name, chooses their options, builds the forms of a tensor that they need, and
 * launches them. */
#include "tools/bench/rivals/gpu/baseline.h"

#include <string.h>

extern "C" {
#include "base/error/clock.h"
}

/* Bytes of shared memory that a thread block may use without cudaFuncSetAttribute. */
static const uint32_t shared_bytes_usual = 48 << 10;

static const char *const names[] = {
    "blco-registers",  "blco-stash",    "blco",      "blco-queues",  "blco-code-registers",
    "blco-code-stash", "blco-code",     "amped",     "genten-a",     "genten-b",
    "genten-c",        "xplat-element", "xplat-row", "atomic-fiber", "atomic-nonzero"};

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

/* ---- rules of the papers */

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
    /* Multiprocessors per complete cluster of GA100, GA102, AD102, GH100, GB100 and GB202. An
     * element applies to all architectures from its own until the next element. */
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
    /* True if BLCO uses the stash (section 5.3). */
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

/* Returns true if a kernel has a stash and so adds to copies of the output. */
static bool has_stash(enum slc_gpu_kernel chosen)
{
    return chosen == SLC_GPU_BLCO_STASH || chosen == SLC_GPU_BLCO_CODE_STASH;
}

static uint32_t coarsening_of(const struct slc_gpu_lists_options *options,
                              enum slc_gpu_kernel chosen)
{
    return options->coarsening > 0 ? options->coarsening : has_stash(chosen) ? 2 : 1;
}

static uint32_t work_group_of(const struct slc_gpu_lists_options *options,
                              enum slc_gpu_kernel chosen)
{
    return is_code(chosen) ? +SLC_WARP : options->work_group > 0 ? options->work_group : 256;
}

/* Returns the number of nonzeros per work-group of one of BLCO's kernels. */
static uint32_t group_nnz(const struct slc_gpu_lists_options *options, enum slc_gpu_kernel chosen)
{
    return work_group_of(options, chosen) * coarsening_of(options, chosen);
}

/* Returns the number of rows of a stash: the requested number, but at most the number that fits in
 * the shared memory that a stash may use. */
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

/* Returns the options. Replaces members that are 0 with the defaults of the chosen kernel. */
static struct slc_gpu_lists_options options_of(const struct slc_gpu_forms *forms,
                                               enum slc_gpu_kernel chosen,
                                               const struct slc_gpu_mttkrp *job)
{
    const struct slc_gpu_lists_options *options = &forms->options;
    const bool code = is_code(chosen);
    struct slc_gpu_lists_options all = *options;

    all.coarsening = coarsening_of(options, chosen);
    all.work_group = work_group_of(options, chosen);
    all.copies = all.copies > 0 ? all.copies : slc_gpu_clusters(forms->machine);
    all.index_bits = all.index_bits > 0 ? all.index_bits : 64;
    all.queues = all.queues > 0 ? all.queues : +SLC_BLCO_QUEUES_MAX;
    all.block_nnz = all.block_nnz > 0 ? all.block_nnz : +SLC_BLCO_BLOCK_NNZ;
    all.partition_rows = all.partition_rows > 0 ? all.partition_rows : 1;
    if (has_stash(chosen)) {
        all.stash_rows = stash_rows_of(&all, code, job, forms->machine);
    }
    return all;
}

static struct slc_baseline_copies copies_of(const struct slc_gpu_forms *forms,
                                            const struct slc_gpu_mttkrp *job,
                                            const struct slc_gpu_lists_options *all)
{
    return {forms->copies, all->copies, job->output.rows * job->output.pitch};
}

static uint64_t copies_bytes_of(const struct slc_baseline_copies *copies)
{
    return copies->count * copies->elements * sizeof(double);
}

/* ---- building forms */

/* Builds a form with `make` unless it exists, and measures the time. After an error, `drop`
 * releases the incomplete form. */
template <typename Make, typename Drop>
static cudaError_t make_form(bool there, double *seconds, Make make, Drop drop)
{
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    if (there) {
        return cudaSuccess;
    }
    error = make();
    if (error != cudaSuccess) {
        drop();
    }
    *seconds = slc_seconds_since(start_ns);
    return error;
}

static cudaError_t make_list(struct slc_gpu_forms *forms)
{
    const struct slc_gpu_host_list *list = &forms->list;
    const auto make = [&] {
        SLC_CUDA_TRY(slc_gpu_coo_create(&forms->coo, list->order, list->nnz, list->type));
        return slc_gpu_coo_write(&forms->coo, list->coords, list->values, forms->stream);
    };

    return make_form(forms->coo.values != nullptr, &forms->coo_seconds, make,
                     [&] { slc_gpu_coo_destroy(&forms->coo); });
}

static cudaError_t make_permutation(struct slc_gpu_forms *forms, unsigned mode)
{
    const auto make = [&] {
        return slc_gpu_coo_permute(&forms->coo, forms->list.coords, mode, forms->dims[mode],
                                   forms->stream);
    };

    return make_form(forms->coo.permutation[mode] != nullptr, &forms->permutation_seconds[mode],
                     make, [] {});
}

/* Builds AMPED's copy of the tensor for one mode, replacing the copy for another mode. AMPED itself
 * keeps the copies for all modes in host memory. */
static cudaError_t
make_partitions(struct slc_gpu_forms *forms, unsigned mode, const struct slc_gpu_lists_options *all)
{
    const auto drop = [&] { slc_gpu_coo_destroy(&forms->partitioned); };
    const auto make = [&] {
        drop();
        forms->partitioned_mode = mode;
        return slc_gpu_coo_create_sorted(&forms->partitioned, &forms->list, mode, forms->dims[mode],
                                         all->partition_rows, forms->stream);
    };

    return make_form(forms->partitioned.values != nullptr && forms->partitioned_mode == mode,
                     &forms->partitioned_seconds, make, drop);
}

static cudaError_t make_blco(struct slc_gpu_forms *forms, const struct slc_gpu_lists_options *all)
{
    const auto make = [&] {
        SLC_CUDA_TRY(slc_gpu_blco_encode(&forms->blco, &forms->list, forms->dims, all->index_bits,
                                         all->block_nnz));
        return slc_gpu_blco_upload(&forms->blco, forms->stream);
    };

    return make_form(forms->blco.values != nullptr, &forms->blco_seconds, make,
                     [&] { slc_gpu_blco_destroy(&forms->blco); });
}

static cudaError_t make_queues(struct slc_gpu_forms *forms, const struct slc_gpu_lists_options *all)
{
    struct slc_gpu_blco_queues *queues = &forms->queues;
    const auto make = [&] {
        SLC_CUDA_TRY(
            slc_gpu_blco_queue_nnz(&forms->list, all->queues, all->block_nnz, &queues->nnz_each));
        SLC_CUDA_TRY(slc_gpu_blco_encode(&queues->blco, &forms->list, forms->dims, all->index_bits,
                                         queues->nnz_each));
        return slc_gpu_blco_queues_create(queues, all->queues, forms->stream);
    };

    return make_form(queues->count != 0, &forms->queues_seconds, make,
                     [&] { slc_gpu_blco_queues_destroy(queues); });
}

/* Returns true if the slices of a mode exist. */
static bool has_slices(const struct slc_gpu_forms *forms, unsigned mode)
{
    return forms->csf.memory != nullptr && forms->csf.arrays.slice_mode == mode;
}

static cudaError_t make_fibers(struct slc_gpu_forms *forms, unsigned mode)
{
    const auto make = [&] {
        SLC_CUDA_TRY(slc_gpu_fibers_reserve(&forms->fibers, forms->coo.order, forms->coo.nnz));
        return slc_gpu_fibers_find(&forms->fibers, &forms->coo, mode, forms->stream);
    };

    return make_form(forms->fibers.found != nullptr, &forms->fibers_seconds, make,
                     [&] { slc_gpu_fibers_destroy(&forms->fibers); });
}

/* Builds the slices of a mode, replacing those of another mode. */
static cudaError_t make_csf(struct slc_gpu_forms *forms, unsigned mode)
{
    const auto drop = [&] { slc_gpu_csf_destroy(&forms->csf); };
    const auto make = [&] {
        drop();
        return slc_gpu_csf_create(&forms->csf, &forms->list, forms->dims, mode, forms->stream);
    };

    return make_form(has_slices(forms, mode), &forms->csf_seconds, make, drop);
}

/* Reserves device memory for the copies of the output of a job. */
static cudaError_t reserve_copies(struct slc_gpu_forms *forms, uint64_t bytes)
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

/* ---- by kernel */

static bool is_blco(enum slc_gpu_kernel kernel)
{
    return kernel <= SLC_GPU_BLCO_CODE;
}

static bool has_fibers(enum slc_gpu_kernel kernel)
{
    return kernel == SLC_GPU_ATOMIC_FIBER || kernel == SLC_GPU_ATOMIC_NONZERO;
}

static bool is_xplat(enum slc_gpu_kernel kernel)
{
    return kernel == SLC_GPU_XPLAT_ELEMENT || kernel == SLC_GPU_XPLAT_ROW;
}

/* The two kernels between which `kernel` chooses by the mode. For a kernel without a choice, both
 * are the kernel itself. */
struct choices {
    enum slc_gpu_kernel kernel[2];
};

static struct choices choices_of(enum slc_gpu_kernel kernel)
{
    switch (kernel) {
    case SLC_GPU_BLCO:
    case SLC_GPU_BLCO_QUEUES:
        return {{SLC_GPU_BLCO_REGISTERS, SLC_GPU_BLCO_STASH}};
    case SLC_GPU_BLCO_CODE:
        return {{SLC_GPU_BLCO_CODE_REGISTERS, SLC_GPU_BLCO_CODE_STASH}};
    default:
        return {{kernel, kernel}};
    }
}

/* Builds BLCO's form with the maps of both kernels, so that no map is built during a later
 * measurement of a mode. */
static cudaError_t prepare_blco(struct slc_gpu_forms *forms,
                                enum slc_gpu_kernel kernel,
                                const struct slc_gpu_lists_options *all)
{
    const bool queues = kernel == SLC_GPU_BLCO_QUEUES;
    const struct choices choices = choices_of(kernel);
    struct slc_gpu_blco *blco = queues ? &forms->queues.blco : &forms->blco;
    const struct slc_gpu_blco_map *map;

    SLC_CUDA_TRY(queues ? make_queues(forms, all) : make_blco(forms, all));
    for (enum slc_gpu_kernel choice : choices.kernel) {
        SLC_CUDA_TRY(
            slc_gpu_blco_map(blco, group_nnz(&forms->options, choice), forms->stream, &map));
    }
    return cudaSuccess;
}

cudaError_t slc_gpu_forms_prepare(struct slc_gpu_forms *forms,
                                  enum slc_gpu_kernel kernel,
                                  const struct slc_gpu_mttkrp *job)
{
    const enum slc_gpu_kernel chosen = slc_gpu_baseline_chosen(kernel, job, forms->machine);
    const struct slc_gpu_lists_options all = options_of(forms, chosen, job);
    const struct slc_baseline_copies copies = copies_of(forms, job, &all);

    if (has_stash(chosen)) {
        SLC_CUDA_TRY(reserve_copies(forms, copies_bytes_of(&copies)));
    }
    if (is_blco(kernel)) {
        return prepare_blco(forms, kernel, &all);
    }
    if (kernel == SLC_GPU_AMPED) {
        return make_partitions(forms, job->mode, &all);
    }
    if (is_xplat(kernel)) {
        return make_csf(forms, job->mode);
    }
    SLC_CUDA_TRY(make_list(forms));
    if (kernel == SLC_GPU_GENTEN_PERMUTED) {
        return make_permutation(forms, job->mode);
    }
    return has_fibers(kernel) ? make_fibers(forms, all.fiber_mode) : cudaSuccess;
}

/* Returns true if the list, permutation, partitions, slices or fibers that a kernel needs exist. */
static bool
is_prepared(const struct slc_gpu_forms *forms, enum slc_gpu_kernel kernel, unsigned mode)
{
    if (is_blco(kernel)) {
        return true; /* run_blco checks the forms of BLCO */
    }
    if (kernel == SLC_GPU_AMPED) {
        return forms->partitioned.values != nullptr && forms->partitioned_mode == mode;
    }
    if (is_xplat(kernel)) {
        return has_slices(forms, mode);
    }
    return forms->coo.values != nullptr &&
           (kernel != SLC_GPU_GENTEN_PERMUTED || forms->coo.permutation[mode] != nullptr) &&
           (!has_fibers(kernel) || forms->fibers.found != nullptr);
}

/* ---- costs */

static struct slc_gpu_form_cost blco_cost(const struct slc_gpu_blco *blco,
                                          double seconds,
                                          const struct choices *choices,
                                          const struct slc_gpu_lists_options *options)
{
    double bytes = static_cast<double>(blco->block_count) * sizeof(struct slc_gpu_blco_block);

    for (unsigned k = 0; k < 2; k++) {
        const struct slc_gpu_blco_map *map =
            slc_gpu_blco_find_map(blco, group_nnz(options, choices->kernel[k]));
        const bool counts = map != nullptr && (k == 0 || choices->kernel[0] != choices->kernel[1]);

        seconds += counts ? map->seconds : 0;
        bytes += counts ? static_cast<double>(map->count) * sizeof(struct slc_gpu_blco_group) : 0;
    }
    return {seconds, bytes / static_cast<double>(blco->nnz > 0 ? blco->nnz : 1) +
                         static_cast<double>(sizeof(uint64_t) + slc_value_bytes(blco->type))};
}

static double fibers_bytes(const struct slc_gpu_fibers *fibers)
{
    /* A fiber has `begin` and `coords`; a nonzero has `index`, `fiber_of` and a value. */
    const double per_fiber = (1 + fibers->order) * sizeof(uint32_t);
    const double per_nonzero =
        static_cast<double>(2 * sizeof(uint32_t) + slc_value_bytes(fibers->type));

    return static_cast<double>(fibers->count) * per_fiber +
           static_cast<double>(fibers->nnz) * per_nonzero;
}

struct slc_gpu_form_cost
slc_gpu_forms_cost(const struct slc_gpu_forms *forms, enum slc_gpu_kernel kernel, unsigned mode)
{
    const struct slc_gpu_lists_options *options = &forms->options;
    const struct choices choices = choices_of(kernel);
    const double list_bytes = static_cast<double>(forms->list.order * sizeof(uint32_t) +
                                                  slc_value_bytes(forms->list.type));

    if (kernel == SLC_GPU_BLCO_QUEUES) {
        return blco_cost(&forms->queues.blco, forms->queues_seconds, &choices, options);
    }
    if (is_blco(kernel)) {
        return blco_cost(&forms->blco, forms->blco_seconds, &choices, options);
    }
    if (kernel == SLC_GPU_AMPED) {
        return {forms->partitioned_seconds, list_bytes};
    }
    if (kernel == SLC_GPU_GENTEN_PERMUTED) {
        return {forms->permutation_seconds[mode], list_bytes + sizeof(uint32_t)};
    }
    if (is_xplat(kernel)) {
        return {forms->csf_seconds,
                static_cast<double>(forms->csf.bytes) /
                    static_cast<double>(forms->list.nnz > 0 ? forms->list.nnz : 1)};
    }
    if (has_fibers(kernel)) {
        return {forms->coo_seconds + forms->fibers_seconds,
                fibers_bytes(&forms->fibers) /
                    static_cast<double>(forms->list.nnz > 0 ? forms->list.nnz : 1)};
    }
    return {forms->coo_seconds, list_bytes};
}

void slc_gpu_forms_destroy(struct slc_gpu_forms *forms)
{
    slc_gpu_blco_destroy(&forms->blco);
    slc_gpu_blco_queues_destroy(&forms->queues);
    slc_gpu_fibers_destroy(&forms->fibers);
    slc_gpu_csf_destroy(&forms->csf);
    slc_gpu_coo_destroy(&forms->partitioned);
    slc_gpu_coo_destroy(&forms->coo);
    (void)cudaFree(forms->copies);
    forms->copies = nullptr;
    forms->copies_bytes = 0;
}

/* ---- launches */

static cudaError_t
run_blco(const struct slc_gpu_forms *forms, const struct slc_baseline_blco_run *run, bool queues)
{
    const struct slc_gpu_blco *blco = queues ? &forms->queues.blco : &forms->blco;
    const struct slc_gpu_blco_map *map =
        slc_gpu_blco_find_map(blco, run->options->work_group * run->options->coarsening);
    const bool copies = has_stash(run->chosen);
    const uint64_t bytes = copies_bytes_of(&run->copies);

    if (blco->blocks == nullptr || map == nullptr || (copies && forms->copies_bytes < bytes)) {
        return cudaErrorInvalidValue;
    }
    if (blco->nnz == 0) {
        return cudaSuccess;
    }
    if (copies) {
        SLC_CUDA_TRY(cudaMemsetAsync(forms->copies, 0, bytes, forms->stream));
    }
    if (queues) {
        SLC_CUDA_TRY(
            slc_gpu_blco_queues_run(&forms->queues, map, slc_baseline_blco, run, forms->stream));
    } else {
        const struct slc_gpu_blco_part part = slc_gpu_blco_whole(blco, map);

        SLC_CUDA_TRY(slc_baseline_blco(run, &part, forms->stream));
    }
    return copies ? slc_baseline_blco_merge(run->job, &run->copies, forms->stream) : cudaSuccess;
}

cudaError_t slc_gpu_baseline_run(enum slc_gpu_kernel kernel,
                                 const struct slc_gpu_forms *forms,
                                 const struct slc_gpu_mttkrp *job)
{
    const enum slc_gpu_kernel chosen = slc_gpu_baseline_chosen(kernel, job, forms->machine);
    const struct slc_gpu_lists_options all = options_of(forms, chosen, job);
    const struct slc_baseline_blco_run run = {chosen, job, &all, copies_of(forms, job, &all)};

    if (forms->list.order != job->order || !is_prepared(forms, kernel, job->mode)) {
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
        return run_blco(forms, &run, kernel == SLC_GPU_BLCO_QUEUES);
    case SLC_GPU_AMPED:
        return slc_baseline_amped(&forms->partitioned, job, forms->machine, forms->stream);
    case SLC_GPU_GENTEN_EACH:
        return slc_baseline_genten_each(&forms->coo, job, forms->stream);
    case SLC_GPU_GENTEN_TILES:
        return slc_baseline_genten_tiles(&forms->coo, job, forms->stream);
    case SLC_GPU_GENTEN_PERMUTED:
        return slc_baseline_genten_permuted(&forms->coo, job, forms->stream);
    case SLC_GPU_XPLAT_ELEMENT:
    case SLC_GPU_XPLAT_ROW:
        return slc_gpu_xplat_mttkrp(&forms->csf, chosen == SLC_GPU_XPLAT_ELEMENT, job,
                                    forms->stream);
    case SLC_GPU_ATOMIC_FIBER:
        return slc_baseline_atomic_fiber(&forms->fibers, job, forms->stream);
    case SLC_GPU_ATOMIC_NONZERO:
        return slc_baseline_atomic_nonzero(&forms->fibers, job, forms->stream);
    default:
        return cudaErrorInvalidValue;
    }
}
