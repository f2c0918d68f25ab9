/* Scans tiles through a ring of block buffers, one per worker. A worker fills the next buffer if it
 * is free, and otherwise processes the next tile of the oldest block that has tiles left. Blocks
 * are therefore read before workers need them, and the worker of the tile whose turn it is never
 * waits for another worker. */
#include "storage/scan/tile_scan.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "storage/file/block_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

enum {
    /* Allowance per worker for the allocator, the stack and the error record. */
    WORKER_BYTES = 256 << 10
};

enum slot_state { SLOT_FREE, SLOT_LOADING, SLOT_READY };

struct slot {
    struct slc_buffer memory;
    enum slot_state state;
    struct slc_block_view view;
    /* numbers of tiles that were started and decoded, including skipped tiles */
    uint32_t started, decoded;
};

struct scan {
    const struct slc_tile_scan_options *options;
    const struct slc_tile_steps *steps;
    const struct slc_layout_info *info;
    struct slc_block_file file;
    struct slot *slots;           /* one per worker */
    struct slc_decoder **decoder; /* one per worker */
    pthread_mutex_t lock;         /* guards the following members and the states of the slots */
    pthread_cond_t changed;
    uint64_t next_block; /* the next block to load if it is selected */
    uint64_t loaded;     /* number of blocks loaded or being loaded; block i has slot i % workers */
    uint64_t front;      /* the first loaded block with tiles to start */
    uint64_t tickets;    /* number of tiles started */
    uint64_t turn;       /* ticket of the tile whose turn it is */
    bool ended;          /* a step ended the scan */
    struct slc_error fault;
};

uint64_t slc_tile_scan_memory_bytes(const struct slc_layout_info *info, unsigned workers)
{
    return workers * (slc_buffer_footprint(info->max_block_bytes, SLC_PAGES_SMALL) +
                      slc_decoder_memory_bytes(info, SLC_F64) + WORKER_BYTES);
}

static bool has_failed(const struct scan *scan)
{
    return scan->fault.status != SLC_OK;
}

/* Records a fault. The caller holds the lock. */
static void record_fault(struct scan *scan, const struct slc_error *fault)
{
    if (!has_failed(scan)) {
        scan->fault = *fault;
    }
    pthread_cond_broadcast(&scan->changed);
}

static bool is_selected(const struct slc_tile_scan_options *options,
                        const struct slc_block_entry *entry)
{
    return entry->first_tile + entry->tile_count > options->first_tile &&
           entry->min[options->mode] <= options->last_row &&
           entry->max[options->mode] >= options->first_row;
}

/* Finds the next block that the options select; returns false if there is none. */
static bool find_block(struct scan *scan, struct slc_block_entry *entry)
{
    for (; scan->next_block < scan->info->block_count; scan->next_block++) {
        slc_reader_entry(scan->options->reader, scan->next_block, entry);
        if (is_selected(scan->options, entry)) {
            return true;
        }
    }
    return false;
}

static enum slc_status read_block(const struct scan *scan,
                                  const struct slc_block_entry *entry,
                                  uint64_t block,
                                  struct slot *slot,
                                  struct slc_error *err)
{
    const struct slc_reader *reader = scan->options->reader;

    SLC_TRY(slc_block_file_read(&scan->file, slot->memory.data, entry->padded_bytes, entry->offset,
                                err));
    return slc_block_open(reader, block, slot->memory.data, false, &slot->view, err);
}

/* Fills the next slot if it is free and a block is left. The caller holds the lock. */
static bool load_next(struct scan *scan)
{
    struct slot *slot = &scan->slots[scan->loaded % scan->options->workers];
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_block_entry entry;

    if (scan->ended || slot->state != SLOT_FREE || !find_block(scan, &entry)) {
        return false;
    }
    uint64_t block = scan->next_block++;
    scan->loaded++;
    slot->state = SLOT_LOADING;
    pthread_mutex_unlock(&scan->lock);
    enum slc_status status = read_block(scan, &entry, block, slot, &err);
    pthread_mutex_lock(&scan->lock);
    if (status != SLC_OK) {
        record_fault(scan, &err);
        return true;
    }
    slot->started = entry.first_tile < scan->options->first_tile
                        ? (uint32_t)(scan->options->first_tile - entry.first_tile)
                        : 0;
    slot->decoded = slot->started;
    slot->state = SLOT_READY;
    pthread_cond_broadcast(&scan->changed);
    return true;
}

/* Waits until it is the turn of the tile that was started as number `ticket`, and calls
 * steps->in_turn. Returns false if a fault occurs before. The caller holds the lock. */
static bool run_in_turn(struct scan *scan, unsigned worker, uint64_t ticket)
{
    while (scan->turn != ticket && !has_failed(scan)) {
        pthread_cond_wait(&scan->changed, &scan->lock);
    }
    if (has_failed(scan)) {
        return false;
    }
    scan->ended = !scan->steps->in_turn(scan->steps->context, worker) || scan->ended;
    scan->turn++;
    pthread_cond_broadcast(&scan->changed);
    return true;
}

/* Performs all steps of scan->steps on a tile. The caller holds the lock. */
static void process_tile(struct scan *scan, unsigned worker, struct slot *slot, uint32_t index)
{
    const struct slc_tile_steps *steps = scan->steps;
    uint64_t ticket = scan->tickets++;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tile_view tile;

    pthread_mutex_unlock(&scan->lock);
    enum slc_status status = slc_tile_open(scan->decoder[worker], &slot->view, index, &tile, &err);
    SLC_THEN(status, steps->decode(steps->context, worker, &tile, &err));
    pthread_mutex_lock(&scan->lock);
    if (status != SLC_OK) {
        record_fault(scan, &err);
        return;
    }
    if (++slot->decoded == slot->view.entry.tile_count) {
        slot->state = SLOT_FREE;
        pthread_cond_broadcast(&scan->changed);
    }
    bool no_fault = steps->in_turn != NULL ? run_in_turn(scan, worker, ticket) : !has_failed(scan);
    if (steps->deliver != NULL && no_fault) {
        pthread_mutex_unlock(&scan->lock);
        steps->deliver(steps->context, worker);
        pthread_mutex_lock(&scan->lock);
    }
}

/* Performs all steps of scan->steps on the next loaded tile, if any. The caller holds the lock. */
static bool process_next(struct scan *scan, unsigned worker)
{
    struct slot *slot = &scan->slots[scan->front % scan->options->workers];

    if (scan->ended || scan->front == scan->loaded || slot->state != SLOT_READY) {
        return false;
    }
    uint32_t index = slot->started++;
    if (slot->started == slot->view.entry.tile_count) {
        scan->front++;
    }
    process_tile(scan, worker, slot, index);
    return true;
}

static void scan_worker(void *context, unsigned worker, unsigned workers)
{
    struct scan *scan = context;
    struct slc_block_entry entry;

    (void)workers;
    pthread_mutex_lock(&scan->lock);
    while (!has_failed(scan)) {
        struct slc_error err = SLC_ERROR_INIT;

        if (slc_stop_check(scan->options->stop, &err) != SLC_OK) {
            record_fault(scan, &err);
        } else if (load_next(scan) || process_next(scan, worker)) {
            continue;
        } else if (scan->ended || (scan->front == scan->loaded && !find_block(scan, &entry))) {
            break;
        } else {
            pthread_cond_wait(&scan->changed, &scan->lock);
        }
    }
    pthread_mutex_unlock(&scan->lock);
}

static enum slc_status allocate_scan(struct scan *scan, struct slc_error *err)
{
    unsigned workers = scan->options->workers;

    scan->slots = slc_calloc(workers, sizeof *scan->slots);
    scan->decoder = slc_calloc(workers, sizeof *scan->decoder);
    SLC_TRY(slc_check_memory(scan->slots != NULL && scan->decoder != NULL, err,
                             "for reading a store with %u threads", workers));
    for (unsigned w = 0; w < workers; w++) {
        SLC_TRY(slc_buffer_create(&scan->slots[w].memory, scan->info->max_block_bytes,
                                  SLC_PAGES_SMALL, err));
        SLC_TRY(slc_decoder_create(scan->info, SLC_F64, &scan->decoder[w], err));
    }
    return SLC_OK;
}

static void release_memory(struct scan *scan)
{
    for (unsigned w = 0; w < scan->options->workers; w++) {
        if (scan->decoder != NULL) {
            slc_decoder_destroy(scan->decoder[w]);
        }
        if (scan->slots != NULL) {
            slc_buffer_destroy(&scan->slots[w].memory);
        }
    }
    slc_free(scan->decoder);
    slc_free(scan->slots);
}

enum slc_status slc_tile_scan(const struct slc_tile_scan_options *options,
                              const struct slc_tile_steps *steps,
                              struct slc_error *err)
{
    struct scan scan = {.options = options,
                        .steps = steps,
                        .info = slc_reader_info(options->reader),
                        .fault = SLC_ERROR_INIT};
    enum slc_status status = allocate_scan(&scan, err);

    /* With default attributes, these two calls cannot fail on Linux. */
    pthread_mutex_init(&scan.lock, NULL);
    pthread_cond_init(&scan.changed, NULL);
    SLC_THEN(status, slc_block_file_open(options->files, slc_reader_path(options->reader),
                                         "opening the block file", &scan.file, err));
    SLC_THEN(status, slc_team_run(options->workers, scan_worker, &scan, err));
    if (status == SLC_OK && has_failed(&scan)) {
        status = slc_error_pass(err, &scan.fault);
    }
    slc_block_file_close(&scan.file);
    pthread_cond_destroy(&scan.changed);
    pthread_mutex_destroy(&scan.lock);
    release_memory(&scan);
    return status;
}

void slc_tile_progress_add(struct slc_tile_progress *progress,
                           const struct slc_tile_scan_options *options,
                           const char *phase,
                           uint64_t nnz,
                           uint64_t total)
{
    if (options->progress == NULL) {
        return;
    }
    uint64_t done = atomic_fetch_add(&progress->done, nnz) + nnz;
    if (!atomic_exchange(&progress->reporting, true)) {
        options->progress(options->context, phase, slc_min_u64(done, total), total);
        atomic_store(&progress->reporting, false);
    }
}
