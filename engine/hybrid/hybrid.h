/* Divides work between two sides, the CPU and one device with its own memory ([XPLAT] section 3.3).
 * Holds the requested split, the measured rates of both sides, and the fraction of the work for the
 * device. */
#ifndef SLC_ENGINE_HYBRID_H
#define SLC_ENGINE_HYBRID_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_hybrid_kind {
    SLC_HYBRID_NONE,   /* all work on the device */
    SLC_HYBRID_STATIC, /* a fixed fraction of the nonzeros on the device */
    /* The first pass starts like SLC_HYBRID_QUEUE. The rates that it measures determine how the
     * rest of the pass is divided, and how the next pass starts. */
    SLC_HYBRID_ADAPTIVE,
    /* The device starts with the largest blocks and the CPU with the smallest, until they meet. */
    SLC_HYBRID_QUEUE
};

/* A side without work is not tried again if the trial would take longer than this number of
 * passes. */
enum { SLC_HYBRID_TRIAL_COST = 3 };

enum slc_hybrid_side { SLC_HYBRID_CPU, SLC_HYBRID_GPU, SLC_HYBRID_PARTS };

/* The requested split. */
struct slc_hybrid_wish {
    enum slc_hybrid_kind kind;
    double fraction; /* SLC_HYBRID_STATIC only: the device's fraction of the nonzeros, 0 .. 1 */
};

struct slc_hybrid_text {
    char text[32];
};

/* Returns true if `text` starts with "static", "adaptive" or "queue". Does not check the rest of
 * the text. */
bool slc_hybrid_is_split(const char *text);
/* Parses "static=F" with F from 0 to 1, "adaptive" or "queue". Errors: SLC_ERR_USAGE, listing the
 * accepted forms. */
enum slc_status slc_hybrid_parse(const char *text,
                                 struct slc_hybrid_wish *wish,
                                 struct slc_error *err) SLC_NODISCARD;
/* Returns the text that slc_hybrid_parse accepts for `wish`, such as "static=0.7", or "none" if no
 * work is divided. The text is in out->text. */
const char *slc_hybrid_name(const struct slc_hybrid_wish *wish, struct slc_hybrid_text *out);
const char *slc_hybrid_kind_name(enum slc_hybrid_kind kind); /* "none", "static", .. */

/* Work that one side has done, and the time that it took. */
struct slc_hybrid_part {
    uint64_t nnz;
    double seconds; /* time from the start of a pass until the side ran out of work */
};

/* Measured rates of both sides in similar passes, such as all passes over one mode. Initially zero.
 * The last measurement has the same weight as all earlier measurements together. */
struct slc_hybrid_rates {
    double nnz[SLC_HYBRID_PARTS];
    double seconds[SLC_HYBRID_PARTS];
};
/* Records the work of a side. Ignores a side that did no work. */
void slc_hybrid_rates_record(struct slc_hybrid_rates *rates,
                             enum slc_hybrid_side side,
                             const struct slc_hybrid_part *part);
/* Returns the nonzeros per second of a side; 0 if unknown. */
double slc_hybrid_rate(const struct slc_hybrid_rates *rates, enum slc_hybrid_side side);
/* Returns the fraction of the work that the device must get so that both sides finish together;
 * negative if a rate is unknown. */
double slc_hybrid_rates_fraction(const struct slc_hybrid_rates *rates);

/* The requested split and the measurements of all passes over one mode. Initially zero except
 * `wish`. */
struct slc_hybrid {
    struct slc_hybrid_wish wish;
    struct slc_hybrid_rates rates;
    /* Time that using the CPU takes in addition to computing its blocks: to prepare its part and to
     * add its output to the device's output. 0 if not measured. */
    double cost_seconds;
    uint64_t passes;       /* complete passes */
    uint64_t passes_alone; /* number of passes in which the device worked alone */
    struct slc_hybrid_part parts[SLC_HYBRID_PARTS]; /* work of each side, summed over all passes */
    struct slc_hybrid_part last[SLC_HYBRID_PARTS];  /* work of each side in the last pass */
};

/* Records cost_seconds, measured in one pass. */
void slc_hybrid_record_cost(struct slc_hybrid *hybrid, double seconds);
/* Returns true after 1, 4, 16, .. passes: if a side had no work in the last passes, it is then
 * tried again. */
bool slc_hybrid_tries_again(const struct slc_hybrid *hybrid);
/* Returns true if an adaptive split leaves the CPU out of the next pass: the device alone is
 * expected to need less time than both sides together plus cost_seconds. The CPU is tried again
 * after 1, 4, 16, .. passes, unless a trial would take longer than SLC_HYBRID_TRIAL_COST passes. */
bool slc_hybrid_without_cpu(const struct slc_hybrid *hybrid);
/* Returns the device's fraction of the nonzeros with which the next pass starts; negative if the
 * pass starts like SLC_HYBRID_QUEUE. */
double slc_hybrid_planned(const struct slc_hybrid *hybrid);
/* Records the work of both sides in a complete pass. */
void slc_hybrid_record(struct slc_hybrid *hybrid,
                       const struct slc_hybrid_part parts[SLC_HYBRID_PARTS]);
/* Returns the device's fraction of the nonzeros in `parts`; negative if there are none. */
double slc_hybrid_fraction(const struct slc_hybrid_part parts[SLC_HYBRID_PARTS]);

#endif
