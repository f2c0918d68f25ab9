/* The forms of a tensor that baselines need; see baselines.h. */
#include "tools/bench/rivals/gpu/baselines_impl.h"

extern "C" {
#include "base/error/clock.h"
}

/* ---- making forms; a form that exists is kept */

static cudaError_t make_list(struct slc_gpu_forms *forms, cudaStream_t stream)
{
    const struct slc_gpu_host_list *list = &forms->list;
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    if (forms->coo.values != nullptr) {
        return cudaSuccess;
    }
    error = slc_gpu_coo_create(&forms->coo, list->order, list->nnz, list->type);
    if (error == cudaSuccess) {
        error = slc_gpu_coo_write(&forms->coo, list->coords, list->values, stream);
    }
    if (error != cudaSuccess) {
        slc_gpu_coo_destroy(&forms->coo);
        return error;
    }
    forms->coo_seconds = slc_seconds_since(start_ns);
    return cudaSuccess;
}

static cudaError_t make_permutation(struct slc_gpu_forms *forms, unsigned mode, cudaStream_t stream)
{
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    if (forms->coo.permutation[mode] != nullptr) {
        return cudaSuccess;
    }
    error = slc_gpu_coo_permute(&forms->coo, forms->list.coords, mode, forms->dims[mode], stream);
    forms->permutation_seconds[mode] = slc_seconds_since(start_ns);
    return error;
}

/* Only the copy for one mode is kept: AMPED has those of all modes in the host's memory. */
static cudaError_t make_partitions(struct slc_gpu_forms *forms,
                                   unsigned mode,
                                   const struct slc_gpu_lists_options *all,
                                   cudaStream_t stream)
{
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    if (forms->partitioned.values != nullptr && forms->partitioned_mode == mode) {
        return cudaSuccess;
    }
    slc_gpu_coo_destroy(&forms->partitioned);
    error = slc_gpu_coo_create_sorted(&forms->partitioned, &forms->list, mode, forms->dims[mode],
                                      all->partition_rows, stream);
    if (error != cudaSuccess) {
        slc_gpu_coo_destroy(&forms->partitioned);
        return error;
    }
    forms->partitioned_mode = mode;
    forms->partitioned_seconds = slc_seconds_since(start_ns);
    return cudaSuccess;
}

static cudaError_t
make_blco(struct slc_gpu_forms *forms, const struct slc_gpu_lists_options *all, cudaStream_t stream)
{
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    if (forms->blco.values != nullptr) {
        return cudaSuccess;
    }
    error = slc_gpu_blco_encode(&forms->blco, &forms->list, forms->dims, all->index_bits,
                                all->block_nnz);
    if (error == cudaSuccess) {
        error = slc_gpu_blco_upload(&forms->blco, stream);
    }
    if (error != cudaSuccess) {
        slc_gpu_blco_destroy(&forms->blco);
    }
    forms->blco_seconds = slc_seconds_since(start_ns);
    return error;
}

static cudaError_t make_queues(struct slc_gpu_forms *forms,
                               const struct slc_gpu_lists_options *all,
                               cudaStream_t stream)
{
    struct slc_gpu_blco_queues *queues = &forms->queues;
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    if (queues->count != 0) {
        return cudaSuccess;
    }
    error = slc_gpu_blco_queue_nnz(&forms->list, all->queues, all->block_nnz, &queues->nnz_each);
    if (error == cudaSuccess) {
        error = slc_gpu_blco_encode(&queues->blco, &forms->list, forms->dims, all->index_bits,
                                    queues->nnz_each);
    }
    if (error == cudaSuccess) {
        error = slc_gpu_blco_queues_create(queues, all->queues, stream);
    }
    if (error != cudaSuccess) {
        slc_gpu_blco_queues_destroy(queues);
    }
    forms->queues_seconds = slc_seconds_since(start_ns);
    return error;
}

/* Memory for the copies of this job's output. */
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

static cudaError_t make_fibers(struct slc_gpu_forms *forms, unsigned mode, cudaStream_t stream)
{
    const uint64_t start_ns = slc_clock_ns();
    cudaError_t error;

    if (forms->fibers.found != nullptr) {
        return cudaSuccess;
    }
    error = slc_gpu_fibers_reserve(&forms->fibers, forms->coo.order, forms->coo.nnz);
    if (error == cudaSuccess) {
        error = slc_gpu_fibers_find(&forms->fibers, &forms->coo, mode, stream);
    }
    if (error != cudaSuccess) {
        slc_gpu_fibers_destroy(&forms->fibers);
    }
    forms->fibers_seconds = slc_seconds_since(start_ns);
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

/* The kernels that `kernel` chooses from; itself twice if it chooses nothing. */
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

/* The form with the maps for both choices: maps are made with the form, not with the first mode
 * that needs one. */
static cudaError_t prepare_blco(struct slc_gpu_forms *forms,
                                enum slc_gpu_kernel kernel,
                                const struct slc_gpu_lists_options *options,
                                const struct slc_gpu_lists_options *all,
                                cudaStream_t stream)
{
    const bool queues = kernel == SLC_GPU_BLCO_QUEUES;
    struct slc_gpu_blco *blco = queues ? &forms->queues.blco : &forms->blco;
    cudaError_t error;

    error = queues ? make_queues(forms, all, stream) : make_blco(forms, all, stream);
    for (unsigned k = 0; k < 2 && error == cudaSuccess; k++) {
        const struct slc_gpu_blco_map *map;

        error = slc_gpu_blco_map(
            blco, slc_baseline_group_nnz(options, choices_of(kernel).kernel[k]), stream, &map);
    }
    return error;
}

cudaError_t slc_gpu_forms_prepare(struct slc_gpu_forms *forms,
                                  enum slc_gpu_kernel kernel,
                                  const struct slc_gpu_mttkrp *job,
                                  const struct slc_gpu_lists_options *options,
                                  const struct slc_gpu_machine *machine,
                                  cudaStream_t stream)
{
    const enum slc_gpu_kernel chosen = slc_gpu_baseline_chosen(kernel, job, machine);
    const struct slc_gpu_lists_options all = slc_baseline_options_of(options, chosen, job, machine);
    const struct slc_baseline_copies copies = slc_baseline_copies_of(forms, job, &all);
    cudaError_t error = cudaSuccess;

    if (slc_baseline_has_stash(chosen)) {
        error = reserve_copies(forms, slc_baseline_copies_bytes(&copies));
    }
    if (error == cudaSuccess && is_blco(kernel)) {
        return prepare_blco(forms, kernel, options, &all, stream);
    }
    if (error == cudaSuccess && kernel == SLC_GPU_AMPED) {
        return make_partitions(forms, job->mode, &all, stream);
    }
    if (error == cudaSuccess) {
        error = make_list(forms, stream);
    }
    if (error == cudaSuccess && kernel == SLC_GPU_GENTEN_PERMUTED) {
        error = make_permutation(forms, job->mode, stream);
    } else if (error == cudaSuccess && has_fibers(kernel)) {
        error = make_fibers(forms, all.fiber_mode, stream);
    }
    return error;
}

bool slc_baseline_is_prepared(const struct slc_gpu_forms *forms,
                              enum slc_gpu_kernel kernel,
                              unsigned mode)
{
    if (is_blco(kernel)) {
        return true; /* run_blco checks them */
    }
    if (kernel == SLC_GPU_AMPED) {
        return forms->partitioned.values != nullptr && forms->partitioned_mode == mode;
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
            slc_gpu_blco_find_map(blco, slc_baseline_group_nnz(options, choices->kernel[k]));
        const bool counts = map != nullptr && (k == 0 || choices->kernel[0] != choices->kernel[1]);

        seconds += counts ? map->seconds : 0;
        bytes += counts ? static_cast<double>(map->count) * sizeof(struct slc_gpu_blco_group) : 0;
    }
    return {seconds, bytes / static_cast<double>(blco->nnz > 0 ? blco->nnz : 1) +
                         static_cast<double>(sizeof(uint64_t) + slc_value_bytes(blco->type))};
}

static double fibers_bytes(const struct slc_gpu_fibers *fibers)
{
    /* begin and coords per fiber, index and fiber_of and the value per nonzero. */
    const double per_fiber = (1 + fibers->order) * sizeof(uint32_t);
    const double per_nonzero =
        static_cast<double>(2 * sizeof(uint32_t) + slc_value_bytes(fibers->type));

    return static_cast<double>(fibers->count) * per_fiber +
           static_cast<double>(fibers->nnz) * per_nonzero;
}

struct slc_gpu_form_cost slc_gpu_forms_cost(const struct slc_gpu_forms *forms,
                                            enum slc_gpu_kernel kernel,
                                            unsigned mode,
                                            const struct slc_gpu_lists_options *options)
{
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
    slc_gpu_coo_destroy(&forms->partitioned);
    slc_gpu_coo_destroy(&forms->coo);
    (void)cudaFree(forms->copies);
    forms->copies = nullptr;
    forms->copies_bytes = 0;
}
