/*
 * How work is shared between the CPU and one device that has memory of its own (XPLAT section 3.3):
 * what is asked for, what each side has been seen to do, and what fraction that gives the device.
 */
#ifndef SLC_ENGINE_HYBRID_H
#define SLC_ENGINE_HYBRID_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_hybrid_kind {
    SLC_HYBRID_NONE,   /* the device does all */
    SLC_HYBRID_STATIC, /* a fixed fraction of the nonzeros is the device's */
    /* The first pass begins as a queue; what it measures divides the rest and begins the next. */
    SLC_HYBRID_ADAPTIVE,
    /* The device takes the largest blocks, the CPU the smallest, until they meet. */
    SLC_HYBRID_QUEUE
};

/* A trial of an idle side is skipped if it would cost more than this many passes. */
enum { SLC_HYBRID_TRIAL_COST = 3 };

enum slc_hybrid_side { SLC_HYBRID_CPU, SLC_HYBRID_GPU, SLC_HYBRID_PARTS };

/* What is asked for. */
struct slc_hybrid_wish {
    enum slc_hybrid_kind kind;
    double fraction; /* STATIC: of the nonzeros, the device's: 0 .. 1 */
};

struct slc_hybrid_text {
    char text[32];
};

/* Whether `text` means to ask for a share: one of the words below, whatever follows them. */
bool slc_hybrid_known(const char *text);
/*
 * "static=F" with F from 0 to 1, "adaptive" or "queue". Errors: SLC_ERR_USAGE, saying what is
 * understood.
 */
enum slc_status slc_hybrid_parse(const char *text,
                                 struct slc_hybrid_wish *wish,
                                 struct slc_error *err) SLC_NODISCARD;
/* The same backwards: "static=0.7"; "none" where there is no share. Returns out->text. */
const char *slc_hybrid_name(const struct slc_hybrid_wish *wish, struct slc_hybrid_text *out);
const char *slc_hybrid_kind_name(enum slc_hybrid_kind kind); /* "none", "static", .. */

/* What a side has done in some time. */
struct slc_hybrid_part {
    uint64_t nnz;
    double seconds; /* from the beginning of a pass until it had no more to do */
};

/*
 * How quick both sides have been seen to be, for one kind of pass, as over one mode. Begins with
 * zeros. What was measured last counts as much as all before it together.
 */
struct slc_hybrid_rates {
    double nnz[SLC_HYBRID_PARTS];
    double seconds[SLC_HYBRID_PARTS];
};
/* Notes what a side did; nothing where that was nothing. */
void slc_hybrid_rates_note(struct slc_hybrid_rates *rates,
                           enum slc_hybrid_side side,
                           const struct slc_hybrid_part *part);
/* Nonzeros a second; 0 where nothing is known. */
double slc_hybrid_rate(const struct slc_hybrid_rates *rates, enum slc_hybrid_side side);
/* The fraction with which both sides would end together; negative where one is not known. */
double slc_hybrid_rates_fraction(const struct slc_hybrid_rates *rates);

/* What passes over one mode have come to. Begins with zeros but for the wish. */
struct slc_hybrid {
    struct slc_hybrid_wish wish;
    struct slc_hybrid_rates rates;
    /* Cost of the CPU's part apart from computing its blocks: preparing it and adding its output
     * to the device's. 0: not measured. */
    double cost_seconds;
    uint64_t passes;                                /* complete ones */
    uint64_t passes_alone;                          /* of these, by the device without the CPU */
    struct slc_hybrid_part parts[SLC_HYBRID_PARTS]; /* sums of these */
    struct slc_hybrid_part last[SLC_HYBRID_PARTS];  /* of the last one */
};

/* Notes the cost of the CPU's part in a pass; see cost_seconds. */
void slc_hybrid_note_cost(struct slc_hybrid *hybrid, double seconds);
/*
 * Whether a share is due for another trial of a side that had no part in the last passes: after
 * 1, 4, 16, .. passes.
 */
bool slc_hybrid_tries_again(const struct slc_hybrid *hybrid);
/*
 * Whether an adaptive share leaves the CPU out of the next pass: the device alone is expected to
 * end sooner than both, the cost of the CPU's part included. A trial is due now and then, unless
 * it would cost more than SLC_HYBRID_TRIAL_COST times the pass.
 */
bool slc_hybrid_without_cpu(const struct slc_hybrid *hybrid);
/* What the next pass begins with; negative: nothing, both sides take from a queue. */
double slc_hybrid_planned(const struct slc_hybrid *hybrid);
/* A pass is complete, in which both sides did these parts. */
void slc_hybrid_note(struct slc_hybrid *hybrid,
                     const struct slc_hybrid_part parts[SLC_HYBRID_PARTS]);
/* The device's fraction of the nonzeros of two parts; negative without any. */
double slc_hybrid_fraction(const struct slc_hybrid_part parts[SLC_HYBRID_PARTS]);

#endif
