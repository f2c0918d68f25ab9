/* How `sluice cpd` keeps and takes up checkpoints, and what it says of them. */
#ifndef SLC_TOOLS_CPD_CHECKPOINT_H
#define SLC_TOOLS_CPD_CHECKPOINT_H

#include "engine/solve/cp_als.h"
#include "tools/progress/log_json.h"

#include <jansson.h>
#include <stdbool.h>

struct cpd_checkpoint {
    struct slc_checkpoint *file; /* NULL: none is kept */
    const char *folder;
    bool own_folder;       /* it is for nothing else, and named after the results */
    double seconds_before; /* of the runs that this one goes on from */
    unsigned iteration;    /* where the last one goes on, from 1; 0: there is none */
    unsigned mode;         /* the same, 0-based */
};

/* "auto", or seconds: -1 or these. Errors: SLC_ERR_USAGE. */
enum slc_status
cpd_checkpoint_interval(const char *text, double *seconds, struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the checkpoint in `folder`, NULL or "" for none, and says on standard error where one of
 * its generations is damaged. Owns: cpd_checkpoint_close. Errors: those of slc_checkpoint_open.
 */
enum slc_status cpd_checkpoint_open(struct cpd_checkpoint *checkpoint,
                                    const char *folder,
                                    bool own_folder,
                                    bool restart,
                                    struct slc_error *err) SLC_NODISCARD;
/* The order in which the run that it is of updates its `order` modes; false where there is none. */
bool cpd_checkpoint_order(const struct cpd_checkpoint *checkpoint, unsigned order, unsigned *modes);
void cpd_checkpoint_close(struct cpd_checkpoint *checkpoint);

/* Removes it, once the results of a run that is through have been written. Errors: SLC_ERR_IO. */
enum slc_status cpd_checkpoint_remove(struct cpd_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/* What the solver calls; the iterations before go to `iterations`. */
void cpd_checkpoint_resumed(struct cpd_checkpoint *checkpoint,
                            const struct slc_cp_resume *resume,
                            unsigned order,
                            json_t *iterations,
                            struct log_json *log,
                            bool quiet);
void cpd_checkpoint_written(struct cpd_checkpoint *checkpoint,
                            const struct slc_cp_checkpointed *written,
                            struct log_json *log);

/* Where the same command line goes on from, on standard error; after an end that was not one. */
void cpd_checkpoint_tell(const struct cpd_checkpoint *checkpoint);

#endif
