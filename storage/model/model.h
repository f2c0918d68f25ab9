/* Models on disk: a folder of factors (mode-1.npy .. mode-N.npy, lambda.npy), SPLATT text
 * (mode1.mat .. , lambda.mat), ktensor text, CSV and MATLAB's .mat. Text formats have 17
 * significant digits, so no bit of an f64 is lost. */
#ifndef SLC_STORAGE_MODEL_H
#define SLC_STORAGE_MODEL_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/loss.h"
#include "base/matrix.h"
#include "base/memory/limits.h"
#include "storage/file/held_folder.h"
#include "storage/manifest/names.h"
#include "storage/model/npy.h"

#include <stdbool.h>
#include <stdint.h>

/* Callbacks for writing a model. `progress` counts elements of factors. */
struct slc_model_work {
    /* request to stop, which results in SLC_ERR_INTERRUPTED; may be NULL */
    const struct slc_stop *stop;
    void (*progress)(void *context,
                     const char *phase,
                     uint64_t done,
                     uint64_t total); /* may be NULL */
    void *context;
    uint64_t done, total;
};

/* A Kruskal tensor: sum over r of lambda[r] times the outer product of columns r. Borrowed. */
struct slc_model_view {
    unsigned order;
    uint32_t rank;
    const struct slc_matrix *factors[SLC_MAX_ORDER]; /* dims[n] x rank; NULL if in `files` */
    /* Factors that are not in memory; not for SLC_MODEL_NPY. */
    struct slc_npy_rows *files[SLC_MAX_ORDER];
    const double *lambda; /* `rank` weights */
    enum slc_loss loss; /* loss that the model minimizes, which defines the meaning of its values */
    double huber;       /* delta of Huber's loss */
    struct slc_names *names[SLC_MAX_ORDER]; /* names of indices, written to CSV; NULL if none */
    bool raw_names; /* names that spreadsheets run as formulas get no apostrophe in CSV */
    struct slc_model_work *work; /* callbacks of text formats and MATLAB; may be NULL */
};

enum slc_model_form {
    SLC_MODEL_NPY,
    SLC_MODEL_SPLATT,
    SLC_MODEL_KTENSOR,
    SLC_MODEL_CSV,
    SLC_MODEL_MATLAB
};

/* Writes a model. NPY and CSV write mode-K and lambda files to the folder `path`, which is created
 * if missing. A CSV file has a header row, then a row for each row of the factor: its 1-based
 * index, the name of the index in double quotes if the mode has names, and the numbers. Unless
 * `raw_names` is set, an apostrophe precedes a name that is not a number and that starts with any
 * number of apostrophes, then `=`, `+`, `-`, `@`, a tab or a carriage return. Removing the first
 * apostrophe of such a field restores the name. SPLATT writes PATHmodeN.mat and PATHlambda.mat
 * (`path` is a stem, as with SPLATT's -s). KTENSOR writes one file `path`. MATLAB writes one file
 * `path` of version 5 with a variable `model`, a struct of `lambda` (rank x 1) and `U` (a cell of
 * the factors). Each file is replaced atomically, lambda last.
 * Memory: a file buffer and at most SLC_MODEL_WORK_BYTES, which MATLAB needs.
 * Errors: also SLC_ERR_UNSUPPORTED if a model exceeds the 2 GiB of a MATLAB variable. */
enum slc_status slc_model_write(const struct slc_files *files,
                                enum slc_model_form form,
                                const char *path,
                                const struct slc_model_view *model,
                                struct slc_error *err) SLC_NODISCARD;

/* Memory for writing a model of the largest rank, in addition to a struct slc_output. */
#define SLC_MODEL_WORK_BYTES (UINT64_C(640) << 10)

/* slc_model_files returns the number of files of a model, slc_model_path the path of each file:
 * modes first, then lambda. The path is NULL if out of memory. Ownership: release with slc_free. */
unsigned slc_model_files(enum slc_model_form form, unsigned order);
char *slc_model_path(enum slc_model_form form, const char *path, unsigned order, unsigned file);

/* Reads mode-K.npy, dims[K] x rank, for every mode except `skip_mode` (SLC_MAX_ORDER skips none)
 * from a folder. If *rank is 0, sets it to the rank of the first file. Ownership: the caller
 * destroys factors[0..N-1] (also after an error; factors that were not read are all-zero). */
enum slc_status slc_model_read(const struct slc_files *files,
                               const char *folder,
                               enum slc_value_type type,
                               unsigned order,
                               const uint64_t *dims,
                               unsigned skip_mode,
                               uint32_t *rank,
                               struct slc_matrix *factors,
                               struct slc_error *err) SLC_NODISCARD;

/* Opens the folder of a model, and its files run.json, lambda.npy, mode-1.npy and so on, which stay
 * open; read them through the folder's table, so that all of them belong to one model. Missing
 * files are no error. If another run replaces the files meanwhile, starts again. Ownership: release
 * with slc_held_folder_close. Errors: SLC_ERR_IO, also if the run that replaces the files has not
 * yet written all of them; SLC_ERR_MEMORY. */
enum slc_status slc_model_hold(const struct slc_files *files,
                               const char *folder,
                               struct slc_held_folder **held,
                               struct slc_error *err) SLC_NODISCARD;

/* Hashes the files mode-1.npy .. of a folder in order, each preceded by its size. Checks the shapes
 * first, like slc_model_read, so that a file of the wrong size is not read. Errors: those of
 * slc_model_read. */
enum slc_status slc_model_hash(const struct slc_files *files,
                               const char *folder,
                               unsigned order,
                               const uint64_t *dims,
                               uint32_t rank,
                               uint64_t *hash,
                               struct slc_error *err) SLC_NODISCARD;

/* Returns the value of the model at index[n] of each mode n; the factors must be in memory. Math:
 * sum over r of lambda[r] * A1(i1, r) * .. * AN(iN, r), factors multiplied in the order of modes,
 * summed over r in f64. Order: deterministic. Cost: N * R. */
double slc_model_value(const struct slc_model_view *model, const uint64_t *index);

/* Reads lambda.npy of a folder into `lambda` (rank doubles); *found is false if the file does not
 * exist. */
enum slc_status slc_model_read_lambda(const struct slc_files *files,
                                      const char *folder,
                                      uint32_t rank,
                                      double *lambda,
                                      bool *found,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
