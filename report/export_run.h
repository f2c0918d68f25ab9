/*
 * The factors and weights of a finished run, or of a model in memory, in another form. They are
 * streamed from their files: modes may be longer than memory.
 */
#ifndef SLC_REPORT_EXPORT_RUN_H
#define SLC_REPORT_EXPORT_RUN_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_export_run_options {
    const struct slc_files *files;      /* NULL: the operating system */
    const char *run;                    /* folder with mode-1.npy, ..; NULL: */
    const struct slc_model_view *model; /* a model in memory; borrowed */
    const char *store;  /* whose names of indices CSV tells; NULL: of the run's store, if there */
    const char *output; /* as slc_model_write takes it */
    enum slc_model_form form; /* of a folder not SLC_MODEL_NPY, which it is */
    uint64_t memory_bytes;
    bool overwrite;
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    /* Numbers of factors that have been written, of all; NULL: not told. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    /* Called when all is sound and before anything is written, with the paths of the files, which
     * last as long as the call; NULL: nobody is. What it returns ends the export, unless SLC_OK. */
    enum slc_status (*writing)(void *context,
                               unsigned count,
                               const char *const *paths,
                               struct slc_error *err);
    void (*written)(void); /* called at the end, before these paths are gone; NULL: nobody is */
    void *context;         /* of `progress` and `writing` */
};

struct slc_export_run_report {
    unsigned order;
    uint32_t rank;
    uint64_t numbers;      /* of all factors .. */
    uint64_t factor_bytes; /* .. as they lie in their files or in memory */
    char first[4096];      /* path of the first file, cut where it is longer */
};

/*
 * Writes. The weights come last: files beside them are of the same model. After an error nothing is
 * left of what was written, unless files of an earlier model were to be replaced: then its weights
 * are gone. Errors: SLC_ERR_IO where an output is there and options->overwrite is not set;
 * SLC_ERR_BUDGET; those of reading the run and of writing.
 */
enum slc_status slc_export_run(const struct slc_export_run_options *options,
                               struct slc_export_run_report *report,
                               struct slc_error *err) SLC_NODISCARD;

/* Errors: SLC_ERR_IO where something is at `path` that is no file, or is not to be overwritten. */
enum slc_status slc_check_replaceable(const struct slc_files *files,
                                      const char *path,
                                      bool overwrite,
                                      struct slc_error *err) SLC_NODISCARD;

/* All that comes before writing, for a forecast. Errors: those of slc_export_run. */
enum slc_status slc_export_run_judge(const struct slc_export_run_options *options,
                                     struct slc_export_run_report *report,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
