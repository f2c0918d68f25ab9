/*
 * The folder that a factorization leaves: mode-1.npy .. mode-N.npy, lambda.npy and run.json, for
 * whoever goes on with it: the shapes of its factors, its weights, and where its tensor was. A
 * folder of factors from elsewhere is one, too: without run.json it has as many modes as there are
 * files without a gap, and without lambda.npy weights of 1.
 */
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

/* The largest run.json that is read: of some 50,000 iterations. */
#define SLC_RUN_RECORD_MAX_BYTES (UINT64_C(16) << 20)

/* What run.json says of the run, as far as others need it. */
struct slc_run_record {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t content_sum;
    char store[4096];     /* path of the store, as the run was given it */
    char directory[4096]; /* what that path begins at if it is relative; "": not recorded */
    bool named;           /* indices of the store had names */
    char dialect[32];     /* the format of what the store was made of; "": not recorded */
    unsigned index_base;  /* the first index there, 0 or 1 */
};

struct slc_run_folder {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    enum slc_value_type types[SLC_MAX_ORDER]; /* of the factors' numbers */
    uint32_t rank;
    bool weighted; /* it has lambda.npy */
    double lambda[SLC_MAX_RANK];
    bool recorded; /* it has run.json, which `record` is of */
    struct slc_run_record record;
};

/*
 * Reads the text of a run.json. Errors: SLC_ERR_INPUT saying what is wrong with it, SLC_ERR_MEMORY.
 * *record changes only on success.
 */
enum slc_status slc_run_record_parse(const char *text,
                                     size_t bytes,
                                     struct slc_run_record *record,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Reads run.json, the shapes of all factors, and the weights. *run, of some 45 KiB, holds nothing
 * that has to be given back. Errors: SLC_ERR_INPUT where `path` is no such folder or its files do
 * not go together, SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status slc_run_folder_read(const struct slc_files *files,
                                    const char *path,
                                    struct slc_run_folder *run,
                                    struct slc_error *err) SLC_NODISCARD;

/* Whether the folder has a run's record or factors and is no store. Errors: SLC_ERR_IO,
 * SLC_ERR_MEMORY. */
enum slc_status
slc_run_folder_find(const char *path, bool *found, struct slc_error *err) SLC_NODISCARD;

/* The same of a model in memory: its shape and weights. */
void slc_run_folder_of_model(const struct slc_model_view *model, struct slc_run_folder *run);

/* The numbers, from 0, of all components: the heaviest first, of equal ones the lower number. */
void slc_run_folder_by_weight(const struct slc_run_folder *run, uint32_t *components);

/* "FOLDER/mode-K.npy" in fresh memory (slc_free), or NULL without memory; `mode` counts from 0. */
char *slc_run_folder_factor(const char *folder, unsigned mode);

#endif
