/*
 * A device of base/device.h as gpu/ sees it, and what its parts ask of one another. Private to
 * gpu/.
 *
 * Order of work: `main` is the stream for everything but MTTKRP kernels: zeroing outputs, algebra,
 * copies of matrices. Batches run on the streams of slots, launches of resident blocks on a stream
 * of lower priority. Both wait for the event `begun`, which follows the zeroing; mttkrp_end makes
 * `main` wait for all of them. The host writes no memory of a slot before it has waited for the
 * slot's last batch.
 *
 * Every entry sets the device of the calling thread first. After an error that leaves work under
 * way, slc_gpu_settle waits for all of it, so that nobody's memory is read later.
 */
#ifndef SLC_GPU_STATE_H
#define SLC_GPU_STATE_H

#include "gpu/decode/transcode.h"
#include "gpu/mttkrp/mttkrp.h"

extern "C" {
#include "base/spans.h"
#include "gpu/memory/memory.h"
}

enum {
    /* Copies of a slot that are timed, and told apart by tickets, at a time. Enough to keep the
     * copy engine busy with blocks of some KiB. */
    SLC_GPU_COPIES = 16
};

static_assert(SLC_DEVICE_STREAMS * (SLC_GPU_COPIES + 1) + SLC_GPU_COPIES <= SLC_SPANS_PENDING,
              "copies and kernels of all slots, and launches of residents, may end in any order");

/* What is timed on a stream. */
struct slc_gpu_span {
    cudaEvent_t begin, end;
};

enum slc_gpu_slot_state {
    SLC_GPU_SLOT_FREE,
    SLC_GPU_SLOT_FILLING,
    SLC_GPU_SLOT_LAUNCHED /* its last batch may be under way */
};

struct slc_gpu_slot {
    enum slc_gpu_slot_state state;
    struct slc_gpu_slot_memory memory;
    cudaStream_t stream;
    struct slc_gpu_span computing; /* the batch's kernels */
    struct slc_gpu_span copies[SLC_GPU_COPIES];

    /* The batch, which is the last one where the slot is not filling. */
    uint64_t batch; /* its number, from 1 */
    uint64_t data_used, expanded_used;
    uint32_t tile_count;
    uint32_t copy_count, copies_timed; /* blocks that came; the first of them known to be there */
    uint64_t nnz;
    bool expands; /* some of what came is compressed */
    bool keeps;   /* some of what came stays */
};

/*
 * The memory for resident blocks, and the launches that compute from it. They have a stream of
 * their own, of lower priority than those of slots: blocks that are copied are computed as soon as
 * they are there, so that their slots are free again.
 */
struct slc_gpu_residents {
    uint64_t used_bytes;
    uint32_t tile_count, block_count;
    /* Some came by a batch that was never launched: what they need expanded is not there. */
    bool lost;

    cudaStream_t stream; /* NULL: there is no memory for resident blocks */
    uint32_t wanted_begin,
        wanted_end;           /* the wanted blocks are among these; equal: there are none */
    uint64_t table_used;      /* of memory.resident_chunk_begin, by launches under way */
    uint32_t launched, timed; /* launches of the job; the first of them known to be done */
    struct slc_gpu_span computing[SLC_GPU_COPIES]; /* launch l: at l modulo their number */
    uint64_t nnz[SLC_GPU_COPIES];
};

/* How long the device was at work, as unions of spans; the origin is `epoch`, in each job. */
struct slc_gpu_times {
    cudaEvent_t epoch; /* comes before all work of a job on the streams of slots and residents */
    struct slc_spans copy, compute, busy;
};

/* An MTTKRP between mttkrp_begin and mttkrp_end, and its output after that. */
struct slc_gpu_job {
    bool active;
    bool broken;       /* a call failed: some blocks are missing */
    bool has_output;   /* after mttkrp_end, until the next begin */
    bool sums_pending; /* the output is still to be made of exact sums */
    struct slc_gpu_mttkrp mttkrp;
    const struct slc_encoded_layout *layout;
    uint32_t chunk_runs;
    bool copies;       /* struct slc_device_job */
    uint64_t nnz_done; /* of batches that have ended */
};

/* Registered memory of the host. */
struct slc_gpu_pages {
    unsigned char *begin;
    uint64_t bytes;
    bool own; /* false: another device of this process had registered it before */
};

struct slc_gpu_product; /* gpu/product/product.h */

struct slc_gpu {
    struct slc_device device; /* first: what the engine has a pointer to */
    int ordinal;
    uint64_t cap_bytes; /* of the device's memory that may be used */
    char name[128];
    uint64_t total_bytes;
    struct slc_gpu_machine machine;

    struct slc_gpu_pages *pages;
    size_t pages_count, pages_room;

    bool is_open;
    struct slc_device_problem problem; /* its layouts are the device's copy alone */
    struct slc_gpu_memory memory;
    cudaStream_t main;
    cudaEvent_t begun;
    cudaEvent_t piece_done[2]; /* the last copy from or to each piece of registered memory */
    struct slc_gpu_slot slots[SLC_DEVICE_STREAMS];
    struct slc_gpu_slot *filling;
    uint64_t batches; /* begun so far */
    struct slc_gpu_residents residents;
    struct slc_gpu_times times;
    struct slc_gpu_mttkrp_variant variant;      /* of the next jobs: gpu/device/variants.h */
    struct slc_gpu_transcoded_tiles transcoded; /* the first resident tiles, if it asks for that */
    bool largest_known[SLC_MAX_ORDER];          /* memory.largest holds this factor's columns */
    uint64_t peers_met; /* bit p: the device with ordinal p may be read by this one */
    struct slc_gpu_job job;
    struct slc_gpu_product *product; /* NULL: it is not open for tiles */
    struct slc_device_stats stats;   /* but for what lanes have of their own */
};

static inline struct slc_gpu *slc_gpu_of(struct slc_device *device)
{
    return reinterpret_cast<struct slc_gpu *>(device);
}
static inline const struct slc_gpu *slc_gpu_of(const struct slc_device *device)
{
    return reinterpret_cast<const struct slc_gpu *>(device);
}

/* Makes the device that of the calling thread. SLC_ERR_USAGE unless it is open. */
enum slc_status slc_gpu_enter(const struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* The same, unless it is between mttkrp_begin and mttkrp_end. */
enum slc_status slc_gpu_enter_job(const struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Where a call of a job has failed: nothing stays under way, and the job cannot succeed. Returns
 * `status`. */
enum slc_status slc_gpu_leave_job(struct slc_gpu *gpu, enum slc_status status);

/* ---- open.cu */

enum slc_status slc_gpu_open(struct slc_device *device,
                             const struct slc_device_problem *problem,
                             struct slc_error *err);
void slc_gpu_close(struct slc_device *device);

/* ---- pages.cu */

enum slc_status slc_gpu_host_register(struct slc_device *device,
                                      void *memory,
                                      uint64_t bytes,
                                      struct slc_error *err);
void slc_gpu_host_unregister(struct slc_device *device, void *memory);
/* Whether all of it lies in one piece of registered memory. */
bool slc_gpu_is_registered(const struct slc_gpu *gpu, const void *memory, uint64_t bytes);
/* Unregisters all that is left. */
void slc_gpu_pages_release(struct slc_gpu *gpu);

/* ---- transfer.cu */

enum slc_status slc_gpu_factor_write(struct slc_device *device,
                                     unsigned mode,
                                     const struct slc_matrix *from,
                                     struct slc_error *err);
enum slc_status slc_gpu_factor_read(struct slc_device *device,
                                    unsigned mode,
                                    struct slc_matrix *to,
                                    struct slc_error *err);
enum slc_status
slc_gpu_output_read(struct slc_device *device, struct slc_matrix *to, struct slc_error *err);
enum slc_status slc_gpu_output_add_host(struct slc_device *device,
                                        const struct slc_matrix *from,
                                        struct slc_error *err);
enum slc_status slc_gpu_output_rows(struct slc_device *device,
                                    const struct slc_row_span *rows,
                                    uint64_t count,
                                    struct slc_matrix *to,
                                    struct slc_error *err);
/* Rows of `row_bytes`, one behind the other in the device's memory and the host's. Likewise. */
enum slc_status slc_gpu_rows_send(struct slc_gpu *gpu,
                                  void *to,
                                  const void *from,
                                  uint64_t rows,
                                  uint64_t row_bytes,
                                  struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_gpu_rows_receive(struct slc_gpu *gpu,
                                     void *to,
                                     const void *from,
                                     uint64_t rows,
                                     uint64_t row_bytes,
                                     struct slc_error *err) SLC_NODISCARD;
/* The problem's layouts. Whoever fails settles the device. */
enum slc_status slc_gpu_layouts_write(struct slc_gpu *gpu,
                                      const struct slc_encoded_layout *layouts,
                                      struct slc_error *err) SLC_NODISCARD;

/* ---- slots.cu */

/*
 * The slot that is being filled; begins a batch in a free slot where none is, waiting for the batch
 * that began first where none is free.
 */
enum slc_status slc_gpu_slot_fill(struct slc_gpu *gpu,
                                  struct slc_gpu_slot **slot,
                                  struct slc_error *err) SLC_NODISCARD;
/* Frees the slots whose batches have ended, and counts launches of residents that have, without
 * waiting. */
enum slc_status slc_gpu_slots_look(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Launches the batch that is being filled, if any. */
enum slc_status slc_gpu_slot_launch(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Enqueues the copy of a block on the slot's stream. */
enum slc_status slc_gpu_slot_copy(struct slc_gpu *gpu,
                                  struct slc_gpu_slot *slot,
                                  void *to,
                                  const void *from,
                                  uint64_t bytes,
                                  struct slc_error *err) SLC_NODISCARD;
/* Waits for the slot's batch and adds up its times: the slot is free. */
enum slc_status slc_gpu_slot_retire(struct slc_gpu *gpu,
                                    struct slc_gpu_slot *slot,
                                    struct slc_error *err) SLC_NODISCARD;
/*
 * Adds a span that has ended to the times, as one of copying or of computing. The runtime counts in
 * milliseconds of 24 bits from the job's origin: after an hour spans are known to 0.25 ms.
 */
enum slc_status slc_gpu_add_span(struct slc_gpu *gpu,
                                 struct slc_spans *kind,
                                 const struct slc_gpu_span *span,
                                 struct slc_error *err) SLC_NODISCARD;
/* Destroys the event, if there is one. */
void slc_gpu_event_close(cudaEvent_t *event);
/* Events of a span. Whoever fails closes them. */
enum slc_status slc_gpu_span_open(struct slc_gpu_span *span, struct slc_error *err) SLC_NODISCARD;
void slc_gpu_span_close(struct slc_gpu_span *span);

/* Waits for all streams, whatever they say. */
void slc_gpu_wait(struct slc_gpu *gpu);
/* The same; all slots are free then, and the batch that was being filled is lost. */
void slc_gpu_settle(struct slc_gpu *gpu);

/* ---- blocks.cu */

enum slc_status slc_gpu_block(struct slc_device *device,
                              const struct slc_encoded_block *block,
                              uint32_t *keep,
                              uint64_t *ticket,
                              struct slc_error *err);
enum slc_status slc_gpu_flush(struct slc_device *device, struct slc_error *err);
enum slc_status slc_gpu_copied(
    struct slc_device *device, uint64_t ticket, bool wait, bool *done, struct slc_error *err);
enum slc_status slc_gpu_poll(struct slc_device *device,
                             const struct slc_encoded_block *next,
                             struct slc_device_progress *progress,
                             struct slc_error *err);

/* What all launches of the job have in common. */
static inline struct slc_gpu_batch slc_gpu_batch_of(const struct slc_gpu *gpu)
{
    struct slc_gpu_batch batch = {};

    batch.chunk_runs = gpu->job.chunk_runs;
    batch.waves = 1;
    batch.layout = gpu->job.layout;
    batch.fault = gpu->memory.fault;
    return batch;
}

/* Chunks of a tile. */
static inline uint32_t slc_gpu_chunks_of(uint32_t nnz, uint32_t chunk_runs)
{
    const uint32_t chunk_nnz = chunk_runs * SLC_RUN_NNZ;

    return nnz / chunk_nnz + (nnz % chunk_nnz != 0);
}

/* ---- resident.cu */

/* The stream and the events. Whoever fails closes them; that takes all-zero ones. */
enum slc_status slc_gpu_residents_open(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
void slc_gpu_residents_close(struct slc_gpu *gpu);
/* After a job, which nothing of is under way: no block is wanted, no launch is counted. */
void slc_gpu_residents_settle(struct slc_gpu *gpu);

/* Where a block's bytes and expanded bytes would go. False where there is no room for it. */
bool slc_gpu_resident_room(const struct slc_gpu *gpu,
                           const struct slc_encoded_block *block,
                           uint8_t **data,
                           uint8_t **expanded);
/*
 * Keeps a block whose copy has been enqueued on the slot's stream and whose tiles stand in the
 * slot's table of the host from `tiles` on. Returns its name.
 */
enum slc_status slc_gpu_resident_keep(struct slc_gpu *gpu,
                                      struct slc_gpu_slot *slot,
                                      const struct slc_encoded_block *block,
                                      const struct slc_gpu_tile *tiles,
                                      uint32_t *keep,
                                      struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_gpu_resident(struct slc_device *device, uint32_t keep, struct slc_error *err);
/* Launches the resident blocks that were asked for, one launch for each run of neighbours in their
 * memory: one in all where all of a layout were. */
enum slc_status slc_gpu_residents_launch(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Lets `main` wait for all of them. */
enum slc_status slc_gpu_residents_join(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Adds up the times of launches that have ended; with `wait` of all. */
enum slc_status
slc_gpu_residents_look(struct slc_gpu *gpu, bool wait, struct slc_error *err) SLC_NODISCARD;

/* ---- job.cu */

/* Launches a batch of the job; by the default, with chunks of the job's, if the job's variant
 * is of transcoded tiles and the batch has none. */
cudaError_t slc_gpu_job_batch(const struct slc_gpu *gpu,
                              const struct slc_gpu_batch *batch,
                              cudaStream_t stream);

enum slc_status slc_gpu_mttkrp_begin(struct slc_device *device,
                                     const struct slc_device_job *job,
                                     struct slc_error *err);
enum slc_status slc_gpu_mttkrp_end(struct slc_device *device, struct slc_error *err);
/* The error that a kernel has met. Returns SLC_ERR_DAMAGED. */
enum slc_status slc_gpu_fail_damaged(const struct slc_gpu_fault *fault, struct slc_error *err);
/* Has the output be made of the job's exact sums, where there are any and it has not been. */
enum slc_status slc_gpu_output_finish(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;

/* ---- algebra.cu */

enum slc_status slc_gpu_update(struct slc_device *device,
                               unsigned mode,
                               const struct slc_solver *solver,
                               const struct slc_update_sums *sums,
                               struct slc_error *err);
enum slc_status
slc_gpu_gram(struct slc_device *device, unsigned mode, double *gram, struct slc_error *err);
enum slc_status
slc_gpu_scale(struct slc_device *device, unsigned mode, const double *scale, struct slc_error *err);
enum slc_status slc_gpu_update_units(struct slc_device *device,
                                     unsigned mode,
                                     const struct slc_solver *solver,
                                     const struct slc_device_units *units,
                                     double *columns,
                                     struct slc_error *err);

/* ---- peers.cu */

enum slc_status slc_gpu_factor_copy(struct slc_device *device,
                                    unsigned mode,
                                    const struct slc_device *from,
                                    const struct slc_row_span *rows,
                                    uint64_t count,
                                    struct slc_error *err);
/* Adds so many bytes of what has arrived to the output, `at` bytes from its begin. */
cudaError_t slc_gpu_output_add_arrived(const struct slc_gpu *gpu, uint64_t at, uint64_t bytes);
enum slc_status slc_gpu_output_add(struct slc_device *device,
                                   const struct slc_device *from,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_error *err);

#endif
