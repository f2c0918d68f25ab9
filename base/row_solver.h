/* Solvers that update a factor row by row. A solver updates a row from its row of the MTTKRP, or
 * from its nonzeros and the products of the other factors' rows. cpu/row/ has the solvers of
 * sluice; engine/ traverses the rows and calls the solver. A program can supply its own solver.
 *
 * A solver of nonzeros is a state machine, so that the same code solves a row in memory and a row
 * whose nonzeros are read from a drive again and again:
 *
 *     x = row of the factor; memory = 0; traversals = 0
 *     start()
 *     do {
 *         sums = 0; add(piece, sums) for every piece of the row, in key order
 *         traversals = traversals + 1
 *     } while (step(sums) == SLC_ROW_AGAIN)
 *     row of the factor = x
 *
 * Bits: where a row is cut into pieces, which pieces are added to the same sums, and the order in
 * which sums are added depend only on the layout and the rank. Rows therefore have the same bits
 * for any number of threads, any budget and any block size, in memory or streamed. All numbers are
 * f64, and subnormal numbers are flushed to 0 while rows are updated, as far as the processor can.
 *
 * Vectors have slc_row_width(rank) numbers and begin at a multiple of 64 bytes. Numbers after the
 * rank are zero. */
#ifndef SLC_BASE_ROW_SOLVER_H
#define SLC_BASE_ROW_SOLVER_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The input from which a solver updates a row. */
enum slc_row_input { SLC_ROW_MTTKRP, SLC_ROW_NONZEROS };
/* Whether a row is solved after a step or needs another traversal. */
enum slc_row_next { SLC_ROW_DONE, SLC_ROW_AGAIN };

enum {
    /* Maximum number of nonzeros of a piece. */
    SLC_ROW_PIECE = 1024,
    /* Maximum number of numbers in the products of a piece (1 MiB). Pieces of SLC_ROW_PIECE_LEAST
     * nonzeros may exceed it. */
    SLC_ROW_PRODUCTS = 1 << 17,
    SLC_ROW_PIECE_LEAST = 64,
    /* Maximum number of numbers in the products of a piece that is added (16 KiB). Pieces of
     * SLC_ROW_PIECE_LEAST nonzeros may exceed it, too. These products stay in the first-level cache
     * until they have been added. */
    SLC_ROW_ADDED_PRODUCTS = 1 << 11,
    /* Number of measures (slc_row_solver.measure). */
    SLC_ROW_MEASURES = 2
};

/* Returns the length of a vector, which is also the pitch of products: the rank rounded up to a
 * multiple of 8, so that rows fill whole registers of every instruction set. */
static inline uint32_t slc_row_width(uint32_t rank)
{
    return (rank + 7) / 8 * 8;
}

/* Returns the maximum number of nonzeros, a multiple of SLC_ROW_PIECE_LEAST, whose products have at
 * most `numbers` numbers. */
static inline uint32_t slc_row_nnz_of(uint32_t numbers, uint32_t rank)
{
    const uint32_t nnz = numbers / slc_row_width(rank) / SLC_ROW_PIECE_LEAST;

    return nnz >= SLC_ROW_PIECE / SLC_ROW_PIECE_LEAST ? SLC_ROW_PIECE
           : nnz == 0                                 ? SLC_ROW_PIECE_LEAST
                                                      : nnz * SLC_ROW_PIECE_LEAST;
}

/* Returns the maximum number of nonzeros of a piece. */
static inline uint32_t slc_row_piece_nnz(uint32_t rank)
{
    return slc_row_nnz_of(SLC_ROW_PRODUCTS, rank);
}

/* Returns the maximum number of nonzeros of a piece that is added or measured. */
static inline uint32_t slc_row_added_nnz(uint32_t rank)
{
    return slc_row_nnz_of(SLC_ROW_ADDED_PRODUCTS, rank);
}

/* The mode whose rows are updated. Valid from begin to end. */
struct slc_row_mode {
    unsigned order;
    unsigned mode;      /* 0-based */
    unsigned workers;   /* number of threads that call the solver */
    unsigned iteration; /* outer iteration, from 1 */
    uint32_t rank;
    uint64_t rows;
    /* R: weights that are included in the rows; NULL means ones. A row of the normalized factor is
     * x[r] / weights[r]. */
    const double *weights;
    /* R x R: Hadamard product of the Gram matrices of the other modes. NULL for solvers of
     * nonzeros. */
    const double *gram;
    /* R: for each column, the product of the column sums of all other factors. It equals the sum of
     * the products over all cells of a row. NULL for solvers of MTTKRP rows. */
    const double *totals;
};

/* A row that is being updated. */
struct slc_row {
    uint64_t index; /* row of the factor, in the order of the store */
    uint64_t nnz;
    uint32_t traversals; /* number of complete traversals */
    /* true if every traversal reads the drive. A solver should then need few traversals, for
     * example by evaluating all step lengths in one, but must return the same bits. */
    bool streamed;
    double *x;      /* vector; in: start, out: solution */
    double *memory; /* slc_row_solver.memory numbers, zero at the start of a row */
};

/* Consecutive nonzeros of one row, in key order. */
struct slc_row_piece {
    /* 1 to slc_row_piece_nnz(rank), but in `add` and `measure` at most slc_row_added_nnz(rank) */
    uint32_t nnz;
    uint32_t pitch;       /* slc_row_width(rank): numbers from one row of products to the next */
    const double *values; /* nnz */
    /* nnz x pitch: Hadamard products of the rows of all other factors, without weights */
    const double *products;
};

/* The first argument of each function is the `context` of the solver. Functions with a `worker` run
 * concurrently for different workers; the others run alone. Solvers of MTTKRP rows set `solve`,
 * solvers of nonzeros set `sums`, `memory`, `add` and `step`. Optional functions may be NULL. */
struct slc_row_solver {
    const char *name;
    enum slc_row_input input;
    void *context;

    /* Optional. Starts the update of a mode. Called again when an update that was interrupted
     * continues: statistics then cover the remaining rows only. Must not allocate memory. */
    enum slc_status (*begin)(void *context, const struct slc_row_mode *mode, struct slc_error *err);

    /* Updates rows [first, first + count). `mttkrp` and `rows` have count x pitch numbers. In:
     * `rows` are the rows of the factor, with weights; out: the solution. A row must not depend on
     * the other rows of the call. */
    enum slc_status (*solve)(void *context,
                             unsigned worker,
                             uint64_t first,
                             uint64_t count,
                             uint32_t pitch,
                             const double *mttkrp,
                             double *rows,
                             struct slc_error *err);

    /* Return the maximum length of `sums` in add and step, and the length of slc_row.memory. */
    uint64_t (*sums)(void *context, uint32_t rank);
    uint64_t (*memory)(void *context, uint32_t rank);

    /* Optional. Prepares x and memory of a row before its first traversal. */
    void (*start)(void *context, unsigned worker, struct slc_row *row);

    /* Adds the piece's sums to `sums`. Workers may call this concurrently for pieces of the same
     * row, each with its own `sums`. */
    void (*add)(void *context,
                unsigned worker,
                const struct slc_row *row,
                const struct slc_row_piece *piece,
                double *sums);

    /* Uses the sums of a complete traversal. */
    enum slc_row_next (*step)(void *context,
                              unsigned worker,
                              struct slc_row *row,
                              const double *sums);

    /* Optional. Solves a row that is a single piece, instead of add and step, after start. */
    void (*whole)(void *context,
                  unsigned worker,
                  struct slc_row *row,
                  const struct slc_row_piece *piece);

    /* Optional. Adds measures of the row x, which may have been rounded to the type of the factor.
     * measures[0]: the objective without penalties; measures[1]: sum of |value - model| over the
     * nonzeros. Called for every piece, then once with `piece` NULL for the part of the objective
     * that does not depend on the nonzeros of the row. `row->memory` may be NULL. */
    void (*measure)(void *context,
                    unsigned worker,
                    const struct slc_row *row,
                    const struct slc_row_piece *piece,
                    double measures[SLC_ROW_MEASURES]);

    /* Optional. Ends the update of a mode; statistics of the solver are then complete. */
    void (*end)(void *context);
};

#endif
