/*
 * Verifying a store: the manifest, the folder's contents, and every block file from its first byte
 * to its last. Blocks are read and judged by a team of threads, each with one block and one decoder
 * in memory; the number of threads shrinks to fit the budget. A fault never ends the check: it is
 * reported with file, block and offset, and the next part is looked at.
 *
 * Every byte is covered: header, index and closing page when the file is opened, each block by its
 * checksum, and together they fill the file (slc_reader_open checks that there are no gaps).
 */
#include "storage/verify/verify.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "storage/block/reader.h"
#include "storage/file/block_file.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/names.h"
#include "storage/manifest/store.h"
#include "storage/verify/verify_tile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_FINDINGS = 64 };

/* Libraries' pages first touched after planning; a worker's stack and malloc arena. */
#define UNTOUCHED_BYTES (UINT64_C(2) << 20)
#define THREAD_BYTES    (UINT64_C(128) << 10)
/* What is resident is rounded up to this, so that the budget named by one run is not refused by the
   next, in which a few more pages are resident. */
#define PROCESS_UNIT (UINT64_C(4) << 20)

struct verifier {
    const struct slc_verify_options *options;
    const struct slc_files *files;
    const char *path;
    uint64_t memory_bytes;
    uint64_t max_findings;

    /* Set when the manifest was read; all files are compared with it then. */
    bool have_manifest;
    struct slc_manifest manifest;
    /* Of the first layout that was opened: all others have the same. */
    bool have_keys;
    struct slc_key_layout keys;

    pthread_mutex_t lock; /* of all below */
    struct slc_verify_report report;
    struct slc_error first;   /* the first finding: the lowest block of the first file at fault */
    uint64_t first_step;      /* `step` when it was found */
    uint64_t step;            /* counts files, so that findings of one file can be told */
    enum slc_status fatal;    /* the check itself failed, as without memory */
    struct slc_error failure; /* says why */
    atomic_bool stop;         /* enough findings, or a failure */
};

/* A fault of the check itself, not of the store. */
static bool is_failure(enum slc_status status)
{
    return status == SLC_ERR_MEMORY || status == SLC_ERR_SYSTEM || status == SLC_ERR_BUDGET ||
           status == SLC_ERR_INTERRUPTED;
}

/* Takes note of a fault; any thread. */
static void report_fault(struct verifier *verifier, const struct slc_error *fault)
{
    pthread_mutex_lock(&verifier->lock);
    if (is_failure(fault->status)) {
        if (verifier->fatal == SLC_OK) {
            verifier->fatal = fault->status;
            verifier->failure = *fault;
        }
        atomic_store(&verifier->stop, true);
    } else if (verifier->report.findings < verifier->max_findings) {
        bool first = verifier->report.findings++ == 0;

        if (first ||
            (verifier->step == verifier->first_step && fault->block < verifier->first.block)) {
            verifier->first = *fault;
            verifier->first_step = verifier->step;
        }
        if (verifier->options->found != NULL) {
            verifier->options->found(verifier->options->context, fault);
        }
        if (verifier->report.findings == verifier->max_findings) {
            atomic_store(&verifier->stop, true);
        }
    }
    pthread_mutex_unlock(&verifier->lock);
}

/* Whether no more is to be checked. */
static bool has_ended(struct verifier *verifier)
{
    struct slc_error err = SLC_ERROR_INIT;

    if (!atomic_load(&verifier->stop) && slc_stop_check(verifier->options->stop, &err) != SLC_OK) {
        report_fault(verifier, &err);
    }
    return atomic_load(&verifier->stop);
}

/* What one worker needs. */
struct worker {
    struct slc_buffer block;
    struct slc_decoder *decoder; /* NULL where nothing is decoded */
};

/* One block file under check. */
struct file_check {
    struct verifier *verifier;
    const struct slc_reader *reader;
    struct slc_block_file file;
    struct worker *workers;
    unsigned worker_count;
};

/* Of fiber-n: whether as many fibers end in the block as the index says. Reports if not. */
static bool count_fits(struct file_check *check, const struct slc_block_view *view, uint64_t ended)
{
    struct slc_error fault = SLC_ERROR_INIT;

    if (slc_reader_info(view->reader)->layout != SLC_LAYOUT_FIBER ||
        ended == view->entry.partition) {
        return true;
    }
    slc_fail(&fault, SLC_ERR_DAMAGED,
             "%" PRIu64 " fibers end in the block, the index says %" PRIu32, ended,
             view->entry.partition);
    slc_error_locate_block(&fault, slc_reader_path(view->reader), view->block, view->entry.offset);
    report_fault(check->verifier, &fault);
    return false;
}

/* Checks the tiles of a sound block; returns its nonzeros, 0 after a fault. */
static uint64_t
check_tiles(struct file_check *check, const struct slc_block_view *view, struct worker *worker)
{
    uint64_t nnz = view->entry.nnz;
    uint64_t ended = 0;

    for (uint32_t tile = 0; tile < view->entry.tile_count; tile++) {
        struct slc_error fault = SLC_ERROR_INIT;
        enum slc_status status = slc_verify_tile_cut(view, tile, &fault);

        if (status == SLC_OK && worker->decoder != NULL) {
            uint64_t pieces = 0;

            status = slc_verify_tile(worker->decoder, view, tile, &pieces, &fault);
            ended += slc_verify_fibers_ended(view, tile, pieces);
        }
        if (status != SLC_OK) {
            report_fault(check->verifier, &fault);
            nnz = 0;
        }
        if (has_ended(check->verifier)) {
            return 0;
        }
    }
    if (nnz > 0 && worker->decoder != NULL && !count_fits(check, view, ended)) {
        return 0;
    }
    return nnz;
}

static void check_block(struct file_check *check, uint64_t block, struct worker *worker)
{
    struct verifier *verifier = check->verifier;
    const char *path = slc_reader_path(check->reader);
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_block_entry entry;
    struct slc_block_view view;
    uint64_t nnz = 0;

    slc_reader_entry(check->reader, block, &entry);
    enum slc_status status = slc_block_file_read(&check->file, worker->block.data,
                                                 entry.padded_bytes, entry.offset, &fault);
    slc_error_locate_block(status == SLC_OK ? NULL : &fault, path, block, entry.offset);
    SLC_THEN(status,
             slc_block_open(check->reader, block, worker->block.data, false, &view, &fault));
    if (status != SLC_OK) {
        report_fault(verifier, &fault);
    } else {
        nnz = check_tiles(check, &view, worker);
    }
    pthread_mutex_lock(&verifier->lock);
    verifier->report.blocks++;
    verifier->report.bytes += entry.padded_bytes;
    verifier->report.nnz += nnz;
    if (verifier->options->progress != NULL) {
        const uint64_t total =
            verifier->have_manifest ? slc_manifest_file_bytes(&verifier->manifest) : 0;

        /* Bytes of the manifest are among those that were checked. */
        verifier->options->progress(
            verifier->options->context, "check",
            total > 0 ? slc_min_u64(verifier->report.bytes, total) : verifier->report.bytes, total);
    }
    pthread_mutex_unlock(&verifier->lock);
}

static void check_range(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct file_check *check = context;

    for (uint64_t block = begin; block < end; block++) {
        if (!has_ended(check->verifier)) {
            check_block(check, block, &check->workers[worker]);
        }
    }
}

/* As many workers as are wanted, useful and within the budget. Errors: SLC_ERR_BUDGET. */
static enum slc_status
choose_workers(struct file_check *check, unsigned *workers, struct slc_error *err)
{
    const struct verifier *verifier = check->verifier;
    const struct slc_layout_info *info = slc_reader_info(check->reader);
    /* The index is resident already. */
    uint64_t fixed =
        slc_div_up_u64(slc_memory_resident() + UNTOUCHED_BYTES, PROCESS_UNIT) * PROCESS_UNIT;
    uint64_t each = slc_buffer_footprint(info->max_block_bytes, SLC_PAGES_SMALL) +
                    (verifier->options->decode ? slc_decoder_memory_bytes(info, SLC_F64) : 0) +
                    sizeof(struct worker) + THREAD_BYTES;
    uint64_t wanted = verifier->options->threads;

    if (verifier->memory_bytes < fixed || verifier->memory_bytes - fixed < each) {
        enum slc_status status =
            slc_fail_budget(err, verifier->memory_bytes, fixed + each, "checking this store");

        slc_error_locate_file(err, slc_reader_path(check->reader));
        return status;
    }
    wanted = wanted == 0 ? slc_team_default_workers() : wanted;
    uint64_t fitting = (verifier->memory_bytes - fixed) / each;
    *workers = (unsigned)slc_min_u64(slc_min_u64(wanted, fitting),
                                     slc_min_u64(info->block_count, SLC_MAX_THREADS));
    return SLC_OK;
}

static enum slc_status
create_workers(struct file_check *check, unsigned workers, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(check->reader);

    check->workers = slc_calloc(workers, sizeof check->workers[0]);
    SLC_TRY(slc_check_memory(check->workers != NULL, err, "for %u workers", workers));
    check->worker_count = workers;
    for (unsigned i = 0; i < workers; i++) {
        SLC_TRY(slc_buffer_create(&check->workers[i].block, info->max_block_bytes, SLC_PAGES_SMALL,
                                  err));
        if (check->verifier->options->decode) {
            SLC_TRY(slc_decoder_create(info, SLC_F64, &check->workers[i].decoder, err));
        }
    }
    return SLC_OK;
}

static void destroy_workers(struct file_check *check)
{
    for (unsigned i = 0; i < check->worker_count; i++) {
        slc_decoder_destroy(check->workers[i].decoder);
        slc_buffer_destroy(&check->workers[i].block);
    }
    slc_free(check->workers);
}

/* All blocks of an open file. Faults of blocks are reported here, others returned. */
static enum slc_status
check_blocks(struct verifier *verifier, const struct slc_reader *reader, struct slc_error *err)
{
    struct file_check check = {.verifier = verifier, .reader = reader};
    uint64_t blocks = slc_reader_info(reader)->block_count;
    unsigned workers = 0;

    if (blocks == 0) {
        return SLC_OK;
    }
    SLC_TRY(choose_workers(&check, &workers, err));
    SLC_TRY(slc_block_file_open(verifier->files, slc_reader_path(reader), "opening a block file",
                                &check.file, err));
    enum slc_status status = create_workers(&check, workers, err);
    SLC_THEN(status, slc_team_for(workers, blocks, 1, check_range, &check, err));
    destroy_workers(&check);
    slc_block_file_close(&check.file);
    return status;
}

/* What the manifest says of an open file, and that it belongs with the other layouts. */
static enum slc_status check_listed(struct verifier *verifier,
                                    const struct slc_store_layout *layout,
                                    const struct slc_reader *reader,
                                    struct slc_error *err)
{
    enum slc_status status = slc_manifest_check_layout(&verifier->manifest, layout, reader, err);

    if (status == SLC_OK && verifier->have_keys) {
        status = slc_store_check_keys(&verifier->keys, reader, err);
    }
    if (!verifier->have_keys) {
        verifier->keys = slc_reader_info(reader)->content_keys;
        verifier->have_keys = true;
    }
    return status;
}

/* One block file; `layout` is its entry in the manifest, NULL without one. */
static void
check_file(struct verifier *verifier, const char *name, const struct slc_store_layout *layout)
{
    struct slc_error fault = SLC_ERROR_INIT;
    char *path = slc_path_join(verifier->path, name);
    struct slc_reader *reader = NULL;

    verifier->step++;
    if (path == NULL) {
        slc_fail(&fault, SLC_ERR_MEMORY, "no memory for a path");
        report_fault(verifier, &fault);
        return;
    }
    enum slc_status status =
        layout != NULL
            ? slc_store_open_listed(verifier->files, path, verifier->memory_bytes, &reader, &fault)
            : slc_reader_open_within(verifier->files, path, verifier->memory_bytes, &reader,
                                     &fault);
    if (status == SLC_OK) {
        const struct slc_layout_info *info = slc_reader_info(reader);
        struct slc_error mismatch = SLC_ERROR_INIT;
        uint64_t in_blocks = 0;

        if (layout != NULL && check_listed(verifier, layout, reader, &mismatch) != SLC_OK) {
            report_fault(verifier, &mismatch);
        }
        for (uint64_t block = 0; block < info->block_count; block++) {
            struct slc_block_entry entry;

            slc_reader_entry(reader, block, &entry);
            in_blocks += entry.padded_bytes;
        }
        verifier->report.bytes += info->file_bytes - in_blocks;
        status = check_blocks(verifier, reader, &fault);
    }
    if (status != SLC_OK) {
        report_fault(verifier, &fault);
    }
    verifier->report.files++;
    verifier->report.layouts++;
    slc_reader_close(reader);
    slc_free(path);
}

/* The permutation file of one mode, which takes the memory of its labels. */
static void check_permutation(struct verifier *verifier,
                              const struct slc_store_permutation *permutation)
{
    uint64_t length = verifier->manifest.dims[permutation->mode];
    uint64_t need =
        slc_div_up_u64(slc_memory_resident() + UNTOUCHED_BYTES, PROCESS_UNIT) * PROCESS_UNIT +
        slc_labels_memory_bytes(length);
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_labels labels = {0};
    enum slc_status status;

    verifier->step++;
    if (need > verifier->memory_bytes) {
        status = slc_fail_budget(&fault, verifier->memory_bytes, need,
                                 "checking the permutation of mode %u", permutation->mode + 1);
    } else {
        status =
            slc_labels_read(verifier->files, verifier->path, permutation, length, &labels, &fault);
        slc_labels_destroy(&labels);
    }
    if (status != SLC_OK) {
        report_fault(verifier, &fault);
    }
    verifier->report.files++;
    verifier->report.bytes += permutation->file_bytes;
}

/* The names of a mode's indices, of which a piece at a time is in memory. */
static void check_names(struct verifier *verifier, const struct slc_store_names *names)
{
    struct slc_error fault = SLC_ERROR_INIT;

    verifier->step++;
    if (slc_names_verify(verifier->files, verifier->path, names, &fault) != SLC_OK) {
        report_fault(verifier, &fault);
    }
    verifier->report.files++;
    verifier->report.bytes += names->file_bytes;
}

/* Whether the manifest lists `name`, or it is the manifest. */
static bool is_listed(const struct verifier *verifier, const char *name)
{
    bool listed = strcmp(name, SLC_MANIFEST_NAME) == 0;

    for (unsigned i = 0; i < verifier->manifest.layout_count && !listed; i++) {
        listed = strcmp(name, verifier->manifest.layouts[i].file) == 0;
    }
    for (unsigned i = 0; i < verifier->manifest.permutation_count && !listed; i++) {
        listed = strcmp(name, verifier->manifest.permutations[i].file) == 0;
    }
    for (unsigned i = 0; i < verifier->manifest.names_count && !listed; i++) {
        listed = strcmp(name, verifier->manifest.names[i].file) == 0;
    }
    return listed;
}

/*
 * Whether an interrupted change of layouts leaves a file of that name: the file or the journal of
 * one that is not finished, a finished one that was not listed yet, a manifest that was not in its
 * place yet, or what tells of stripes that come or go. The leftover says which layout it is of.
 */
static bool is_leftover(const struct verifier *verifier, const char *name, struct slc_leftover *of)
{
    static const char *const suffixes[] = {"", ".tmp", ".tmp.journal"};
    static const char *const stripes[] = {".blk.stripes", ".blk.unstripe", ".blk.gathered",
                                          ".blk.stripes.tmp", ".blk.unstripe.tmp"};
    const char *dot = strchr(name, '.');

    *of = (struct slc_leftover){.name = name, .layout = SLC_LAYOUT_BLCO};
    if (strcmp(name, SLC_MANIFEST_NAME ".tmp") == 0 || strcmp(name, SLC_COMPLETE_STATE_NAME) == 0) {
        return true;
    }
    for (size_t k = 0; dot != NULL && k < sizeof stripes / sizeof stripes[0]; k++) {
        if (strcmp(dot, stripes[k]) == 0) {
            return true;
        }
    }
    for (unsigned i = 0; i < 2 * verifier->manifest.order; i++) {
        char file[64];

        of->layout = i % 2 == 0 ? SLC_LAYOUT_SORTED : SLC_LAYOUT_FIBER;
        of->mode = i / 2;
        size_t length = (size_t)snprintf(file, sizeof file, "%s-%u.blk",
                                         slc_layout_name(of->layout), of->mode + 1);
        for (unsigned k = 0; k < sizeof suffixes / sizeof suffixes[0]; k++) {
            if (strncmp(name, file, length) == 0 && strcmp(name + length, suffixes[k]) == 0) {
                return true;
            }
        }
    }
    return false;
}

/*
 * One name in the folder. With a sound manifest, what it does not list is a finding; without, block
 * files are found by name and checked on their own, so that one knows whether the data is whole.
 */
static int check_name(void *context, const char *name, char kind)
{
    struct verifier *verifier = context;
    struct slc_leftover leftover;
    size_t length = strlen(name);

    if (!verifier->have_manifest) {
        if (kind == 'f' && length > 4 && strcmp(name + length - 4, ".blk") == 0) {
            check_file(verifier, name, NULL);
        }
    } else if (is_listed(verifier, name)) {
        return 0;
    } else if (kind == 'f' && is_leftover(verifier, name, &leftover)) {
        verifier->report.leftovers++;
        if (verifier->options->leftover != NULL) {
            verifier->options->leftover(verifier->options->context, &leftover);
        }
    } else {
        struct slc_error fault = SLC_ERROR_INIT;
        char *path = slc_path_join(verifier->path, name);

        verifier->step++;
        slc_fail(&fault, path == NULL ? SLC_ERR_MEMORY : SLC_ERR_FORMAT,
                 "the manifest does not list this %s, so it is not part of the store: remove it or "
                 "keep it elsewhere",
                 kind == 'd' ? "folder" : "file");
        slc_error_locate_file(&fault, path);
        report_fault(verifier, &fault);
        slc_free(path);
    }
    return atomic_load(&verifier->stop) ? 1 : 0;
}

static void check_folder(struct verifier *verifier)
{
    int rc =
        verifier->files->list_folder(verifier->files->self, verifier->path, check_name, verifier);

    /* A folder that is not there has been reported with its manifest. */
    if (rc < 0 && (verifier->have_manifest || (rc != -ENOENT && rc != -ENOTDIR))) {
        struct slc_error fault = SLC_ERROR_INIT;

        verifier->step++;
        slc_fail_errno(&fault, -rc, verifier->path, "listing the store's folder");
        report_fault(verifier, &fault);
    }
}

/* Reads the manifest; a faulty one is a finding. */
static void check_manifest(struct verifier *verifier)
{
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_file_stat stat;
    char *path = slc_path_join(verifier->path, SLC_MANIFEST_NAME);
    int rc;

    if (path == NULL) {
        slc_fail(&fault, SLC_ERR_MEMORY, "no memory for a path");
    } else if (slc_manifest_read(verifier->files, verifier->path, &verifier->manifest, &fault) ==
               SLC_OK) {
        verifier->have_manifest = true;
        verifier->report.files++;
        rc = verifier->files->stat_path(verifier->files->self, path, &stat);
        if (rc < 0) {
            slc_fail_errno(&fault, -rc, path, "asking for the file's size");
        } else {
            verifier->report.bytes += stat.bytes;
        }
    }
    if (fault.status != SLC_OK) {
        report_fault(verifier, &fault);
    }
    slc_free(path);
}

static uint64_t default_memory(void)
{
    uint64_t total = slc_memory_total();

    return total == 0 ? UINT64_C(1) << 30 : total / 10 * 8;
}

enum slc_status slc_verify_store(const char *path,
                                 const struct slc_verify_options *options,
                                 struct slc_verify_report *report,
                                 struct slc_error *err)
{
    struct verifier *verifier = slc_calloc(1, sizeof *verifier);

    memset(report, 0, sizeof *report);
    SLC_TRY(slc_check_memory(verifier != NULL, err, "for checking %s", path));
    verifier->options = options;
    verifier->files = options->files != NULL ? options->files : slc_files_system();
    verifier->path = path;
    verifier->memory_bytes = options->memory_bytes != 0 ? options->memory_bytes : default_memory();
    verifier->max_findings = options->max_findings != 0 ? options->max_findings : DEFAULT_FINDINGS;
    pthread_mutex_init(&verifier->lock, NULL);

    check_manifest(verifier);
    for (unsigned i = 0; i < verifier->manifest.layout_count && verifier->have_manifest; i++) {
        if (!atomic_load(&verifier->stop)) {
            check_file(verifier, verifier->manifest.layouts[i].file,
                       &verifier->manifest.layouts[i]);
        }
    }
    for (unsigned i = 0; i < verifier->manifest.permutation_count && verifier->have_manifest; i++) {
        if (!atomic_load(&verifier->stop)) {
            check_permutation(verifier, &verifier->manifest.permutations[i]);
        }
    }
    for (unsigned i = 0; i < verifier->manifest.names_count && verifier->have_manifest; i++) {
        if (!atomic_load(&verifier->stop)) {
            check_names(verifier, &verifier->manifest.names[i]);
        }
    }
    if (!atomic_load(&verifier->stop)) {
        check_folder(verifier);
    }

    *report = verifier->report;
    enum slc_status status = verifier->fatal != SLC_OK ? verifier->fatal : verifier->first.status;
    if (status != SLC_OK && err != NULL && err->status == SLC_OK) {
        *err = verifier->fatal != SLC_OK ? verifier->failure : verifier->first;
    }
    pthread_mutex_destroy(&verifier->lock);
    slc_free(verifier);
    return status;
}
