/* Exports the factors and weights of a run folder or of a model in memory in another form. Factors
 * are read from their files in small parts, so factors may be larger than memory. */
#ifndef SLC_REPORT_EXPORT_RUN_H
#define SLC_REPORT_EXPORT_RUN_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_export_run_options {
    const struct slc_files *files;      /* NULL means the operating system */
    const char *run;                    /* folder with mode-1.npy, ..; NULL means `model` */
    const struct slc_model_view *model; /* model in memory; borrowed */
    /* store with names of indices for CSV; NULL means the run's store, if it exists */
    const char *store;
    const char *output; /* file or folder, see slc_model_write */
    /* must not be SLC_MODEL_NPY if `run` is a folder, because a folder already has this form */
    enum slc_model_form form;
    uint64_t memory_bytes;
    bool overwrite;
    bool raw_names; /* see struct slc_model_view */
    /* request to stop the export with SLC_ERR_INTERRUPTED; may be NULL */
    const struct slc_stop *stop;
    /* Called with the numbers of factors written so far and in total; NULL means no callback. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    /* Called after all checks and before anything is written, with the paths of the files, which
     * are valid during the export; NULL means no callback. A status other than SLC_OK ends the
     * export. */
    enum slc_status (*writing)(void *context,
                               unsigned count,
                               const char *const *paths,
                               struct slc_error *err);
    void (*written)(void); /* called after the last write, while the paths are valid; may be NULL */
    void *context;         /* passed to `progress` and `writing` */
};

struct slc_export_run_report {
    unsigned order;
    uint32_t rank;
    uint64_t numbers;      /* number of elements of all factors */
    uint64_t factor_bytes; /* size of all factors in their files or in memory */
    char first[4096];      /* path of the first file; a path that is too long is cut */
};

/* Exports a model. Writes the weights last: if the weights exist, all files next to them belong to
 * the same model. After an error all new files are removed. If the export was replacing an earlier
 * model, the weights of the earlier model stay removed. Errors: SLC_ERR_IO if an output exists and
 * options->overwrite is false, or if an output is a folder or a device; SLC_ERR_BUDGET; those of
 * reading the run and of writing. */
enum slc_status slc_export_run(const struct slc_export_run_options *options,
                               struct slc_export_run_report *report,
                               struct slc_error *err) SLC_NODISCARD;

/* Checks whether a file can be written at `path`. Errors: SLC_ERR_IO if a file exists there and
 * `overwrite` is false, or if there is a folder or a device. */
enum slc_status slc_check_replaceable(const struct slc_files *files,
                                      const char *path,
                                      bool overwrite,
                                      struct slc_error *err) SLC_NODISCARD;

/* Does the steps of slc_export_run that precede the first write, for a forecast. Errors: those of
 * slc_export_run. */
enum slc_status slc_export_run_prepare(const struct slc_export_run_options *options,
                                       struct slc_export_run_report *report,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
