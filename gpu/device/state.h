/* The state of a GPU as a device (base/device.h), and the functions that the files of gpu/device/
 * share. Private to gpu/.
 *
 * Order of work: the stream `main` zeroes outputs, does the algebra and copies matrices. Batches,
 * with the copies of their blocks, run on the streams of slots; launches of resident blocks run on
 * a stream of lower priority. Batches and launches wait for the event `begun`, which follows the
 * zeroing of the output. mttkrp_end makes `main` wait for all batches and launches. The host writes
 * a slot's memory only after waiting for the slot's last batch.
 *
 * Every entry point first makes its device current for the calling thread. After an error that
 * leaves work pending, slc_gpu_drain waits for the pending work, so that no memory is accessed
 * later. */
#ifndef SLC_GPU_STATE_H
#define SLC_GPU_STATE_H

#include "gpu/decode/transcode.h"
#include "gpu/mttkrp/mttkrp.h"

extern "C" {
#include "base/spans.h"
#include "gpu/memory/memory.h"
}

enum {
    /* Maximum number of copies of a slot, or of launches of resident blocks, that have events at
     * the same time. The events time a copy, and the ticket of the copy refers to them. This number
     * keeps the copy engine busy even with blocks of a few KiB. */
    SLC_GPU_COPIES = 16
};

static_assert(SLC_DEVICE_STREAMS * (SLC_GPU_COPIES + 1) + SLC_GPU_COPIES <= SLC_SPANS_PENDING,
              "copies and kernels of all slots, and launches of residents, may end in any order");

/* A timed interval on a stream. */
struct slc_gpu_span {
    cudaEvent_t begin, end;
};

enum slc_gpu_slot_state {
    SLC_GPU_SLOT_FREE,
    SLC_GPU_SLOT_FILLING,
    SLC_GPU_SLOT_LAUNCHED /* the slot's last batch may be in progress */
};

struct slc_gpu_slot {
    enum slc_gpu_slot_state state;
    struct slc_gpu_slot_memory memory;
    cudaStream_t stream;
    struct slc_gpu_span computing; /* span of the batch's kernels */
    struct slc_gpu_span copies[SLC_GPU_COPIES];
    /* true if the copy begins when the previous copy of the batch ends; `begin` is then unused */
    bool follows[SLC_GPU_COPIES];
    float timed_ms; /* end of the last timed copy, since the epoch */

    /* The members below describe the current batch, or the last batch if the slot is not
     * filling. */
    uint64_t batch; /* number of the batch, from 1 */
    uint64_t data_used, expanded_used;
    uint32_t tile_count;
    /* number of copies; the first copies_timed copies have completed and been timed */
    uint32_t copy_count, copies_timed;
    uint64_t nnz;
    bool expands; /* some blocks of the batch are compressed */
    bool keeps;   /* some blocks of the batch become resident */
};

/* The state of resident blocks and of their launches. Launches of resident blocks have a stream of
 * lower priority than the streams of slots, so that copied blocks are computed as soon as they
 * arrive and their slots become free. */
struct slc_gpu_residents {
    uint64_t used_bytes;
    uint32_t tile_count, block_count;
    /* True if resident blocks cannot be used, because a batch with some of them was never launched
     * and so not expanded, or a kernel found damage. */
    bool lost;

    cudaStream_t stream;               /* NULL if there is no memory for resident blocks */
    uint32_t marked_begin, marked_end; /* range that contains all marked blocks */
    uint64_t table_used;               /* used entries of memory.resident_chunk_begin */
    /* number of launches of the job; the first `timed` launches have completed and been timed */
    uint32_t launched, timed;
    /* launch l uses element l modulo SLC_GPU_COPIES */
    struct slc_gpu_span computing[SLC_GPU_COPIES];
    uint64_t nnz[SLC_GPU_COPIES];
};

/* Times in which the device was busy, as unions of spans. The origin of spans is `epoch`, which
 * each job sets. */
struct slc_gpu_times {
    /* precedes all work of a job on the streams of slots and of resident blocks */
    cudaEvent_t epoch;
    struct slc_spans copy, compute, busy;
};

/* The MTTKRP between mttkrp_begin and mttkrp_end, and its output after mttkrp_end. */
struct slc_gpu_job {
    bool active;
    bool broken;       /* a call failed, so some blocks are missing */
    bool has_output;   /* true after mttkrp_end, until the next mttkrp_begin */
    bool sums_pending; /* the output must still be converted from exact sums */
    struct slc_gpu_mttkrp mttkrp;
    const struct slc_encoded_layout *layout;
    uint32_t chunk_runs;
    bool copies;       /* see struct slc_device_job */
    uint64_t nnz_done; /* nonzeros of batches that have ended */
};

/* Registered host memory. */
struct slc_gpu_pages {
    unsigned char *begin;
    uint64_t bytes;
    bool own; /* false if another device of this process registered the memory */
};

struct slc_gpu_product; /* gpu/product/product.h */

struct slc_gpu {
    struct slc_device device; /* first member, because the engine has a pointer to it */
    int ordinal;
    uint64_t cap_bytes; /* device memory that may be used */
    char name[128];
    uint64_t total_bytes;
    struct slc_gpu_machine machine;

    struct slc_gpu_pages *pages;
    size_t pages_count, pages_capacity;

    bool is_open;
    struct slc_device_problem problem; /* the layouts of the problem are only in device memory */
    struct slc_gpu_memory memory;
    cudaStream_t main;
    cudaEvent_t begun;
    cudaEvent_t piece_done[2]; /* last copy from or to each piece of registered memory */
    struct slc_gpu_slot slots[SLC_DEVICE_STREAMS];
    struct slc_gpu_slot *filling;
    uint64_t batches; /* batches begun so far */
    struct slc_gpu_residents residents;
    struct slc_gpu_times times;
    /* transcoded copies of the first resident tiles, if any */
    struct slc_gpu_transcoded_tiles transcoded;
    uint32_t transcoded_blocks; /* number of resident blocks when transcoding was last tried */
    /* true if memory.largest has the largest magnitudes of the columns of this mode's factor */
    bool largest_known[SLC_MAX_ORDER];
    /* bit p is set if access to the device with ordinal p was tried, and if kernels can read it */
    uint64_t peers_tried, peers_reached;
    struct slc_gpu_job job;
    struct slc_gpu_product *product; /* NULL if the device is not open for tiles */
    struct slc_device_stats
        stats; /* statistics; the counts in lanes[l].stats are added when they are read */
};

static inline struct slc_gpu *slc_gpu_of(struct slc_device *device)
{
    return reinterpret_cast<struct slc_gpu *>(device);
}
static inline const struct slc_gpu *slc_gpu_of(const struct slc_device *device)
{
    return reinterpret_cast<const struct slc_gpu *>(device);
}

/* Makes the device current for the calling thread. Errors: SLC_ERR_USAGE if the device is not
 * open. */
enum slc_status slc_gpu_enter(const struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Does the same as slc_gpu_enter. Errors: also SLC_ERR_USAGE if no MTTKRP is in progress. */
enum slc_status slc_gpu_enter_job(const struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Every operation of a job ends with this call. If `status` is an error, the call waits for pending
 * work and marks the job as failed. Returns `status`. */
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
/* Returns true if all `bytes` bytes at `memory` are in one piece of registered memory. */
bool slc_gpu_is_registered(const struct slc_gpu *gpu, const void *memory, uint64_t bytes);
/* Unregisters all memory that is still registered. */
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
/* Copy rows of `row_bytes` that are contiguous both in device memory and in host memory. After a
 * failure the caller must drain the device. */
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
/* Copies the problem's layouts to the device. After a failure the caller must drain the device. */
enum slc_status slc_gpu_layouts_write(struct slc_gpu *gpu,
                                      const struct slc_encoded_layout *layouts,
                                      struct slc_error *err) SLC_NODISCARD;

/* ---- slots.cu */

/* Stores the slot that is being filled in *slot. If there is none, begins a batch in a free slot,
 * or waits for the oldest batch if no slot is free. */
enum slc_status slc_gpu_slot_fill(struct slc_gpu *gpu,
                                  struct slc_gpu_slot **slot,
                                  struct slc_error *err) SLC_NODISCARD;
/* Frees the slots whose batches have ended, and records completed launches of resident blocks. Does
 * not wait. */
enum slc_status slc_gpu_slots_poll(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Launches the batch that is being filled, if any. */
enum slc_status slc_gpu_slot_launch(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Enqueues the copy of a block on the slot's stream. */
enum slc_status slc_gpu_slot_copy(struct slc_gpu *gpu,
                                  struct slc_gpu_slot *slot,
                                  void *to,
                                  const void *from,
                                  uint64_t bytes,
                                  struct slc_error *err) SLC_NODISCARD;
/* Waits for the slot's batch, adds its times and frees the slot. */
enum slc_status slc_gpu_slot_retire(struct slc_gpu *gpu,
                                    struct slc_gpu_slot *slot,
                                    struct slc_error *err) SLC_NODISCARD;
/* Adds a span that has ended to `kind`, the times of copying or computing. The runtime reports the
 * time since the job's origin as an f32 in milliseconds, so the resolution after an hour is 0.25
 * ms. */
enum slc_status slc_gpu_add_span(struct slc_gpu *gpu,
                                 struct slc_spans *kind,
                                 const struct slc_gpu_span *span,
                                 struct slc_error *err) SLC_NODISCARD;
/* Destroys the event, if there is one. */
void slc_gpu_event_close(cudaEvent_t *event);
/* Creates the events of a span. The caller must close the span, also after a failure. */
enum slc_status slc_gpu_span_open(struct slc_gpu_span *span, struct slc_error *err) SLC_NODISCARD;
void slc_gpu_span_close(struct slc_gpu_span *span);

/* Waits for all streams, ignoring their errors. */
void slc_gpu_wait(struct slc_gpu *gpu);
/* Waits for all streams, ignoring their errors, frees all slots and discards the batch that was
 * being filled. */
void slc_gpu_drain(struct slc_gpu *gpu);

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

/* Returns a batch with the members that all launches of the job share. */
static inline struct slc_gpu_batch slc_gpu_batch_of(const struct slc_gpu *gpu)
{
    struct slc_gpu_batch batch = {};

    batch.chunk_runs = gpu->job.chunk_runs;
    batch.waves = 1;
    batch.layout = gpu->job.layout;
    batch.fault = gpu->memory.fault;
    return batch;
}

/* Returns the number of chunks of a tile of `nnz` nonzeros. */
static inline uint32_t slc_gpu_chunks_of(uint32_t nnz, uint32_t chunk_runs)
{
    const uint32_t chunk_nnz = chunk_runs * SLC_RUN_NNZ;

    return nnz / chunk_nnz + (nnz % chunk_nnz != 0);
}

/* ---- resident.cu */

/* Creates the stream and the events for resident blocks. After a failure the caller must call
 * slc_gpu_residents_close, which accepts all-zero members. */
enum slc_status slc_gpu_residents_open(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
void slc_gpu_residents_close(struct slc_gpu *gpu);
/* Clears the marks and launch counts of blocks. Called after a job, when none of its work is
 * pending. */
void slc_gpu_residents_reset(struct slc_gpu *gpu);

/* Sets *data and *expanded to the positions of a block's bytes and expanded bytes. Returns false if
 * the block does not fit. */
bool slc_gpu_resident_fits(const struct slc_gpu *gpu,
                           const struct slc_encoded_block *block,
                           uint8_t **data,
                           uint8_t **expanded);
/* Makes a block resident. Needs: the block's copy has been enqueued on the slot's stream, and its
 * tiles are in the slot's host table starting at `tiles`. Sets *keep to the block's handle. */
enum slc_status slc_gpu_resident_keep(struct slc_gpu *gpu,
                                      struct slc_gpu_slot *slot,
                                      const struct slc_encoded_block *block,
                                      const struct slc_gpu_tile *tiles,
                                      uint32_t *keep,
                                      struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_gpu_resident(struct slc_device *device, uint32_t keep, struct slc_error *err);
/* Launches the marked resident blocks, with one launch per run of blocks that are neighbours in
 * memory. If all blocks of a layout are marked, there is one launch. */
enum slc_status slc_gpu_residents_launch(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Makes `main` wait for all launches of resident blocks. */
enum slc_status slc_gpu_residents_join(struct slc_gpu *gpu, struct slc_error *err) SLC_NODISCARD;
/* Adds the times of launches that have ended. With `wait`, first waits for all launches. */
enum slc_status
slc_gpu_residents_poll(struct slc_gpu *gpu, bool wait, struct slc_error *err) SLC_NODISCARD;

/* ---- job.cu */

/* Transcodes the resident blocks when a job begins, if there are more of them than at the last
 * call. Does nothing if problem.transcoded_bytes do not suffice, if the blocks belong to several
 * layouts, or if sums are deterministic. Errors: SLC_ERR_DAMAGED as in mttkrp_end; SLC_ERR_SYSTEM.
 */
enum slc_status slc_gpu_transcode_residents(struct slc_gpu *gpu,
                                            struct slc_error *err) SLC_NODISCARD;

enum slc_status slc_gpu_mttkrp_begin(struct slc_device *device,
                                     const struct slc_device_job *job,
                                     struct slc_error *err);
enum slc_status slc_gpu_mttkrp_end(struct slc_device *device, struct slc_error *err);
/* Fills in *err for a fault that a kernel found. Returns SLC_ERR_DAMAGED. */
enum slc_status slc_gpu_fail_damaged(const struct slc_gpu_fault *fault, struct slc_error *err);
/* Converts the job's exact sums to the output, if the job has exact sums that are not yet
 * converted. */
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
/* Adds the rows of `host`, which are in the arrival buffer, to the output, starting at row `first`
 * of the output. */
cudaError_t slc_gpu_output_add_host_rows(const struct slc_gpu *gpu,
                                         uint64_t first,
                                         const struct slc_matrix *host);
enum slc_status slc_gpu_output_add(struct slc_device *device,
                                   const struct slc_device *from,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_error *err);

#endif
