/* Implements the CPU as a backend: the table of base/backend.h, and the memory of a backend. */
#include "cpu/cpu.h"
#include "cpu/mttkrp/mttkrp.h"
#include "cpu/replica/replica.h"

#include <string.h>

static void choose_conflict(const struct slc_mttkrp_job *job,
                            uint64_t output_rows,
                            struct slc_conflict_choice *choice)
{
    const enum slc_value_type type = job->output != NULL ? job->output->type : SLC_F64;

    slc_mttkrp_choose(job, type, output_rows, choice);
}

static bool trial_result(const struct slc_backend *backend, struct slc_conflict_choice *choice)
{
    const struct slc_cpu_backend *cpu = (const struct slc_cpu_backend *)(const void *)backend;

    return slc_trial_result(&cpu->trial, choice);
}

/* Copies rows from a matrix, which is in host memory. */
static enum slc_status rows_read(struct slc_backend *backend,
                                 const struct slc_matrix *matrix,
                                 uint64_t first,
                                 uint64_t count,
                                 void *to,
                                 struct slc_error *err)
{
    const uint64_t stride = slc_matrix_row_bytes(matrix);

    (void)backend;
    (void)err;
    memcpy(to, (const unsigned char *)matrix->buffer.data + first * stride, count * stride);
    return SLC_OK;
}

static enum slc_status rows_write(struct slc_backend *backend,
                                  struct slc_matrix *matrix,
                                  uint64_t first,
                                  uint64_t count,
                                  const void *from,
                                  struct slc_error *err)
{
    const uint64_t stride = slc_matrix_row_bytes(matrix);

    (void)backend;
    (void)err;
    memcpy((unsigned char *)matrix->buffer.data + first * stride, from, count * stride);
    return SLC_OK;
}

static void destroy_backend(struct slc_backend *backend)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    if (cpu == NULL) {
        return;
    }
    for (unsigned i = 0; i < SLC_LOCK_STRIPES; i++) {
        (void)pthread_mutex_destroy(&cpu->locks[i]);
    }
    (void)pthread_mutex_destroy(&cpu->order_mutex);
    (void)pthread_cond_destroy(&cpu->order_changed);
    slc_trial_destroy(&cpu->trial);
    slc_buffer_destroy(&cpu->scratch);
    slc_replica_drop(cpu->replica);
    struct slc_buffer own = cpu->own;
    slc_buffer_destroy(&own);
}

static const struct slc_backend_ops cpu_ops = {
    .name = "cpu",
    .mttkrp_scratch_bytes = slc_mttkrp_scratch_bytes,
    .mttkrp_choose = choose_conflict,
    .mttkrp_begin = slc_mttkrp_begin,
    .mttkrp_tile = slc_mttkrp_tile,
    .mttkrp_rows = slc_mttkrp_rows,
    .mttkrp_state = slc_mttkrp_state,
    .mttkrp_resume = slc_mttkrp_resume,
    .mttkrp_abort = slc_mttkrp_abort,
    .mttkrp_split_take = slc_split_rows_take,
    .mttkrp_split_add = slc_split_rows_add,
    .mttkrp_end = slc_mttkrp_end,
    .mttkrp_tried = trial_result,
    .replica_bytes = slc_replica_bytes,
    .replica_begin = slc_backend_replica_begin,
    .replica_tile = slc_backend_replica_tile,
    .replica_end = slc_backend_replica_end,
    .replica_drop = slc_backend_replica_drop,
    .replica_form = slc_backend_replica_form,
    .mttkrp_replica = slc_backend_mttkrp_replica,
    .rows_read = rows_read,
    .rows_write = rows_write,
    .destroy = destroy_backend,
};

const struct slc_backend_ops *slc_cpu_backend_ops(void)
{
    return &cpu_ops;
}

/* A backend and the structs that it points to. */
struct memory {
    /* must be the first member, because the engine has a pointer to it */
    struct slc_cpu_backend cpu;
    struct slc_replica replica;
};

enum slc_status slc_cpu_backend_create(struct slc_backend **backend, struct slc_error *err)
{
    struct memory *memory;
    struct slc_buffer own;
    /* Maps pages instead of calling malloc, so that the workers' states and the row of ones are
     * aligned. */

    SLC_TRY(slc_buffer_create(&own, sizeof *memory, SLC_PAGES_SMALL, err));
    memory = own.data;
    struct slc_cpu_backend *cpu = &memory->cpu;
    cpu->replica = &memory->replica;
    cpu->own = own;
    cpu->backend.ops = &cpu_ops;
    for (unsigned i = 0; i < SLC_LOCK_STRIPES; i++) {
        (void)pthread_mutex_init(&cpu->locks[i], NULL);
    }
    slc_trial_init(&cpu->trial);
    (void)pthread_mutex_init(&cpu->order_mutex, NULL);
    (void)pthread_cond_init(&cpu->order_changed, NULL);
    *backend = &cpu->backend;
    return SLC_OK;
}
