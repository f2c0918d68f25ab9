/* sluice ttm: what a product holds, and what is told of it. */
#ifndef SLC_TOOLS_TTM_REPORT_H
#define SLC_TOOLS_TTM_REPORT_H

#include "engine/product/ttm.h"
#include "engine/solve/relabel.h"
#include "storage/manifest/labels.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/report/fiber_order.h"
#include "tools/report/product_gpu.h"
#include "tools/session/session.h"

struct ttm_arguments {
    struct session_options session; /* of these, what there is a row for below */
    uint64_t mode;
    const char *matrix;
    const char *kernel;
    const char *temp_dir;
    const char *progress;
    const char *log_json;
    bool dry_run;
    bool json;
    bool quiet;
};

/* Everything a product holds. */
struct ttm_product {
    const struct ttm_arguments *args;
    const char *folder;
    unsigned mode;
    uint32_t cols;
    struct slc_store store;
    struct slc_fiber_order order;
    struct slc_products_choice choice; /* of a device .. */
    struct slc_error refused;          /* .. and why it is not used, where it was to be */
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_matrix matrix;
    struct slc_labels labels[SLC_MAX_ORDER];
    struct slc_ttm_options options;
    struct slc_ttm_report report;
    struct slc_stream_stats stats;
    struct forecast_ahead ahead;
    double sort_seconds, multiply_seconds, total_seconds;
};

/* Fibers of the result: as the layout counts them, or at most: nonzeros, or cells of the others. */
uint64_t ttm_fibers_most(const struct ttm_product *product);

/* Bytes of both files of so many fibers. */
double ttm_result_bytes(const struct ttm_product *product, uint64_t fibers);

/* What was multiplied, and how: for readers, or as one JSON object. */
void ttm_print(const struct ttm_product *product);
enum slc_status ttm_print_json(const struct ttm_product *product,
                               struct slc_error *err) SLC_NODISCARD;

/* What would be. */
void ttm_print_dry_run(const struct ttm_product *product);
enum slc_status ttm_print_dry_run_json(const struct ttm_product *product,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
