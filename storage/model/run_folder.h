/* Reads the folder that a decomposition writes (mode-1.npy .. mode-N.npy, lambda.npy and run.json):
 * the shapes of the factors, the weights, and the path of the tensor. Also accepts factors from
 * another program: without run.json the order is the number of consecutive files, and without
 * lambda.npy all weights are 1. */
#ifndef SLC_STORAGE_RUN_FOLDER_H
#define SLC_STORAGE_RUN_FOLDER_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"
#include "storage/file/files.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of the largest run.json that is read: about 50,000 iterations. */
#define SLC_RUN_RECORD_MAX_BYTES (UINT64_C(16) << 20)

/* The part of run.json that other commands need. */
struct slc_run_record {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t content_sum;
    char store[4096];     /* path of the store as given to the run */
    char directory[4096]; /* folder to which a relative path refers; "" if not recorded */
    bool named;           /* indices of the store had names */
    char dialect[32];     /* format of the store's input; "" if not recorded */
    unsigned index_base;  /* smallest index of that format, 0 or 1 */
    double fit;           /* NaN if not recorded */
    uint32_t iterations;  /* number of completed iterations; 0 if not recorded */
    char reason[16];      /* why the run ended, such as "tol"; "" if not recorded */
    enum slc_loss loss;   /* least squares if not recorded */
    double huber;         /* delta of Huber's loss; 1 if not recorded */
    /* Number of components that are biases; they come last. bias_of: for each of them, in order,
     * the mode of the bias (from 1), or 0 for the mean. */
    unsigned biases;
    unsigned bias_of[SLC_MAX_ORDER + 1];
};

struct slc_run_folder {
    const struct slc_files *files; /* operations for reading the files of the folder */
    /* the folder, whose files stay open; NULL for a model in memory */
    struct slc_held_folder *held;
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    enum slc_value_type types[SLC_MAX_ORDER]; /* types of the factors' numbers */
    uint32_t rank;
    bool weighted; /* lambda.npy exists */
    double lambda[SLC_MAX_RANK];
    bool recorded; /* run.json exists, and `record` is set */
    struct slc_run_record record;
};

/* Parses the text of a run.json. Errors: SLC_ERR_INPUT with the reason, SLC_ERR_MEMORY. *record
 * changes only on success. */
enum slc_status slc_run_record_parse(const char *text,
                                     size_t bytes,
                                     struct slc_run_record *record,
                                     struct slc_error *err) SLC_NODISCARD;

/* Reads run.json, the shapes of all factors, and the weights. *run has about 45 KiB. Read other
 * files of the folder with run->files: they belong to the same run, even if another run replaces
 * them. If `files` is the table of this folder (slc_model_hold), no files are opened again.
 * Ownership: release with slc_run_folder_close, also after an error. Errors: those of
 * slc_model_hold; SLC_ERR_INPUT if `path` is not the folder of a run or its files do not match,
 * SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_run_folder_read(const struct slc_files *files,
                                    const char *path,
                                    struct slc_run_folder *run,
                                    struct slc_error *err) SLC_NODISCARD;

/* Closes the files of the folder. Accepts an all-zero struct. */
void slc_run_folder_close(struct slc_run_folder *run);

/* True if the folder contains the record or factors of a run and is not a store. Errors:
 * SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status
slc_run_folder_find(const char *path, bool *found, struct slc_error *err) SLC_NODISCARD;

/* Returns the model of a run with these factors, which may be read later. Ownership: `run` and
 * `factors` must exist as long as the view. */
struct slc_model_view slc_run_folder_view(const struct slc_run_folder *run,
                                          const struct slc_matrix *factors);

/* Sets shape and weights from a model in memory. */
void slc_run_folder_of_model(const struct slc_model_view *model, struct slc_run_folder *run);

/* Sorts the 0-based numbers of all components by descending |weight|, then by ascending number. */
void slc_run_folder_by_weight(const struct slc_run_folder *run, uint32_t *components);

/* Returns "FOLDER/mode-K.npy", or NULL if out of memory; `mode` is 0-based. Ownership: release with
 * slc_free. */
char *slc_run_folder_factor(const char *folder, unsigned mode);

#endif
