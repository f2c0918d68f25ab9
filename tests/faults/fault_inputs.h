/* Inputs of the commands that test_fault_sweep.c sweeps: small, but with several blocks and
 * partitions. */
#ifndef SLC_FAULT_INPUTS_H
#define SLC_FAULT_INPUTS_H

#define CONVERT_COMMITTING                                                                         \
    "convert ../in/t.tns out.slc -t 2 --checkpoint-interval 0.001 --memory 256MiB"
#define CONVERT_REPLACING CONVERT_COMMITTING " -f"
#define CPD_OF            "-r 3 -i 2 --tol 0 --deterministic -t 2 --no-cache "
#define CPD               "cpd ../in/sorted.slc " CPD_OF
#define CPD_METHOD        "cpd -o out --checkpoint-interval 0 " CPD_OF
#define CPD_SAVING        CPD "-o out --checkpoint-interval 0"

/* Arguments of a conversion whose budget is the smallest sufficient one, which depends on the
 * resident memory of the process. */
extern char fault_spilling[256];

/* Creates the inputs in the folder `in` of a new folder, and folders in which commands have
 * stopped, at the first call. Returns the new folder; ends the program on failure. */
const char *fault_inputs(void);

/* Creates the folder `name` with the files that a cpd with checkpoints (`arguments`) leaves if the
 * drive fails during the first iterations. Call fault_inputs before. */
void fault_inputs_left(const char *name, const char *arguments);

#endif
