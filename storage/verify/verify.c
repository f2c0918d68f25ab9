/* Verifies a store: the manifest, the contents of the folder, and every byte of every block file
 * (verify_file.c). A fault does not end the check: it is reported with file, block and offset, and
 * the check continues with the next block or file.
 *
 * Every byte is covered: header, index and closing page are checked when the file is opened, and
 * each block by its checksum. Together they fill the file (slc_reader_open checks that no byte is
 * between them). */
#include "storage/verify/verify_internal.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_FINDINGS = 64 };

/* True if `status` is a failure of the check itself, not a fault of the store. */
static bool is_failure(enum slc_status status)
{
    return status == SLC_ERR_MEMORY || status == SLC_ERR_SYSTEM || status == SLC_ERR_BUDGET ||
           status == SLC_ERR_INTERRUPTED;
}

void slc_verify_report(struct slc_verifier *verifier, const struct slc_error *fault)
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

bool slc_verify_ended(struct slc_verifier *verifier)
{
    struct slc_error err = SLC_ERROR_INIT;

    if (!atomic_load(&verifier->stop) && slc_stop_check(verifier->options->stop, &err) != SLC_OK) {
        slc_verify_report(verifier, &err);
    }
    return atomic_load(&verifier->stop);
}

/* Checks the permutation of a mode; needs memory for its labels. */
static void check_permutation(struct slc_verifier *verifier,
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
        slc_verify_report(verifier, &fault);
    }
    verifier->report.files++;
    verifier->report.bytes += permutation->file_bytes;
}

/* Checks the names of a mode's indices; holds one piece at a time in memory. */
static void check_names(struct slc_verifier *verifier, const struct slc_store_names *names)
{
    struct slc_error fault = SLC_ERROR_INIT;

    verifier->step++;
    if (slc_names_verify(verifier->files, verifier->path, names, &fault) != SLC_OK) {
        slc_verify_report(verifier, &fault);
    }
    verifier->report.files++;
    verifier->report.bytes += names->file_bytes;
}

/* True if `name` is the manifest or is listed in the manifest. */
static bool is_listed(const struct slc_verifier *verifier, const char *name)
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

/* True if an interrupted change of layouts leaves a file with this name: the file or the journal of
 * an unfinished layout, a finished layout that was not listed yet, a manifest that was not
 * published yet, a list of stripes to be added or removed, or the mark of a published conversion.
 * Sets *of to the name and the layout of the file. */
static bool
is_leftover(const struct slc_verifier *verifier, const char *name, struct slc_leftover *of)
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

/* Checks a name in the folder. With a valid manifest, an unlisted name is a finding. Without a
 * valid manifest, block files are recognized by name and checked individually, to show whether the
 * data is intact. */
static void check_name(struct slc_verifier *verifier, const char *name, char kind)
{
    struct slc_leftover leftover;
    size_t length = strlen(name);

    if (!verifier->has_manifest) {
        if (kind == 'f' && length > 4 && strcmp(name + length - 4, ".blk") == 0) {
            slc_verify_file(verifier, name, NULL);
        }
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
        slc_verify_report(verifier, &fault);
        slc_free(path);
    }
}

/* Names in the folder that are not listed in the manifest: the kind of each file and its name,
 * one after another, each with a zero byte at the end. */
struct unlisted {
    const struct slc_verifier *verifier;
    char *names;
    size_t bytes, capacity;
};

static int add_name(void *context, const char *name, char kind)
{
    struct unlisted *unlisted = context;
    const size_t length = strlen(name) + 2;

    if (unlisted->verifier->has_manifest && is_listed(unlisted->verifier, name)) {
        return 0;
    }
    if (unlisted->capacity - unlisted->bytes < length) {
        const size_t capacity = 2 * unlisted->capacity + length;
        char *names = slc_malloc(capacity);

        if (names == NULL) {
            return -ENOMEM;
        }
        if (unlisted->bytes > 0) {
            memcpy(names, unlisted->names, unlisted->bytes);
        }
        slc_free(unlisted->names);
        unlisted->names = names;
        unlisted->capacity = capacity;
    }
    unlisted->names[unlisted->bytes] = kind;
    memcpy(unlisted->names + unlisted->bytes + 1, name, length - 1);
    unlisted->bytes += length;
    return 0;
}

/* Checks the names in the folder, unless the store was replaced or its layouts changed during the
 * check: the names then belong to another state of the store. */
static void check_folder(struct slc_verifier *verifier)
{
    struct unlisted unlisted = {.verifier = verifier};
    int rc =
        verifier->files->list_folder(verifier->files->self, verifier->path, add_name, &unlisted);
    const bool replaced =
        verifier->has_manifest && slc_held_folder_changed(verifier->held, verifier->manifest_path);

    for (size_t at = 0; at < unlisted.bytes && !replaced && !atomic_load(&verifier->stop);
         at += strlen(unlisted.names + at) + 1) {
        check_name(verifier, unlisted.names + at + 1, unlisted.names[at]);
    }
    slc_free(unlisted.names);
    /* A missing folder was already reported as a missing manifest. */
    if (rc < 0 && !replaced && (verifier->has_manifest || (rc != -ENOENT && rc != -ENOTDIR))) {
        struct slc_error fault = SLC_ERROR_INIT;

        verifier->step++;
        if (rc == -ENOMEM) {
            slc_fail(&fault, SLC_ERR_MEMORY, "no memory for listing %s", verifier->path);
        } else {
            slc_fail_errno(&fault, -rc, verifier->path, "listing the store's folder");
        }
        slc_verify_report(verifier, &fault);
    }
}

/* Opens the store's files and reads the manifest; a fault in it is a finding. */
static void check_manifest(struct slc_verifier *verifier)
{
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_file_stat stat = {.bytes = 0};
    const char *path = verifier->manifest_path;

    if (slc_store_hold(verifier->files, verifier->path, &verifier->held, &verifier->manifest,
                       &fault) == SLC_OK) {
        verifier->files = slc_held_folder_files(verifier->held);
        verifier->has_manifest = true;
        verifier->report.files++;
        const int fd = slc_file_open(verifier->files, path, SLC_OPEN_PLAIN);
        const int rc = fd < 0 ? fd : verifier->files->stat_fd(verifier->files->self, fd, &stat);
        if (fd >= 0) {
            (void)verifier->files->close(verifier->files->self, fd);
        }
        if (rc < 0) {
            slc_fail_errno(&fault, -rc, path, "getting the size of the file");
        }
        verifier->report.bytes += stat.bytes;
    }
    if (fault.status != SLC_OK) {
        slc_verify_report(verifier, &fault);
    }
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
    struct slc_verifier *verifier = slc_calloc(1, sizeof *verifier);

    memset(report, 0, sizeof *report);
    SLC_TRY(slc_check_memory(verifier != NULL, err, "for checking %s", path));
    verifier->options = options;
    verifier->files = slc_files_or_system(options->files);
    verifier->path = path;
    verifier->memory_bytes = options->memory_bytes != 0 ? options->memory_bytes : default_memory();
    verifier->max_findings = options->max_findings != 0 ? options->max_findings : DEFAULT_FINDINGS;
    pthread_mutex_init(&verifier->lock, NULL);

    verifier->manifest_path = slc_path_join(path, SLC_MANIFEST_NAME);
    if (verifier->manifest_path != NULL) {
        check_manifest(verifier);
    } else {
        struct slc_error fault = SLC_ERROR_INIT;

        slc_fail(&fault, SLC_ERR_MEMORY, "no memory for a path");
        slc_verify_report(verifier, &fault);
    }
    for (unsigned i = 0; i < verifier->manifest.layout_count && verifier->has_manifest; i++) {
        if (!atomic_load(&verifier->stop)) {
            slc_verify_file(verifier, verifier->manifest.layouts[i].file,
                            &verifier->manifest.layouts[i]);
        }
    }
    for (unsigned i = 0; i < verifier->manifest.permutation_count && verifier->has_manifest; i++) {
        if (!atomic_load(&verifier->stop)) {
            check_permutation(verifier, &verifier->manifest.permutations[i]);
        }
    }
    for (unsigned i = 0; i < verifier->manifest.names_count && verifier->has_manifest; i++) {
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
    slc_held_folder_close(verifier->held);
    slc_free(verifier->manifest_path);
    pthread_mutex_destroy(&verifier->lock);
    slc_free(verifier);
    return status;
}
