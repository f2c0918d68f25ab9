/* Row solvers of the caller: functions of a program that update the factors of a decomposition row
 * by row, from the nonzeros of each row. sluice streams the nonzeros and passes their values and
 * products to the functions. sluice/sluice.h does not include this header, which may still change
 * incompatibly before version 1.
 *
 * A row x of the factor of mode n is updated by traversals over the row's nonzeros, in pieces:
 *
 *     x = row of the factor; memory = 0; traversals = 0
 *     start(row)
 *     do {
 *         sums = 0; add(row, piece, sums) for every piece of the row, in a fixed order
 *         traversals = traversals + 1
 *     } while (step(row, sums) != 0)
 *     row of the factor = x
 *
 * The model at a nonzero of the row is the inner product of x and the products of the nonzero: the
 * elementwise product of the rows of all other factors. For example, weighted least squares adds
 * w p p^T and w v p of each nonzero to the sums (weight w, products p, value v), and its step
 * solves an R x R system; a gradient step needs R sums.
 *
 * Rows are independent and may be updated at the same time. Usually all traversals of a row run
 * while its nonzeros are in memory; `streamed` is 1 if each traversal reads the drive. Threads may
 * compute sums of different pieces of a row; sluice adds these sums in a fixed order. Therefore the
 * result has the same bits for any number of threads and any budget if the functions depend only on
 * their arguments. */
#ifndef SLUICE_ROW_SOLVER_H
#define SLUICE_ROW_SOLVER_H

#include "sluice/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The mode whose rows are updated next. */
struct sluice_row_mode {
    uint32_t order, mode; /* order of the tensor; mode, from 0 */
    uint32_t rank;        /* R, including components that the run adds */
    uint32_t workers;     /* threads that call the functions */
    uint32_t iteration;   /* number of the iteration, from 1 */
    uint64_t rows;
};

/* A row that is being updated. */
struct sluice_row {
    uint64_t index; /* row of the factor, in the order of the store */
    uint64_t nnz;   /* nonzeros of the row; may be 0 */
    uint32_t rank;
    uint32_t traversals; /* complete traversals of the row */
    uint32_t streamed;   /* 1 if each traversal of the row reads the drive, otherwise 0 */
    double *x;           /* R numbers: the row of the factor; `step` must leave finite numbers */
    double *memory;      /* numbers that the row keeps, zero before its first traversal */
};

/* Nonzeros of one row. */
struct sluice_row_piece {
    uint32_t nnz;           /* number of nonzeros, 1 to 1024 */
    uint32_t pitch;         /* length of a row of `products`, at least R */
    const double *values;   /* nnz numbers */
    const double *products; /* nnz x pitch; the first R of a row are the products of a nonzero */
};

/* A row solver. Functions that process a row may be called from several threads at the same time;
 * `worker` is the number of the calling worker, from 0. Every function gets `context`. Functions
 * that may be NULL are marked optional. */
struct sluice_row_solver {
    uint64_t struct_bytes;
    /* Name of the method and its parameters, 1 to 63 bytes. A checkpoint is only resumed by a
     * solver with the same name. */
    const char *name;
    void *context;
    /* Returns the number of sums of a traversal, at least 1. */
    uint64_t (*sums)(void *context, uint32_t rank);
    /* Optional. Returns how many numbers a row keeps between traversals; NULL means that a row
     * keeps no numbers. */
    uint64_t (*memory)(void *context, uint32_t rank);
    /* Optional. Called before the rows of a mode are updated. A value other than 0 ends the run
     * with SLUICE_ERR_USAGE. */
    int (*begin)(void *context, const struct sluice_row_mode *mode);
    /* Optional. Prepares x and the memory of a row before its first traversal. */
    void (*start)(void *context, uint32_t worker, struct sluice_row *row);
    /* Adds the nonzeros of a piece to the sums of a traversal. Must not change the row. Several
     * workers may call this function for the same row, each with its own sums. */
    void (*add)(void *context,
                uint32_t worker,
                const struct sluice_row *row,
                const struct sluice_row_piece *piece,
                double *sums);
    /* Uses the sums of a traversal. Returns 0 if the row is done, otherwise 1: another traversal
     * follows. */
    int (*step)(void *context, uint32_t worker, struct sluice_row *row, const double *sums);
    /* Optional. Returns what the nonzeros of a piece add to the objective, with the row's x. NULL
     * means the squares of their residuals. */
    double (*objective)(void *context,
                        uint32_t worker,
                        const struct sluice_row *row,
                        const struct sluice_row_piece *piece);
};

#ifdef __cplusplus
}
#endif
#endif
