/*
 * Sharing work between the CPU and one device with memory of its own ([XPLAT] section 3.3): the
 * request, the measured rates of both sides, and the fraction of the work that the device gets.
 */
#ifndef SLC_ENGINE_HYBRID_H
#define SLC_ENGINE_HYBRID_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_hybrid_kind {
    SLC_HYBRID_NONE,   /* all work on the device */
    SLC_HYBRID_STATIC, /* a fixed fraction of the nonzeros on the device */
    /* The first pass starts as a queue. Its measurements determine how the rest of the pass, and
     * the start of the next pass, are divided. */
    SLC_HYBRID_ADAPTIVE,
    /* The device processes blocks from the largest down, the CPU from the smallest up, until they
     * meet. */
    SLC_HYBRID_QUEUE
};

/* A trial of an idle side is skipped if it would cost more than this many passes. */
enum { SLC_HYBRID_TRIAL_COST = 3 };

enum slc_hybrid_side { SLC_HYBRID_CPU, SLC_HYBRID_GPU, SLC_HYBRID_PARTS };

/* The requested division of the work. */
struct slc_hybrid_wish {
    enum slc_hybrid_kind kind;
    double fraction; /* STATIC: fraction of the nonzeros for the device, 0 .. 1 */
};

struct slc_hybrid_text {
    char text[32];
};

/*
 * True if `text` starts with one of the words that slc_hybrid_parse accepts; the rest is not
 * checked.
 */
bool slc_hybrid_is_split(const char *text);
/* Parses "static=F" with F from 0 to 1, "adaptive" or "queue". Errors: SLC_ERR_USAGE, listing the
 * accepted forms. */
enum slc_status slc_hybrid_parse(const char *text,
                                 struct slc_hybrid_wish *wish,
                                 struct slc_error *err) SLC_NODISCARD;
/*
 * The inverse of slc_hybrid_parse: returns out->text, for example "static=0.7", or "none" if
 * nothing is shared.
 */
const char *slc_hybrid_name(const struct slc_hybrid_wish *wish, struct slc_hybrid_text *out);
const char *slc_hybrid_kind_name(enum slc_hybrid_kind kind); /* "none", "static", .. */

/* Work that one side has done, and the time it needed. */
struct slc_hybrid_part {
    uint64_t nnz;
    double seconds; /* time from the start of a pass until the side ran out of work */
};

/* Measured rates of both sides for one kind of pass, such as passes over one mode. Initially zero.
 * The last measurement has the same weight as all earlier measurements together. */
struct slc_hybrid_rates {
    double nnz[SLC_HYBRID_PARTS];
    double seconds[SLC_HYBRID_PARTS];
};
/* Records the work of a side; ignores a side without work. */
void slc_hybrid_rates_record(struct slc_hybrid_rates *rates,
                             enum slc_hybrid_side side,
                             const struct slc_hybrid_part *part);
/* Nonzeros per second; 0 if unknown. */
double slc_hybrid_rate(const struct slc_hybrid_rates *rates, enum slc_hybrid_side side);
/*
 * Returns the device's fraction of the work with which both sides would finish together; negative
 * if a rate is unknown.
 */
double slc_hybrid_rates_fraction(const struct slc_hybrid_rates *rates);

/* Accumulated measurements of passes over one mode. Initially zero except for the wish. */
struct slc_hybrid {
    struct slc_hybrid_wish wish;
    struct slc_hybrid_rates rates;
    /* Cost of the CPU's part in addition to computing its blocks: preparing it and adding its
     * output to the device's. 0: not measured. */
    double cost_seconds;
    uint64_t passes;       /* complete passes */
    uint64_t passes_alone; /* number of these in which the device worked alone */
    struct slc_hybrid_part parts[SLC_HYBRID_PARTS]; /* work of each side, summed over all passes */
    struct slc_hybrid_part last[SLC_HYBRID_PARTS];  /* work of each side in the last pass */
};

/* Records the cost of the CPU's part of a pass; see cost_seconds. */
void slc_hybrid_record_cost(struct slc_hybrid *hybrid, double seconds);
/* True if a side without work in the last passes is due for another trial, which happens after 1,
 * 4, 16, .. passes. */
bool slc_hybrid_tries_again(const struct slc_hybrid *hybrid);
/*
 * True if an adaptive split leaves the CPU out of the next pass: the device alone is expected to
 * finish sooner than both sides together, including the cost of the CPU's part. The CPU is tried
 * again now and then, unless a trial would cost more than SLC_HYBRID_TRIAL_COST times the pass.
 */
bool slc_hybrid_without_cpu(const struct slc_hybrid *hybrid);
/*
 * Returns the device's fraction at the start of the next pass; negative if both sides share a
 * queue.
 */
double slc_hybrid_planned(const struct slc_hybrid *hybrid);
/* Records the work of both sides in a complete pass. */
void slc_hybrid_record(struct slc_hybrid *hybrid,
                       const struct slc_hybrid_part parts[SLC_HYBRID_PARTS]);
/* The device's fraction of the nonzeros of two parts; negative if both are empty. */
double slc_hybrid_fraction(const struct slc_hybrid_part parts[SLC_HYBRID_PARTS]);

#endif
