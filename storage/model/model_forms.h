/* Reads the rows of a factor in memory or in a file, for the writers of models (model.h). */
#ifndef SLC_STORAGE_MODEL_FORMS_H
#define SLC_STORAGE_MODEL_FORMS_H

#include "storage/model/model.h"

/* Number of elements of a factor that writers hold at a time; a row with more elements is held as a
 * whole. */
enum { SLC_MODEL_PIECE_NUMBERS = 32 * 1024 };

uint64_t slc_model_length(const struct slc_model_view *model, unsigned mode);
enum slc_value_type slc_model_type(const struct slc_model_view *model, unsigned mode);

/* Copies rows first .. first + count - 1 of a factor to `values`. Errors: those of
 * slc_npy_rows_read. */
enum slc_status slc_model_rows(const struct slc_model_view *model,
                               unsigned mode,
                               uint64_t first,
                               uint64_t count,
                               double *values,
                               struct slc_error *err) SLC_NODISCARD;

/* Opens and closes the file at `path`, which a held folder then keeps open. Sets *found to false if
 * it does not exist. A NULL path means out of memory. Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_model_file_find(const struct slc_files *files,
                                    const char *path,
                                    bool *found,
                                    struct slc_error *err) SLC_NODISCARD;

/* Writes SLC_MODEL_SPLATT, SLC_MODEL_KTENSOR or SLC_MODEL_CSV, independently of the locale. */
enum slc_status slc_model_write_text(const struct slc_files *files,
                                     enum slc_model_form form,
                                     const char *path,
                                     const struct slc_model_view *model,
                                     struct slc_error *err) SLC_NODISCARD;

enum slc_status slc_model_write_matlab(const struct slc_files *files,
                                       const char *path,
                                       const struct slc_model_view *model,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
