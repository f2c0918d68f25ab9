/*
 * Estimates the number of distinct items in a file, from pieces all over it.
 *
 * The pieces, not the items, are the sampling units: repetitions within a piece say nothing about
 * the rest, because files are sorted and grown in many ways. Q_j items occur in j of the pieces.
 * With more pieces, new items appear at the rate Q_1 per piece drawn, which falls as Q_2, Q_3 ..
 * indicate: [Good1956]. Their series diverges if
 * the file is more than twice the sample. The model used here is R. A. Fisher's negative binomial
 * one, in the form of B. Efron and R. Thisted, "Estimating the number of unseen species: How many
 * words did Shakespeare know?", Biometrika 63, 1976, section 3. With the file x + 1 times the
 * sample,
 *
 *     unseen(x) = Q_1 ((1 + u x)^(1 - a / u) - 1) / (u - a)
 *     Q_(j+1) / Q_j = (a + u (j - 1)) / (j + 1).
 *
 * a = 0: items are always new (unseen = Q_1 x); u = 0: equally likely items, some of them unseen
 * (the estimator of [Chao1984] as x grows); u = 1: items grow by a power of the length, like words
 * in texts. a and u maximize the likelihood; `least` and `most` are the extremes over all pairs
 * that are nearly as likely.
 *
 * If pieces are neighbours, as at the beginning of a file that cannot be read elsewhere, items that
 * stay close to their first occurrence are in several pieces and would seem to be all there are.
 * The new items of the second half are therefore compared with the prediction of the model; if
 * there are far more, new items are assumed to continue at the observed rate.
 *
 * The first item of a piece may belong to a run that started before it, as in a sorted file. Such
 * an item is seen, but not counted as new there, so that a run counts once, where it starts.
 */
#ifndef SLC_CONVERT_SPECIES_ESTIMATE_H
#define SLC_CONVERT_SPECIES_ESTIMATE_H

#include "base/error/error.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Items kept, those with the smallest hashes: the standard error of their number is 0.7 %. */
    SLC_SPECIES_KEPT_MAX = 1 << 14,
    SLC_SPECIES_SLOTS = 2 * SLC_SPECIES_KEPT_MAX
};

struct slc_species_slot;

struct slc_species {
    struct slc_buffer memory;
    struct slc_species_slot *slots;
    uint64_t limit; /* larger hashes are not kept: 2^(64 - halvings) - 1 */
    unsigned halvings;
    uint32_t kept;
    uint16_t pieces;
    bool carries;     /* the first item of the piece may have started before it */
    bool opening;     /* the piece is still empty */
    uint64_t carried; /* hash of the first item */
};

/* Items of the file from which the pieces were drawn. */
struct slc_species_estimate {
    double seen;           /* in the sample */
    double count;          /* in the whole file */
    double least, most;    /* bounds that are nearly as likely */
    double bytes_each;     /* of the items seen, on average */
    double new_bytes_each; /* of the items in one piece only, which resemble the unseen ones most */
};

/* Owns: slc_species_destroy, which accepts an all-zero struct. Errors: SLC_ERR_MEMORY (512 KiB). */
enum slc_status slc_species_create(struct slc_species *species,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_species_destroy(struct slc_species *species);

/* Starts the next piece, at most 65,535 of them; `whole`: its first item starts in it. */
void slc_species_piece(struct slc_species *species, bool whole);

/* Adds an item by a hash with uniform bits and its length, at most 65,535. */
void slc_species_add(struct slc_species *species, uint64_t hash, uint64_t bytes);

/* Estimates the items of the file; `times`: its length over that of all pieces, at least 1. */
void slc_species_extrapolate(const struct slc_species *species,
                             double times,
                             struct slc_species_estimate *estimate);

#endif
