/*
 * Where the results of a factorization go: a folder of .npy (the default), SPLATT text, a ktensor
 * file, any of them together, and run.json beside each kind's first file.
 */
#ifndef SLC_TOOLS_CPD_OUTPUT_H
#define SLC_TOOLS_CPD_OUTPUT_H

#include "tools/progress/log_json.h"
#include "tools/report/run_json.h"

#include <stdbool.h>

enum { CPD_OUTPUT_PLACES = 3 };

struct cpd_output {
    char folder[1024];          /* of .npy; "" for none */
    const char *stem;           /* of SPLATT text; NULL for none */
    const char *ktensor;        /* file; NULL for none */
    char run_path[1024 + 16];   /* run.json; "" when nothing is written */
    char checkpoint[1024 + 16]; /* folder; "" for none */
    bool own_checkpoint;        /* it is for nothing else, and named after the results */

    /* Of cpd_output_lock: a folder for each kind of result that has none of its own. */
    struct cpd_output_place {
        char folder[1024 + 16];
        int fd;    /* -1: not locked */
        bool made; /* by this run */
    } places[CPD_OUTPUT_PLACES];
};

/* What the options name; any of them but the last may be NULL. */
struct cpd_output_names {
    const char *folder, *stem, *ktensor;
    bool nowrite;
    const char *checkpoint; /* "auto": beside the results; "none"; or a folder */
};

/* The store's name without folders and ".slc", `length` bytes, 512 at most; borrowed. */
const char *cpd_output_store_name(const char *store_path, int *length);

/* Whether a folder of results can be made or used at `path`. Errors: as cpd_output_choose. */
enum slc_status cpd_output_check_folder(const char *path, struct slc_error *err) SLC_NODISCARD;

/*
 * Decides what is written from the options (without any of
 * them the folder NAME.rR in the current one, NAME that of the store), and checks that it can be
 * written, so that a long run is not lost at its end. Errors: SLC_ERR_IO, SLC_ERR_USAGE.
 */
enum slc_status cpd_output_choose(struct cpd_output *output,
                                  const char *store_path,
                                  unsigned rank,
                                  const struct cpd_output_names *names,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Keeps other runs from writing the same results until cpd_output_unlock: locks the folder of the
 * factors, STEMcheckpoint and KTENSOR.checkpoint, which are made where they are missing, but for
 * the one that is the folder `checkpoint` (or NULL), which is locked already. Errors: SLC_ERR_IO.
 */
enum slc_status cpd_output_lock(struct cpd_output *output,
                                const char *checkpoint,
                                struct slc_error *err) SLC_NODISCARD;
/* Says on standard error whose results are there already and will be replaced at the end. */
void cpd_output_tell_replaced(const struct cpd_output *output);
/* Takes what cpd_output_choose has filled in, locked or not, and all zero. */
void cpd_output_unlock(struct cpd_output *output);

/* Writes the model in every form chosen, and run.json; each is told to `log`. */
enum slc_status cpd_output_write(const struct cpd_output *output,
                                 const struct run_record *record,
                                 struct log_json *log,
                                 struct slc_error *err) SLC_NODISCARD;

/* Lines of the report that name the files. */
void cpd_output_report(const struct cpd_output *output);

#endif
