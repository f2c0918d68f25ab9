/*
 * Models on disk: a folder of factors (mode-1.npy .. mode-N.npy, lambda.npy), SPLATT text
 * (mode1.mat .. , lambda.mat), ktensor text, CSV and MATLAB's .mat. Text forms carry 17 significant
 * digits: no bit of an f64 is lost.
 */
#ifndef SLC_STORAGE_MODEL_H
#define SLC_STORAGE_MODEL_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/matrix.h"
#include "base/memory/limits.h"
#include "storage/file/files.h"
#include "storage/manifest/names.h"
#include "storage/model/npy.h"

#include <stdbool.h>
#include <stdint.h>

/* How far the writing of a model has come, in numbers of its factors, and what may end it. */
struct slc_model_work {
    const struct slc_stop *stop; /* SLC_ERR_INTERRUPTED; may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
    void *context;
    uint64_t done, total;
};

/* A Kruskal tensor: sum over r of lambda[r] times the outer product of columns r. Borrowed parts.
 */
struct slc_model_view {
    unsigned order;
    uint32_t rank;
    const struct slc_matrix *factors[SLC_MAX_ORDER]; /* dims[n] x rank; NULL: in `files` */
    struct slc_npy_rows *files[SLC_MAX_ORDER];       /* open ones, where factors are not in memory;
                                                        not for SLC_MODEL_NPY */
    const double *lambda;                            /* rank */
    struct slc_names *names[SLC_MAX_ORDER];          /* of indices, which CSV tells; NULL: none */
    struct slc_model_work *work;                     /* of text forms and MATLAB's; may be NULL */
};

enum slc_model_form {
    SLC_MODEL_NPY,
    SLC_MODEL_SPLATT,
    SLC_MODEL_KTENSOR,
    SLC_MODEL_CSV,
    SLC_MODEL_MATLAB
};

/*
 * NPY: files in the folder `path`, created if missing. SPLATT: files PATHmodeN.mat, PATHlambda.mat
 * (`path` is a stem, as -s). KTENSOR: one file `path`. CSV: mode-K.csv and lambda.csv in the folder
 * `path`, which is created if missing, with a line of names and then a row each: its index from 1,
 * its name in double quotes where indices of the mode have names, its numbers. MATLAB: one file
 * `path` of version 5 with a variable `model`, a struct of `lambda` (rank x 1) and `U` (a cell of
 * the factors). Each file is replaced atomically, that of lambda last. Besides the buffer of a file
 * MATLAB takes SLC_MODEL_WORK_BYTES, the others less. Errors: SLC_ERR_UNSUPPORTED where a model is
 * larger than the 2 GiB that a variable of that version holds.
 */
enum slc_status slc_model_write(const struct slc_files *files,
                                enum slc_model_form form,
                                const char *path,
                                const struct slc_model_view *model,
                                struct slc_error *err) SLC_NODISCARD;

/* Memory that writing takes besides a struct slc_output, at the largest rank. */
#define SLC_MODEL_WORK_BYTES (UINT64_C(640) << 10)

/* How many files that makes, and the path of each in fresh memory (slc_free), NULL without memory:
 * those of the modes, then that of lambda. */
unsigned slc_model_files(enum slc_model_form form, unsigned order);
char *slc_model_path(enum slc_model_form form, const char *path, unsigned order, unsigned file);

/*
 * Reads mode-K.npy for every mode except `skip_mode` (SLC_MAX_ORDER: none) from a folder, each
 * dims[K] x rank; rank 0 takes the rank of the first file. Owns: the caller destroys
 * factors[0..N-1] (also after an error; unread ones are all-zero).
 */
enum slc_status slc_model_read(const struct slc_files *files,
                               const char *folder,
                               enum slc_value_type type,
                               unsigned order,
                               const uint64_t *dims,
                               unsigned skip_mode,
                               uint32_t *rank,
                               struct slc_matrix *factors,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * The hash of the files mode-1.npy .. of a folder, one behind the other, each with its length
 * before it. They have the shapes of slc_model_read, which is seen to first: a file of another
 * length is not read through. Errors: those of reading them.
 */
enum slc_status slc_model_hash(const struct slc_files *files,
                               const char *folder,
                               unsigned order,
                               const uint64_t *dims,
                               uint32_t rank,
                               uint64_t *hash,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * The value at index[n] of each mode n, within the model, whose factors are in memory, f32 or f64.
 * Math: sum over r of lambda[r] * A1(i1, r) * .. * AN(iN, r), the factors in the order of modes,
 * added up by r in f64. Order: the same bits for the same numbers. Cost: N * R.
 */
double slc_model_value(const struct slc_model_view *model, const uint64_t *index);

/* lambda.npy of a folder, if it has one: *found says so, and `lambda` (rank doubles) is filled. */
enum slc_status slc_model_read_lambda(const struct slc_files *files,
                                      const char *folder,
                                      uint32_t rank,
                                      double *lambda,
                                      bool *found,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
